"""The folder that `judge calibrate -o` leaves: report, profile, disagreements, plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import UsageError
from judge.report.plots import draw

if TYPE_CHECKING:
    from judge.calibration.outcome import Calibration


def write(found: Calibration, folder: Path) -> None:
    """Write report.json, disagreements.jsonl, profile.json (unless it was refused) and the plots.

    Raises:
        UsageError: the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report = json.dumps(found.as_json(), ensure_ascii=False, indent=1)
        # Half of a surrogate pair is written as its escape, which JSON reads as the same.
        (folder / "report.json").write_text(report + "\n", "utf-8", "backslashreplace")
        disagreements = folder / "disagreements.jsonl"
        with disagreements.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for check in found.checks:
                for judge in check.judges:
                    for one in judge.disagreements:
                        line = {"model": judge.model, **one.as_json()}
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
        profile = folder / "profile.json"
        if found.profile is None:
            profile.unlink(missing_ok=True)
        else:
            profile.write_text(found.profile.model_dump_json(indent=1) + "\n", "utf-8")
        draw(found, folder)
    except OSError as error:
        raise UsageError(f"-o {folder}: cannot be written: {error.strerror or error}") from error
