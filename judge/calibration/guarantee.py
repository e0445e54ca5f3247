"""Thresholds for a cascade of judges, with a guarantee on the agreement of what they decide."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from judge.calibration.observe import LabelledAnswer
from judge.stats.guarantee import ThresholdTest, grid_from, threshold_with_guarantee
from judge.verdict import SETTLED, AnswerOutcome

LEVEL = 0.95
"""The confidence of a guarantee."""

JudgeAnswers = Sequence[LabelledAnswer]
"""One judge's answers to one part of the labelled items."""


@dataclass(frozen=True, slots=True)
class CascadePolicy:
    """A guarantee for each stage; `decided` and `passed_on` in [0, 1] are shares of all items.

    A stage's `coverage` and `missing` are over the items that reach it. `decided[k]` is the share
    of all items that stage k decides, 0 for a stage without a threshold; `passed_on` is the share
    left for people.
    """

    stages: tuple[ThresholdTest, ...]
    decided: tuple[float, ...]
    passed_on: float


def policy_of(
    apart: Sequence[JudgeAnswers],
    stages: Sequence[Sequence[JudgeAnswers]],
    agreement: float,
    *,
    seed: int = 0,
) -> CascadePolicy:
    """Thresholds for a cheap judge, a stronger one and so on, that jointly hold at `LEVEL`.

    Stage k decides an item if its confidence reaches its threshold and no earlier stage decided it;
    items that no stage decides go to people. Each stage is tested at 1 - (1 - LEVEL) / stages, on
    the items of its own part that the earlier stages would have passed on.

    Why that keeps the guarantee: which items reach stage k depends on earlier parts only. Given
    those, the items of part k that reach it are an independent sample of all items that ever will,
    and its test errs with probability at most (1 - LEVEL) / stages. With probability at least LEVEL
    no test errs (the union bound). Then every stage agrees at least `agreement` of the time on the
    items it decides, and so does the cascade, whose agreement is the stages' weighted mean. If one
    part served two stages, the first threshold would have selected the second test's items by
    their labels.

    One item of each cluster (a record, a group, a text under several ids) counts, drawn at random,
    because the guarantee assumes independent items; so it is about clusters, equally weighted. The
    first item would bias it: when the first entry of a text was the easiest, a guarantee of 90 %
    was issued at a true agreement of 83 %.

    Args:
        apart: each judge's answers to the same items of no stage, not used for fitting. Its grid
            of thresholds is taken from its confidence in those that the earlier stages would have
            passed on, regardless of their labels. (It is far more confident about items that a
            probe was fitted to.)
        stages: each judge's own part of the labels, answered by every judge up to it:
            `stages[k][j]` are judge j's answers to the part of judge k.
        agreement: the agreement with the labels to guarantee, with the confidence LEVEL.
    """
    level = 1 - (1 - LEVEL) / len(stages)
    tests: list[ThresholdTest] = []
    shares: list[float] = []
    rest_share = 1.0
    for number, answers in enumerate(stages):
        thresholds = [stage.threshold for stage in tests]
        reaching = _reaching(answers, thresholds, seed)
        alike = _reaching(apart[: number + 1], thresholds, seed)
        sure = [sureness(answer) for answer in alike if answer.answer]
        size = max(1, len(reaching))
        grid = grid_from(sure, size, agreement=agreement, level=level)
        stage = threshold_with_guarantee(
            [sureness(answer) for answer in reaching],
            [answer.answer == answer.item.reference for answer in reaching],
            grid,
            agreement=agreement,
            level=level,
        )
        tests.append(stage)
        shares.append(rest_share * (stage.coverage.value or 0.0))
        rest_share -= shares[-1]
    return CascadePolicy(tuple(tests), tuple(shares), rest_share)


def refusal(policy: CascadePolicy, clusters: int) -> str | None:
    """Why the first judge without a guarantee has none; None if all have one.

    Each test uses only a part of the labelled `clusters`, so the number of records to label is
    scaled up from the number missing in the test.
    """
    number = next((n for n, test in enumerate(policy.stages) if test.threshold is None), None)
    if number is None:
        return None
    stage = policy.stages[number]
    if number and not stage.coverage.of:
        return "the first judge decides every item: leave out the second"
    if stage.missing is None or not stage.coverage.of:
        return stage.reason
    labels = ceil(stage.missing * clusters / stage.coverage.of)
    return (
        f"{stage.reason}. Label about {labels} more independent records: {stage.coverage.of} of "
        f"{clusters} went into this test"
    )


def sureness(answer: LabelledAnswer) -> float:
    """A judge's confidence in its answer, 0 to 1: 1 without probabilities, -1 if undecided."""
    if answer.answer is None:
        return 1.0 if answer.verdict in SETTLED else -1.0
    if answer.score is not None and answer.probabilities:
        return max(answer.probabilities.values())  # The likeliest score, not the one nearest.
    return answer.probabilities.get(answer.answer, 0.0) if answer.probabilities else 1.0


def decided(
    answers: Sequence[LabelledAnswer], thresholds: Sequence[float | None]
) -> LabelledAnswer:
    """The cascade's answer to an item: that of the first judge whose threshold is reached.

    Without one the last judge's error is that of the cascade, and says nothing about how it judges.
    """
    if (deciding := _decides(answers, thresholds)) is not None:
        return deciding
    failed = answers[-1].outcome is AnswerOutcome.ERROR
    outcome = AnswerOutcome.ERROR if failed else AnswerOutcome.ABSTAINED
    return replace(answers[-1], outcome=outcome, answer=None)


def _reaching(
    parts: Sequence[JudgeAnswers], thresholds: Sequence[float | None], seed: int
) -> list[LabelledAnswer]:
    """The last judge's answers to the items, one a cluster, that the judges before it pass on."""
    rows = zip(*(_one_a_cluster(part, seed) for part in parts), strict=True)
    return [row[-1] for row in rows if not _decides(row[:-1], thresholds)]


def _decides(
    answers: Sequence[LabelledAnswer], thresholds: Sequence[float | None]
) -> LabelledAnswer | None:
    for answer, threshold in zip(answers, thresholds, strict=True):
        if threshold is not None and sureness(answer) >= threshold:
            return answer
    return None


def _one_a_cluster(part: JudgeAnswers, seed: int) -> list[LabelledAnswer]:
    """One item per cluster, of those with a reference. It is the same for every judge."""
    items: dict[str, list[LabelledAnswer]] = defaultdict(list)
    for answer in part:
        if answer.item.reference is not None:
            items[answer.item.cluster].append(answer)
    return [random.Random(f"{seed}\n{name}").choice(of) for name, of in items.items()]
