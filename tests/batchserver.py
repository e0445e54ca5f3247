"""A server on 127.0.0.1 with OpenAI's batch API, on a thread of the test.

    with BatchServer() as server:
        server.plan(delay=1.0)     # what goes wrong, and how long a batch takes
        ...                        # OPENAI_BASE_URL=server.url
        server.away = True

What it answers is a function of the request alone, online (/v1/chat/completions) and in batches
alike, but for the faults that are planned:

    delay: seconds from a batch's creation to its end (0).
    create_hangs: seconds between making a batch and saying so (0).
    create_fails: how many first creations make the batch and answer 500.
    polls_fail: how many first looks at a batch are answered 503.
    fail: {words: [status, ...]}: what requests whose prompt has these words get first.
    expire, cancel: how many first batches end so, with half of their requests answered.
    refuse: [code, message] of batches that fail as a whole.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from loopback import Answer, Asked, OnThread, chances, completion, says

KEY = "sk-batch-0123456789abcdef"


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


def guest(number: int) -> dict[str, Any]:
    """A norm that `agreeable` answers about; number 3 is of an odd guest."""
    return {
        "id": f"n{number}",
        "country": ("Japan", "Peru")[number % 2],
        "background": "- Guests take off their shoes at the door.\n- Gifts go from both hands.",
        "value": "Respect for the home",
        "rule_of_thumb": "Take off your shoes before you enter a home.",
        "story": f"{'An odd guest' if number == 3 else 'A guest'} number {number} stopped there "
        "and slipped off both shoes. Was it fine?",
        "label": "yes",
    }


class BatchServer(OnThread):
    """The server; `batches` are oldest first, `away` drops every connection."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[dict[str, Any]] = []
        self.away = False
        self._files: dict[str, bytes] = {}
        self._paid, self._requests = list[str](), Counter[str]()
        self._happened, self._tried = Counter[str](), Counter[str]()
        self._planned: dict[str, Any] = {}

    def plan(self, **planned: Any) -> None:
        """Faults and times, from now on."""
        self._planned = planned

    def finish(self) -> None:
        """Let all batches come to their end now, without further faults."""
        for batch in self.batches:
            batch["due"] = 0
        self.away = False
        self.plan()

    def remove_results(self) -> None:
        """Remove the files of results, as a provider does after a time."""
        for batch in self.batches:
            self._files.pop(batch["output_file_id"])

    def paid(self) -> Counter[str]:
        """How often each question was answered in a batch, by its id."""
        return Counter(self._paid)

    def submitted(self) -> list[str]:
        """The ids of the questions in all batches, in their order."""
        lines = (self._files[batch["input_file_id"]].splitlines() for batch in self.batches)
        return [json.loads(line)["custom_id"] for batch in lines for line in batch]

    def requests(self, name: str) -> int:
        """How many HTTP requests of a kind came: create, online, poll."""
        return self._requests[name]

    async def _start(self) -> int:
        app = web.Application(middlewares=[self._guard], client_max_size=1 << 28)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._get)
        app.router.add_post("/v1/chat/completions", self._online)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def _stop(self) -> None:
        # Creations that hang would be waited for.
        hanging = asyncio.all_tasks() - {asyncio.current_task()}
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        await self._runner.cleanup()

    # ------------------------------------------------------------ HTTP

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.away:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        given = request.headers.get("Authorization")
        if given != f"Bearer {KEY}":
            return web.json_response({"error": {"message": f"wrong key {given}"}}, status=401)
        answered: web.StreamResponse = await handler(request)
        return answered

    def _first(self, what: str) -> bool:
        """Whether this is among the first so many, by the plan, that `what` happens to."""
        self._happened[what] += 1
        return bool(self._happened[what] <= self._planned.get(what, 0))

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self._files) + 1}"
        self._files[name] = content
        return name

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        uploaded = form["file"]
        assert form["purpose"] == "batch" and isinstance(uploaded, web.FileField)
        return web.json_response({"id": self._file(uploaded.file.read()), "object": "file"})

    async def _content(self, request: web.Request) -> web.Response:
        if (content := self._files.get(request.match_info["id"])) is None:
            return web.json_response({"error": {"message": "No such File object"}}, status=404)
        return web.Response(body=content)

    async def _create(self, request: web.Request) -> web.Response:
        self._requests["create"] += 1
        asked = await request.json()
        assert asked["endpoint"] == "/v1/chat/completions" and asked["completion_window"] == "24h"
        lines = [json.loads(line) for line in self._files[asked["input_file_id"]].splitlines()]
        ids = [line["custom_id"] for line in lines]
        assert len(set(ids)) == len(ids) and all(len(one) <= 64 for one in ids)
        assert len({line["body"]["model"] for line in lines}) == 1
        batch = {
            "id": f"batch_{len(self.batches) + 1}",
            "status": "validating",
            "input_file_id": asked["input_file_id"],
            "due": time.time() + self._planned.get("delay", 0.0),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        self.batches.append(batch)
        await asyncio.sleep(self._planned.get("create_hangs", 0.0))
        if self._first("create_fails"):
            return web.json_response({"error": {"message": "lost"}}, status=500)
        return web.json_response(batch)

    async def _list(self, request: web.Request) -> web.Response:
        newest = self.batches[::-1]
        after = request.query.get("after")
        start = next((n + 1 for n, one in enumerate(newest) if one["id"] == after), 0)
        page = newest[start : start + 2]
        return web.json_response({"data": page, "has_more": start + 2 < len(newest)})

    async def _get(self, request: web.Request) -> web.Response:
        self._requests["poll"] += 1
        if self._first("polls_fail"):
            return web.json_response({"error": {"message": "busy"}}, status=503)
        for batch in self.batches:
            if batch["id"] == request.match_info["id"]:
                self._go_on(batch)
                return web.json_response(batch)
        return web.json_response({"error": {"message": "no such batch"}}, status=404)

    async def _online(self, request: web.Request) -> web.Response:
        self._requests["online"] += 1
        asked = Asked(1, await request.json(), dict(request.headers))
        answer = says('{"ready": "yes"}') if asked.probe else agreeable(asked)
        return web.json_response(completion(asked, answer))

    # ------------------------------------------------------------ work

    def _go_on(self, batch: dict[str, Any]) -> None:
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
            if trouble := self._planned.get("refuse"):
                batch["status"] = "failed"
                batch["errors"] = {"data": [{"code": trouble[0], "message": trouble[1]}]}
        elif batch["status"] == "in_progress" and time.time() >= batch["due"]:
            self._answer(batch)

    def _answer(self, batch: dict[str, Any]) -> None:
        lines = self._files[batch["input_file_id"]].splitlines()
        ending = next((how for how in ("expire", "cancel") if self._first(how)), "complete")
        good, bad = list[bytes](), list[bytes]()
        for number, asked in enumerate(map(json.loads, lines)):
            named = {"custom_id": asked["custom_id"], "response": None, "error": {"code": ending}}
            if ending == "complete" or number % 2 == 0:
                status, body = self._outcome(asked)
                named |= {"response": {"status_code": status, "body": body}, "error": None}
                if status == 200:
                    self._paid.append(asked["custom_id"])
                    good.append(json.dumps(named).encode())
                    continue
            bad.append(json.dumps(named).encode())
        # Not in the order of the requests, as the format says.
        for kind, made in (("output", good[::-1]), ("error", bad)):
            if made:
                batch[f"{kind}_file_id"] = self._file(b"\n".join(made))
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}
        batch["status"] = {"complete": "completed", "expire": "expired"}.get(ending, "cancelled")

    def _outcome(self, request: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        asked = Asked(1, request["body"], {})
        for words, statuses in self._planned.get("fail", {}).items():
            if words in asked.prompt:
                self._tried[request["custom_id"]] += 1
                if (tried := self._tried[request["custom_id"]]) <= len(statuses):
                    return statuses[tried - 1], {"error": {"message": "planned", "code": None}}
        return 200, completion(asked, agreeable(asked))
