"""What a model can do, found out before the first record: JSON, and log-probabilities."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from judge.backends.base import Call, Completion, Mode
from judge.errors import BadRequest, ContextExceeded, UsageError

if TYPE_CHECKING:
    from judge.judging.client import Client

PROBE = Call(
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
"""A small call that any model can answer."""


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
            completion = await ask(PROBE, mode)
        except ContextExceeded:
            raise
        except BadRequest as error:
            problems.append(f"{mode}: {error}")
            continue
        if _is_probe_reply(completion.text):
            return mode
        problems.append(f'{mode}: replied {completion.text[:80]!r}, not {{"ready": "yes"}}')
    raise UsageError(f"{spec} gave no valid JSON in any mode. " + "; ".join(problems))


_TOKEN_PROBE = Call(
    messages=[{"role": "user", "content": "Is water wet? Answer Yes or No."}],
    max_tokens=1,
    logprobs=20,
    role="probe",
)


async def prove_logprobs(named: str, client: Client) -> None:
    """See by one small question that the model gives log-probabilities.

    A backend that knows one way of asking only, as engines in this process do, is not probed.

    Raises:
        BackendError: unreachable, or the key is refused.
        UsageError: it gives none; the message begins with `named`.
    """
    if len(client.backend.modes) == 1:
        return
    try:
        await client.first_token(_TOKEN_PROBE)
    except (BadRequest, UsageError) as error:
        raise UsageError(
            f"{named}: this model gives no log-probabilities, so it cannot read P(yes) cheaply; "
            "name one that does, such as local:... or a server with logprobs, or leave it out"
        ) from error


def _is_probe_reply(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"ready": "yes"})
    except (ValueError, RecursionError):
        return False
