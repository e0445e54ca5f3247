"""Judged lines in the forms that other programs read: CSV, Parquet, Excel, JUnit XML, Markdown.

Tables are written row by row; JUnit's XML begins with totals, so its cases are held in memory.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from xml.etree.ElementTree import Element, ElementTree, SubElement

from jinja2 import Environment

from judge.errors import UsageError, missing_extra
from judge.judgement import Judgement, named_beside, verdict_columns
from judge.reasons import in_short, reason_of
from judge.records.lines import Line
from judge.redact import in_utf8, names_in_utf8, printable
from judge.report.overview import empty_summary
from judge.run.corrected import RatesOfLines
from judge.run.description import RunDescriptions
from judge.stats.intervals import percent
from judge.verdict import UNDECIDED, Answer, Check, Verdict

Judged = Iterable[tuple[Line, Judgement]]

_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("id", "verdict", "original_verdict", "workflow"), "string"),
    **dict.fromkeys(("check", "entry", "quote", "reason"), "string"),
    **dict.fromkeys(("failed", "undecided", "models", "by_people", "judges_verdict"), "string"),
    **dict.fromkeys(("votes", "edits", "dropped"), "int64"),
    "recall": "double",
    **dict.fromkeys(("replies", "input_tokens", "output_tokens"), "int64"),
    "cost_usd": "double",
    **dict.fromkeys(("error", "fingerprint"), "string"),
}
"""Columns `judge.NAME` of a table, with their types, the same for every file."""

_ROWS = 1_000
"""Rows of Parquet in one batch."""

_EXCEL, _SHEET, _SHEET_COLUMNS = 32_767, 1_048_576, 16_384
"""Most characters of a cell, rows and columns of a sheet of Excel."""

_SHOWN = 20
"""Most records that the Markdown lists."""

_LIKE_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""Where Excel would read text such as `_x0041_` as the character of that number."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~$@-])")


def _details(line: Line, judgement: Judgement) -> dict[str, Any]:
    """The cells of `_COLUMNS` that `Judgement.columns` lacks; `check`, `entry` and `quote` are of
    the first check that decided the record."""
    last = {check.name: check.verdict for check in judgement.checks}
    first = _findings(judgement)[0]
    return {
        "id": line.name,
        "original_verdict": judgement.original_verdict and str(judgement.original_verdict),
        "workflow": judgement.workflow,
        "check": first.check,
        "entry": first.entry,
        "quote": first.quote,
        "failed": _named(last, (Verdict.FAIL,)),
        "undecided": _named(last, UNDECIDED),
        "votes": sum(len(check.votes) for check in judgement.checks),
        "edits": len(judgement.edits),
        "dropped": len(judgement.dropped),
        "recall": judgement.extraction and judgement.extraction.recall,
        **judgement.usage.as_json(),
        "fingerprint": judgement.fingerprint,
    }


@dataclass(frozen=True, slots=True)
class _Finding:
    """Why a check decided a record: the entry, quote and reason of its best evidence. If that has
    neither quote nor reason, `reason` is in judge's `own` words, which name the entry."""

    check: str | None
    entry: str | None
    quote: str | None
    reason: str | None
    own: bool

    @property
    def cells(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in ("check", "entry", "quote", "reason")}

    def __str__(self) -> str:
        parts = [None if self.own else self.entry, self.reason, self.quote and f"“{self.quote}”"]
        return " – ".join(part for part in parts if part)


def _findings(judgement: Judgement) -> list[_Finding]:
    """One for each check that decided the record; if none did, its error or reason."""
    findings, reason = [], _error(judgement) or judgement.reason
    for check in judgement.deciding:
        best, why = check.best_evidence, reason
        if len(judgement.deciding) > 1:  # The record's reason is about all of them.
            why = (reason_of([check]) or "").removeprefix(f"{check.name}: ")
        entry = best.value if best else None
        if best and (best.quote or best.reason):
            reason = _reason(check, best)
            findings.append(_Finding(check.name, entry, best.quote, reason, own=False))
        else:
            findings.append(_Finding(check.name, entry, None, why, own=True))
    return findings or [_Finding(None, None, None, reason, own=True)]


def _reason(check: Check, best: Answer) -> str | None:
    """The reason of a check's best evidence, after why the check is undecided, if it is."""
    why = in_short(check) if check.verdict is Verdict.ABSTAIN and check.votes else None
    return ": ".join(part for part in (why, best.reason) if part and part != check.verdict) or None


def _error(judgement: Judgement) -> str | None:
    error = judgement.error
    return None if error is None else f"{error.type}: {error.message}"


def _named(last: Mapping[str, Verdict], verdicts: Iterable[Verdict]) -> str | None:
    return ", ".join(name for name, verdict in last.items() if verdict in verdicts) or None


class _Rows:
    """Lines as rows of the record's own columns, those of each check (`Check.to_dict`) and
    `_COLUMNS`, which replace those of an earlier verdict. Rows are kept in a temporary file,
    because only the last settles the columns and their types: a column of several types is text,
    lists and objects are JSON.
    """

    def __init__(self, lines: Judged) -> None:
        self._own: dict[str, str | None] = {}
        self._ours: dict[str, str | None] = {}
        self._file = TemporaryFile()  # noqa: SIM115 - closed after the last row
        earlier: set[str] = set()
        for line, judgement in lines:
            earlier |= verdict_columns(line.fields)
            ours = judgement.columns()
            ours |= {f"judge.{n}": cell for n, cell in _details(line, judgement).items()}
            for kinds, cells in ((self._own, line.fields), (self._ours, ours)):
                for name, cell in cells.items():
                    kinds[name] = _both(kinds.get(name), _kind(cell))
            self._file.write(json.dumps([line.fields, ours]).encode() + b"\n")
        self._ours |= {f"judge.{name}": kind for name, kind in _COLUMNS.items()}
        for name in earlier & self._own.keys() & self._ours.keys():
            del self._own[name]

    @property
    def kinds(self) -> dict[str, str]:
        """The types of the columns, by names that UTF-8 can encode."""
        ours = {
            name: kind or ("double" if name.endswith((".score", ".probability")) else "string")
            for name, kind in self._ours.items()
        }
        own = {name: kind or "string" for name, kind in self._own.items()}
        kinds = {**own, **named_beside(own, ours)}
        names = names_in_utf8(kinds)
        return {names[name]: kind for name, kind in kinds.items()}

    def __iter__(self) -> Iterator[list[Any]]:
        """The cells of each row; works only once."""
        kinds = list(self.kinds.values())
        with self._file as file:
            file.seek(0)
            for text in file:
                own, ours = json.loads(text)
                cells = (*map(own.get, self._own), *map(ours.get, self._ours))
                yield list(map(_cell, cells, kinds))


def _kind(cell: object) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, int):  # JSON's numbers have no bounds.
        return "bool" if isinstance(cell, bool) else "int64" if abs(cell) < 2**63 else "string"
    return "double" if isinstance(cell, float) else "string"


def _both(kind: str | None, other: str | None) -> str | None:
    if other is None or kind in (None, other):
        return kind or other
    return "double" if {kind, other} == {"int64", "double"} else "string"


def _cell(cell: Any, kind: str) -> Any:
    if cell is None or kind in ("bool", "int64"):
        return cell
    if kind == "double":
        return float(cell)
    return in_utf8(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False))


def write_csv(lines: Judged, file: IO[bytes], *_: object) -> None:
    """A row for each line, in UTF-8; texts that a spreadsheet would run get an apostrophe."""
    rows = _Rows(lines)
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    table = csv.writer(text, lineterminator="\n")
    first, *others = rows.kinds
    # Spreadsheets drop a mark at the beginning of a file, and read a formula behind it.
    table.writerow(map(inert, (first.lstrip("\ufeff"), *others)))
    table.writerows(map(_csv_cell, cells) for cells in rows)
    text.detach()


_NEGATIVE = re.compile(r"-[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _csv_cell(cell: str | float | None) -> str | float | None:
    if isinstance(cell, bool):
        return str(cell).lower()
    # Of a CSV file, numbers are texts, too; with an apostrophe they would be none to readers.
    return cell if isinstance(cell, str) and _NEGATIVE.fullmatch(cell) else inert(cell)


_FORMULA = re.compile(r"(\A|[;\t\n] *)([=+\-@＝＋－＠])")
"""Where a spreadsheet may see a formula begin: also behind the separators of other locales, and
with the full-width signs of East Asian ones."""


def inert(cell: str | float | None) -> str | float | None:
    """The cell, with an apostrophe in front of text that a spreadsheet would read as a formula.

    A carriage return becomes a newline: the csv module does not quote it, and readers would end the
    row at it.
    """
    if not isinstance(cell, str):
        return cell
    text = in_utf8(cell).replace("\r\n", "\n").replace("\r", "\n")
    inert = _FORMULA.sub(r"\1'\2", text)
    return f"'{inert}" if inert[:1] in ("\t", "\n") else inert


def write_parquet(lines: Judged, file: IO[bytes], *_: object) -> None:
    """A row for each line; raises UsageError if pyarrow is missing."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError as error:
        raise missing_extra("-o FILE.parquet needs pyarrow", "parquet") from error
    rows = _Rows(lines)
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in rows.kinds.items()])
    with pq.ParquetWriter(file, schema) as writer:
        remainder = iter(rows)
        while batch := list(islice(remainder, _ROWS)):
            pairs = zip(zip(*batch, strict=True), schema, strict=True)
            columns = [pa.array(cells, field.type) for cells, field in pairs]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def write_xlsx(lines: Judged, file: IO[bytes], *_: object) -> None:
    """A row for each line; no cell is a formula, and texts over Excel's 32,767 characters are cut.
    Raises UsageError if openpyxl is missing, or the table does not fit a sheet."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError as error:
        raise missing_extra("-o FILE.xlsx needs openpyxl", "excel") from error

    def cell(content: str | float | None) -> object:
        if isinstance(content, int) and abs(content) >= 10**15:
            content = str(content)  # Excel keeps 15 digits of a number.
        if not isinstance(content, str):
            return content
        text = _xml(content)
        text = text if len(text) <= _EXCEL else f"{text[: _EXCEL - 1]}…"
        made = WriteOnlyCell(sheet, _LIKE_ESCAPE.sub("_x005F_", text))
        made.data_type = "s"
        return made

    rows = _Rows(lines)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("judge")
    for number, cells in enumerate(chain([list(rows.kinds)], rows)):
        if number == _SHEET or len(cells) > _SHEET_COLUMNS:
            raise UsageError(
                "the table does not fit a sheet of Excel: name a .parquet or .csv file"
            )
        sheet.append(list(map(cell, cells)))
    book.save(file)


def write_junit(lines: Judged, file: IO[bytes], runs: RunDescriptions, *_: object) -> None:
    """A test case for each record: fail is a failure, unreadable and error are errors, abstain is
    skipped, or a failure if the run was gated from below, where it counts as not passing."""
    gated = any(gate.is_floor for gate in runs.gates)
    outcomes = _OUTCOMES | ({Verdict.ABSTAIN: _OUTCOMES[Verdict.FAIL]} if gated else {})
    suite, counts = Element("testsuite", name="judge"), Counter[str]()
    for line, judgement in lines:
        name, workflow = _xml(line.name), _xml(judgement.workflow or "judge")
        case = SubElement(suite, "testcase", name=name, classname=workflow)
        counts["tests"] += 1
        if (outcome := outcomes.get(judgement.verdict)) is not None:
            tag, counter = outcome
            counts[counter] += 1
            findings = _findings(judgement)
            named = [f"{f.check}: {f}" if len(findings) > 1 else str(f) for f in findings]
            reasons = [error] if (error := _error(judgement)) else named
            word = "abstained" if judgement.verdict is Verdict.ABSTAIN else None
            checks = ", ".join(f.check for f in findings if f.check) or str(judgement.verdict)
            message = " – ".join(filter(None, [word, "; ".join(reasons)]))
            SubElement(case, tag, {"message": _xml(message), "type": _xml(checks)})
        if told := _by_people(judgement):
            SubElement(case, "system-out").text = _xml(told)
    sums = {name: str(counts[name]) for name in ("tests", "failures", "errors", "skipped")}
    suites = Element("testsuites", sums)
    suite.attrib.update(sums)
    suites.append(suite)
    ElementTree(suites).write(file, "utf-8", xml_declaration=True)


def _by_people(judgement: Judgement) -> str | None:
    """Which checks people decided, and what the judges said; None if people decided none."""
    said = {
        name: "no answer" if c is None else c.said()[1] for name, c in judgement.by_people.items()
    }
    return (
        "; ".join(f"{name}: a person decided, the judges said {w}" for name, w in said.items())
        or None
    )


_OUTCOMES = {
    Verdict.FAIL: ("failure", "failures"),
    Verdict.ABSTAIN: ("skipped", "skipped"),
    Verdict.UNREADABLE: ("error", "errors"),
    Verdict.ERROR: ("error", "errors"),
}


def _xml(text: str) -> str:
    """The text with characters that XML does not allow as their code points."""
    return _NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_markdown(
    lines: Judged, file: IO[bytes], runs: RunDescriptions, chosen: Sequence[str]
) -> None:
    """A summary for GitHub's step summary of these `runs`: the outcomes of the gates, the verdicts,
    mean score and answers of each check, and the first records with the `chosen` verdicts, by
    default those that failed."""
    listed: Sequence[str] = chosen or (Verdict.FAIL,)
    summary, rates = empty_summary(runs), RatesOfLines(runs)
    shown: list[list[dict[str, str | None]]] = []
    for line, judgement in lines:
        summary.add(line)
        rates.add(line)
        if judgement.verdict in listed and len(shown) < _SHOWN:
            about = {"id": line.name, "verdict": str(judgement.verdict)}
            shown.append([{**about, **f.cells} for f in _findings(judgement)])
    counts = {"**record**": summary.verdicts}
    counts |= {_markdown(name): verdicts for name, verdicts in summary.rows.items()}
    kinds = [kind for kind in Verdict if any(verdicts[kind] for verdicts in counts.values())]
    environment = Environment(autoescape=False, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"told": _markdown, "percent": percent}
    template = environment.from_string((Path(__file__).parent / "summary.md").read_text("utf-8"))
    count = sum(summary.verdicts[verdict] for verdict in {*listed})
    text = template.render(
        count=count,
        summary=summary,
        rates=rates.told,
        gates=[g.open if runs.unfinished else str(g.outcome(summary)) for g in runs.gates],
        unfinished=runs.unfinished,
        counts=counts,
        kinds=kinds,
        shown=shown,
        listed=listed,
    )
    file.write(f"{text.strip()}\n".encode(errors="backslashreplace"))


def _markdown(text: str | None, length: int = 300) -> str:
    """The text on one line, cut, with the special characters of Markdown and HTML escaped."""
    line = " ".join((text or "").split())
    line = line if len(line) <= length else f"{line[:length]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return printable(_MARKS.sub(r"\\\1", escaped))


FORMS: Mapping[str, Callable[[Judged, IO[bytes], RunDescriptions, Sequence[str]], None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".xlsx": write_xlsx,
    ".xml": write_junit,
    ".md": write_markdown,
}
"""The function that writes lines of these runs to a file, by the ending of its name; the last
argument has the verdicts that the user chose."""
