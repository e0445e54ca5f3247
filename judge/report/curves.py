"""Plots over probabilities: reliability, risk against coverage, agreement against threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from judge.report.sheet import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SMALL,
    Heading,
    count_bars,
    items,
    legend_above,
    number,
    probability,
    share_axis,
    sheet,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from judge.calibration.measures import Measures
    from judge.calibration.outcome import JudgeReport
    from judge.stats.calibration_error import ReliabilityBin, RiskPoint
    from judge.stats.guarantee import Guarantee, Tested

_CALIBRATED, _STANDS = "calibrated", "as it stands"
_MARKS = 5
_ROOM = 0.09
"""Shares of an axis closer than this have no room for a label each."""


def reliability(heading: Heading, judge: JudgeReport) -> Figure | None:
    """What came true against what was promised, bin by bin, over how many items are in each.

    None for a judge without probabilities.
    """
    final = judge.final
    if not final.bins:
        return None
    error = final.calibration_error
    figure = sheet(
        heading,
        f"{error.n} of {error.of} items have a probability; calibration error {number(error)}",
        width=7.0,
        height=7.0,
    )
    upper, lower = figure.subplots(2, 1, height_ratios=(5, 1))
    _promises(upper, judge)
    two = len(final.confusion.rows) == 2
    first = short(final.confusion.rows[0], 24)
    upper.set_xlabel(f"mean probability of “{first}”" if two else "mean probability of the answer")
    upper.set_ylabel(f"share labelled “{first}”" if two else "share of answers that are right")
    counts = [one.n for one in final.bins]
    count_bars(lower, counts, [_edges(one) for one in final.bins], turned=False)
    lower.set_ylabel("items", rotation=0, ha="right", va="center")
    lower.set_xlabel("bins of equal mass, by their edges")
    return figure


def risk(heading: Heading, judge: JudgeReport) -> Figure | None:
    """How often answers are wrong, the surest kept first; None without probabilities."""
    final = judge.final
    if not final.risk_coverage:
        return None
    last = final.risk_coverage[-1]
    told = (
        f"{last.n} of {final.items} items have a probability; risk of keeping all {last.risk:.2f}"
    )
    figure = sheet(heading, told, width=7.0, height=4.8)
    axes = figure.subplots()
    ends = []
    for name, measures, colour in _curves(judge):
        points = measures.risk_coverage
        across, up = [point.coverage for point in points], [point.risk for point in points]
        # Calibration that keeps the order leaves the curve as it was: both must be seen then.
        wide, shade = (1.8, BLUE) if measures is final else (5.0, PALE)
        mark = "o" if len(points) <= 15 else ""
        axes.plot(across, up, color=shade, linewidth=wide, marker=mark, markersize=4, clip_on=False)
        ends.append((points[-1].risk, f"{name} {points[-1].risk:.2f}".strip(), colour))
    for place, (words, colour) in _apart(ends):
        axes.annotate(
            words,
            (1, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            annotation_clip=False,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    share_axis(axes.xaxis)
    share_axis(axes.yaxis)
    axes.set_xlabel("coverage: share of the items kept, the surest first")
    axes.set_ylabel("risk: share of the kept that is wrong")
    _mark_thresholds(axes, judge)
    return figure


def threshold(heading: Heading, stage: Guarantee, wanted: float | None) -> Figure | None:
    """Agreement and its lower bound at each threshold tested; None where none was.

    Args:
        wanted: the agreement to be guaranteed, in (0, 1); None where it is not known.
    """
    tested = sorted(stage.tested, key=lambda one: one.threshold)
    if not tested:
        return None
    figure = sheet(
        heading, _found(stage), width=max(7.0, 0.4 * len(tested) + 1.5), height=6.2, note=_REACHED
    )
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    _bounds(upper, tested)
    if wanted is not None:
        _wanted(upper, wanted)
    chosen = [place for place, one in enumerate(tested) if one.threshold == stage.threshold]
    for place in chosen:
        upper.axvspan(place - 0.5, place + 0.5, color=BLUE, alpha=0.1, linewidth=0)
        upper.text(place, 0.02, "chosen", ha="center", va="bottom", color=BLUE, rotation=90)
    upper.set_ylim(0, 1)
    share_axis(upper.yaxis)
    upper.set_ylabel("agreement with the labels")
    upper.tick_params(axis="x", length=0, labelbottom=False)
    legend_above(upper)
    names = _told_apart([one.threshold for one in tested])
    count_bars(lower, [one.kept for one in tested], names, turned=len(tested) > 10)
    spare = max(0.0, (6 - len(tested)) / 2)
    lower.set_xlim(-0.6 - spare, len(tested) - 0.4 + spare)
    lower.set_ylabel("items kept", rotation=0, ha="right", va="center")
    lower.set_xlabel("threshold of confidence")
    return figure


_REACHED = "Thresholds are tested from the highest down, until the first whose bound is too low."


def _curves(judge: JudgeReport) -> Iterator[tuple[str, Measures, str]]:
    """What there is to compare, the one that counts last, so that it lies on top."""
    if judge.calibrated is None:
        yield "", judge.stands, BLUE
    else:
        yield _STANDS, judge.stands, GREY
        yield _CALIBRATED, judge.calibrated, BLUE


def _promises(axes: Axes, judge: JudgeReport) -> None:
    axes.plot((0, 1), (0, 1), color=PALE, linewidth=1.2, linestyle=(0, (4, 3)), label="perfect")
    for name, measures, colour in _curves(judge):
        bins = measures.bins
        main = measures is judge.final
        axes.plot(
            [one.mean_probability for one in bins],
            [one.observed for one in bins],
            color=colour,
            linewidth=1.8 if main else 1.2,
            marker="o",
            markersize=6 if main else 4,
            label=name or "judge",
            clip_on=False,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_box_aspect(1)
    share_axis(axes.xaxis)
    share_axis(axes.yaxis)
    legend_above(axes)


def _edges(one: ReliabilityBin) -> str:
    return f"{probability(one.low)}–\n{probability(one.high)}"


def _mark_thresholds(axes: Axes, judge: JudgeReport) -> None:
    """On the upper axis, the probability from which on so many are kept."""
    points = judge.final.risk_coverage
    marked: list[RiskPoint] = []
    for step in range(1, _MARKS + 1):
        point = next(one for one in points if one.coverage >= step / _MARKS - 1e-9)
        if not marked or point.coverage - marked[-1].coverage >= _ROOM:
            marked.append(point)
    upper = axes.secondary_xaxis("top")
    upper.set_xticks(
        [point.coverage for point in marked],
        [f"{probability(point.threshold)}\n{items(point.n)}" for point in marked],
    )
    which = "calibrated probability" if judge.calibrated else "probability"
    upper.set_xlabel(f"kept from this {which} on", size=SMALL, color=GREY)
    upper.spines["top"].set_visible(False)


def _apart(
    ends: Sequence[tuple[float, str, str]],
) -> list[tuple[float, tuple[str, str]]]:
    """Places along [0, 1] for labels of at most two curves, moved off one another."""
    ordered = sorted(ends)
    places = [end for end, _, _ in ordered]
    if len(places) == 2 and places[1] - places[0] < _ROOM * 0.7:
        middle = min(max(sum(places) / 2, _ROOM), 1 - _ROOM)
        places = [middle - _ROOM * 0.35, middle + _ROOM * 0.35]
    return [
        (place, (words, colour)) for place, (_, words, colour) in zip(places, ordered, strict=True)
    ]


def _told_apart(thresholds: Sequence[float]) -> list[str]:
    """To three places, or as many more as it takes, up to eight."""
    names: list[str] = []
    for places in range(3, 9):
        names = [f"{one:.{places}f}" for one in thresholds]
        if len(set(names)) == len(names):
            break
    return names


def _found(stage: Guarantee) -> str:
    share, agreement = stage.coverage, stage.agreement
    if stage.threshold is None or agreement.value is None or agreement.low is None:
        return f"No threshold holds: {stage.reason}"
    return (
        f"Decides from {stage.threshold:.3f} on: {agreement.n} of {share.of} items; "
        f"agrees on {agreement.value:.1%} of them, lower bound {agreement.low:.1%}"
    )


def _bounds(axes: Axes, tested: Sequence[Tested]) -> None:
    """Each threshold's agreement, a line down to its bound, the bound coloured by what it says."""
    for holds, colour, words in (
        (True, BLUE, "lower bound, suffices"),
        (False, ORANGE, "lower bound, too low"),
    ):
        part = [(place, one) for place, one in enumerate(tested) if one.holds is holds]
        places = [place for place, _ in part]
        lows = [one.low for _, one in part]
        observed = [one.agreed / one.kept if one.kept else one.low for _, one in part]
        axes.vlines(places, lows, observed, color=PALE, linewidth=1.5, zorder=1)
        if part:
            axes.scatter(places, lows, marker="_", s=90, linewidths=2.2, color=colour, label=words)
    seen = [(place, one) for place, one in enumerate(tested) if one.kept]
    axes.scatter(
        [place for place, _ in seen],
        [one.agreed / one.kept for _, one in seen],
        s=26,
        color="black",
        label="observed",
        clip_on=False,
    )


def _wanted(axes: Axes, agreement: float) -> None:
    axes.axhline(agreement, color=ORANGE, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        f"wanted\n{agreement:g}",
        (1, agreement),
        xycoords=("axes fraction", "data"),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=ORANGE,
        annotation_clip=False,
    )
