"""The page's server: on this machine only, at an address that cannot be guessed.

Any page in a browser on this machine can send requests to it. So the address has a random token, a
request must name this server as its host (against DNS rebinding), and one that changes something
must come from the page itself (`Origin`), as JSON. There are no cookies.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import Any

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from markupsafe import Markup

from judge.errors import JudgeError, UsageError
from judge.report import page as report_page
from judge.report.entry import drawn
from judge.report.text import UNSEEN
from judge.run.stream import beside_any_loop
from judge.web import figures
from judge.web.running import MAX_BODY, run_app
from judge.web.session import UNSURE, PageQuestion, Session

HOST = "127.0.0.1"
LONG = 4_000
"""The page folds texts of more characters than this."""

QUICK, PAUSES = 0.2, 20
"""Seconds in which a figure may be computed after each answer; one that takes longer waits for this
many times its own time."""

_TURN = re.compile(r"\n(?=\d+\. [^\n:]{1,60}:)")
_FOLDER = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(session: Session, ready: Callable[[str], None], port: int = 0) -> None:
    """Serve the page until the person finishes it, or a signal ends it.

    Args:
        ready: is called with the page's address.
        port: 0 takes a free one.

    Raises:
        UsageError: the port is taken.
    """
    beside_any_loop(lambda: asyncio.run(_serve(session, ready, port)))


async def _serve(session: Session, ready: Callable[[str], None], port: int) -> None:
    page = _Page(session)

    def started(port: int) -> None:
        page.port = port
        ready(f"http://{HOST}:{port}/{page.token}/")

    await run_app(page.app(), started, page.end, HOST, port)


class _Page:
    """The page of one session."""

    def __init__(self, session: Session) -> None:
        self.session, self.token, self.port = session, token_urlsafe(24), 0
        self.end = asyncio.Event()
        self._people: list[str] = []
        self._people_due = 0.0

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY)
        app.router.add_get("/{token}/", self._whole)
        app.router.add_get("/{token}/page.css", self._style)
        app.router.add_get("/{token}/page.js", self._script)
        for name, change in (("answer", self._answer), ("undo", self._undo), ("end", self._end)):
            app.router.add_post(f"/{{token}}/{name}", change)
        return app

    # ------------------------------------------------------------ who may ask

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if (refusal := self._refusal(request)) is not None:
                raise web.HTTPForbidden(text=refusal)
            try:
                response = await handler(request)
            except UsageError as error:
                raise web.HTTPBadRequest(text=str(error)) from error
            except JudgeError as error:  # The file of answers cannot be read or written.
                raise web.HTTPInsufficientStorage(text=str(error)) from error
        except web.HTTPException as error:
            error.headers.update(_HEADERS)
            raise
        response.headers.update(_HEADERS)
        return response

    def _refusal(self, request: web.Request) -> str | None:
        """Why the request is refused; None if it is not."""
        hosts = [f"{name}:{self.port}" for name in (HOST, "localhost")]
        if request.headers.get("Host") not in hosts:
            return "This server answers only on this machine."
        token = "".join(request.path.split("/")[1:2])  # `OPTIONS *` has no path.
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.token.encode()):
            return "This is not the address of the page, or no longer. Use the one in the terminal."
        if request.method in ("GET", "HEAD"):
            return None
        if request.headers.get("Origin") != f"http://{request.headers['Host']}":
            return "The request comes from another page."
        return None if request.content_type == "application/json" else "Send JSON."

    # ------------------------------------------------------------ what is asked

    async def _whole(self, _: web.Request) -> web.Response:
        self.session.refresh()
        return self._rendered("label.html")

    async def _style(self, _: web.Request) -> web.Response:
        return web.Response(
            text=report_page.source("page.css", "asking.css"), content_type="text/css"
        )

    async def _script(self, _: web.Request) -> web.Response:
        own = (_FOLDER / "page.js").read_text("utf-8")
        text = report_page.source("record.js", "keys.js") + own
        return web.Response(text=text, content_type="text/javascript")

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            given = json.loads(await request.read())
            number, answer, why = given["question"], given["answer"], given["why"]
        except (ValueError, KeyError, TypeError, RecursionError, web.RequestPayloadError):
            raise web.HTTPBadRequest(text="Send question, answer and why.") from None
        if not (type(number) is type(answer) is int and isinstance(why, str)):
            raise web.HTTPBadRequest(text="Send question, answer and why.")
        plain = why.encode("utf-8", "replace").decode()  # Without lone surrogates.
        return self._changed(lambda: self.session.answer(number, answer, plain))

    async def _undo(self, _: web.Request) -> web.Response:
        return self._changed(self.session.undo)

    async def _end(self, _: web.Request) -> web.Response:
        self.end.set()
        return self._rendered("end.html", ended=True)

    def _changed(self, change: Callable[[], None]) -> web.Response:
        self.session.refresh()
        change()
        return self._rendered("question.html")

    # ------------------------------------------------------------ what is shown

    def _rendered(self, name: str, *, ended: bool = False) -> web.Response:
        session = self.session
        number = session.current
        question = None if number is None else session.questions[number]
        latest = None if session.latest is None else session.questions[session.latest]
        text = (
            _templates()
            .get_template(name)
            .render(
                session=session,
                ended=ended,
                number=number,
                question=question,
                keys={} if question is None else keys((*question.words.values(),)),
                entry=None if question is None or session.blind else entry(question),
                texts={} if question is None or not session.blind else question.texts,
                latest=latest,
                progress=figures.progress(session),
                people=self._among_people(),
                judge=figures.beside_judge(session) if session.blind and latest else [],
            )
        )
        return web.Response(text=text, content_type="text/html")

    def _among_people(self) -> list[str]:
        """How far people agree; of many answers not anew after each, which would keep the annotator
        waiting, but always after the last one."""
        begin = monotonic()
        if begin >= self._people_due or self.session.current is None:
            self._people = figures.among_people(self.session)
            end = monotonic()
            self._people_due = end + (PAUSES * (end - begin) if end - begin > QUICK else 0)
        return self._people


def keys(answers: tuple[str, ...]) -> dict[str, str]:
    """The keys of each answer, separated by blanks: a digit's own, else its number (up to 9) unless
    that digit is an answer; y and n for yes and no."""
    by_answer = {
        answer: str(number) if number <= 9 and str(number) not in answers else ""
        for number, answer in enumerate(answers, 1)
    }
    by_answer |= {answer: answer for answer in answers if len(answer) == 1 and answer.isdigit()}
    for answer in {"yes", "no"} & by_answer.keys():
        by_answer[answer] = f"{answer[0]} {by_answer[answer]}"
    return by_answer


def turns(text: str) -> list[str]:
    """The turns of a transcript, as judges are shown chats; any other text in one piece."""
    return _TURN.split(text) if text.startswith("1. ") else [text]


def entry(question: PageQuestion) -> Markup:
    """The judged line as data, which the script draws as the report does."""
    assert question.line is not None, "only a judged line is reviewed"
    content = [UNSEEN.pattern, drawn(question.line, question.line.judgement())]
    # Escaped, so that no text can end its element or be read as markup.
    return Markup(report_page.as_data(content).replace("<", "\\u003c"))


@cache
def _templates() -> Environment:
    report = report_page.templates()
    loaders = [loader for loader in (FileSystemLoader(_FOLDER), report.loader) if loader]
    environment: Any = report.overlay(loader=ChoiceLoader(loaders))
    environment.globals |= {"UNSURE": UNSURE, "LONG": LONG, "turns": turns}
    return environment  # type: ignore[no-any-return]
