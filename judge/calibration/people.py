"""Is the judge as good as a person? People against people, and the judge, on the same items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge.calibration.observations import Judged
from judge.stats.agreement import count_table, rater_agreement
from judge.stats.annotators import AlternativeAnnotator, alternative_annotator
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import kappas
from judge.stats.intervals import Estimate


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """Agreement among people beside their agreement with the judge.

    All over the same items: those that the judge answered and two annotators or more did; every
    estimate's `of` is the number of items that were judged. An answer of its own kind (`unsure`)
    agrees with its like only.

    - `human_human`: the mean over items of the share of pairs of annotators who agree
    - `human_judge`: the mean over items of the share of annotators who agree with the judge
    - `human_kappa`, `judge_kappa`: the same beyond chance, each item counting once: Fleiss's among
      people, and with the judge by each side's own frequencies of answers
    - `test`: the alternative annotator test, None where fewer than three annotators share items
    """

    annotators: int
    human_human: Estimate
    human_judge: Estimate
    human_kappa: Estimate
    judge_kappa: Estimate
    test: AlternativeAnnotator | None


def against_people(
    judged: Sequence[Judged], *, epsilon: float = 0.1, seed: int = 0, draws: int = 1000
) -> AgainstPeople:
    """The judge's answers on one check beside the people who annotated the same items.

    Gold answers play no part; the bootstrap draws whole records. `epsilon` as in
    `alternative_annotator`.
    """
    import numpy as np

    used = [one for one in judged if one.answer is not None and len(one.item.annotations) > 1]
    resamples = Resamples([one.item.record for one in used], seed=seed, draws=draws)
    people: dict[str, dict[int, str]] = defaultdict(dict)
    for number, one in enumerate(used):
        for vote in one.item.annotations:
            people[vote.annotator][number] = vote.answer
    answers = [str(one.answer) for one in used]
    ratings = [[vote.answer for vote in one.item.annotations] for one in used]
    names = sorted({*answers, *(answer for given in ratings for answer in given)})
    counts, size = count_table(ratings, names), len(names)
    among = rater_agreement(counts, resamples, of=len(judged))
    # Of an item's people (rows) and the judge (columns), the pairs add up to 1.
    shares = counts / counts.sum(axis=1, keepdims=True)
    judge = np.array([[answer == name for name in names] for answer in answers])
    judge = judge.reshape(len(used), size)
    sums = resamples.sums((shares[:, :, None] * judge[:, None, :]).reshape(len(used), size * size))
    beside = kappas(sums.reshape(len(sums), size, size))
    same = share_estimate((shares * judge).sum(axis=1).tolist(), resamples)
    return AgainstPeople(
        annotators=len(people),
        human_human=among["pairwise"],
        human_judge=replace(same, of=len(judged)),
        human_kappa=among["fleiss"],
        judge_kappa=resamples.estimate(beside, n=len(used), of=len(judged)),
        test=alternative_annotator(dict(enumerate(answers)), people, epsilon=epsilon),
    )
