"""A made-up `vllm` program: `vllm serve MODEL --host H --port P ...`, with troubles by request.

`put(folder)` makes it a program in that folder. What it does is in the environment, what it did in
files of $MADE_VLLM: `starts` has a line of JSON for each start (argv, process ids), `calls` one
character for each call that it answered.

    MADE_ANSWERS=N    it kills itself with SIGKILL at the call after so many, in its first life
    MADE_EXIT=CODE    it says "CUDA out of memory" and ends with that code
    MADE_DEAF=1       it never listens, and ignores SIGTERM
    MADE_FAULT=1      it answers every call with HTTP 500
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROBE = '{"ready": "yes"}'


def put(folder: Path) -> Path:
    """Make `folder`/vllm this program; gives the folder, to be the first of the PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / "vllm"
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).read_text("utf-8"))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def starts(folder: Path) -> list[dict[str, Any]]:
    """The records of all starts so far."""
    path = folder / "starts"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answered = 0
    dies_after: int | None = None

    def do_GET(self) -> None:
        self._send(200, {})

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.headers["Authorization"] != f"Bearer {os.environ.get('VLLM_API_KEY')}":
            self._send(401, {"error": "Unauthorized"})
            return
        if _Server.answered == _Server.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        _Server.answered += 1
        with (Path(os.environ["MADE_VLLM"]) / "calls").open("a") as calls:
            calls.write(".")
        if "MADE_FAULT" in os.environ:
            self._send(500, {"error": {"message": "", "code": 500}})
            return
        self._send(200, _completion(asked))

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _completion(asked: str) -> dict[str, Any]:
    """Yes with a probability that depends on the whole request."""
    share = int(hashlib.sha256(asked.encode()).hexdigest()[:4], 16) / 65536
    listed = [{"token": "Yes", "logprob": -share}, {"token": "No", "logprob": -4.0}]
    text = PROBE if json.loads(asked).get("response_format") else "Yes"
    choice = {
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "logprobs": {"content": [{**listed[0], "top_logprobs": listed}]},
    }
    return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}


def main() -> None:
    folder, told = Path(os.environ["MADE_VLLM"]), os.environ
    # As vLLM's engine is: another process, which it ends at SIGTERM.
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    signal.signal(signal.SIGTERM, lambda *_: (worker.kill(), sys.exit(0)))
    if "MADE_DEAF" in told:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    first = not starts(folder)
    entry = {"argv": sys.argv, "server": os.getpid(), "worker": worker.pid}
    with (folder / "starts").open("a") as log:
        log.write(json.dumps(entry) + "\n")
    sys.stdout.write(f"loading {sys.argv[2]} with the key {told.get('VLLM_API_KEY')}\n")
    sys.stdout.flush()
    if "MADE_EXIT" in told:
        sys.stderr.write("CUDA out of memory\n")
        sys.exit(int(told["MADE_EXIT"]))
    if "MADE_DEAF" in told:
        time.sleep(600)
    if "MADE_ANSWERS" in told and first:
        _Server.dies_after = int(told["MADE_ANSWERS"])
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), _Server).serve_forever()


if __name__ == "__main__":
    main()
