"""Workers that die, cannot begin, find no place: fakes here, Ray in tests/cli/test_ray.py."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import pytest

from judge.errors import Denied, JudgeError
from judge.records import Item
from judge.run import crew as module
from judge.run.crew import ATTEMPTS, LOST_IN_A_ROW, Crew, CrewError, RecordLost, WorkerDied
from judge.run.worker import Done


def item(number: int) -> Item:
    return Item("made", number, {"number": number})


class Fake:
    """Gives each item's number back; `kills` says which items it dies of."""

    def __init__(self, log: list[list[int]], kills: Callable[[int], bool], **how: object) -> None:
        self.log, self.kills, self.how = log, kills, how
        self.held: list[tuple[int, Item]] = []
        self.some, self.dead = asyncio.Event(), asyncio.Event()
        self.killed = False

    async def where(self) -> int:
        if self.how.get("nowhere"):
            await asyncio.Event().wait()
        return 1

    async def begin(self) -> JudgeError | None:
        if self.how.get("dies_at_once"):
            raise WorkerDied("at once")
        trouble = self.how.get("trouble")
        return trouble if isinstance(trouble, JudgeError) else None

    async def give(self, items: Sequence[tuple[int, Item]]) -> None:
        await asyncio.sleep(0)
        # One that is dead already dies of no second record.
        if self.dead.is_set():
            raise WorkerDied("it is gone")
        self.log.append([one.line for _, one in items])
        self.held.extend(items)
        if any(self.kills(one.line) for _, one in items):
            self.dead.set()
        self.some.set()

    async def take(self) -> Done:
        await self.some.wait()
        await asyncio.sleep(0.001)
        if self.dead.is_set():
            raise WorkerDied("it is gone")
        # Some at a time, the last first, so that several lie here when a worker dies.
        taken = [self.held.pop() for _ in range(min(2, len(self.held)))]
        if not self.held:
            self.some.clear()
        return Done([(n, str(one.line).encode()) for n, one in taken], {}, 0.0)

    async def end(self) -> None:
        return None

    def kill(self) -> None:
        self.killed = True


class Staff:
    """Hires fakes and remembers them."""

    def __init__(self, kills: Callable[[int], bool] = lambda line: False, **how: object) -> None:
        self.kills, self.how = kills, how
        self.log: list[list[int]] = []
        self.hired: list[Fake] = []

    def __call__(self) -> Fake:
        self.hired.append(Fake(self.log, self.kills, **self.how))
        return self.hired[-1]

    def crew(self, count: int = 2, window: int = 6) -> Crew:
        return Crew(self, count, window, lambda done: None, lambda: "there are 0 CPUs")


async def judge_all(crew: Crew, count: int) -> list[bytes | BaseException]:
    await crew.start()
    try:
        asked = (crew.judged(item(number)) for number in range(count))
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 100)
    finally:
        await crew.close()


async def test_each_item_gets_its_own_line_and_everybody_is_sent_home() -> None:
    staff = Staff()
    assert await judge_all(staff.crew(), 40) == [str(n).encode() for n in range(40)]
    assert len(staff.hired) == 2 and all(fake.killed for fake in staff.hired)
    assert max(map(len, staff.log)) > 1, "several travel together"
    assert max(map(len, staff.log)) <= 6, "none gets more than it has room for"


async def test_what_lay_with_a_dead_worker_is_judged_by_others() -> None:
    deaths = itertools.count()
    staff = Staff(lambda line: line in (7, 23) and next(deaths) < 2)
    assert await judge_all(staff.crew(), 40) == [str(n).encode() for n in range(40)]
    assert len(staff.hired) == 4, "the dead ones were replaced"


async def test_a_record_that_no_worker_survives_is_given_up_and_no_other() -> None:
    staff = Staff(lambda line: line == 7)
    found = await judge_all(staff.crew(), 40)
    assert isinstance(found[7], RecordLost)
    assert str(found[7]) == f"the worker died each of the {ATTEMPTS} times it judged this record"
    others = [one for number, one in enumerate(found) if number != 7]
    assert others == [str(n).encode() for n in range(40) if n != 7]
    assert sum(7 in batch for batch in staff.log) == ATTEMPTS
    assert [batch for batch in staff.log if 7 in batch][-1] == [7], "at last it was alone"


@pytest.mark.parametrize("count", [1, 3])
async def test_many_such_records_in_a_row(count: int) -> None:
    staff = Staff(lambda line: line < 5)
    found = await judge_all(staff.crew(count), 20)
    assert [isinstance(one, RecordLost) for one in found] == [True] * 5 + [False] * 15


async def test_workers_that_survive_no_record_end_the_run() -> None:
    staff = Staff(lambda line: True)
    found = await judge_all(staff.crew(), LOST_IN_A_ROW + 50)
    assert sum(isinstance(one, RecordLost) for one in found) == LOST_IN_A_ROW + 1
    ends = [one for one in found if isinstance(one, CrewError)]
    assert len(ends) == 49 and "workers died of 101 records, one after another" in str(ends[0])


async def test_a_worker_that_cannot_begin_ends_the_run_with_its_error() -> None:
    with pytest.raises(Denied, match="the key"):
        await judge_all(Staff(trouble=Denied("the key")).crew(), 3)


async def test_workers_that_die_before_any_work_end_the_run() -> None:
    staff = Staff(dies_at_once=True)
    with pytest.raises(CrewError, match=r"10 workers died, one after another.*the last: at once"):
        await judge_all(staff.crew(), 3)
    assert all(fake.killed for fake in staff.hired)


async def test_workers_without_a_place_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACEMENT_SECONDS", 0.5)
    with pytest.raises(CrewError, match=r"no worker has found a place.*there are 0 CPUs"):
        await judge_all(Staff(nowhere=True).crew(), 3)


async def test_an_error_that_a_worker_sends_is_raised_for_its_item() -> None:
    class Refusing(Fake):
        async def take(self) -> Done:
            done = await super().take()
            return Done([(n, Denied("no")) for n, _ in done.lines], {}, 0.0)

    staff = Staff()
    crew = Crew(lambda: Refusing(staff.log, staff.kills), 1, 4, lambda done: None, str)
    assert all(isinstance(one, Denied) for one in await judge_all(crew, 5))


async def test_a_fault_of_ours_is_not_waited_for() -> None:
    class Broken(Fake):
        async def take(self) -> Done:
            raise ValueError("broken")

    crew = Crew(lambda: Broken([], lambda line: False), 1, 4, lambda done: None, str)
    assert all(isinstance(one, ExceptionGroup) for one in await judge_all(crew, 2))
