"""What a workflow is, and what it is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from judge.errors import BackendError
from judge.judging.panel import Panel
from judge.judging.rewriter import Rewriter
from judge.stepping import Stepper
from judge.subject import Subject
from judge.verdict import Check, Judgement, Unfinished, Usage, Verdict

if TYPE_CHECKING:
    from judge.records import Kind

By = Literal["steering", "accepting"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A record's judgement, and the typed fields that the workflow changed (story, values)."""

    judgement: Judgement
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What the nodes of a workflow share: who judges, who rewrites, and within what bounds.

    `wanted` names the checks to run (those left out are not mentioned in the output); `additional`
    the user's own rubrics, asked at the end; `rounds` bounds each rewrite loop; `min_words` is the
    length under which a story is rejected. With `fail_fast`, checks that cannot save a record any
    more are skipped.
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


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow as the rest of the program sees it; found through `judge.workflows` entry points.

    `checks` and `rewrites` name the rubrics it uses, `counted` the checks that need no model;
    `steering_votes` and `accepting_votes` are how many votes those asks take unless the user says
    otherwise, `voted` which of the two the user's `--votes` speaks of; `calls` estimates the
    (least, most) asks per rubric for one subject.
    """

    name: str
    kind: Kind
    title: str
    graph: Any
    begin: Callable[[Subject], Mapping[str, Any]]
    finish: Callable[[Mapping[str, Any]], Outcome]
    checks: tuple[str, ...]
    rewrites: tuple[str, ...]
    calls: Callable[[Subject, Context], Mapping[tuple[str, By], tuple[int, int]]]
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
        state = dict(self.begin(subject))
        try:
            return self.finish(await _stepper(self.graph).run(state, context))
        except BackendError as error:
            checks: list[Check] = state.get("checks", [])
            spent = (*(check.usage for check in checks), *state.get("usage", []))
            error.unfinished = Unfinished(tuple(checks), sum(spent, Usage()))
            raise


_stepper = lru_cache(maxsize=64)(Stepper)


def skipped(name: str, reason: str, by: By) -> Check:
    """A check that was not made, named so that nobody takes it for passed."""
    return Check(name=name, verdict=Verdict.SKIPPED, by=by, reason=reason)


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
