"""`scripted:FILE.yaml`: a judge that answers from a script. For tests and demonstrations.

A script is a list `replies`; the first entry whose conditions (`when`) all hold answers:

    replies:
      - when: {rubric: polite, id: mail-03, contains: "words of the prompt", lacks: "others"}
        reply: {values: [...]}       # or a Jinja template that renders to JSON
      - when: {rubric: relevance}
        p_yes: 0.9                   # for the `logprobs` method
      - when: {rubric: quiz}
        words: {a: 0.7, b: 0.3}      # the same, for any words; the rest to 1 is not listed
      - when: {vote: 1}
        error: rate-limited          # a kind of judge.errors.BackendError
        times: 2                     # only for the first two calls

Other keys: `text` (free text), `finish_reason`, `delay` (seconds). A template sees the record's
fields, its `label` and `prompt`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from judge import errors
from judge.backends.base import Backend, Call, Completion, Method, Mode
from judge.digest import digest
from judge.problems import problems_of
from judge.yamlfile import located, read_plain

if TYPE_CHECKING:
    from jinja2 import Template

_KINDS = (errors.RateLimited, errors.ServerFault, errors.Unreachable, errors.Denied)
_ERRORS: Mapping[str, type[errors.BackendError]] = {
    kind.kind: kind for kind in (*_KINDS, errors.BadRequest, errors.ContextExceeded)
}


class _When(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rubric: str | None = None
    id: str | None = None
    vote: int | None = None
    round: int | None = None
    role: str | None = None
    contains: str | None = None
    lacks: str | None = None

    def holds(self, origin: Mapping[str, Any], prompt: str) -> bool:
        return (
            (self.contains is None or self.contains in prompt)
            and (self.lacks is None or self.lacks not in prompt)
            and all(origin.get(name) == value for name, value in self._origin)
        )

    @cached_property
    def _origin(self) -> tuple[tuple[str, Any], ...]:
        """What the call's origin must be."""
        content = self.model_dump(exclude={"contains", "lacks"}, exclude_none=True)
        return tuple(content.items())


_ORIGIN = ("rubric", "id", "vote", "round", "role")


def _origin(call: Call) -> dict[str, Any]:
    """What an entry can match beside the prompt."""
    origin = call.origin
    values = (origin.rubric, origin.record, origin.vote, origin.round, call.role)
    return dict(zip(_ORIGIN, values, strict=True))


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    when: _When = Field(default_factory=_When)
    reply: dict[str, Any] | str | None = None
    text: str | None = None
    p_yes: float | None = Field(default=None, gt=0, lt=1)
    words: dict[str, Annotated[float, Field(gt=0, le=1)]] | None = Field(default=None, min_length=1)
    error: Literal[tuple(_ERRORS)] | None = None  # type: ignore[valid-type]
    finish_reason: Literal["stop", "length", "refusal"] = "stop"
    delay: float = Field(default=0.0, ge=0)
    times: int | None = Field(default=None, ge=0)

    @field_validator("reply", mode="before")
    @classmethod
    def _text_or_mapping(cls, reply: object) -> object:
        if reply is None or isinstance(reply, str | dict):
            return reply
        raise ValueError("write text, or a mapping of the reply's keys")


class _Script(BaseModel):
    model_config = ConfigDict(extra="forbid")
    replies: list[_Entry]
    method: Method = "structured"


_KEYS = frozenset(key for part in (_Script, _Entry, _When) for key in part.model_fields)


class ScriptedBackend(Backend):
    """Answers from a YAML file, the same way every time."""

    in_process = True

    def __init__(self, name: str) -> None:
        path = Path(name)
        text = errors.read_text(path, f"scripted:{name}")
        try:
            self._script = _Script.model_validate(read_plain(text, f"scripted:{name}"))
        except ValidationError as error:
            source = located(text, f"scripted:{name}", "replies: [{text: Yes}]")
            raise source.refused(problems_of(error, _KEYS)) from error
        self._name = path.name
        self._digest = digest(text.encode(), 8)
        self._used: Counter[int] = Counter()
        entries = self._script.replies
        limited = any(entry.times is not None for entry in entries)
        self._looks_at = frozenset(
            name
            for name in _ORIGIN
            if limited or any(getattr(entry.when, name) is not None for entry in entries)
        )
        templates = (entry.reply for entry in entries if isinstance(entry.reply, str))
        self._renders = any("{{" in reply or "{%" in reply for reply in templates)
        self.method = self._script.method

    def key_parts(self, call: Call) -> object:
        """What this script's replies depend on beside the prompt."""
        matched = [value for name, value in _origin(call).items() if name in self._looks_at]
        return [matched, dict(call.origin.fields())] if self._renders else matched

    def identity(self) -> Mapping[str, str]:
        return {"provider": "scripted", "model": self._name, "script": self._digest}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        prompt = "\n".join(message["content"] for message in call.messages)
        entry = self._entry(call, prompt)
        if entry.delay:
            await asyncio.sleep(entry.delay)
        if entry.error is not None:
            raise _ERRORS[entry.error](f"scripted {entry.error}", retry_after=0.0)
        if call.logprobs is not None:
            return _first_token(entry, prompt)
        text = _text(entry, call, prompt)
        return Completion(
            text=text,
            finish_reason=entry.finish_reason,
            input_tokens=len(prompt) // 4,
            output_tokens=max(1, len(text) // 4),
        )

    def _entry(self, call: Call, prompt: str) -> _Entry:
        origin = _origin(call)
        for number, entry in enumerate(self._script.replies):
            if not entry.when.holds(origin, prompt):
                continue
            if entry.times is None or self._used[number] < entry.times:
                self._used[number] += 1
                return entry
        raise errors.BadRequest(
            f"the script {self._name} has no reply for rubric {call.origin.rubric!r} "
            f"on record {call.origin.record!r}"
        )


def _first_token(entry: _Entry, prompt: str) -> Completion:
    chances = entry.words
    if entry.p_yes is not None:
        chances = {"Yes": entry.p_yes, "No": 1 - entry.p_yes}
    if chances is None:
        message = "the script's entry has neither p_yes nor words for the `logprobs` method"
        raise errors.BadRequest(message)
    return Completion(
        text=max(chances, key=chances.__getitem__),
        finish_reason="refusal" if entry.finish_reason == "refusal" else "length",
        input_tokens=len(prompt) // 4,
        output_tokens=1,
        first_token=tuple((word, math.log(chance)) for word, chance in chances.items()),
    )


def _text(entry: _Entry, call: Call, prompt: str) -> str:
    if entry.text is not None:
        return entry.text
    if isinstance(entry.reply, str):
        try:
            return _compiled(entry.reply).render({**call.origin.fields(), "prompt": prompt}).strip()
        except Exception as error:
            raise errors.BadRequest(f"the script's template fails: {error}") from error
    return json.dumps(entry.reply if entry.reply is not None else {}, ensure_ascii=False)


@lru_cache(maxsize=256)
def _compiled(source: str) -> Template:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment().from_string(source)
