"""Prompts by chat templates, which are programs of a model's publisher: their steps are limited."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from jinja2 import TemplateError

from judge.backends.base import Message
from judge.errors import Denied

MAX_STEPS = 100_000
"""Most lines of a template's code that one prompt may run; the usual templates run some hundred."""

_FILE = "<template>"
"""Jinja's file name for compiled templates."""


def prompt_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of a prompt, by the chat template of a transformers tokenizer.

    If the template refuses or drops the system message, as Gemma's does, the message begins the
    user's, as in llama.cpp.

    Raises:
        Denied: the template took more than `MAX_STEPS`.
    """
    system, *rest = messages
    if system["role"] == "system" and rest:
        text = ""
        with suppress(TemplateError):
            text = _applied(tokenizer, messages)
        if system["content"].strip() not in text:
            first: Message = rest[0].copy()
            first["content"] = f"{system['content']}\n{first['content']}"
            text = _applied(tokenizer, [first, *rest[1:]])
    else:
        text = _applied(tokenizer, messages)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _applied(tokenizer: Any, messages: Sequence[Message]) -> str:
    with _bounded(str(tokenizer.name_or_path)):
        text: str = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            # The first token of a thinking model's thoughts says neither yes nor no.
            enable_thinking=False,
        )
    return text


@contextmanager
def _bounded(model: str) -> Iterator[None]:
    """Stop a template that runs too long; on a thread nothing else could stop it."""
    steps = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != _FILE:
            return None
        steps += 1
        if steps > MAX_STEPS:
            raise Denied(f"{model}: the chat template takes more than {MAX_STEPS:,} steps")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
