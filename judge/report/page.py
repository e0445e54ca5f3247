"""The page a person reads: one HTML file out of the output lines of `judge validate`.

Every line counts; of each verdict the first `limit` records are shown, and only these are kept in
memory.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError

from judge.errors import UsageError
from judge.records import MAX_LINE, RESERVED, Item, read
from judge.report import entry, text
from judge.report.entry import Entry, differ
from judge.run.output import refuse_input, refuse_nameless, write_whole
from judge.run.summary import Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Judgement, Verdict

LONGEST = 4 * MAX_LINE
"""Bytes of a line that is read: it may hold a record twice, and evidence."""

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
        described: the contents of OUT.run.json by fingerprint, where there is one.
        runs: verdicts by fingerprint and workflow.
        split: records of which at least one check has votes that differ.
        foreign: lines that `judge validate` did not write; the first, and why.
    """

    limit: int
    described: Mapping[str, Any]
    summary: Summary = field(default_factory=Summary)
    runs: dict[tuple[str | None, str | None], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    split: int = 0
    edited: int = 0
    foreign: int = 0
    first_foreign: str = ""

    def add(self, judged: Judgement) -> None:
        """Count one line."""
        self.summary.add(judged.model_dump())
        self.split += any(map(differ, judged.checks))
        self.edited += bool(judged.edits)
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

    def details(self, fingerprint: str | None) -> list[tuple[str, str]]:
        """(name, content) of what is known of a run: its models, settings and rubrics."""
        known = self.described.get(fingerprint or "")
        told: dict[str, Any] = {}
        for name, one in known.items() if isinstance(known, dict) else ():
            told |= (
                {f"{name}.{k}": v for k, v in one.items()} if isinstance(one, dict) else {name: one}
            )
        return [
            (name, ", ".join(map(str, one)) if isinstance(one, list) else str(one))
            for name, one in told.items()
            if one not in (None, "", [], {})
        ]


def percent(share: float | None) -> str:
    """A share to a tenth of a percent; a dash where it is undefined."""
    return "–" if share is None else f"{share:.1%}"


def between(share: Estimate) -> str:
    """The interval of a share; a dash where it is undefined."""
    return "–" if share.low is None else f"{share.low:.1%} to {share.high:.1%}"


def publish(sources: Sequence[str], out: Path, *, overwrite: bool, limit: int) -> Overview:
    """Write the page about judged lines; an earlier one stays until the new one is whole.

    Args:
        sources: files, or `-` for standard input.
        out: where the page goes.
        limit: how many records of each verdict are shown.

    Raises:
        UsageError: an input cannot be opened, holds no judged line, or is `out`; the page is there
            already and `overwrite` is false; it cannot be written.
    """
    refuse_nameless("-o", out, "")
    for source in sources:
        refuse_input("-o", out, source)
    if out.exists() and out.stat().st_size and not overwrite:
        raise UsageError(f"{out} exists. Replace it (--overwrite), or name another file with -o")
    if "-" in sources and sys.stdin is None:
        raise UsageError("standard input is closed: name a file, or pipe judged lines in")
    items = [read(source, format="jsonl", max_line=LONGEST) for source in sources]
    names = ["standard input" if source == "-" else Path(source).name for source in sources]
    page, found = render(
        chain.from_iterable(items), names, limit=limit, described=_described(sources)
    )
    try:
        if out.exists() and not out.is_file():
            # A device or a pipe: nothing to be kept, and nothing to be replaced.
            out.write_bytes(page.encode())
        else:
            write_whole(out.resolve(), page.encode())
    except OSError as error:
        raise UsageError(
            f"{out}: cannot be written: {error.strerror or error}; "
            "name a file in a folder that is there and can be written"
        ) from error
    return found


def render(
    items: Iterable[Item],
    sources: Sequence[str],
    *,
    limit: int,
    described: Mapping[str, Any] | None = None,
) -> tuple[str, Overview]:
    """The page, and what is counted on it.

    Args:
        items: output lines, as judge/records reads them; also those that judge did not write.
        sources: the names of the inputs, to be shown.
        limit: how many lines of each verdict are shown, the first ones (at least 0).
        described: what is known of each run, by fingerprint.

    Raises:
        UsageError: there are lines, and none of them is a judged one.
    """
    found = Overview(limit, described or {})
    groups: dict[Verdict, list[tuple[Item, Judgement]]] = {verdict: [] for verdict in MEANINGS}
    for item in items:
        judged = _judged(item)
        if isinstance(judged, str):
            found.foreign += 1
            found.first_foreign = found.first_foreign or f"line {item.line}: {judged}"
            continue
        found.add(judged)
        if len(groups[judged.verdict]) < limit:
            groups[judged.verdict].append((item, judged))
    if found.foreign and not found.lines:
        raise UsageError(
            f"{', '.join(sources)}: none of the {found.foreign} lines was written by judge "
            f"validate ({found.first_foreign}): name what it wrote"
        )
    lines = chain.from_iterable(groups.values())
    style = Markup((_FOLDER / "page.css").read_text("utf-8"))
    page = (
        _templates()
        .get_template("page.html")
        .render(
            overview=found,
            entries=[Entry(*line, number) for number, line in enumerate(lines, 1)],
            sources=sources,
            style=style,
            digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        )
    )
    return page, found


def _described(sources: Iterable[str]) -> dict[str, Any]:
    """What the OUT.run.json files beside the sources say, by fingerprint."""
    found: dict[str, Any] = {}
    for source in sources:
        with suppress(OSError, ValueError):
            told = json.loads(Path(f"{source}.run.json").read_text("utf-8"))
            found |= told if isinstance(told, dict) else {}
    return found


def _judged(item: Item) -> Judgement | str:
    """What judge validate wrote of a record, or why the line is none of its lines."""
    if item.fields is None:
        return item.problem.message if item.problem else "holds no record"
    told = item.fields.get(RESERVED)
    if not isinstance(told, dict) or "verdict" not in told:
        return "has no verdict under 'judge'"
    if "benchmark" in told:
        return "is of judge audit, or of judge evaluate, which judge score makes tables of"
    try:
        judged = Judgement.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, (RESERVED, *first['loc'])))}: {first['msg']}"
    known = judged.verdict in MEANINGS
    return judged if known else f"{RESERVED}.verdict: no record is {judged.verdict}"


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
