"""Parts of a request that one server does not accept, and what is sent instead.

A refusal (such as HTTP 400, 404, 422, 500, 501) names what is wrong: in `param`, in `loc`, or in
its message. `remedies` lists what may help, the likeliest first; `Adaptations` tries one at a time,
keeps what changed the server's answer, and tries none twice (docs/decisions/0039-adaptations.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

AdaptationState = Mapping[str, str | int]
"""What differs from the usual request, by parameter: `{"temperature": "left out"}`."""

LEFT_OUT = "left out"
FOLDED = "in the user's message"
PORTABLE = "type, properties, required, items and enum alone"

THINKING_ROOM = 8_000
"""Tokens of a reply for a model's thoughts, on top of those for its answer."""

_THINKING = re.compile(
    r"(^|[/:])(o\d|gpt-(5|oss))(?!.*chat)|thinking|reason|qwq|(^|[-_/.])r1\b|qwen-?3(?!.*instruct)"
    r"|magistral|grok-(3-mini|4)|gemini-(2\.5|3)|glm-(4\.[5-9]|5)|minimax-m|nemotron|-think"
)
_FIXED_TEMPERATURE = re.compile(r"(^|[/:])(o\d|gpt-5)(?!.*chat)")
_REFUSED = re.compile(
    r"support|unknown|unrecogni|invalid|permit|allow|forbid|must|only|unexpected|cannot|can't"
    r"|expected|<=|extra|too large|exceed|at most|maximum|less than|between|not |above|below"
    r"|deprecat|no longer|disabled|removed"
)
_NO_SYSTEM = re.compile(
    r"system[ _-](role|message|prompt|instruction)|role\W.{0,40}\bsystem\b"
    r"|\bsystem\b.{0,20}\brole\b|roles? must alternate|developer instruction"
    r"|only user and assistant"
)
_TOO_MANY = re.compile(r"too large|exceed|less than|at most|maximum|<=|above|greater|between")
_LIMIT_REACHED = re.compile(r"max_tokens or model output limit was reached|higher max_tokens")
_KEYWORD = re.compile(
    r"\b(anyof|oneof|allof|minitems|maxitems|minlength|maxlength|additionalproperties|enum|"
    r"properties|required|default|title)\b|\$(defs|ref)\b"
)
_SAID_IN = frozenset(("message", "msg", "param", "loc", "detail", "error", "errors", "reason"))
_LIMITS = ("max_tokens", "max_completion_tokens")
_FEWER = (10, 5, 3, 2, 1)
_PORTABLE_KEYS = frozenset(("type", "enum", "description"))
_MAX_BODY = 65_536


def thinks(name: str) -> bool:
    """Whether a model of this name thinks before it answers."""
    return _THINKING.search(name.lower()) is not None


def known(name: str) -> dict[str, str | int]:
    """Adaptations that OpenAI's own server is known to need for this model."""
    usual: dict[str, str | int] = {"max_tokens": _LIMITS[1]}
    return usual | ({"temperature": LEFT_OUT} if _FIXED_TEMPERATURE.search(name.lower()) else {})


class Adaptations:
    """The adaptations to one server of one model; `state` is replaced, never changed in place.

    `kept` is the part of `state` that is known to help: a remedy is kept once the call that it was
    tried for is answered, or a call is refused for another reason. Other calls' success proves
    nothing.

    Args:
        start: adaptations made from the start.
        room: tokens that may be added to a reply's limit for thoughts (0: the user's limit holds).
    """

    def __init__(self, start: AdaptationState, room: int = THINKING_ROOM) -> None:
        self.state: AdaptationState = dict(start)
        self.kept: AdaptationState = self.state
        self._room = room
        self._tried: set[tuple[str, str | int]] = set()
        self._last: tuple[object, str] | None = None

    def limit(self, tokens: int) -> int:
        """Token limit of a reply as sent, for a call that allows `tokens`."""
        tokens += int(self.state.get("thinking_tokens", 0))
        return min(tokens, int(self.state.get("most_tokens", tokens)))

    def applied(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request in the form that this server accepts."""
        state, adapted = self.state, dict(request)
        if not state:
            return adapted
        for name in ("temperature", "seed"):
            if name in state:
                adapted.pop(name, None)
        tokens = adapted.pop("max_tokens")
        limit = str(state.get("max_tokens", "max_tokens"))
        if limit != LEFT_OUT:
            adapted[limit] = tokens if "logprobs" in adapted else self.limit(tokens)
        if "top_logprobs" in adapted:
            most = int(state.get("top_logprobs", 20))
            adapted["top_logprobs"] = min(adapted["top_logprobs"], most)
        if "system" in state:
            adapted["messages"] = _folded(adapted["messages"])
        if "schema" in state or "strict" in state:
            _simplify(adapted, portable="schema" in state)
        return adapted

    def again(
        self, call: object, sent: AdaptationState, request: Mapping[str, Any], complaint: str
    ) -> bool:
        """Whether a refused request is worth making again, adapted by the new `state`.

        Args:
            call: the call that it was made for.
            sent: the state when it was made.
            request: as sent.
            complaint: `complaint_text` of the server's answer.
        """
        if sent is not self.state:
            return True  # Another call has learnt something in the meantime.
        if self._last is not None and self._last[1] == _bare(complaint):
            self.state = self.kept  # The last remedy did not help.
        else:
            self.kept = self.state
        self._last = None
        room = int(self.state.get("thinking_tokens", 0))
        for remedy in remedies(request, complaint, self._room, room):
            if remedy not in self._tried:
                self._tried.add(remedy)
                self._last = call, _bare(complaint)
                self.state = {**self.state, remedy[0]: remedy[1]}
                return True
        return False

    def answered(self, call: object, sent: AdaptationState) -> None:
        """A request for the call, made with this state, was answered."""
        if self._last is not None and self._last[0] is call and sent is self.state:
            self.kept, self._last = self.state, None

    def give_room(self, sent: AdaptationState) -> bool:
        """Add room for thoughts, once, after they took all tokens of a reply. Returns whether a
        request that was sent in this state is worth making again."""
        if self._room and "thinking_tokens" not in self.state:
            self.state = {**self.state, "thinking_tokens": self._room}
            self.kept = {**self.kept, "thinking_tokens": self._room}
        return "thinking_tokens" in self.state and "thinking_tokens" not in sent


def remedies(
    request: Mapping[str, Any], complaint: str, room: int = 0, thinking_tokens: int = 0
) -> Iterator[tuple[str, str | int]]:
    """Remedies for a refusal, the likeliest first: the parameter, and how to send it.

    Args:
        request: as sent.
        complaint: `complaint_text` of the answer.
        room: tokens for thoughts that may be added to a reply's limit.
        thinking_tokens: those that were added.
    """
    if room > thinking_tokens and _LIMIT_REACHED.search(complaint):
        yield "thinking_tokens", room
    if not _REFUSED.search(complaint):
        return
    places = (
        (_place(name, complaint), name) for name in (*_LIMITS, "temperature", "seed", "strict")
    )
    for _, name in sorted(place for place in places if place[0] >= 0):
        if name in _LIMITS:
            yield from _other_limit(request, complaint, thinking_tokens)
        elif name in request or (name == "strict" and "response_format" in request):
            yield name, LEFT_OUT
    # `top_n_tokens` is TGI's own name for them.
    if "top_logprobs" in request and ("logprobs" in complaint or "top_n_tokens" in complaint):
        most = request["top_logprobs"]
        yield from (("top_logprobs", fewer) for fewer in _below(complaint, most)[:1])
        if "top_logprobs" in complaint:
            yield from (("top_logprobs", fewer) for fewer in _FEWER if fewer < most)
    if request["messages"][0]["role"] == "system" and _NO_SYSTEM.search(complaint):
        yield "system", FOLDED
    if ("response_format" in request or "tools" in request) and _KEYWORD.search(complaint):
        yield "schema", PORTABLE


def _other_limit(
    request: Mapping[str, Any], complaint: str, thinking_tokens: int
) -> Iterator[tuple[str, str | int]]:
    limit = next((name for name in _LIMITS if name in request), None)
    context = "context" in complaint
    if limit is None or (context and not thinking_tokens):
        return  # A prompt that is too long is the record's own fault.
    if _TOO_MANY.search(complaint):
        for most in _below(complaint, request[limit])[:1]:
            # A limit of the whole context window includes the prompt.
            yield "most_tokens", most // 2 if context else most
    elif not context:
        yield "max_tokens", next(name for name in _LIMITS if name != limit)
        yield "max_tokens", LEFT_OUT


def _place(name: str, complaint: str) -> int:
    match = re.search(rf"\b{name}\b", complaint)
    return match.start() if match else -1


def _below(complaint: str, number: int) -> list[int]:
    """The numbers below `number` (and from 1) in a message, largest first."""
    numbers = {
        int(digits.replace(",", "")) for digits in re.findall(r"\b\d[\d,]{0,8}\b", complaint)
    }
    return sorted((n for n in numbers if 0 < n < number), reverse=True)


def complaint_text(body: bytes) -> str:
    """A refusal's `param` and messages in lower case, without parts of the request it repeats."""
    try:
        data = orjson.loads(body[:_MAX_BODY])
    except ValueError:
        return body[:_MAX_BODY].decode("utf-8", "replace").lower()
    return " ".join(_texts(data)).lower()


def _texts(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
        if data.startswith("{"):  # A provider's refusal inside a proxy's.
            try:
                yield from _texts(orjson.loads(data))
            except ValueError:
                return
    elif isinstance(data, list):
        for entry in data:
            yield from _texts(entry)
    elif isinstance(data, dict):
        for name, entry in data.items():
            if name in _SAID_IN or (name in ("metadata", "raw") and not isinstance(entry, list)):
                yield from _texts(entry)


def _bare(complaint: str) -> str:
    """A message without the numbers and ids that differ from one call to the next."""
    return re.sub(r"\b[0-9a-f-]*\d[0-9a-f-]*\b", "", complaint)


# ---------------------------------------------------------------- requests in other forms


def _folded(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the system message's text at the start of the user's."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, user, *history = messages
    return [{**user, "content": f"{system['content']}\n\n{user['content']}"}, *history]


def _simplify(request: dict[str, Any], *, portable: bool) -> None:
    """Remove `strict` from a request, and if `portable`, what few servers accept from its
    schema."""
    if "json_schema" in (form := request.get("response_format", {})):
        json_schema = {
            name: content for name, content in form["json_schema"].items() if name != "strict"
        }
        if portable:
            json_schema["schema"] = portable_schema(json_schema["schema"])
        request["response_format"] = {**form, "json_schema": json_schema}
    elif portable and "tools" in request:
        function = request["tools"][0]["function"]
        function = {**function, "parameters": portable_schema(function["parameters"])}
        request["tools"] = [{**request["tools"][0], "function": function}]


def portable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what only some servers accept; it allows the same replies and more.

    References are inlined, lengths and titles left out. "Text or null" becomes a text, which is
    empty for null.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})

    def plain(part: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in part:
            return plain(definitions[part["$ref"].rpartition("/")[2]])
        if "anyOf" in part:
            return plain(next(option for option in part["anyOf"] if option.get("type") != "null"))
        schema_part = {name: content for name, content in part.items() if name in _PORTABLE_KEYS}
        if "const" in part:
            schema_part["enum"] = [part["const"]]
        if "items" in part:
            schema_part["items"] = plain(part["items"])
        if "properties" in part:
            schema_part["properties"] = {
                n: plain(content) for n, content in part["properties"].items()
            }
            schema_part["required"] = list(part.get("required", ()))
        return schema_part

    return plain(schema)
