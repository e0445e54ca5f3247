"""Workflows, and the work on a record that goes through one.

A workflow is a LangGraph `StateGraph` over `State`. Its nodes are `async (state) -> None`: each
takes the record's `Work` from the state, and makes checks and edits through it, which also keeps
the results. Edges and branches choose the next node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from judge import traces
from judge.errors import BackendError, Unread
from judge.judgement import Edit, Judgement, Unfinished
from judge.judging.panel import Panel
from judge.judging.prompts import lack
from judge.questions.replies import Reply
from judge.reasons import reason_of
from judge.records import Record
from judge.records.answers import spelt_as
from judge.records.kinds import RECORD
from judge.verdict import Check, Usage, Verdict, last_of_each, worst

if TYPE_CHECKING:
    from judge.judging.rewriter import Rewriter
    from judge.questions.rubric import Rubric
    from judge.settings import Settings
    from judge.workflows.stepping import Stepper

By = Literal["loop", "final"]
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """A record's judgement, and the typed fields that the workflow changed."""

    judgement: Judgement
    changes: Mapping[str, Any] = field(default_factory=dict)


def _default_settings() -> Settings:
    # judge.settings imports the modules of packages' settings, which may define workflows, too.
    from judge.settings import Settings

    return Settings()


@dataclass(frozen=True, slots=True)
class Context:
    """What the records of a run share: judges, rewriters and limits.

    `selected` names the checks to run (the output has no others); `additional` names the user's own
    rubrics, asked at the end; `own` names these and the checks of a workflow that asks the user's
    own rubrics; `rounds` limits each rewrite loop (0: no rewriting). `settings` are
    those of the run, including a workflow's own.
    """

    loop_panels: Mapping[str, Panel]
    final_panels: Mapping[str, Panel]
    rewriters: Mapping[str, Rewriter]
    selected: frozenset[str]
    additional: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    rounds: int = 0
    settings: Settings = field(default_factory=_default_settings)

    def panel(self, name: str, by: By) -> Panel:
        return (self.loop_panels if by == "loop" else self.final_panels)[name]

    @property
    def panels(self) -> tuple[Panel, ...]:
        return (*self.loop_panels.values(), *self.final_panels.values())


class Work:
    """The work on one record in a workflow, with its checks and edits so far.

    `record` is the current version; each check of it is made once, whichever node asks for it;
    `latest` is the check that was asked for last. `rounds` limits the rewrite loops; it is 0 until
    the unrepaired record has been judged. `round` counts the rounds of the current loop, from 1;
    `notes` say why a rewrite loop gave up; `paid` is the usage of rewriting; `written` says whether
    a writer made the record from a draft.
    """

    def __init__(self, record: Record, context: Context) -> None:
        self.original = self.record = record
        self.context = context
        self.rounds = 0
        self.round = 1
        self.checks: list[Check] = []
        self.latest: Check | None = None
        self.written = False
        self._older = 0
        self.edits: list[Edit] = []
        self.notes: list[str] = []
        self.paid = Usage()

    # ------------------------------------------------------------ checks

    async def check(self, name: str, *, by: By = "loop") -> Check | None:
        """Make a check by its rubric's name, and keep it; None if it is not selected.

        It is `skipped`, with the reason, if the record lacks a field. A check of the user's own
        abstains instead if the field is empty, or if it is the only check selected.

        Raises:
            BackendError: the model cannot be reached or refuses the key, or the budget is spent.
        """
        if name not in self.context.selected:
            return None
        if (check := self._current(name, by)) is not None:
            # Of two judges' checks of one name, the last decides: the one that was asked for last.
            self.checks = [*(other for other in self.checks if other is not check), check]
            self.latest = check
            return check
        rubric = self.context.loop_panels[name].rubric
        if reason := lack(rubric, self.record):
            several = len(self.context.selected) > 1
            fits = all(map(self.record.has, rubric.required)) or not several
            if not (fits and name in self.context.own):
                return self.skip(name, reason, by)
            return self.keep(Check(name=name, verdict=Verdict.ABSTAIN, by=by, reason=reason))
        if reason := _skip_reason(rubric, self.record):
            return self.skip(name, reason, by)
        return self.keep(await self.votes(self.context.panel(name, by), by))

    async def test(self) -> str | None:
        """Make the user's own tests, which cost nothing. Returns the name of a failed test that is
        marked `first`, after which nothing else is asked."""
        for name, panel in self.context.loop_panels.items():
            rubric = panel.rubric
            if rubric.tested:
                check = await self.check(name, by=self._judge_of(name))
                if rubric.first and check is not None and check.verdict is Verdict.FAIL:
                    return name
        return None

    def stop(self, failed: str) -> None:
        """Skip every check that was not made of this text, because the test `failed` failed."""
        current = {check.name for check in self.checks[self._older :]}
        for name in self.context.loop_panels:
            if name in self.context.selected and name not in current:
                self.skip(name, f"not made: {failed} failed", self._judge_of(name))

    def _judge_of(self, name: str) -> By:
        return "final" if name in self.context.additional else "loop"

    async def votes(self, panel: Panel, by: By) -> Check:
        """The panel's check of the current record; raises as `check`."""
        with traces.of_check(panel.rubric.name, by, self.round) as span:
            return span.ends(await panel.check(self.record, by=by, round=self.round))

    def keep(self, check: Check) -> Check:
        """Add a check, replacing an earlier one of the same name and judge on the same text."""
        if (current := self._current(check.name, check.by)) is not None:
            self.checks = [check if old is current else old for old in self.checks]
        else:
            self.checks.append(check)
        self.latest = check
        return check

    def _current(self, name: str, by: str) -> Check | None:
        """The check with this name and judge on the current text."""
        here = self.checks[self._older :]
        return next((check for check in here if (check.name, check.by) == (name, by)), None)

    async def additional(self, *, again: bool = True) -> None:
        """Make the user's own checks, by the final judge; with `again` also those that the loop
        judge has made on the current text."""
        names = set() if again else {check.name for check in self.checks[self._older :]}
        for name in self.context.additional:
            if name not in names:
                await self.check(name, by="final")

    def skip(self, name: str, reason: str, by: By) -> Check:
        """Record a check as skipped, so that it does not look passed."""
        skipped = Check(name=name, verdict=Verdict.SKIPPED, by=by, round=self.round, reason=reason)
        return self.keep(skipped)

    def last(self, name: str) -> Check | None:
        return next((check for check in reversed(self.checks) if check.name == name), None)

    def failed(self, name: str) -> bool:
        """Whether the last check of this name failed."""
        return (check := self.last(name)) is not None and check.verdict is Verdict.FAIL

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
        """A rewriter's reply; None, with a note, if it is invalid or the record lacks a field.

        Raises:
            BackendError: the model gave no reply at all.
        """
        rewriter = self.context.rewriters[rubric]
        if reason := lack(rewriter.rubric, self.record):
            self.give_up(rubric, reason)
            return None
        material: dict[str, Any] = {"numbers": numbers, "passages": passages, "findings": findings}
        try:
            answer, usage = await rewriter.ask(self.record, reply, round=self.round, **material)
        except Unread as error:
            self.paid += error.usage
            self.give_up(rubric, str(error))
            return None
        self.paid += usage
        return answer

    def edit(self, check: str, rubric: str) -> Callable[..., Edit]:
        """Return a constructor for this round's edits, for a check and by the rubric's rewriter."""
        model = self.context.rewriters[rubric].client.spec
        return partial(Edit, round=self.round, check=check, model=model)

    def rewrite(self, field: str, text: str, edits: Iterable[Edit]) -> None:
        """Continue with a new text in a field, in the loop's next round."""
        self.record = self.record.with_text(field, text)
        self.edits += edits
        self.round += 1
        self._older = len(self.checks)

    def wrote(self, fields: Mapping[str, Any], kind: str) -> None:
        """Continue with the fields that a writer wrote, as the original record of this kind.

        Raises:
            LabelError: the fields do not make such a record.
        """
        record = self.record.with_fields(fields).of_kind(kind).usable()
        self.original = self.record = record
        self.written, self._older = True, len(self.checks)

    def give_up(self, rubric: str, why: str) -> None:
        self.notes.append(f"{rubric} gave up: {why}")

    # ------------------------------------------------------------ the end

    @property
    def usage(self) -> Usage:
        """The usage of all calls for the record; a reply to several questions counts once."""
        usage = self.paid
        texts, replies = Counter[str](), set[tuple[object, ...]]()
        for check in self.checks:
            panel = self.context.loop_panels.get(check.name)
            if panel is None or not panel.rubric.together:
                usage += check.usage
                continue
            # Of the votes on questions asked together, one for each reply: on the same text, by the
            # same judge, of the same draw.
            texts[check.name] += 1
            draws = Counter[tuple[object, ...]]()
            for vote in check.votes:
                judge = (vote.part, vote.model, vote.temperature)
                draws[judge] += 1
                file = check.name.partition(".")[0]
                reply = (file, texts[check.name], *judge, draws[judge])
                if vote.method != "structured" or reply not in replies:
                    usage += vote.usage
                replies.add(reply)
        return usage

    def judgement(self, workflow: str, decided: Sequence[Check] | None = None) -> Judgement:
        """The record's judgement: every deciding check must pass.

        Args:
            decided: the checks that decide; by default the last one of each name.
        """
        deciding = last_of_each(self.checks) if decided is None else decided
        return Judgement(
            verdict=worst(check.verdict for check in deciding),
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
    """A workflow, as registered under the `judge.workflows` entry points.

    - `checks`, `rewrites`: names of the rubrics that it uses; `counted`: checks without a model.
    - `accepted`: checks that the final judge makes, with `final_votes` votes by default (the loop
      judge gives one); `voted`: which of the two judges the user's `--votes` applies to.
    - `finish`: makes the result. Without it the last check of each name decides, and rewritten
      texts are the changes.
    - `own`: its checks are the user's own rubrics (`Work.check`).
    - `plain`: judge may step through the graph itself (`judge.workflows.stepping`).
    - `successive`: a record that does not pass a check is asked no later one.
    - `graph`: compiled, or a function that builds it when needed, since LangGraph takes a second to
      load. None: the user's own questions are asked, in their order.
    """

    name: str
    kind: str
    title: str
    graph: Any
    checks: tuple[str, ...]
    finish: Callable[[Work], WorkflowResult] | None = None
    rewrites: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    final_votes: int = 1
    voted: tuple[By, ...] = ("loop", "final")
    own: bool = False
    plain: bool = False
    successive: bool = False

    @property
    def compiled(self) -> Any:
        """The compiled LangGraph graph, or None."""
        return self.graph() if callable(self.graph) else self.graph

    async def run(
        self,
        record: Record,
        context: Context,
        work_of: Callable[[Record, Context], Work] = Work,
    ) -> WorkflowResult:
        """Judge the original record; if it does not pass and the run repairs, repair it.

        Args:
            work_of: makes the work on the record (a plan's asks no model).

        Raises:
            BackendError: a rewriter gave no reply, a model cannot be reached, or the budget is
                spent; `unfinished` has what was asked until then.
        """
        work = work_of(record, context)
        try:
            if failed := await work.test():
                work.stop(failed)
                return WorkflowResult(work.judgement(self.name))
            if self.graph is None:
                await work.additional()
                return self._result(work)
            outcome = await self.once(work)
            came = outcome.judgement.verdict
            if came is Verdict.PASS or not (self.rewrites and context.rounds):
                return outcome
            work.rounds, work.round = context.rounds, 1
            outcome = await self.once(work)
        except BackendError as error:
            paid = work.usage + (error.usage or Usage())
            error.unfinished = Unfinished(tuple(work.checks), paid)
            raise
        if not work.edits and outcome.judgement.verdict is came:
            return outcome
        judgement = outcome.judgement.model_copy(update={"original_verdict": came})
        return replace(outcome, judgement=judgement)

    async def once(self, work: Work) -> WorkflowResult:
        """Take a record through the graph once, within `work.rounds`. The user's own checks that
        a graph of theirs does not make are made after it."""
        await _stepper(self.compiled, self.plain).run(State(work=work))
        if not self.plain:
            await work.additional(again=False)
        return self._result(work)

    def _result(self, work: Work) -> WorkflowResult:
        if self.finish is not None:
            return self.finish(work)
        before = work.original.texts
        changes = {n: text for n, text in work.record.texts.items() if text != before.get(n)}
        return WorkflowResult(work.judgement(self.name), changes)


@lru_cache(maxsize=64)
def _stepper(graph: Any, plain: bool) -> Stepper:
    # LangGraph takes a second to load, and the user's own questions do not need it.
    from judge.workflows.stepping import Stepper

    return Stepper(graph, plain)


def _skip_reason(rubric: Rubric, record: Record) -> str | None:
    """Why this rubric is not asked about this record; None if it is."""
    if rubric.kinds and record.kind not in (*rubric.kinds, RECORD):
        return f"the rubric applies to {', '.join(rubric.kinds)} records only"
    if record.label in rubric.not_for_labels:
        return f"not asked about {record.label} records"
    if rubric.rule.equals_label and spelt_as(record.label, rubric.answers) is None:
        return f"the record's label is not one of {', '.join(rubric.answers)}"
    return None
