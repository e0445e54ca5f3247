"""Waves against a batch server on 127.0.0.1: requests, results, and the state on disk."""

from __future__ import annotations

import asyncio
import errno
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from batchserver import KEY, BatchServer

from judge import errors
from judge.backends import batch
from judge.backends.base import Call, Completion, Mode
from judge.backends.batch import BatchBackend
from judge.backends.batch_api import BatchAPI, BatchResults
from judge.backends.http import MAX_ANSWER
from judge.cache import CacheError, ReplyCache

Make = Callable[..., Any]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    with BatchServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("JUDGE_BATCH_QUIET", "0.1")
        monkeypatch.setenv("JUDGE_BATCH_POLL", "0.05")
        yield running


@asynccontextmanager
async def opened(folder: Path, *, killed: bool = False) -> AsyncIterator[BatchBackend]:
    """A backend as a process holds it; with `killed`, leaving the context acts like a kill."""
    cache = ReplyCache(folder / "cache")
    backend = BatchBackend("m", cache=cache)
    try:
        yield backend
    finally:
        if killed:
            backend._taken.clear()
        await backend.aclose()
        cache.close()


def call(number: int, vote: int = 0) -> Call:
    content = f"Guest number {number} slipped off both shoes."
    return Call([{"role": "user", "content": content}], temperature=1.0, vote=vote)


async def asked(backend: BatchBackend, calls: list[Call]) -> list[Completion | errors.BackendError]:
    async def one(call: Call) -> Completion | errors.BackendError:
        try:
            return await backend.complete(call, Mode.JSON_SCHEMA)
        except errors.BackendError as error:
            return error

    async with asyncio.timeout(60):
        return list(await asyncio.gather(*map(one, calls)))


def sizes(server: BatchServer) -> list[int]:
    return [batch["request_counts"]["total"] for batch in server.batches]


def good(outcomes: list[Any]) -> list[bool]:
    return [isinstance(outcome, Completion) for outcome in outcomes]


async def test_what_is_asked_together_is_one_batch(server: BatchServer, tmp_path: Path) -> None:
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(1), call(2), call(1, vote=1), call(1)])
    assert sizes(server) == [3], "the very same call is asked once, two votes are asked twice"
    assert all(good(outcomes)) and set(server.paid().values()) == {1}


async def test_a_batch_waits_until_nothing_new_comes(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "1")

    async def later(backend: BatchBackend, number: int) -> Completion:
        await asyncio.sleep(0.7 * number)
        return await backend.complete(call(number), Mode.JSON_SCHEMA)

    async with opened(tmp_path) as backend:
        await asyncio.gather(*(later(backend, number) for number in range(3)))
    assert sizes(server) == [3]


async def test_a_full_batch_does_not_wait(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_REQUESTS", "3")
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "0.5")
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, [call(n) for n in range(7)])
        monkeypatch.setattr(batch, "MAX_BYTES", 500)
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
        assert "batch_1 (expired)" in str(lost)
        assert all(good(await asked(backend, [calls[1], calls[3]])))
    assert set(server.paid().values()) == {1}


async def test_faults_on_the_way_make_no_second_batch(server: BatchServer, tmp_path: Path) -> None:
    server.plan(create_fails=1, polls_fail=2, delay=0.3)
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1), call(2)])))
    assert len(server.batches) == 1 and server.requests("create") == 1


async def test_a_batch_is_found_far_down_the_list(server: BatchServer, tmp_path: Path) -> None:
    server.plan(create_hangs=30.0)
    async with opened(tmp_path, killed=True) as backend:
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


async def test_a_refused_batch_says_why_and_what_was_collected_is_not_sent(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_BATCH_REQUESTS", "2")
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "600")
    server.plan(refuse=["token_limit_exceeded", "Enqueued token limit reached for m."])
    async with opened(tmp_path) as backend:
        for outcome in await asked(backend, [call(n) for n in range(3)]):
            assert isinstance(outcome, errors.Denied)
            assert "limit reached for m." in str(outcome)
            assert "lower JUDGE_BATCH_REQUESTS" in str(outcome)
    assert server.requests("create") == 1
    server.plan()
    monkeypatch.setenv("JUDGE_BATCH_QUIET", "0.1")
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(n) for n in range(3)])))
    assert set(server.paid().values()) == {1}


async def test_a_cancelled_batch_ends_the_run_and_keeps_its_replies(
    server: BatchServer, tmp_path: Path
) -> None:
    server.plan(cancel=1)
    calls = [call(n) for n in range(4)]
    async with opened(tmp_path) as backend:
        outcomes = await asked(backend, calls)
        assert good(outcomes) == [True, False, True, False]
        assert "batch_1 was cancelled at the provider" in str(outcomes[1])
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, calls[1::2])))
    assert sizes(server) == [4, 2] and set(server.paid().values()) == {1}


async def test_a_server_that_stays_away_is_given_up_and_loses_nothing(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan(delay=600.0)
    async with opened(tmp_path) as backend:
        asking = asyncio.ensure_future(asked(backend, [call(1), call(2)]))
        await until(lambda: server.requests("poll") > 0)
        assert backend.batches_under_way == 1
        server.away = True
        await asyncio.sleep(0.3)
        monkeypatch.setattr(batch, "PATIENCE_SECONDS", 0.5)
        for outcome in await asking:
            assert isinstance(outcome, errors.Unreachable) and not outcome.retryable
        assert backend.batches_under_way == 1
    server.finish()
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(2), call(1)])))
    assert sizes(server) == [2] and set(server.paid().values()) == {1}


@pytest.mark.parametrize(
    ("key", "path", "told"), [("sk-wrong", "", "refuses the key"), (KEY, "/no", "no batch API")]
)
async def test_a_key_or_server_that_cannot_be_used(
    server: BatchServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    path: str,
    told: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}{path}")
    async with opened(tmp_path) as backend:
        (outcome,) = await asked(backend, [call(1)])
    assert isinstance(outcome, errors.Denied) and told in str(outcome)


async def test_what_is_asked_again_after_a_run_has_ended_is_a_new_request(
    server: BatchServer, tmp_path: Path
) -> None:
    """As an invalid reply is, which the client throws away."""
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1)])))
        assert all(good(await asked(backend, [call(1)])))
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1)])))
    assert sizes(server) == [1, 1, 1]
    with closing(ReplyCache(tmp_path / "cache")) as cache:
        assert cache.stats().entries == 0, "no request is under way any more"


async def test_what_a_provider_has_removed_is_asked_anew(
    server: BatchServer, tmp_path: Path
) -> None:
    async with opened(tmp_path, killed=True) as backend:
        assert all(good(await asked(backend, [call(1), call(2)])))
    server.remove_results()
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1), call(2)])))
    assert sizes(server) == [2, 2]


async def test_no_batch_is_made_that_cannot_be_noted(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ReplyCache, *entries: object) -> None:
        raise CacheError("full")

    async with opened(tmp_path) as backend:
        assert backend._cache is not None
        backend._cache.on_fault = lambda error: None
        monkeypatch.setattr(ReplyCache, "_write", full)
        (outcome,) = await asked(backend, [call(1)])
        monkeypatch.undo()
    assert isinstance(outcome, errors.Denied) and server.batches == []


async def test_a_line_of_results_that_is_none_costs_its_own_request_alone(
    server: BatchServer, tmp_path: Path
) -> None:
    bad = (b"not JSON", b"[]", b'{"custom_id": 1, "response": {"status_code": "x", "body": {}}}')
    async with opened(tmp_path) as backend:
        api = BatchAPI(backend._http, "m")
        good = [
            b'{"custom_id":"k%d","response":{"status_code":200,"body":{"n":%d}}}' % (n, n)
            for n in range(3)
        ]
        too_long = good[0][:-1] + b" " * MAX_ANSWER + b"}"
        results = await api.results([server._file(b"\n".join((*bad, too_long, *good[1:])))])
        answers = [results.get(key) for key in ("k0", "k1", "k2", "1")]
        results.close()
    assert [one and one.body for one in answers] == [None, b'{"n":1}', b'{"n":2}', None]


async def test_results_that_a_full_disk_does_not_take_end_the_run_and_are_collected_by_the_next(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: BatchResults) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with opened(tmp_path) as backend:
        with monkeypatch.context() as disk:
            disk.setattr(BatchResults, "index", full)
            with pytest.raises(errors.Unavailable, match="results of a batch cannot be stored"):
                await asked(backend, [call(1)])
    async with opened(tmp_path) as backend:
        assert all(good(await asked(backend, [call(1)])))
    assert sizes(server) == [1]


async def test_results_are_not_held_in_memory(server: BatchServer, tmp_path: Path) -> None:
    line = b'{"custom_id":"k%d","response":{"status_code":200,"body":{"text":"%s"}}}'
    lines = b"\n".join(line % (number, b"x" * 1_000_000) for number in range(40))
    async with opened(tmp_path) as backend:
        file = server._file(lines)
        tracemalloc.start()
        results = await BatchAPI(backend._http, "m").results([file])
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    last = results.get("k39")
    results.close()
    assert last is not None and len(last.body) > 1_000_000
    assert held < 5_000_000 < len(lines)
