"""The client: re-asking, retries, cache, single flight, probe and budget around any backend."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx
from hypothesis import given, settings
from hypothesis import strategies as st
from routed import routed

from judge import errors
from judge.backends.base import Call, Completion, Message, Mode, Reading
from judge.backends.openai import OpenAIBackend
from judge.cache import ReplyCache
from judge.judging.calls import MAX_TRIES, MAX_TRIES_UNREACHABLE
from judge.judging.client import Asked, Client
from judge.judging.limits import Budget, BudgetReached, Price
from judge.replies import About, YesNo
from judge.verdict import Usage

STORY = "Ann bowed first. Then she poured the tea."
ABOUT = About({"story": STORY}, evidence=("story", frozenset({"yes"})))
GOOD = json.dumps({"quote": "Ann bowed first", "reason": "she bows", "answer": "yes"})
INVENTED = json.dumps({"quote": "Ann sneezed", "reason": "she bows", "answer": "yes"})
PROMPT: list[Message] = [{"role": "user", "content": "Does Ann bow?"}]
CALL = Call(PROMPT, temperature=0.7, seed=0, max_tokens=50)
STEADY = replace(CALL, temperature=0.0)

Said = str | Completion | BaseException
Script = Callable[[Call, int], Said]


class Fake:
    """A backend that says what `script(call, number)` gives, and notes every call."""

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None = None
    seeded: bool = True
    reading: Reading = "structured"

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

    async def aclose(self) -> None:
        return None


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
        "price": Price(1.0, 10.0),
    }
    return Client("fake:m", backend, **(defaults | settings)), backend


async def ask(asker: Client, call: Call = CALL) -> Asked:
    return await asker.ask(call, YesNo, ABOUT)


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
        (INVENTED, "does not stand in the story"),
        ('{"quote": null, "reason": "", "answer": "yes"}', "needs a quote"),
        ('{"quote": null, "reason": "", "answer": "maybe"}', "'yes' or 'no'"),
        ('{"answer": "no"}', "Field required"),
        ('{"quote": null, "reason": "", "answer": "no", "more": 1}', "Extra inputs"),
        ("Yes, she does.", "JSON"),
        ("", ""),
        ("[" * 5000, ""),
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
    assert asker.counters.reasks == 1


@pytest.mark.parametrize("reasks", [0, 1, 3])
async def test_re_asking_is_bounded(reasks: int) -> None:
    asker, backend = client(one_by_one(INVENTED), reasks=reasks)
    asked = await ask(asker)
    assert len(backend.calls) == reasks + 1
    assert (asked.reply, asked.trouble) == (None, "invalid")
    assert asked.detail is not None and "does not stand in the story" in asked.detail
    assert asked.usage.replies == reasks + 1
    assert asked.usage.output_tokens == 3 * (reasks + 1)
    assert asker.counters.reasks == reasks


async def test_a_truncated_reply_is_told_apart_and_not_asked_again() -> None:
    cut = Completion(GOOD[:30], "length", 10, 50)
    asker, backend = client(one_by_one(cut))
    asked = await ask(asker)
    assert (asked.reply, asked.trouble) == (None, "truncated")
    assert asked.detail == "the reply was cut off at 50 tokens"
    assert asked.usage.output_tokens == 50 and len(backend.calls) == 1


async def test_a_refusal_is_told_apart_and_not_asked_again() -> None:
    asker, backend = client(one_by_one(Completion("I will not.", "refusal", 10, 4)))
    asked = await ask(asker)
    assert (asked.reply, asked.trouble, asked.detail) == (None, "refused", "I will not.")
    assert asked.usage.replies == 1 and len(backend.calls) == 1


async def test_an_error_of_the_backend_is_raised_as_it_is() -> None:
    for said in ([errors.BadRequest("no")], [INVENTED, errors.BadRequest("no")]):
        asker, backend = client(one_by_one(*said))
        with pytest.raises(errors.BadRequest, match=r"^no$"):
            await ask(asker)
        assert len(backend.calls) == len(said)


async def test_asks_at_once_do_not_mix_up_their_records() -> None:
    def script(call: Call, number: int) -> Said:
        name = call.messages[0]["content"].split()[-1]
        return json.dumps({"quote": f"{name} bowed", "reason": name, "answer": "yes"})

    asker, _ = client(script, delay=0.005)

    async def about(name: str) -> Asked:
        record = About({"story": f"{name} bowed."}, evidence=ABOUT.evidence)
        call = Call([{"role": "user", "content": f"Who? {name}"}])
        return await asker.ask(call, YesNo, record)

    names = [f"N{number}" for number in range(20)]
    asked = await asyncio.gather(*(about(name) for name in names))
    assert [a.reply.reason for a in asked if isinstance(a.reply, YesNo)] == names


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (errors.RateLimited("x"), MAX_TRIES),
        (errors.ServerFault("x"), MAX_TRIES),
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
    assert (asker.counters.calls, asker.counters.retries, asker.counters.refusals) == (3, 2, 1)
    assert asker.counters.output_tokens == 3


async def test_a_pause_too_long_to_wait_ends_the_run() -> None:
    asker, backend = client(one_by_one(errors.RateLimited("quota", retry_after=3600), GOOD))
    async with asyncio.timeout(60):
        with pytest.raises(errors.Unreachable, match="3600 s: quota"):
            await ask(asker)
    assert len(backend.calls) == 1


async def test_no_more_calls_at_once_than_the_limit() -> None:
    asker, backend = client(one_by_one(GOOD), limit=3, delay=0.005)
    await asyncio.gather(*(ask(asker, replace(CALL, vote=vote)) for vote in range(12)))
    assert backend.most == 3 and len(backend.calls) == 12


async def test_a_call_that_takes_too_long_is_a_server_fault() -> None:
    asker, backend = client(one_by_one(GOOD), delay=5, timeout=0.01)
    with pytest.raises(errors.ServerFault, match=r"no answer within 0\.01 s"):
        await ask(asker)
    assert len(backend.calls) == MAX_TRIES and backend.under_way == 0


async def test_the_time_of_a_call_does_not_count_the_start() -> None:
    class Late(Fake):
        async def ready(self) -> None:
            await asyncio.sleep(0.05)

        async def complete(self, call: Call, mode: Mode) -> Completion:
            # Without any wait, so that nothing but the start could take too long.
            self.calls.append(call)
            return Completion(GOOD)

    backend = Late(script=one_by_one(GOOD))
    asker = Client("fake:m", backend, cache=None, budget=Budget(), limit=8, timeout=0.01)
    assert (await ask(asker)).trouble is None and len(backend.calls) == 1


# ---------------------------------------------------------------- cache


async def test_a_cached_ask_makes_no_call(cache: ReplyCache) -> None:
    fresh, _ = client(one_by_one(INVENTED, GOOD), cache=cache)
    again, backend = client(one_by_one(RuntimeError("must not be called")), cache=cache)
    first = await ask(fresh)
    assert await ask(again) == first
    assert first.usage.replies == 2 and not backend.calls
    assert (again.counters.calls, again.counters.cache_hits) == (0, 2)
    assert again._budget.calls == 0 and again._budget.cost == 0.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplyCache]:
    made = ReplyCache(tmp_path_factory.mktemp("shared"))
    yield made
    made.close()


_TEXTS = st.one_of(
    st.sampled_from([GOOD, INVENTED, "", "{}", '{"quote": null, "reason": "", "answer": "no"}']),
    st.text(max_size=30),
    st.fixed_dictionaries(
        {
            "quote": st.none() | st.text(max_size=20) | st.just("Ann bowed first"),
            "reason": st.text(max_size=20),
            "answer": st.sampled_from(["yes", "no", "neutral"]),
        }
    ).map(json.dumps),
)
_COMPLETIONS = st.builds(
    Completion,
    text=_TEXTS,
    finish_reason=st.sampled_from(["stop", "stop", "length", "refusal"]),
    input_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    cached_tokens=st.none() | st.integers(0, 100),
    first_token=st.none() | st.tuples(st.tuples(st.text(max_size=3), st.floats(-50, 0))),
)


@settings(deadline=None, max_examples=80)
@given(said=st.lists(_COMPLETIONS, min_size=3, max_size=3))
def test_cached_equals_fresh_and_only_what_led_to_a_valid_reply_is_kept(
    shared: ReplyCache, said: list[Completion]
) -> None:
    shared.clear()
    fresh, backend = client(one_by_one(*said), cache=shared)
    bare, _ = client(one_by_one(*said), cache=None)
    first = asyncio.run(ask(fresh))
    assert asyncio.run(ask(bare)) == first
    if first.reply is None:
        again, _ = client(one_by_one(GOOD), cache=shared)
        assert shared.stats().entries == 0
        assert asyncio.run(ask(again)).reply is not None, "a server that is well again is asked"
    else:
        again, unused = client(one_by_one(RuntimeError("must not be called")), cache=shared)
        assert asyncio.run(ask(again)) == first
        assert not unused.calls and again.counters.cache_hits == len(backend.calls)


async def test_an_entry_that_ends_in_no_valid_reply_is_asked_anew(cache: ReplyCache) -> None:
    await ask(client(one_by_one(INVENTED, GOOD), cache=cache)[0])
    cache.prune(-1)
    asker, backend = client(one_by_one(INVENTED, GOOD), cache=cache)
    await ask(asker)
    second = asker._key(backend.calls[1], Mode.JSON_SCHEMA)
    assert cache.remove(second)
    ill, _ = client(one_by_one(""), cache=cache)
    assert (await ask(ill)).trouble == "invalid"
    well, backend = client(one_by_one(GOOD), cache=cache)
    assert (await ask(well)).usage.replies == 1 and len(backend.calls) == 1


@settings(deadline=None, max_examples=30)
@given(
    tokens=st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-50, 0), min_size=1),
)
def test_cached_probabilities_equal_fresh_ones(
    shared: ReplyCache, tokens: dict[str, float]
) -> None:
    shared.clear()
    said = Completion("Yes", "length", 9, 1, None, tuple(tokens.items()))
    fresh, _ = client(one_by_one(said), cache=shared)
    again, unused = client(one_by_one(RuntimeError("must not be called")), cache=shared)
    call = replace(CALL, logprobs=20)
    assert asyncio.run(fresh.first_token(call)) == asyncio.run(again.first_token(call))
    assert not unused.calls


@pytest.mark.parametrize(
    "other",
    [
        {"vote": 1},
        {"seed": 1},
        {"seed": None},
        {"temperature": 0.0},
        {"temperature": None},
        {"max_tokens": 51},
        {"messages": [{"role": "user", "content": "Does Ann bow? "}]},
        {"messages": [{"role": "system", "content": "Does Ann bow?"}]},
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
    others = [{"role": "accepting"}, {"vote": 2}, {"seed": 9}]
    first = await ask(asker, STEADY)
    for other in others:
        assert await ask(asker, replace(STEADY, **other)) == first
    at_once = (ask(asker, replace(STEADY, max_tokens=9, **other)) for other in others)
    await asyncio.gather(*at_once)
    assert len(backend.calls) == 2
    drawn = [replace(CALL, **other) for other in others]
    assert len({asker._key(call, Mode.JSON_SCHEMA) for call in [CALL, *drawn]}) == 3
    read = [replace(call, logprobs=20) for call in drawn]
    assert len({asker._key(call, Mode.JSON_SCHEMA) for call in read}) == 1


async def test_another_model_is_another_question(cache: ReplyCache) -> None:
    await ask(client(one_by_one(GOOD), cache=cache)[0], STEADY)
    for identity in ({"model": "n"}, {"server": "http://other.test"}, {"weights": "ab12"}):
        other = Fake(script=one_by_one(GOOD))
        other.identity = lambda added=identity: {"provider": "fake", "model": "m", **added}  # type: ignore[method-assign,misc]
        asker = Client("fake:m", other, cache=cache, budget=Budget(), limit=1)
        await ask(asker, STEADY)
        assert len(other.calls) == 1, identity


async def test_where_a_call_comes_from_is_no_part_of_its_key(cache: ReplyCache) -> None:
    asker, backend = client(one_by_one(GOOD), cache=cache)
    await ask(asker)
    origin = replace(CALL.origin, record="another", round=3, fields={"story": "x"})
    await ask(asker, replace(CALL, origin=origin))
    assert len(backend.calls) == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"text": None},
        {"text": 5},
        {"finish_reason": "later"},
        {"finish_reason": ["stop"]},
        {"input_tokens": "many"},
        {"first_token": 3},
        {"first_token": [["Yes"]]},
        {"unknown": 1},
    ],
    ids=str,
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
    asker, backend = client(one_by_one(GOOD), delay=0.01, cache=cache if kept else None)
    asked = await asyncio.gather(*(ask(asker) for _ in range(10)))
    assert len(backend.calls) == 1 and asker._budget.calls == 1
    assert all(a == asked[0] for a in asked)


async def under_way(backend: Fake, number: int) -> None:
    """Come back when this call is made, and whoever asks the same waits for it."""
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
    assert all(isinstance(r, Asked) and r.trouble is None for r in results[1:])
    assert len(backend.calls) == 2 and not asker._flights


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
    assert all(isinstance(r, BudgetReached | Asked) for r in results)


async def test_a_budget_of_no_money_stops_paid_models_alone() -> None:
    budget, backend = Budget(max_cost=0), Fake(script=one_by_one(GOOD))
    with pytest.raises(BudgetReached):
        await ask(client(one_by_one(GOOD), budget=budget)[0])
    own = Client("local:m", backend, cache=None, budget=budget, limit=1, price=Price(1.0, 1.0))
    assert (await ask(own)).usage.cost_usd == 0.0 and len(backend.calls) == 1


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


async def test_a_model_without_log_probabilities_is_named() -> None:
    asker, _ = client(one_by_one("Yes"))
    with pytest.raises(errors.UsageError, match=r"fake:m gives no .*--reading structured"):
        await asker.first_token(replace(CALL, logprobs=20))


@pytest.mark.parametrize(
    "said", [Completion("I will not.", "refusal", 9, 4), Completion("", first_token=())]
)
async def test_one_refusal_does_not_condemn_the_model(said: Completion) -> None:
    asker, _ = client(one_by_one(said))
    tokens, usage = await asker.first_token(replace(CALL, logprobs=20))
    assert tokens == {} and usage.replies == 1


# ---------------------------------------------------------------- the probe, over HTTP

KEY = "sk-test-0123456789abcdef"
PLACE = "http://models.test/v1"


class Server:
    """An OpenAI-compatible server behind respx that knows some ways to ask for JSON."""

    def __init__(self, *known: str, reply: str = GOOD, url: str = PLACE) -> None:
        self.known, self.reply = known, reply
        self.bodies: list[dict[str, Any]] = []
        self.router = respx.Router(assert_all_called=False)
        self.router.post(f"{url}/chat/completions").mock(side_effect=self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        if way(body) not in self.known:
            return httpx.Response(400, json={"error": {"message": f"no {way(body)} here"}})
        probe = '{"ready": "yes"}' in body["messages"][-1]["content"]
        text = '{"ready": "yes"}' if probe else self.reply
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if "tools" in body:
            function = {"name": "x", "arguments": text}
            message = {
                "role": "assistant",
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            }
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return httpx.Response(200, json={"choices": [choice], "usage": None})

    @property
    def ways(self) -> list[str]:
        return [way(body) for body in self.bodies]

    def client(self, cache: ReplyCache | None, **settings: Any) -> Client:
        backend = OpenAIBackend("m", post=routed(self.router))
        return Client("openai:m", backend, cache=cache, budget=Budget(), limit=4, **settings)


def way(body: Mapping[str, Any]) -> str:
    if "tools" in body:
        return "tools"
    return {"json_schema": "schema", "json_object": "words"}[body["response_format"]["type"]]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", PLACE)


@pytest.mark.parametrize(
    ("known", "ways"),
    [
        (("schema", "tools", "words"), ["schema", "schema"]),
        (("tools", "words"), ["schema", "tools", "tools"]),
        (("words",), ["schema", "tools", "words", "words"]),
    ],
)
async def test_the_best_way_to_ask_is_found(known: tuple[str, ...], ways: list[str]) -> None:
    server = Server(*known)
    asked = await ask(server.client(None))
    assert asked.trouble is None and server.ways == ways
    assert asked.usage.replies == 1, "the probe is no reply that the verdict rests on"


async def test_the_way_is_remembered_for_the_server_and_model(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Server("tools")
    await ask(first.client(cache))
    second = Server("tools")
    await ask(second.client(cache), replace(CALL, vote=1))
    assert second.ways == ["tools"]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://other.test/v1")
    third = Server("words", url="http://other.test/v1")
    await ask(third.client(cache))
    assert third.ways == ["schema", "tools", "words", "words"]
    await third.client(cache).prepare()
    assert len(third.ways) == 4


async def test_a_server_that_changes_its_way_is_probed_again(cache: ReplyCache) -> None:
    server = Server("schema")
    await server.client(cache).prepare()
    asker = server.client(cache)
    server.known = ("words",)
    asked = await asyncio.gather(*(ask(asker, replace(CALL, vote=vote)) for vote in range(4)))
    assert [one.trouble for one in asked] == [None] * 4
    probes = [body for body in server.bodies if "ready" in body["messages"][-1]["content"]]
    assert [way(body) for body in probes] == ["schema", "schema", "tools", "words"]
    server.bodies.clear()
    await ask(server.client(cache), replace(CALL, vote=9))
    assert server.ways == ["words"], "the new way is remembered"


async def test_a_server_that_refuses_a_prompt_is_probed_again_once() -> None:
    server = Server("schema")
    asker = server.client(None)
    await asker.prepare()
    refusing = httpx.Response(400, json={"error": {"message": "no such words here"}})
    probed = server.answer

    def answer(request: httpx.Request) -> httpx.Response:
        return probed(request) if b"ready" in request.content else refusing

    server.router.post(f"{PLACE}/chat/completions").mock(side_effect=answer)
    for vote in range(3):
        with pytest.raises(errors.BadRequest, match="no such words"):
            await ask(asker, replace(CALL, vote=vote))
    assert server.ways == ["schema", "schema"], "the first probe and one more"


async def test_one_probe_for_all_that_ask_at_once() -> None:
    server = Server("schema")
    asker = server.client(None)
    await asyncio.gather(*(ask(asker, replace(CALL, vote=vote)) for vote in range(5)))
    assert len(server.bodies) == 6


async def test_a_server_that_never_gives_json() -> None:
    with pytest.raises(errors.UsageError, match=r"json_schema: .*tools: .*json: ") as caught:
        await Server().client(None).prepare()
    assert "openai:m" in str(caught.value)


async def test_templates_in_the_record_reach_the_server_as_they_are(cache: ReplyCache) -> None:
    text = "{{ 7*7 }} {% raw %}{{ x }}{% endraw %} {# c #} {0} %s ${y} \\n \u2028"
    server = Server("schema", reply=INVENTED)
    call = Call([{"role": "system", "content": text}, {"role": "user", "content": text}])
    asked = await server.client(cache, reasks=1).ask(call, YesNo, ABOUT)
    assert asked.trouble == "invalid"
    for body in server.bodies[1:]:
        assert [m["content"] for m in body["messages"][:2]] == [text, text]
    assert len(server.bodies) == 3
