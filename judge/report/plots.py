"""What a calibration found, in pictures: for every check and judge, as PNG and SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from judge.report.sheet import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    Heading,
    need_matplotlib,
    save,
    sheet,
    short,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from judge.calibration.measures import Measures
    from judge.calibration.report import Calibration, CheckReport, JudgeReport
    from judge.stats.guarantee import Guarantee

_LONGEST = 60
"""Characters of a name's part in a file name."""


def draw(found: Calibration, folder: Path) -> list[Path]:
    """Write the plots of every check and judge to `folder` and return their paths, in that order.

    They are named CHECK.MODEL.KIND.png and .svg. KIND is `reliability` and `risk` for a judge with
    probabilities, `threshold` where there is a policy. The same findings give the same bytes, on
    the same machine.

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

    yield "reliability", reliability(heading("reliability"), judge)
    yield "risk", risk(heading("risk against coverage"), judge)
    if stage is not None:
        stated = (one.profile.guarantee for one in check.judges)
        wanted = next((one.agreement for one in stated if one is not None), None)
        yield "threshold", threshold(heading("agreement against threshold"), stage, wanted)


def reliability(heading: Heading, judge: JudgeReport) -> Figure | None:
    """What came true against what was promised, bin by bin; None without probabilities."""
    error = judge.final.calibration_error
    if not judge.final.bins:
        return None
    figure = sheet(
        heading,
        f"{error.n} of {error.of} items have a probability; calibration error {error}; "
        f"items in each bin: {', '.join(str(one.n) for one in judge.final.bins)}",
        width=6.4,
        height=5.6,
    )
    axes = figure.subplots()
    axes.plot((0, 1), (0, 1), color=PALE, linestyle="--", label="perfect")
    for name, measures, colour in _readings(judge):
        means = [one.mean_probability for one in measures.bins]
        axes.plot(means, [one.observed for one in measures.bins], "o-", color=colour, label=name)
    classes = judge.final.confusion.rows
    if len(classes) == 2:
        first = short(classes[0], 24)
        axes.set(xlabel=f"mean probability of “{first}”", ylabel=f"share labelled “{first}”")
    else:
        axes.set(xlabel="mean probability of the answer", ylabel="share of answers that are right")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend()
    return figure


def risk(heading: Heading, judge: JudgeReport) -> Figure | None:
    """How often answers are wrong, the surest kept first; None without probabilities."""
    final = judge.final
    if not final.risk_coverage:
        return None
    last = final.risk_coverage[-1]
    told = f"{last.n} of {final.items} items have a probability; risk of keeping all"
    figure = sheet(heading, f"{told} {last.risk:.2f}", width=6.4, height=4.4)
    axes = figure.subplots()
    for name, measures, colour in _readings(judge):
        points = measures.risk_coverage
        # Calibration that keeps the order leaves the curve as it was: both must be seen then.
        axes.plot(
            [point.coverage for point in points],
            [point.risk for point in points],
            color=colour,
            linewidth=1.8 if measures is final else 5.0,
            alpha=1.0 if measures is final else 0.4,
            label=name,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("coverage: share of the items kept, the surest first")
    axes.set_ylabel("risk: share of the kept that is wrong")
    axes.legend()
    return figure


def threshold(heading: Heading, stage: Guarantee, wanted: float | None) -> Figure | None:
    """Agreement and its lower bound at each threshold tested; None where none was.

    Args:
        wanted: the agreement to be guaranteed, in (0, 1); None where it is not known.
    """
    tested = sorted(stage.tested, key=lambda one: one.threshold)
    if not tested:
        return None
    told = f"No threshold holds: {stage.reason}"
    if stage.threshold is not None:
        told = (
            f"Decides from {stage.threshold:.3f} on: {stage.agreement.n} of {stage.coverage.of} "
            f"items; agrees on {stage.agreement}, lower bound {stage.agreement.low:.3f}"
        )
    figure = sheet(
        heading,
        told,
        width=max(6.4, 0.4 * len(tested) + 1.5),
        height=4.6,
        note="Thresholds are tested from the highest down, until the first whose bound is too low.",
    )
    axes = figure.subplots()
    places = range(len(tested))
    observed = [one.agreed / one.kept if one.kept else one.low for one in tested]
    axes.vlines(places, [one.low for one in tested], observed, color=PALE)
    axes.plot(places, observed, "o", color="black", label="observed")
    for holds, colour, words in ((True, BLUE, "suffices"), (False, ORANGE, "too low")):
        part = [(place, one.low) for place, one in zip(places, tested, strict=True)]
        part = [pair for pair, one in zip(part, tested, strict=True) if one.holds is holds]
        if part:
            axes.plot(*zip(*part, strict=True), "_", color=colour, ms=12, mew=2.2, label=words)
    if wanted is not None:
        axes.axhline(wanted, color=ORANGE, linestyle="--", label=f"wanted {wanted:g}")
    for place, one in enumerate(tested):
        if one.threshold == stage.threshold:
            axes.axvspan(place - 0.5, place + 0.5, color=BLUE, alpha=0.1, label="chosen")
    ticks = [f"{one.threshold:.4g}\n{one.kept} kept" for one in tested]
    axes.set_xticks(places, ticks, rotation=90)
    axes.set(ylim=(0, 1), xlabel="threshold of confidence", ylabel="agreement with the labels")
    axes.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1))
    return figure


def _readings(judge: JudgeReport) -> Iterator[tuple[str, Measures, str]]:
    """What there is to compare, the one that counts last, so that it lies on top."""
    if judge.calibrated is not None:
        yield "as it stands", judge.stands, GREY
        yield "calibrated", judge.calibrated, BLUE
    else:
        yield "judge", judge.stands, BLUE


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
