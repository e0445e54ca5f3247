"""norm: do situation, rule of thumb, value, background and label belong together?

After NormAd (sections 4.1 to 4.3). The situation is examined and regenerated until it revolves
around the rule of thumb (neutral: until it does not) and gives nothing away; then the rule is held
against the background, the value against rule and background, and the label against story and rule:

    examination (relevance, leakage) <-> regeneration
    acceptance of an edited situation
    derivation, abstraction, value derivation, label correctness

A record that fails stays in the output with the failed check named. With `--fail-fast` the checks
behind one that has failed for good are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from judge.replies import Regeneration
from judge.subject import Subject
from judge.verdict import Check, Edit, Judgement, Verdict, gravest
from judge.workflow import By, Context, Outcome, Workflow, skip_reason

from .asking import additional_checks, deciding, make_check, summed_reason
from .state import RecordState, begin, total_usage

Run = Runtime[Context]
EXAMINED = ("relevance", "leakage")
ASKED_ONCE = ("derivation", "abstraction", "value_derivation", "label_correctness")


async def examination(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Is the situation about the rule of thumb, and does it give nothing away?"""
    # The rewriter is told of every fault; a fault that nothing follows up needs no second one.
    last = state["round"] > runtime.context.rounds
    return {"checks": await _examine(state, runtime.context, "steering", final=last)}


async def regeneration(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Write the situation anew, told what was wrong with it."""
    rewriter, subject = runtime.context.rewriters["story_regeneration"], state["subject"]
    # The label says whether the new situation is to follow the rule, to break it, or to let it be.
    unlabelled = "the record has no label" if subject.label is None else None
    if obstacle := rewriter.obstacle(subject) or unlabelled:
        return {"notes": [f"story_regeneration gave up: {obstacle}"]}
    asked = await rewriter.ask(
        subject, round=state["round"], findings=[_told(c) for c in _failed(state)]
    )
    if not isinstance(asked.reply, Regeneration):
        note = f"story_regeneration gave up: {asked.trouble}: {asked.detail}"
        return {"notes": [note], "usage": [asked.usage]}
    story, checks = asked.reply.story.strip(), ", ".join(c.name for c in _failed(state))
    edit = Edit(
        round=state["round"],
        check=checks,
        before=subject.story,
        after=story,
        model=rewriter.client.spec,
    )
    return {
        "subject": subject.with_story(story),
        "edits": [edit],
        "round": state["round"] + 1,
        "usage": [asked.usage],
    }


async def acceptance(state: RecordState, runtime: Run) -> dict[str, Any]:
    """A regenerated situation is examined once more, by the accepting judge in fresh context."""
    return {"checks": await _examine(state, runtime.context, "accepting", final=True)}


async def holding_together(state: RecordState, runtime: Run) -> dict[str, Any]:
    """The checks that need no loop, and the user's own."""
    subject, context, examined = state["subject"], runtime.context, deciding(state["checks"])
    made: list[Check] = []
    for name in ASKED_ONCE:
        made += await make_check(name, subject, context, by="steering", after=[*examined, *made])
    return {"checks": made + await additional_checks(subject, context, [*examined, *made])}


async def _examine(state: RecordState, context: Context, by: By, *, final: bool) -> list[Check]:
    """The examination; `final` if no regeneration follows, whatever it brings."""
    made: list[Check] = []
    for name in EXAMINED:
        made += await make_check(
            name,
            state["subject"],
            context,
            by=by,
            round=state["round"],
            after=made if final else (),
        )
    return made


def _failed(state: RecordState) -> list[Check]:
    return [c for c in deciding(state["checks"]) if c.verdict is Verdict.FAIL]


def _told(check: Check) -> str:
    if check.name == "relevance":
        return "it is not about the right thing: see below what is wanted"
    quotes = ", ".join(repr(f.quote) for f in check.bearing() if f.quote)
    return "it gives away where it happens, or explains the custom" + (
        f": {quotes}" if quotes else ""
    )


def after_examination(
    state: RecordState, runtime: Run
) -> Literal["regeneration", "acceptance", "holding_together"]:
    if _failed(state) and state["round"] <= runtime.context.rounds:
        return "regeneration"
    return "acceptance" if state["edits"] else "holding_together"


def after_regeneration(
    state: RecordState,
) -> Literal["examination", "acceptance", "holding_together"]:
    if not state["notes"]:
        return "examination"
    return "acceptance" if state["edits"] else "holding_together"


def finish(end: Mapping[str, Any]) -> Outcome:
    """The judgement, and the story if it was written anew."""
    state = cast(RecordState, end)
    subject, decided = state["subject"], deciding(state["checks"])
    changed = subject.story != state["original"].story
    judgement = Judgement(
        verdict=gravest(c.verdict for c in decided),
        workflow="norm",
        reason=summed_reason(decided, state["notes"]),
        checks=tuple(state["checks"]),
        edits=tuple(state["edits"]),
        usage=total_usage(state),
    )
    return Outcome(judgement, {"story": subject.story} if changed else {})


def calls(subject: Subject, context: Context) -> dict[tuple[str, By], tuple[int, int]]:
    """Least and most asks by rubric: fine at once, or every round of regeneration used.

    With `fail_fast` the least is a record whose first check fails for good.
    """
    planned: dict[tuple[str, By], tuple[int, int]] = {}
    for name in (*EXAMINED, *ASKED_ONCE):
        if name not in context.wanted or skip_reason(name, subject, context):
            continue
        looped = name in EXAMINED and context.rounds > 0
        least = 0 if context.fail_fast and planned and not looped else 1
        planned[name, "steering"] = (least, 1 + context.rounds if looped else 1)
        if looped:
            planned[name, "accepting"] = (0, 1)
    for name in context.additional:
        if not skip_reason(name, subject, context):
            planned[name, "accepting"] = (0 if context.fail_fast and planned else 1, 1)
    return planned


_builder = StateGraph(RecordState, context_schema=Context)
for _node in (examination, regeneration, acceptance, holding_together):
    _builder.add_node(_node.__name__, _node)
_builder.add_edge(START, "examination")
_builder.add_conditional_edges("examination", after_examination)
_builder.add_conditional_edges("regeneration", after_regeneration)
_builder.add_edge("acceptance", "holding_together")
_builder.add_edge("holding_together", END)
graph = _builder.compile(name="norm")

workflow = Workflow(
    name="norm",
    kind="norm",
    title="Situations that follow or break a rule of thumb (NormAd)",
    graph=graph,
    begin=begin,
    finish=finish,
    checks=(*EXAMINED, *ASKED_ONCE),
    accepted=EXAMINED,
    rewrites=("story_regeneration",),
    calls=calls,
)
