"""The cheap judge keeps what it is sure of; the panel is asked about the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.backends.base import Mode
from judge.backends.scripted import ScriptedBackend
from judge.errors import UsageError
from judge.judging.judge import Judge
from judge.judging.panel import Panel, take_votes
from judge.judging.reading import Reader
from judge.rubric import builtin
from judge.run.setup import Bound, Setup
from judge.settings import resolve
from judge.verdict import Check, Verdict

from .conftest import Entry, Take, entry
from .test_majority import CLEAN, SUBJECT, VALUES, Models, models
from .test_story import LOOPS, RECORD, REWRITE, SPEECH, speeches

__all__ = ["models"]  # the fixture
ONE, TWO = (value.text for value in VALUES)
FOUND = [{"character": "Bo", "quote": "Bo left the room."}]


def chances(*p: float) -> list[Entry]:
    """What the cheap judge reads for each value: P(yes), and for consistency a yes fails."""
    return [entry(p_yes=p, contains=v.text) for p, v in zip(p, VALUES, strict=True)]


def reply(*numbers: int, against: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "values": [
            {"value": n, "reason": "", "speeches": FOUND if n in against else []} for n in numbers
        ]
    }


async def cascade(
    models: Models, cheap: list[Entry], strong: list[Entry], margin: float = 0.3, **panel: Any
) -> tuple[Check, int]:
    """The consistency check, and how often the strong judge was asked."""
    rubric, client = builtin()["consistency"], models.client(*strong)
    screen = Judge(
        rubric, models.client(*cheap, name="b"), "probability", reader=Reader(margin=margin)
    )
    asked = Panel((Judge(rubric, client, "structured"),), screen=screen, **panel)
    check = await take_votes(asked, SUBJECT, by="steering")
    return check, client.counters.calls


async def test_what_the_cheap_judge_is_sure_of_never_reaches_the_panel(models: Models) -> None:
    check, calls = await cascade(models, chances(0.1, 0.9), [], votes=3)
    assert calls == 0
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.FAIL}
    assert [(v.model, v.verdict) for v in check.votes] == [("scripted:b", Verdict.FAIL)]
    assert check.probability == pytest.approx(0.1)
    assert [(f.value, f.verdict) for f in check.bearing()] == [
        (VALUES[0].text, Verdict.PASS),
        (VALUES[1].text, Verdict.FAIL),
    ]
    assert check.usage.replies == 2


async def test_only_the_other_values_are_put_to_the_panel(models: Models) -> None:
    check, calls = await cascade(
        models, chances(0.1, 0.6), [entry("consistency", reply(2, against=(2,)))], votes=3
    )
    assert calls == 2, "two votes of three agree"
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.FAIL}
    cheap, *panel = check.votes
    assert (cheap.model, cheap.verdict) == ("scripted:b", Verdict.ABSTAIN)
    assert cheap.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.ABSTAIN}
    assert [vote.verdicts() for vote in panel] == [{TWO: Verdict.FAIL}] * 2
    # Of value 2 the words of the panel count, not what the cheap judge left open.
    assert [(f.value, f.quote) for f in check.bearing()] == [
        (VALUES[0].text, None),
        (VALUES[1].text, "Bo left the room."),
    ]
    assert check.probability is None, "one value was not settled by a probability"
    assert check.usage.replies == 4


@pytest.mark.parametrize(("margin", "asked"), [(0.0, []), (0.05, [2]), (0.3, [2]), (0.45, [1, 2])])
async def test_the_margin_says_how_sure_is_sure(
    models: Models, margin: float, asked: list[int]
) -> None:
    strong = [entry("consistency", reply(*asked))]
    check, calls = await cascade(models, chances(0.1, 0.54), strong, margin)
    assert calls == bool(asked)
    found = check.votes[0].verdicts()
    left = [value for value, verdict in found.items() if verdict is Verdict.ABSTAIN]
    assert left == [VALUES[n - 1].text for n in asked]


async def test_what_the_panel_leaves_undecided_is_not_explained_by_the_cheap_judge(
    models: Models,
) -> None:
    strong = [
        entry("consistency", reply(2, against=(2,)), vote=0),
        entry("consistency", reply(2), vote=1),
    ]
    check, _ = await cascade(models, chances(0.1, 0.6), strong, votes=2)
    assert check.verdicts() == {ONE: Verdict.PASS, TWO: Verdict.ABSTAIN}
    assert [finding.value for finding in check.bearing()] == [ONE]


async def test_a_cheap_judge_that_is_lost_leaves_everything_to_the_panel(models: Models) -> None:
    strong = [entry("consistency", reply(1, 2))]
    check, calls = await cascade(models, [entry(error="bad-request")], strong)
    assert (check.verdict, calls) == (Verdict.PASS, 1)
    assert [vote.verdict for vote in check.votes] == [Verdict.ERROR, Verdict.PASS]


async def test_a_record_as_a_whole_is_screened_too(models: Models) -> None:
    rubric = builtin()["leakage"]
    for p, calls in ((0.1, 0), (0.4, 1)):
        client = models.client(entry("leakage", CLEAN))
        cheap = models.client(entry(p_yes=p), name="b")
        screen = Judge(rubric, cheap, "probability", reader=Reader(margin=0.3))
        panel = Panel((Judge(rubric, client, "structured"),), screen=screen)
        check = await take_votes(panel, SUBJECT, by="steering")
        assert (check.verdict, client.counters.calls) == (Verdict.PASS, calls)


# ---------------------------------------------------------------- in a workflow


@pytest.fixture
def cheap(tmp_path: Path) -> Any:
    """Names a cheap model that answers from this script."""

    def made(*script: Entry) -> str:
        path = tmp_path / "cheap.yaml"
        path.write_text(yaml.safe_dump({"replies": list(script)}), "utf-8")
        return f"scripted:{path}"

    return made


SURE = [entry("incorporation", p_yes=0.95), entry(p_yes=0.05)]


async def test_steering_and_accepting_are_screened_alike(take: Take, cheap: Any) -> None:
    taken = await take(RECORD, [], min_words=5, cheap_model=cheap(*SURE))
    assert taken.judgement.verdict is Verdict.PASS
    asked = [(call.origin.rubric, call.role) for call in taken.calls]
    assert sorted(set(asked)) == [
        ("consistency", "accepting"),
        ("consistency", "steering"),
        ("implicitness", "steering"),
        ("incorporation", "accepting"),
        ("incorporation", "steering"),
    ]
    assert len(asked) == 5 * 2 == taken.judgement.usage.replies
    assert all(call.logprobs for call in taken.calls)


async def test_the_strong_judge_finds_the_words_that_a_rewriter_needs(
    take: Take, cheap: Any
) -> None:
    faulty = entry("consistency", p_yes=0.95, contains=SPEECH)
    script = [
        entry("consistency", speeches(1, asked=(1, 2)), role="locating"),
        entry(LOOPS["consistency"][0], REWRITE),
    ]
    taken = await take(RECORD, script, min_words=5, cheap_model=cheap(faulty, *SURE))
    assert len(taken.asked("consistency", "locating")) == 1
    assert [edit.before for edit in taken.judgement.edits] == [SPEECH]
    assert taken.judgement.verdict is Verdict.PASS


# ---------------------------------------------------------------- setting it up


@pytest.fixture
def bind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", "replies: []"), ("b", "replies: []"), ("c", "replies: [{}]")):
        (tmp_path / f"{name}.yaml").write_text(text)

    def made(**settings: Any) -> Bound:
        given = {"model": ("scripted:a.yaml",), "cache": False, **settings}
        return Setup.of(resolve(given)).bound("story")

    return made


@pytest.mark.parametrize("said", ["without", "refused"])
async def test_a_cheap_model_without_log_probabilities_is_refused_before_the_first_record(
    bind: Any, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    answer = ScriptedBackend.complete

    async def complete(self: ScriptedBackend, call: Any, mode: Mode) -> Any:
        if said == "refused":  # the script has no reply: a bad request, as a server would say
            return await answer(self, call, mode)
        return replace(await answer(self, replace(call, logprobs=None), mode), first_token=None)

    monkeypatch.setattr(ScriptedBackend, "complete", complete)
    name = "scripted:b.yaml" if said == "refused" else "scripted:c.yaml"
    setup = Setup.of(resolve({"model": ("scripted:a.yaml",), "cache": False, "cheap_model": name}))
    monkeypatch.setattr(setup.client(name).backend, "modes", (Mode.JSON_SCHEMA, Mode.TOOLS))
    with pytest.raises(UsageError, match=rf"--cheap-model {name}: .*no log-probabilities"):
        await setup.prepare()
