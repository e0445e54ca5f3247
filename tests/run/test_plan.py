"""A plan counts the calls that its workflows would make: its least is what a clean run asks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from judge.backends.base import Call, Completion, Method, Prompt
from judge.backends.reading import counted
from judge.configuration import resolve
from judge.errors import UsageError
from judge.model_tables import ListPrice, Price, price_of
from judge.questions.ready_made import builtin
from judge.records import Record
from judge.records.kinds import kind_named
from judge.run.job import Job
from judge.run.models import Models
from judge.run.plan import Plan, PlannedCalls, plan
from judge.run.task import Watcher
from judge.run.validate import validate
from judge.verdict import Usage
from tests.calibration.asking import Answering, judge_of

NORM = {"rule_of_thumb": "Greet.", "story": "Ann greets Bo.", "label": "yes"}
STORY = {"story": "Ann saves a coin. " * 5, "values": ["Thrift--Agree", "Care--Agree"]}
CLEAN = [
    {"when": {"rubric": "incorporation"}, "p_yes": 0.97},
    {"when": {"rubric": "relevance"}, "p_yes": 0.97},
    {"when": {"rubric": "label_correctness"}, "p_yes": 0.97},
    {"p_yes": 0.03},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    script = {"method": "logprobs", "replies": CLEAN}
    (tmp_path / "clean.yaml").write_text(json.dumps(script))
    return tmp_path


def planned(records: list[dict[str, Any]], **flags: Any) -> tuple[Plan, dict[str, Any]]:
    """The plan for these records, and the calls that a run of them made."""
    Path("in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    given = {"model": ("scripted:clean.yaml",), "cache": False, "min_words": 0, **flags}
    settings = resolve(given)
    made = plan(Job(["in.jsonl"]), settings)
    report = validate(Job(["in.jsonl"], silent=True), settings, Watcher())
    return made, report.traffic["scripted:clean.yaml"]


@pytest.mark.parametrize(
    ("record", "check"),
    [(STORY, ("incorporation", "consistency", "implicitness")), (NORM, ("relevance", "leakage"))],
    ids=["story", "norm"],
)
def test_the_least_is_what_a_record_takes_that_is_fine_at_once(
    folder: Path, record: dict[str, Any], check: tuple[str, ...]
) -> None:
    made, asked = planned([record], check=check, repair=True, rounds=2)
    assert made.records == 1 and made.least.replies == asked["calls"] > 0
    assert made.most.replies > made.least.replies and "rewriting" in made.by_check
    unchanged, _ = planned([record], check=check)
    assert unchanged.least.replies == asked["calls"]
    assert not {"rewriting", "incorporation (loop)", "consistency (loop)"} & {*unchanged.by_check}


@pytest.mark.parametrize("method", ["structured", "logprobs"])
@pytest.mark.parametrize("name", [r.name for r in builtin().values() if r.role == "judge"])
async def test_the_calls_of_a_vote_are_those_that_a_judge_makes(name: str, method: Method) -> None:
    rubric = builtin()[name]
    words = sorted({word for question in rubric.first_token or () for word in question.words})

    def answer(call: Call) -> Any:
        return [(word, 1 / len(words)) for word in words] if call.logprobs else "{}"

    judge = judge_of(rubric, answer, method)
    fields: dict[str, Any] = {**STORY, **NORM, "value": "Respect", "predicted": ["Thrift"]}
    fields |= dict.fromkeys(rubric.fields, "Ann greets Bo.")
    kind = next((kind for kind in rubric.kinds if kind_named(kind).needed), "record")
    record = Record("in", 1, {"id": "a", **fields}).of_kind(kind)
    await judge.vote(record)
    calls = cast(Answering, judge.client.backend).asked
    assert [one.messages for one in judge.calls(record)] == [one.messages for one in calls]


@pytest.mark.parametrize("most", [True, False])
def test_a_hidden_state_writes_no_tokens(most: bool) -> None:
    judge = judge_of(builtin()["relevance"], lambda call: 0.9, "logprobs")
    record = Record("in", 1, {"id": "a", **NORM}).of_kind("norm")
    (call,) = judge.calls(record)
    calls = PlannedCalls(most=most)
    calls.add(judge.client, replace(call, layer=-1))
    (usage,), (bound,) = calls.usage.values(), calls.bound.values()
    assert (usage.replies, usage.output_tokens, bound.output_tokens) == (1, 0, 0)
    assert usage.input_tokens > bound.input_tokens > 0


def test_a_letter_of_three_bytes_takes_three_times_the_tokens(folder: Path) -> None:
    """400 letters of Chinese have 800 bytes more than 400 of English: 200 tokens."""
    chinese, english = (
        planned([{**NORM, "story": sign * 400}], check=("relevance",))[0].most.input_tokens
        for sign in ("\u4e2d", "a")
    )
    assert chinese - english == 200
    call = Call(Prompt([{"role": "user", "content": "\u4e2d" * 8}]), max_tokens=9)
    unreported = counted(call, Completion("\u4e2d" * 4), call.sent(decides=False))
    assert (unreported.input_tokens, unreported.output_tokens) == (24 // 4 + 1, 12 // 4)


def test_what_is_counted_without_a_model_plans_no_call(folder: Path) -> None:
    made, asked = planned([STORY], check=("length",), min_words=400)
    assert made.most.replies == 0 == asked["calls"] and not made.by_check


def test_the_most_has_every_round_every_vote_and_the_strong_model(folder: Path) -> None:
    given = {"check": ("implicitness",), "method": "structured", "repair": True, "rounds": 2}
    made, _ = planned([STORY], **given)
    # Asked, rewritten and asked again, twice.
    assert made.by_check["implicitness (loop)"] == {"least": 1, "most": 3}
    assert made.by_check["rewriting"] == {"least": 0, "most": 2}
    norm, _ = planned([NORM], check=("abstraction",), method="structured", votes=3)
    assert not norm.by_check, "the record has no value, so nothing is asked of it"
    valued = {**NORM, "value": "Respect"}
    norm, _ = planned([valued], check=("abstraction",), method="structured", votes=3)
    assert norm.by_check["abstraction (loop)"] == {"least": 2, "most": 3}
    # Of five records one takes the third vote, and replies four times as long.
    five = [{**valued, "id": n, "value": f"Respect {n}"} for n in range(5)]
    norm, _ = planned(five, check=("abstraction",), method="structured", votes=3)
    assert [one.replies for one in (norm.least, norm.likely, norm.most)] == [10, 11, 15]
    assert norm.least.output_tokens == 10, "one token a reply"
    ten = norm.usual.input_tokens / norm.usual.replies * 10
    assert norm.least.input_tokens == pytest.approx(ten / 2, rel=0.01), "8 characters, not 4"
    assert 1000 < ten < 10000
    # The check does not show the story, so it puts the same question about each of these.
    five = [{**valued, "id": n, "story": f"{NORM['story']} {n}"} for n in range(5)]
    same, _ = planned(five, check=("abstraction",), method="structured", votes=3)
    assert [one.replies for one in (same.least, same.likely, same.most)] == [2, 2, 3]
    assert same.by_check["abstraction (loop)"] == {"least": 2, "most": 3}
    assert norm.likely.output_tokens == 2 * norm.usual.output_tokens
    assert made.likely.replies == 2 and made.most.replies == 5
    (folder / "cheap.yaml").write_text((folder / "clean.yaml").read_text())
    cascade, _ = planned([valued], check=("abstraction",), cheap_model="scripted:cheap.yaml")
    assert cascade.least.replies == 1 and cascade.most.replies == 2


def test_the_most_has_the_checks_behind_one_that_may_pass_late(folder: Path) -> None:
    record = {**NORM, "value": "Respect", "background": "People greet."}
    given = {"workflow": "normad-filter"}
    voted, _ = planned([record], **given, method="structured", votes=3)
    assert voted.least.replies == 2 and voted.most.replies == 3 * 3
    # Relevance, twice rewritten and asked again, then the other two filters; the final judge asks
    # about relevance in the words of the last round.
    repaired, _ = planned([record], **given, repair=True, rounds=2)
    assert repaired.most.replies == 1 + 2 * 2 + 2


def test_a_record_that_cannot_be_asked_about_is_counted_aside(folder: Path) -> None:
    made, _ = planned([{"nothing": "to judge"}, NORM], check=("relevance",))
    assert (made.records, made.bad.records) == (1, 1)


def test_the_dearest_reply_of_a_model_that_thinks_has_room_for_thoughts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (folder / "in.jsonl").write_text(json.dumps({"mail": "Thank you."}) + "\n")

    def tokens(model: str, **more: Any) -> int:
        given = {"ask": "Is it polite?", "model": (model,), "cache": False, **more}
        return plan(Job(["in.jsonl"]), resolve(given)).most.output_tokens

    assert tokens("openai:o3") == tokens("openai:gpt-4o") + 8000
    assert tokens("openai:o3", max_tokens=77) == 77


def walk(usage: dict[str, Usage]) -> PlannedCalls:
    calls = PlannedCalls(most=False)
    calls.usage = calls.bound = usage
    return calls


def test_a_likely_cost_is_unknown_where_the_least_or_the_most_is() -> None:
    """The record that passes asks a later check of a model without a price."""
    priced, unpriced = Usage(2, 200, 20, 0.5), Usage(1, 100, 10, None)
    for passing, failing, cost in (
        ({"relevance": priced}, {"relevance": priced + priced}, 0.5 + 0.2 * 0.5),
        (
            {"relevance": Usage(1, 100, 10, 0.25), "label": unpriced},
            {"relevance": priced + priced},
            None,
        ),
        ({"relevance": priced}, {"relevance": priced, "label": unpriced}, None),
    ):
        made = Plan()
        made.add(walk(passing), walk(passing), walk(failing))
        assert made.likely.cost_usd == (cost and pytest.approx(cost))


@pytest.mark.parametrize(
    ("prices", "costs"),
    [
        # A record asks the cheap model; at the most the strong one too, which is reckoned for one
        # record in five.
        ({"cheap": 1, "strong": 10}, (1, 3, 11)),
        ({"cheap": 1}, (1, None, None)),
        ({"strong": 10}, (None, None, None)),
        ({}, (None, None, None)),
    ],
    ids=["both", "cheap", "strong", "none"],
)
def test_a_cost_is_known_where_every_model_that_may_be_asked_has_a_price(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    prices: dict[str, int],
    costs: tuple[float | None, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (folder / "in.jsonl").write_text(json.dumps(NORM) + "\n")
    tables = (
        f'[prices."openai:{name}"]\ninput = {price}\noutput = 0\n' for name, price in prices.items()
    )
    (folder / "judge.toml").write_text("".join(tables))
    given = {"model": ("openai:strong",), "cheap_model": "openai:cheap", "method": "logprobs"}
    flags = {"check": ("relevance",), "cache": False, "trust_config": True, **given}
    made = plan(Job(["in.jsonl"]), resolve(flags))
    tokens = made.usual.input_tokens
    assert made.most.input_tokens == 2 * tokens > 0
    assert (made.least.cost_usd is None) == (costs[0] is None)
    for usage, cost in zip((made.usual, made.likely, made.most), costs, strict=True):
        expected = None if cost is None else pytest.approx(cost * tokens / 1e6)
        assert usage.cost_usd == expected


def test_the_least_is_never_more_than_what_a_run_takes(folder: Path) -> None:
    """A panel that fails at once asks fewer votes than one that passes; equal records are asked
    once, also without a cache; replies are shorter than usual ones."""
    made, asked = planned([NORM] * 3, check=("relevance",))
    assert made.least.replies == asked["calls"] == 1
    replies = [{"reply": {"quote": "Ann greets Bo.", "reason": "r", "answer": "no"}}]
    (folder / "clean.yaml").write_text(json.dumps({"replies": replies}))
    records = [{**NORM, "id": n, "value": "Respect"} for n in range(3)]
    flags = {"check": ("relevance", "abstraction", "leakage"), "method": "structured", "votes": 3}
    for settings in (flags, {**flags, "votes": 1}):
        made, asked = planned(records, **settings)
        assert 0 < made.least.replies <= asked["calls"]
        assert made.least.input_tokens <= asked["input_tokens"]
        assert made.least.output_tokens <= asked["output_tokens"]
    cached = {**flags, "cache": True, "cache_dir": folder / "cache"}
    made, asked = planned(records, **cached)
    assert 0 < made.least.replies <= asked["calls"]


def test_a_list_price_is_taken_at_the_providers_own_address_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (folder / "in.jsonl").write_text(json.dumps(NORM) + "\n")

    def most(model: str = "openai:gpt-4o", **more: Any) -> Plan:
        flags = {"check": ("relevance",), "cache": False, "model": (model,), **more}
        return plan(Job(["in.jsonl"]), resolve(flags))

    made = most()
    usage = made.most
    assert usage.cost_usd == pytest.approx(
        (usage.input_tokens * 2.5 + usage.output_tokens * 10) / 1e6
    )
    assert cast(ListPrice, made.prices["openai:gpt-4o"]).date.year == 2026
    assert most("openai:gpt-4o-of-mine").unpriced == ("openai:gpt-4o-of-mine",)
    own = {"openai:gpt-4o": Price(input=0, output=1)}
    assert most(prices=own).prices == own
    claude = "anthropic:claude-sonnet-4-5"
    listed = price_of(f"langchain:{claude}", {}, None)
    assert listed is not None and (listed.input, listed.output) == (3, 15)
    for url, key_env, unpriced in (
        ("https://api.anthropic.com/v1", None, ()),
        ("http://127.0.0.1:9/v1", None, (claude,)),
        ("http://127.0.0.1:9/api.anthropic.com", None, (claude,)),
        ("http://127.0.0.1:9/v1", "MISSING_KEY", (claude,)),
    ):
        servers = {"anthropic": {"url": url, "key_env": key_env}}
        assert most(claude, servers=servers).unpriced == unpriced
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert most().unpriced == ("openai:gpt-4o",)
    assert most(prices=own).prices == own
    with pytest.raises(UsageError, match="--max-cost needs the price of openai:gpt-4o"):
        Models.of(resolve({"model": ("openai:gpt-4o",), "max_cost": 1.0, "cache": False}))
