"""`judge generate questions`: questions about a culture that a model fails (CulturalBench, 3.1).

Chiu et al., "CulturalBench". A line of the sources is a `scenario` that people of a `country` know;
a writer makes a question with four options of it. A verifier answers it, and as long as it is right
the writer revises the question by the next of eight strategies (appendix H):

    formulation -> verification <-> revision -> region

With `--option turn=person` a person revises: the question is verified and written with hints (a
draft by each strategy). Edit the lines and give them as a source again: a line with a question is
verified unchanged. People's votes make the set (`judge build culturalbench-easy`); the writer's
answer is not a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from langgraph.graph import END, START, StateGraph

from judge.errors import UsageError
from judge.generate.generator import DraftOptions, Generator, compose, drafts_of, rows
from judge.graphs.replies import Hints, NewQuestion
from judge.papers.culturalbench_questions import OPTIONS, QUESTION, question_of
from judge.records import Record
from judge.records.fields import text_of
from judge.verdict import Verdict
from judge.workflows import State, Workflow

STRATEGIES: Mapping[str, str] = {
    "negate": "Ask for what is not so, with a word such as not, never or unlikely.",
    "be_concrete": "Put a particular thing or person in the place of a general one.",
    "change_things": "Put another thing that has something in common in the place of one.",
    "change_quantities": "Change how much, how many or how often.",
    "everyday_life": "Ask about a scene of everyday life instead of the custom as such.",
    "other_words": "Say what an option says in other words, or by something that implies it.",
    "foreign_habits": "Make a wrong option of what is usual in the United States, and not here.",
    "near_misses": "Make a wrong option that is right in a neighbouring country, and not here.",
}
"""Ways to make a question harder: five change the question, three its options."""


def drafts(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """A draft (or `options.each`) for each scenario, one for each question that a person edited."""
    turn = options.own.get("turn", "writer")
    if turn not in ("writer", "person"):
        raise UsageError(f"--option turn={turn}: there are writer and person")

    def contents(row: Record, number: int) -> list[dict[str, Any]]:
        fields = row.usable().visible
        text_of(fields, "country")
        if asked := bool(str(fields.get(QUESTION) or "").strip()):
            question_of(fields)
        else:
            text_of(fields, "scenario")
        ours = _OURS if asked else (*_OURS, QUESTION, *OPTIONS, "answer")
        content = {key: c for key, c in fields.items() if key not in ours}
        told = {**content, "turn": turn} if turn == "person" else content
        return [told] * (1 if asked else options.each or 1)

    return drafts_of("questions", rows(sources, options), options, contents)


_OURS = ("turn", "verifier", "fooled", "hints")


async def formulation(state: State) -> None:
    """Make a question of the scenario, or take the source's own."""
    work = state["work"]
    if QUESTION in (fields := work.record.fields):
        work.wrote({name: fields[name] for name in (QUESTION, *OPTIONS, "answer")}, "record")
        return
    await compose(work, "question_writing", NewQuestion, "record")


async def verification(state: State) -> None:
    """Ask the verifier, and keep its answer and its probability of the right option."""
    work = state["work"]
    # A record has no label; this one is only for the verifier's rubric.
    gold = str(work.record.fields["answer"]).strip().upper()
    work.record = work.record.with_typed(label=gold)
    check = await work.votes(work.context.panel("verifier", "loop"), "loop")
    work.paid += check.usage
    fooled = {Verdict.PASS: False, Verdict.FAIL: True}.get(check.verdict)
    answers = [answer.answer for vote in check.votes for answer in vote.evidence]
    told = {"answer": next(iter(answers), None), "probability_of_right": check.probability}
    work.wrote({"verifier": told, "fooled": fooled}, "record")


async def revision(state: State) -> None:
    """Make the question harder by the next strategy; if that fails, leave it unchanged."""
    work = state["work"]
    order = Random(work.record.id).sample([*STRATEGIES], len(STRATEGIES))
    strategy = order[(work.round - 1) % len(order)]
    if await compose(work, "question_revision", NewQuestion, "record", [STRATEGIES[strategy]]):
        used = work.record.fields.get("revisions", [])
        work.wrote({"revisions": [*used, strategy]}, "record")


async def hints(state: State) -> None:
    """Write a draft by each strategy, as hints for the person who revises."""
    work = state["work"]
    findings = [f"{name}: {text}" for name, text in STRATEGIES.items()]
    reply = await work.ask_rewriter("question_hints", Hints, findings=findings)
    if reply is not None:
        work.wrote({"hints": reply.model_dump()}, "record")


async def region(state: State) -> None:
    """Is the question about its country (the authors' filter)? And the user's own checks."""
    await state["work"].check("regional")
    await state["work"].additional()


def after_formulation(state: State) -> str:
    return "verification" if state["work"].written else END


def after_verification(state: State) -> str:
    work = state["work"]
    if work.record.fields.get("fooled") is not False:
        return "region"
    if work.record.fields.get("turn") == "person":
        return "hints"
    return "revision" if work.round <= min(work.rounds, len(STRATEGIES)) else "region"


_builder = StateGraph(State)
for _node in (formulation, verification, revision, hints, region):
    _builder.add_node(_node.__name__, _node)
_builder.add_edge(START, "formulation")
_builder.add_conditional_edges("formulation", after_formulation, ["verification", END])
_builder.add_conditional_edges("verification", after_verification, ["revision", "hints", "region"])
_builder.add_edge("revision", "verification")
_builder.add_edge("hints", "region")
_builder.add_edge("region", END)

generator = Generator(
    name="questions",
    title="Questions with four options that a model fails (CulturalBench)",
    source="Chiu et al., CulturalBench, section 3.1 and appendix H",
    workflow=Workflow(
        name="questions",
        kind="record",
        title="A question about a culture, revised until a model fails",
        graph=_builder.compile(name="questions"),
        checks=("verifier", "regional"),
        rewrites=("question_writing", "question_revision", "question_hints"),
        plain=True,
    ),
    drafts=drafts,
    stages=("question_writing", "regional"),
    options={"turn": "person: verify and hint, and leave the revision to a person"},
    text=QUESTION,
    counted=("country", "fooled"),
)
