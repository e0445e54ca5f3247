"""How a model is best asked for JSON: one small question a way, the first valid answer decides."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

from judge.backends.base import Call, Completion, Mode
from judge.errors import BadRequest, ContextExceeded, UsageError

_PROBE = Call(
    messages=[{"role": "user", "content": 'Reply with the JSON object {"ready": "yes"}.'}],
    schema_name="Ready",
    schema={
        "type": "object",
        "properties": {"ready": {"type": "string", "enum": ["yes"]}},
        "required": ["ready"],
        "additionalProperties": False,
    },
    temperature=None,
    max_tokens=2000,
)


async def probe(
    spec: str, modes: Sequence[Mode], ask: Callable[[Call, Mode], Awaitable[Completion]]
) -> Mode:
    """The first of `modes` in which the model gives the JSON that it was asked for.

    Raises:
        BackendError: unreachable, or the key is refused.
        UsageError: no mode brought valid JSON; with what each brought.
    """
    problems: list[str] = []
    for mode in modes:
        try:
            completion = await ask(_PROBE, mode)
        except ContextExceeded:
            raise
        except BadRequest as error:
            problems.append(f"{mode}: {error}")
            continue
        if _is_probe_reply(completion.text):
            return mode
        problems.append(f"{mode}: replied {completion.text[:80]!r}")
    raise UsageError(f"{spec} gave no valid JSON in any mode. " + "; ".join(problems))


def _is_probe_reply(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"ready": "yes"})
    except (ValueError, RecursionError):
        return False
