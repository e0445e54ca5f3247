"""Prompts by chat templates, which are programs that come with a model, and are bounded here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from judge.backends.base import Message
from judge.errors import Denied

MAX_STEPS = 100_000
"""Lines of a template's code that one prompt may take; the usual ones take some hundred."""

_FILE = "<template>"
"""How Jinja names compiled templates."""


def prompt_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of a prompt, by the template of a tokenizer of transformers.

    Raises:
        Denied: the template took more than `MAX_STEPS`.
    """
    with _bounded(str(tokenizer.name_or_path)):
        text = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            # The first token of a thinking model's thoughts says neither yes nor no.
            enable_thinking=False,
        )
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@contextmanager
def _bounded(model: str) -> Iterator[None]:
    """End a template that goes on for too long; nothing else could, since it runs on a thread."""
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
