"""`judge serve`: the judges of a profile behind System One's protocol, on this machine.

`POST /v1/systemone` answers typed questions about a state, `GET /v1/models` names the profile.
Requests need a key and a body of at most 8 MiB; beyond `MAX_REQUESTS` they get 429. Requests are
not logged.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from judge.errors import BackendError, JudgeError, UsageError
from judge.run.panels import Resources
from judge.run.profiles import Profiles, profiles_of
from judge.run.stream import beside_any_loop
from judge.settings import Settings
from judge.web.running import MAX_BODY, run_app
from judge.web.typed_questions import SERVED, Decider, DecisionRequest, Unanswerable

_log = logging.getLogger(__name__)

MAX_REQUESTS = 64
"""Requests under way or waiting; further ones get 429."""

LAST_ANSWERS = 30
"""Most seconds to answer the requests under way once a signal came."""

ALIAS = "jev-"
"""Prefix of the model names that System One's clients send by default."""


def serve(
    settings: Settings, key: str, ready: Callable[[str, str], None], *, host: str, port: int
) -> None:
    """Serve until a signal ends it.

    Args:
        settings: those of `judge validate`, with a profile.
        key: what clients send as `Authorization: Bearer KEY`.
        ready: is called with the address and the model's name.
        port: 0 takes a free one.

    Raises:
        UsageError: the profile cannot be served, or the port is taken.
        BackendError: a model cannot be reached.
    """
    beside_any_loop(lambda: asyncio.run(_serve(settings, key, ready, host, port)))


async def _serve(
    settings: Settings, key: str, ready: Callable[[str, str], None], host: str, port: int
) -> None:
    _refuse_structured(profiles_of(settings))
    resources = Resources.of(settings)
    try:
        service = DecisionService(Decider(resources), key, Path(settings.profile or ""))
        await resources.prepare()

        def started(port: int) -> None:
            address = f"[{host}]" if ":" in host else host
            ready(f"http://{address}:{port}", service.name)

        await run_app(service.app(), started, asyncio.Event(), host, port, LAST_ANSWERS)
    finally:
        await resources.models.aclose()


def _refuse_structured(profiles: Profiles) -> None:
    """Raises UsageError for a judge without probabilities, before its votes are missed."""
    for check, (profile, *_) in profiles.judges.items():
        if profile.binding.method == "structured":
            why = f"{check} has a judge without probabilities"
            raise UsageError(f"{profiles.told}: {why}; {SERVED}")


class DecisionService:
    """The HTTP side: the key, the checks of a request, and error replies."""

    def __init__(self, decider: Decider, key: str, profile: Path) -> None:
        self.decider, self._key = decider, key.encode()
        self.name = f"judge:{profile.stem}@{decider.fingerprint}"
        self._made = date.fromtimestamp(profile.stat().st_mtime).isoformat()
        self._under_way = 0

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY)
        app.router.add_post("/v1/systemone", self._answer)
        app.router.add_get("/v1/models", self._models)
        app.on_shutdown.append(self._ending)
        return app

    async def _ending(self, _: web.Application) -> None:
        if self._under_way:
            _log.warning(
                "judge: requests under way: %d; they are answered for %d s at most; Ctrl-C again "
                "ends at once",
                self._under_way,
                LAST_ANSWERS,
            )

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        header = request.headers.get("Authorization", "")
        key = re.sub("^bearer ", "", header, flags=re.IGNORECASE).strip()
        if not hmac.compare_digest(key.encode("utf-8", "surrogatepass"), self._key):
            return _fault(401, "authentication_error", "the key is missing or wrong")
        if self._under_way >= MAX_REQUESTS:
            busy = _fault(429, "rate_limit_error", f"{MAX_REQUESTS} requests are under way")
            busy.headers["Retry-After"] = "1"
            return busy
        self._under_way += 1
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _fault(error.status, "api_usage_error", error.reason)
        finally:
            self._under_way -= 1

    async def _models(self, _: web.Request) -> web.Response:
        checks = ", ".join(self.decider.judges)
        described = {"name": self.name, "description": f"calibrated for {checks}"}
        return web.json_response({"models": [{**described, "release_date": self._made}]})

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            body = DecisionRequest.model_validate(json.loads(await request.read()))
        except ValidationError as error:
            return _invalid(
                [
                    {"loc": ["body", *part["loc"]], "msg": part["msg"], "type": part["type"]}
                    for part in error.errors(include_url=False, include_input=False)
                ]
            )
        except (ValueError, RecursionError, web.RequestPayloadError, ConnectionError):
            return _invalid([{"loc": ["body"], "msg": "this is no JSON", "type": "json_invalid"}])
        if body.model != self.name and not body.model.startswith(ALIAS):
            return _fault(400, "api_usage_error", f"no such model; there is {self.name}")
        try:
            answers, usage = await self.decider.answers(body)
        except Unanswerable as error:
            place = ["body", *error.place]
            return _invalid([{"loc": place, "msg": error.message, "type": "value_error"}])
        except BackendError as error:
            return _fault(503, "api_error", str(error))
        except JudgeError as error:  # The cache's disk is full.
            return _fault(500, "api_error", str(error))
        spent = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        return web.json_response({"model": self.name, "answers": answers, "usage": spent})


def _fault(status: int, kind: str, message: str) -> web.Response:
    detail: dict[str, Any] = {"error_type": kind, "message": message}
    return web.json_response({"detail": detail}, status=status)


def _invalid(detail: list[dict[str, Any]]) -> web.Response:
    return web.json_response({"detail": detail}, status=422)
