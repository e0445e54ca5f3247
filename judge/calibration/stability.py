"""Does the judge stand by its answers? Other seeds, and alternatives named in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge.calibration.judged import Judged
from judge.calibration.plain import plain
from judge.stats.intervals import Estimate
from judge.stats.votes import PositionEffect, flip_rate, position_effect


@dataclass(frozen=True, slots=True)
class Stability:
    """How often answers flip between seeds, and with the order of the alternatives.

    `flips` is over items asked under several seeds; `position` is None where no item was answered
    in both orders.
    """

    flips: Estimate
    position: PositionEffect | None

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON values, numbers rounded to 6 places."""
        values: dict[str, Any] = plain(self)
        return values


def stability(
    judged: Sequence[Judged], order: Sequence[str], *, seed: int = 0, draws: int = 1000
) -> Stability:
    """Flip rate and position effect of one judge on one check; no reference is needed.

    Args:
        judged: the judge's answers, with `repeats` and `swapped`.
        order: the check's alternatives in the order in which the judge was shown them.
        seed: of the bootstrap.
        draws: resamples of the bootstrap, which draws whole records.

    Raises:
        ValueError: as `position_effect`.
    """
    records = [one.item.record for one in judged]
    seeds = [(one.answer, *one.repeats) for one in judged]
    orders = [(one.answer, one.swapped) for one in judged]
    both = any(None not in pair for pair in orders)
    return Stability(
        flips=flip_rate(seeds, records, seed=seed, draws=draws),
        position=position_effect(orders, order, records, seed=seed, draws=draws) if both else None,
    )
