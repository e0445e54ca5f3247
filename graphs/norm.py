"""norm: do situation, rule of thumb, value, background and label belong together?

After NormAd (sections 4.1 to 4.3). The situation is examined and regenerated until it is about the
rule of thumb (neutral: until it is not) and gives nothing away. Then the rule is checked against
the background, the value against rule and background, and the label against story and rule. In the
paper the rule of a neutral record must not follow from the background; in the authors' corrected
release (`--normad-release corrected`) it must, and the background must not settle the story:

    examination (relevance, leakage) <-> regeneration
    acceptance of an edited situation
    derivation, abstraction, value derivation, label correctness

A record is first judged without regeneration; with `--repair`, a record that does not pass then
goes through the loop. A record that fails stays in the output, with the failed check named.

`normad-filter` has only the paper's filters, in its order: relevance, derivation, abstraction.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, cast

from judge.records.kinds import normalise
from judge.settings import Settings
from judge.verdict import SOUND, Check, Verdict
from judge.workflows import State, Work, Workflow

from .replies import Regeneration
from .settings import NormSettings

EXAMINED = ("relevance", "leakage")
ASKED_ONCE = ("derivation", "abstraction", "value_derivation", "label_correctness")
FILTERS = ("relevance", "derivation", "abstraction")
ROUNDS = Settings.model_fields["rounds"].default

UNFIT = f"not about the rule, or it leaks, at most {ROUNDS} times"
AGAIN, REWRITTEN, AS_IT_CAME = "regenerated, ask again", "rewritten", "as it came in"
"""Labels of the edges, as `judge workflows draw` shows them."""

UNTOLD = (
    "a neutral record with an Other Background: say --normad-release corrected if the rule of "
    "thumb is from its Background, --normad-release paper if it is from neither"
)


async def examination(state: State) -> None:
    """Is the situation about the rule of thumb, and does it give nothing away?"""
    for name in EXAMINED:
        await state["work"].check(name)


async def regeneration(state: State) -> None:
    """Rewrite the situation, given what was wrong with it."""
    work = state["work"]
    # The label says whether the new situation must follow the rule, break it, or not be about it.
    if work.record.label is None:
        work.give_up("story_regeneration", "the record has no label")
        return
    failed = _failed(work)
    reasons = [_told(check) for check in failed]
    reply = await work.ask_rewriter("story_regeneration", Regeneration, findings=reasons)
    if reply is not None:
        story, names = reply.story.strip(), ", ".join(check.name for check in failed)
        before = work.record.texts["story"]
        edit = work.edit(names, "story_regeneration")(before=before, after=story)
        work.rewrite("story", story, [edit])


async def acceptance(state: State) -> None:
    """The final judge examines a regenerated situation again, in fresh context."""
    for name in EXAMINED:
        await state["work"].check(name, by="final")


async def holding_together(state: State) -> None:
    """The checks that need no loop, and the user's own."""
    work = state["work"]
    work.round = 1
    for name in ASKED_ONCE:
        await _ask(work, name)
    await work.additional()


async def filtering(state: State) -> None:
    """The filters after the first; a record that does not pass one skips the later ones."""
    work = state["work"]
    work.round = 1
    for before, name in pairwise(FILTERS):
        check = work.last(before)
        if check is not None and check.verdict not in SOUND:
            await work.test()  # Of a regenerated situation; a test costs nothing.
            return
        await _ask(work, name)
    await work.additional()


async def _ask(work: Work, name: str) -> None:
    if name == "derivation" and _two_backgrounds(work):
        work.skip(name, UNTOLD, "loop")
    else:
        await work.check(name)


def _two_backgrounds(work: Work) -> bool:
    """Whether a neutral record has two backgrounds, and no setting says which the rule is from."""
    context, record = work.context, work.record
    release = cast(NormSettings, context.settings).normad_release
    if record.label != "neutral" or release or "derivation" not in context.selected:
        return False
    return any(normalise(name) == "otherbackground" for name in record.texts)


def _failed(work: Work) -> list[Check]:
    last = (work.last(name) for name in EXAMINED)
    return [check for check in last if check is not None and check.verdict is Verdict.FAIL]


def _told(check: Check) -> str:
    if check.name == "relevance":
        return "it is not about the right thing: see below what is wanted"
    quotes = ", ".join(repr(f.quote) for f in check.supporting_evidence() if f.quote)
    return "it gives away where it happens, or explains the custom" + (
        f": {quotes}" if quotes else ""
    )


def after_examination(state: State) -> str:
    work = state["work"]
    if _failed(work) and work.round <= work.rounds:
        return UNFIT
    return REWRITTEN if work.edits else AS_IT_CAME


def after_regeneration(state: State) -> str:
    work = state["work"]
    if not work.notes:
        return AGAIN
    return REWRITTEN if work.edits else AS_IT_CAME


@cache
def graph_of(name: str, last: Any) -> Any:
    """The loop about the situation, then the node `last`, which makes the other checks."""
    from langgraph.graph import END, START, StateGraph

    builder = StateGraph(State)
    for node in (examination, regeneration, acceptance, last):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "examination")
    ends: dict[Hashable, str] = {REWRITTEN: "acceptance", AS_IT_CAME: last.__name__}
    builder.add_conditional_edges("examination", after_examination, {UNFIT: "regeneration", **ends})
    builder.add_conditional_edges(
        "regeneration", after_regeneration, {AGAIN: "examination", **ends}
    )
    builder.add_edge("acceptance", last.__name__)
    builder.add_edge(last.__name__, END)
    return builder.compile(name=name)


graph = partial(graph_of, "norm", holding_together)

workflow = Workflow(
    name="norm",
    kind="norm",
    title="Situations that follow or break a rule of thumb (NormAd)",
    graph=graph,
    plain=True,
    checks=(*EXAMINED, *ASKED_ONCE),
    accepted=EXAMINED,
    rewrites=("story_regeneration",),
)

normad_filter = replace(
    workflow,
    name="normad-filter",
    title="NormAd's three filters, one after another (section 4.2)",
    graph=partial(graph_of, "normad-filter", filtering),
    checks=FILTERS,
    accepted=FILTERS[:1],
    successive=True,
)
