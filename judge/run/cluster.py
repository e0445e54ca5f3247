"""`--engine ray`: records are read and written here, and judged by workers on a Ray cluster.

The run is the local one (judge/run/task.py): its input, order, output, resume and interrupts.
Only the judging of a record goes elsewhere (docs/decisions/0022-workers-pull.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Self

from judge.errors import UsageError
from judge.records import Item, Record, SeenIds
from judge.run import lines
from judge.run.crew import Crew, RecordLost
from judge.run.lines import Line
from judge.run.rays import Ray
from judge.run.setup import Setup
from judge.run.validate import Validation
from judge.run.worker import Done
from judge.settings import Settings


@dataclass(slots=True)
class ClusterSetup(Setup):
    """A run's setup where its workers have their own: its clients count, and are never asked."""

    ray: Ray | None = field(default=None)
    crew: Crew | None = field(default=None)

    @property
    def window(self) -> int:
        """Records that lie with one worker: those it works on, and some for when they are done."""
        # Named, because a dataclass with slots is another class than the one `super` would look at.
        own: int = Setup.slots.fget(self)  # type: ignore[attr-defined]
        return own + max(2, own // 2)

    @property
    def slots(self) -> int:
        return self.window * (self.ray.workers if self.ray is not None else 1)

    async def aclose(self) -> None:
        await Setup.aclose(self)
        try:
            if self.crew is not None:
                await self.crew.close()
        finally:
            if self.ray is not None:
                self.ray.close()


class ClusterValidation(Validation):
    """Validation whose records are judged by Ray workers."""

    setup: ClusterSetup

    def __init__(
        self,
        setup: ClusterSetup,
        ids: SeenIds,
        items: Iterator[Item],
        seen: Callable[[Line], None],
        settings: Settings,
    ) -> None:
        super().__init__(setup, ids, items, seen)
        self._given = settings

    @classmethod
    def of(
        cls, settings: Settings, ids: SeenIds, items: Iterator[Item], seen: Callable[[Line], None]
    ) -> Self:
        # Each worker has a cache; one here would never be looked into.
        own = ClusterSetup.of(settings.model_copy(update={"cache": False}))
        return cls(own, ids, items, seen, settings)

    async def prepare(self) -> None:
        """Start the workers, which reach every model; returns when the first is ready.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no Ray, no room in it, or what a worker cannot be set up with.
        """
        setup = self.setup
        setup.ray = Ray(for_workers(self._given), setup.models)
        setup.crew = Crew(
            setup.ray.hire, setup.ray.workers, setup.window, self._took, setup.ray.room
        )
        await setup.crew.start()

    async def step(self, record: Record) -> Line:
        if self.setup.crew is None:
            raise RuntimeError("records are judged after prepare")
        bound = self.setup.bound(record.kind)
        try:
            text = await self.setup.crew.judged(record.item)
        except RecordLost as lost:
            return lines.failed(record, "worker-died", str(lost), bound)
        line = lines.reread(text, kept=False)
        if line.judgement.get("fingerprint") != bound.fingerprint:
            raise UsageError(
                "a worker judges by other files, models or software than this machine has "
                f"(fingerprint {line.judgement.get('fingerprint')}, here {bound.fingerprint}): "
                "install the same judge on every node, and give all of them the same rubrics, "
                "weights and variables (OPENAI_BASE_URL and others)"
            )
        return line

    def _took(self, done: Done) -> None:
        """Add what a worker has done since the last time to this run's sums."""
        self.setup.budget.cost += done.cost
        for spec, counted in done.counters.items():
            counters = self.setup.client(spec).counters
            for name, number in asdict(counted).items():
                setattr(counters, name, getattr(counters, name) + number)


def for_workers(settings: Settings) -> Settings:
    """The settings as workers get them: with a cache folder that means the same wherever they are.

    A folder that the user named is the same path on every machine; one that nobody named is that of
    whoever runs the worker.
    """
    folder = settings.cache_dir
    return settings.model_copy(
        update={"cache_dir": None if folder is None else folder.absolute(), "engine": "local"}
    )
