"""Judged lines in the forms that other programs read: CSV, Parquet, JUnit XML, Markdown.

Each is written line by line: only what a form has to say first (sums) waits for the end.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from judge.errors import missing_extra
from judge.records import RESERVED, Item
from judge.report.files import inert
from judge.run.summary import Summary
from judge.verdict import Judgement, Verdict

Judged = Iterable[tuple[Item, Judgement]]

COLUMNS: Mapping[str, str] = {
    "id": "string",
    "verdict": "string",
    "original_verdict": "string",
    "workflow": "string",
    "check": "string",
    "quote": "string",
    "reason": "string",
    "failed": "string",
    "undecided": "string",
    "checks": "string",
    "models": "string",
    "votes": "int64",
    "edits": "int64",
    "dropped": "int64",
    "recall": "double",
    "replies": "int64",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "cost_usd": "double",
    "error": "string",
    "fingerprint": "string",
    "record": "string",
}
"""The columns of CSV and Parquet with their types, the same for every file whatever it holds."""

_ROWS = 1_000
"""Rows of Parquet that are written together."""

_FAILURES = 20
"""Failures that the Markdown shows."""

_UNDECIDED = (Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~$@-])")


def row(item: Item, judged: Judgement) -> dict[str, Any]:
    """One line, flat: a cell for each of `COLUMNS`, None where there is nothing to say.

    `check`, `quote` and `reason` tell why the record has its verdict. In JSON, `checks` has the
    last verdict, answer and score of each check, `record` the record's own fields.
    """
    fields = {name: one for name, one in (item.fields or {}).items() if name != RESERVED}
    last = {
        one.name: {"verdict": one.verdict, "answer": one.answer, "score": one.score}
        for one in judged.checks
    }
    check, finding = judged.deciding
    models = dict.fromkeys(vote.model for one in judged.checks for vote in one.votes)
    return {
        "id": name_of(item),
        "verdict": str(judged.verdict),
        "original_verdict": judged.original_verdict and str(judged.original_verdict),
        "workflow": judged.workflow,
        "check": check and check.name,
        "quote": finding and finding.quote,
        "reason": finding.reason if finding else judged.reason,
        "failed": _named(last, (Verdict.FAIL,)),
        "undecided": _named(last, _UNDECIDED),
        "checks": json.dumps(last, ensure_ascii=False),
        "models": ", ".join(models) or None,
        "votes": sum(len(one.votes) for one in judged.checks),
        "edits": len(judged.edits),
        "dropped": len(judged.dropped),
        "recall": judged.extraction and judged.extraction.recall,
        "replies": judged.usage.replies,
        "input_tokens": judged.usage.input_tokens,
        "output_tokens": judged.usage.output_tokens,
        "cost_usd": judged.usage.cost_usd,
        "error": judged.error and f"{judged.error.type}: {judged.error.message}",
        "fingerprint": judged.fingerprint,
        "record": json.dumps(fields, ensure_ascii=False),
    }


def name_of(item: Item) -> str:
    """The record's id as text, else the number of its line."""
    own = (item.fields or {}).get("id")
    return str(own) if isinstance(own, str | int | float) and own != "" else f"line {item.line}"


def _named(last: Mapping[str, Mapping[str, Any]], verdicts: Iterable[Verdict]) -> str | None:
    return ", ".join(name for name, one in last.items() if one["verdict"] in verdicts) or None


def _rows(lines: Judged) -> Iterator[dict[str, Any]]:
    for item, judged in lines:
        # Half of a surrogate pair has no UTF-8, and is written as its escape.
        yield {
            name: cell.encode(errors="backslashreplace").decode() if isinstance(cell, str) else cell
            for name, cell in row(item, judged).items()
        }


def write_csv(lines: Judged, file: IO[bytes]) -> None:
    """A row of `COLUMNS` a line, in UTF-8; texts that a spreadsheet would run get an apostrophe."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    made = csv.writer(text, lineterminator="\n")
    made.writerow(COLUMNS)
    made.writerows([inert(cell) for cell in one.values()] for one in _rows(lines))
    text.detach()


def write_parquet(lines: Judged, file: IO[bytes]) -> None:
    """A row of `COLUMNS` a line; raises UsageError where pyarrow is missing."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError as error:
        raise missing_extra("-o FILE.parquet needs pyarrow", "parquet") from error
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    with pq.ParquetWriter(file, schema) as made:
        rows = _rows(lines)
        while some := list(islice(rows, _ROWS)):
            made.write_table(pa.Table.from_pylist(some, schema=schema))


def write_junit(lines: Judged, file: IO[bytes]) -> None:
    """A test case a record: fail is a failure, abstain skipped, unreadable and error an error."""
    summary = Summary()
    with tempfile.TemporaryFile() as cases:
        for item, judged in lines:
            summary.add(judged.model_dump())
            one = row(item, judged)
            case = Element("testcase", name=_xml(one["id"]), classname=one["workflow"] or "judge")
            if (kind := _OUTCOMES.get(judged.verdict)) is not None:
                parts = [one["error"] or one["reason"] or "", one["quote"] and f"“{one['quote']}”"]
                told = " – ".join(part for part in parts if part)
                about = {"message": _xml(told), "type": one["check"] or str(judged.verdict)}
                if kind == "skipped":
                    del about["type"]
                SubElement(case, kind, about)
            cases.write(tostring(case, "utf-8", xml_declaration=False) + b"\n")
        counts = summary.verdicts
        suite = (
            f'tests="{summary.records}" failures="{counts[Verdict.FAIL]}" '
            f'errors="{summary.incomplete}" skipped="{counts[Verdict.ABSTAIN]}"'
        )
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {suite}>\n'
        file.write(f'{head}<testsuite name="judge" {suite}>\n'.encode())
        cases.seek(0)
        shutil.copyfileobj(cases, file)
    file.write(b"</testsuite>\n</testsuites>\n")


_OUTCOMES = {
    Verdict.FAIL: "failure",
    Verdict.ABSTAIN: "skipped",
    Verdict.UNREADABLE: "error",
    Verdict.ERROR: "error",
}


def _xml(text: str) -> str:
    """The text in characters that XML has, the others named by their code points."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_markdown(lines: Judged, file: IO[bytes]) -> None:
    """What GitHub's step summary shows: the verdicts of each check, and the first failures."""
    summary, failed = Summary(), list[dict[str, Any]]()
    for item, judged in lines:
        summary.add(judged.model_dump())
        if judged.verdict is Verdict.FAIL and len(failed) < _FAILURES:
            failed.append(row(item, judged))
    rate, repaired, of = summary.pass_rate, summary.repaired_rate, summary.records
    told = [f"### judge: {_passing(summary.came, of, rate)}", ""]
    if summary.edits or summary.dropped:
        told = [f"### judge: {_passing(summary.came, of, rate)} as they came in", ""]
        told += [f"{_passing(summary.verdicts, of, repaired)} after repair.", ""]
    counts = [("**record**", summary.verdicts)]
    counts += [(_markdown(name), found) for name, found in sorted(summary.checks.items())]
    kinds = [kind for kind in Verdict if any(found[kind] for _, found in counts)]
    table = [["check", *kinds], ["---", *("--:" for _ in kinds)]]
    table += [[name, *(str(found[kind]) for kind in kinds)] for name, found in counts]
    if failed:
        many = summary.verdicts[Verdict.FAIL]
        first = f", the first {len(failed)}" if many > len(failed) else ""
        told += [*_piped(table), "", f"#### {many} failed{first}", ""]
        names = ("id", "check", "quote", "reason")
        table = [[*names], ["---"] * 4]
        table += [[_markdown(one[name] or "") for name in names] for one in failed]
    told += _piped(table)
    file.write(("\n".join(told) + "\n").encode(errors="backslashreplace"))


def _passing(verdicts: Mapping[str, int], of: int, rate: float | None) -> str:
    share = "" if rate is None else f" ({rate:.1%})"
    return f"{verdicts.get(Verdict.PASS, 0)} of {of} records pass{share}"


def _piped(table: Iterable[Iterable[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in table]


def _markdown(text: str, most: int = 300) -> str:
    """The text on one line, cut, with all that Markdown and HTML would take for theirs escaped."""
    line = " ".join(text.split())
    line = line if len(line) <= most else f"{line[:most]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", escaped)


FORMS: Mapping[str, Callable[[Judged, IO[bytes]], None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".xml": write_junit,
    ".md": write_markdown,
}
"""What writes a file, by the ending of its name."""
