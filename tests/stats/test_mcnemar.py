"""McNemar's exact test, by hand and against statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference

from judge.stats.significance import McNemar, mcnemar


def test_by_hand() -> None:
    # 1 to 5 of six: 2 * (1 + 6) / 64.
    first, second = [1, 0, 0, 0, 0, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1, 1, 1, 0]
    assert mcnemar(first, second) == McNemar(1, 5, pytest.approx(14 / 64))
    assert mcnemar(second, first) == McNemar(5, 1, pytest.approx(14 / 64))


def test_all_to_one_side() -> None:
    assert mcnemar([0] * 10, [1] * 10).p == pytest.approx(2 / 2**10)


@pytest.mark.parametrize("scores", [[], [1, 0, 1]])
def test_nothing_differs(scores: list[float]) -> None:
    assert mcnemar(scores, scores) == McNemar(0, 0, 1.0)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=60))
def test_against_statsmodels(pairs: list[tuple[int, int]]) -> None:
    table = [[pairs.count((a, b)) for b in (1, 0)] for a in (1, 0)]
    found = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    assert (found.only_first, found.only_second) == (table[0][1], table[1][0])
    assert found.p == pytest.approx(float(reference(table, exact=True).pvalue), abs=1e-12)
    assert 0 < found.p <= 1


def test_what_it_cannot_take() -> None:
    with pytest.raises(ValueError, match="2 scores and 1"):
        mcnemar([1, 0], [1])
    with pytest.raises(ValueError, match=r"0\.5"):
        mcnemar([1, 0], [0.5, 1])
