"""story: does a conversation story carry its values, consistently and without naming them?

After CQ-Bench (sections 2.1, A.2, A.3). First the length, which costs nothing; then three checks by
the loop judge, each with its rewrite loop; then the final judge in fresh context:

    length
    incorporation <-> insertion                    (only to repair)
    consistency   <-> contradiction rewriting      (only to repair, not in the multiple setting)
    implicitness  <-> explicit-speech rewriting
    acceptance: incorporation and consistency, voted per value

A story is first judged without rewriting, by the deciding checks: length, implicitness and
acceptance. With `--repair`, a story that does not pass then goes through the loops. Values that the
acceptance then finds missing are dropped from the record; contradicted ones stay, and are reported
with characters and speeches. A story with dropped values fails; with `--keep-dropped` it is judged
by the values left. No model is asked about a story that is too short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from judge.records.words import counts_letters, word_count
from judge.settings import Settings
from judge.verdict import Answer, Check, Verdict, last_of_each, worst
from judge.workflows import By, State, Work, Workflow, WorkflowResult

from .edits import apply_insertions, apply_rewrites, passages
from .replies import Insertions, Rewrites
from .settings import StorySettings
from .values import is_multiple, numbers_of, values_of

ACCEPTED = ("incorporation", "consistency")
MULTIPLE = "not made in the multiple setting, where characters differ on purpose"
TOO_FEW, REPAIR, AS_IT_CAME = "too few words", "to repair", "as it came in"
AGAIN, GO_ON = "rewritten, ask again", "go on"
VOTED = "2 of 3 votes decide a value"
"""Labels of the edges, as `judge workflows draw` shows them."""

ROUNDS = Settings.model_fields["rounds"].default

ONE_PASS = "its speeches were rewritten, and it is not asked again"
TOO_SHORT = "not asked: the story is rejected for its length"


async def length(state: State) -> None:
    """Reject stories with too few words, by counting (CQ-Bench A.2: 400; in scripts without spaces
    each letter is a word)."""
    work = state["work"]
    _count_words(work)
    if work.failed("length"):
        _skip(work, "implicitness", TOO_SHORT)
        await _skip_acceptance(work)


async def incorporation(state: State) -> None:
    """Which values does the story not reflect?"""
    await _steer(state["work"], "incorporation")


async def insertion(state: State) -> None:
    """Add dialogue for the missing values, removing nothing."""
    work = state["work"]
    numbers = _flagged(work, work.latest)
    reply = await work.ask_rewriter("insertion", Insertions, numbers=numbers)
    if reply is not None:
        edit = work.edit("incorporation", "insertion")
        work.rewrite("story", *apply_insertions(work.record, reply, edit))


async def consistency(state: State) -> None:
    """Which character contradicts which value, in which speech?"""
    if not is_multiple(state["work"].record):
        await _steer(state["work"], "consistency")


async def contradiction_rewriting(state: State) -> None:
    """Rewrite only the contradicting speeches."""
    await _rewrite(state["work"], "contradiction_rewriting", "against")


async def implicitness(state: State) -> None:
    """Which speech states a value outright?"""
    await _steer(state["work"], "implicitness")


async def explicit_rewriting(state: State) -> None:
    """Rewrite the explicit speeches as anecdotes."""
    work = state["work"]
    await _rewrite(work, "explicit_rewriting", "states")
    if _settings(work).one_pass and _rewrote(work):
        work.skip("implicitness", ONE_PASS, "loop")


async def acceptance(state: State) -> None:
    """The final judge decides on the current story, in fresh context."""
    work = state["work"]
    if work.edits:
        _count_words(work)
    if work.failed("length"):
        await _skip_acceptance(work)
        return
    work.round = 1
    await work.check("incorporation", by="final")
    if is_multiple(work.record):
        _skip(work, "consistency", MULTIPLE, "final")
    else:
        await work.check("consistency", by="final")
    await work.additional()


def _settings(work: Work) -> StorySettings:
    return cast(StorySettings, work.context.settings)


def _count_words(work: Work) -> None:
    if "length" in work.context.selected:
        words, least = word_count(work.record.texts["story"]), _settings(work).min_words
        verdict = Verdict.FAIL if words < least else Verdict.PASS
        counted = " (letters count as words)" if counts_letters(work.record.texts["story"]) else ""
        short = f"too short: {words} words{counted} of at least {least}"
        reason = short if words < least else None
        work.keep(Check(name="length", verdict=verdict, by="counting", reason=reason))


def _skip(work: Work, name: str, reason: str, by: By = "loop") -> None:
    if name in work.context.selected:
        work.skip(name, reason, by)


async def _skip_acceptance(work: Work) -> None:
    await work.test()
    panels, additional = work.context.final_panels, work.context.additional
    for name in (*ACCEPTED, *(n for n in additional if not panels[n].rubric.tested)):
        _skip(work, name, TOO_SHORT, "final")


async def _steer(work: Work, name: str) -> None:
    if work.latest is None or work.latest.name != name:
        work.round = 1
    await work.check(name)


async def _rewrite(work: Work, rubric: str, how: str) -> None:
    check, record = work.latest, work.record
    assert check is not None, "what failed is rewritten"
    places = passages(record, [f for f in check.supporting_evidence() if f.verdict is Verdict.FAIL])
    if not places:
        work.give_up(rubric, "no speech was found to rewrite")
        return
    reply = await work.ask_rewriter(
        rubric,
        Rewrites,
        numbers=_flagged(work, check),
        passages=[place.described(record.texts["story"], how) for place in places],
    )
    if reply is not None:
        edit = work.edit(check.name, rubric)
        work.rewrite("story", *apply_rewrites(record, places, reply, edit))


def _flagged(work: Work, check: Check | None) -> tuple[int, ...]:
    """The numbers of the values that failed a check; empty without a check."""
    verdicts = check.verdicts() if check is not None else {}
    failed = [value for value, verdict in verdicts.items() if verdict is Verdict.FAIL]
    return numbers_of(work.record, failed)


def _after_length(state: State) -> str:
    if state["work"].failed("length"):
        return TOO_FEW
    return REPAIR if state["work"].rounds else AS_IT_CAME


def _after_check(check: str, following: str) -> Callable[[State], str]:
    def route(state: State) -> str:
        work = state["work"]
        latest = work.latest
        failed = latest is not None and (latest.name, latest.verdict) == (check, Verdict.FAIL)
        return following if failed and work.round <= work.rounds else GO_ON

    return route


def _after_rewriting(state: State) -> str:
    work = state["work"]
    return AGAIN if _rewrote(work) and not _settings(work).one_pass else GO_ON


def _rewrote(work: Work) -> bool:
    """Whether the story was rewritten after the latest check."""
    return work.latest is not None and work.round > work.latest.round


def _voted(state: State) -> str:
    return VOTED


def finish(work: Work) -> WorkflowResult:
    """The judgement, with the changed story and values."""
    record = work.record
    decided = last_of_each(c for c in work.checks if c.by != "loop" or c.name == "implicitness")
    accepted = {c.name: c for c in decided if c.by == "final"}
    acceptance = accepted.get("incorporation")
    numbers = _flagged(work, acceptance) if work.rounds else ()
    values = tuple(values_of(record)[n - 1].text for n in numbers)
    if _settings(work).keep_dropped and len(numbers) < len(values_of(record)):
        without = {id(check): _without(values, check) for check in decided}
        decided = [*without.values()]
        work.checks = [without.get(id(check), check) for check in work.checks]
    changes: dict[str, Any] = {}
    # There is no story if its writer gave up.
    if record.has("story") and (story := record.texts["story"]) != work.original.texts["story"]:
        changes["story"] = story
    if numbers:
        changes["values"] = [v for n, v in enumerate(values_of(record), 1) if n not in numbers]
    judgement = work.judgement("story", decided).model_copy(
        update={
            "dropped": values,
            "contradictions": _contradictions(accepted.get("consistency")),
        }
    )
    return WorkflowResult(judgement, changes)


def _without(values: Sequence[str], check: Check) -> Check:
    """The check with its verdict on the values that are left."""
    verdicts = check.verdicts()
    verdicts_without = [verdict for value, verdict in verdicts.items() if value not in values]
    if len(verdicts_without) == len(verdicts):
        return check
    return check.model_copy(update={"verdict": worst(verdicts_without)})


def _contradictions(check: Check | None) -> tuple[Answer, ...]:
    """The findings against values, with quotes where there are any."""
    failed = [f for f in check.supporting_evidence() if f.verdict is Verdict.FAIL] if check else []
    quoted = {finding.value for finding in failed if finding.quote}
    return tuple(f for f in failed if f.quote or f.value not in quoted)


def add_steps(builder: Any) -> None:
    """Add the workflow's nodes, from `length` to `acceptance`, and the edges between them."""
    from langgraph.graph import END

    for node in (
        length,
        incorporation,
        insertion,
        consistency,
        contradiction_rewriting,
        implicitness,
        explicit_rewriting,
        acceptance,
    ):
        builder.add_node(node.__name__, node)
    builder.add_conditional_edges(
        "length",
        _after_length,
        {TOO_FEW: END, REPAIR: "incorporation", AS_IT_CAME: "implicitness"},
    )
    for check, found, rewriting, following in (
        ("incorporation", "values missing", "insertion", "consistency"),
        ("consistency", "values contradicted", "contradiction_rewriting", "implicitness"),
        ("implicitness", "values stated outright", "explicit_rewriting", "acceptance"),
    ):
        most = f"{found}, at most {ROUNDS} times"
        builder.add_conditional_edges(
            check, _after_check(check, most), {most: rewriting, GO_ON: following}
        )
        ends = {AGAIN: check, GO_ON: following}
        builder.add_conditional_edges(rewriting, _after_rewriting, ends)
    builder.add_conditional_edges("acceptance", _voted, {VOTED: END})


@cache
def graph() -> Any:
    """The compiled graph."""
    from langgraph.graph import START, StateGraph

    builder = StateGraph(State)
    builder.add_edge(START, "length")
    add_steps(builder)
    return builder.compile(name="story")


workflow = Workflow(
    name="story",
    kind="story",
    title="Stories that carry values (CQ-Bench)",
    graph=graph,
    plain=True,
    finish=finish,
    checks=("incorporation", "consistency", "implicitness"),
    accepted=ACCEPTED,
    counted=("length",),
    rewrites=("insertion", "contradiction_rewriting", "explicit_rewriting"),
    final_votes=3,
    voted=("final",),
)
