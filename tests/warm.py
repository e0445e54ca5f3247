"""`judge` as a command on the PATH that costs a fork instead of a start.

    with warm_judge() as path:
        subprocess.run(["bash", "-c", "judge --help | head"], env=os.environ | {"PATH": path})

A process that has judge imported waits on a socket. The command sends it the arguments, the
working folder, the environment and the three standard streams; a fork of the process is judge from
there on. Where PYTHONPATH names a folder that is there, the command starts judge itself: what is
installed in that folder must be found.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

IMPORTS = (
    *("aiohttp", "certifi", "numpy", "scipy.stats", "matplotlib.pyplot", "rich.progress"),
    *("langgraph.graph", "judge.api", "judge.cli.validate", "judge.cli.calibrate"),
    *("judge.backends.openai", "judge.judging.reask", "judge.workflows.stepping"),
)
"""What judge imports where it is used, and each fork would import again."""

COMMAND = """#!{python} -IS
import json, os, socket, sys
if os.path.isdir(os.environ.get("PYTHONPATH", "")):
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [len(call).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(call)
    code = int(line.recv(8) or b"70")
sys.exit(code)
"""


@contextmanager
def warm_judge() -> Iterator[str]:
    """A PATH whose first folder holds the command."""
    real = str(Path(sys.executable).with_name("judge"))
    # Not under pytest's folders: the name of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        address, command = f"{folder}/socket", Path(folder, "judge")
        command.write_text(COMMAND.format(python=sys.executable, real=real, address=address))
        command.chmod(0o755)
        listener.bind(address)
        listener.listen(64)
        words = [sys.executable, __file__, str(listener.fileno())]
        process = subprocess.Popen(words, pass_fds=[listener.fileno()], cwd=folder)
        try:
            yield f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        finally:
            process.terminate()
            process.wait()


def serve(listener: socket.socket) -> None:
    for name in IMPORTS:
        importlib.import_module(name)
    while True:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(line)
            os._exit(0)
        line.close()
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(line: socket.socket) -> None:
    """Run one command in a child of this process, and send back the code that it ended with."""
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    call = line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    child = os.fork()
    if child == 0:
        line.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _judge(*json.loads(call))
    for stream in streams:
        os.close(stream)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    line.sendall(str(status if status >= 0 else 128 - status).encode())


def _judge(words: list[str], folder: str, environment: dict[str, str]) -> NoReturn:
    from judge.cli import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["judge", *words]
    # Those of the process that was forked were made for its own files.
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    code = 70
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
