"""One thread for each device: takes the calls of all its models, batch by batch, model by model."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from judge.inference.batching import Line, Room
from judge.inference.jobs import Answer, Job
from judge.inference.model import LoadedModel
from judge.inference.turns import Turns

GATHERING_SECONDS = 0.01
"""An idle device waits so long for more calls: a record's questions come one after another."""

_LOOK_SECONDS = 0.05
"""Between two looks at whose turn it is, where nobody's has come yet."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model on the device, and what a batch of it may hold."""

    model: LoadedModel
    room: Room


class TooLarge(Exception):
    """A single call does not fit into the device's memory."""


class LoadFailed(Exception):
    """A model could not be brought onto the device."""


@dataclass(slots=True)
class _Seat:
    """A model that is used on the device, loaded or not."""

    load: Callable[[], Loaded]
    line: Line = field(default_factory=Line)
    announced: int = 0
    since: float = 0.0
    last: float = 0.0


class Engine:
    """The calls of all models on one device.

    At most one model is loaded at a time (`Turns`). Out of memory, first what is held between
    batches goes, then the batch is halved, down to one call.
    """

    def __init__(self, turns: Turns | None = None) -> None:
        self._turns = turns or Turns()
        self._seats: dict[str, _Seat] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loaded: tuple[str, Loaded] | None = None
        self._serving: str | None = None
        self.loads: list[str] = []
        """The models in the order in which they were loaded."""

    # ------------------------------------------------------------ from any thread

    def seat(self, name: str, load: Callable[[], Loaded]) -> None:
        """Take in a model under a name of its own; `load` is called on the engine's thread."""
        with self._changed:
            self._seats[name] = _Seat(load)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="judge-torch", daemon=True)
                self._thread.start()

    def announce(self, name: str) -> None:
        """A job will be submitted or retracted: batches wait for it a little."""
        with self._changed:
            self._seats[name].announced += 1

    def retract(self, name: str) -> None:
        """What was announced will not come."""
        with self._changed:
            if name in self._seats:
                self._seats[name].announced -= 1
                self._changed.notify_all()

    def submit(self, name: str, job: Job) -> None:
        """Put in line a job that was announced; its `done` is called on the engine's thread."""
        with self._changed:
            seat = self._seats[name]
            seat.announced -= 1
            seat.last = time.monotonic()
            if not len(seat.line):
                seat.since = seat.last
            seat.line.add(job)
            self._changed.notify_all()

    def leave(self, name: str) -> None:
        """Drop a model with what it has in line, and wait until its memory is free."""
        with self._changed:
            if self._seats.pop(name, None) is None:
                return
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._has(name))
            thread = self._thread if not self._seats else None
            if thread is not None:
                self._thread = None
                self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _has(self, name: str) -> bool:
        """Whether a model is on the device, or may be by the end of the batch that runs."""
        return self._serving == name or (self._loaded is not None and self._loaded[0] == name)

    # ------------------------------------------------------------ on the engine's thread

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._changed:
                self._serving = None
                self._changed.notify_all()
                while (found := self._next()) is None:
                    if self._thread is not me:
                        return
                    self._changed.wait(_LOOK_SECONDS if self._seats else None)
                self._serving = found[0]
            # In a frame of its own: a name for the model here would keep it while the next loads.
            self._batch(*found)

    def _batch(self, name: str, seat: _Seat) -> None:
        """Serve one batch of a model."""
        loaded = self._on_device(name, seat)
        if loaded is None:
            return
        with self._changed:
            self._gathered(seat, loaded.room)
            jobs = seat.line.take(loaded.room, loaded.model.covered)
            seat.since = time.monotonic()
        if jobs:
            self._serve(loaded, jobs)
        self._turns.worked(time.monotonic())

    def _next(self) -> tuple[str, _Seat] | None:
        """The model to serve, if any; a model that has left is unloaded first."""
        if self._loaded is not None and self._loaded[0] not in self._seats:
            self._unload()
            self._changed.notify_all()
        waiting = {name: seat.since for name, seat in self._seats.items() if len(seat.line)}
        name = self._turns.next(waiting, time.monotonic())
        return None if name is None else (name, self._seats[name])

    def _gathered(self, seat: _Seat, room: Room) -> None:
        """Wait for what was announced, and a moment for what follows, unless a batch is full."""
        until = time.monotonic() + 50 * GATHERING_SECONDS
        while (now := time.monotonic()) < until and seat.line.tokens() < room.tokens:
            quiet = now - seat.last >= GATHERING_SECONDS
            if quiet and seat.announced == 0:
                return
            self._changed.wait(GATHERING_SECONDS)

    def _on_device(self, name: str, seat: _Seat) -> Loaded | None:
        """The model, loaded in the place of another; None where it cannot be, its jobs told so."""
        if self._loaded is not None and self._loaded[0] == name:
            return self._loaded[1]
        self._unload()
        try:
            loaded = seat.load()
        except Exception as error:  # noqa: BLE001 - told to all that wait; the thread goes on
            failure = LoadFailed(str(error))
            with self._changed:
                jobs = seat.line.drain()
                self._turns.gone(name)
            for job in jobs:
                job.done(failure)
            return None
        with self._changed:
            self._loaded = (name, loaded)
            self.loads.append(name)
        return loaded

    def _unload(self) -> None:
        if self._loaded is None:
            return
        self._turns.gone(self._loaded[0])
        self._loaded = None
        _free()

    def _serve(self, loaded: Loaded, jobs: Sequence[Job], *, poor: bool = False) -> None:
        """Answer a batch, each job with its answer or its error; `poor`: memory has run out."""
        outcomes: Sequence[Answer | Exception] | None = None
        try:
            outcomes = loaded.model.answers(jobs)
        except Exception as error:  # noqa: BLE001 - told to all that wait; the thread goes on
            if not _is_out_of_memory(error):
                outcomes = [error] * len(jobs)
        if outcomes is None:
            self._with_less(loaded, jobs, poor)
            return
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.done(outcome)

    def _with_less(self, loaded: Loaded, jobs: Sequence[Job], poor: bool) -> None:
        """Go on after memory ran out; every step has less to do than the one before."""
        had = loaded.model.held.give_up()
        _free()
        if had and not poor:
            self._serve(loaded, jobs, poor=True)
        elif len(jobs) == 1:
            jobs[0].done(TooLarge(_ran_out(jobs[0])))
        else:
            middle = len(jobs) // 2
            self._serve(loaded, jobs[:middle], poor=True)
            self._serve(loaded, jobs[middle:], poor=True)


_engines: dict[str, Engine] = {}
_guard = threading.Lock()


def engine_of(device: str) -> Engine:
    """The one engine of a device in this process."""
    with _guard:
        return _engines.setdefault(device, Engine())


def _ran_out(job: Job) -> str:
    return f"memory ran out over a prompt of {len(job.tokens):,} tokens"


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def _free() -> None:
    """Give back what nothing refers to any more."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
