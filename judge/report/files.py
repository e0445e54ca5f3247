"""Judged lines read back, and files made of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Self

from pydantic import ValidationError

from judge.errors import UsageError, unwritable
from judge.records import MAX_LINE, RESERVED, Item, read
from judge.records.kinds import normalise
from judge.run.output import input_path, refuse_nameless, refuse_same, replacing
from judge.verdict import Judgement, Verdict

LONGEST = 4 * MAX_LINE
"""Bytes of a line that is read: it may hold a record twice, and evidence."""


@dataclass(slots=True)
class Lines:
    """The judged lines among some items, with a count of the others.

    `names` are the inputs as people know them; `judged` counts the lines that `judge validate`
    wrote, `foreign` all others; `first_foreign` says which of these came first, and what it is.
    """

    items: Iterable[Item]
    names: Sequence[str]
    judged: int = 0
    foreign: int = 0
    first_foreign: str = ""

    @classmethod
    def of(cls, sources: Sequence[str]) -> Self:
        """Those of files, or of standard input where a source is `-`; UsageError where a source
        cannot be opened."""
        if "-" in sources and sys.stdin is None:
            raise UsageError("standard input is closed: name a file, or pipe judged lines in")
        found = [read(source, format="jsonl", max_line=LONGEST) for source in sources]
        names = ["standard input" if source == "-" else Path(source).name for source in sources]
        return cls(chain.from_iterable(found), names)

    def __iter__(self) -> Iterator[tuple[Item, Judgement]]:
        """Each line with its judgement; UsageError where there are lines, and none is judged."""
        for item in self.items:
            found = _judged(item)
            if isinstance(found, Judgement):
                self.judged += 1
                yield item, found
            else:
                self.foreign += 1
                self.first_foreign = self.first_foreign or f"line {item.line}: {found}"
        if self.foreign and not self.judged:
            raise UsageError(
                f"{', '.join(self.names)}: none of the {self.foreign} lines was written by judge "
                f"validate ({self.first_foreign}): name what it wrote"
            )


def _judged(item: Item) -> Judgement | str:
    """The judgement in a line, or why `judge validate` did not write the line."""
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
    if judged.verdict is Verdict.SKIPPED:
        return f"{RESERVED}.verdict: no record is {judged.verdict}"
    return judged


@contextmanager
def writing(out: Path, sources: Sequence[str], *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file to write; it takes the place of an earlier one when it is whole.

    Raises UsageError where `out` is an input, a folder, there already and not to be replaced, or
    cannot be opened; JudgeError where it cannot be written further, such as on a full disk.
    """
    refuse_nameless("-o", out, "")
    for source in sources:
        refuse_same("-o", out, input_path(source), "the input")
    if out.exists() and out.stat().st_size and not overwrite:
        raise UsageError(f"{out} exists. Replace it (--overwrite), or name another file with -o")
    opened = False
    try:
        with replacing(out) as file:
            opened = True
            yield file
    except OSError as error:
        if opened:
            raise unwritable(f"{out} cannot be written", error) from error
        raise UsageError(
            f"{out}: cannot be written: {error.strerror or error}; "
            "name a file in a folder that is there and can be written"
        ) from error


def own_id(item: Item) -> str | None:
    """The id that the record has in its own fields, as text."""
    for key, content in (item.fields or {}).items():
        if normalise(key) == "id" and isinstance(content, str | int | float) and content != "":
            return str(content)
    return None
