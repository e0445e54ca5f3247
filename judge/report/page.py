"""The page a person reads: one HTML file out of the output lines of `judge validate`.

Every line counts; of each verdict the first `limit` records are shown, and only these are kept in
memory.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError

from judge.errors import UsageError
from judge.records import MAX_LINE, RESERVED, Item, read
from judge.report import entry, overview
from judge.report.entry import SHORT, Entry, Line
from judge.report.overview import MEANINGS, Overview, differ
from judge.report.text import Room, plain, short, visible
from judge.run.output import refuse_input, refuse_nameless
from judge.verdict import Judgement

LONGEST = 4 * MAX_LINE
"""Bytes of a line that is read: it may hold a record twice, and evidence."""

_FOLDER = Path(__file__).parent


class Foreign(Exception):
    """A line that judge validate did not write; says what is wrong with it."""


def publish(sources: Sequence[str], out: Path | None, *, overwrite: bool, limit: int) -> Overview:
    """Write the page about judged lines; an earlier one stays until the new one is whole.

    Args:
        sources: files, or `-` for standard input.
        out: where the page goes; None for standard output.
        limit: how many records of each verdict are shown.

    Raises:
        UsageError: an input cannot be opened, holds no judged line, or is `out`; the page is there
            already and `overwrite` is false; it cannot be written.
    """
    if out is not None:
        refuse_nameless("-o", out, "pages")
        for source in sources:
            refuse_input(out, source)
        if out.exists() and out.stat().st_size and not overwrite:
            raise UsageError(
                f"{out} exists. Replace it (--overwrite), or name another file with -o"
            )
    items = chain.from_iterable([_opened(source) for source in sources])
    names = ["standard input" if source == "-" else Path(source).name for source in sources]
    try:
        with _placed(out) as file:
            return write_page(items, file, sources=names, limit=limit, described=described(sources))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"{out or 'standard output'}: cannot be written: {error.strerror or error}; "
            "name a file in a folder that is there and can be written"
        ) from error


def write_page(
    items: Iterable[Item],
    file: IO[str],
    *,
    sources: Sequence[str],
    limit: int,
    described: Mapping[str, Any] | None = None,
) -> Overview:
    """Write the page and return what is counted on it.

    Args:
        items: output lines, as judge/records reads them; also those that judge did not write.
        file: open for writing text in UTF-8, lines ending as they are written.
        sources: the names of the inputs, to be shown.
        limit: how many lines of each verdict are shown, the first ones (at least 0).
        described: what is known of each run, by fingerprint.

    Raises:
        UsageError: there are lines, and none of them is a judged one; nothing was written.
        OSError: the file cannot be written to.
    """
    page = _Page(limit, described or {})
    for item in items:
        page.add(item)
    if page.foreign and not page.overview.lines:
        item, message = page.foreign[0]
        raise UsageError(
            f"{', '.join(sources)}: none of the {page.overview.foreign} lines was written by judge "
            f"validate (line {item.line}: {message}): name what it wrote"
        )
    file.writelines(page.render(sources))
    return page.overview


def described(sources: Iterable[str]) -> dict[str, Any]:
    """What the OUT.run.json files beside the sources say, by fingerprint."""
    found: dict[str, Any] = {}
    for source in sources:
        with suppress(OSError, ValueError):
            told = json.loads(Path(f"{source}.run.json").read_text("utf-8"))
            found |= told if isinstance(told, dict) else {}
    return found


class _Page:
    """Counts lines, keeps those that are shown, and renders them."""

    def __init__(self, limit: int, described: Mapping[str, Any]) -> None:
        self.overview = Overview(described)
        self.foreign: list[tuple[Item, str]] = []
        self._limit = limit
        self._groups: dict[str, list[Line]] = {verdict: [] for verdict in MEANINGS}
        self._checks: dict[str, int] = {}

    def add(self, item: Item) -> None:
        """Count one line of the input."""
        try:
            line = parsed(item)
        except Foreign as error:
            self.overview.foreign += 1
            if len(self.foreign) < max(1, self._limit):
                self.foreign.append((item, str(error)))
            return
        self.overview.add(line.judged)
        group = self._groups[line.judged.verdict]
        if len(group) < self._limit:
            self.overview.shown[line.judged.verdict] += 1
            group.append(line)

    def render(self, sources: Sequence[str]) -> Iterator[str]:
        """The page in pieces of text."""
        numbers = iter(range(1, 1 << 62))
        groups = {
            name: [self._entry(line, next(numbers)) for line in lines]
            for name, lines in self._groups.items()
        }
        style = _style(len(self._checks))
        yield from (
            _templates()
            .get_template("page.html")
            .generate(
                overview=self.overview,
                groups=groups,
                foreign=[
                    (item, message, None if item.raw is None else Room(SHORT).text(item.raw, SHORT))
                    for item, message in self.foreign[: self._limit]
                ],
                checks=list(self._checks),
                sources=sources,
                style=style,
                digest=_digest(style),
            )
        )

    def _entry(self, line: Line, number: int) -> Entry:
        """The line with what the filters know it by: its verdict, and checks it did not pass."""
        judged = line.judged
        last = {check.name: check.verdict for check in judged.checks}
        for name in last:
            if len(self._checks) < overview.MOST:
                self._checks.setdefault(name, len(self._checks))
        stuck = [name for name, outcome in last.items() if outcome not in ("pass", "skipped")]
        classes = [judged.verdict, *(f"k{self._checks[n]}" for n in stuck if n in self._checks)]
        classes += ["split"] if any(map(differ, judged.checks)) else []
        classes += ["edited"] if judged.edits else []
        return Entry(line, number, " ".join(classes))


def parsed(item: Item) -> Line:
    """The item as an output line.

    Raises:
        Foreign: it is none; says why.
    """
    if item.fields is None:
        raise Foreign(item.problem.message if item.problem else "holds no record")
    told = item.fields.get(RESERVED)
    if not isinstance(told, dict) or "verdict" not in told:
        raise Foreign("has no verdict under 'judge'")
    if "benchmark" in told:
        raise Foreign(
            "is a case of judge audit, or an answer of judge evaluate, which judge score makes "
            "tables of"
        )
    try:
        judged = Judgement.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, (RESERVED, *first["loc"])))
        raise Foreign(f"{place}: {first['msg']}") from error
    if judged.verdict not in MEANINGS:
        raise Foreign(f"{RESERVED}.verdict: no record is {judged.verdict}")
    fields = {key: content for key, content in item.fields.items() if key != RESERVED}
    return Line(item.source, item.line, fields, judged)


def _opened(source: str) -> Iterator[Item]:
    if source == "-" and sys.stdin is None:
        raise UsageError("standard input is closed: name a file, or pipe judged lines in")
    return read(source, format="jsonl", max_line=LONGEST)


@contextmanager
def _placed(out: Path | None) -> Iterator[IO[str]]:
    """A file that takes the place of `out` when all went well; or standard output."""
    if out is None:
        if sys.stdout is None or sys.stdout.isatty():
            raise UsageError("a page is no reading for a terminal: name a file with -o")
        file = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="", write_through=True)
        try:
            yield file
        finally:
            file.detach()
        return
    if out.exists() and not out.is_file():
        # A device or a pipe: nothing to be kept, and nothing to be replaced.
        with out.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    target = out.resolve()
    temporary = target.parent / f".{target.name}.{os.getpid()}"
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            yield file
        temporary.replace(target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    made.filters["short"] = short
    made.globals |= {
        "plain": plain,
        "percent": overview.percent,
        "between": overview.between,
        "probability": entry.probability,
        "tally": entry.tally,
        "drawn": entry.drawn,
        "credits": entry.credits,
        "OUTCOMES": overview.OUTCOMES,
        "MOST": overview.MOST,
    }
    return made


def _style(checks: int) -> Markup:
    """The page's style, with a rule for each check by which records can be chosen."""
    rules = [
        f'body:has(#check option[value="{number}"]:checked) .record:not(.k{number})'
        "{display:none}\n"
        for number in range(checks)
    ]
    # Nothing in it comes from a record.
    return Markup((_FOLDER / "page.css").read_text("utf-8") + "".join(rules))


def _digest(style: str) -> str:
    """How a Content-Security-Policy names a style that may be applied."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
