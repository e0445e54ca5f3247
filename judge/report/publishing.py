"""From files of judged lines to a file with the page: what is refused, and how it is put there."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from judge.errors import UsageError
from judge.records import MAX_LINE, Item, read
from judge.report.page import write_page
from judge.run.output import refuse_input, refuse_nameless

if TYPE_CHECKING:
    from judge.report.overview import Overview

LONGEST = 4 * MAX_LINE
"""Bytes of a line that is read: it may hold a record twice, and evidence."""


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
    where = "standard output" if out is None else str(out)
    try:
        with _placed(out) as file:
            return write_page(items, file, sources=names, limit=limit)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        if out is not None and error.filename is not None and _beside(out, error.filename):
            raise UsageError(
                f"{out}: cannot be written: {reason}; "
                "name a file in a folder that is there and can be written"
            ) from error
        raise UsageError(
            f"{where}: the page cannot be written: {reason} (it is put together in "
            f"{tempfile.gettempdir()}; TMPDIR names another folder)"
        ) from error


def _beside(out: Path, name: str | bytes) -> bool:
    return Path(os.fsdecode(name)).parent == out.resolve().parent


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
    aside = target.parent / f".{target.name}.{os.getpid()}"
    try:
        with aside.open("x", encoding="utf-8", newline="") as file:
            yield file
        aside.replace(target)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()
