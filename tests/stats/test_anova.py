"""One-way ANOVA, by hand and against the paper's table 3."""

from __future__ import annotations

import numpy as np
import pytest

from judge.stats.significance import Anova, one_way_anova


def test_by_hand() -> None:
    # Means 2 and 5 about 3.5: B = 6 * 1.5^2 = 13.5; W = 2 + 2 = 4 with 4 degrees of freedom.
    found = one_way_anova([[1, 2, 3], [4, 5, 6]])
    assert found.f == pytest.approx(13.5)
    assert (found.between, found.within) == (1, 4)
    assert found.p == pytest.approx(0.021311641)


@pytest.mark.parametrize(
    ("concepts", "f", "p"),
    [
        (35, 2255.3456, 7.043450519806435e-54),
        (35, 3610.5356, 1.1491538258492085e-60),
        (35, 1055.6979, 3.80594818701481e-43),
        (345, 911.4229, 3.7297913016341677e-128),
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


@pytest.mark.parametrize("groups", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]]])
def test_undefined(groups: list[list[float]]) -> None:
    found = one_way_anova(groups)
    assert found.f is None and found.p is None


def test_empty_groups_are_left_out() -> None:
    assert one_way_anova([[1, 2, 3], [], [4, 5, 6]]) == one_way_anova([[1, 2, 3], [4, 5, 6]])
    assert one_way_anova([[], [1.0, 2.0]]) == Anova(None, None, 0, 1)
