"""Single CQ-Bench answers: selections, as the released script reads them, extraction credits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from judge.evaluation.cqbench_scores import as_released, extraction_recall, selection_hits

OPTIONS = [f"Statement number {n} of the list--{a}" for n in range(5) for a in ("agree", "no", "x")]


def test_selection_by_hand() -> None:
    hits = selection_hits(["A--b", "c--d", "e--f"], ["a--B", "c--d", "g--h", "i--j"])
    assert (hits.hits, hits.given, hits.right) == (2, 3, 4)
    assert hits.precision == 2 / 3
    assert hits.recall == 0.5
    assert hits.f1 == pytest.approx(4 / 7)


def test_nothing_given_has_no_precision_and_an_f1_of_nothing() -> None:
    hits = selection_hits([], ["a--b"])
    assert (hits.precision, hits.recall, hits.f1) == (None, 0.0, 0.0)
    assert selection_hits([], []).f1 is None


@settings(deadline=None)
@given(st.sets(st.integers(0, 14), min_size=1), st.sets(st.integers(0, 14), min_size=1))
def test_f1_is_that_of_scikit_learn(given_: set[int], gold: set[int]) -> None:
    own = selection_hits([OPTIONS[n] for n in given_], [OPTIONS[n] for n in gold]).f1
    there = f1_score([n in gold for n in range(15)], [n in given_ for n in range(15)])
    assert own == pytest.approx(there)


@settings(deadline=None)
@given(st.sets(st.integers(0, 14), min_size=5, max_size=5), st.permutations(range(15)))
def test_exactly_as_many_as_are_right_makes_precision_recall_and_f1_one(
    gold: set[int], order: list[int]
) -> None:
    hits = selection_hits([OPTIONS[n] for n in order[:5]], [OPTIONS[n] for n in gold])
    assert hits.precision == hits.recall == pytest.approx(hits.f1)


def test_the_released_script_takes_the_nearest_option() -> None:
    told = ["2. Statement number 1 of the list--agree.", "STATEMENT NUMBER 3 OF THE LIST--NO"]
    assert as_released(told, OPTIONS) == [OPTIONS[3], OPTIONS[10]]


def test_the_released_script_drops_repetitions_and_entries_without_dashes() -> None:
    assert as_released([OPTIONS[0], "reasoning", OPTIONS[0].upper()], OPTIONS) == [OPTIONS[0]]


def test_the_released_script_keeps_what_is_like_no_option_as_wrong() -> None:
    assert as_released(["work--agree"], OPTIONS) == ["work--agree"]


def test_the_released_script_leaves_out_what_it_cannot_read_but_not_silence() -> None:
    assert as_released(["I cannot say", "none"], OPTIONS) is None
    assert as_released([], OPTIONS) == []


@pytest.mark.parametrize(
    ("credits", "recall"),
    [
        # S of section 3.1: fully, partially, not mentioned.
        ((1.0, 0.5, 0.0), 0.5),
        ((1.0, 1.0), 1.0),
        ((0.0,), 0.0),
        ((1.0, None), 1.0),
        ((None,), None),
        ((), None),
    ],
)
def test_extraction_recall(credits: tuple[float | None, ...], recall: float | None) -> None:
    assert extraction_recall(credits) == recall
