"""The edge to instructor: its parsing and re-asking around a function of ours."""

from __future__ import annotations

import json
import logging
from typing import Any

import instructor
from instructor.core.exceptions import IncompleteOutputException, ResponseParsingError
from pydantic import ValidationError

from judge.backends.base import Completion

INVALID = (ValidationError, json.JSONDecodeError, ResponseParsingError)
"""What instructor re-asks for. Whatever else it wraps is no fault of the reply and is raised."""


class Refused(IncompleteOutputException):
    """The model refuses to answer. Derives from the one error that instructor does not wrap."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self.said = said or "no words were given"


def first_problem(error: BaseException | None) -> str:
    """What was wrong with the last reply, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}"[:300] if place else str(first["msg"])[:300]
    return str(error)[:300]


def patched(create: Any) -> Any:
    """`create` with instructor's parsing and re-asking around it."""
    logging.getLogger("instructor").addHandler(logging.NullHandler())
    return instructor.patch(create=create, mode=instructor.Mode.JSON_SCHEMA)


def chat_completion(completion: Completion) -> Any:
    """A completion in the form that instructor parses."""
    from openai.types.chat import ChatCompletion, ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice
    from openai.types.completion_usage import CompletionUsage

    message = ChatCompletionMessage.model_construct(role="assistant", content=completion.text)
    choice = Choice.model_construct(
        finish_reason="length" if completion.finish_reason == "length" else "stop",
        index=0,
        message=message,
        logprobs=None,
    )
    usage = CompletionUsage.model_construct(
        prompt_tokens=completion.input_tokens,
        completion_tokens=completion.output_tokens,
        total_tokens=completion.input_tokens + completion.output_tokens,
    )
    return ChatCompletion.model_construct(
        id="", choices=[choice], created=0, model="", object="chat.completion", usage=usage
    )
