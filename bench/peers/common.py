"""What the peer scripts share: arguments, prompts, the typed reply and what is said at the end.

Every contender runs as

    python bench/peers/NAME.py --url BASE_URL --prompts FILE --count N --concurrency C

and prints one JSON line, {"judgements": N}. Nothing here imports a third-party library before a
function asks for it, because the harness reads REQUIREMENTS and REPLY of a contender in a Python
that has none of them installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NoReturn

MODEL = "canned"
API_KEY = "none"
MAX_TOKENS = 1600
VALUES = 5
"""How many values one prompt asks about."""

_CANNED_VALUES: list[dict[str, Any]] = [
    {
        "value": 1,
        "quote": "she folded the letter and went to help him with the nets",
        "character": "Marta",
        "reason": "She gives up her own plan as soon as the neighbour is in need.",
        "reflected": "yes",
    },
    {
        "value": 2,
        "quote": "nobody eats in this house before the oldest has sat down",
        "character": "Ilir",
        "reason": "The rule is spoken aloud and everybody at the table keeps it.",
        "reflected": "yes",
    },
    {
        "value": 3,
        "quote": None,
        "character": None,
        "reason": "Religion is not mentioned, neither in speech nor in what they do.",
        "reflected": "no",
    },
    {
        "value": 4,
        "quote": "I never saw anyone look ten years younger in a month",
        "character": "Ina",
        "reason": "She admires her aunt for leaving the firm for a pastime.",
        "reflected": "yes",
    },
    {
        "value": 5,
        "quote": None,
        "character": None,
        "reason": "Money is talked about once, but with the opposite attitude.",
        "reflected": "no",
    },
]


def message(content: str | dict[str, Any]) -> dict[str, Any]:
    """A model's message with this text, or with an object as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "assistant", "content": text}


TYPED_REPLY = message({"values": _CANNED_VALUES})
"""The message for contenders that ask for the typed reply: about 250 tokens."""

GRADED = " ".join(f"Value {value['value']}: {value['reason']}" for value in _CANNED_VALUES)
"""The reasons alone, for frameworks whose grader answers in prose."""

_TEXT_OR_NULL = {"anyOf": [{"type": "string"}, {"type": "null"}]}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "values": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "quote": _TEXT_OR_NULL,
                    "character": _TEXT_OR_NULL,
                    "reason": {"type": "string"},
                    "reflected": {"type": "string", "enum": ["yes", "no"]},
                },
                "required": ["value", "quote", "character", "reason", "reflected"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["values"],
    "additionalProperties": False,
}

RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "ValuesReflected", "strict": True, "schema": SCHEMA},
}

QUESTION = (
    "Would a careful reader notice both the topic and the attitude of every value in the story? "
    "A topic that never comes up, or comes up with another attitude, is not reflected."
)
"""The rubric in one sentence, for frameworks that bring their own prompt around it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One judgement to make: the two messages as sent, and what they were made from."""

    system: str
    user: str
    story: str
    values: tuple[str, ...]

    def listed(self) -> str:
        """The values as a numbered list."""
        return "\n".join(f"{number}. {value}" for number, value in enumerate(self.values, 1))


@dataclass(frozen=True, slots=True)
class Job:
    """The command line: where to ask, what, and how many requests may be open at once."""

    url: str
    prompts: tuple[Prompt, ...]
    concurrency: int


def job() -> Job:
    """Read the command line and the prompts it names.

    Ends the process if the file holds fewer prompts than wanted, or one twice: a peer that keeps
    answers could then give one without a call.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--prompts", required=True, type=Path)
    parser.add_argument("--count", required=True, type=int)
    parser.add_argument("--concurrency", required=True, type=int)
    wanted = parser.parse_args()
    with wanted.prompts.open(encoding="utf-8") as lines:
        prompts = tuple(
            Prompt(part["system"], part["user"], part["story"], tuple(part["values"]))
            for part in map(json.loads, islice(lines, wanted.count))
        )
    if len(prompts) < wanted.count:
        stop(f"{wanted.prompts} holds {len(prompts)} prompts, {wanted.count} are wanted")
    if len({prompt.user for prompt in prompts}) < len(prompts):
        stop(f"{wanted.prompts} holds a prompt twice")
    return Job(wanted.url.rstrip("/"), prompts, wanted.concurrency)


def messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The two messages of a chat request."""
    return [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.user},
    ]


def body(prompt: Prompt) -> dict[str, Any]:
    """The request that judge would send."""
    return {
        "model": MODEL,
        "messages": messages(prompt),
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "response_format": RESPONSE_FORMAT,
    }


def complete(reply: Any) -> bool:
    """Whether a parsed reply answers every value with yes or no."""
    values = reply["values"]
    return [value["value"] for value in values] == list(range(1, VALUES + 1)) and all(
        value["reflected"] in ("yes", "no") and value["reason"] for value in values
    )


def reply_model() -> type[Any]:
    """The typed reply as a pydantic model, as a user of instructor would write it."""
    from pydantic import BaseModel

    class ValueAnswer(BaseModel):
        """One value: the passage that carries it, who says or does it, whether it is reflected."""

        value: int
        quote: str | None
        character: str | None
        reason: str
        reflected: Literal["yes", "no"]

    class ValuesReflected(BaseModel):
        """For each value: is it reflected in the story, and where?"""

        values: list[ValueAnswer]

    # The annotations are strings here, and their names are known to this function alone.
    ValuesReflected.model_rebuild(_types_namespace={"ValueAnswer": ValueAnswer})
    return ValuesReflected


async def judged(
    prompts: Sequence[Prompt], concurrency: int, judge: Callable[[Prompt], Awaitable[bool]]
) -> int:
    """How many prompts came out valid, with `concurrency` workers that share one iterator.

    Workers cost less than a task and a turn at a semaphore for every prompt.
    """
    waiting: Iterator[Prompt] = iter(prompts)

    async def work() -> int:
        return sum([await judge(prompt) for prompt in waiting])

    return sum(await asyncio.gather(*(work() for _ in range(min(concurrency, len(prompts))))))


def openai_transport(job: Job) -> Any:
    """The OpenAI library's transport over aiohttp, which costs less than httpx2's own."""
    from httpx2 import Limits
    from openai import DefaultAioHttpClient

    most = job.concurrency
    return DefaultAioHttpClient(limits=Limits(max_connections=most, max_keepalive_connections=most))


def openai_client(job: Job) -> Any:
    """One `AsyncOpenAI` without retries, because every judgement is to be one call."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=API_KEY, base_url=job.url, max_retries=0, http_client=openai_transport(job)
    )


HEADERS = {
    "Authorization": f"Bearer {API_KEY}",
    "Content-Type": "application/json",
    "Accept-Encoding": "identity",
}
"""What the bare clients send along; no decompression is asked for."""


def answered(body: bytes) -> bool:
    """Whether a chat completion, as it came over the wire, holds a complete typed reply."""
    import orjson

    return complete(orjson.loads(orjson.loads(body)["choices"][0]["message"]["content"]))


def run(made: Callable[[Job], Awaitable[int]]) -> None:
    """A contender's command line: `made` gives how many judgements came out valid, on uvloop."""
    import uvloop

    wanted = job()
    finish(uvloop.run(made(wanted)), len(wanted.prompts))


def stop(problem: str) -> NoReturn:
    """Say what went wrong and end with an error."""
    sys.exit(f"{Path(sys.argv[0]).name}: {problem}")


def finish(valid: int, wanted: int) -> None:
    """Print how many judgements came out valid, or end with an error if not all did."""
    if valid != wanted:
        stop(f"{valid} of {wanted} judgements are valid")
    print(json.dumps({"judgements": valid}), flush=True)
