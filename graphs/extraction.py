"""extraction: how far are a story's values found among those predicted from it?

After CQ-Bench's value extraction (section 3.1 and appendix D). Each gold value gets 1 if the
predicted values state it fully, 0.5 if partially, 0 if it is absent; a predicted value may serve
several gold values, and several may serve one. The recall is the mean of the credits:

    (something predicted) --> matching ------------> additional
    (nothing)             --> nothing_predicted ---> additional

Only the first ten predicted values count, as the paper limits its models to ten; the judgement says
how many were left out. Votes are counted by gold value over the three answers. If no answer has the
majority, or the votes are lost, the credit is None and the recall does not count the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from judge.judgement import Extraction
from judge.records import Record
from judge.verdict import Answer, Check, Verdict
from judge.workflows import State, Work, Workflow, WorkflowResult

from .values import values_of

CHECK = "value_extraction"
MOST_PREDICTED = 10
"""How many predicted values count (CQ-Bench, section 3.1: answers are limited to ten values)."""

CREDITS: Mapping[str, float] = {"fully": 1.0, "partially": 0.5, "absent": 0.0}
"""The credit for each answer (CQ-Bench, section 3.1)."""


def _predicted(record: Record) -> tuple[str, ...]:
    predicted: tuple[str, ...] = record.typed.get("predicted", ())
    return predicted


async def matching(state: State) -> None:
    """How much of each gold value do the predicted ones state?"""
    work = state["work"]
    work.record = work.record.with_typed(predicted=_predicted(work.record)[:MOST_PREDICTED])
    await work.check(CHECK)


async def nothing_predicted(state: State) -> None:
    """Without predicted values every gold value is absent; no model needs to be asked."""
    work, reason = state["work"], "no value was predicted"
    if CHECK in work.context.selected:
        evidence = tuple(
            Answer(value=value.text, verdict=Verdict.FAIL, answer="absent", reason=reason)
            for value in values_of(work.record)
        )
        check = Check(
            name=CHECK,
            by="counting",
            verdict=Verdict.FAIL,
            counted=tuple(CREDITS),
            evidence=evidence,
            reason=reason,
        )
        work.keep(check)


async def additional(state: State) -> None:
    """The user's own checks."""
    await state["work"].additional()


def after_start(state: State) -> Literal["matching", "nothing_predicted"]:
    return "matching" if _predicted(state["work"].record) else "nothing_predicted"


def finish(work: Work) -> WorkflowResult:
    """The judgement, with the credits; the record is never changed.

    It passes if every gold value is found fully. It fails if one is found only partially or not at
    all, however the undecided ones would turn out.
    """
    judgement = work.judgement("extraction")
    check = work.last(CHECK)
    if check is None or check.verdict is Verdict.SKIPPED:
        return WorkflowResult(judgement)
    outcomes = check.outcomes()
    answers = [outcomes.get(value.text, (None, None))[1] for value in values_of(work.record)]
    extraction = Extraction(
        credits=tuple(None if answer is None else CREDITS[answer] for answer in answers),
        cut=len(_predicted(work.original)) - len(_predicted(work.record)),
    )
    return WorkflowResult(judgement.model_copy(update={"extraction": extraction}))


@cache
def graph() -> Any:
    """The compiled graph."""
    from langgraph.graph import END, START, StateGraph

    builder = StateGraph(State)
    for node in (matching, nothing_predicted, additional):
        builder.add_node(node.__name__, node)
    builder.add_conditional_edges(START, after_start)
    builder.add_edge("matching", "additional")
    builder.add_edge("nothing_predicted", "additional")
    builder.add_edge("additional", END)
    return builder.compile(name="extraction")


workflow = Workflow(
    name="extraction",
    kind="extraction",
    title="Values found in stories, against those that they carry (CQ-Bench)",
    graph=graph,
    plain=True,
    finish=finish,
    checks=(CHECK,),
)
