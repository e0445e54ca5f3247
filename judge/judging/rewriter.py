"""A rewriter: a rewriting rubric put to one model. Workflows put its reply into the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from judge.backends.base import Call, Origin
from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.judging.prompts import list_field, mark_of, messages
from judge.questions.evidence import ReplyContext
from judge.questions.replies import Reply
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.verdict import Usage

R = TypeVar("R", bound=Reply)

_MAX_ROUNDS = 100
"""More than the rounds in which one record is written."""


@dataclass(frozen=True, slots=True)
class Rewriter:
    """A rewriting rubric put to one model."""

    rubric: Rubric
    client: Client
    sampling: Sampling

    def call(self, record: Record, round: int, **material: Any) -> Call:
        """The call of an ask in this round; `material` as for `ask`."""
        parts = max(len(material.get(name, ())) for name in ("numbers", "passages"))
        # Drafts of the same material become different texts.
        draw = round + _MAX_ROUNDS * record.draft
        return Call(
            messages=messages(self.rubric, record, **material),
            temperature=self.sampling.temperature,
            seed=self.sampling.seed + draw if self.client.backend.seeded else None,
            max_tokens=self.rubric.reply_limit(parts),
            vote=draw,
            role="rewriting",
            origin=Origin(self.rubric.name, record.id, round, 0, record.as_mapping),
        )

    async def ask(
        self,
        record: Record,
        reply: type[R],
        *,
        round: int,
        numbers: Sequence[int] = (),
        passages: Sequence[str] = (),
        findings: Sequence[str] = (),
    ) -> tuple[R, Usage]:
        """One reply of this type, in round `round` (from 1).

        Raises:
            Unread: no reply was valid.
            BackendError: the model gave no reply.
        """
        material: dict[str, Any] = {"numbers": numbers, "passages": passages, "findings": findings}
        call = self.call(record, round, **material)
        list_name = list_field(self.rubric, record)
        context = ReplyContext(
            texts=record.texts,
            entries={n: record.entry(list_name, n) or "" for n in numbers},
            typed=record.typed,
            passages=len(passages),
            mark=mark_of(self.rubric, record),
        )
        return await self.client.ask(call, reply.sized(len(passages) or len(numbers)), context)
