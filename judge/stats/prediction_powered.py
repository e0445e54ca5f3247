"""Prediction-powered pass rate: a few labels made the most of by many judged records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from judge.stats.corrected_rate import Corrected
from judge.stats.interval import Estimate
from judge.stats.wilson import normal_quantile, score_limits


def prediction_powered(
    passed: int,
    judged: int,
    pairs: Iterable[tuple[bool, bool]] | Mapping[tuple[bool, bool], int],
    *,
    level: float = 0.95,
    deff_judged: float = 1.0,
    deff_labelled: float = 1.0,
) -> Corrected:
    """The share of judged records that people would pass, where people labelled some of them.

    The judge passed `passed` of all `judged` records; `pairs` holds (judge passed, people passed)
    for each labelled one, or how often each such pair came. The labelled are among the judged and
    drawn from them at random. No assumption is made on how the judge errs: one that says nothing
    only brings no gain.

    The estimate is that of power-tuned prediction-powered inference (PPI++; Angelopoulos, Duchi &
    Zrnic 2023, arXiv 2311.01453): mean of people's labels + c (judge's share over the records
    without a label - judge's share over those with one). Verdicts being 0 or 1, the best c makes
    it q a + (1 - q) b: q the judge's pass share over all records, a and b people's pass shares
    among the labelled ones that the judge passed and failed (Tenenbein's 1970 double sampling).

    The interval is Wilson's at the number of labels that would bring the same variance without
    any judge, t (1 - t) / V with V = q^2 a (1 - a) / n_a + (1 - q)^2 b (1 - b) / n_b +
    (a - b)^2 q (1 - q) / judged. In V and t, half an item is added to each count, since perfect
    agreement on a few labels is no proof of it. PPI's own normal interval covers down to 43 % at
    60 labels; bench/coverage.py shows this one's. Design effects as in `rogan_gladen`.

    Where the judge gave all labelled records one verdict, c is undefined and taken as 0: the mean
    of the labels with Wilson's interval. Refused (value None, with a reason) without any label.

    Raises:
        ValueError: counts that cannot be (more pairs than judged records, say), a design effect
            below 1, a level outside (0, 1).
    """
    cells = Counter(pairs)
    labels = cells.total()
    good_passed, good_failed = cells[True, True], cells[False, True]
    judge_passed = good_passed + cells[True, False]
    judge_failed = labels - judge_passed
    if not 0 <= passed <= judged:
        raise ValueError(f"{passed} of {judged} records passed")
    if judge_passed > passed or judge_failed > judged - passed:
        raise ValueError("the labelled records are not all among the judged ones")
    if min(deff_judged, deff_labelled) < 1:
        raise ValueError("a design effect is at least 1")
    z = normal_quantile(level)
    raw = Estimate(None)
    if judged:
        share = passed / judged
        raw = Estimate(share, *score_limits(share, judged / deff_judged, z), n=judged, of=judged)
    if not labels:
        reason = "no judged record has a label"
        return Corrected(Estimate(None, of=judged), raw, reason)

    if not (judge_passed and judge_failed):
        value = (good_passed + good_failed) / labels
        size = labels / deff_labelled
    else:
        value = (
            passed * good_passed / judge_passed + (judged - passed) * good_failed / judge_failed
        ) / judged
        q = (passed + 0.5) / (judged + 1)
        a = (good_passed + 0.5) / (judge_passed + 1)
        b = (good_failed + 0.5) / (judge_failed + 1)
        variance = deff_labelled * (
            q * q * a * (1 - a) / judge_passed + (1 - q) ** 2 * b * (1 - b) / judge_failed
        ) + deff_judged * ((a - b) ** 2 * q * (1 - q) / judged)
        rate = q * a + (1 - q) * b
        size = rate * (1 - rate) / variance
    return Corrected(Estimate(value, *score_limits(value, size, z), n=labels, of=judged), raw)
