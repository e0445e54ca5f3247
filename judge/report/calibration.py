"""The folder that `judge calibrate -o` leaves: report, disagreements, plots, profile."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from judge.calibration.plain import plain
from judge.errors import unwritable
from judge.report.plots import draw

if TYPE_CHECKING:
    from judge.calibration.report import Calibration


def write(found: Calibration, folder: Path) -> None:
    """Write report.json, disagreements.jsonl, the plots and profile.json (unless it was refused).

    Each of the texts is whole or as it was before; the profile comes last, so that a new one never
    stands beside an old report.

    Raises:
        JudgeError: the folder cannot be written to (exit code 4).
    """
    lines = [
        json.dumps({"model": judge.model, **plain(one)}, ensure_ascii=False)
        for check in found.checks
        for judge in check.judges
        for one in judge.disagreements
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        profile = folder / "profile.json"
        if found.profile is None:
            profile.unlink(missing_ok=True)
        report = json.dumps(found.as_json(), ensure_ascii=False, indent=1)
        _write(folder / "report.json", report + "\n")
        _write(folder / "disagreements.jsonl", "".join(f"{line}\n" for line in lines))
        draw(found, folder)
        if found.profile is not None:
            _write(profile, found.profile.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise unwritable(f"-o {folder}: cannot be written", error) from error


def _write(path: Path, text: str) -> None:
    """Put the text there at once: an interruption leaves the earlier file, not half of this."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # Half of a surrogate pair is written as its escape, which JSON reads as the same.
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # What mkstemp makes is its owner's alone; the user's umask decides about results.
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
