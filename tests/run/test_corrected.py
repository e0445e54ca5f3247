"""Corrected pass rates from output lines: records as they came in, and values."""

from __future__ import annotations

from typing import Any

import pytest
from made_profiles import GOOD

from judge.run.calibrated import CorrectedRate, Corrections, Errors
from judge.verdict import Verdict

KNOWN = {("relevance", "loop"): Errors(GOOD), ("incorporation", "loop"): Errors(GOOD)}


def check(name: str, verdict: str, *, by: str = "loop", **values: str) -> dict[str, Any]:
    """A check as an output line has it; `values` are those asked about."""
    evidence = [{"value": f"{v}--Agree", "verdict": said} for v, said in values.items()]
    vote = {"model": "m:x", "verdict": verdict, "evidence": evidence}
    return {"check": name, "by": by, "verdict": verdict, "votes": [vote]}


def only(*lines: list[dict[str, Any]]) -> CorrectedRate:
    corrections = Corrections()
    for checks in lines:
        corrections.add({"verdict": "pass", "checks": checks}, KNOWN)
    (rate,) = corrections.rates()
    return rate


def test_a_repaired_record_counts_as_it_came() -> None:
    passed, failed = [check("relevance", "pass")], [check("relevance", "fail")]
    rewritten = [check("relevance", "pass"), check("relevance", "pass", by="final")]
    plain = only(*[passed] * 8, failed, failed)
    repaired = only(*[passed] * 8, [*failed, *rewritten], [*failed, *rewritten])
    assert repaired == plain
    assert plain.corrected.raw.n == 10


def test_checks_about_values_count_values() -> None:
    both = [check("incorporation", "pass", One="pass", Two="pass")]
    one = [check("incorporation", "fail", One="pass", Two="fail")]
    rate = only(both, *[one] * 9)
    assert (rate.corrected.raw.n, rate.corrected.raw.value) == (20, pytest.approx(0.55))
    assert rate.corrected.estimate.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("said", "undecided", "decided"),
    [
        ({"One": "pass", "Two": "abstain"}, 1, 1),
        ({"One": "unreadable", "Two": "unreadable"}, 2, 0),
    ],
)
def test_values_without_a_verdict_are_undecided(
    said: dict[str, str], undecided: int, decided: int
) -> None:
    rate = only([check("incorporation", "abstain", **said)])
    assert (rate.undecided, rate.corrected.raw.n) == (undecided, decided)


def test_the_undecided_are_counted_either_way_beside_the_rate() -> None:
    """By hand: of 100 answers 20 are undecided, so a rate in [a, b] is in [0.8 a, 0.8 b + 0.2]."""
    rate = CorrectedRate("x", GOOD)
    for verdict, count in ((Verdict.PASS, 50), (Verdict.FAIL, 30)):
        for _ in range(count):
            rate.add([verdict])
    assert rate.bounds is None
    for _ in range(20):
        rate.add([Verdict.ABSTAIN])
    low, high = rate.corrected.estimate.low, rate.corrected.estimate.high
    assert low is not None and high is not None
    assert rate.bounds == pytest.approx((0.8 * low, 0.8 * high + 0.2))
    assert rate.as_json()["with_undecided"] == pytest.approx(rate.bounds, abs=1e-6)
