"""People's ratings of items: their agreement, and the alternative annotator test.

The test asks whether a judge can replace one of the people: Calderon, Reichart and Dror
(2025), "The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically Justify Replacing
Human Annotators with LLMs", ACL 2025, arXiv 2501.10970, section 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from judge.stats.bootstrap import Resamples
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate, mean_of_estimates

# The rounding error of a sum of shares is below this.
_ROUNDING = 1e-12


def count_table(
    ratings: Sequence[Sequence[Hashable]], classes: Sequence[Hashable]
) -> NDArray[np.int64]:
    """Counts of raters by item (row) and class (column, in the order of `classes`)."""
    rows = [[answers.count(name) for name in classes] for answers in ratings]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(classes))


def rater_agreement(
    counts: NDArray[np.int64], resamples: Resamples, *, of: int
) -> dict[str, Estimate]:
    """`pairwise`, `fleiss` and `alpha_nominal` of items with two ratings or more, with intervals.

    `counts` (items, classes) is how many raters chose each class; `resamples` is over the same
    items; `of` is the number of items including those with one rating. An item has r ratings, n_k
    of them in class k.

    - `pairwise`, in [0, 1]: the mean over items of sum_k n_k (n_k - 1) / (r (r - 1)), the share of
      agreeing pairs of raters: the observed agreement P of Fleiss (1971), equation 2. None
      without an item.
    - `fleiss`: (P - E) / (1 - E), with E the sum of squares of the classes' shares, each the mean
      over items of n_k / r. With the same r for every item this is Fleiss (1971), "Measuring
      nominal scale agreement among many raters", Psychological Bulletin 76(5), equations 2-7; with
      different r it is Gwet's extension (2014, *Handbook of Inter-Rater Reliability*, 4th edition).
      None also if all ratings are of one class.
    - `alpha_nominal`: 1 - observed / expected disagreement, for nominal classes, from the matrix of
      coincidences, in which each ordered pair of an item's ratings counts 1 / (r - 1):
      Krippendorff (2011), "Computing Krippendorff's alpha-reliability", sections B and C.
      At most 1, 0 at chance. None also if all ratings are of one class.
    """
    table = counts.astype(np.float64)
    raters, classes = table.sum(axis=1), table.shape[1]
    alike = (table * (table - 1)).sum(axis=1) / (raters - 1)
    columns = [np.ones(len(table)), alike / raters, raters - alike, table / raters[:, None], table]
    sums = resamples.sums(np.column_stack(columns))
    items, shares, totals = sums[:, 0], sums[:, 3 : 3 + classes], sums[:, 3 + classes :]
    pairwise = ratio(sums[:, 1], items)
    room = 1 - (ratio(shares, items[:, None]) ** 2).sum(axis=1)
    ratings = totals.sum(axis=1)
    stacks = {
        "fleiss": ratio(pairwise - 1 + room, np.where(room > _ROUNDING, room, 0.0)),
        "pairwise": pairwise,
        "alpha_nominal": 1
        - ratio((ratings - 1) * sums[:, 2], ratings**2 - (totals**2).sum(axis=1)),
    }
    return {
        name: resamples.estimate(values, n=len(table), of=of) for name, values in stacks.items()
    }


def class_kappas(
    ratings: Sequence[Sequence[str]],
    classes: Sequence[str],
    resamples: Resamples,
    *,
    of: int,
    raters: int | None = None,
    draws: int = 20,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Fleiss's kappa of each class against all others, and of all classes together (ALL_CLASSES).

    Args:
        ratings: the answers to each item, two or `raters` at least; `resamples` is over the same
            items, `of` the number of items including those with fewer.
        raters: this many ratings of each item are drawn at random (Huang and Yang, section 3.6,
            after Bowman et al. 2015). None: all ratings count.
        draws: with `raters`, value and interval are the means over this many draws.
    """
    chance = Random(seed)
    estimates: dict[str, list[Estimate]] = {name: [] for name in (*classes, ALL_CLASSES)}
    for _ in range(draws if raters else 1):
        drawn = [chance.sample(answers, raters) if raters else answers for answers in ratings]
        table = count_table(drawn, classes)
        every = table.sum(axis=1)
        tables = [np.column_stack([column, every - column]) for column in table.T]
        # People may have a class of that name.
        by_name = dict(zip(classes, tables, strict=True)) | {ALL_CLASSES: table}
        for name, counts in by_name.items():
            estimates[name].append(rater_agreement(counts, resamples, of=of)["fleiss"])
    return {name: mean_of_estimates(parts) for name, parts in estimates.items()}


ALL_CLASSES = "all classes"
"""The name of the kappa over all classes."""


# Items per block, so that no matrix has draws x all items.
_BLOCK = 1_000


def scale_alphas(
    counts: NDArray[np.int64], points: Sequence[float], resamples: Resamples, *, of: int
) -> dict[str, Estimate]:
    """Krippendorff's alpha of ratings on a scale, `alpha_ordinal` and `alpha_interval`.

    As in `rater_agreement`, but the disagreement of two ratings is their squared distance: of the
    points (interval), or of the mean ranks among all ratings (ordinal: the ratings between the two,
    plus half of those equal to either). Krippendorff (2011), section D. `counts` has a column for
    each of the rising `points`; items with fewer than two ratings are left out. None if all ratings
    are of one class.
    """
    raters = counts.sum(axis=1)
    table = counts * (raters > 1)[:, None].astype(np.float64)
    totals = resamples.sums(table)
    places = {
        "alpha_ordinal": np.cumsum(totals, axis=1) - totals / 2,
        "alpha_interval": np.broadcast_to(np.array(points) - points[0], totals.shape),
    }
    weights = resamples.weights()
    n, partners = totals.sum(axis=1), np.maximum(raters - 1, 1)
    alphas = {}
    for name, place in places.items():
        observed = np.zeros(len(totals))
        for start in range(0, len(table), _BLOCK):
            part = slice(start, start + _BLOCK)
            sums, squares = place @ table[part].T, place**2 @ table[part].T
            pairs = (table[part].sum(axis=1) * squares - sums**2) / partners[part]
            observed += (weights[:, part] * pairs).sum(axis=1)
        expected = n * (totals * place**2).sum(axis=1) - (totals * place).sum(axis=1) ** 2
        one_class = (totals > 0).sum(axis=1) < 2
        alphas[name] = 1 - ratio((n - 1) * observed, np.where(one_class, 0.0, expected))
    n_items = int((raters > 1).sum())
    return {name: resamples.estimate(values, n=n_items, of=of) for name, values in alphas.items()}


Item = TypeVar("Item", bound=Hashable)

MIN_ANNOTATORS = 3
_FALSE_DISCOVERY_RATE = 0.05
# With fewer items the paper considers the t-test's normality violated, and uses a rank test.
_ITEMS_FOR_T = 30


@dataclass(frozen=True, slots=True)
class AlternativeAnnotator:
    """The test's outcome.

    `p_values` is for the hypothesis "the judge is worse than this annotator by `epsilon` or more",
    by annotator. The judge wins against annotators for whom it is rejected at the false discovery
    rate; `winning_rate` (omega) is their share, and the judge `passes` at one half or more.
    `advantage` (rho) is the mean over annotators of the share of items on which the judge agrees
    with the colleagues at least as well as the annotator; it compares judges that all pass or all
    fail.
    """

    winning_rate: float
    advantage: float
    passes: bool
    epsilon: float
    p_values: Mapping[str, float]


def alternative_annotator(
    judge: Mapping[Item, str],
    people: Mapping[str, Mapping[Item, str]],
    *,
    epsilon: float = 0.1,
) -> AlternativeAnnotator | None:
    """The test over all items that the judge and at least two annotators answered.

    Each annotator in turn is left out. On each of that annotator's items the judge's answer and the
    annotator's are scored by the share of the others who gave the same answer (the paper's accuracy
    score); W_judge = 1 if the judge's score is at least the annotator's, W_annotator the reverse.
    With d = W_annotator - W_judge the null hypothesis is mean(d) >= epsilon. The test is one-sided:
    Student's t with 30 items or more, else Wilcoxon's signed ranks (exact, mean ranks for ties).
    The p-values are dependent (they share annotators), so they are corrected by Benjamini and
    Yekutieli (2001), at a false discovery rate of 0.05.

    Items are assumed to be independent, as in the paper.

    Args:
        judge: the judge's answer to each item it answered.
        people: each annotator's answers.
        epsilon: how much worse the judge may be in return for its lower cost, in [0, 1]. The paper:
            0.2 if people are experts, 0.15 if skilled, 0.1 if crowd workers. judge always uses 0.1,
            the strictest.

    Returns:
        None if fewer than three annotators are left.
    """
    from scipy.stats import false_discovery_control

    compared = {name: pairs for name in people if (pairs := _wins(name, judge, people))}
    if len(compared) < MIN_ANNOTATORS:
        return None
    p_values = {name: _p_value(pairs, epsilon) for name, pairs in compared.items()}
    corrected = false_discovery_control(list(p_values.values()), method="by")
    winning_rate = float((corrected <= _FALSE_DISCOVERY_RATE).mean())
    advantages = [sum(wins for wins, _ in pairs) / len(pairs) for pairs in compared.values()]
    return AlternativeAnnotator(
        winning_rate=winning_rate,
        advantage=sum(advantages) / len(advantages),
        passes=winning_rate >= 0.5,
        epsilon=epsilon,
        p_values=p_values,
    )


def _wins(
    name: str, judge: Mapping[Item, str], people: Mapping[str, Mapping[Item, str]]
) -> list[tuple[bool, bool]]:
    """(judge at least as good, annotator at least as good) on each item of the annotator."""
    pairs = []
    for item, answer in people[name].items():
        colleagues = [
            theirs[item]
            for colleague, theirs in people.items()
            if colleague != name and item in theirs
        ]
        if item in judge and colleagues:
            judge_matches, annotator_matches = (
                colleagues.count(judge[item]),
                colleagues.count(answer),
            )
            pairs.append((judge_matches >= annotator_matches, annotator_matches >= judge_matches))
    return pairs


def _p_value(pairs: Sequence[tuple[bool, bool]], epsilon: float) -> float:
    from scipy.stats import ttest_1samp

    d = np.array([int(annotator) - int(judge) for judge, annotator in pairs], dtype=np.float64)
    if len(d) < _ITEMS_FOR_T:
        return _signed_ranks(d - epsilon)
    if np.ptp(d) == 0:
        # The limit as the spread goes to 0; the statistic itself divides by it.
        return 0.0 if d[0] < epsilon else 1.0
    return float(ttest_1samp(d, epsilon, alternative="less").pvalue)


def _signed_ranks(differences: NDArray[np.float64]) -> float:
    """P(the rank sum of the positive differences is this small or smaller) if signs are fair coins.

    All sign patterns are counted, because these differences have only three values: scipy's exact
    table does not handle ties, and its normal approximation gives 0.013 where 1/32 is right.
    """
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
