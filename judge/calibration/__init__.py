"""Judges held against labels: `calibrate` measures them, fits to them, and makes their profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.calibration.calibration import Job, acalibrate, calibrate
    from judge.calibration.report import Calibration

__all__ = ["Calibration", "Job", "acalibrate", "calibrate"]


def __getattr__(name: str) -> Any:
    """The names above, imported when first asked for: commands that use none pay for none."""
    if name not in __all__:
        raise AttributeError(name)
    from judge.calibration import calibration

    return getattr(calibration, name)
