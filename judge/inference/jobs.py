"""What an engine is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Job:
    """One prompt, and what is wanted after it.

    `alternatives` is how many first tokens are listed with their probabilities (0: none); `schema`
    a JSON schema as text (None: free text); `temperature` 0 takes the likeliest token. Jobs of one
    `record` are kept together ("" for none). `done` is called once, on the engine's thread, with
    an `Answer` or the error; a job whose `cancelled` is set may be dropped without.
    """

    tokens: Sequence[int]
    done: Callable[[Answer | Exception], None]
    record: str = ""
    alternatives: int = 0
    max_tokens: int = 1
    schema: str | None = None
    temperature: float = 0.0
    seed: int = 0
    cancelled: bool = False
    order: tuple[int, int] = (0, 0)

    @property
    def writes(self) -> bool:
        """Whether more is wanted than the first token."""
        return self.schema is not None or self.max_tokens > 1


@dataclass(slots=True)
class Answer:
    """What came of a job.

    `written` are the tokens of the reply without the one that ended it, `whole` whether it ended by
    itself; `listed` the alternatives for the first token with natural log-probabilities, likeliest
    first; `reused` how many tokens of the prompt were not evaluated for this job.
    """

    written: list[int] = field(default_factory=list)
    whole: bool = True
    listed: list[tuple[int, float]] = field(default_factory=list)
    reused: int = 0
