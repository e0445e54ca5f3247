"""Files made of judged lines."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from judge.arguments import Pathlike, sources_of, texts
from judge.errors import MAKE_ROOM, UsageError, refuse_outside, unwritable
from judge.judgement import Judgement
from judge.records.lines import Line, Lines
from judge.run.description import RunDescriptions
from judge.run.job import refuse_unknown_verdicts
from judge.run.output import input_path, refuse_nameless, refuse_same, replacing
from judge.verdict import Verdict

Outputs = Pathlike | Sequence[Pathlike] | Sequence[Judgement]
"""Judged lines: files of them, or judgements in memory."""


@contextmanager
def writing(
    out: Path, sources: Sequence[str], *, overwrite: bool, flag: str = "-o"
) -> Iterator[IO[bytes]]:
    """A file to write, which replaces an earlier one when it is complete. `flag` named it.

    Raises UsageError if `out` is an input or a folder, exists without `overwrite`, or cannot be
    opened; JudgeError if writing fails later, such as on a full disk.
    """
    refuse_nameless(flag, out, "")
    for source in sources:
        refuse_same(flag, out, input_path(source), "the input")
    if out.exists() and out.stat().st_size and not overwrite:
        raise UsageError(
            f"{out} exists. Replace it (--overwrite), or name another file with {flag}"
        )
    is_open = False
    try:
        with replacing(out) as file:
            is_open = True
            yield file
    except OSError as error:
        if is_open or error.errno in MAKE_ROOM:
            raise unwritable(f"{out} cannot be written", error) from error
        raise UsageError(
            f"{out}: cannot be written: {error.strerror or error}; "
            "name a file in a folder that is there and can be written"
        ) from error


class Written(NamedTuple):
    """What a file was made of: its lines, with the count of foreign ones; for a page how many
    records of each verdict it shows, of how many; how many of each were left out; and the number of
    records that the runs of a page `share`, 0 if it compares none."""

    lines: Lines
    shown: Mapping[Verdict, tuple[int, int]]
    left_out: Mapping[Verdict, int]
    share: int = 0


def report(
    outputs: Outputs,
    out: Pathlike,
    *,
    overwrite: bool = False,
    limit: int = 10_000,
    by: str | Sequence[str] | None = None,
    title: str = "",
    date: str = "",
) -> Written:
    """Write an HTML page of judged lines, as `judge report` does.

    Args:
        outputs: files that `judge validate` or `judge evaluate` wrote, or judgements in memory;
            files that have records in common are runs, shown side by side.
        limit: most records of each verdict that are shown, as far as the page has room; counts
            include all.
        by: a field, or several, to count by.
        title, date: the heading and the date; the page has no date of its own.

    Raises:
        UsageError: a file cannot be used, or holds no line of `judge validate`.
    """
    from judge.report.page import render

    refuse_outside("limit", limit, 0)
    sources = sources_of(outputs)
    runs = RunDescriptions.beside(*sources)
    with writing(Path(out), sources, overwrite=overwrite) as file:
        lines = Lines.read(sources)
        about = {"title": title, "date": date}
        page, shown, share = render(lines, limit=limit, described=runs, by=texts(by or ()), **about)
        file.write(page.encode())
    return Written(lines, shown, {}, share)


def make_table(lines: Path, table: Path) -> None:
    """Make the table of `judge validate -o TABLE` from the lines beside it; if its name ends in
    .gz, the packed lines. Errors as `export`."""
    if table.suffix.lower() != ".gz":
        export(lines, table, overwrite=True)
        return
    with (
        writing(table, [str(lines)], overwrite=True) as file,
        lines.open("rb") as text,
        # Without name and time, so that the same lines give the same bytes.
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
    ):
        shutil.copyfileobj(text, packed)


def export(
    outputs: Outputs,
    out: Pathlike,
    *,
    overwrite: bool = False,
    verdicts: str | Sequence[str] = (),
) -> Written:
    """Write judged lines as CSV, Parquet, Excel, JUnit XML or Markdown, by the ending of `out`.

    Args:
        outputs: as `report`.
        verdicts: leave out records with other verdicts. Markdown counts all records, and lists
            those with these verdicts; by default those that failed.

    Raises:
        UsageError: a file or verdict cannot be used, or a file holds no line of `judge validate`.
    """
    from judge.report.export import FORMS, write_markdown

    chosen, left_out = texts(verdicts), Counter[Verdict]()
    refuse_unknown_verdicts("--verdicts", chosen)
    sources, out = sources_of(outputs), Path(out)
    if (write := FORMS.get(out.suffix.lower())) is None:
        raise UsageError(f"-o {out}: name a file that ends in {', '.join(FORMS)}")
    with writing(out, sources, overwrite=overwrite) as file:
        lines = Lines.read(sources)
        kept = _chosen(lines, chosen, left_out, all_lines=write is write_markdown)
        runs = RunDescriptions.beside(*sources)
        write(kept, file, runs, chosen)
    return Written(lines, {}, left_out)


def _chosen(
    lines: Lines, verdicts: Sequence[str], left_out: Counter[Verdict], *, all_lines: bool
) -> Iterator[tuple[Line, Judgement]]:
    """The lines with these verdicts, or `all_lines`; the others are counted in `left_out`."""
    for line, judgement in lines:
        if verdicts and judgement.verdict not in verdicts:
            left_out[judgement.verdict] += 1
            if not all_lines:
                continue
        yield line, judgement
