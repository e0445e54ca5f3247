"""Plots over counted answers: the confusion matrix, and agreement by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from judge.report.sheet import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SMALL,
    UNDEFINED,
    Heading,
    items,
    number,
    share_axis,
    sheet,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from judge.calibration.measures import Confusion, Measures
    from judge.calibration.outcome import JudgeReport
    from judge.stats.intervals import Estimate

MOST = 40
"""Slices that a plot has room for."""

_NAMED = 400
_GAP = 0.2


def confusion(heading: Heading, judge: JudgeReport) -> Figure | None:
    """Counts and row shares of labels against answers; None where no item has a label.

    Outcomes without an answer stand apart, those that never happened are left out.
    """
    final = judge.final
    if not final.items:
        return None
    matrix = final.confusion
    shown = [
        place
        for place, name in enumerate(matrix.columns)
        if name in matrix.rows or any(row[place] for row in matrix.counts)
    ]
    across, down = len(shown), len(matrix.rows)
    figure = sheet(
        heading,
        f"{final.accuracy.n} of {final.items} items answered; "
        f"accuracy {number(final.accuracy)}, kappa {number(final.kappa)}",
        width=max(7.0, 1.15 * across + 1.8),
        height=0.8 * down + 1.0,
        note="Shares are of the row: of all items with that label.",
    )
    axes = figure.subplots()
    _cells(axes, matrix, shown)
    columns = [short(matrix.columns[place], 14) for place in shown]
    axes.set_xticks([_left(place, down) + 0.5 for place in range(across)], columns)
    rows = [
        f"{short(name, 20)}\n{items(sum(counts))}"
        for name, counts in zip(matrix.rows, matrix.counts, strict=True)
    ]
    axes.set_yticks([place + 0.5 for place in range(down)], rows)
    axes.set(xlim=(0, _left(across - 1, down) + 1), ylim=(down, 0))
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("answer of the judge", labelpad=8)
    axes.set_ylabel("label", labelpad=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def by_slice(
    heading: Heading, field: str, parts: Mapping[str, Measures], whole: Measures
) -> Figure | None:
    """Accuracy and kappa of each slice with their intervals, from the best slice to the worst.

    Slices beyond `MOST` are left out, the smallest first, and named. None where no slice has an
    answered item.

    Args:
        field: what the slices are told apart by.
        whole: the same judge over all items.
    """
    measured = [name for name in parts if parts[name].accuracy.value is not None]
    if not measured:
        return None
    largest = sorted(parts, key=lambda name: (-parts[name].items, name))
    kept, left_out = largest[:MOST], largest[MOST:]
    ordered = sorted(kept, key=lambda name: (_worst(parts[name]), -parts[name].items, name))
    figure = sheet(
        heading,
        f"by {short(field, 32)}, {len(kept)} of {len(parts)} slices; "
        "beside each slice: items answered of those with a label",
        width=9.0,
        height=0.27 * len(kept) + 0.95,
        note=_left_out(left_out, parts),
    )
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for axes, name, whole_of, values in (
        (left, "accuracy", whole.accuracy, [parts[one].accuracy for one in ordered]),
        (right, "kappa", whole.kappa, [parts[one].kappa for one in ordered]),
    ):
        _intervals(axes, name, values, whole_of)
    counts = [f"{parts[name].accuracy.n} of {parts[name].items}" for name in ordered]
    # Apart from the names: beside one that is written from right to left, numbers change places.
    for place, count in enumerate(counts):
        _beside(left, place, 0, count, -6)
    left.set_yticks(range(len(ordered)), [short(name, 32) for name in ordered])
    left.tick_params(axis="y", pad=13 + 0.62 * SMALL * max(map(len, counts)))
    left.set_ylim(len(ordered) - 0.4, -0.6)
    return figure


def _left(place: int, answers: int) -> float:
    """The left side of a column, those after the answers moved a little away."""
    return place + (_GAP if place >= answers else 0.0)


def _cells(axes: Axes, matrix: Confusion, shown: Sequence[int]) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    for down, (name, counts) in enumerate(zip(matrix.rows, matrix.counts, strict=True)):
        for across, place in enumerate(shown):
            share = counts[place] / sum(counts) if sum(counts) else 0.0
            answer = matrix.columns[place]
            colour = BLUE if answer == name else ORANGE if answer in matrix.rows else GREY
            corner = (_left(across, len(matrix.rows)), float(down))
            # Faint even at 0, so that an empty cell is seen to be a cell.
            fill = to_rgba(colour, 0.05 + 0.95 * share)
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=fill, edgecolor="white", linewidth=2))
            axes.text(
                corner[0] + 0.5,
                corner[1] + 0.5,
                f"{counts[place]}\n{share:.0%}" if sum(counts) else "0",
                ha="center",
                va="center",
                color="white" if share > 0.85 and colour != ORANGE else "black",
                linespacing=1.3,
            )


def _worst(measures: Measures) -> float:
    """What sorts from the best slice to the worst, the undefined last."""
    value = measures.accuracy.value
    return 1.0 if value is None else -value


def _intervals(axes: Axes, name: str, values: Sequence[Estimate], whole: Estimate) -> None:
    for place, one in enumerate(values):
        if one.low is not None and one.high is not None:
            axes.hlines(place, one.low, one.high, color=BLUE, linewidth=1.6, alpha=0.55)
        if one.value is not None:
            axes.plot(one.value, place, "o", color=BLUE, markersize=5, clip_on=False)
        _beside(axes, place, 1, UNDEFINED if one.value is None else f"{one.value:.2f}", 8)
    lows = [low for one in values for low in (one.low, one.value) if low is not None]
    low = next((low for low in (0.0, -0.5) if min(lows, default=0.0) >= low), -1.0)
    if whole.value is not None:
        axes.axvline(whole.value, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        # Over the line, but with its words inside the axes.
        across = min(max((whole.value - low) / (1 - low), 0.15), 0.85)
        axes.set_title(f"all items {whole.value:.2f}", size=SMALL, color=GREY, x=across)
    axes.set_xlim(low, 1)
    share_axis(axes.xaxis, low)
    axes.set_xlabel(name)
    axes.grid(axis="y", color=PALE, linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _beside(axes: Axes, place: int, side: int, words: str, away: float) -> None:
    """Words at a row's left (0) or right (1) end, so many points away from it."""
    axes.annotate(
        words,
        (side, place),
        xycoords=("axes fraction", "data"),
        xytext=(away, 0),
        textcoords="offset points",
        ha="left" if side else "right",
        va="center",
        size=SMALL,
        color=GREY,
        annotation_clip=False,
    )


def _left_out(names: Sequence[str], parts: Mapping[str, Measures]) -> str | None:
    """The slices that are not drawn, with their items, as far as there is room to name them."""
    if not names:
        return None
    told: list[str] = []
    for name in names:
        told.append(f"{short(name, 32)} ({parts[name].items})")
        if len(", ".join(told)) > _NAMED:
            break
    more = f" and {len(names) - len(told)} more" if len(told) < len(names) else ""
    return f"Left out, with the fewest items: {', '.join(told)}{more}"
