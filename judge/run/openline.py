"""The line of a record that the cheap stage leaves open: what it carries, and how it is read back.

Beside the record's own fields it holds the cheap model's replies, so that the strong stage needs
neither that model's weights nor its cache to come to the same place again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from judge.backends.base import Completion
from judge.errors import BackendError, UsageError
from judge.judging.carried import Heard
from judge.judging.client import Client
from judge.judging.reading import is_log_probability, spoken
from judge.records import Record
from judge.run.lines import Line, written
from judge.run.setup import Bound
from judge.verdict import OPEN, Judgement, Usage, Verdict
from judge.workflow import Context

_STAGE = "stage"
_NO_REPLY = "error"


def left_open(
    record: Record, asked: Sequence[str], heard: Mapping[str, Heard], bound: Bound, cheap: Client
) -> Line:
    """The line of a record for which strong models have to be asked.

    Args:
        asked: the rubrics that they are asked, as far as that is known.
        heard: what the cheap model's calls brought, by key.
    """
    got = [reply for reply in heard.values() if isinstance(reply, Completion)]
    used = sum((cheap.estimate(one.input_tokens, one.output_tokens) for one in got), Usage())
    waits = ", ".join(dict.fromkeys(asked))
    judgement = Judgement(
        verdict=Verdict.ABSTAIN,
        workflow=bound.workflow.name,
        reason=f"for the strong stage: {waits}",
        usage=used,
    )
    words = _words(bound.context)
    told = {
        **judgement.as_json(),
        "models": dict(bound.models),
        "fingerprint": bound.fingerprint,
        "verdict": OPEN,
        _STAGE: {
            "line": record.item.line,
            "seeded": cheap.backend.seeded,
            "replies": {key: _as_list(reply, words) for key, reply in heard.items()},
        },
    }
    return written(record.with_changes({}), told)


def carried(judgement: Mapping[str, Any], where: str) -> tuple[dict[str, Heard], bool]:
    """What the cheap model's calls brought, and whether it takes seeds; from an open judgement.

    Raises:
        UsageError: it is not as `left_open` wrote it.
    """
    try:
        stage = judgement[_STAGE]
        heard = {key: _from_list(told) for key, told in stage["replies"].items()}
        return heard, bool(stage["seeded"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{where}: the replies that --stage cheap left there cannot be read ({error!r}); "
            "make that file anew"
        ) from error


def first_line(judgement: Mapping[str, Any]) -> int | None:
    """Where the record of an open or failed line stood in the first stage's input; None: unknown.

    It names records without an id, and stands in what is said of faults.
    """
    told = judgement.get(_STAGE) or judgement.get("error")
    line = told.get("line") if isinstance(told, dict) else None
    return line if isinstance(line, int) else None


def _words(context: Context) -> frozenset[str]:
    """All words that the cheap readings of a workflow look for."""
    panels = (*context.steering.values(), *context.accepting.values())
    readings = [panel.screen.rubric.readings.probability for panel in panels if panel.screen]
    return frozenset(
        word for reading in readings if reading for one in reading.questions for word in one.words
    )


def _as_list(heard: Heard, words: frozenset[str]) -> list[Any]:
    """A reply without what no reading looks at: other words, and how much came from a cache."""
    if isinstance(heard, BackendError):
        return [_NO_REPLY, heard.kind, str(heard)]
    tokens = heard.first_token
    # JSON has no infinity, and a word of no probability adds nothing to any other.
    kept = [(t, p) for t, p in tokens or () if spoken(t) in words and p != -math.inf]
    if not all(is_log_probability(p) for _, p in tokens or ()):
        kept = []  # Nothing is read from these, and JSON has no NaN either.
    counts = (heard.input_tokens, heard.output_tokens)
    return [heard.finish_reason, *counts, heard.text, None if tokens is None else kept]


def _from_list(told: Sequence[Any]) -> Heard:
    if told[0] == _NO_REPLY:
        _, kind, message = told
        error = BackendError(str(message))
        error.kind = str(kind)
        return error
    finish_reason, input_tokens, output_tokens, text, tokens = told
    if finish_reason not in ("stop", "length", "refusal"):
        raise ValueError(f"a reply ends with {finish_reason!r}")
    return Completion(
        text=str(text),
        finish_reason=finish_reason,
        input_tokens=int(input_tokens),
        output_tokens=int(output_tokens),
        first_token=None if tokens is None else tuple((str(t), float(p)) for t, p in tokens),
    )
