"""The page a person reads: one HTML file out of the output lines of `judge validate`.

Every line counts; of each verdict the first `limit` records are shown, and only these are kept in
memory.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.errors import UsageError
from judge.records import Item
from judge.report import entry, text
from judge.report.entry import Entry, differ
from judge.report.files import Lines
from judge.run.lines import flat
from judge.run.summary import NONE, Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Judgement, Verdict

_FOLDER = Path(__file__).parent

MEANINGS: Mapping[Verdict, str] = {
    Verdict.FAIL: "at least one check failed, and none was lost",
    Verdict.ERROR: "no reply, or no readable record; judge validate --resume asks again",
    Verdict.UNREADABLE: "the judge's replies never became valid",
    Verdict.ABSTAIN: "no majority, or not sure enough: for people to decide",
    Verdict.PASS: "every check that was made passed",
}
"""What a record's verdict means, in the order in which people look at records."""


@dataclass(frozen=True, slots=True)
class Share:
    """A verdict's row: its count, how many are shown, its share of all lines (95 % Wilson)."""

    verdict: Verdict
    count: int
    shown: int
    share: Estimate
    meaning: str


@dataclass(slots=True)
class Overview:
    """Counts over output lines.

    Attributes:
        limit: how many records of each verdict are shown.
        summary: the sums; its field `by` is counted by, too.
        described: the contents of OUT.run.json by fingerprint, where there is one.
        runs: verdicts by fingerprint and workflow.
        split: records of which at least one check has votes that differ.
    """

    limit: int
    described: Mapping[str, Any]
    summary: Summary = field(default_factory=Summary)
    runs: dict[tuple[str | None, str | None], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    split: int = 0
    edited: int = 0

    def add(self, fields: Mapping[str, Any], judged: Judgement) -> None:
        """Count one line."""
        self.summary.add(judged.model_dump())
        if self.summary.by is not None:
            self.summary.slice(fields, judged.original_verdict or judged.verdict)
        self.split += any(map(differ, judged.checks))
        self.edited += bool(judged.edits or judged.dropped)
        # A record that could not be read was judged by no run.
        if (key := (judged.fingerprint, judged.workflow)) != (None, None):
            self.runs[key][judged.verdict] += 1

    @property
    def lines(self) -> int:
        return self.summary.records

    @property
    def came(self) -> Estimate:
        """The share of records that pass as they came in."""
        return wilson(self.summary.came[Verdict.PASS], self.lines)

    @property
    def rows(self) -> list[Share]:
        """A row for each verdict that occurs, in the order of `MEANINGS`."""
        counts = self.summary.verdicts
        return [
            Share(v, n, min(n, self.limit), wilson(n, self.lines), meaning)
            for v, meaning in MEANINGS.items()
            if (n := counts[v])
        ]

    @property
    def checks(self) -> list[tuple[str, Mapping[str, int], Estimate]]:
        """Each check with its counts, and the share of passes over what was not skipped."""
        return [
            (name, counts, wilson(counts[Verdict.PASS], counts.total() - counts[Verdict.SKIPPED]))
            for name, counts in self.summary.checks.items()
        ]

    @property
    def slices(self) -> list[tuple[str, Mapping[str, int], Estimate]]:
        """Each value of the field `by`: verdicts on records as they came in, share of passes."""
        return [
            (value, counts, wilson(counts[Verdict.PASS], counts.total()))
            for value, counts in self.summary.largest_slices()
        ]

    def details(self, fingerprint: str | None) -> list[tuple[str, str]]:
        """(name, content) of what is known of a run: its models, settings and rubrics."""
        return [
            (name, ", ".join(map(str, one)) if isinstance(one, list) else str(one))
            for name, one in flat(self.described.get(fingerprint or "")).items()
            if one not in (None, "", [], {})
        ]


def percent(share: float | None) -> str:
    """A share to a tenth of a percent; a dash where it is undefined."""
    return "–" if share is None else f"{share:.1%}"


def between(share: Estimate) -> str:
    """The interval of a share; a dash where it is undefined."""
    return "–" if share.low is None else f"{share.low:.1%} to {share.high:.1%}"


def render(
    lines: Lines,
    *,
    limit: int,
    described: Mapping[str, Any] | None = None,
    by: str | None = None,
) -> tuple[str, Overview]:
    """The page, and what is counted on it.

    Args:
        lines: output lines; also those that judge did not write.
        limit: how many lines of each verdict are shown, the first ones (at least 0).
        described: what is known of each run, by fingerprint.
        by: a field, `a.b` the field b of object a, whose values are counted by.

    Raises:
        UsageError: there are lines, and none of them is a judged one, or none has the field `by`.
    """
    found = Overview(limit, described or {}, Summary(by))
    groups: dict[Verdict, list[tuple[Item, Judgement]]] = {verdict: [] for verdict in MEANINGS}
    for item, judged in lines:
        found.add(item.fields or {}, judged)
        if len(groups[judged.verdict]) < limit:
            groups[judged.verdict].append((item, judged))
    if found.summary.slices.keys() == {NONE}:
        raise UsageError(f"--by {by}: no record has such a field")
    shown = chain.from_iterable(groups.values())
    style = Markup((_FOLDER / "page.css").read_text("utf-8"))
    page = (
        _templates()
        .get_template("page.html")
        .render(
            overview=found,
            lines=lines,
            entries=[Entry(*line, number) for number, line in enumerate(shown, 1)],
            style=style,
            digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        )
    )
    return page, found


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.visible,
    )
    made.filters["short"] = text.short
    made.globals |= {
        "changes": text.changes,
        "percent": percent,
        "between": between,
        "probability": entry.probability,
        "tally": entry.tally,
        "credits": entry.credits,
        "OUTCOMES": list(Verdict),
        "LARGEST": entry.LARGEST,
    }
    return made
