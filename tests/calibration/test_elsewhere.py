"""A shipped check is asked only if it holds on texts by authors who taught it nothing."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_profiles import judge_profile, profile

from judge.configuration import resolve
from judge.errors import UsageError
from judge.judging.classifiers import Logistic
from judge.profile import JudgeProfile
from judge.run.panels import Resources
from judge.run.profiles import profile_key, shipped

DOCS = Path(__file__).parents[2] / "docs"
TURNED = Logistic(questions=(0,), answers=("yes", "no"), weights=((-1,), (0,)), intercepts=(0, 0))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """docs/make_calibration.py."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("make_calibration")


def measured(low: float | None) -> dict[str, Any]:
    return {"kappa": {"value": 0.3, "low": low, "high": 0.6}}


@pytest.mark.parametrize(
    ("here", "there", "looks", "guesses"),
    [
        (0.1, 0.1, True, False),
        (0.1, 0.0, True, True),
        (0.1, -0.1, True, True),
        (0.1, None, True, True),
        (-0.1, 0.1, True, True),
        (0.1, 0.1, False, True),
    ],
)
def test_a_judge_must_hold_here_and_elsewhere(
    here: float, there: float | None, looks: bool, guesses: bool
) -> None:
    found = {"measures": measured(here), "controls": {"looks": looks}}
    judge = judge_profile(elsewhere=measured(there), **found)
    assert bool(judge.why_guess(unmeasured=True)) is guesses
    assert bool(judge.why_guess(unmeasured=False)) is (guesses and there is not None)
    assert judge_profile(**found).why_guess(unmeasured=True), "what was not measured is not shown"


def test_a_judge_with_one_answer_to_all_guesses() -> None:
    """Its kappa is 0, and has no interval."""
    judge = judge_profile(measures={"kappa": {"value": 0, "low": None, "high": None}})
    assert judge.why_guess(unmeasured=False)


def test_no_shipped_check_is_asked_on_figures_of_its_own_hand_alone(script: Any) -> None:
    others = {(unit.name, check) for unit in script.ELSEWHERE for check in unit.checks}
    ours = {part.checks[0] for part in script.UNITS if part.shipped and not part.public}
    public = {part.checks[0] for part in script.UNITS if part.shipped and part.public}
    asked = []
    for check, (judge,) in shipped().judges.items():
        if judge.elsewhere:
            apart = (judge.elsewhere["set"], check) in others
            assert apart or (
                check in public and judge.elsewhere["kappa"] == judge.measures["kappa"]
            )
            assert apart or check not in ours - public
            assert judge.elsewhere["labels"] >= 84
        if judge.why_guess(unmeasured=True) is None:
            asked.append(check)
            assert judge.measures["kappa"]["low"] > 0 and judge.elsewhere["kappa"]["low"] > 0
    # The page has the same figures, since the script makes both.
    page = (DOCS / "evidence" / "calibration.md").read_text("utf-8")
    assert "\n".join(script._elsewhere_table(script.shipped_profile())) in page
    assert asked and "consistency" not in asked


@pytest.fixture
def fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Resources, JudgeProfile]:
    """A judge whose first tokens say the opposite of what its profile reads from them."""
    monkeypatch.chdir(tmp_path)
    replies = [{"when": {"contains": "bows"}, "p_yes": 0.1}, {"p_yes": 0.9}]
    Path("m.yaml").write_text(json.dumps({"method": "logprobs", "replies": replies}))
    rows = []
    for n in range(60):
        deed, answer = (("bows", "yes"), ("sits", "no"))[n % 2]
        given = "no" if n < 6 else answer
        story = {"story": f"Ann {deed} on day {n}.", "rule_of_thumb": "Bow."}
        rows.append({"id": f"{n}", **story, "labels": {"relevance": given}})
    Path("theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = "scripted:m.yaml"
    resources = Resources.of(resolve({"model": (model,), "profile": "none", "cache": False}))
    bound = profile_key(resources.judge("relevance", model), 1, 0.0)
    found = {"measures": measured(0.1), "controls": {"looks": True}}
    return resources, judge_profile(bound, combination=TURNED, **found)


async def test_the_shipped_judge_is_held_fixed_on_the_other_hands_set(
    script: Any, fitted: tuple[Resources, JudgeProfile], monkeypatch: pytest.MonkeyPatch
) -> None:
    resources, judge = fitted
    theirs = script.DataSet("theirs", ("{data}/theirs.jsonl",), ("relevance",))
    monkeypatch.setattr(script, "ELSEWHERE", (theirs,))
    made = await script.elsewhere(profile(judge), ["relevance"], Path(), resources)
    (found,) = made.judges
    assert found.elsewhere["kappa"]["value"] == pytest.approx(0.9)
    assert found.why_guess(unmeasured=True) is None
    assert (found.elsewhere["set"], found.elsewhere["labels"]) == ("theirs", 60)
    assert found.classifier == TURNED
    assert found.fingerprint == judge.fingerprint, "no verdict changes by what was measured"
    # Of a check that is not named nothing is measured.
    same = await script.elsewhere(profile(judge), ["consistency"], Path(), resources)
    assert same == profile(judge)
    monkeypatch.setattr(script, "UNITS", (replace(theirs, shipped=True),))
    with pytest.raises(UsageError, match="relevance was fitted to theirs"):
        await script.elsewhere(profile(judge), ["relevance"], Path(), resources)
