"""A server on 127.0.0.1 with OpenAI's batch API, that can be killed: all of its state is on disk.

    with BatchServer(folder) as server:
        server.plan(delay=1.0)     # what goes wrong, and how long a batch takes
        ...                        # OPENAI_BASE_URL=server.url
        server.kill(); server.start()

It is a process of its own. What it answers is a function of the request alone, online
(/v1/chat/completions) and in batches alike, but for the faults that are planned.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from loopback import Answer, Asked, chances, completion, says

KEY = "sk-batch-0123456789abcdef"
HELD = 200_000_000


def agreeable(asked: Asked) -> Answer:
    """Norms are fine, but for those of odd guests, whose situation must be written anew."""
    if asked.body.get("logprobs"):
        return chances(Yes=-0.05, No=-3.1)
    if asked.schema_name == "LeaksFound":
        return says({"leaks": []})
    if asked.schema_name == "Regeneration":
        return says({"story": "A friend stopped and slipped off both shoes. Was it fine?"})
    if "An odd guest" in asked.prompt:
        return says({"quote": None, "reason": "another deed", "answer": "no"})
    quote = "slipped off both shoes" if "slipped off" in asked.prompt else "take off their shoes"
    return says({"quote": quote, "reason": "it does", "answer": "yes"})


class BatchServer:
    """The server's process, seen from a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        # Bound and never listening: it keeps the port from everybody else while the server is away.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None
        self.plan()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def plan(self, **planned: Any) -> None:
        """Faults and times, from now on; see `_Served`."""
        put(self.folder / "plan.json", planned)

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start it, after a kill at the same port again."""
        command = [sys.executable, __file__, str(self.folder), str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{self.port}\n"

    def finish(self) -> None:
        """Let all batches come to their end now; it is away for a moment, if it was there."""
        assert self._process is not None
        if self._process.poll() is None:
            self.kill()
        state = read(self.folder / "state.json", {"batches": []})
        for batch in state["batches"]:
            batch["due"] = 0
        put(self.folder / "state.json", state)
        self.plan()
        self.start()

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._place.close()

    @property
    def batches(self) -> list[dict[str, Any]]:
        """All batches so far, oldest first."""
        return read(self.folder / "state.json", {"batches": []})["batches"]

    def paid(self) -> Counter[str]:
        """How often each question was answered, by what it asks (the id without its wave)."""
        path = self.folder / "paid.log"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def requests(self, name: str) -> int:
        """How many HTTP requests of a kind came: batches, online, polls, ..."""
        path = self.folder / "requests.log"
        return path.read_text().split().count(name) if path.exists() else 0

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < until, what
            time.sleep(0.02)


def put(path: Path, told: object) -> None:
    beside = path.with_name(f"{path.name}.part{os.getpid()}")
    beside.write_text(json.dumps(told))
    beside.replace(path)


def read(path: Path, otherwise: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else otherwise


class _Served:
    """The server itself. What is planned:

    delay: seconds from a batch's creation to its end (0).
    create_hangs: seconds between making a batch and saying so (0).
    create_fails: how many first creations make the batch and answer 500.
    polls_fail: how many first looks at a batch are answered 503.
    fail: {words: [status, ...]}: what requests whose prompt has these words get first.
    expire, cancel: how many first batches end so, with half of their requests answered.
    refuse: [code, message] of batches that fail as a whole.
    room: the most requests under way; a batch beyond it fails with token_limit_exceeded.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "files").mkdir(exist_ok=True)
        self.state = read(
            folder / "state.json", {"batches": [], "counts": {}, "tried": {}, "files": 0}
        )

    @property
    def planned(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = read(self.folder / "plan.json", {})
        return found

    def save(self) -> None:
        put(self.folder / "state.json", self.state)

    def note(self, log: str, *words: str) -> None:
        with (self.folder / f"{log}.log").open("a") as file:
            file.write("".join(f"{word}\n" for word in words))

    def first(self, what: str) -> bool:
        """Whether this is among the first so many, by the plan, that `what` happens to."""
        count = self.state["counts"].get(what, 0)
        self.state["counts"][what] = count + 1
        self.save()
        return bool(count < self.planned.get(what, 0))

    def file(self, content: bytes) -> str:
        self.state["files"] += 1
        name = f"file-{self.state['files']}"
        (self.folder / "files" / name).write_bytes(content)
        return name

    # ------------------------------------------------------------ HTTP

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        uploaded = form["file"]
        assert isinstance(uploaded, web.FileField)
        name = self.file(uploaded.file.read())
        self.save()
        return web.json_response({"id": name, "object": "file"})

    async def content(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(self.folder / "files" / request.match_info["id"])

    async def create(self, request: web.Request) -> web.Response:
        self.note("requests", "create")
        asked = await request.json()
        assert asked["endpoint"] == "/v1/chat/completions" and asked["completion_window"] == "24h"
        lines = (self.folder / "files" / asked["input_file_id"]).read_bytes().splitlines()
        ids = [json.loads(line)["custom_id"] for line in lines]
        assert len(set(ids)) == len(ids) and all(len(one) <= 64 for one in ids)
        assert len({json.loads(line)["body"]["model"] for line in lines}) == 1
        batch = {
            "id": f"batch_{len(self.state['batches']) + 1}",
            "object": "batch",
            "status": "validating",
            "input_file_id": asked["input_file_id"],
            "created_at": int(time.time()),
            "due": time.time() + self.planned.get("delay", 0.0),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        self.state["batches"].append(batch)
        fails = self.first("create_fails")
        self.save()
        await asyncio.sleep(self.planned.get("create_hangs", 0.0))
        if fails:
            return web.json_response({"error": {"message": "lost"}}, status=500)
        return web.json_response(batch)

    async def list(self, request: web.Request) -> web.Response:
        newest = self.state["batches"][::-1]
        after = request.query.get("after")
        start = next((n + 1 for n, one in enumerate(newest) if one["id"] == after), 0)
        size = min(int(request.query.get("limit", 20)), 2)
        page = newest[start : start + size]
        return web.json_response({"data": page, "has_more": start + size < len(newest)})

    async def get(self, request: web.Request) -> web.Response:
        self.note("requests", "poll")
        if self.first("polls_fail"):
            return web.json_response({"error": {"message": "busy"}}, status=503)
        for batch in self.state["batches"]:
            if batch["id"] == request.match_info["id"]:
                self.go_on(batch)
                return web.json_response(batch)
        return web.json_response({"error": {"message": "no such batch"}}, status=404)

    async def online(self, request: web.Request) -> web.Response:
        self.note("requests", "online")
        asked = Asked(1, await request.json(), dict(request.headers))
        if asked.probe:
            return web.json_response(completion(asked, says('{"ready": "yes"}')))
        return web.json_response(completion(asked, agreeable(asked)))

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            given = request.headers.get("Authorization")
            return web.json_response({"error": {"message": f"wrong key {given}"}}, status=401)
        answered: web.StreamResponse = await handler(request)
        return answered

    # ------------------------------------------------------------ work

    def go_on(self, batch: dict[str, Any]) -> None:
        if batch["status"] == "validating":
            self.accept(batch)
        elif batch["status"] == "in_progress" and time.time() >= batch["due"]:
            self.answer(batch)
        self.save()

    def accept(self, batch: dict[str, Any]) -> None:
        trouble = self.planned.get("refuse")
        running = [one for one in self.state["batches"] if one["status"] == "in_progress"]
        held = sum(one["request_counts"]["total"] for one in (*running, batch))
        if held > self.planned.get("room", HELD):
            trouble = ["token_limit_exceeded", "Enqueued token limit reached for m."]
        if trouble:
            batch["status"] = "failed"
            batch["errors"] = {"data": [{"code": trouble[0], "message": trouble[1]}]}
        else:
            batch["status"] = "in_progress"

    def answer(self, batch: dict[str, Any]) -> None:
        lines = (self.folder / "files" / batch["input_file_id"]).read_bytes().splitlines()
        ending = next((how for how in ("expire", "cancel") if self.first(how)), "complete")
        good, bad, paid = [], [], []
        for number, line in enumerate(lines):
            asked = json.loads(line)
            named = {"id": f"r{number}", "custom_id": asked["custom_id"]}
            if ending != "complete" and number % 2:
                error = {"code": f"batch_{ending}d".replace("cancel", "cancell"), "message": "no"}
                bad.append({**named, "response": None, "error": error})
                continue
            status, body = self.outcome(asked)
            response = {"status_code": status, "request_id": "q", "body": body}
            (good if status == 200 else bad).append({**named, "response": response, "error": None})
            if status == 200:
                paid.append(asked["custom_id"][:40])
        # Not in the order of the requests, as the format says.
        for kind, made in (("output", good[::-1]), ("error", bad)):
            if made:
                batch[f"{kind}_file_id"] = self.file("\n".join(map(json.dumps, made)).encode())
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}
        batch["status"] = {"complete": "completed", "expire": "expired"}.get(ending, "cancelled")
        # Before it is noted: a server that is killed in between must not answer them again.
        self.save()
        self.note("paid", *paid)

    def outcome(self, request: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        asked = Asked(1, request["body"], {})
        for words, statuses in self.planned.get("fail", {}).items():
            if words in asked.prompt:
                key = request["custom_id"][:40]
                tried = self.state["tried"].get(key, 0)
                self.state["tried"][key] = tried + 1
                if tried < len(statuses):
                    return statuses[tried], {"error": {"message": "planned", "code": None}}
        return 200, completion(asked, agreeable(asked))


def main() -> None:
    """Serve the folder in argv[1] at the port in argv[2], and print the port."""

    async def serve() -> None:
        served = _Served(Path(sys.argv[1]))
        app = web.Application(middlewares=[served.guard], client_max_size=1 << 28)
        app.router.add_post("/v1/files", served.upload)
        app.router.add_get("/v1/files/{id}/content", served.content)
        app.router.add_post("/v1/batches", served.create)
        app.router.add_get("/v1/batches", served.list)
        app.router.add_get("/v1/batches/{id}", served.get)
        app.router.add_post("/v1/chat/completions", served.online)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", int(sys.argv[2]), reuse_port=True).start()
        sys.stdout.write(f"{runner.addresses[0][1]}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
