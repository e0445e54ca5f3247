"""Judged lines in the forms that other programs read: CSV, Parquet, JUnit XML, Markdown.

CSV and Parquet are written line by line; JUnit's XML has sums first, so its cases are held.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import islice, starmap
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ElementTree, SubElement

from jinja2 import Environment

from judge.errors import missing_extra
from judge.records.lines import Line
from judge.redact import printable
from judge.run.summary import Summary
from judge.verdict import Check, Judgement, Verdict

Judged = Iterable[tuple[Line, Judgement]]

COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("id", "verdict", "original_verdict", "workflow"), "string"),
    **dict.fromkeys(("check", "entry", "quote", "reason"), "string"),
    **dict.fromkeys(("failed", "undecided", "checks", "models"), "string"),
    **dict.fromkeys(("votes", "edits", "dropped"), "int64"),
    "recall": "double",
    **dict.fromkeys(("replies", "input_tokens", "output_tokens"), "int64"),
    "cost_usd": "double",
    **dict.fromkeys(("error", "fingerprint", "record"), "string"),
}
"""The columns of CSV and Parquet with their types, the same for every file whatever it holds."""

_ROWS = 1_000
"""Rows of Parquet that are written together."""

_FAILURES = 20
"""Failures that the Markdown shows."""

_UNDECIDED = (Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~$@-])")


def row(line: Line, judgement: Judgement) -> dict[str, Any]:
    """One line, flat: a cell for each of `COLUMNS`, None where there is nothing to say.

    `check`, `entry`, `quote` and `reason` tell why the record has its verdict. In JSON, `checks`
    has the last verdict, answer and score of each check, and the verdict on each entry that it was
    made on; `record` has the record's own fields.
    """
    last = {check.name: _outcome(check) for check in judgement.checks}
    check = judgement.deciding
    finding = check and check.best_evidence
    entry = finding and finding.value
    if finding and not (finding.quote or finding.reason):
        finding = None
    models = dict.fromkeys(vote.model for check in judgement.checks for vote in check.votes)
    cells = {
        "id": line.id or f"line {line.number}",
        "verdict": str(judgement.verdict),
        "original_verdict": judgement.original_verdict and str(judgement.original_verdict),
        "workflow": judgement.workflow,
        "check": check and check.name,
        "entry": entry,
        "quote": finding and finding.quote,
        "reason": finding.reason
        if finding and (finding.quote or finding.reason)
        else judgement.reason,
        "failed": _named(last, (Verdict.FAIL,)),
        "undecided": _named(last, _UNDECIDED),
        "checks": json.dumps(last, ensure_ascii=False),
        "models": ", ".join(models) or None,
        "votes": sum(len(check.votes) for check in judgement.checks),
        "edits": len(judgement.edits),
        "dropped": len(judgement.dropped),
        "recall": judgement.extraction and judgement.extraction.recall,
        **asdict(judgement.usage),
        "error": judgement.error and f"{judgement.error.type}: {judgement.error.message}",
        "fingerprint": judgement.fingerprint,
        "record": json.dumps(line.fields, ensure_ascii=False),
    }
    # A lone surrogate has no UTF-8, and is written as its escape.
    return {
        name: cell.encode(errors="backslashreplace").decode() if isinstance(cell, str) else cell
        for name, cell in cells.items()
    }


def _outcome(check: Check) -> dict[str, Any]:
    outcome = {"verdict": check.verdict, "answer": check.answer, "score": check.score}
    entries = {entry: verdict for entry, verdict in check.verdicts().items() if entry is not None}
    return {**outcome, "entries": entries} if entries else outcome


def _named(last: Mapping[str, Mapping[str, Any]], verdicts: Iterable[Verdict]) -> str | None:
    return ", ".join(name for name, entry in last.items() if entry["verdict"] in verdicts) or None


def write_csv(lines: Judged, file: IO[bytes]) -> None:
    """A row of `COLUMNS` a line, in UTF-8; texts that a spreadsheet would run get an apostrophe."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([inert(cell) for cell in cells.values()] for cells in starmap(row, lines))
    text.detach()


_FORMULA = re.compile(r"(\A|[;\t\n] *)([=+\-@＝＋－＠])")
"""Where a spreadsheet may see a formula begin: also behind the separators of other locales, and
with the full-width signs of East Asian ones."""


def inert(cell: str | float | None) -> str | float | None:
    """The cell; what a spreadsheet would take for a formula gets an apostrophe in front.

    A carriage return becomes a newline: the csv module does not quote it, and readers would take it
    for the end of the row.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    inert = _FORMULA.sub(r"\1'\2", text)
    return f"'{inert}" if inert[:1] in ("\t", "\n") else inert


def write_parquet(lines: Judged, file: IO[bytes]) -> None:
    """A row of `COLUMNS` a line; raises UsageError where pyarrow is missing."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError as error:
        raise missing_extra("-o FILE.parquet needs pyarrow", "parquet") from error
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    with pq.ParquetWriter(file, schema) as writer:
        rows = starmap(row, lines)
        while batch := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def write_junit(lines: Judged, file: IO[bytes]) -> None:
    """A test case a record: fail is a failure, abstain skipped, unreadable and error an error."""
    suite, counts = Element("testsuite", name="judge"), Counter[str]()
    for line, judgement in lines:
        cells = row(line, judgement)
        name, workflow = _xml(cells["id"]), _xml(cells["workflow"] or "judge")
        case = SubElement(suite, "testcase", name=name, classname=workflow)
        counts["tests"] += 1
        if (outcome := _OUTCOMES.get(judgement.verdict)) is not None:
            tag, counter = outcome
            counts[counter] += 1
            reason = cells["error"] or cells["reason"] or ""
            # The judgement's own reason names the entry.
            entry = None if reason == judgement.reason else cells["entry"]
            parts = [entry, reason, cells["quote"] and f"“{cells['quote']}”"]
            message = _xml(" – ".join(part for part in parts if part))
            kind = _xml(cells["check"] or str(judgement.verdict))
            SubElement(case, tag, {"message": message, "type": kind})
    sums = {name: str(counts[name]) for name in ("tests", "failures", "errors", "skipped")}
    suites = Element("testsuites", sums)
    suite.attrib.update(sums)
    suites.append(suite)
    ElementTree(suites).write(file, "utf-8", xml_declaration=True)


_OUTCOMES = {
    Verdict.FAIL: ("failure", "failures"),
    Verdict.ABSTAIN: ("skipped", "skipped"),
    Verdict.UNREADABLE: ("error", "errors"),
    Verdict.ERROR: ("error", "errors"),
}


def _xml(text: str) -> str:
    """The text in characters that XML has, the others named by their code points."""
    return _NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_markdown(lines: Judged, file: IO[bytes]) -> None:
    """What GitHub's step summary shows: the verdicts of each check, and the first failures."""
    summary, failed = Summary(), list[dict[str, Any]]()
    for line, judgement in lines:
        summary.add(line)
        if judgement.verdict is Verdict.FAIL and len(failed) < _FAILURES:
            failed.append(row(line, judgement))
    counts = {"**record**": summary.verdicts}
    counts |= {_markdown(name): verdicts for name, verdicts in sorted(summary.checks.items())}
    kinds = [kind for kind in Verdict if any(verdicts[kind] for verdicts in counts.values())]
    environment = Environment(autoescape=False, trim_blocks=True, lstrip_blocks=True)
    environment.filters["told"] = _markdown
    template = environment.from_string((Path(__file__).parent / "summary.md").read_text("utf-8"))
    text = template.render(summary=summary, counts=counts, kinds=kinds, failed=failed)
    file.write(f"{text.strip()}\n".encode(errors="backslashreplace"))


def _markdown(text: str | None, length: int = 300) -> str:
    """The text on one line, cut, with all that Markdown and HTML would take for theirs escaped."""
    line = " ".join((text or "").split())
    line = line if len(line) <= length else f"{line[:length]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return printable(_MARKS.sub(r"\\\1", escaped))


FORMS: Mapping[str, Callable[[Judged, IO[bytes]], None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".xml": write_junit,
    ".md": write_markdown,
}
"""What writes a file, by the ending of its name."""
