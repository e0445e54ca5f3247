"""What a calibration found, in pictures: for every check and judge, as PNG and SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from judge.report import curves, tallies
from judge.report.sheet import Heading, need_matplotlib, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from judge.calibration.outcome import Calibration, CheckReport, JudgeReport
    from judge.stats.guarantee import Guarantee

_LONGEST = 60
"""Characters of a name's part in a file name."""


def draw(found: Calibration, folder: Path) -> list[Path]:
    """Write the plots of every check and judge to `folder` and return their paths, in that order.

    They are named CHECK.MODEL.KIND.png and .svg; KIND is `reliability`, `risk`, `confusion`,
    `threshold` or `by-FIELD`. What there is nothing to show of is not drawn: no `reliability` and
    no `risk` without probabilities, no `threshold` without a policy. The same findings give the
    same bytes, on the same machine.

    Raises:
        UsageError: matplotlib is not installed.
        OSError: the folder cannot be written to.
    """
    need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    taken: set[str] = set()
    for check in found.checks:
        for number, judge in enumerate(check.judges):
            name = _unique(f"{_slug(check.check)}.{_slug(judge.model)}", taken)
            stage = check.policy.stages[number] if check.policy else None
            with style():
                for kind, figure in _figures(check, judge, stage):
                    if figure is not None:
                        paths += save(figure, folder / f"{name}.{kind}")
    return paths


def _figures(
    check: CheckReport, judge: JudgeReport, stage: Guarantee | None
) -> Iterator[tuple[str, Figure | None]]:
    def heading(what: str) -> Heading:
        return Heading(check.check, judge.model, what)

    yield "reliability", curves.reliability(heading("reliability"), judge)
    yield "risk", curves.risk(heading("risk against coverage"), judge)
    yield "confusion", tallies.confusion(heading("confusion of labels and answers"), judge)
    if stage is not None:
        yield (
            "threshold",
            curves.threshold(heading("agreement against threshold"), stage, _wanted(check)),
        )
    taken: set[str] = set()
    for field, parts in judge.by.items():
        # Without dots, so that no field's file can be taken for another model's.
        kind = _unique(f"by-{_slug(field).replace('.', '-')}", taken)
        yield kind, tallies.by_slice(heading("agreement by slice"), field, parts, judge.final)


def _wanted(check: CheckReport) -> float | None:
    """The agreement that was asked for, which the profile of a judge with a threshold states."""
    stated = (judge.profile.guarantee for judge in check.judges)
    return next((one.agreement for one in stated if one is not None), None)


def _slug(name: str) -> str:
    """A name as part of a file name; of a long one its end, which tells models apart."""
    safe = re.sub(r"[^A-Za-z0-9._]+", "-", name)
    return safe[-_LONGEST:].strip("-.") or "unnamed"


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken; file systems may not tell capitals apart."""
    number, chosen = 1, name
    while chosen.casefold() in taken:
        number += 1
        chosen = f"{name}-{number}"
    taken.add(chosen.casefold())
    return chosen
