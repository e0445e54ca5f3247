"""What a calibration writes: report.json, its page, the disagreements and the profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import unwritable
from judge.report.page import from_template
from judge.run.output import write_whole
from judge.stats.intervals import plain

if TYPE_CHECKING:
    from judge.calibration.report import Calibration, JudgeReport

SHOWN = 50
"""Disagreements of a judge on the page."""


def write(calibration: Calibration, folder: Path) -> None:
    """Write report.json, report.html, disagreements.jsonl and profile.json (unless it was refused).

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
        "report.html": page(calibration),
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
        if calibration.profile is not None:
            text = calibration.profile.model_dump_json(indent=1, by_alias=True)
            write_whole(profile, f"{text}\n".encode())
    except OSError as error:
        raise unwritable(f"-o {folder}: cannot be written", error) from error


def page(calibration: Calibration) -> str:
    """The report as one HTML file: the sentences, the tables, and plots for each judge: the
    confusion matrix, how reliable its probabilities are, and how its scores lie to the labels."""
    return from_template(
        "calibration.html", calibration=calibration, answers=_answers, most=_most, SHOWN=SHOWN
    )


def _answers(judge: JudgeReport) -> list[str]:
    """The answers, and the outcomes without one that there are."""
    confusion = judge.final.confusion
    columns = next(iter(confusion.values()), {})
    return [c for c in columns if c in confusion or any(row[c] for row in confusion.values())]


def _most(judge: JudgeReport) -> int:
    """The most items with one label and one answer, at least 1."""
    counts = (n for row in judge.final.confusion.values() for n in row.values())
    return max(1, *counts)
