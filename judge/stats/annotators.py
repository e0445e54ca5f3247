"""The alternative annotator test: may a judge stand in for one of the people?

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge: How to
Statistically Justify Replacing Human Annotators with LLMs", ACL 2025, arXiv 2501.10970, section 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Item = TypeVar("Item", bound=Hashable)

ANNOTATORS_AT_LEAST = 3
_FALSE_DISCOVERY_RATE = 0.05
# Below it the paper takes the t-test's normality for broken, and a rank test instead.
_ITEMS_FOR_T = 30


@dataclass(frozen=True, slots=True)
class AgainstAnnotator:
    """The judge compared with one annotator, both held against the annotator's colleagues.

    `advantage` is the share of the `n` items on which the judge agrees with the colleagues at least
    as well as the annotator. `p_value` is that of "the judge is worse by `epsilon` or more", `wins`
    whether that is rejected at the false discovery rate.
    """

    annotator: str
    n: int
    advantage: float
    p_value: float
    wins: bool


@dataclass(frozen=True, slots=True)
class AlternativeAnnotator:
    """The test's outcome.

    `winning_rate` (omega) is the share of annotators that the judge wins against; it `passes` at
    one half or more. `advantage` (rho) is the mean of the annotators', for comparing judges that
    all pass or all fail.
    """

    winning_rate: float
    advantage: float
    passes: bool
    epsilon: float
    annotators: tuple[AgainstAnnotator, ...]


def alternative_annotator(
    judge: Mapping[Item, str],
    people: Mapping[str, Mapping[Item, str]],
    *,
    epsilon: float = 0.1,
) -> AlternativeAnnotator | None:
    """The test over all items that the judge and at least two annotators answered.

    Each annotator in turn is left out. On each of that annotator's items the judge's answer and the
    annotator's are scored by the share of the others who gave the same (the paper's accuracy
    score); W_judge = 1 where the judge's score is at least the annotator's, W_annotator the
    reverse. With d = W_annotator - W_judge the null hypothesis is mean(d) >= epsilon, tested
    one-sidedly by Student's t from 30 items on, below by Wilcoxon's signed ranks (exact, ties given
    their mean rank). The p-values share annotators and are corrected as Benjamini and Yekutieli
    (2001) do, at a false discovery rate of 0.05.

    Args:
        judge: the judge's answer to each item it answered.
        people: each annotator's answers.
        epsilon: how much worse the judge may be for what it saves, in [0, 1]. The paper: 0.2 where
            people are experts, 0.15 skilled, 0.1 crowd workers.

    Returns:
        None where fewer than three annotators are left. Items are taken as independent, as in the
        paper.
    """
    from scipy.stats import false_discovery_control

    wins = {name: _wins(name, judge, people) for name in people}
    compared = {name: pairs for name, pairs in wins.items() if pairs}
    if len(compared) < ANNOTATORS_AT_LEAST:
        return None
    p_values = [_p_value(pairs, epsilon) for pairs in compared.values()]
    corrected = false_discovery_control(p_values, method="by")
    annotators = tuple(
        AgainstAnnotator(
            annotator=name,
            n=len(pairs),
            advantage=sum(judge_wins for judge_wins, _ in pairs) / len(pairs),
            p_value=p_value,
            wins=bool(adjusted <= _FALSE_DISCOVERY_RATE),
        )
        for (name, pairs), p_value, adjusted in zip(
            compared.items(), p_values, corrected, strict=True
        )
    )
    size = len(annotators)
    return AlternativeAnnotator(
        winning_rate=sum(one.wins for one in annotators) / size,
        advantage=sum(one.advantage for one in annotators) / size,
        passes=2 * sum(one.wins for one in annotators) >= size,
        epsilon=epsilon,
        annotators=annotators,
    )


def _wins(
    name: str, judge: Mapping[Item, str], people: Mapping[str, Mapping[Item, str]]
) -> list[tuple[bool, bool]]:
    """(judge at least as good, annotator at least as good) on each item of the annotator's."""
    pairs = []
    for item, answer in people[name].items():
        others = [
            theirs[item] for other, theirs in people.items() if other != name and item in theirs
        ]
        if item in judge and others:
            same, own = others.count(judge[item]), others.count(answer)
            pairs.append((same >= own, own >= same))
    return pairs


def _p_value(pairs: Sequence[tuple[bool, bool]], epsilon: float) -> float:
    import numpy as np
    from scipy.stats import ttest_1samp

    d = np.array([int(own) - int(judge) for judge, own in pairs], dtype=np.float64)
    if len(d) < _ITEMS_FOR_T:
        return _signed_ranks(d - epsilon)
    if np.ptp(d) == 0:
        # The limit of a spread that goes to 0; the statistic itself divides by it.
        return 0.0 if d[0] < epsilon else 1.0
    return float(ttest_1samp(d, epsilon, alternative="less").pvalue)


def _signed_ranks(differences: NDArray[np.float64]) -> float:
    """P(rank sum of the positive ones is as small or smaller) where every sign is a fair coin.

    Counted over all sign patterns, because these differences take three values only: scipy's exact
    table knows no ties, and its normal approximation gives 0.013 where the truth is 1/32.
    """
    import numpy as np
    from scipy.stats import rankdata

    moved = differences[differences != 0]
    # Doubled, mean ranks are whole numbers.
    ranks = np.rint(2 * rankdata(np.abs(moved))).astype(int)
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks.tolist():
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    observed = int(ranks[moved > 0].sum())
    return float(ways[: observed + 1].sum() / 2.0 ** len(ranks))
