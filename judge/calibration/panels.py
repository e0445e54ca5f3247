"""Is a panel worth its judges? Effective votes, and the panel against its best single judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.calibration.judged import Judged
from judge.calibration.plain import plain
from judge.stats.intervals import Estimate
from judge.stats.votes import effective_votes_estimate, panel_against_best


@dataclass(frozen=True, slots=True)
class PanelMeasures:
    """What a panel adds to its judges.

    All over the items with a reference that each of its judges answered, `n` of each estimate, out
    of the items with a reference; accuracies only over those that the panel answered, too. Of two
    judges, that is where both say the same, so their panel never differs from the better one.

    - `judges`: their names
    - `effective_votes`: as many independent judges would be worth as much (`stats.effective_votes`)
    - `panel`, `single`, `difference`: accuracy of the panel, of its most accurate judge `best`, and
      the one less the other
    """

    judges: tuple[str, ...]
    effective_votes: Estimate
    panel: Estimate
    best: str
    single: Estimate
    difference: Estimate

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON values, numbers rounded to 6 places."""
        values: dict[str, Any] = plain(self)
        return values


def panel_measures(
    panel: Sequence[Judged],
    judges: Mapping[str, Sequence[Judged]],
    *,
    seed: int = 0,
    draws: int = 1000,
) -> PanelMeasures | None:
    """The panel beside its judges on the items that all answered.

    Args:
        panel: the panel's answers on one check.
        judges: each judge's answers to the same items, in the same order.
        seed: of the bootstrap.
        draws: resamples of the bootstrap, which draws whole records.

    Returns:
        None where no item with a reference was answered by all and the panel.

    Raises:
        ValueError: there is no judge, or a judge was given other items.
    """
    if not judges:
        raise ValueError("a panel has at least one judge")
    for name, answers in judges.items():
        if [_key(one) for one in answers] != [_key(one) for one in panel]:
            raise ValueError(f"judge {name} was given other items than the panel")
    rows = [
        row
        for row in zip(panel, *judges.values(), strict=True)
        if row[0].item.reference is not None
    ]
    answered = [row for row in rows if all(one.answer is not None for one in row[1:])]
    # An item without a majority tells as much of how alike the judges err as any other.
    votes = effective_votes_estimate(
        [_hits(row[1:]) for row in answered], _records(answered), seed=seed, draws=draws
    )
    settled = [row for row in answered if row[0].answer is not None]
    compared = panel_against_best(
        _hits([row[0] for row in settled]),
        [_hits(row[1:]) for row in settled],
        _records(settled),
        seed=seed,
        draws=draws,
    )
    if compared is None:
        return None
    names = tuple(judges)
    return PanelMeasures(
        judges=names,
        effective_votes=replace(votes, of=len(rows)),
        panel=replace(compared.panel, of=len(rows)),
        best=names[compared.best],
        single=replace(compared.single, of=len(rows)),
        difference=replace(compared.difference, of=len(rows)),
    )


def _hits(judged: Sequence[Judged]) -> list[bool]:
    return [one.answer == one.item.reference for one in judged]


def _records(rows: Sequence[Sequence[Judged]]) -> list[str]:
    return [row[0].item.record for row in rows]


def _key(judged: Judged) -> tuple[str, str, int]:
    return judged.item.record, judged.item.check, judged.item.number
