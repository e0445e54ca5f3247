"""A job: the inputs of a run, which part of them to judge, and the output files."""

from __future__ import annotations

import heapq
import io
import json
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain, islice
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from judge.errors import UsageError, missing_extra, refuse_outside
from judge.questions.rubric import Rubric
from judge.records import Record, from_memory, read
from judge.records.base import NO_CONTENT, no_such_field, stratum
from judge.records.lines import FINISHED, REDONE
from judge.run.description import description_file, refuse_foreign_description
from judge.run.output import (
    decisions_file,
    input_path,
    refuse_ending,
    refuse_nameless,
    refuse_replacing,
    refuse_same,
)

_log = logging.getLogger(__name__)

_TABLES = {".csv": None, ".parquet": "pyarrow", ".xlsx": "openpyxl"}
"""Endings of tables that a run can make from its lines, with the library that each needs."""


def files_of(out: Path | None) -> dict[str, Any]:
    """OUT's file of lines (`out`), and the file made from it at the end (`table`).

    There is a `table` if OUT has the ending of a table or of gzipped lines: `judged.csv` is made
    from `judged.csv.jsonl`, `judged.jsonl.gz` from `judged.jsonl`.
    """
    if out is not None and out.suffix.lower() in _TABLES:
        return {"out": out.with_name(f"{out.name}.jsonl"), "table": out}
    if out is not None and out.name.lower().endswith((".jsonl.gz", ".ndjson.gz")):
        return {"out": out.with_suffix(""), "table": out}
    return {"out": out, "table": None}


def outputs_of(*paths: str | PathLike[str] | None) -> list[Path]:
    """The files that a run with these outputs may write."""
    from judge.run.resume import unmatched_file

    files: list[Path] = []
    for path in (Path(path) for path in paths if path):
        lines, table = files_of(path).values()
        files += [lines, unmatched_file(lines), *([table] if table else [])]
    return files


@dataclass(frozen=True, slots=True)
class Job:
    """What to read, which part of it, and where to write.

    Args:
        inputs: files, or `-` for standard input.
        records: records in memory, read after the inputs.
        rubrics: asked besides those of the settings.
        out: the file of output lines; None writes to standard output, or nowhere if `silent`.
        table: a file made from `out` at the end, in the format of its ending.
        resume, overwrite: continue `out`, or replace it; without either it must be new.
        rejudge: with `resume`, judge records with one of these verdicts again.
        limit: judge only the first `limit` records.
        sample: judge `sample` records, drawn at random (by `sample_seed`), in input order, spread
            evenly over the values of the fields `by`.
        review: a file for records that need a person.
        review_verdicts: the verdicts whose records go to `review`; empty for the default ones.
        decisions: a file with people's answers (`judge.run.decisions`).
        discarded: a file for the lines that the task keeps out of `out`.
        summary: a file for the summary, as JSON.
    """

    inputs: Sequence[str] = ()
    out: Path | None = None
    table: Path | None = None
    resume: bool = False
    overwrite: bool = False
    rejudge: Sequence[str] = ()
    format: str | None = None
    limit: int | None = None
    sample: int | None = None
    sample_seed: int = 0
    by: Sequence[str] = ()
    review: Path | None = None
    review_verdicts: Sequence[str] = ()
    decisions: Path | None = None
    discarded: Path | None = None
    summary: Path | None = None
    silent: bool = False
    records: Iterable[object] = ()
    rubrics: Sequence[Rubric] = ()

    @property
    def outputs(self) -> list[tuple[str, Path]]:
        """The output files, each with its flag."""
        pairs = (
            *(("-o", self.table), ("-o", self.out), ("-o", self.discarded)),
            *(("--review", self.review), ("--summary", self.summary)),
        )
        return [(flag, path) for flag, path in pairs if path is not None]

    def items(self) -> Iterator[Record]:
        """The records of all inputs and in memory, cut to the sample or the limit."""
        files = self.among(
            chain.from_iterable(_opened(source, self.format) for source in self.inputs)
        )
        items: Iterator[Record] = chain(files, from_memory(self.records))
        if self.sample is not None:
            items = sampled(items, self.sample, self.sample_seed, self.by)
        return islice(items, self.limit)

    @property
    def part(self) -> str:
        """The flags that leave records out; "" for the whole input."""
        flags = (("--sample", self.sample), ("--limit", self.limit))
        return " ".join(f"{flag} {count}" for flag, count in flags if count is not None)

    def may_be_cut(self, read: int) -> bool:
        """Whether the sample or the limit may have hidden records, after this many were read."""
        return any(most is not None and read >= most for most in (self.sample, self.limit))

    def among(self, items: Iterator[Record]) -> Iterator[Record]:
        """The items, marked as `among` others if the job has several inputs."""
        if len(self.inputs) > 1:
            return (replace(item, among=True) for item in items)
        return items

    def check(self, reads: Iterable[Path] = ()) -> None:
        """Check that inputs can be read and outputs written, before any call is paid for.

        Args:
            reads: the files that the run reads besides its inputs (`Settings.files`).

        Raises:
            UsageError: names the file, and what to do.
        """
        for source in self.inputs:
            # A named pipe can be read only once, so its format is not checked here.
            path = input_path(source)
            if source != "-" and (path.is_file() or path.is_dir() or not path.exists()):
                read(source, format=self.format)
        self.check_outputs(reads)

    def check_outputs(self, reads: Iterable[Path] = ()) -> None:
        """Check that OUT, the review and the summary may be written.

        Raises:
            UsageError: names the file, and what to do.
        """
        self._refuse_unfit()
        from judge.run.resume import refuse_foreign, unmatched_file

        files = [(input_path(source), "the input") for source in self.inputs]
        files += [(path, "a file that the run reads") for path in reads]
        if self.decisions is not None and not self.resume:  # With --resume no line of OUT is lost.
            files.append((self.decisions, "the file of --decisions"))
        if self.out is not None:
            files.append((description_file(self.out), "where OUT is described"))
            files.append((unmatched_file(self.out), "where lines without a record go"))
            files.append((decisions_file(self.out), "where judge review keeps people's answers"))
        for flag, path in self.outputs:
            refuse_nameless(flag, path, "" if flag != "-o" or self.silent else "lines")
            for file, role in files:
                refuse_same(flag, path, file, role)
            files.append((path, "OUT" if flag == "-o" else f"the file of {flag}"))
            if flag == "--summary":
                self._check_summary(path)
            else:
                self._check_lines(flag, path)
        if self.out is not None:
            refuse_foreign_description(self.out)
            if self.resume:
                refuse_foreign(unmatched_file(self.out), "-o")

    def _refuse_unfit(self) -> None:
        """Raises UsageError for arguments that exclude or lack one another, or name no verdict."""
        refuse_outside("limit", self.limit, 0)
        refuse_outside("sample", self.sample, 1)
        if self.resume and self.overwrite:
            raise UsageError("--resume and --overwrite exclude each other")
        if self.resume and self.out is None:
            raise UsageError("--resume needs -o: the file to continue")
        if self.rejudge and not self.resume:
            raise UsageError("--rejudge needs --resume: it judges records of OUT again")
        if self.review_verdicts and self.review is None:
            raise UsageError("--review-verdicts needs --review: the file that records go to")
        refuse_unknown_verdicts("--rejudge", self.rejudge)
        refuse_unknown_verdicts("--review-verdicts", self.review_verdicts)

    def _check_summary(self, path: Path) -> None:
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"--summary {path}: cannot be written; name another file")
        if not self.overwrite:
            _refuse_foreign_summary(path)

    def _check_lines(self, flag: str, path: Path) -> None:
        """Check that lines, or a table of them, may be written to `path`."""
        if path == self.table:
            _refuse_without_library(path)
        else:
            refuse_ending(flag, path)
        if not (self.resume or self.overwrite):
            refuse_replacing(path, flag)
        elif path == self.table and not self.overwrite:
            _refuse_without_lines(path, self.out)
        elif flag == "--review" and path.is_file():
            from judge.run.resume import refuse_edited_review, refuse_foreign

            if self.resume:
                refuse_foreign(path, flag)
            if self.out is not None:
                refuse_edited_review(path, self.out, *filter(None, [self.discarded]))


def refuse_unknown_verdicts(flag: str, names: Sequence[str]) -> None:
    """Raise UsageError for a name that is not the verdict of any line."""
    if strange := [verdict for verdict in names if verdict not in FINISHED | REDONE]:
        verdicts = ", ".join(sorted(FINISHED | REDONE))
        raise UsageError(f"{flag} {strange[0]}: no such verdict; there are {verdicts}")


def _opened(source: str, format: str | None) -> Iterator[Record]:
    if source != "-":
        # The path as typed: files in several folders may have the same name.
        return (replace(item, source=source) for item in read(source, format=format))
    if sys.stdin is None:
        raise UsageError("standard input is closed: name a file, or pipe records in")
    # Bypass Python's own buffer: a thread waiting for input holds its lock, and the interpreter
    # aborts if that is held at exit.
    return read("-", stdin=io.FileIO(sys.stdin.fileno(), closefd=False), format=format)


def sampled(
    items: Iterable[Record], count: int, seed: int, by: Sequence[str] = ()
) -> Iterator[Record]:
    """Draw `count` items, in input order, spread evenly over the values of the first of the fields
    `by`, and in each over those of the next.

    Within a stratum every set of items is equally likely. Items without the fields are a stratum of
    their own; unreadable ones are drawn only if there are too few others. Only `count` items are
    held: each draws a number, and for each further item the one with the largest number in the
    largest stratum is dropped.

    Raises:
        UsageError: no item has any of the fields.
    """
    unread: list[str] = []

    def group_of(item: Record) -> Stratum:
        if item.problem is None:
            return "", *stratum(item.fields, by)
        unread.append(f"{item.source}:{item.line}: {item.fault}" if not unread else "")
        return _UNREAD

    groups = drawn_evenly(having(items, by), count, seed, group_of)
    if left := len(unread) - len(groups.get(_UNREAD, (0, ()))[1]):
        lines = "1 line" if left == 1 else f"{left} lines"
        _log.warning("judge: the sample leaves out %s that cannot be read (%s)", lines, unread[0])
    members = chain.from_iterable(part for _, part in groups.values())
    yield from (item for _, item in sorted(members, key=itemgetter(0)))


def having(items: Iterable[Record], by: Sequence[str]) -> Iterator[Record]:
    """Pass the items on; at their end raises UsageError for a field of `by` that none of them has,
    drawn or not."""
    absent, first = {*by}, dict[str, Any]()
    for item in items:
        first = first or dict(item.fields)
        absent = {name for name in absent if stratum(item.fields, [name]) == (NO_CONTENT,)}
        yield item
    if absent and first:
        name = min(absent)
        raise UsageError(no_such_field(f"--by {name}", name, first))


Stratum: TypeAlias = tuple[Hashable, ...]
"""Nested strata: the parts that several begin with name the stratum that they are in."""

_UNREAD: Stratum = ("unreadable",)
"""The group of items that are drawn last."""


def drawn_evenly(
    items: Iterable[Record], count: int, seed: int, group_of: Callable[[Record], Stratum]
) -> dict[Stratum, tuple[int, list[tuple[int, Record]]]]:
    """Draw `count` items, spread evenly over the groups, in each over the groups within it, ...

    Returns, for each innermost group with a drawn item, its size before the draw and its drawn
    items, each with its place among all items.
    """
    chance = random.Random(seed)
    sizes: Counter[Stratum] = Counter()
    groups: dict[Stratum, list[tuple[float, int, Record]]] = {}
    held: dict[Stratum, int] = {}
    lots: dict[Stratum, float] = {}
    within: dict[Stratum, set[Stratum]] = {}
    for place, item in enumerate(items):
        group = group_of(item)
        sizes[group] += 1
        heapq.heappush(groups.setdefault(group, []), (-chance.random(), place, item))
        for part in (group[: n + 1] for n in range(len(group))):
            held[part] = held.get(part, 0) + 1
            if held[part] == 1:
                within.setdefault(part[:-1], set()).add(part)
                # Of groups of equal size the same one must always lose an item, so that each
                # group holds its smallest numbers.
                lots[part] = random.Random(f"{seed} {part}").random()
        if place >= count:
            largest: Stratum = ()
            while largest not in groups:
                parts = within[largest]
                largest = max(parts, key=lambda of: (of == _UNREAD, held[of], lots[of]))
                held[largest] -= 1
            heapq.heappop(groups[largest])
            if not groups[largest]:
                del groups[largest]
            while largest and not held[largest]:
                within[largest[:-1]].remove(largest)
                del held[largest], lots[largest]
                within.pop(largest, None)
                largest = largest[:-1]
    return {
        group: (sizes[group], [(place, item) for _, place, item in part])
        for group, part in groups.items()
    }


def _refuse_without_library(table: Path) -> None:
    """Raises UsageError if the library that writes the table is missing."""
    if (library := _TABLES.get(table.suffix.lower())) and find_spec(library) is None:
        extra = "excel" if library == "openpyxl" else "parquet"
        raise missing_extra(f"-o {table} needs {library}", extra)


def _refuse_without_lines(table: Path, lines: Path | None) -> None:
    """Raises UsageError if there is a table, but none of the lines that it would be made from."""
    if table.exists() and table.stat().st_size and not (lines and lines.exists()):
        raise UsageError(
            f"--resume: {table} exists without its lines, {lines}: replace it (--overwrite), "
            "or name another file with -o"
        )


def _refuse_foreign_summary(path: Path) -> None:
    """Raises UsageError if the file has content that is not a run's summary."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        ours = "exit_code" in json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise UsageError(
            f"--summary {path} exists and is not a summary: name another file, or add --overwrite"
        )
