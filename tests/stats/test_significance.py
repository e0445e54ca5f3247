"""Tests of differences and Kendall's tau-c: by hand, against the papers and other libraries."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from statsmodels.stats.contingency_tables import mcnemar as reference
from statsmodels.stats.multitest import multipletests

from judge.stats.significance import Anova, holm, kendall_tau_c, mcnemar, one_way_anova

# ---------------------------------------------------------------- mcnemar


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=60))
def test_mcnemar_against_statsmodels(pairs: list[tuple[int, int]]) -> None:
    table = [[pairs.count((a, b)) for b in (1, 0)] for a in (1, 0)]
    found = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    assert (found.only_first, found.only_second) == (table[0][1], table[1][0])
    assert found.p == pytest.approx(float(reference(table, exact=True).pvalue), abs=1e-12)
    assert 0 < found.p <= 1


# ---------------------------------------------------------------- anova


@pytest.mark.parametrize(
    ("concepts", "f", "p"),
    [
        (35, 2255.3456, 7.043450519806435e-54),
        (345, 233.4199, 1.3687492031148516e-45),
    ],
)
def test_the_papers_p_values_follow_from_its_f_and_its_concepts(
    concepts: int, f: float, p: float
) -> None:
    """Bhatt and Diaz 2024, table 3: two groups with one value for each concept."""
    within = np.linspace(0.1, 0.2, concepts)
    mean_square = within.var(ddof=1)
    apart = np.sqrt(2 * f * mean_square / concepts)
    found = one_way_anova([within.tolist(), (within + apart).tolist()])
    assert found.f == pytest.approx(f)
    assert found.p == pytest.approx(p, rel=1e-4)
    assert (found.between, found.within) == (1, 2 * concepts - 2)


@pytest.mark.parametrize(
    ("groups", "between", "within"),
    [
        ([], 0, 0),
        ([[1.0, 2.0]], 0, 1),
        ([[1.0], [2.0]], 1, 0),
        ([[1.0, 1.0], [2.0, 2.0]], 1, 2),
    ],
)
def test_anova_undefined(groups: list[list[float]], between: int, within: int) -> None:
    assert one_way_anova(groups) == Anova(None, None, between, within)


def test_anova_by_hand() -> None:
    """Means 2 and 5 around 3: 2 * 1 + 1 * 4 = 6 between, 2 within, each with one degree of freedom.

    F with 1 and 1 degrees of freedom is the square of Student's t with 1, whose two-sided p at
    sqrt(3) is 1/3.
    """
    found = one_way_anova([[1.0, 3.0], [], [5.0]])
    assert (found.f, found.p) == (pytest.approx(3.0), pytest.approx(1 / 3))
    assert (found.between, found.within) == (1, 1)


# ---------------------------------------------------------------- holm


@pytest.fixture(scope="module")
def no_collection() -> Iterator[None]:
    """statsmodels collects garbage at every call: a second where many tests ran before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_statsmodels(no_collection: None, p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1].tolist()
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------- kendall


@pytest.mark.parametrize("values", [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3])])
def test_kendall_undefined(values: tuple[list[float], list[float]]) -> None:
    assert kendall_tau_c(*values) is None


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=2, max_size=25))
def test_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = kendall_tau_c(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(kendalltau(first, second, variant="c").statistic)
