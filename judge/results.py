"""The results of `judge.validate`: judgements as they are made, and a list of them as a table."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from html import escape
from importlib import import_module
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from judge.arguments import Pathlike, sources_of, texts
from judge.errors import JudgeError, UsageError
from judge.judgement import Judgement
from judge.records.base import no_such_field
from judge.records.lines import Lines
from judge.redact import in_utf8, names_in_utf8
from judge.report import files
from judge.run.summary import Summary
from judge.verdict import Verdict

if TYPE_CHECKING:
    import pandas

_SHOWN = 50
"""How many rows a table in a notebook has, at most."""

_CUT = 200
"""How many characters a cell of it has, at most."""

_SECONDS = 0.5
"""Seconds between two updates of the progress in a notebook."""


class Judgements(list[Judgement]):
    """Judgements in memory, from `validate`, `avalidate` or `judge.load_results`, which sets
    `source`, the names of the files."""

    source = ""

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with a row per record, and the columns of `Judgement.to_dict`. Its index is that
        of the records, if all came from a DataFrame or a Series of pandas.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise UsageError("to_pandas needs pandas: pip install pandas") from error
        if not self:  # A frame of no rows has the columns that every judgement has.
            return pandas.DataFrame(columns=[*Judgement(verdict=Verdict.ABSTAIN).columns()])
        cells = [judgement.to_dict() for judgement in self]
        # pandas' text columns cannot hold lone surrogates.
        names = names_in_utf8(dict.fromkeys(chain.from_iterable(cells)))
        frame = pandas.DataFrame(
            {names[n]: in_utf8(c) if isinstance(c, str) else c for n, c in row.items()}
            for row in cells
        )
        rows = [judgement.row for judgement in self if judgement.row]
        if len(rows) == len(self):
            runs = groupby(rows, lambda row: id(row.index))
            first, *others = [
                part[0].index.take([row.place for row in part])
                for part in (list(run) for _, run in runs)
            ]
            frame.index = first.append(others)
        return frame

    def summary(self, by: str | Sequence[str] = ()) -> Summary:
        """The sums that `judge validate` prints, also by the values of the fields `by`.

        Raises:
            UsageError: no record has one of these fields.
        """
        from judge.report.overview import empty_summary
        from judge.run.description import RunDescriptions

        sources = sources_of(self)
        summary = empty_summary(RunDescriptions.beside(*sources), texts(by))
        for line, _ in Lines.read(sources):
            summary.add(line)
        if self and (absent := summary.slices.absent) is not None:
            raise UsageError(no_such_field(f"--by {absent}", absent, self[0].record))
        return summary

    def report(self, out: Pathlike, **options: Any) -> files.Written:
        """Write the HTML page of `judge report`; options and errors as `judge.api.report`."""
        return files.report(self, out, **options)

    def export(self, out: Pathlike, **options: Any) -> files.Written:
        """Write a table, as `judge export` does; options and errors as `judge.api.export`."""
        return files.export(self, out, **options)

    @overload
    def __getitem__(self, place: SupportsIndex) -> Judgement: ...
    @overload
    def __getitem__(self, place: slice) -> Judgements: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Judgement | Judgements:
        part = super().__getitem__(place)
        return Judgements(part) if isinstance(part, list) else part

    def __str__(self) -> str:
        """The counts, and the first records with verdict and reason."""
        named = zip(self[:_SHOWN], Lines.read(sources_of(self[:_SHOWN])), strict=True)
        lines = [f"  {line.name}: {j.reason or j.verdict}" for j, (line, _) in named]
        return "\n".join((str(self.summary()) if self else "0 records", *lines))

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the first records, with texts shortened and escaped."""
        rows = [judgement.to_dict() for judgement in self[:_SHOWN]]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        columns = [name for name in columns if any(row.get(name) is not None for row in rows)]
        cells = ["".join(_cell("td", row.get(name)) for name in columns) for row in rows]
        head = "".join(_cell("th", name) for name in columns)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = f", the first {_SHOWN}:" if len(self) > _SHOWN else ""
        first, *others = str(self.summary()).splitlines() if self else ["0 records"]
        text = "<br>".join(map(escape, (*others, f"{first}{more}")))
        return f"<p>{text}</p><table><tr>{head}</tr>{body}</table>"


def _cell(tag: str, content: object) -> str:
    text = "" if content is None else str(content)
    text = text if len(text) <= _CUT else f"{text[:_CUT]}…"
    return f"<{tag}>{escape(in_utf8(text))}</{tag}>"


class Results(Iterator[Judgement]):
    """The judgements of a run, each once it and all before it are done.

    Judgements that you take one by one are not kept, so a run may be of any length; `all` keeps the
    remaining ones in a list.
    """

    def __init__(self, judgements: Generator[Judgement, None, None], of: int | None) -> None:
        self._judgements, self._of = judgements, of
        self._show = _display()
        self._verdicts: Counter[str] = Counter()
        self._shown = 0.0
        self._kept = Judgements()
        self._stopped = False

    def __next__(self) -> Judgement:
        try:
            judgement = next(self._judgements)
        except BaseException as end:
            self._stopped = self._stopped or not isinstance(end, StopIteration)
            self._progress(last=True)
            raise
        self._verdicts[judgement.verdict] += 1
        self._progress()
        return judgement

    def _progress(self, *, last: bool = False) -> None:
        if self._show is None or not (last or time.monotonic() - self._shown >= _SECONDS):
            return
        self._shown, of = time.monotonic(), "" if self._of is None else f"/{self._of}"
        verdicts = " ".join(f"{name} {n}" for name, n in sorted(self._verdicts.items()))
        self._show(f"judging: {self._verdicts.total()}{of} {verdicts}".rstrip())

    def close(self) -> None:
        """End the run; paid replies stay in the cache."""
        self._stopped = True
        self._judgements.close()

    def all(self) -> Judgements:
        """Run to the end; returns a list of all judgements that were not taken one by one. Called
        again, also after an interrupt or an error, it returns the same list.

        Raises:
            JudgeError: the run ended early; `all` returns what was judged before.
            UsageError: none is left: all were taken one by one, or the run ended before the first.
        """
        try:
            for judgement in self:
                self._kept.append(judgement)
        except (JudgeError, KeyboardInterrupt) as end:
            if self._kept:
                end.add_note(
                    f"{len(self._kept)} judged before: .all() of the same run returns them"
                )
            raise
        if not self._kept and (taken := self._verdicts.total()):
            raise UsageError(
                f"all {taken} judgements of this run were taken one by one, and it keeps none: "
                "validate again, and take .all() first, a list to iterate over"
            )
        if not self._kept and self._stopped:
            raise UsageError("this run ended before its first judgement: validate again")
        return self._kept

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of `all`, as `Judgements.to_pandas`."""
        return self.all().to_pandas()

    def __repr__(self) -> str:
        return "<judge.Results: iterate over it, or take .all() or .to_pandas()>"


def _display() -> Any:
    """A function that shows a line in a notebook's output, replacing its last; None outside
    notebooks."""
    if "ipykernel" not in sys.modules:
        return None
    # Some of IPython's functions are untyped, and it need not be installed.
    notebook: Any = import_module("IPython")
    screen: Any = import_module("IPython.display")
    if notebook.get_ipython() is None:
        return None
    handles: list[Any] = []

    def show(text: str) -> None:
        if handles:
            handles[0].update(screen.Pretty(text))
        else:
            handles.append(screen.display(screen.Pretty(text), display_id=True))

    return show
