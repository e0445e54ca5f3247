"""The files of a calibration: report.json, its page, the disagreements and the profile."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from judge.calibration.finding import passing
from judge.errors import unwritable
from judge.questions.evidence import locate
from judge.report.entry import LARGEST
from judge.report.page import from_template
from judge.run.output import write_whole
from judge.stats.intervals import plain

if TYPE_CHECKING:
    from judge.calibration.controls import Controls
    from judge.calibration.report import Calibration, CheckReport, JudgeReport

PEOPLE = 20
"""Most annotators named on the page."""

SHOWN = 50
"""Most disagreements of a judge on the page."""


def write(calibration: Calibration, folder: Path) -> None:
    """Write report.json, report.html, disagreements.jsonl and profile.json (unless it was refused).

    The profile is written last, so that a new one is never in a folder with an old report. Raises
    JudgeError (exit code 4) if the folder cannot be written to.
    """
    lines = [
        json.dumps({"model": judge.model, **plain(one)}, ensure_ascii=False) + "\n"
        for check in calibration.checks
        for judge in check.judges
        for one in judge.disagreements
    ]
    texts = {
        "report.json": json.dumps(calibration.as_json(), ensure_ascii=False, indent=1) + "\n",
        "report.html": page(calibration),
        "disagreements.jsonl": "".join(lines),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        profile = folder / "profile.json"
        if calibration.profile is None:
            profile.unlink(missing_ok=True)
        for name, text in texts.items():
            # A lone surrogate is written as its escape, which means the same in JSON.
            write_whole(folder / name, text.encode(errors="backslashreplace"))
        if calibration.profile is not None:
            text = calibration.profile.model_dump_json(indent=1, by_alias=True)
            write_whole(profile, f"{text}\n".encode())
    except OSError as error:
        raise unwritable(f"-o {folder}: cannot be written", error) from error


def page(calibration: Calibration) -> str:
    """The report as one HTML file: sentences, tables, and for each judge plots of its confusion
    matrix, the reliability of its probabilities, and its scores against the labels."""
    return from_template(
        "calibration.html",
        calibration=calibration,
        answers=_answers,
        most=_most,
        measures=_measures,
        marked=_marked,
        passing=passing,
        SHOWN=SHOWN,
        PEOPLE=PEOPLE,
    )


def _measures(check: CheckReport) -> list[tuple[str, dict[str, str]]]:
    """The measures of each judge, its controls right after its kappas."""
    controls = {judge.name: _controls(judge.controls) for judge in check.judges if judge.controls}
    names = dict.fromkeys(chain.from_iterable(controls.values()), "–")
    rows = []
    for name, cells in check.rows:
        first, rest = dict[str, str](), dict(cells)
        while "kappa" in rest:
            key = next(iter(rest))
            first[key] = rest.pop(key)
        rows.append((name, first | names | controls.get(name, {}) | rest))
    return rows


def _controls(controls: Controls) -> dict[str, str]:
    field = controls.field
    cells = {
        f"{controls.measure} without {field}": controls.blind,
        "difference": controls.above,
        f"same answer with {field} of another record": controls.stays,
        f"right answer with {field} of another record": controls.as_swapped,
        f"{controls.measure} with {field} turned round": controls.contrast,
    }
    return {name: str(estimate) for name, estimate in cells.items() if estimate is not None}


def _marked(text: str, quote: str | None) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether the quote covers it."""
    span = locate(quote, text) if quote and len(text) < LARGEST else None
    if span is None:
        return [(text, False)]
    inside = text[span.start : span.end]
    return [(text[: span.start], False), (inside, True), (text[span.end :], False)]


def _answers(judge: JudgeReport) -> list[str]:
    """The answers, and the outcomes without an answer that occurred."""
    confusion = judge.final.confusion
    columns = next(iter(confusion.values()), {})
    return [c for c in columns if c in confusion or any(row[c] for row in confusion.values())]


def _most(judge: JudgeReport) -> int:
    """The most items with one label and one answer, at least 1."""
    counts = (n for row in judge.final.confusion.values() for n in row.values())
    return max(1, *counts)
