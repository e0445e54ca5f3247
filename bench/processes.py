"""Measure a process and its children: CPU, wall time, peak memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU and wall seconds; the peaks of all processes together, in MB of 1,000,000 bytes."""

    cpu: float
    wall: float
    peak_mb: float


def measured(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[Taken, str]:
    """Run a command to its end, without the JUDGE_ and OPENAI_ variables of this process.

    Returns what it took, and its standard output.

    Raises:
        RuntimeError: it failed; with the end of its standard error.
    """
    given = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=given | env, stdout=out, stderr=err)
        peaks = _Peaks(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = peaks.stop()
        out.seek(0)
        err.seek(0)
        if process.returncode:
            said = err.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(command[:4])}: exit {process.returncode}: {said}")
        return Taken(used.ru_utime + used.ru_stime, wall, peak), out.read().decode()


class _Peaks:
    """Samples the peak memory of a process and of its descendants.

    The peak reported to a parent at the end may be the parent's own, inherited at the fork.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._ended.set()
        self._thread.join()
        return sum(self._peaks.values()) * 1024 / 1e6

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self._look(self._pid)

    def _look(self, pid: int) -> None:
        home = Path("/proc", str(pid))
        try:
            status = (home / "status").read_text()
            children = (home / "task" / str(pid) / "children").read_text().split()
        except OSError:
            return
        if "VmHWM:" in status:
            self._peaks[pid] = int(status.split("VmHWM:")[1].split()[0])
        for child in children:
            self._look(int(child))
