from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.backends.scripted import ScriptedBackend
from judge.errors import Denied
from judge.judging.client import Client
from judge.judging.judge import Judge, Sampling
from judge.judging.limits import Budget, BudgetReached
from judge.judging.panel import Panel, take_votes
from judge.records import Value
from judge.rubric import builtin
from judge.subject import Subject
from judge.verdict import Finding, Judgement, Verdict, Vote
from judge.voting import Rule, decide

from .conftest import Entry, entry

STORY = "An shook her head. Bo left the room."
VALUES = tuple(Value.parse(f"{s}--Agree") for s in ("one", "two"))
SUBJECT = Subject("s", "story", {"story": STORY}, "abcd1234", VALUES)
LEAK = {"leaks": [{"quote": "Bo left the room.", "kind": "place"}]}
CLEAN: dict[str, Any] = {"leaks": []}
LOST = {"leaks": "none"}


class Models:
    """Scripted clients, and panels of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def client(self, *script: Entry, name: str = "a", max_calls: int | None = None) -> Client:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"replies": list(script)}), "utf-8")
        backend = ScriptedBackend(str(path))
        budget = Budget(max_calls=max_calls)
        return Client(f"scripted:{name}", backend, cache=None, budget=budget, limit=8, reasks=0)

    @staticmethod
    def panel(
        *clients: Client, rubric: str = "leakage", reading: Any = "structured", **more: Any
    ) -> Panel:
        judges = tuple(Judge(builtin()[rubric], client, reading) for client in clients)
        return Panel(judges=judges, **more)


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


class Drawn(Judge):
    """A judge whose vote on each value is drawn beforehand."""

    said: ClassVar[list[list[Verdict]]] = []

    async def vote(self, subject: Subject, **more: Any) -> Vote:
        index = more["vote"]
        evidence = tuple(
            Finding(value=subject.value(n), verdict=self.said[index][n - 1])
            for n in more["numbers"]
        )
        return Vote(model=f"m:{index}", verdict=Verdict.ABSTAIN, evidence=evidence)


VERDICTS = st.sampled_from([Verdict(v) for v in ("pass", "fail", "abstain", "unreadable", "error")])


@settings(deadline=None)
@given(
    said=st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=7),
    rule=st.sampled_from(["majority", "unanimous", "any"]),
    apart=st.booleans(),
)
def test_early_stopping_gives_what_all_votes_give_and_the_line_recounts_it(
    said: list[Any], rule: Rule, apart: bool
) -> None:
    Drawn.said = said
    judge = Drawn(builtin()["consistency"], cast(Client, None), "structured", apart=apart)
    checks = [
        asyncio.run(
            take_votes(Panel((judge,), len(said), rule, all_votes), SUBJECT, by="accepting")
        )
        for all_votes in (True, False)
    ]
    expected = {
        value.text: decide([vote[place] for vote in said], len(said), rule)
        for place, value in enumerate(VALUES)
    }
    for check in checks:
        read = Judgement.model_validate_json(
            Judgement(verdict=check.verdict, checks=(check,)).as_bytes()
        )
        assert check.verdicts() == read.checks[0].verdicts() == expected


def by_vote(*replies: dict[str, Any]) -> list[Entry]:
    return [entry("leakage", reply, vote=n) for n, reply in enumerate(replies)]


@pytest.mark.parametrize(
    ("replies", "rule", "verdict", "asked"),
    [
        ((LEAK, CLEAN, LEAK), "majority", Verdict.FAIL, 3),
        ((CLEAN, LEAK, LOST), "majority", Verdict.ABSTAIN, 3),
        ((CLEAN, LOST, CLEAN), "majority", Verdict.PASS, 3),
        ((LOST, LOST, LOST), "majority", Verdict.UNREADABLE, 3),
        ((CLEAN, LEAK, CLEAN), "unanimous", Verdict.ABSTAIN, 2),
        ((CLEAN, CLEAN, CLEAN), "unanimous", Verdict.PASS, 3),
        ((CLEAN, LEAK, CLEAN), "any", Verdict.FAIL, 2),
        ((CLEAN, CLEAN, CLEAN), "any", Verdict.PASS, 3),
    ],
)
async def test_the_rules(
    models: Models, replies: tuple[dict[str, Any], ...], rule: Rule, verdict: Verdict, asked: int
) -> None:
    panel = models.panel(models.client(*by_vote(*replies)), votes=3, rule=rule)
    check = await take_votes(panel, SUBJECT, by="steering")
    assert (check.verdict, len(check.votes)) == (verdict, asked)
    assert check.usage.replies == asked


async def test_a_tie_of_two_models_abstains_whoever_comes_first(models: Models) -> None:
    one, other = models.client(*by_vote(CLEAN)), models.client(*by_vote(LEAK), name="b")
    for clients in ((one, other), (other, one)):
        check = await take_votes(models.panel(*clients), SUBJECT, by="steering")
        assert check.verdict is Verdict.ABSTAIN
        assert [vote.model for vote in check.votes] == [client.spec for client in clients]


async def test_models_take_turns_and_votes_differ_in_their_seed(models: Models) -> None:
    clients = [models.client(entry("leakage", CLEAN), name=name) for name in "ab"]
    sampling = Sampling(0.7, 100)
    panel = models.panel(*clients, votes=2, all_votes=True, sampling=sampling)
    check = await take_votes(panel, SUBJECT, by="steering")
    assert [(v.model, v.seed, v.temperature) for v in check.votes] == [
        ("scripted:a", 100, 0.7),
        ("scripted:b", 100, 0.7),
        ("scripted:a", 101, 0.7),
        ("scripted:b", 101, 0.7),
    ]


def opposed(*numbers: int) -> dict[str, Any]:
    found = [{"character": "Bo", "quote": "Bo left the room."}]
    return {
        "values": [
            {"value": n, "reason": "", "speeches": found if n in numbers else []} for n in (1, 2)
        ]
    }


async def test_each_value_is_voted_on_by_itself(models: Models) -> None:
    script = [
        entry("consistency", reply, vote=n)
        for n, reply in enumerate([opposed(1), opposed(1, 2), opposed()])
    ]
    panel = models.panel(models.client(*script), rubric="consistency", votes=3)
    check = await take_votes(panel, SUBJECT, by="steering")
    assert len(check.votes) == 3
    assert list(check.verdicts().values()) == [Verdict.FAIL, Verdict.PASS]
    # One finding a value and quote, and only those that say what the vote came to.
    assert [(f.value, f.verdict, f.quote) for f in check.bearing()] == [
        (VALUES[0].text, Verdict.FAIL, "Bo left the room."),
        (VALUES[1].text, Verdict.PASS, None),
    ]


async def test_a_lost_vote_says_why(models: Models) -> None:
    panel = models.panel(models.client(entry("leakage", error="context-exceeded")))
    check = await take_votes(panel, SUBJECT, by="steering")
    assert check.verdict is Verdict.ERROR
    assert check.reason is not None and check.reason.startswith("context-exceeded: ")
    panel = models.panel(models.client(entry("leakage", text="{", finish_reason="length")))
    check = await take_votes(panel, SUBJECT, by="steering")
    assert check.verdict is Verdict.UNREADABLE
    assert check.reason is not None and check.reason.startswith("truncated: ")


async def test_what_concerns_the_whole_run_is_no_vote(models: Models) -> None:
    with pytest.raises(Denied):
        panel = models.panel(models.client(entry(error="denied")), votes=3)
        await take_votes(panel, SUBJECT, by="steering")
    with pytest.raises(BudgetReached):
        panel = models.panel(models.client(*by_vote(CLEAN, LEAK, CLEAN), max_calls=2), votes=3)
        await take_votes(panel, SUBJECT, by="steering")


async def test_probabilities_are_averaged_over_judges_and_the_weakest_value_counts(
    models: Models,
) -> None:
    clients = []
    for name, chances in (("a", (0.1, 0.4)), ("b", (0.2, 0.45))):
        script = [
            entry("consistency", p_yes=p, contains=value.text)
            for p, value in zip(chances, VALUES, strict=True)
        ]
        clients.append(models.client(*script, name=name))
    panel = models.panel(*clients, rubric="consistency", reading="probability", votes=3)
    check = await take_votes(panel, SUBJECT, by="steering")
    assert len(check.votes) == 2, "a reading's votes do not differ, so each judge gives one"
    assert check.verdict is Verdict.PASS
    assert check.probability == pytest.approx(1 - (0.4 + 0.45) / 2)
    assert check.usage.replies == 4
