"""The profiles that come with the package fit the rubrics that come with it."""

from __future__ import annotations

import pytest

from judge.judging.reading import Reader
from judge.profiles import JudgeProfile, shipped
from judge.rubric import builtin
from judge.run.setup import DEFAULT_MODEL
from judge.weights import catalog

JUDGING = sorted(name for name, rubric in builtin().items() if rubric.role == "judge")


def of(check: str) -> JudgeProfile:
    (profile,) = shipped().judges[check]
    return profile


def test_every_judging_rubric_has_one() -> None:
    assert sorted(shipped().judges) == JUDGING


@pytest.mark.parametrize("check", JUDGING)
def test_it_is_bound_to_the_rubric_as_it_is_and_to_the_default_weights(check: str) -> None:
    bond = of(check).bond
    told = "run `python docs/make_calibration.py`: the rubric has changed since it was calibrated"
    assert bond.rubric == builtin()[check].digest, told
    assert (bond.model, bond.reading) == (DEFAULT_MODEL, "probability")
    assert bond.identity["sha256"] == catalog.entry(catalog.DEFAULT).files[0].sha256


@pytest.mark.parametrize("check", JUDGING)
def test_it_can_be_read_by(check: str) -> None:
    rubric, profile = builtin()[check], of(check)
    assert rubric.readings.probability is not None
    reader = Reader(combination=profile.combination)
    questions = rubric.readings.probability.questions
    wanted = reader.wanted(rubric)
    read = {n: [1 / len(questions[n].words)] * len(questions[n].words) for n in wanted}
    decided = reader.decide(rubric, read)
    assert set(decided.probabilities) == set(rubric.answers)
    assert sum(decided.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("check", JUDGING)
def test_it_carries_no_text_and_no_place_on_a_disk(check: str) -> None:
    profile = of(check)
    assert not profile.labels
    assert not any(source.partition(":")[2].startswith("/") for source in profile.data.sources)
    assert not any(source.startswith("/") for source in profile.data.sources)
    assert profile.data.held_out >= 20
