"""story: does a conversation story carry its values, consistently and without naming them?

After CQ-Bench (sections 2.1, A.2, A.3). Three steering checks, each with its rewrite loop, then the
length, then the accepting judge in fresh context:

    incorporation <-> insertion
    consistency   <-> contradiction rewriting      (not in the multiple setting)
    implicitness  <-> explicit-speech rewriting
    length
    acceptance: incorporation and consistency again, voted per value

Values that the acceptance finds missing are dropped from the record; contradicted ones stay and are
documented with characters and speeches. A story that is too short, and with `--fail-fast` one that
still states a value outright, is not put to the accepting judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from judge.judging.rewriter import apply_insertions, apply_rewrites, passages
from judge.replies import Insertions, Rewrites
from judge.subject import Subject
from judge.verdict import Check, Edit, Finding, Judgement, Usage, Verdict, gravest
from judge.workflow import By, Context, Outcome, Workflow, skip_reason, skipped

from .asking import (
    additional_checks,
    deciding,
    flagged,
    hopeless,
    located,
    make_check,
    summed_reason,
)
from .state import RecordState, begin, total_usage

Run = Runtime[Context]


async def incorporation(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Which values does the story not reflect?"""
    return await _steer("incorporation", state, runtime.context)


async def insertion(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Add dialogue for the missing values, removing nothing."""
    rewriter, subject = runtime.context.rewriters["insertion"], state["subject"]
    if obstacle := rewriter.obstacle(subject):
        return _gave_up("insertion", obstacle, Usage())
    asked = await rewriter.ask(
        subject, round=state["round"], numbers=flagged(state["checks"][-1], subject)
    )
    if not isinstance(asked.reply, Insertions):
        return _gave_up("insertion", f"{asked.trouble}: {asked.detail}", asked.usage)
    story, edits = apply_insertions(
        subject,
        asked.reply,
        check="incorporation",
        round=state["round"],
        model=rewriter.client.spec,
    )
    return _edited(state, story, edits, asked.usage)


async def consistency(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Which character contradicts which value, in which speech?"""
    if state["subject"].multiple:
        return _not_in_multiple(runtime.context)
    return await _steer("consistency", state, runtime.context)


async def contradiction_rewriting(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Rewrite the contradicting speeches and nothing else."""
    return await _rewrite("contradiction_rewriting", "against", state, runtime.context)


async def implicitness(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Which speech states a value outright?"""
    return await _steer("implicitness", state, runtime.context)


async def explicit_rewriting(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Rewrite the outspoken speeches as anecdote."""
    return await _rewrite("explicit_rewriting", "states", state, runtime.context)


def length(state: RecordState, runtime: Run) -> dict[str, Any]:
    """Stories under the least number of words are rejected, by counting (CQ-Bench A.2: 400)."""
    if "length" not in runtime.context.wanted:
        return {}
    words, least = len(state["subject"].story.split()), runtime.context.min_words
    verdict = Verdict.FAIL if words < least else Verdict.PASS
    reason = f"{words} words, at least {least} are wanted" if words < least else None
    return {"checks": [Check(name="length", verdict=verdict, by="counting", reason=reason)]}


async def acceptance(state: RecordState, runtime: Run) -> dict[str, Any]:
    """The accepting judge decides in fresh context on the story as it now stands."""
    subject, context = state["subject"], runtime.context
    made = await make_check("incorporation", subject, context, by="accepting")
    if not subject.multiple:
        for check in await make_check("consistency", subject, context, by="accepting", after=made):
            made.append(await located(check, subject, context.accepting[check.name].locator))
    return {"checks": made + await additional_checks(subject, context, made)}


def rejected(state: RecordState, runtime: Run) -> dict[str, Any]:
    """A story that is too short, or beyond saving, is not put to the accepting judge."""
    short = "not asked: the story is rejected for its length"
    reason = short if _too_short(state) else _still_outspoken(state, runtime.context)
    assert reason is not None, "the branch behind the length leads here for one of the two"
    accepted = ["incorporation"] if state["subject"].multiple else ["incorporation", "consistency"]
    names = [n for n in (*accepted, *runtime.context.additional) if n in runtime.context.wanted]
    return {"checks": [skipped(name, reason, "accepting") for name in names]}


def _ask_again(check: str, rewriting: str, after: str) -> Any:
    def route(state: RecordState, runtime: Run) -> str:
        last = state["checks"][-1] if state["checks"] else None
        failed = last is not None and last.name == check and last.verdict is Verdict.FAIL
        return rewriting if failed and state["round"] <= runtime.context.rounds else after

    return route


def _after_rewriting(check: str, after: str) -> Any:
    def route(state: RecordState) -> str:
        return check if state["round"] > state["checks"][-1].round else after

    return route


def after_length(state: RecordState, runtime: Run) -> Literal["acceptance", "rejected"]:
    lost = _too_short(state) or _still_outspoken(state, runtime.context)
    return "rejected" if lost else "acceptance"


def _too_short(state: RecordState) -> bool:
    return any(c.name == "length" and c.verdict is Verdict.FAIL for c in state["checks"])


def _still_outspoken(state: RecordState, context: Context) -> str | None:
    """Why the accepting judge need not be asked: it cannot undo what the last loop left behind."""
    return hopeless(deciding(c for c in state["checks"] if c.name == "implicitness"), context)


async def _steer(name: str, state: RecordState, context: Context) -> dict[str, Any]:
    first = not state["checks"] or state["checks"][-1].name != name
    round = 1 if first else state["round"]
    checks = await make_check(name, state["subject"], context, by="steering", round=round)
    return {"checks": checks, "round": round}


async def _rewrite(rubric: str, how: str, state: RecordState, context: Context) -> dict[str, Any]:
    check, subject = state["checks"][-1], state["subject"]
    rewriter = context.rewriters[rubric]
    if obstacle := rewriter.obstacle(subject):
        return _gave_up(rubric, obstacle, Usage())
    found = await located(check, subject, context.steering[check.name].locator)
    paid = sum((vote.usage for vote in found.votes[len(check.votes) :]), Usage())
    places = passages(subject, [f for f in found.bearing() if f.verdict is Verdict.FAIL])
    if not places:
        return _gave_up(rubric, "no speech was found to rewrite", paid)
    asked = await rewriter.ask(
        subject,
        round=state["round"],
        numbers=flagged(check, subject),
        passages=[place.described(subject.story, how) for place in places],
    )
    if not isinstance(asked.reply, Rewrites):
        return _gave_up(rubric, f"{asked.trouble}: {asked.detail}", paid + asked.usage)
    story, edits = apply_rewrites(
        subject,
        places,
        asked.reply,
        check=check.name,
        round=state["round"],
        model=rewriter.client.spec,
    )
    return _edited(state, story, edits, paid + asked.usage)


def _edited(state: RecordState, story: str, edits: list[Edit], usage: Usage) -> dict[str, Any]:
    return {
        "subject": state["subject"].with_story(story),
        "edits": edits,
        "round": state["round"] + 1,
        "usage": [usage],
    }


def _gave_up(rubric: str, why: str, usage: Usage) -> dict[str, Any]:
    return {"notes": [f"{rubric} gave up: {why}"], "usage": [usage]}


def _not_in_multiple(context: Context) -> dict[str, Any]:
    if "consistency" not in context.wanted:
        return {}
    reason = "not made in the multiple setting, where characters differ on purpose"
    return {"checks": [skipped("consistency", reason, "steering")]}


def finish(end: Mapping[str, Any]) -> Outcome:
    """The judgement, and the story and values as they now stand."""
    state = cast(RecordState, end)
    subject, original = state["subject"], state["original"]
    decided = deciding(c for c in state["checks"] if c.by != "steering" or c.name == "implicitness")
    decided = decided or deciding(state["checks"])
    accepted = {c.name: c for c in decided if c.by == "accepting"}
    asked = accepted.get("incorporation")
    missing = flagged(asked, subject) if asked else ()
    changes: dict[str, Any] = {}
    if subject.story != original.story:
        changes["story"] = subject.story
    if missing:
        kept = [v for n, v in enumerate(subject.values, 1) if n not in missing]
        changes["values"] = kept
    judgement = Judgement(
        verdict=gravest(c.verdict for c in decided),
        workflow="story",
        reason=summed_reason(decided, state["notes"]),
        checks=tuple(state["checks"]),
        edits=tuple(state["edits"]),
        dropped=tuple(subject.value(n) for n in missing),
        contradictions=_contradictions(accepted.get("consistency")),
        usage=total_usage(state),
    )
    return Outcome(judgement, changes)


def _contradictions(check: Check | None) -> tuple[Finding, ...]:
    """What contradicts a value, with the words where they are known."""
    failed = [f for f in check.bearing() if f.verdict is Verdict.FAIL] if check else []
    quoted = {finding.value for finding in failed if finding.quote}
    return tuple(f for f in failed if f.quote or f.value not in quoted)


def calls(subject: Subject, context: Context) -> dict[tuple[str, By], tuple[int, int]]:
    """Least and most asks by rubric: clean at once, or every loop to its end.

    With `fail_fast` the least is a story that fails as early as it can.
    """
    asked = [
        name
        for name in ("incorporation", "consistency", "implicitness", *context.additional)
        if name in context.wanted and not skip_reason(name, subject, context)
        if not (name == "consistency" and subject.multiple)
    ]
    steering = [name for name in asked if name not in context.additional]
    accepting = [name for name in asked if name != "implicitness"]
    short = "length" in context.wanted and len(subject.story.split()) < context.min_words
    lost = short or (context.fail_fast and "implicitness" in steering)
    sure = 0 if lost else 1 if context.fail_fast else len(accepting)
    planned: dict[tuple[str, By], tuple[int, int]] = {}
    planned |= {(name, "steering"): (1, 1 + context.rounds) for name in steering}
    return planned | {
        (name, "accepting"): (1 if place < sure else 0, 1) for place, name in enumerate(accepting)
    }


_builder = StateGraph(RecordState, context_schema=Context)
for _node in (
    incorporation,
    insertion,
    consistency,
    contradiction_rewriting,
    implicitness,
    explicit_rewriting,
    length,
    acceptance,
    rejected,
):
    _builder.add_node(_node.__name__, _node)
_builder.add_edge(START, "incorporation")
for _check, _rewriting, _next in (
    ("incorporation", "insertion", "consistency"),
    ("consistency", "contradiction_rewriting", "implicitness"),
    ("implicitness", "explicit_rewriting", "length"),
):
    _builder.add_conditional_edges(
        _check, _ask_again(_check, _rewriting, _next), [_rewriting, _next]
    )
    _builder.add_conditional_edges(_rewriting, _after_rewriting(_check, _next), [_check, _next])
_builder.add_conditional_edges("length", after_length, ["acceptance", "rejected"])
_builder.add_edge("acceptance", END)
_builder.add_edge("rejected", END)
graph = _builder.compile(name="story")

workflow = Workflow(
    name="story",
    kind="story",
    title="Stories that carry values (CQ-Bench)",
    graph=graph,
    begin=begin,
    finish=finish,
    checks=("incorporation", "consistency", "implicitness"),
    accepted=("incorporation", "consistency"),
    counted=("length",),
    rewrites=("insertion", "contradiction_rewriting", "explicit_rewriting"),
    calls=calls,
    accepting_votes=3,
    voted=("accepting",),
)
