from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from clients import scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.graphs.values import Value

from judge.judgement import Judgement
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.panel import Panel
from judge.questions.ready_made import builtin
from judge.records import Record
from judge.verdict import Answer, Verdict, Vote
from judge.voting import decide

from .conftest import Entry, entry

STORY = "An shook her head. Bo left the room."
VALUES = tuple(Value.parse(f"{s}--Agree") for s in ("one", "two"))
SUBJECT = Record(
    "s.jsonl", 1, {"story": STORY, "values": [value.text for value in VALUES]}
).of_kind("story")
LEAK = {"leaks": [{"quote": "Bo left the room.", "kind": "place"}]}
CLEAN: dict[str, Any] = {"leaks": []}
LOST = {"leaks": "none"}


class Models:
    """Scripted clients, and panels of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def client(self, *script: Entry, name: str = "a") -> Client:
        return scripted(self.folder, *script, name=name)

    @staticmethod
    def panel(
        *clients: Client, rubric: str = "leakage", method: Any = "structured", **more: Any
    ) -> Panel:
        judges = tuple(Judge(builtin()[rubric], client, method) for client in clients)
        return Panel(builtin()[rubric], judges, **more)


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


class Drawn(Judge):
    """A judge whose vote on each value is drawn beforehand."""

    said: ClassVar[list[list[Verdict]]] = []

    async def vote(self, record: Record, **more: Any) -> Vote:
        index = more["vote"]
        evidence = tuple(
            Answer(value=record.entry("values", n), verdict=self.said[index][n - 1])
            for n in more["numbers"]
        )
        return Vote(model=f"m:{index}", verdict=Verdict.ABSTAIN, evidence=evidence)


VERDICTS = st.sampled_from([Verdict(v) for v in ("pass", "fail", "abstain", "unreadable", "error")])


@settings(deadline=None)
@given(
    said=st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=7), per_entry=st.booleans()
)
def test_early_stopping_gives_what_all_votes_give_and_the_line_recounts_it(
    said: list[Any], per_entry: bool
) -> None:
    Drawn.said = said
    judge = Drawn(builtin()["consistency"], cast(Client, None), "structured", per_entry=per_entry)
    checks = [
        asyncio.run(Panel(judge.rubric, (judge,), len(said), all_votes).check(SUBJECT, by="final"))
        for all_votes in (True, False)
    ]
    expected = {
        value.text: decide([(vote[place], None) for vote in said], len(said))[0]
        for place, value in enumerate(VALUES)
    }
    for check in checks:
        read = Judgement.model_validate_json(
            Judgement(verdict=check.verdict, checks=(check,)).model_dump_json()
        )
        assert check.verdicts() == read.checks[0].verdicts() == expected


def by_vote(*replies: dict[str, Any]) -> list[Entry]:
    return [entry("leakage", reply, vote=n) for n, reply in enumerate(replies)]


async def test_a_tie_of_two_models_abstains_whoever_comes_first(models: Models) -> None:
    one, other = models.client(*by_vote(CLEAN)), models.client(*by_vote(LEAK), name="b")
    for clients in ((one, other), (other, one)):
        check = await models.panel(*clients).check(SUBJECT, by="loop")
        assert check.verdict is Verdict.ABSTAIN
        assert [vote.model for vote in check.votes] == [client.spec for client in clients]


async def test_a_lost_vote_says_why(models: Models) -> None:
    panel = models.panel(models.client(entry("leakage", error="context-exceeded")))
    check = await panel.check(SUBJECT, by="loop")
    assert check.verdict is Verdict.ERROR
    assert check.reason is not None and check.reason.startswith("context-exceeded: ")
    panel = models.panel(models.client(entry("leakage", text="{", finish_reason="length")))
    check = await panel.check(SUBJECT, by="loop")
    assert check.verdict is Verdict.UNREADABLE
    assert check.reason is not None and check.reason.startswith("truncated: ")


async def test_probabilities_are_averaged_over_judges_and_the_weakest_value_counts(
    models: Models,
) -> None:
    clients = []
    for name, chances in (("a", (0.1, 0.4)), ("b", (0.2, 0.45))):
        script = [
            entry("consistency", words={"against": p, "neither": 1 - p}, contains=value.text)
            for p, value in zip(chances, VALUES, strict=True)
        ]
        clients.append(models.client(*script, name=name))
    panel = models.panel(*clients, rubric="consistency", method="logprobs", votes=3)
    check = await panel.check(SUBJECT, by="loop")
    assert len(check.votes) == 2, "a reading's votes do not differ, so each judge gives one"
    assert check.verdict is Verdict.PASS
    assert check.probability == pytest.approx(1 - (0.4 + 0.45) / 2)
    assert check.usage.replies == 4
