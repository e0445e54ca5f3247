"""Re-asking: instructor says what is wrong with a reply and asks again, through our own calls.

Imported at the first invalid reply: most runs have none, and instructor takes a second to load.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar, cast

import instructor
from instructor.core.exceptions import (
    IncompleteOutputException,
    InstructorRetryException,
    ResponseParsingError,
)
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from pydantic import BaseModel, ValidationError

from judge.backends.base import Completion, Message
from judge.judging.prompts import without_controls
from judge.problems import problems_of
from judge.questions.evidence import COPY

Model = TypeVar("Model", bound=BaseModel)

_INVALID = (ValidationError, json.JSONDecodeError, ResponseParsingError)
"""Errors on which instructor asks again; any other that it wraps is raised unwrapped."""

_reasking: ContextVar[bool] = ContextVar("judge_reasking", default=False)

# An invalid reply is a verdict here and no error, and instructor's message quotes the record. The
# user's own use of instructor goes on logging.
for _name, _logger in [*logging.root.manager.loggerDict.items()]:
    if isinstance(_logger, logging.Logger) and _name.partition(".")[0] == "instructor":
        _logger.addFilter(lambda record: not _reasking.get())

# instructor would build this class again for every call.
_schema_model = lru_cache(maxsize=256)(instructor.openai_schema)

Withheld = IncompleteOutputException
"""An attempt was refused or cut off; instructor wraps every other error of its own."""


class Invalid(Exception):
    """No reply was valid; says in one line what was wrong with the last."""


async def reask(
    first: Completion,
    attempt: Callable[[Sequence[Message]], Awaitable[Completion]],
    messages: Sequence[Message],
    reply_model: type[Model],
    reasks: int,
) -> Model:
    """Ask again, saying what is wrong with the last reply, at most `reasks` times.

    Args:
        first: the invalid completion of `messages`.
        attempt: completes messages.

    Raises:
        Withheld: an attempt was refused or cut off.
        Invalid: every attempt's reply was invalid.
        Exception: whatever `attempt` raises.
    """

    async def create(**arguments: Any) -> ChatCompletion:
        prompt, additions = list(messages), arguments["messages"][len(messages) :]
        # instructor's message quotes the reply, which may quote the record.
        completion = await attempt([*prompt, *map(_plain, additions)]) if additions else first
        if completion.finish_reason != "stop":
            raise Withheld
        return _chat_completion(completion)

    ask: Any = instructor.patch(create=create, mode=instructor.Mode.JSON_SCHEMA)
    before = _reasking.set(True)
    try:
        reply: Model = await ask(
            response_model=_schema_model(reply_model),
            messages=[dict(message) for message in messages],
            max_retries=reasks,
        )
    except InstructorRetryException as failed:
        if not isinstance(failed.__cause__, _INVALID):
            raise failed.__cause__ or failed from None
        raise Invalid(_first_problem(failed.__cause__)) from None
    finally:
        _reasking.reset(before)
    return reply


def _plain(message: Mapping[str, Any]) -> Message:
    """A message of instructor's without control tokens."""
    return cast(Message, {**message, "content": without_controls(str(message["content"]))})


def _chat_completion(completion: Completion) -> ChatCompletion:
    """A completion in the form that instructor parses and shows to the model again."""
    message = ChatCompletionMessage.model_construct(role="assistant", content=completion.text)
    choice = Choice.model_construct(finish_reason="stop", index=0, message=message)
    read, written = completion.input_tokens, completion.output_tokens
    # Without it instructor looks for another provider's usage, and loads anthropic (3 s) for that.
    usage = CompletionUsage(
        prompt_tokens=read, completion_tokens=written, total_tokens=read + written
    )
    return ChatCompletion.model_construct(
        id="", choices=[choice], created=0, model="", object="chat.completion", usage=usage
    )


def _first_problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)[:300]
    place, problem = next(problems_of(error))
    problem = problem.replace(COPY, "")
    return (f"{'.'.join(place)}: {problem}" if place else problem)[:300]
