"""Runs one command that cannot outlive the process that started this one.

    python -I guard.py GRACE COMMAND [ARGUMENT ...]

Whoever starts it holds the other end of its standard input. The system closes that when its holder
ends, however it ends, SIGKILL included; then the command's process group gets SIGTERM, and SIGKILL
after GRACE seconds. What the command leaves behind when it ends by itself is killed too: a worker
of a dead server still holds the card's memory, and the next server would not fit beside it.

Exits as the command did (128 + number for a signal). Standard library only, and by its path:
started so, it needs no package and is there in 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.2
_SWEEP_SECONDS = 10.0


def main() -> int:
    grace, command = float(sys.argv[1]), sys.argv[2:]
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda came, _: asked.append(came))
    _control(_SET_CHILD_SUBREAPER, 1)
    try:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_end_with_parent
        )
    except OSError as error:
        _say(f"{command[0]} cannot be started: {error}")
        return 127
    _say(f"the server is process {server.pid}")
    while server.poll() is None and not asked and not _let_go():
        pass
    if server.poll() is None:
        _end(server, grace)
    _sweep(server.pid)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _let_go() -> bool:
    """Whether the starter is gone or wants an end; waits a moment for it."""
    ready, _, _ = select.select([0], [], [], _LOOK_SECONDS)
    return bool(ready) and os.read(0, 1) == b""


def _end(server: subprocess.Popen[bytes], grace: float) -> None:
    _kill_group(server.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(grace)
        return
    _say(f"the server did not end within {grace:g} s of SIGTERM and is killed")
    _kill_group(server.pid, signal.SIGKILL)
    server.wait()


def _sweep(group: int) -> None:
    """Kill what is left of the group, and of those that left the group but became our children."""
    _kill_group(group, signal.SIGKILL)
    until = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < until:
        for child in _children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.01)


def _children() -> list[int]:
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(number) for number in listed.split()]


def _kill_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _end_with_parent() -> None:
    # If this guard itself is killed, nobody else would end the server.
    _control(_SET_DEATH_SIGNAL, signal.SIGTERM)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _say(text: str) -> None:
    sys.stdout.write(f"judge: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
