"""Probes of hidden states: fitted to few labels, honest about groups, wary of what is far."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from judge.calibration.fit import curve, fit
from judge.calibration.probe import TrainingItem, regression
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Observation, Probe

from .asking import PLAIN

WIDE = 60


@pytest.mark.parametrize("answers", [2, 3])
def test_scores_are_those_of_every_answer_but_the_first(answers: int) -> None:
    rng = np.random.default_rng(3)
    truth = np.arange(60) % answers
    x = rng.normal(size=(60, 4)) + truth[:, None]
    weights, intercepts = regression(x, truth, 0.5)
    scores = np.column_stack([np.zeros(60), x @ weights.T + intercepts])
    known = LogisticRegression(C=0.5, max_iter=5000).fit(x, truth).predict_proba(x)
    assert softmax(scores, axis=1) == pytest.approx(known, abs=1e-4)


def state(rng: random.Random, lean: float, wide: int = WIDE) -> tuple[float, ...]:
    """Noise, and in its first three numbers by how much the answer is yes."""
    return tuple(3 * lean * (n < 3) + rng.gauss(0, 1) for n in range(wide))


def reads(items: int, seed: int = 1) -> list[TrainingItem]:
    rng = random.Random(seed)
    answers = [rng.choice(("yes", "no")) for _ in range(items)]
    return [
        TrainingItem(Observation(state=state(rng, 0.5 if said == "yes" else -0.5)), said, f"g{n}")
        for n, said in enumerate(answers)
    ]


def fitted(train: Sequence[TrainingItem]) -> Probe:
    found = fit(PLAIN, AnswerReader(), train)
    assert isinstance(found.classifier, Probe), found
    return found.classifier


def test_a_probe_worked_by_hand() -> None:
    # Scaled, the state (3, 5) is ((3 - 1) / 2, (5 - 5) / 1) = (1, 0); the first answer scores 0.
    probe = Probe(
        questions=(0,),
        answers=("yes", "no", "neutral"),
        center=(1.0, 5.0),
        spread=(2.0, 1.0),
        weights=((math.log(2), 9.0), (0.0, 9.0)),
        beside=((0.0,), (1.0,)),
        intercepts=(0.0, math.log(3)),
        far=1.0,
    )
    # Question 0 has P(yes) 0.75, so its feature is log 3; neutral scores log 3 + log 3.
    read = Observation({0: (0.75, 0.25)}, (3.0, 5.0))
    assert probe.probabilities(read) == pytest.approx(
        {"yes": 1 / 12, "no": 2 / 12, "neutral": 0.75}
    )
    assert not probe.is_far(read)  # root mean square of (1, 0): 0.71
    assert probe.is_far(Observation({}, (4.0, 5.0)))  # of (1.5, 0): 1.06
    # Of (0.6, 0.8) the part along (1, 0) is 0.6, and the share outside of it 0.8.
    for outside, far in ((0.79, True), (0.81, False)):
        along = probe.model_copy(update={"axes": ((1.0, 0.0),), "outside": outside})
        assert along.is_far(Observation({}, (2.2, 5.8))) is far
    assert Probe.model_validate_json(probe.model_dump_json()).probabilities(read) == pytest.approx(
        probe.probabilities(read), abs=1e-6
    )


@pytest.mark.parametrize(
    "part",
    [
        {"spread": (0.0, 1.0)},
        {"spread": (2.0,)},
        {"center": (1.0, 5.0, 2.0)},
        {"weights": ()},
        {"weights": ((1.0,),)},
        {"intercepts": (0.0, 0.0)},
        {"beside": ((0.0,), (1.0,))},
        {"axes": ((1.0,),)},
    ],
)
def test_a_probe_of_a_file_whose_parts_do_not_fit_is_refused(part: dict[str, object]) -> None:
    """A profile comes from others: no number of it may end a run later."""
    whole: dict[str, object] = {
        "questions": (0,),
        "answers": ("yes", "no"),
        "center": (1.0, 5.0),
        "spread": (2.0, 1.0),
        "weights": ((1.0, 9.0),),
        "intercepts": (0.0,),
        "far": 1.0,
    }
    assert Probe.model_validate(whole).is_far(Observation({}, (9.0, 5.0)))
    with pytest.raises(ValidationError, match="give"):
        Probe.model_validate(whole | part)


def test_a_hundred_labels_make_a_probe_whose_probabilities_hold() -> None:
    probe = fitted(reads(100))
    fresh = reads(2000, seed=2)
    shares = [probe.probabilities(one.observation)["yes"] for one in fresh]
    right = [
        (share > 0.5) == (one.answer == "yes") for share, one in zip(shares, fresh, strict=True)
    ]
    # Between these classes nothing can be right more often than Phi(1.5 sqrt 3) = 0.995.
    assert sum(right) / len(right) > 0.93
    for low in (0.0, 0.5, 0.8):
        inside = [n for n, share in enumerate(shares) if low <= share < low + 0.2]
        if len(inside) >= 50:
            came = sum(fresh[n].answer == "yes" for n in inside) / len(inside)
            assert abs(came - sum(shares[n] for n in inside) / len(inside)) < 0.2, low


def test_noise_is_not_taken_for_knowledge() -> None:
    rng = random.Random(4)
    noise = [
        TrainingItem(Observation(state=state(rng, 0)), one.answer, one.group) for one in reads(100)
    ]
    fresh = [Observation({}, state(rng, 0)) for _ in range(500)]
    probe = fitted(noise)
    sure = [max(probe.probabilities(one).values()) for one in fresh]
    assert sum(sure) / len(sure) < 0.65


def test_few_of_the_same_kind_are_far_and_all_of_another() -> None:
    probe, rng = fitted(reads(100)), random.Random(5)
    assert sum(probe.is_far(one.observation) for one in reads(1000, seed=3)) < 60
    others = [Observation({}, tuple(x + 4 for x in state(rng, 0))) for _ in range(50)]
    assert all(probe.is_far(one) for one in others)
    decided = AnswerReader(classifier=probe).decide(PLAIN, others[0])
    assert decided.far and not decided.sure


def test_as_long_as_the_labelled_and_of_another_kind_is_far() -> None:
    """The numbers of a labelled state go together, those of another one each their own way."""
    rng = random.Random(11)
    mixed = [[rng.gauss(0, 1) for _ in range(WIDE)] for _ in range(4)]

    def alike(lean: float) -> tuple[float, ...]:
        parts = [rng.gauss(lean, 1) for _ in mixed]
        return tuple(
            sum(p * row[n] for p, row in zip(parts, mixed, strict=True)) + rng.gauss(0, 0.2)
            for n in range(WIDE)
        )

    made = [
        replace(one, observation=Observation(state=alike((one.answer == "yes") - 0.5)))
        for one in reads(200)
    ]
    probe = fitted(made[:100])
    assert sum(probe.is_far(one.observation) for one in made[100:]) < 12
    others = [Observation({}, tuple(x / 2 for x in state(rng, 0))) for _ in range(50)]
    assert all(map(probe.is_far, others))
    assert not any(map(probe.model_copy(update={"outside": 1.0}).is_far, others))


def test_swapped_records_do_not_make_their_answer_seem_frequent() -> None:
    """As many of them as of the others, all `no`: of new records still half are."""
    train, rng = reads(100), random.Random(6)
    swapped = [
        replace(one, answer="no", observation=Observation(state=state(rng, -0.5)), natural=False)
        for one in train
    ]
    probe, fresh = fitted([*train, *swapped]), reads(1000, seed=8)
    shares = [probe.probabilities(one.observation)["no"] for one in fresh]
    came = sum(one.answer == "no" for one in fresh) / len(fresh)
    assert abs(sum(shares) / len(shares) - came) < 0.08
    right = [
        (share > 0.5) == (one.answer == "no") for share, one in zip(shares, fresh, strict=True)
    ]
    assert sum(right) / len(right) > 0.9


def test_swapped_records_are_no_labels() -> None:
    """They add no answer that the labels lack, and do not turn twenty labels into thirty."""
    yes = [replace(one, answer="yes") for one in reads(40)]
    swapped = [replace(one, answer="no", natural=False) for one in yes]
    assert fit(PLAIN, AnswerReader(), [*yes, *swapped]).reason == (
        "each answer needs 5 items to fit to; there are 40 yes, 0 no"
    )
    few = reads(20)
    more = [replace(one, answer="no", natural=False) for one in few]
    assert fit(PLAIN, AnswerReader(), [*few, *more]).reason == "20 items to fit to, fewer than 30"


def test_more_labels_are_worth_more() -> None:
    train, kept = reads(240), reads(600, seed=9)

    def kappa(made: object) -> float:
        assert isinstance(made, Probe)
        found = [made.probabilities(one.observation)["yes"] > 0.5 for one in kept]
        right = sum(said == (one.answer == "yes") for said, one in zip(found, kept, strict=True))
        return 2 * right / len(kept) - 1

    found = curve(fit(PLAIN, AnswerReader(), train), train, kappa)
    assert found is not None and found.next is not None
    assert [one.labels for one in found.points] == [30, 60, 120, 240]
    assert found.points[-1].kappa > found.points[0].kappa
    assert found.next.labels == 480
    first, last = (point.kappa for point in found.points[-2:])
    assert found.next.kappa == min(1.0, last + max(0.0, last - first) / 2)
