"""The page a person reads: one HTML file out of the output lines of `judge validate`.

Lines are read once. What is shown of them is set at once and waits in a temporary file for each
verdict, so that the counts can stand above it: memory does not grow with the number of lines.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.errors import UsageError
from judge.records import Item
from judge.report import overview
from judge.report.entry import SHORT, entry
from judge.report.judged import Foreign, Line, parsed
from judge.report.overview import RESULTS, Overview
from judge.report.text import Room, plain, short, visible

if TYPE_CHECKING:
    from judge.report.judged import Judged

_FOLDER = Path(__file__).parent
_FOREIGN = "foreign"
_CHUNK = 1 << 16


def write_page(items: Iterable[Item], file: IO[str], *, sources: list[str], limit: int) -> Overview:
    """Write the page and return what is counted on it.

    Args:
        items: output lines, as judge/records reads them; also those that are none of ours.
        file: open for writing text in UTF-8, lines ending as they are written.
        sources: the names of the inputs, to be shown.
        limit: how many lines of each verdict are shown, the first ones (at least 0).

    Raises:
        UsageError: there are lines, and none of them is a judged one; nothing was written.
        OSError: the file, or a temporary one, cannot be written to.
    """
    with ExitStack() as stack:
        setter = _Setter(limit, stack)
        for item in items:
            found = parsed(item)
            if isinstance(found, Line):
                setter.line(found)
            else:
                setter.foreign(found)
        if (first := setter.first) is not None and not setter.overview.lines:
            raise UsageError(
                f"{', '.join(sources)}: none of the {setter.overview.foreign} line(s) was written "
                f"by judge validate (line {first.number}: {first.message}): name what it wrote"
            )
        style = _style(len(setter.checks))
        for part in (
            _templates()
            .get_template("page.html")
            .generate(
                overview=setter.overview,
                groups={name: setter.spooled(name) for name in RESULTS},
                foreign=setter.spooled(_FOREIGN),
                checks=list(setter.checks),
                sources=sources,
                style=style,
                digest=_digest(style),
            )
        ):
            file.write(part)
        return setter.overview


class _Setter:
    """Counts lines, and sets those that are shown."""

    def __init__(self, limit: int, stack: ExitStack) -> None:
        self.overview = Overview()
        self.checks: dict[str, int] = {}
        self.first: Foreign | None = None
        self._limit = limit
        self._stack = stack
        self._spools: dict[str, IO[str]] = {}
        self._number = 0

    def line(self, line: Line) -> None:
        self.overview.add(line)
        name = line.judged.verdict
        if self.overview.shown[name] >= self._limit:
            return
        self.overview.shown[name] += 1
        self._number += 1
        made = entry(line, self._number, self._classes(line.judged))
        self._set("record.html", name, entry=made)

    def foreign(self, line: Foreign) -> None:
        self.overview.foreign += 1
        self.first = self.first or line
        if self.overview.foreign_shown >= self._limit:
            return
        self.overview.foreign_shown += 1
        raw = None if line.raw is None else Room(SHORT).text(line.raw, SHORT)
        self._set("foreign.html", _FOREIGN, line=line, raw=raw)

    def spooled(self, name: str) -> Iterator[Markup]:
        """What was set under a name, piece by piece."""
        file = self._spools.get(name)
        if file is not None:
            file.seek(0)
            while piece := file.read(_CHUNK):
                # The templates have escaped it.
                yield Markup(piece)

    def _set(self, template: str, name: str, **found: object) -> None:
        if name not in self._spools:
            file = tempfile.TemporaryFile("w+", encoding="utf-8", newline="")  # noqa: SIM115
            self._spools[name] = self._stack.enter_context(file)
        self._spools[name].writelines(_templates().get_template(template).generate(**found))

    def _classes(self, judged: Judged) -> str:
        """What the filters know a record by: its verdict, and the checks it did not pass."""
        last = {check.check: check.verdict for check in judged.checks}
        for name in last:
            if len(self.checks) < overview.MOST:
                self.checks.setdefault(name, len(self.checks))
        stuck = [name for name, outcome in last.items() if outcome not in ("pass", "skipped")]
        found = [judged.verdict, *(f"k{self.checks[n]}" for n in stuck if n in self.checks)]
        if any(check.split for check in judged.checks):
            found.append("split")
        if judged.edits:
            found.append("edited")
        return " ".join(found)


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
    made.globals |= {"plain": plain, "percent": overview.percent, "between": overview.between}
    made.globals |= {"OUTCOMES": overview.OUTCOMES, "MOST": overview.MOST}
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
