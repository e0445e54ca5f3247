"""The Python API: runs as on the command line, with records and judgements in memory.

A run has a thread and an event loop of its own, so that it can be read from any code, also inside
of a running loop. It is the run of `judge validate`; only where its lines go differs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pydantic import Field

from judge import verdict
from judge.configuration import resolve
from judge.errors import UsageError
from judge.records import RESERVED, Record, from_memory
from judge.records.lines import Line
from judge.rubric import Rubric
from judge.run.job import Job, refuse_unusable, select
from judge.run.models import refuse_stray
from judge.run.panels import Resources
from judge.run.run import run
from judge.run.summary import Report
from judge.run.task import Watcher
from judge.run.validate import Validation
from judge.settings import IN_PROCESS, Settings

if TYPE_CHECKING:
    from judge.calibration.report import Calibration
    from judge.profiles import Profile

Pathlike = str | PathLike[str]
Records = Iterable[Mapping[str, Any] | str] | Pathlike | Sequence[Path]
"""Records, or the files that they are read from: a path, or several as path objects. A string among
records is a text. Of a data frame the rows are taken."""
AnyRubric = Rubric | Mapping[str, Any] | Pathlike


class Judgement(verdict.Judgement):
    """What the judges said of one record: an output line's `"judge"`, and the record itself.

    `record` holds the record's own fields, repaired ones with their new text.
    """

    record: Mapping[str, Any] = Field(default_factory=dict, exclude=True)

    def to_dict(self) -> dict[str, Any]:
        """One flat row: the record's fields, and the judgement's in columns as `judge.verdict`.

        A check's verdict stands under `judge.checks.NAME`; of several by one name, the last one's.
        """
        row = {
            **self.record,
            f"{RESERVED}.verdict": str(self.verdict),
            f"{RESERVED}.reason": self.reason,
            f"{RESERVED}.error": self.error.message if self.error else None,
        }
        return row | {f"{RESERVED}.checks.{one.name}": str(one.verdict) for one in self.checks}


def validate(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    **settings: Any,
) -> Iterator[Judgement]:
    """Judge records and give each judgement as soon as it and all before it are there.

    At most twice as many records are begun ahead of what was taken as are worked on at once. Close
    the iterator, or let go of it, to stop the run: what is under way is dropped, replies that were
    paid for stay in the cache.

    Args:
        records: dicts, texts (records with the field `text`), a data frame, a path, or several
            path objects. They are read in a thread of the run.
        rubric: the user's own: a `Rubric`, its YAML, a dict, a file, a folder, a built-in name.
        settings: as in docs/reference.md, with _ for -: `ask`, `on`, `model`, `workflow`, ...

    Raises:
        UsageError: at the call, for a setting, rubric or path that cannot be used; at the first
            judgement for a model.
        JudgeError: behind the last judgement: what ended the run early, such as a spent budget.
    """
    return _taken(_Plan.of(records, rubric, settings))


def avalidate(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    **settings: Any,
) -> AsyncIterator[Judgement]:
    """`validate` as an asynchronous iterator: the loop goes on while the judges are asked."""
    return _awaited(_Plan.of(records, rubric, settings))


def calibrate(
    labels: Pathlike | Sequence[Pathlike],
    *,
    rubric: Pathlike | Sequence[Pathlike] = (),
    by: Sequence[str] = (),
    agree: float | None = None,
    sample: int | None = None,
    group: str | None = None,
    contrast: str | None = None,
    also: Sequence[str] = (),
    controls: bool = True,
    out: Pathlike | None = None,
    **settings: Any,
) -> Calibration:
    """Hold judges against labels, as `judge calibrate` does: how far they agree, and a profile.

    Args:
        labels: files with labels, or NAME:PATH of a public set.
        rubric: files, folders or built-in names.
        by: fields to tell results apart by.
        agree: the agreement to guarantee, from 0.5 to below 1.
        sample: so many records of each check.
        group: a field whose values are never on both sides, of fitting and of reporting.
        contrast: labels of a set whose deciding field is turned round.
        also: further sets to report on, to which nothing is fitted.
        controls: whether judges are asked without the deciding field, and with another's.
        out: a new folder for report.json, profile.json and the plots.
        settings: `check`, `model`, `method`, `votes`, `seed`, ...

    Raises:
        UsageError: labels, a setting or a model that cannot be used.
        BackendError: a model is out of reach, or the budget is used up.
    """
    from judge.calibration import calibration
    from judge.calibration.labels import Job

    if out is not None and Path(out).exists():
        raise UsageError(f"{out} exists: name a new folder")
    rubrics = [rubric] if isinstance(rubric, str | PathLike) else rubric
    chosen = _settings({**settings, "rubric": [_source(one) for one in rubrics]})
    job = Job(
        sources=_paths(labels),
        records=sample,
        by=tuple(by),
        group=group,
        contrast=contrast,
        also=tuple(also),
        controls=controls,
        agreement=agree,
    )
    # In a thread, which may have an event loop where the caller has one already.
    found = ThreadPoolExecutor(1).submit(calibration.calibrate, job, chosen).result()
    if out is not None:
        from judge.report.plots import write

        write(found, Path(out))
    return found


def load_profile(path: Pathlike) -> Profile:
    """The profile in a profile.json; `validate(profile=path)` judges by it.

    Raises:
        UsageError: it cannot be read, or is no profile.
    """
    from judge import profiles

    return profiles.load(Path(path))


# ---------------------------------------------------------------- what is to be run


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run to be made: records or files, settings, and rubrics."""

    job: Job
    records: Iterable[object]
    settings: Settings
    rubrics: Sequence[Rubric]

    @classmethod
    def of(cls, records: Any, rubric: Any, given: Mapping[str, Any]) -> _Plan:
        several = isinstance(rubric, list | tuple)
        sources = [_rubric(one) for one in (rubric if several else [rubric])]
        named = [one for one in sources if isinstance(one, str)]
        settings = _settings({**given, "rubric": named})
        if (name := settings.engine) not in IN_PROCESS:
            raise UsageError(f"engine: {name} is for `judge validate --engine {name}` and its OUT")
        refuse_stray(settings)
        rubrics = [one for one in sources if isinstance(one, Rubric)]
        if hasattr(records, "to_dict"):
            records = records.to_dict("records")
        if isinstance(records, Mapping):
            raise UsageError("records: this is one record; put it into a list")
        listed = records[0] if isinstance(records, list | tuple) and records else None
        if isinstance(listed, str) and "\n" not in listed and Path(listed).is_file():
            raise UsageError(
                f"records: {listed!r} is a file, and strings in a list are texts: name several "
                "files as path objects"
            )
        if not (_is_path(records) or isinstance(listed, PathLike)):
            return cls(Job((), silent=True), records, settings, rubrics)
        job = Job(_paths(records), silent=True)
        refuse_unusable(job)
        return cls(job, (), settings, rubrics)

    def items(self) -> Iterator[Record]:
        return chain(select(self.job), from_memory(self.records))


def _is_path(given: object) -> bool:
    return isinstance(given, str | PathLike)


def _paths(given: Any) -> list[str]:
    return [str(one) for one in ([given] if _is_path(given) else given)]


def _rubric(given: Any) -> Rubric | str:
    """A rubric; of a file, folder or built-in name the name, which the run reads."""
    if isinstance(given, Rubric):
        return given
    if isinstance(given, Mapping):
        return Rubric.from_dict(given)
    if isinstance(given, str) and "\n" in given:
        return Rubric.from_text(given)
    if _is_path(given):
        return _source(given)
    raise UsageError(f"rubric: {type(given).__name__} is no Rubric, text, dict or path")


def _source(given: Pathlike) -> str:
    """A rubric's source as the command line has it: a path object is a path, whatever its form."""
    return given if isinstance(given, str) else str(Path(given).absolute())


def _settings(given: Mapping[str, Any]) -> Settings:
    """Settings as the command line has them: from variables and files where not given here."""
    for name in given:
        if name not in Settings.model_fields:
            near = get_close_matches(name, Settings.model_fields, 1)
            known = f"did you mean {near[0]}?" if near else "docs/reference.md lists them"
            raise UsageError(f"{name}: there is no such setting; {known}")
    plain = {name: str(one) if isinstance(one, PathLike) else one for name, one in given.items()}
    return resolve(plain, called=str)


# ---------------------------------------------------------------- the run in its thread


class _InMemory(Validation):
    """Validation whose lines are handed out, and whose records are read as those are taken."""

    def __init__(
        self, resources: Resources, items: Iterator[Record], hand_out: Callable[[Line], None]
    ) -> None:
        super().__init__(resources, items)
        self._hand_out = hand_out
        self.room = threading.Semaphore(2 * resources.models.slots)
        self.closed = False

    def items(self) -> Iterator[Record]:
        for item in super().items():
            self.room.acquire()
            if self.closed:
                return
            yield item

    def count(self, line: Line, report: Report) -> None:
        self._hand_out(line)


class _Run:
    """A run in a thread of its own, whose judgements are taken in the order of the records."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._handed: SimpleQueue[Line | BaseException | None] = SimpleQueue()
        self._task: _InMemory | None = None
        self._interrupt: Callable[[bool], None] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._go, name="judge-run", daemon=True)
        self._thread.start()

    def take(self) -> Judgement | None:
        """The next judgement, None at the end; raises what ended the run early."""
        handed = self._handed.get()
        if isinstance(handed, BaseException):
            raise handed
        if handed is None or self._task is None:
            return None
        self._task.room.release()
        return Judgement.model_validate({**handed.content, "record": handed.fields})

    def stop(self) -> None:
        """End the run, which drops what is under way; `take` then comes back."""
        self._closed = True
        if self._interrupt is not None:
            # Its loop may have ended meanwhile.
            with suppress(RuntimeError):
                self._interrupt(True)
        self._end_reading()

    def close(self) -> None:
        """`stop`, and wait until the run has freed everything."""
        self.stop()
        self._thread.join()
        self._end_reading()

    def _end_reading(self) -> None:
        """Let the thread that reads end, which may wait for room."""
        if self._task is not None:
            self._task.closed = True
            self._task.room.release()

    def _go(self) -> None:
        ended: BaseException | None = None
        try:
            resources = Resources.of(self._plan.settings, rubrics=self._plan.rubrics)
            self._task = _InMemory(resources, self._plan.items(), self._handed.put)
            ended = run(self._plan.job, self._task, Watcher(), self._interrupts).fatal
        except BaseException as error:  # noqa: BLE001 - raised where the judgements are taken
            ended = error
        self._handed.put(ended)

    @contextmanager
    def _interrupts(self, interrupt: Callable[[bool], None]) -> Iterator[None]:
        self._interrupt = interrupt
        if self._closed:
            interrupt(True)
        yield


def _taken(plan: _Plan) -> Iterator[Judgement]:
    running = _Run(plan)
    try:
        yield from iter(running.take, None)
    finally:
        running.close()


async def _awaited(plan: _Plan) -> AsyncIterator[Judgement]:
    running = _Run(plan)
    try:
        while (judgement := await asyncio.to_thread(running.take)) is not None:
            yield judgement
    finally:
        # First, because a `take` may hold the last free thread.
        running.stop()
        await asyncio.to_thread(running.close)
