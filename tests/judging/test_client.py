"""The client: re-asking, retries, cache, single flight, probe and budget around any backend."""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from clients import Outcome, outcome_of

from judge import errors
from judge.backends.base import Backend, Call, Completion, Message, Mode
from judge.cache import ReplyCache
from judge.errors import Unread
from judge.judging.client import Client
from judge.judging.limits import Budget, BudgetReached
from judge.judging.transport import MAX_TRIES, MAX_TRIES_PAID, MAX_TRIES_UNREACHABLE
from judge.model_tables import Price
from judge.questions.evidence import ReplyContext
from judge.questions.replies import YesNo
from judge.verdict import Usage

STORY = "Ann bowed first. Then she poured the tea."
ABOUT = ReplyContext({"story": STORY}, evidence=("story", frozenset({"yes"})))
GOOD = json.dumps({"quote": "Ann bowed first", "reason": "she bows", "answer": "yes"})
INVENTED = json.dumps({"quote": "Ann sneezed", "reason": "she bows", "answer": "yes"})
PROMPT: list[Message] = [{"role": "user", "content": "Does Ann bow?"}]
CALL = Call(PROMPT, temperature=0.7, seed=0, max_tokens=50)
STEADY = replace(CALL, temperature=0.0)

Said = str | Completion | BaseException
Script = Callable[[Call, int], Said]


class Fake(Backend):
    """A backend that says what `script(call, number)` gives, and notes every call."""

    def __init__(self, name: str = "", *, script: Script, delay: float = 0.0) -> None:
        self.script, self.delay = script, delay
        self.calls: list[Call] = []
        self.under_way = self.most = 0
        self.gate: asyncio.Event | None = None

    def identity(self) -> Mapping[str, str]:
        return {"provider": "fake", "model": "m"}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        self.calls.append(call)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            said = self.script(call, len(self.calls))
            await (self.gate.wait() if self.gate else asyncio.sleep(self.delay))
        finally:
            self.under_way -= 1
        if isinstance(said, BaseException):
            raise said
        return Completion(said, input_tokens=10, output_tokens=3) if isinstance(said, str) else said


def one_by_one(*said: Said) -> Script:
    """Say these, then the last again and again."""
    return lambda call, number: said[min(number, len(said)) - 1]


def client(script: Script, **settings: Any) -> tuple[Client, Fake]:
    backend = Fake(script=script, delay=settings.pop("delay", 0.0))
    backend.slots = settings.pop("slots", None)
    defaults: dict[str, Any] = {
        "cache": None,
        "budget": Budget(),
        "limit": 8,
        "backoff": 0.001,
        "price": Price(input=1.0, output=10.0),
    }
    return Client("fake:m", backend, **(defaults | settings)), backend


async def ask(asker: Client, call: Call = CALL) -> Outcome:
    return await outcome_of(asker.ask(call, YesNo, ABOUT))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    made = ReplyCache(tmp_path / "replies")
    yield made
    made.close()


# ---------------------------------------------------------------- re-asking


async def test_a_valid_reply_is_asked_once() -> None:
    asker, backend = client(one_by_one(GOOD))
    asked = await ask(asker)
    assert isinstance(asked.reply, YesNo) and asked.reply.answer == "yes"
    assert asked.trouble is None and len(backend.calls) == 1
    assert asked.usage == Usage(1, 10, 3, (10 * 1.0 + 3 * 10.0) / 1e6)
    assert backend.calls[0].schema == YesNo.model_json_schema()
    assert backend.calls[0].schema_name == "YesNo"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (INVENTED, "is not in the story"),
        ('{"quote": null, "reason": "", "answer": "yes"}', "needs a quote"),
        ('{"quote": null, "reason": "", "answer": "maybe"}', "'yes' or 'no'"),
        ('{"answer": "no"}', "Field required"),
        ('{"quote": null, "reason": "", "answer": "no", "more": 1}', "Extra inputs"),
        ('{"quote": null, "reason": "", "answer": "yes", "answer": "no"}', "duplicate key"),
        ("Yes, she does.", "JSON"),
        ("", ""),
        ("[" * 5000, ""),
        ("<|im_end|> yes", "< |im_end|> yes"),
    ],
)
async def test_an_invalid_reply_goes_back_with_what_is_wrong(bad: str, told: str) -> None:
    asker, backend = client(one_by_one(bad, GOOD))
    asked = await ask(asker)
    assert isinstance(asked.reply, YesNo)
    assert (asked.usage.replies, asked.usage.input_tokens) == (2, 20)
    first, second = backend.calls
    assert list(first.messages) == PROMPT
    assert list(second.messages[:1]) == PROMPT, "the prefix stays as it was"
    assert all(m["role"] in ("system", "user", "assistant") for m in second.messages)
    assert told in second.messages[-1]["content"]
    assert not any("<|" in m["content"] for m in second.messages), (
        "no control token goes back whole"
    )
    assert asker.counters.reasks == 1


@pytest.mark.parametrize("reasks", [0, 1, 3])
async def test_re_asking_is_bounded(reasks: int, caplog: pytest.LogCaptureFixture) -> None:
    asker, backend = client(one_by_one(INVENTED), reasks=reasks)
    asked = await ask(asker)
    assert len(backend.calls) == reasks + 1
    assert (asked.reply, asked.trouble) == (None, "invalid")
    assert asked.detail is not None and "is not in the story" in asked.detail
    assert asked.usage.replies == reasks + 1
    assert asked.usage.output_tokens == 3 * (reasks + 1)
    assert asker.counters.reasks == reasks
    assert not caplog.records, "an invalid reply is a verdict; its log would quote the record"


async def test_a_truncated_reply_is_told_apart_and_not_asked_again() -> None:
    cut = Completion(GOOD[:30], "length", 10, 50)
    asker, backend = client(one_by_one(cut))
    asked = await ask(asker)
    assert (asked.reply, asked.trouble) == (None, "truncated")
    assert asked.detail == "the reply was cut off at 50 tokens; --max-tokens N allows more"
    assert asked.usage.output_tokens == 50 and len(backend.calls) == 1


async def test_a_refusal_is_told_apart_and_not_asked_again() -> None:
    for said in ((), (INVENTED,)):
        refusal = Completion("I will not.", "refusal", 10, 4)
        asker, backend = client(one_by_one(*said, refusal))
        asked = await ask(asker)
        assert (asked.reply, asked.trouble, asked.detail) == (None, "refused", "I will not.")
        assert asked.usage.replies == len(backend.calls) == len(said) + 1


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (errors.RateLimited("x"), MAX_TRIES),
        (errors.ServerFault("x"), MAX_TRIES),
        (errors.NoReply("x"), MAX_TRIES_PAID),
        (errors.Unreachable("x"), MAX_TRIES_UNREACHABLE),
        (errors.Denied("x"), 1),
        (errors.BadRequest("x"), 1),
        (errors.ContextExceeded("x"), 1),
    ],
)
async def test_tries_are_bounded(error: errors.BackendError, tries: int) -> None:
    asker, backend = client(one_by_one(error))
    with pytest.raises(type(error)):
        await ask(asker)
    assert len(backend.calls) == tries == asker.counters.calls
    assert asker.counters.retries == tries - 1


async def test_a_retry_that_succeeds_costs_one_reply() -> None:
    asker, _ = client(one_by_one(errors.RateLimited("x"), errors.ServerFault("y"), GOOD))
    asked = await ask(asker)
    assert asked.trouble is None and asked.usage.replies == 1
    assert (asker.counters.calls, asker.counters.retries, asker.counters.rate_limits) == (3, 2, 1)
    assert asker.counters.output_tokens == 3


async def test_a_pause_too_long_to_wait_ends_the_run() -> None:
    asker, backend = client(one_by_one(errors.RateLimited("quota", retry_after=3600), GOOD))
    async with asyncio.timeout(60):
        with pytest.raises(errors.Unreachable, match="3600 s: quota"):
            await ask(asker)
    assert len(backend.calls) == 1


async def test_a_call_that_takes_too_long_is_a_server_fault() -> None:
    asker, backend = client(one_by_one(GOOD), delay=5, timeout=0.01)
    with pytest.raises(errors.NoReply, match=r"no answer within 0\.01 s"):
        await ask(asker)
    assert len(backend.calls) == MAX_TRIES_PAID and backend.under_way == 0


# ---------------------------------------------------------------- cache


async def test_a_cached_ask_makes_no_call(cache: ReplyCache) -> None:
    fresh, _ = client(one_by_one(INVENTED, GOOD), cache=cache)
    budget, never = Budget(), one_by_one(RuntimeError("must not be called"))
    again, backend = client(never, cache=cache, budget=budget)
    first = await ask(fresh)
    assert await ask(again) == first
    assert first.usage.replies == 2 and not backend.calls
    assert (again.counters.calls, again.counters.cache_hits) == (0, 2)
    assert (budget.calls, budget.cost) == (0, 0.0)


async def test_an_ask_without_a_valid_reply_leaves_nothing_behind(cache: ReplyCache) -> None:
    for said in (INVENTED, "", Completion(GOOD[:30], "length"), Completion("No.", "refusal")):
        ill, _ = client(one_by_one(said), cache=cache)
        assert (await ask(ill)).reply is None
        await ill.aclose()
        assert cache.stats().entries == 0
    well, _ = client(one_by_one(GOOD), cache=cache)
    assert (await ask(well)).reply is not None, "a server that is well again is asked"


async def test_a_kill_loses_no_reply_of_an_ask_that_goes_on(cache: ReplyCache) -> None:
    killed, _ = client(one_by_one(INVENTED), cache=cache)
    lost = await ask(killed)
    again, backend = client(one_by_one(RuntimeError("must not be called")), cache=cache)
    assert await ask(again) == lost and lost.reply is None and not backend.calls
    await again.aclose()
    assert cache.stats().entries == 0, "another run asks anew"


@pytest.mark.parametrize(
    "other",
    [
        {"vote": 1},
        {"seed": 1},
        {"temperature": 0.0},
        {"max_tokens": 51},
        {"messages": [{"role": "user", "content": "Does Ann bow? "}]},
    ],
    ids=str,
)
async def test_other_calls_have_other_entries(cache: ReplyCache, other: dict[str, Any]) -> None:
    asker, backend = client(one_by_one(GOOD), cache=cache)
    await ask(asker)
    await ask(asker, replace(CALL, **other))
    assert len(backend.calls) == 2
    await ask(asker)
    await ask(asker, replace(CALL, **other))
    assert len(backend.calls) == 2


@pytest.mark.parametrize("kept", [True, False])
async def test_the_same_words_are_asked_once_whichever_judge_asks(
    cache: ReplyCache, kept: bool
) -> None:
    asker, backend = client(one_by_one(GOOD), cache=cache if kept else None)
    others = [{"role": "final"}, {"vote": 2}, {"seed": 9}]
    first = await ask(asker, STEADY)
    for other in others:
        assert await ask(asker, replace(STEADY, **other)) == first
    at_once = (ask(asker, replace(STEADY, max_tokens=9, **other)) for other in others)
    await asyncio.gather(*at_once)
    assert len(backend.calls) == 2
    drawn = [replace(CALL, **other) for other in others]
    key = asker._completions._key
    assert len({key(call, Mode.JSON_SCHEMA) for call in [CALL, *drawn]}) == 3
    layers = [replace(CALL, layer=layer) for layer in (None, 1, 2)]
    assert len({key(call, Mode.JSON_SCHEMA) for call in layers}) == 3
    read = [replace(call, logprobs=20) for call in drawn]
    assert len({key(call, Mode.JSON_SCHEMA) for call in read}) == 1


async def test_another_model_is_another_question(cache: ReplyCache) -> None:
    await ask(client(one_by_one(GOOD), cache=cache)[0], STEADY)
    for identity in ({"model": "n"}, {"server": "http://other.test"}, {"weights": "ab12"}):
        other = Fake(script=one_by_one(GOOD))
        other.identity = lambda added=identity: {"provider": "fake", "model": "m", **added}  # type: ignore[method-assign,misc]
        asker = Client("fake:m", other, cache=cache, budget=Budget(), limit=1)
        await ask(asker, STEADY)
        assert len(other.calls) == 1, identity


@pytest.mark.parametrize(
    "damage", [{"text": 5}, {"finish_reason": "later"}, {"unknown": 1}], ids=str
)
async def test_a_damaged_entry_is_asked_anew(cache: ReplyCache, damage: dict[str, Any]) -> None:
    asker, backend = client(one_by_one(GOOD), cache=cache)
    first = await ask(asker)
    (key,) = [row[0] for row in cache._cache._sql("SELECT key FROM Cache").fetchall()]
    entry = cache.get(key)
    assert entry is not None
    cache.set(key, entry | damage)
    assert await ask(asker) == first
    assert len(backend.calls) == 2
    assert await ask(asker) == first
    assert len(backend.calls) == 2


# ---------------------------------------------------------------- single flight


@pytest.mark.parametrize("kept", [True, False])
async def test_the_same_call_at_the_same_time_is_made_once(cache: ReplyCache, kept: bool) -> None:
    store, budget = cache if kept else None, Budget()
    asker, backend = client(one_by_one(GOOD), delay=0.01, cache=store, budget=budget)
    asked = await asyncio.gather(*(ask(asker) for _ in range(10)))
    assert len(backend.calls) == budget.calls == 1
    assert all(a == asked[0] for a in asked)


async def under_way(backend: Fake, number: int) -> None:
    """Return once so many calls are made, and tasks with the same request wait for them."""
    async with asyncio.timeout(60):
        while len(backend.calls) < number:  # noqa: ASYNC110 - other tasks make it true
            await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_is_cancelled_and_the_others_go_on() -> None:
    asker, backend = client(one_by_one(GOOD))
    backend.gate = asyncio.Event()
    tasks = [asyncio.create_task(ask(asker)) for _ in range(4)]
    await under_way(backend, 1)
    tasks[0].cancel()
    await under_way(backend, 2)
    backend.gate.set()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(r, Outcome) and r.trouble is None for r in results[1:])
    assert len(backend.calls) == 2


async def test_a_cache_that_cannot_be_written_hangs_nobody(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(cache._cache, "set", full)
    asker, _ = client(one_by_one(GOOD), delay=0.01, cache=cache)
    async with asyncio.timeout(60):
        results = await asyncio.gather(*(ask(asker) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(r, errors.UsageError) for r in results), results


# ---------------------------------------------------------------- budget


@pytest.mark.parametrize("most", [0, 1, 5])
async def test_never_more_calls_than_the_budget(most: int) -> None:
    budget = Budget(max_calls=most)
    asker, backend = client(one_by_one(errors.ServerFault("x"), GOOD), budget=budget, delay=0.001)
    asks = [ask(asker, replace(CALL, vote=vote)) for vote in range(12)]
    results = await asyncio.gather(*asks, return_exceptions=True)
    assert len(backend.calls) == most == budget.calls
    stopped = [r for r in results if isinstance(r, BudgetReached)]
    assert len(stopped) >= 12 - most
    assert all(isinstance(r, BudgetReached | Outcome) for r in results)


async def test_a_server_that_reports_no_tokens_is_stopped_all_the_same(cache: ReplyCache) -> None:
    said = Completion(GOOD)
    asker, backend = client(one_by_one(said), budget=Budget(max_cost=1e-3), cache=cache)
    with pytest.raises(BudgetReached):
        for vote in range(100):
            asked = await ask(asker, replace(CALL, vote=vote))
    tokens = (len(PROMPT[0]["content"]) // 4 + 1, -(-len(GOOD) // 4))
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == tokens
    assert len(backend.calls) == -(-1e-3 // ((tokens[0] + 10 * tokens[1]) / 1e6))
    replayed = await ask(client(one_by_one(said), cache=cache)[0])
    assert replayed.usage == asked.usage


async def test_a_server_that_counts_next_to_nothing_is_stopped_by_the_budget_all_the_same() -> None:
    prompt: list[Message] = [{"role": "user", "content": "Does Ann bow? " * 200}]
    asker, backend = client(
        one_by_one(Completion(GOOD, input_tokens=1, output_tokens=1)), budget=Budget(max_cost=1e-3)
    )
    with pytest.raises(BudgetReached):
        for vote in range(100):
            await ask(asker, replace(CALL, messages=prompt, vote=vote))
    assert len(backend.calls) < 5
    budget, wordy = Budget(), GOOD.replace("she bows", "she bows " * 1000)
    asker, _ = client(one_by_one(Completion(wordy, input_tokens=1, output_tokens=1)), budget=budget)
    await ask(asker)
    assert budget.cost > 10 * 1000 / 1e6, "a reply of 9,000 characters, 10 dollars a million"


async def test_a_hidden_state_is_no_reply_that_costs() -> None:
    backend, budget = States(script=lambda *_: cast("Any", [0.5] * 3000)), Budget()
    price = Price(input=1.0, output=10.0)
    asker = Client("fake:m", backend, cache=None, budget=budget, limit=1, price=price)
    await asker.state(replace(CALL, layer=-1))
    assert budget.cost == 9 / 1e6


# ---------------------------------------------------------------- first token


async def test_log_probabilities_that_a_server_learns_to_give_are_asked_for_again(
    cache: ReplyCache,
) -> None:
    call = replace(CALL, logprobs=20)
    taught = one_by_one("Yes", Completion("Yes", first_token=(("Yes", -0.1),)))
    asker, backend = client(taught, cache=cache)
    with pytest.raises(errors.UsageError, match="gives no log-probabilities"):
        await asker.first_token(call)
    for _ in range(2):
        tokens, _ = await asker.first_token(call)
        assert tokens == {"Yes": -0.1} and len(backend.calls) == 2


# ---------------------------------------------------------------- the probe

SCHEMA, TOOLS, WORDS = Mode.JSON_SCHEMA, Mode.TOOLS, Mode.JSON
READY = '{"ready": "yes"}'


class Server(Fake):
    """A server that knows some ways to ask for JSON."""

    modes = (SCHEMA, TOOLS, WORDS)

    def __init__(self, *known: Mode, name: str = "m") -> None:
        super().__init__(script=one_by_one(GOOD))
        self.known, self.name = known, name
        self.ignored: tuple[Mode, ...] = ()
        self.refusal: errors.BackendError | None = None
        self.ways: list[Mode] = []
        self.probes: list[Mode] = []

    def identity(self) -> Mapping[str, str]:
        return {"model": self.name}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        self.ways.append(mode)
        await asyncio.sleep(0)
        probe = call.schema_name == "Ready"
        self.probes += [mode] if probe else []
        if self.refusal is not None:
            raise self.refusal
        if mode not in self.known:
            raise errors.BadRequest(f"no {mode} here")
        if probe:
            return Completion(READY)
        if mode in self.ignored:
            return Completion("Yes.")
        if isinstance(said := self.script(call, len(self.ways)), BaseException):
            raise said
        return Completion(str(said))

    def client(self, cache: ReplyCache | None) -> Client:
        return Client("openai:m", self, cache=cache, budget=Budget(), limit=4)


@pytest.mark.parametrize("said", ["Yes, because", Completion('{"quo', finish_reason="length")])
async def test_a_model_that_never_brings_what_is_asked_for_is_not_asked_one_by_one(
    said: Said,
) -> None:
    together: list[int] = []

    def script(call: Call, number: int) -> Said:
        if call.schema_name == "Ready":
            return READY
        together.append(backend.under_way)
        return said

    backend = Fake(script=script, delay=0.05)
    backend.modes = (SCHEMA, WORDS)
    asker = Client("fake:m", backend, cache=None, budget=Budget(), limit=8, reasks=0)
    calls = [replace(CALL, seed=n) for n in range(20)]
    outcomes = await asyncio.gather(*(ask(asker, call) for call in calls))
    assert [outcome.reply for outcome in outcomes] == [None] * len(calls)
    assert together[:3] == [1, 1, 1] and max(together) == 8


@pytest.mark.parametrize(
    ("known", "ways"),
    [
        ((SCHEMA, TOOLS, WORDS), [SCHEMA, SCHEMA]),
        ((TOOLS, WORDS), [SCHEMA, TOOLS, TOOLS]),
        ((WORDS,), [SCHEMA, TOOLS, WORDS, WORDS]),
    ],
)
async def test_the_best_way_to_ask_is_found(known: tuple[Mode, ...], ways: list[Mode]) -> None:
    server = Server(*known)
    asked = await ask(server.client(None))
    assert asked.trouble is None and server.ways == ways
    assert asked.usage.replies == 1, "the probe is no reply that the verdict rests on"


async def test_the_way_is_remembered_for_the_server_and_model(cache: ReplyCache) -> None:
    await ask(Server(TOOLS).client(cache))
    second = Server(TOOLS)
    await ask(second.client(cache), replace(CALL, vote=1))
    assert second.ways == [TOOLS]
    third = Server(WORDS, name="other")
    await ask(third.client(cache))
    assert third.probes == [SCHEMA, TOOLS, WORDS]


async def test_a_prompt_that_is_too_long_is_so_in_every_mode() -> None:
    """No further mode is paid for, and what is wrong is the length, not the way of asking."""
    for told, ways in ((0, [SCHEMA]), (1, [SCHEMA, SCHEMA])):
        server = Server()
        server.known = (SCHEMA,)
        asker = server.client(None)
        if told:
            await asker.prepare()
        too_long = errors.ContextExceeded("4096 tokens at most")
        server.refusal = too_long
        with pytest.raises(errors.ContextExceeded, match="4096 tokens at most"):
            await (ask(asker) if told else asker.prepare())
        assert server.ways == ways


async def test_the_reports_cached_tokens_are_those_that_the_server_names() -> None:
    said = [Completion(GOOD, "stop", 40, 3, cached_tokens=n) for n in (None, 32, 8)]
    asker, _ = client(one_by_one(*said))
    for vote, total in enumerate((0, 32, 40)):
        await ask(asker, replace(CALL, vote=vote))
        assert asker.counters.cached_tokens == total


async def test_a_server_that_changes_its_way_is_asked_in_the_next(cache: ReplyCache) -> None:
    server = Server(SCHEMA)
    await server.client(cache).prepare()
    asker = server.client(cache)
    server.known = (WORDS,)
    asked = await asyncio.gather(*(ask(asker, replace(CALL, vote=vote)) for vote in range(4)))
    assert [one.trouble for one in asked] == [None] * 4
    assert server.ways == [SCHEMA, SCHEMA, TOOLS, *[WORDS] * 4], "the first call tries for all"
    server.ways.clear()
    await ask(server.client(cache), replace(CALL, vote=9))
    assert server.ways == [WORDS], "the new way is remembered"


async def test_an_invalid_reply_of_an_earlier_run_is_no_reason_to_try_another_mode(
    cache: ReplyCache,
) -> None:
    server = Server(SCHEMA, TOOLS, WORDS)
    calls = [replace(CALL, vote=vote) for vote in range(3)]
    server.script = lambda call, number: (
        "Yes." if call.vote == 1 and len(call.messages) == 1 else GOOD
    )
    first = server.client(cache)
    asked = [await ask(first, call) for call in calls]
    assert asked[1].usage.replies == 2
    again = server.client(cache)
    assert [await ask(again, call) for call in reversed(calls)] == asked[::-1]
    assert again.counters.calls == 0


async def test_a_search_of_an_earlier_run_is_repeated_from_the_cache(cache: ReplyCache) -> None:
    """Its first reply was stored as unheeded, and so were those of the other modes."""
    server = Server(SCHEMA, TOOLS, WORDS)
    server.ignored = (SCHEMA, TOOLS, WORDS)
    first = await ask(server.client(cache))
    assert first.trouble == "invalid" and server.ways[1:4] == [SCHEMA, TOOLS, WORDS]
    again = server.client(cache)
    assert await ask(again) == first and again.counters.calls == 0


async def test_calls_that_waited_for_the_first_try_no_mode_again() -> None:
    server = Server(SCHEMA, TOOLS, WORDS)
    server.script = lambda call, number: errors.BadRequest("x") if call.vote == 2 else GOOD
    asker = server.client(None)
    await asker.prepare()
    calls = (ask(asker, replace(CALL, vote=vote)) for vote in range(4))
    asked = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(one, errors.BadRequest) for one in asked] == [False, False, True, False]
    assert server.ways == [SCHEMA] * 5


async def test_a_call_that_no_mode_suits_is_its_own_fault_and_costs_no_search_again() -> None:
    server = Server(SCHEMA, TOOLS, WORDS)
    asker = server.client(None)
    await ask(asker)
    server.known = ()
    for vote in (1, 2):
        with pytest.raises(errors.BadRequest, match="no json_schema here"):
            await ask(asker, replace(CALL, vote=vote))
    assert server.ways == [SCHEMA] * 4, "a mode that has brought a reply is not doubted"
    never = Server(SCHEMA)
    never.ignored = (SCHEMA,)
    asker = never.client(None)
    for vote in range(4):
        assert (await ask(asker, replace(CALL, vote=vote))).trouble == "invalid"
    searched = [SCHEMA, TOOLS, WORDS, SCHEMA, SCHEMA]
    assert never.ways[1:] == [*searched, *searched, *[SCHEMA] * 6]


async def test_a_model_that_replies_with_text_after_an_empty_reply_is_re_asked() -> None:
    server = Server(SCHEMA, TOOLS, WORDS)
    server.script = lambda call, number: (
        "" if call.vote == 0 else INVENTED if call.vote == 2 and len(call.messages) == 1 else GOOD
    )
    asker = server.client(None)
    asked = [await ask(asker, replace(CALL, vote=vote)) for vote in range(3)]
    assert [one.trouble for one in asked] == ["invalid", None, None]
    assert asked[2].usage.replies == 2


async def test_a_server_that_never_gives_json() -> None:
    with pytest.raises(errors.UsageError, match=r"openai:m .*json_schema: .*tools: .*json: "):
        await Server().client(None).prepare()


# ---------------------------------------------------------------- validated, then stored


async def test_a_first_token_that_says_nothing_is_not_kept(cache: ReplyCache) -> None:
    call = replace(CALL, logprobs=20)
    rubbish = Completion("zzz", first_token=(("zzz", -0.1),))
    asker, backend = client(
        one_by_one(rubbish, Completion("Yes", first_token=(("Yes", -0.1),))), cache=cache
    )
    for expected in ({"zzz": -0.1}, {"Yes": -0.1}, {"Yes": -0.1}):
        assert (await asker.first_token(call, lambda found: "Yes" in found))[0] == expected
    assert len(backend.calls) == 2


@pytest.mark.parametrize(
    ("logs", "problem"),
    [
        ((0.0, 0.0), "the listed tokens' probabilities add up to 2.00"),
        ((-0.6, -0.6, -0.6, -0.6), "the listed tokens' probabilities add up to 2.20"),
        ((1000.0, -1.0), "a log-probability is 1000"),
        ((math.nan, -1.0), "a log-probability is nan"),
    ],
)
async def test_what_is_no_distribution_is_not_read_and_not_kept(
    cache: ReplyCache, logs: tuple[float, ...], problem: str
) -> None:
    tokens = tuple(zip(("No", "Yes", "no", "x"), logs, strict=False))
    asker, _ = client(one_by_one(Completion("No", first_token=tokens)), cache=cache)
    with pytest.raises(Unread, match=f"no distribution: {problem}"):
        await asker.first_token(replace(CALL, logprobs=20))
    assert cache.stats().entries == 0


async def test_a_refusal_without_a_text_is_called_one_at_the_first_token_too() -> None:
    asker, _ = client(one_by_one(Completion("", "refusal")))
    with pytest.raises(Unread, match="refused: no explanation"):
        await asker.first_token(replace(CALL, logprobs=20))


class States(Fake):
    """A server of hidden states; the script says each as its numbers."""

    gives_states = True

    async def complete(self, call: Call, mode: Mode) -> Completion:
        self.calls.append(call)
        said: Any = self.script(call, len(self.calls))
        return Completion.of_state(list(said), call.layer, 9)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [], [float("nan")] * 3, [float("inf"), 0.0, 1.0]])
async def test_a_bad_state_is_its_calls_fault_and_is_not_kept(
    cache: ReplyCache, bad: list[float]
) -> None:
    good = [0.5, 1.0, 2.0]
    said: Any = [good, *[bad] * (MAX_TRIES if len(bad) != 2 else 1), good]
    backend = States(script=one_by_one(*said))
    asker = Client("fake:m", backend, cache=cache, budget=Budget(), limit=1, backoff=0.001)
    first, second = (
        replace(CALL, layer=-1, messages=[{"role": "user", "content": t}]) for t in "ab"
    )
    assert list((await asker.state(first))[0]) == good
    with pytest.raises(errors.ServerFault):
        await asker.state(second)
    assert list((await asker.state(second, width=3))[0]) == good
    assert len(backend.calls) == len(said)
    assert asker.counters.input_tokens == 9 * len(said), "each was charged"
