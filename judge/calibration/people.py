"""Is the judge as good as a person? People against people, and the judge, on the same items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judge.calibration.observations import Judged
from judge.stats.annotators import AlternativeAnnotator, alternative_annotator
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.classification import kappas
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """Agreement among people beside their agreement with the judge.

    All over the same items: those that the judge answered and two annotators or more did; every
    estimate's `of` is the number of items that were judged. An answer of its own kind (`unsure`)
    agrees with its like only.

    - `human_human`: the mean over items of the share of pairs of annotators who agree
    - `human_judge`: the mean over items of the share of annotators who agree with the judge
    - `human_kappa`, `judge_kappa`: the same beyond chance, pairs pooled over annotators, each item
      counting once. Two people are in no order, so chance among people is by their common
      frequencies of answers (as in Scott's pi), chance with the judge by each side's own
    - `test`: the alternative annotator test, None where fewer than three annotators share items
    """

    annotators: int
    human_human: Estimate
    human_judge: Estimate
    human_kappa: Estimate
    judge_kappa: Estimate
    test: AlternativeAnnotator | None


def against_people(
    judged: Sequence[Judged],
    *,
    epsilon: float = 0.1,
    seed: int = 0,
    draws: int = 1000,
) -> AgainstPeople:
    """The judge beside the people who annotated the same items.

    Args:
        judged: one judge's answers on one check; the items' gold answers play no part.
        epsilon: what the alternative annotator test forgives the judge (0.1 where the people are
            crowd workers, 0.15 skilled, 0.2 experts).
        seed: of the bootstrap.
        draws: resamples of the bootstrap, which draws whole records.

    Raises:
        ValueError: epsilon outside [0, 1], or draws below 1.
    """
    used = [one for one in judged if one.answer is not None and len(one.item.annotations) > 1]
    resamples = Resamples([one.item.record for one in used], seed=seed, draws=draws)
    votes = [Counter(vote.answer for vote in one.item.annotations) for one in used]
    answers = [str(one.answer) for one in used]
    among_people = [_agreeing_pairs(counts) for counts in votes]
    with_judge = [
        counts[answer] / counts.total() for counts, answer in zip(votes, answers, strict=True)
    ]
    people_cells, judge_cells = _cells(votes, answers)
    of = len(judged)
    return AgainstPeople(
        annotators=len({vote.annotator for one in used for vote in one.item.annotations}),
        human_human=replace(share_estimate(among_people, resamples), of=of),
        human_judge=replace(share_estimate(with_judge, resamples), of=of),
        human_kappa=_kappa(people_cells, resamples, of),
        judge_kappa=_kappa(judge_cells, resamples, of),
        test=_alternative_annotator(used, epsilon),
    )


def _agreeing_pairs(votes: Counter[str]) -> float:
    pairs = votes.total() * (votes.total() - 1)
    return sum(count * (count - 1) for count in votes.values()) / pairs


def _cells(
    votes: Sequence[Counter[str]], answers: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(items, K, K): each item's pairs of people, and of a person (row) and the judge (column)."""
    import numpy as np

    names = sorted({*answers, *(name for counts in votes for name in counts)})
    among = np.zeros((len(votes), len(names), len(names)))
    with_judge = np.zeros_like(among)
    for number, (counts, answer) in enumerate(zip(votes, answers, strict=True)):
        given = np.array([counts[name] for name in names], dtype=np.float64)
        total = counts.total()
        among[number] = (np.outer(given, given) - np.diag(given)) / (total * (total - 1))
        with_judge[number, :, names.index(answer)] = given / total
    return among, with_judge


def _kappa(cells: NDArray[np.float64], resamples: Resamples, of: int) -> Estimate:
    items, size = cells.shape[0], cells.shape[1]
    sums = resamples.sums(cells.reshape(items, size * size))
    return resamples.estimate(kappas(sums.reshape(len(sums), size, size)), n=items, of=of)


def _alternative_annotator(judged: Sequence[Judged], epsilon: float) -> AlternativeAnnotator | None:
    people: dict[str, dict[int, str]] = defaultdict(dict)
    for number, one in enumerate(judged):
        for vote in one.item.annotations:
            people[vote.annotator][number] = vote.answer
    answers = {number: str(one.answer) for number, one in enumerate(judged)}
    return alternative_annotator(answers, people, epsilon=epsilon)
