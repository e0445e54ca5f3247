"""The files of a run: OUT, the one beside it, and the review; how they are begun and left.

What stood in them stays until there is a first line to take its place: a run that comes to nothing,
because its flags do not fit its records or its server refuses it, leaves them as they were.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from judge.errors import unwritable
from judge.run.job import Job
from judge.run.output import FileSink, NoSink, Sink, StreamSink
from judge.run.resume import Resumption, side_file


class OutFiles:
    """Where a job's lines go: `open`, `begin` when there is a first line, `settle`, `close`."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.aside: Path | None = None if job.out is None else side_file(job.out)
        self.resumption: Resumption | None = None
        if job.resume and job.out is not None:
            self.resumption = Resumption(job.out)
        self.sink: Sink = NoSink()
        self.review: FileSink | None = None
        self._reviewed = False
        self.begun = False
        """Whether OUT was changed: until then it is as it was."""

    def open(self) -> None:
        """Open all, and change none.

        Raises:
            UsageError: one cannot be written, or another run writes to it.
        """
        if self._job.out is not None:
            self.sink = FileSink(self._job.out, self.aside)
        elif not self._job.silent:
            self.sink = StreamSink()
        if self._job.review is not None:
            self.review = FileSink(self._job.review)

    @property
    def opened(self) -> list[Sink]:
        """All that are open."""
        return [self.sink, *([self.review] if self.review is not None else [])]

    def begin(self) -> None:
        """Make room for the first new line, once.

        Raises:
            JudgeError: what an earlier run set aside cannot be taken away, or OUT not be shortened.
        """
        if self.begun:
            return
        if self.resumption is not None:
            self.resumption.shorten()
        elif self.aside is not None and isinstance(self.sink, FileSink):
            try:
                self.aside.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(f"{self.aside} cannot be replaced", error) from error
            self.sink.empty()
        self.begin_review()
        self.begun = True

    def begin_review(self) -> None:
        """Make room for the first line of the review, once."""
        if self.review is not None and not self._reviewed:
            self._reviewed = True
            self.review.empty()

    def settle(self) -> int:
        """Leave beside OUT what no record of the input asked for; says how many lines that is."""
        if self.resumption is not None:
            return self.resumption.settle()
        if self.aside is not None:
            with suppress(OSError):
                self.aside.unlink(missing_ok=True)
        return 0

    def close(self) -> None:
        """Close all; those that this run made and wrote nothing to are gone then."""
        for opened in self.opened:
            if not self.begun:
                opened.withdraw()
            opened.close()
        if self.resumption is not None:
            if not self.begun:
                self.resumption.withdraw()
            self.resumption.kept.close()
