"""A figure of several runs' scores, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal
from warnings import catch_warnings, filterwarnings, warn_explicit

from judge.errors import UsageError
from judge.report.files import writing
from judge.stats.intervals import Estimate, Quartiles

if TYPE_CHECKING:
    from judge.report.compare import Comparison, FigurePanel

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    # Dollar signs in names are no mathematics.
    "text.parse_math": False,
    # Text stays text, which can be searched and read aloud; the salt gives the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "judge",
}


_NO_GLYPH = "Glyph .* missing from"


@contextmanager
def _styled() -> Iterator[list[str]]:
    """Draw in our style; yields the list of matplotlib's warnings of letters that its font lacks,
    which is complete at the end."""
    from matplotlib.style import context

    lacking: list[str] = []
    with context(["default", STYLE]), catch_warnings(record=True) as warnings:
        filterwarnings("always", message=_NO_GLYPH)
        yield lacking
    for warning in warnings:
        if re.match(_NO_GLYPH, str(warning.message)):
            lacking.append(str(warning.message))
        else:
            warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def drawable(text: str, size: int) -> str:
    """The text on one line, in printable characters, its middle cut out if it is too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    end = size // 2
    return line if len(line) <= size else f"{line[: size - 1 - end]}…{line[-end:]}"


ENDINGS = (".svg", ".png")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_STEP = 0.7
"""The part of a row's height that its runs are spread over."""


_MOST_ROWS = 60
"""Most rows of a panel; a panel with more, such as a measure by country, is left out."""


FigureForm = Literal["dots", "bars", "boxes"]
"""How a figure shows a run: a dot with its interval; a bar with it, and a line at the mean of the
runs; the box of a measure (median, quartiles) in a paper's tables."""


def draw_runs(comparison: Comparison, path: Path, form: FigureForm = "dots") -> str | None:
    """Draw a comparison's runs, in panels below one another, with a mark for each run in each row.

    The same comparison gives the same bytes. Returns the note that a name cannot be read in it, if
    one cannot. Raises UsageError if there is nothing to draw, or `path` does not end in one of
    `ENDINGS` or cannot be written; JudgeError as `writing`.
    """
    from matplotlib.figure import Figure

    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--figure {path}: name a file that ends in {', '.join(ENDINGS)}")
    runs = comparison.runs
    panels = comparison.panels(Quartiles if form == "boxes" else Estimate)
    panels = [panel for panel in panels if len(panel.rows) <= _MOST_ROWS]
    if not panels:
        what = "measures with boxes" if form == "boxes" else "scores"
        raise UsageError(f"--figure {path}: the runs have no {what}; --paper has other measures")
    heights = [0.7 + len(panel.rows) * (0.3 + 0.12 * len(runs)) for panel in panels]
    with _styled() as lacking:
        figure = Figure(figsize=(6.4, 0.9 + sum(heights)))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        marks: dict[str, Any] = {}
        for panel, axes in zip(panels, grid[:, 0], strict=True):
            _panel(axes, panel, runs, marks, form)
        figure.legend(marks.values(), marks, loc="outside upper left", fontsize="small")
        figure.set_layout_engine("constrained")
        dated = {"Date": None} if path.suffix.lower() == ".svg" else None
        with writing(path, [], overwrite=True, flag="--figure") as file:
            figure.savefig(file, format=path.suffix[1:].lower(), metadata=dated)
    if lacking and path.suffix.lower() == ".png":
        return f"{path} shows boxes for letters that its font lacks: name a .svg file"
    return None


def _panel(
    axes: Any, panel: FigurePanel, runs: Mapping[str, str], marks: dict[str, Any], form: FigureForm
) -> None:
    """Draw one panel; add a mark of each run to `marks`, by its label in the legend."""
    for number, (letter, source) in enumerate(runs.items()):
        place = (number - (len(runs) - 1) / 2) * _STEP / len(runs)
        colour = _COLOURS[number % len(_COLOURS)]
        for height, estimates in enumerate(panel.rows.values()):
            if (score := estimates.get(letter)) is not None:
                mark = _mark(axes, score, height + place, colour, form, 0.9 * _STEP / len(runs))
                marks.setdefault(drawable(f"{letter}: {source}", 60), mark)
    for height, estimates in enumerate(panel.rows.values()) if form == "bars" else ():
        scores = (score for score in estimates.values() if isinstance(score, Estimate))
        mean = fmean(score.value for score in scores if score.value is not None)
        ends = height - _STEP / 2, height + _STEP / 2
        (marks["mean of the runs"],) = axes.plot((mean, mean), ends, color="black")
    axes.set_yticks(range(len(panel.rows)), [drawable(name, 40) for name in panel.rows])
    axes.set(ylim=(len(panel.rows) - 0.5, -0.5), title=drawable(panel.title, 60))
    if panel.shares:
        axes.set(xlim=(-0.02, 1.02), xlabel="mean score")
    axes.grid(axis="x", color="#e5e5e5")
    axes.set_axisbelow(True)


def _mark(
    axes: Any,
    score: Estimate | Quartiles,
    place: float,
    colour: str,
    form: FigureForm,
    width: float,
) -> Any:
    """Draw one run's dot, bar or box at this height, and return the mark for the legend."""
    if isinstance(score, Quartiles):
        for ends in (score.least, score.lower), (score.upper, score.most):
            axes.plot(ends, (place, place), color=colour)
        sides = place - width / 2, place + width / 2
        axes.plot((score.median, score.median), sides, color="black")
        length = score.upper - score.lower
        return axes.barh(place, length, width, left=score.lower, color=colour, alpha=0.6)
    if form == "bars":
        mark = axes.barh(place, score.value, width, color=colour)
    else:
        (mark,) = axes.plot(score.value, place, "o", color=colour)
    if score.low is not None and score.high is not None:
        line = "#404040" if form == "bars" else colour
        axes.plot((score.low, score.high), (place, place), color=line)
    return mark
