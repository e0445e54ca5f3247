"""A worker in this process: the lines of a local run, sums told once, a budget that holds."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from judge.errors import Denied, Exit, JudgeError, UsageError
from judge.judging.calls import Counters
from judge.judging.limits import BudgetReached
from judge.records import Item
from judge.run.worker import MOST_LEASED, Done, LeasedBudget, Purse, Worker, less
from judge.settings import resolve
from judge.verdict import Usage


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    script = {"reading": "probability", "replies": [{"p_yes": 0.9}]}
    (tmp_path / "yes.yaml").write_text(json.dumps(script))
    return tmp_path


def norm(number: int) -> Item:
    story = f"Ann comes in as number {number} and greets Bo."
    return Item("made", number, {"id": f"n{number}", "rule_of_thumb": "Greet.", "story": story})


async def all_of(worker: Worker, count: int) -> list[Done]:
    taken: list[Done] = []
    while sum(len(done.lines) for done in taken) < count:
        taken.append(await worker.take())
    return taken


async def test_it_judges_what_it_is_given_and_tells_its_sums_once(folder: Path) -> None:
    settings = resolve({"model": ["scripted:yes.yaml"], "check": ["relevance"], "cache": False})
    worker = Worker(settings, str(folder), None)
    assert await worker.begin() is None
    await worker.give([(n, norm(n)) for n in range(50)])
    taken = await all_of(worker, 50)
    await worker.give([(50, norm(50))])
    taken += await all_of(worker, 1)
    await worker.end()
    found = {number: line for done in taken for number, line in done.lines}
    assert sorted(found) == list(range(51))
    for number, line in found.items():
        assert isinstance(line, bytes) and json.loads(line)["id"] == f"n{number}"
    assert sum(done.counters["scripted:yes.yaml"].calls for done in taken) == 51


async def test_what_keeps_it_from_beginning_comes_back_as_an_error(folder: Path) -> None:
    worker = Worker(resolve({"model": ["scripted:none.yaml"]}), str(folder), None)
    trouble = await worker.begin()
    assert isinstance(trouble, UsageError) and "none.yaml" in str(trouble)


async def test_an_error_keeps_its_kind_on_its_way() -> None:
    sent = pickle.loads(pickle.dumps(Denied("the key is refused", retry_after=3.0)))
    assert isinstance(sent, Denied) and sent.exit_code == Exit.UNAVAILABLE
    assert (sent.kind, sent.retry_after, str(sent)) == ("denied", 3.0, "the key is refused")


async def test_an_error_that_cannot_travel_goes_as_its_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Local(JudgeError):
        exit_code = Exit.UNAVAILABLE

    def raise_it(*_: object, **__: object) -> None:
        raise Local("no card")

    monkeypatch.setattr("judge.run.worker.Setup.of", raise_it)
    trouble = await Worker(resolve({}), str(folder), None).begin()
    assert type(trouble) is JudgeError and str(trouble) == "no card"
    assert trouble.exit_code == Exit.UNAVAILABLE


@pytest.mark.parametrize(("most", "workers"), [(0, 2), (1, 2), (10, 3), (1000, 2), (1000, 16)])
def test_calls_never_exceed_the_budget_of_all(most: int, workers: int) -> None:
    purse = Purse(most, None, workers)
    budgets = [LeasedBudget(purse.lease) for _ in range(workers)]
    alive = list(budgets)
    while alive:
        for budget in list(alive):
            try:
                budget.take()
            except BudgetReached as reached:
                assert str(reached) == f"--max-calls {most} is reached"
                alive.remove(budget)
    assert sum(budget.calls for budget in budgets) == most, "all of it is used when all ask"


def test_calls_are_leased_in_blocks() -> None:
    asked = []
    purse = Purse(10_000, None, 2)

    def lease(cost: float) -> object:
        asked.append(cost)
        return purse.lease(cost)

    budget = LeasedBudget(lease)  # type: ignore[arg-type]
    for _ in range(MOST_LEASED * 3):
        budget.take()
    assert len(asked) == 3


def test_cost_is_summed_over_workers() -> None:
    purse = Purse(None, 1.0, 2)
    one, other = LeasedBudget(purse.lease), LeasedBudget(purse.lease)
    for budget in (one, other):
        budget.take()
        budget.spent(Usage(1, 0, 0, 0.6))
    one.take()
    with pytest.raises(BudgetReached, match=r"--max-cost 1.0 USD is reached"):
        other.take()


def test_what_was_counted_since() -> None:
    assert less(Counters(calls=5, retries=1), Counters(calls=3)) == Counters(calls=2, retries=1)
    assert less(Counters(calls=5), None) == Counters(calls=5)
