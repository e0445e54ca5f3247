"""Corrected pass rates from output lines: records as they came in, and values."""

from __future__ import annotations

from typing import Any

import pytest
from made_profiles import GOOD

from judge.profile import Rates
from judge.records.lines import Line
from judge.run import corrected
from judge.run.corrected import CorrectedRate, Errors, count
from judge.stats.corrected_rate import rogan_gladen
from judge.stats.intervals import wilson
from judge.verdict import Verdict

KNOWN = {("relevance", "loop"): Errors(GOOD), ("incorporation", "loop"): Errors(GOOD)}


def check(name: str, verdict: str, *, by: str = "loop", **values: str) -> dict[str, Any]:
    """A check as an output line has it; `values` are those asked about."""
    evidence = [{"value": f"{v}--Agree", "verdict": said} for v, said in values.items()]
    vote = {"model": "m:x", "verdict": verdict, "evidence": evidence}
    return {"check": name, "by": by, "verdict": verdict, "votes": [vote]}


def only(*lines: list[dict[str, Any]]) -> CorrectedRate:
    rates: dict[str, CorrectedRate] = {}
    for number, checks in enumerate(lines):
        count(rates, Line({"id": number}, {"verdict": "pass", "checks": checks}), KNOWN)
    (rate,) = rates.values()
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
    ("said", "undecided", "passed"),
    [
        ({"One": "pass", "Two": "abstain"}, 1, 0.5),
        ({"One": "unreadable", "Two": "unreadable"}, 2, 0.0),
    ],
)
def test_values_without_a_verdict_are_undecided(
    said: dict[str, str], undecided: int, passed: float
) -> None:
    rate = only([check("incorporation", "abstain", **said)])
    assert (rate.undecided.total(), rate.corrected.raw.value) == (undecided, passed)


def test_what_no_judge_was_asked_about_counts_nowhere() -> None:
    asked, unasked = check("relevance", "pass"), {**check("relevance", "abstain"), "votes": []}
    assert only([asked], [unasked]) == only([asked])
    overruled = {**check("relevance", "fail", by="person"), "votes": []}
    assert only([asked, overruled]) == only([asked]), "the errors are the judge's"


def test_the_undecided_count_once_as_failed_and_once_as_passed() -> None:
    """By hand: 50, or 70, of 100 pass. Of the labels 10 of 100 that should pass and 20 of 100 that
    should fail are undecided, too: TPR 0.8 or 0.9, TNR 0.8 or 0.6."""
    known = Rates(
        passed=80, passes=90, failed=60, fails=80, undecided_passes=10, undecided_fails=20
    )
    rate = CorrectedRate("x", Errors(known))
    for number in range(100):
        verdict = "pass" if number < 50 else "fail" if number < 80 else "abstain"
        rate.add([Verdict(verdict)], {"id": number})
    found, ends = rate.corrected, [(50, 80, 80), (70, 90, 60)]
    each = [rogan_gladen(n, 100, right, 100, wrong, 100).estimate for n, right, wrong in ends]
    assert found.raw.value == 0.5
    assert found.estimate.value == pytest.approx((0.3 / 0.6 + 0.3 / 0.5) / 2)
    assert found.estimate.low == min(one.low for one in each if one.low is not None)
    assert found.estimate.high == max(one.high for one in each if one.high is not None)
    assert found.estimate.n == 200
    # One of the two is refused: a judge that passes everything it does not abstain on.
    rate.errors = Errors(known.model_copy(update={"failed": 0, "fails": 0, "undecided_fails": 100}))
    assert "not clearly above 0" in str(rate.corrected.reason)
    assert rate.corrected.estimate.value is None and rate.corrected.raw.value == 0.5


@pytest.mark.parametrize(
    ("records", "group", "clusters"),
    [
        ([{"by": "a", "mail": "one"}, {"by": "a", "mail": "two"}, {"by": "b"}], "by", 2),
        ([{"id": 1, "mail": "One, two three!"}, {"id": 2, "mail": "one two  THREE"}], None, 1),
        ([{"id": 1, "mail": "one two three"}, {"id": 2, "mail": "one two four"}], None, 2),
        ([{"id": 1, "mail": "晨光中她把信"}, {"id": 2, "mail": "晨光中她把信。"}], None, 1),
        ([{"id": 1, "mail": "yes"}, {"id": 2, "mail": "yes"}], None, 2),
        ([{"by": "", "mail": "one two three"}, {"mail": "one two three"}], "by", 1),
    ],
)
def test_records_of_one_group_or_text_are_a_cluster(
    records: list[dict[str, Any]], group: str | None, clusters: int
) -> None:
    rate = CorrectedRate("x", Errors(GOOD, group=group))
    for fields in records:
        rate.add([Verdict.PASS], fields)
    assert len(rate.sizes) == clusters and rate.sizes.total() == len(records)
    grouped = all(fields.get("by") for fields in records)
    assert rate.as_json()["grouped_by"] == (group if grouped else None)


def test_clusters_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random groups of clusters show the error of the share as the clusters themselves do."""
    widths = []
    for parts in (2**16, 100):
        monkeypatch.setattr(corrected, "_PARTS", parts)
        rate = CorrectedRate("x", Errors(GOOD, group="by"))
        for number in range(4000):
            author = number // 10
            rate.add([Verdict.PASS if author % 4 else Verdict.FAIL], {"by": f"author {author}"})
        assert len(rate.sizes) <= parts
        found = rate.corrected.raw
        widths.append((found.high or 0.0) - (found.low or 0.0))
    # All ten of an author alike: as many as 400 authors are worth, give or take the draw.
    plain = wilson(300, 400)
    assert widths[0] == pytest.approx((plain.high or 0.0) - (plain.low or 0.0), rel=0.02)
    assert widths[1] == pytest.approx(widths[0], rel=0.25)
