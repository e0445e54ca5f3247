"""Decision models, which answer a typed question with probabilities and write no text.

`systemone:MODEL`: a server with TypeSafe's System One protocol (SYSTEMONE_BASE_URL and
SYSTEMONE_API_KEY, else TYPESAFE_BASE_URL and TYPESAFE_API_KEY). `decisions:MODEL`: one with
OpenAI's Decisions protocol (DECISIONS_BASE_URL and DECISIONS_API_KEY, else OPENAI_BASE_URL and
OPENAI_API_KEY). Each request has one question (docs/decisions/0046-decision-models.md).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import orjson

from judge import errors
from judge.backends.base import (
    Backend,
    Call,
    Choice,
    Completion,
    Mode,
    TypedQuestion,
    refuse_half_pairs,
)
from judge.backends.chat import count_of, mapping_of, name_of
from judge.backends.faults import complaint, error_within, scrubbed
from judge.backends.http import HttpResponse, HttpServer
from judge.backends.openai import DEFAULT_URL, environments_server, unsuccessful
from judge.redact import reply_redactor

_TYPESAFE = "https://api.typesafe.ai"
_NAME = "question"
"""The key of the one question of a request."""

_SUM_OFF, _ROUNDED_OFF = 0.02, 0.05
"""How far from 1 the sum of probabilities may be; the second if they have two decimals at most."""

_MOST_DIGITS = 6
_MAX_SHOWN = 160
_VERSIONED = re.compile(r"/(v\d\w*|alpha|beta)$")
_OF_MAPS = re.compile(r"//[^/]*\b(openrouter|perplexity)\.ai\b")
"""Addresses whose /decisions accept System One's bodies."""

_TOO_LONG = re.compile(r"too (?:long|large)|physical batch|ubatch", re.IGNORECASE)


def typed(call: Call, model: str) -> TypedQuestion:
    """The call's typed question; raises UsageError if it asks for a text or a hidden state."""
    question = call.prompt.typed
    if question is None or call.schema is not None or call.layer is not None:
        raise errors.UsageError(errors.writes_nothing(model))
    return question


def key_parts(call: Call) -> object:
    """The typed question, for the key of its reply."""
    if (question := call.prompt.typed) is None:
        return None
    return [dict(question.state), question.instructions, question.kind, list(question.choices)]


class Dialect(ABC):
    """How a request holds a question, and a reply its answer.

    `path` is that of the requests; `yes_no` the type of a question of yes or no, and `chance` the
    key of P(yes) in its answer.
    """

    path: str
    yes_no: str
    chance: str

    @abstractmethod
    def request(self, question: TypedQuestion) -> dict[str, Any]:
        """The request, without the model's name."""

    @abstractmethod
    def named(self, answers: Any) -> object:
        """The answer to the one question among a reply's answers; None if there is none."""

    @abstractmethod
    def by_name(self, probabilities: Any) -> Mapping[str, Any]:
        """The probabilities of an answer by name; empty if they have another form."""

    def answer(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to the one question; raises LookupError or ValueError if there is none."""
        answer = self.named(reply["answers"])
        if not isinstance(answer, Mapping):
            raise ValueError("the reply has no answer to the question")
        return answer

    def shares(self, answer: Mapping[str, Any], question: TypedQuestion) -> Mapping[str, Any]:
        """The answer's probability of each choice by name (a score's by number), unchecked; raises
        ValueError if it is of another type, or has none."""
        kind = self.yes_no if question.kind == "yes-no" else question.kind
        if answer.get("type") != kind:
            raise ValueError(f"the answer is of type {answer.get('type')!r}, not {kind}")
        if question.kind == "yes-no":
            chance = _chance(answer.get(self.chance))
            return {"yes": chance, "no": round(1 - chance, 2 * _MOST_DIGITS)}
        shares = self.by_name(answer.get("probabilities"))
        if not shares:
            raise ValueError("the answer has no probabilities")
        return shares


class QuestionMap(Dialect):
    """TypeSafe's System One: a map of questions."""

    yes_no = chance = "noul"

    def __init__(self, path: str = "/systemone") -> None:
        self.path = path

    def request(self, question: TypedQuestion) -> dict[str, Any]:
        asked: dict[str, Any] = {"instructions": question.instructions}
        meanings = {choice.name: choice.meaning for choice in question.choices}
        if question.kind == "yes-no":
            asked |= {"type": "noul"}
            known = {str(name == "yes").lower(): text for name, text in meanings.items() if text}
            asked |= {"criteria": known} if known else {}
        elif question.kind == "choice":
            asked |= {"type": "choice", "criteria": meanings}
        else:
            asked |= {"type": "score", "criteria": [*meanings.values()]}
        return {"state": dict(question.state), "questions": {_NAME: asked}}

    def named(self, answers: Any) -> object:
        return mapping_of(answers).get(_NAME)

    def by_name(self, probabilities: Any) -> Mapping[str, Any]:
        return mapping_of(probabilities)


class QuestionList(Dialect):
    """OpenAI's Decisions: a list of questions. A predicate's criteria are in the instructions,
    because it has no field for them."""

    path, yes_no, chance = "/decisions", "predicate", "probability"

    def request(self, question: TypedQuestion) -> dict[str, Any]:
        instructions, choices = question.instructions, question.choices
        asked: dict[str, Any] = {"name": _NAME}
        if question.kind == "yes-no":
            lines = (f"{c.name.capitalize()}: {c.meaning}" for c in choices if c.meaning)
            asked |= {"type": "predicate"}
            instructions = "\n".join((instructions, *lines))
        elif question.kind == "choice":
            asked |= {"type": "choice", "choices": [*_described(choices, "value")]}
        else:
            asked |= {"type": "score", "levels": [*_described(choices, "label")]}
        text = orjson.dumps(dict(question.state)).decode()
        return {"input": text, "questions": [{**asked, "instructions": instructions}]}

    def named(self, answers: Any) -> object:
        return next((a for a in answers if mapping_of(a).get("name", _NAME) == _NAME), None)

    def by_name(self, probabilities: Any) -> Mapping[str, Any]:
        rows = probabilities if isinstance(probabilities, list) else ()
        return {str(row.get("value")): row.get("probability") for row in map(mapping_of, rows)}


def _described(choices: Sequence[Choice], name: str) -> Sequence[dict[str, str]]:
    return [
        {name: choice.name, **({"description": choice.meaning} if choice.meaning else {})}
        for choice in choices
    ]


# ---------------------------------------------------------------- what comes back


def _chance(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise ValueError(f"{number!r} is no probability")
    return float(number)


def first_token(
    question: TypedQuestion, answer: Mapping[str, Any], dialect: Dialect
) -> tuple[tuple[str, float], ...]:
    """The log-probability of each of the question's words.

    Raises:
        ValueError: the answer is not a distribution over the choices, or contradicts itself.
    """
    numbered, choices = question.kind == "score", question.choices
    names = [str(n) if numbered else choice.name for n, choice in enumerate(choices)]
    shares = dialect.shares(answer, question)
    if shares.keys() != {*names}:
        strange = sorted({*map(str, shares)} ^ {*names})
        raise ValueError(f"the probabilities are not those of the choices: {strange[0]!r}")
    chances = [_chance(shares[name]) for name in names]
    half = _half_digit(chances)
    most_off = _ROUNDED_OFF if half >= 0.005 else _SUM_OFF
    if not abs((total := math.fsum(chances)) - 1) <= most_off:
        raise ValueError(f"the probabilities add up to {total:.2f}")
    best, score = answer.get("choice"), answer.get("score")
    if question.kind == "choice" and not shares.get(str(best), -1.0) >= max(chances) - 2 * half:
        raise ValueError(f"the choice {best!r} is not the likeliest")
    if numbered and not (isinstance(score, int | float) and 0 <= score <= len(choices) - 1):
        raise ValueError(f"the score {score!r} is none of the levels 0 to {len(choices) - 1}")
    # A rounded 0 or 1 is known only to half a digit, and its log-odds would be infinite.
    held = [min(max(chance, half), 1 - half) for chance in chances]
    total = math.fsum(held)
    return tuple(
        (choice.word, math.log(chance / total))
        for choice, chance in zip(choices, held, strict=True)
    )


def _half_digit(chances: Sequence[float]) -> float:
    """Half a unit of the last decimal given, counted as at least the second and at most the
    sixth."""
    written = [repr(chance) for chance in chances]
    digits = max(_MOST_DIGITS if "e" in text else len(text.partition(".")[2]) for text in written)
    return 0.5 * 10.0 ** -min(max(2, digits), _MOST_DIGITS)


def answered(
    completion: Completion,
    question: TypedQuestion,
    answer: Mapping[str, Any],
    dialect: Dialect,
) -> Completion:
    """The completion with the answer as first tokens, or with the reason why there is none."""
    if answer.get("type") == "refusal":
        return replace(completion, text="the model refuses the question", finish_reason="refusal")
    try:
        return replace(completion, first_token=first_token(question, answer, dialect))
    except ValueError as problem:
        return replace(completion, text=scrubbed(problem), finish_reason="invalid")


# ---------------------------------------------------------------- backends


class DecisionBackend(Backend):
    """One decision model behind a server.

    `provider` is the user's word before the colon; `request`: other parts of a request that replies
    depend on, such as headers. An address that already ends in the dialect's path is used
    unchanged.
    """

    seeded = False
    method = "logprobs"
    decides = True

    def __init__(
        self, provider: str, name: str, server: HttpServer, dialect: Dialect, request: str = ""
    ) -> None:
        self._spec, self._name = f"{provider}:{name}", name
        self._http, self._dialect = server, dialect
        self._redact = reply_redactor(server.secrets)
        self._identity = {
            "provider": provider,
            "model": name,
            "server": server.server,
            "protocol": type(dialect).__name__,
            **({"request": request} if request else {}),
        }
        self._path = dialect.path
        if server.server.endswith(dialect.path):
            self._path = ""
        elif not _VERSIONED.search(server.server):
            self._path = f"/v1{dialect.path}"

    def identity(self) -> Mapping[str, str]:
        return self._identity

    def key_parts(self, call: Call) -> object:
        """What is sent of a call instead of its messages."""
        return key_parts(call)

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """The answer as first tokens; `invalid` if it does not answer the question.

        Raises:
            UsageError: a text is wanted, or the server says that its model is no decision model.
            BackendError: the server fails, or refuses the request.
        """
        question, source = typed(call, self._spec), f"{self._name} at {self._http.server}"
        try:
            request = orjson.dumps({"model": self._name, **self._dialect.request(question)})
        except orjson.JSONEncodeError:
            refuse_half_pairs(call)
            raise
        response = await self._http.request("POST", self._path, data=request)
        if response.status >= 300:
            raise _refused(response, source)
        completion = Completion("")
        try:
            reply = orjson.loads(response.body)
            usage = mapping_of(reply.get("usage"))
            details = mapping_of(usage.get("input_tokens_details"))
            completion = Completion(
                "",
                input_tokens=count_of(usage.get("input_tokens")) or 0,
                output_tokens=count_of(usage.get("output_tokens")) or 0,
                cached_tokens=count_of(details.get("cached_tokens")),
                model=name_of(reply.get("model"), self._redact),
            )
            if error := error_within(reply, source, self._http.redact):
                error.tokens = completion.input_tokens, completion.output_tokens
                raise error
            answer = self._dialect.answer(reply)
        except (LookupError, TypeError, AttributeError, ValueError) as problem:
            broken = isinstance(problem, orjson.JSONDecodeError)
            text = self._http.redact(complaint(response.body)[0])
            text = f"{'no JSON' if broken else 'required fields are missing'}; it says: {text}"
            return replace(completion, text=scrubbed(text)[:_MAX_SHOWN], finish_reason="invalid")
        return answered(completion, question, answer, self._dialect)

    async def aclose(self) -> None:
        await self._http.aclose()


class SystemOneBackend(DecisionBackend):
    """`systemone:MODEL`; raises UsageError if address or key is missing or cannot be used."""

    def __init__(self, name: str) -> None:
        server = environments_server(f"systemone:{name}", ("SYSTEMONE", "TYPESAFE"), _TYPESAFE)
        super().__init__("systemone", name, server, QuestionMap())


class DecisionsBackend(DecisionBackend):
    """`decisions:MODEL`; raises UsageError if address or key is missing or cannot be used."""

    def __init__(self, name: str) -> None:
        server = environments_server(f"decisions:{name}", ("DECISIONS", "OPENAI"), DEFAULT_URL)
        super().__init__("decisions", name, server, dialect_at(server.server))


def dialect_at(address: str) -> Dialect:
    """The protocol of an address of `decisions:`."""
    return QuestionMap("/decisions") if _OF_MAPS.search(address) else QuestionList()


def _refused(response: HttpResponse, source: str) -> errors.JudgeError:
    """The error for an unsuccessful answer."""
    text = scrubbed(complaint(response.body)[0])
    if response.status == HTTPStatus.NOT_IMPLEMENTED:
        return errors.UsageError(
            f"{source} is no decision model ({text}): ask it as openai:..., or name one that is"
        )
    if response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (
        response.status == HTTPStatus.BAD_REQUEST and _TOO_LONG.search(text)
    ):
        return errors.ContextExceeded(f"HTTP {response.status}: {text}")
    return unsuccessful(response, source)
