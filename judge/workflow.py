"""What a workflow is, and what its nodes work with.

A workflow is a LangGraph `StateGraph` over `State`. Its nodes are `async (state) -> None`: each
takes the record's `Work` out of the state, makes checks and edits through it, and leaves what was
found there. Edges and branches say which node comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from judge.errors import BackendError
from judge.judging.panel import Panel, take_votes
from judge.judging.rewriter import Rewriter
from judge.reasons import reason_of
from judge.replies import Reply
from judge.stepping import Stepper
from judge.subject import Subject
from judge.verdict import Check, Edit, Judgement, Unfinished, Usage, Verdict, gravest

if TYPE_CHECKING:
    from judge.records import Kind

By = Literal["steering", "accepting"]
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A record's judgement, and the typed fields that the workflow changed (story, values)."""

    judgement: Judgement
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What the records of a run share: who judges, who rewrites, and within what bounds.

    `wanted` names the checks to run (those left out are not mentioned in the output); `additional`
    the user's own rubrics, asked at the end; `rounds` bounds each rewrite loop, 0 for none;
    `min_words` is the length under which a story is rejected. With `fail_fast`, checks that cannot
    save a record any more are skipped.
    """

    steering: Mapping[str, Panel]
    accepting: Mapping[str, Panel]
    rewriters: Mapping[str, Rewriter]
    wanted: frozenset[str]
    additional: tuple[str, ...] = ()
    rounds: int = 3
    min_words: int = 400
    fail_fast: bool = False

    def panel(self, name: str, by: By) -> Panel:
        return (self.steering if by == "steering" else self.accepting)[name]


class Work:
    """One record on its way through a workflow, with what was asked and changed so far.

    `subject` is the record as it now stands; `round` counts the asks of the loop under way, from 1;
    `notes` say why a rewrite loop gave up; `paid` is what rewriting took.
    """

    def __init__(self, subject: Subject, context: Context) -> None:
        self.original = self.subject = subject
        self.context = context
        self.round = 1
        self.checks: list[Check] = []
        self.edits: list[Edit] = []
        self.notes: list[str] = []
        self.paid = Usage()

    # ------------------------------------------------------------ checks

    async def check(
        self, name: str, *, by: By = "steering", after: Sequence[Check] = ()
    ) -> Check | None:
        """Make a check by its rubric's name, and keep it; None if it is not wanted.

        It is `skipped`, with the reason, where the record lacks a field, and with `--fail-fast`
        where a check in `after`, those that decide the record's verdict, has failed.

        Raises:
            BackendError: the model cannot be reached, refuses the key, or the budget is used up.
        """
        if name not in self.context.wanted:
            return None
        if reason := skip_reason(name, self.subject, self.context) or self.hopeless(after):
            return self.skip(name, reason, by)
        panel = self.context.panel(name, by)
        self.checks.append(await take_votes(panel, self.subject, by=by, round=self.round))
        return self.checks[-1]

    async def additional(self, after: Sequence[Check] = ()) -> None:
        """Make the user's own checks, by the accepting judge, behind the checks in `after`."""
        made = list(after)
        for name in self.context.additional:
            if (check := await self.check(name, by="accepting", after=made)) is not None:
                made.append(check)

    def skip(self, name: str, reason: str, by: By) -> Check:
        """Keep a check that is not made, named so that it is not taken for passed."""
        self.checks.append(Check(name=name, verdict=Verdict.SKIPPED, by=by, reason=reason))
        return self.checks[-1]

    async def locate(self) -> Check:
        """The last check, with the speeches behind each value that it found at fault.

        A probability reading tells that a value is contradicted, not where; the panel's locator, a
        structured reading of the same rubric, is asked for the words. Its vote joins the check's
        and is not counted.
        """
        check = self.checks[-1]
        quoted = {finding.value for finding in check.bearing() if finding.quote}
        bare = [n for n in self.flagged(check) if self.subject.value(n) not in quoted]
        if bare and check.by != "counting":
            locator = self.context.panel(check.name, check.by).locator
            if locator is not None:
                vote = await locator.vote(self.subject, round=check.round, numbers=bare)
                told = vote.model_copy(update={"part": "locator"})
                check = check.model_copy(update={"votes": (*check.votes, told)})
                self.checks[-1] = check
        return check

    def last(self, name: str) -> Check | None:
        """The last check of this name."""
        return next((check for check in reversed(self.checks) if check.name == name), None)

    def failed(self, name: str) -> bool:
        """Whether the last check of this name failed."""
        check = self.last(name)
        return check is not None and check.verdict is Verdict.FAIL

    def flagged(self, check: Check) -> tuple[int, ...]:
        """The numbers of the values that a check found at fault."""
        return self.subject.numbered(check.failed_values())

    def hopeless(self, decided: Sequence[Check]) -> str | None:
        """Why no further check can save the record (`--fail-fast`); None if one can.

        Only a `fail` is beyond saving: what is undecided or has no reply may still be outweighed.
        """
        failed = next((c.name for c in decided if c.verdict is Verdict.FAIL), None)
        return f"not asked: {failed} has failed" if failed and self.context.fail_fast else None

    # ------------------------------------------------------------ edits

    async def ask_rewriter(
        self,
        rubric: str,
        reply: type[R],
        *,
        numbers: Sequence[int] = (),
        passages: Sequence[str] = (),
        findings: Sequence[str] = (),
    ) -> R | None:
        """A rewriter's reply; None where none can be had, which is noted.

        Raises:
            BackendError: the model gave no reply at all.
        """
        rewriter = self.context.rewriters[rubric]
        if obstacle := rewriter.obstacle(self.subject):
            self.give_up(rubric, obstacle)
            return None
        asked = await rewriter.ask(
            self.subject, round=self.round, numbers=numbers, passages=passages, findings=findings
        )
        self.paid += asked.usage
        if not isinstance(asked.reply, reply):
            self.give_up(rubric, f"{asked.trouble}: {asked.detail}")
            return None
        return asked.reply

    def edit(self, check: str, rubric: str) -> Callable[..., Edit]:
        """What makes this round's edits for a check, in the name of the rubric's rewriter."""
        model = self.context.rewriters[rubric].client.spec
        return partial(Edit, round=self.round, check=check, model=model)

    def rewrite(self, story: str, edits: Iterable[Edit]) -> None:
        """Put a rewritten story in the record's place, and begin the loop's next round."""
        self.subject = self.subject.with_story(story)
        self.edits += edits
        self.round += 1

    def give_up(self, rubric: str, why: str) -> None:
        """Note why a rewrite loop ends before its time."""
        self.notes.append(f"{rubric} gave up: {why}")

    # ------------------------------------------------------------ the end

    @property
    def usage(self) -> Usage:
        """What all asks of the record took together."""
        return sum((check.usage for check in self.checks), self.paid)

    def judgement(self, workflow: str, decided: Sequence[Check] | None = None) -> Judgement:
        """What is said of the record: every check that decides must pass.

        Args:
            decided: the checks that decide; by default the last one of each name.
        """
        deciding = last_of_each(self.checks) if decided is None else decided
        return Judgement(
            verdict=gravest(check.verdict for check in deciding),
            workflow=workflow,
            reason=reason_of(deciding, self.notes),
            checks=tuple(self.checks),
            edits=tuple(self.edits),
            usage=self.usage,
        )


class State(TypedDict):
    """The state of every workflow's graph."""

    work: Work


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow as the rest of the program sees it; found through `judge.workflows` entry points.

    `checks` and `rewrites` name the rubrics it uses, `counted` the checks that need no model,
    `accepted` the checks that the accepting judge makes; `steering_votes` and `accepting_votes` are
    how many votes those asks take unless the user says otherwise, `voted` which of the two the
    user's `--votes` speaks of. `finish` makes the outcome; without one the last check of each name
    decides, and the story is the only field that changes.
    """

    name: str
    kind: Kind
    title: str
    graph: Any
    checks: tuple[str, ...]
    finish: Callable[[Work], Outcome] | None = None
    rewrites: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    steering_votes: int = 1
    accepting_votes: int = 1
    voted: tuple[By, ...] = ("steering", "accepting")

    async def run(self, subject: Subject, context: Context) -> Outcome:
        """Take one subject through the workflow.

        Raises:
            BackendError: a rewriter gave no reply, or the model is out of reach or out of budget;
                with what was asked until then.
        """
        work = Work(subject, context)
        try:
            await _stepper(self.graph).run(State(work=work))
        except BackendError as error:
            error.unfinished = Unfinished(tuple(work.checks), work.usage)
            raise
        if self.finish is not None:
            return self.finish(work)
        changed = work.subject.texts.get("story") != subject.texts.get("story")
        changes = {"story": work.subject.story} if changed else {}
        return Outcome(work.judgement(self.name), changes)


_stepper = lru_cache(maxsize=64)(Stepper)


def last_of_each(checks: Iterable[Check]) -> list[Check]:
    """The last check of each name, in the order in which the names first appear.

    The accepting judge comes after the steering judge, and a later round after an earlier one, so
    the last is the one that speaks about the text as it is written out.
    """
    return list({check.name: check for check in checks}.values())


def skip_reason(name: str, subject: Subject, context: Context) -> str | None:
    """Why this check cannot be made on this subject; None if it can."""
    rubric = context.steering[name].rubric
    if missing := subject.lacks(rubric.required):
        return f"the record has no {', '.join(field.replace('_', ' ') for field in missing)}"
    if subject.kind not in rubric.kinds:
        return f"the rubric is for {', '.join(rubric.kinds)} records"
    if subject.label in rubric.not_for_labels:
        return f"not asked about {subject.label} records"
    return None
