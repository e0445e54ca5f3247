"""Waves against a batch server on 127.0.0.1: what is sent, what comes back, what stays on disk."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from batchserver import KEY, BatchServer

from judge import errors
from judge.backends.base import Call, Completion, Mode
from judge.backends.batches.backend import BatchBackend
from judge.backends.batches.carrying import Pace

Make = Callable[..., Any]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    with BatchServer(tmp_path / "server") as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("JUDGE_BATCH_QUIET", "0.1")
        monkeypatch.setenv("JUDGE_BATCH_POLL", "0.05")
        yield running


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[BatchBackend]:
    """A backend as one process has it; leaving it is what a kill leaves, but for the lock."""
    backend = BatchBackend("m", folder=folder / "batches")
    try:
        yield backend
    finally:
        await backend.aclose()


def call(number: int, vote: int = 0) -> Call:
    content = f"Guest number {number} slipped off both shoes."
    return Call([{"role": "user", "content": content}], vote=vote)


async def asked(
    backend: BatchBackend, calls: list[Call], *, kept: bool = False
) -> list[Completion | errors.BackendError]:
    async def one(call: Call) -> Completion | errors.BackendError:
        try:
            completion = await backend.complete(call, Mode.JSON_SCHEMA)
        except errors.BackendError as error:
            return error
        backend.settle(call, kept=kept)
        return completion

    async with asyncio.timeout(60):
        # Once it is open, all calls are there before the loop turns: they are together for sure.
        await backend.waves.open()
        return list(await asyncio.gather(*map(one, calls)))


def left(folder: Path) -> list[str]:
    """The kinds of files in the journal."""
    names = [path.name for path in (folder / "batches").rglob("*") if path.is_file()]
    return sorted(name.partition(".")[2] for name in names if name != "lock")


def sizes(server: BatchServer) -> list[int]:
    return [batch["request_counts"]["total"] for batch in server.batches]


def good(outcomes: list[Any]) -> list[bool]:
    return [isinstance(outcome, Completion) for outcome in outcomes]


async def test_what_is_asked_together_is_one_batch(server: BatchServer, tmp_path: Path) -> None:
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(1), call(2), call(1, vote=1), call(1)])
    assert sizes(server) == [4]
    assert all(good(outcomes))
    # The very same call twice is two requests: which calls may share a reply, the client knows.
    assert sorted(server.paid().values()) == [1, 1, 2]


async def test_a_full_batch_does_not_wait(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_REQUESTS", "3")
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "0.5")
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(n) for n in range(7)])
        monkeypatch.setenv("JUDGE_BATCH_MEGABYTES", "0.001")
    assert all(good(outcomes)) and sorted(sizes(server)) == [1, 3, 3]
    async with opened(tmp_path / "other") as backend:
        outcomes = await asked(backend, [call(n) for n in range(4)])
    assert all(good(outcomes)) and len(sizes(server)) == 5, "by bytes: two requests in each"


async def test_failed_requests_are_errors_of_their_own(server: BatchServer, tmp_path: Path) -> None:
    server.plan(fail={"number 1 ": [429], "number 2 ": [500], "number 3 ": [400]})
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(n) for n in range(4)])
        kinds = [getattr(outcome, "kind", None) for outcome in outcomes]
        assert kinds == [None, "rate-limited", "server-fault", "bad-request"]
        assert all(good(await asked(backend, [call(1), call(2)])))


async def test_an_expired_batch_keeps_what_it_answered(server: BatchServer, tmp_path: Path) -> None:
    server.plan(expire=1)
    async with opened(tmp_path) as backend:
        calls = [call(n) for n in range(4)]
        outcomes = await asked(backend, calls)
        assert good(outcomes) == [True, False, True, False]
        lost = outcomes[1]
        assert isinstance(lost, errors.ServerFault) and lost.retryable
        assert "HTTP 408" in str(lost)
        assert all(good(await asked(backend, [calls[1], calls[3]])))
    assert set(server.paid().values()) == {1}


async def test_faults_on_the_way_make_no_second_batch(server: BatchServer, tmp_path: Path) -> None:
    server.plan(create_fails=1, polls_fail=2, delay=0.3)
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1), call(2)])))
    assert len(server.batches) == 1 and server.requests("create") == 1


async def test_a_batch_is_found_far_down_the_list(server: BatchServer, tmp_path: Path) -> None:
    server.plan(create_hangs=30.0)
    async with opened(tmp_path) as backend:
        asking = asyncio.ensure_future(asked(backend, [call(1)]))
        await until(lambda: len(server.batches) == 1)
        asking.cancel()
    server.plan()
    async with opened(tmp_path / "other") as backend:
        for number in range(2, 6):
            await asked(backend, [call(number)])
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1)])))
    assert len(server.batches) == 5 and set(server.paid().values()) == {1}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.02)


async def test_a_refused_batch_says_why_and_leaves_nothing(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(refuse=["invalid_model", "m cannot be batched"])
    async with opened(tmp_path) as backend:
        (outcome,) = await asked(backend, [call(1)])
        assert isinstance(outcome, errors.Denied) and not outcome.retryable
        assert "m cannot be batched" in str(outcome)
    assert left(tmp_path) == []


async def test_what_was_collected_when_a_batch_is_refused_is_not_sent(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_REQUESTS", "2")
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "600")
    server.plan(refuse=["invalid_model", "m cannot be batched"])
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(n) for n in range(3)])
        assert all(isinstance(outcome, errors.Denied) for outcome in outcomes)
        assert backend.waves.told() == "" and server.requests("create") == 1
    assert left(tmp_path) == []


@pytest.mark.slow
async def test_a_full_queue_is_waited_for_in_smaller_waves(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(room=12, delay=0.1)
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(n) for n in range(40)], kept=True)))
    done = [b["request_counts"]["total"] for b in server.batches if b["status"] == "completed"]
    assert sum(done) == 40 and max(done) <= 12
    assert set(server.paid().values()) == {1}
    assert left(tmp_path) == []


async def test_a_cancelled_batch_ends_the_run_and_keeps_its_replies(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(cancel=1)
    calls = [call(n) for n in range(4)]
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, calls)
        assert not any(good(outcomes))
        assert "batch_1 was cancelled at the provider" in str(outcomes[0])
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, calls)))
    assert sizes(server) == [4, 2] and set(server.paid().values()) == {1}


async def test_a_server_that_stays_away_is_given_up_and_loses_nothing(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_PATIENCE", "0.5")
    server.plan(delay=600.0)
    async with opened(tmp_path) as backend:
        asking = asyncio.ensure_future(asked(backend, [call(1), call(2)]))
        await until(lambda: server.requests("poll") > 0)
        server.kill()
        for outcome in await asking:
            assert isinstance(outcome, errors.Unreachable) and not outcome.retryable
        assert backend.waves.there == 1
    server.finish()
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(2), call(1)])))
    assert sizes(server) == [2] and set(server.paid().values()) == {1}


async def test_a_server_that_comes_back_is_waited_for(server: BatchServer, tmp_path: Path) -> None:
    server.plan(delay=600.0)
    async with opened(tmp_path) as backend:
        asking = asyncio.ensure_future(asked(backend, [call(1), call(2)]))
        await until(lambda: server.requests("poll") > 0)
        server.kill()
        await until(lambda: "trying again" in backend.waves.told())
        server.finish()
        assert all(good(await asking))
    assert sizes(server) == [2] and set(server.paid().values()) == {1}


async def test_one_process_at_a_time(server: BatchServer, tmp_path: Path) -> None:
    async with opened(tmp_path) as backend, opened(tmp_path) as second:
        await backend.waves.open()
        with pytest.raises(errors.UsageError, match="another run has batches of this model"):
            await second.waves.open()
    async with opened(tmp_path) as third:
        await third.waves.open()


async def test_a_wrong_key_is_found_out_at_the_start(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-0123456789")
    async with opened(tmp_path) as backend:
        with pytest.raises(errors.Denied, match="refuses the key"):
            await backend.waves.open()


async def test_a_server_without_batches_is_found_out_at_the_start(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/elsewhere")
    async with opened(tmp_path) as backend:
        with pytest.raises(errors.Denied, match="no batch API"):
            await backend.waves.open()


async def test_a_wave_is_forgotten_when_its_replies_are_kept_elsewhere(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(fail={"number 3 ": [500]})
    calls = [call(n) for n in range(4)]
    async with opened(tmp_path) as backend:
        await asked(backend, calls[:2])
        assert left(tmp_path) == ["ids", "json", "results.jsonl"]
        await asked(backend, calls[2:], kept=True)
        assert left(tmp_path) == ["ids", "json", "results.jsonl"], "the second wave is gone"
        backend.waves.finish()
        assert left(tmp_path) == []


async def test_another_runs_wave_stays_until_it_is_asked_for(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(delay=600.0)
    async with opened(tmp_path) as backend:
        asking = asyncio.ensure_future(asked(backend, [call(1), call(2)]))
        await until(lambda: server.requests("poll") > 0)
        asking.cancel()
    server.finish()
    async with opened(tmp_path) as backend:
        await backend.waves.open()
        assert backend.waves.there == 1 and backend.waves.told() == ""
        # One of its requests, and one that is new: the other run would have to pay for the rest.
        assert all(good(await asked(backend, [call(1), call(3)])))
        backend.waves.finish()
    assert left(tmp_path) == ["ids", "json", "results.jsonl"]
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(2)], kept=True)))
    assert sizes(server) == [2, 1] and set(server.paid().values()) == {1}


async def test_the_journal_is_its_owners_alone_and_holds_no_key(
    server: BatchServer, tmp_path: Path
) -> None:
    async with opened(tmp_path) as backend:
        await asked(backend, [call(1)])
        files = [path for path in (tmp_path / "batches").rglob("*") if path.is_file()]
    assert len(files) == 4
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert KEY.encode() not in path.read_bytes()


async def test_a_torn_journal_is_no_obstacle(server: BatchServer, tmp_path: Path) -> None:
    async with opened(tmp_path) as backend:
        await asked(backend, [call(1)])
        (folder,) = (tmp_path / "batches").iterdir()
    (folder / "0123456789abcdef.requests.jsonl").write_text('{"custom')
    (state,) = folder.glob("*.json")
    told = orjson.loads(state.read_bytes())
    (folder / "fedcba9876543210.json").write_bytes(orjson.dumps({**told, "version": 99}))
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1)])))
    assert sizes(server) == [1]
    assert not (folder / "0123456789abcdef.requests.jsonl").exists()
    assert (folder / "fedcba9876543210.json").exists(), "a newer judge's wave is not ours to lose"


def test_settings_of_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Pace.of_environment() == Pace(5.0, 30.0, 3600.0, 50_000, 200_000_000)
    monkeypatch.setenv("JUDGE_BATCH_POLL", "soon")
    with pytest.raises(errors.UsageError, match="JUDGE_BATCH_POLL"):
        Pace.of_environment()


def test_it_is_the_model_that_is_asked_online(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.backends.openai import OpenAIBackend

    batched = BatchBackend("m", folder=tmp_path)
    assert batched.identity() == OpenAIBackend("m").identity()
    assert batched.modes == (Mode.JSON_SCHEMA,)
