"""A calibration's folder with its plots; a figure of several runs' scores, side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from judge.errors import UsageError, unwritable, why_unread
from judge.run.output import write_whole
from judge.stats.intervals import plain

if TYPE_CHECKING:
    from judge.calibration.report import Calibration, JudgeReport
    from judge.report.compare import FigurePanel

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    # Text that can be searched and read out, in whatever script; and the same bytes each time.
    "svg.fonttype": "none",
    "svg.hashsalt": "judge",
}


def write(calibration: Calibration, folder: Path) -> None:
    """Write report.json, disagreements.jsonl, the plots and profile.json (unless it was refused).

    The profile comes last, so that a new one never stands beside an old report. Raises JudgeError
    (exit code 4) where the folder cannot be written to.
    """
    lines = [
        json.dumps({"model": judge.model, **plain(one)}, ensure_ascii=False) + "\n"
        for check in calibration.checks
        for judge in check.judges
        for one in judge.disagreements
    ]
    texts = {
        "report.json": json.dumps(calibration.as_json(), ensure_ascii=False, indent=1) + "\n",
        "disagreements.jsonl": "".join(lines),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        profile = folder / "profile.json"
        if calibration.profile is None:
            profile.unlink(missing_ok=True)
        for name, text in texts.items():
            # Half of a surrogate pair is written as its escape, which JSON reads as the same.
            write_whole(folder / name, text.encode(errors="backslashreplace"))
        draw(calibration, folder)
        if calibration.profile is not None:
            text = calibration.profile.model_dump_json(indent=1, by_alias=True)
            write_whole(profile, f"{text}\n".encode())
    except OSError as error:
        raise unwritable(f"-o {folder}: cannot be written", error) from error


@contextmanager
def _styled() -> Iterator[None]:
    from matplotlib.style import context

    with context(["default", STYLE]), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from")
        yield


def draw(calibration: Calibration, folder: Path) -> list[Path]:
    """Draw how reliable the probabilities of each judge are; returns the paths.

    They are CHECK.MODEL.reliability.svg, for a check's second judge CHECK.2-MODEL.reliability.svg
    and so on. The same findings give the same bytes. Raises OSError.
    """
    paths = []
    for check in calibration.checks:
        for number, judge in enumerate(check.judges, 1):
            if judge.final.bins:
                again = f"{number}-" if number > 1 else ""
                name = f"{_slug(check.check)}.{again}{_slug(judge.model)}.reliability.svg"
                paths.append(folder / name)
                _reliability(check.check, judge, paths[-1])
    return paths


def _slug(name: str) -> str:
    """A name as part of a file name; of a long one its end, which tells models apart."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name)[-60:].strip("-.") or "unnamed"


def _reliability(check: str, judge: JudgeReport, path: Path) -> None:
    """Draw what came true against what was promised, bin by bin."""
    from matplotlib.figure import Figure

    error, classes = judge.final.calibration_error, list(judge.final.confusion)
    text = f"{error.n} of {error.of} items have a probability; calibration error {error}"
    axis = ("mean probability of the answer", "share of answers that are right")
    if len(classes) == 2:
        first = drawable(classes[0], 24)
        axis = (f"mean probability of “{first}”", f"share labelled “{first}”")
    with _styled():
        figure = Figure(figsize=(6.4, 6.4))
        title = [drawable(f"{check}: reliability", 64), drawable(judge.model, 64), text]
        figure.suptitle("\n".join(title), x=0.02, ha="left", size="medium")
        axes = figure.subplots()
        axes.plot((0, 1), (0, 1), color="#c9c9c9", linestyle="--", label="perfect")
        lines = [("judge", judge.stands, "#0072b2")]
        if judge.calibrated is not None:
            calibrated = ("calibrated", judge.calibrated, "#0072b2")
            lines = [("as it stands", judge.stands, "#6b6b6b"), calibrated]
        for name, measures, colour in lines:
            means = [bin.mean_probability for bin in measures.bins]
            axes.plot(means, [o.observed for o in measures.bins], "o-", color=colour, label=name)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=axis[0], ylabel=axis[1])
        axes.legend()
        figure.savefig(path, metadata={"Date": None})


def drawable(text: str, size: int) -> str:
    """On one line, in characters that XML has, its middle left out where it is too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    end = size // 2
    return line if len(line) <= size else f"{line[: size - 1 - end]}…{line[-end:]}"


ENDINGS = (".svg", ".png")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_STEP = 0.7
"""The part of a row's height that its runs are spread over."""


_MOST_ROWS = 60
"""Rows of a panel; one with more, such as a measure by country, is left out."""


def draw_runs(panels: Sequence[FigurePanel], runs: Mapping[str, str], path: Path) -> None:
    """Draw a comparison's runs, a panel below another: a mark with its 95 % interval for each row.

    `runs` are the runs' files by letter. The same panels give the same bytes. Raises UsageError
    where there is nothing to draw, or `path` does not end in one of `ENDINGS` or cannot be written.
    """
    from matplotlib.figure import Figure

    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--figure {path}: name a file that ends in {', '.join(ENDINGS)}")
    panels = [panel for panel in panels if len(panel.rows) <= _MOST_ROWS]
    if not panels:
        raise UsageError(f"--figure {path}: the runs have no scores; --paper has other measures")
    heights = [0.7 + len(panel.rows) * (0.3 + 0.12 * len(runs)) for panel in panels]
    with _styled():
        figure = Figure(figsize=(6.4, 0.9 + sum(heights)))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        marks: dict[str, Any] = {}
        for panel, axes in zip(panels, grid[:, 0], strict=True):
            _panel(axes, panel, runs, marks)
        figure.legend(marks.values(), marks, loc="outside upper left", fontsize="small")
        figure.set_layout_engine("constrained")
        dated = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, metadata=dated)
        except OSError as error:
            raise UsageError(f"--figure {path}: cannot be written: {why_unread(error)}") from error


def _panel(axes: Any, panel: FigurePanel, runs: Mapping[str, str], marks: dict[str, Any]) -> None:
    """Draw one panel; `marks` gets a mark of each run, by its label in the legend."""
    for number, (letter, source) in enumerate(runs.items()):
        place = (number - (len(runs) - 1) / 2) * _STEP / len(runs)
        colour = _COLOURS[number % len(_COLOURS)]
        for height, estimates in enumerate(panel.rows.values()):
            if (score := estimates.get(letter)) is None:
                continue
            if score.low is not None and score.high is not None:
                axes.plot((score.low, score.high), (height + place,) * 2, color=colour)
            (mark,) = axes.plot(score.value, height + place, "o", color=colour)
            marks.setdefault(drawable(f"{letter}: {source}", 60), mark)
    axes.set_yticks(range(len(panel.rows)), [drawable(name, 40) for name in panel.rows])
    axes.set(ylim=(len(panel.rows) - 0.5, -0.5), title=drawable(panel.title, 60))
    if panel.scores:
        axes.set(xlim=(-0.02, 1.02), xlabel="mean score")
    axes.grid(axis="x", color="#e5e5e5")
