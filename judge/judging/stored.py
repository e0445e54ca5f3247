"""How a completion lies in the cache."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import orjson

from judge.backends.base import Completion

_COMPLETION = tuple(field.name for field in fields(Completion))
_FINISHES = ("stop", "length", "refusal")


def as_text(completion: Completion) -> str:
    """The completion as JSON."""
    plain = {name: getattr(completion, name) for name in _COMPLETION}
    if completion.first_token is None:
        with suppress(orjson.JSONEncodeError):
            return orjson.dumps(plain).decode()
    # A log-probability may be infinite, and a reply may hold half of a surrogate pair.
    return json.dumps(plain)


def restored(found: dict[str, Any]) -> Completion | None:
    """The completion that a cache entry holds; None if it does not hold one."""
    try:
        first = found.pop("first_token")
        tokens = tuple((str(t), float(p)) for t, p in first) if first is not None else None
        completion = Completion(**found, first_token=tokens)
    except (KeyError, TypeError, ValueError):
        return None
    counts = (completion.input_tokens, completion.output_tokens, completion.cached_tokens or 0)
    sound = isinstance(completion.text, str) and all(isinstance(n, int) for n in counts)
    return completion if sound and completion.finish_reason in _FINISHES else None
