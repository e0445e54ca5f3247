"""The page a person reads: one HTML file out of the output lines of `judge validate`.

Every line counts; only the records that are shown are kept in memory.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.errors import UsageError
from judge.judgement import Judgement
from judge.records.base import flat, no_such_field
from judge.records.lines import Line, Lines
from judge.report import text
from judge.report.entry import LARGEST, Entry, differ, probability, tally
from judge.run.summary import Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Verdict

_FOLDER = Path(__file__).parent

MEANINGS: Mapping[Verdict, str] = {
    Verdict.FAIL: "at least one check failed, and none was lost",
    Verdict.ERROR: "no reply, or no readable record; judge validate --resume asks again",
    Verdict.UNREADABLE: "the judge's replies never became valid",
    Verdict.ABSTAIN: "no majority, or not sure enough: for people to decide",
    Verdict.PASS: "every check that was made passed",
    Verdict.ANSWERED: "answered by questions that nothing passes or fails",
}
"""What a record's verdict means, in the order in which people look at records."""


@dataclass(slots=True)
class Overview:
    """Counts over output lines.

    `runs` has the verdicts by fingerprint and workflow; `split` counts records with a check whose
    votes differ, `edited` those with edits or dropped values.
    """

    summary: Summary
    runs: dict[tuple[str | None, str | None], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    split: int = 0
    edited: int = 0

    @property
    def outcomes(self) -> set[str]:
        """The verdicts of checks that there are."""
        return {v for counts in self.summary.checks.values() for v in counts}

    def add(self, line: Line, judgement: Judgement) -> None:
        """Count one line."""
        self.summary.add(line)
        self.split += any(map(differ, judgement.checks))
        self.edited += bool(judgement.edits or judgement.dropped)
        # A record that could not be read was judged by no run.
        if (key := (judgement.fingerprint, judgement.workflow)) != (None, None):
            self.runs[key][judgement.verdict] += 1


def passing(counts: Counter[str]) -> Estimate:
    """The share of passes among what was not skipped, with its interval."""
    return wilson(counts[Verdict.PASS], counts.total() - counts[Verdict.SKIPPED])


def percent(share: float | None) -> str:
    """A share to a tenth of a percent; a dash where it is undefined."""
    return "–" if share is None else f"{share:.1%}"


def between(share: Estimate) -> str:
    """The interval of a share; a dash where it is undefined."""
    return "–" if share.low is None else f"{share.low:.1%} to {share.high:.1%}"


def details(described: Any) -> dict[str, str]:
    """What is known of a run: its models, settings and rubrics, by name."""
    return {
        name: ", ".join(map(str, detail)) if isinstance(detail, list) else str(detail)
        for name, detail in flat(described).items()
        if detail not in (None, "", [], {})
    }


def render(
    lines: Lines,
    *,
    limit: int,
    described: Mapping[str, Any] | None = None,
    by: Sequence[str] = (),
) -> tuple[str, dict[Verdict, tuple[int, int]]]:
    """The page, and of each verdict how many records are shown, of how many.

    Of each verdict the first `limit` records are shown. `described` is what is known of each run,
    by fingerprint; `by` fields (`a.b` is the field b of object a) whose values are counted by.
    Raises UsageError where none of the lines is judged, or none has a field of `by`.
    """
    overview = Overview(Summary(by, rankings=_rankings(described or {})))
    groups: dict[Verdict, list[tuple[Line, Judgement]]] = {verdict: [] for verdict in MEANINGS}
    first: Line | None = None
    for line, judgement in lines:
        first = first or line
        overview.add(line, judgement)
        if len(groups[judgement.verdict]) < limit:
            groups[judgement.verdict].append((line, judgement))
    if first is not None and overview.summary.unsliced:
        raise UsageError(no_such_field(f"--by {by[0]}", by[0], first.fields))
    entries = [Entry(*pair, number) for number, pair in enumerate(chain(*groups.values()), 1)]
    counts = {v: (len(records), overview.summary.verdicts[v]) for v, records in groups.items()}
    counts = {verdict: (records, of) for verdict, (records, of) in counts.items() if of}
    page = from_template(
        "page.html",
        overview=overview,
        summary=overview.summary,
        counts=counts,
        outcomes=[verdict for verdict in Verdict if verdict in overview.outcomes],
        lines=lines,
        entries=entries,
        described=described or {},
    )
    return page, counts


def _rankings(described: Mapping[str, Any]) -> dict[str, dict[str, Sequence[str]]]:
    """The rankings of all runs: by name their checks, with the two fields that each compares."""
    rankings: dict[str, dict[str, Sequence[str]]] = {}
    for run in described.values():
        for name, pairs in run.get("rankings", {}).items():
            rankings.setdefault(name, {}).update(pairs)
    return rankings


def from_template(name: str, **content: Any) -> str:
    """The page that a template makes, with its style and the style's digest, the only one that the
    page's policy lets a browser take."""
    text = style()
    return templates().get_template(name).render(**content, style=Markup(text), digest=digest(text))


def style(*, asking: bool = False) -> str:
    """The style of pages; with that of pages that ask people."""
    names = ("page.css", "asking.css") if asking else ("page.css",)
    return "".join((_FOLDER / name).read_text("utf-8") for name in names)


def digest(text: str) -> str:
    """The digest by which a page's policy allows an element with this text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def templates() -> Environment:
    """The templates of pages, in which every text is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.visible,
    )
    environment.filters["short"] = text.short
    helpers = (text.changes, percent, between, passing, details, wilson, probability, tally)
    environment.globals |= {helper.__name__: helper for helper in helpers}
    environment.globals |= {"OUTCOMES": list(Verdict), "MEANINGS": MEANINGS, "LARGEST": LARGEST}
    return environment
