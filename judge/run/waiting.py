"""What stands in for the strong models in the cheap stage.

A judge of the panel that is asked there gives no answer of its own: it notes that it was asked, and
lets the values pass, so that the workflow goes on along the way of a record that is fine and the
cheap model reads every check on it. What comes out is thrown away, as soon as one was asked. A
rewriter ends the run of the record: the text would change, and readings of the old one would be of
no use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

from judge.errors import JudgeError
from judge.judging.client import Asked
from judge.judging.judge import Judge, Sampling
from judge.judging.panel import Panel
from judge.judging.rewriter import Rewriter
from judge.subject import Subject
from judge.verdict import Finding, Verdict, Vote
from judge.workflow import Context


class StrongModelNeeded(JudgeError):
    """The workflow cannot go on with this record in the cheap stage."""


_asked: ContextVar[list[str]] = ContextVar("asked")


@contextmanager
def noting() -> Iterator[list[str]]:
    """The rubrics that strong models are asked in here, in the order of asking."""
    asked: list[str] = []
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


@dataclass(frozen=True, slots=True)
class WaitingJudge(Judge):
    """Notes that it was asked, and lets everything pass."""

    async def vote(
        self,
        subject: Subject,
        *,
        vote: int = 0,
        round: int = 1,
        numbers: Sequence[int] | None = None,
        sampling: Sampling | None = None,
    ) -> Vote:
        assert self.rubric.verdict is not None
        _asked.get().append(self.rubric.name)
        asked = self.subjects(subject) if numbers is None else tuple(numbers)
        answer = self.rubric.verdict.expected(subject.label)
        return Vote(
            verdict=Verdict.PASS,
            model=self.client.spec,
            evidence=tuple(
                Finding(value=subject.about(n), verdict=Verdict.PASS, answer=answer) for n in asked
            ),
        )


@dataclass(frozen=True, slots=True)
class WaitingLocator(Judge):
    """Notes that it was asked, and ends the record's run: a rewriter would come next."""

    async def vote(
        self,
        subject: Subject,
        *,
        vote: int = 0,
        round: int = 1,
        numbers: Sequence[int] | None = None,
        sampling: Sampling | None = None,
    ) -> Vote:
        _asked.get().append(self.rubric.name)
        raise StrongModelNeeded(f"{self.rubric.name} has words to find")


@dataclass(frozen=True, slots=True)
class WaitingRewriter(Rewriter):
    """Notes that it was asked, and ends the record's run."""

    async def ask(
        self,
        subject: Subject,
        *,
        round: int,
        numbers: Sequence[int] = (),
        passages: Sequence[str] = (),
        findings: Sequence[str] = (),
    ) -> Asked:
        _asked.get().append(self.rubric.name)
        raise StrongModelNeeded(f"{self.rubric.name} has text to write")


def waiting(context: Context) -> Context:
    """The context with all strong models waiting; the cheap judges stay as they are."""
    return replace(
        context,
        steering=_panels(context.steering, WaitingLocator),
        # Behind the accepting judge no rewriter comes, and further checks may.
        accepting=_panels(context.accepting, WaitingJudge),
        rewriters={
            name: WaitingRewriter(rewriter.rubric, rewriter.client, rewriter.sampling)
            for name, rewriter in context.rewriters.items()
        },
    )


def _panels(panels: Mapping[str, Panel], locator: type[Judge]) -> dict[str, Panel]:
    return {
        name: replace(
            panel,
            judges=tuple(_as(WaitingJudge, judge) for judge in panel.judges),
            locator=_as(locator, panel.locator) if panel.locator else None,
        )
        for name, panel in panels.items()
    }


def _as(kind: type[Judge], judge: Judge) -> Judge:
    return kind(**{field.name: getattr(judge, field.name) for field in fields(Judge)})
