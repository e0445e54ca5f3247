"""The page of a report: one HTML file made of the output lines of `judge validate`.

All lines are counted; the records that are shown are kept compressed. Their texts are on the page
only as data (base64), which the page's script draws as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.errors import UsageError, missing_extra
from judge.judgement import Judgement
from judge.records.base import flat, no_such_field
from judge.records.kinds import normalised
from judge.records.lines import Line, Lines
from judge.report import text
from judge.report.compare import Comparison, compared
from judge.report.entry import drawn, probability
from judge.report.overview import Bar, LabelPair, Overview, empty_summary
from judge.report.runs import Run
from judge.report.table import cell_text
from judge.run.description import UNFINISHED, RunDescription, RunDescriptions
from judge.run.gates import GateOutcome
from judge.run.summary import Summary
from judge.stats import intervals
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Verdict

_FOLDER = Path(__file__).parent

MEANINGS: Mapping[Verdict, str] = {
    Verdict.FAIL: "at least one check failed, and none ended in an error",
    Verdict.ERROR: "no reply; judge validate --resume asks again",
    Verdict.UNREADABLE: "the judge's replies never became valid",
    Verdict.ABSTAIN: "no majority, or not sure enough: for people to decide",
    Verdict.PASS: "every check that was made passed",
    Verdict.ANSWERED: "answered; no answer to its questions passes or fails",
}
"""What a record's verdict means, in the order in which people look at records."""


def meaning(verdict: Verdict, summary: Summary) -> str:
    """What a verdict means in these records: some abstain, or are errors, without a call."""
    count, usual = summary.verdicts[verdict], MEANINGS[verdict]
    apart, why = 0, ""
    if verdict is Verdict.ABSTAIN:
        apart, why = summary.unshown, "no text to judge, so no judge was asked"
    elif verdict is Verdict.ERROR:
        apart, why = summary.bad_lines, "no readable record: mend the input, then --resume"
    if not apart:
        return usual
    return why if apart == count else f"{apart} of {count}: {why}; the others: {usual}"


_UNCONCERNING = (Verdict.PASS, Verdict.ANSWERED)
"""Verdicts of records that no one has to look at."""

MOST_BYTES = 14_500_000
"""Most bytes of compressed records on a page; base64 makes them a third longer."""


def pass_share(counts: Counter[str]) -> Estimate:
    """The share of passes among what was not skipped, with its interval; undefined if nothing
    passes or fails, because answers are counted."""
    if counts[Verdict.ANSWERED] and not (counts[Verdict.PASS] or counts[Verdict.FAIL]):
        return wilson(0, 0)
    return wilson(counts[Verdict.PASS], counts.total() - counts[Verdict.SKIPPED])


def percent(share: float | None) -> str:
    """A share in percent; a dash where it is undefined."""
    return "–" if share is None else intervals.percent(share)


def between(share: Estimate) -> str:
    """The interval of a share; a dash where it is undefined."""
    low, high = share.low, share.high
    return "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def asked_by(overview: Overview) -> dict[str, str]:
    """The questions of the checks that were made, in words, by name, as far as they are known."""
    words = overview.made_by.questions
    return {n: text.in_words(str(words[n])) for n in overview.summary.checks if n in words}


def gates_held(overview: Overview) -> list[GateOutcome]:
    """The outcomes of the gates of the runs, over all records of the overview."""
    return [gate.outcome(overview.summary) for gate in overview.made_by.gates]


def span(bar: Bar) -> str:
    """The values of a bar, such as `0.05 to 0.1`."""
    return f"at {bar.low:g}" if bar.low == bar.high else f"from {bar.low:g} to {bar.high:g}"


def dollars(overview: Overview) -> str:
    """The cost of the replies; "not known" if no line has one above 0."""
    if overview.unpriced and not overview.cost:
        return "not known"
    least = "at least " if overview.unpriced else ""
    return f"{least}${overview.cost:,.{4 if 0 < overview.cost < 0.1 else 2}f}"


def details(run: RunDescription) -> dict[str, str]:
    """The description of a run by name: its models, settings and rubrics. Gates have a table, error
    rates correct the shares, and the top of the page says that a run is unfinished."""
    return {
        name: ", ".join(map(str, detail)) if isinstance(detail, list) else str(detail)
        for name, detail in flat(run.content).items()
        if detail not in (None, "", [], {}) and name not in ("gates", "error_rates", UNFINISHED)
    }


class _Records:
    """The records that a page shows: JSON lines, compressed as they are added."""

    def __init__(self, limit: int, runs: Sequence[Run], described: RunDescriptions) -> None:
        self.shown: Counter[Verdict] = Counter()
        self._limit, self._runs = limit, runs
        self._asked = {mark: _asked(run) for mark, run in described.by_fingerprint.items()}
        self._keys: set[str] = set()
        self._pack, self._parts = zlib.compressobj(9), list[bytes]()
        self._sizes: Counter[bool] = Counter()
        self._write(text.UNSEEN.pattern)

    def add(
        self, line: Line, judgement: Judgement, labels: Sequence[LabelPair], file: int, key: str
    ) -> None:
        """Add a line, known by its key in all runs, if there is room."""
        if not self._has_room(judgement.verdict, file, key):
            return
        self.shown[judgement.verdict] += 1
        self._keys.add(key)
        asked = self._asked.get(judgement.fingerprint or "", ())
        about = {"run": file, "key": key, "labels": labels}
        size = self._write({**about, **drawn(line, judgement, asked)})
        self._sizes[judgement.verdict in _UNCONCERNING] += size

    def _has_room(self, verdict: Verdict, file: int, key: str) -> bool:
        """Whether a record is among the first of its verdict, or is shown from an earlier run.
        Passes leave a third of the page to other verdicts."""
        if self._sizes.total() > MOST_BYTES:
            return False
        if verdict in _UNCONCERNING and self._sizes[True] > MOST_BYTES * 2 / 3:
            return False
        if key in self._keys or any(key in run.entries for run in self._runs[:file]):
            return key in self._keys
        return self.shown[verdict] < self._limit

    def _write(self, content: Any) -> int:
        # A lone surrogate is written as its escape, which means the same in JSON.
        line = f"{as_data(content, ascii=False)}\n".encode(errors="backslashreplace")
        part = self._pack.compress(line)
        self._parts.append(part)
        return len(part)

    def packed(self) -> str:
        """All records, and at the end the keys that have changed: zlib's form in base64, which
        has no character that is special in HTML."""
        self._write([run.moved for run in self._runs])
        return base64.b64encode(b"".join([*self._parts, self._pack.flush()])).decode()


def render(
    lines: Lines,
    *,
    limit: int,
    described: RunDescriptions = RunDescriptions(),  # noqa: B008 (frozen)
    by: Sequence[str] = (),
    title: str = "",
    date: str = "",
) -> tuple[str, dict[Verdict, tuple[int, int]], int]:
    """The page, for each verdict how many records are shown, of how many, and the number of
    records that runs share; 0 if the page does not compare runs.

    Of each verdict the first `limit` records are shown, as far as there is room. Files that have
    records in common are runs, which are shown side by side.

    Args:
        described: the descriptions of the runs.
        by: fields to count by (`a.b` is the field b of object a).
        title, date: the user's words.

    Raises:
        UsageError: none of the lines is judged, none has a field of `by`, or runs of the same
            records cannot be compared.
    """
    whole, *parts = (
        Overview(empty_summary(described, by), described) for _ in range(1 + len(lines.names))
    )
    first_run = Run(lines.names[0], described)
    runs = [first_run, *(Run(name, described, first_run) for name in lines.names[1:])]
    records = _Records(limit, runs, described)
    first: Line | None = None
    alike = 1 < len(runs) <= len(ascii_uppercase)
    for number, (line, judgement) in enumerate(lines):
        first = first or line
        labels = whole.add(line, judgement)
        key = None
        if alike:
            parts[lines.file].add(line, judgement)
            try:
                key = runs[lines.file].add(line, f"{line.source}, line {line.number}")
            except UsageError:  # Lines of several kinds are no run.
                alike = False
        records.add(line, judgement, labels, lines.file, key or f"line {number}")
    if first is not None and (absent := whole.summary.slices.absent) is not None:
        raise UsageError(no_such_field(f"--by {absent}", absent, first.fields))
    alike = alike and len({run.made_by for run in runs}) == 1
    alike = alike and bool(set.intersection(*({*run.entries} for run in runs)))
    verdicts = whole.summary.verdicts
    counts = {v: (records.shown[v], verdicts[v]) for v in MEANINGS if verdicts[v]}
    comparison = _comparison(runs, by) if alike else None
    page = from_template(
        "page.html",
        scripts=("record.js", "page.js"),
        title=title,
        date=date,
        whole=whole,
        parts=dict(zip(ascii_uppercase, parts, strict=False)) if alike else {},
        comparison=comparison,
        counts=counts,
        lines=lines,
        records=records.packed(),
    )
    return page, counts, comparison.items["all"] if comparison else 0


def _comparison(runs: Sequence[Run], by: Sequence[str]) -> Comparison:
    if not all(map(find_spec, ("numpy", "scipy"))):
        raise missing_extra("comparing runs needs numpy and scipy", "calibrate")
    return compared(runs, by=by)


def as_data(content: Any, *, ascii: bool = True) -> str:
    """JSON for a page's script; numbers that are not finite, which it cannot parse, are texts."""
    try:
        return json.dumps(content, ensure_ascii=ascii, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(content), parse_constant=str)
        return json.dumps(plain, ensure_ascii=ascii)


def _asked(run: RunDescription) -> set[str]:
    """The normalised names of the fields that a run's own questions showed to judges, also as the
    records spell them; for a part of an object (`a.b`) also the object's."""
    rubrics = run.own_rubrics.values()
    fields = {name for rubric in rubrics for name in (*rubric.fields, rubric.each) if name}
    paths = fields | {run.columns[name] for name in fields & run.columns.keys()}
    return normalised(paths | {path.partition(".")[0] for path in paths})


def from_template(
    name: str, scripts: Sequence[str] = (), asking: bool = False, **content: Any
) -> str:
    """The page that a template makes, with its style and scripts, and their digests, by which the
    page's policy allows no others."""
    styles = ("page.css", "asking.css") if asking else ("page.css",)
    inline = {"style": source(*styles), "script": source(*scripts)}
    digests = {name: _digest(text) for name, text in inline.items() if text}
    marked = {name: Markup(text) for name, text in inline.items()}
    return templates().get_template(name).render(**content, **marked, digests=digests)


def source(*names: str) -> str:
    """The styles or scripts of these names, as one; `asking.css` is for pages that ask people."""
    return "".join((_FOLDER / name).read_text("utf-8") for name in names)


def _digest(text: str) -> str:
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
    environment.filters["span"] = span
    environment.filters["in_words"] = text.in_words
    helpers = (
        meaning,
        *(percent, between, pass_share, details, asked_by),
        *(gates_held, dollars, wilson, probability, cell_text),
    )
    environment.globals |= {helper.__name__: helper for helper in helpers}
    environment.globals |= {"OUTCOMES": list(Verdict), "MEANINGS": MEANINGS}
    return environment
