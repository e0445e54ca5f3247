"""From how sure judges are to a policy with a guarantee: who decides what, and what people get."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from judge.calibration.observations import Judged
from judge.stats.guarantee import CascadePolicy, StageData, cascade_policy, grid_from

Part = Sequence[Judged]
"""One judge's answers to one part of the labelled items."""

_NEVER_SURE = -1.0


def policy_of(
    fitted: Sequence[Part],
    stages: Sequence[Sequence[Part]],
    agreement: float,
    level: float,
    *,
    seed: int = 0,
) -> CascadePolicy:
    """Thresholds for judges in the order in which they decide, tested on items of their own.

    Of each record one item counts, drawn at random, because the guarantee takes items as
    independent. The first one would not do: where the first value of a story is the easiest, a
    guarantee of 90 % was given out at a true agreement of 83 %.

    Args:
        fitted: for each judge its answers to the items that its combination was fitted to; its
            grid of thresholds is drawn from them.
        stages: for each judge its own part of the labels, as answered by every judge up to it:
            `stages[k][j]` are the answers of judge j to the part of judge k.
        agreement: how often the judges shall agree with the labels (0 to 1).
        level: with what confidence (0 to 1), which the stages of the cascade share out.
        seed: of the draw.
    """
    each = 1 - (1 - level) / len(stages)
    made = []
    for number, answers in enumerate(stages):
        drawn = [_one_a_record(part, seed) for part in answers]
        own = drawn[number]
        sure = [sureness(one) for one in _one_a_record(fitted[number], seed) if one.answer]
        grid = grid_from(sure, max(1, len(own)), agreement=agreement, level=each) if sure else [1.0]
        made.append(
            StageData(
                confidences=[sureness(one) for one in own],
                agrees=[one.answer == one.item.reference for one in own],
                grid=grid,
                earlier=tuple([sureness(one) for one in part] for part in drawn[:number]),
            )
        )
    return cascade_policy(made, agreement=agreement, level=level)


def refusal(policy: CascadePolicy, records: int) -> str | None:
    """Why the first judge that cannot be guaranteed cannot be; None if all can.

    Args:
        records: labelled ones, of which only a part goes into each test; what is missing from a
            test is told as what is missing of all.
    """
    number = next((n for n, one in enumerate(policy.stages) if one.threshold is None), None)
    if number is None:
        return None
    stage = policy.stages[number]
    if number and not stage.coverage.of:
        return "the first judge alone can be guaranteed on all: leave out the one behind it"
    if stage.missing is None or not stage.coverage.of:
        return stage.reason
    wanted = ceil(stage.missing * records / stage.coverage.of)
    return (
        f"{stage.reason}. Of {records} labelled records {stage.coverage.of} went into this test, "
        f"so about {wanted} more records are to be labelled"
    )


def sureness(judged: Judged) -> float:
    """How sure a judge is, 0 to 1; -1 where it gives no answer.

    A judge without probabilities is sure of each answer.
    """
    if judged.answer is None:
        return _NEVER_SURE
    return judged.probabilities.get(judged.answer, 0.0) if judged.probabilities else 1.0


def decided(answers: Sequence[Judged], thresholds: Sequence[float | None]) -> Judged:
    """What a cascade makes of an item: the answer of the first judge that is sure enough."""
    for one, threshold in zip(answers, thresholds, strict=True):
        if threshold is not None and sureness(one) >= threshold:
            return one
    return replace(answers[-1], outcome="abstained", answer=None)


def _one_a_record(part: Part, seed: int) -> list[Judged]:
    """One item of each record, among those with a reference; of every judge's answers the same."""
    items: dict[str, list[Judged]] = defaultdict(list)
    for one in part:
        if one.item.reference is not None:
            items[one.item.record].append(one)
    return [random.Random(f"{seed}\n{name}").choice(of) for name, of in items.items()]
