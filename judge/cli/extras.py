"""Optional parts of the installation that some commands cannot do without."""

from __future__ import annotations

from importlib.util import find_spec

from judge.errors import missing_extra

_CALIBRATE = ("matplotlib", "numpy", "scipy", "sklearn")


def need_calibrate(command: str, *libraries: str) -> None:
    """See that the statistics libraries are installed, before anything is read or asked.

    Args:
        command: what needs them.
        libraries: those of the extra `calibrate` that it needs; none means all.

    Raises:
        UsageError: naming what is missing, and how to install it.
    """
    missing = [name for name in libraries or _CALIBRATE if find_spec(name) is None]
    if missing:
        raise missing_extra(f"{command} needs {', '.join(missing)}", "calibrate")
