"""`judge generate pairs`: premises and hypotheses of cultural norms (CALI, sections 3.2 to 3.4).

Huang and Yang, "Culturally Aware Natural Language Inference". A line of the sources is a norm as a
behaviour script: `behaviour` (a verb phrase), `location` (a noun phrase with its preposition), and
any other fields. Each behaviour gets two premises, by two of the five premise templates and two
opposite judgements, and each premise three hypotheses, by one of the two templates of a goal and
two of the nine others (appendix A.1):

    premise <-> faults -> hypotheses <-> choice
         neutralising

A line with a `premise` of its own (from a corpus, or by hand, as for a fifth of the paper's norms)
starts at `faults`. No labels are made: people give them (sections 3.5 and 3.6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from random import Random
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, ConfigDict, Field

from judge.errors import read_text
from judge.generate.generator import (
    DraftOptions,
    Generator,
    Lost,
    compose,
    drafts_of,
    first_failure,
    given_up,
    objections,
    rows,
)
from judge.graphs.replies import NewHypotheses, NewPremise
from judge.judgement import Judgement
from judge.papers.cali import HYPOTHESES
from judge.papers.cqbench_stories import folded
from judge.records import Record
from judge.records.fields import text_of
from judge.verdict import Check, Verdict
from judge.workflows import State, Work, Workflow
from judge.yamlfile import read_mapping

GOAL = "goal"
"""The inference type that one hypothesis of every premise has."""

FAULT = "premise_fault"
INDICATORS = "indicators"
FAULTS = ("repetition", "wrong_culture", "stereotype", INDICATORS)
"""Faults of a premise: the paper's kinds (A.2) except a refusal, which the writer's stage counts;
and names, countries and gender, which are taken out (3.4)."""

LATER = ("distinct", "hypothesis_indicators")
"""The checks of hypotheses."""

_PREMISES = 2
TEMPLATE = "premise_template"
"""The field with the number of a premise's template; a premise from the source has none."""

_OURS = (*HYPOTHESES, "premise_task", TEMPLATE, "judgement", "inference")

_PLACES = ("behaviour", "location", "judgement", "form", "style")
_PLACE = re.compile(r"\{(\w*)\}")

TemplateTexts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


class Templates(BaseModel):
    """A file of templates; judge/papers/pairs.yaml is the default."""

    model_config = ConfigDict(extra="forbid")
    premises: Annotated[TemplateTexts, Field(min_length=_PREMISES)]
    judgements: Annotated[tuple[TemplateTexts, ...], Field(min_length=1)]
    forms: TemplateTexts
    styles: TemplateTexts
    hypotheses: Mapping[str, TemplateTexts]

    @classmethod
    def of(cls, options: DraftOptions) -> Templates:
        """The user's templates, or the package's. Raises UsageError, with file, line and key."""
        own = options.own.get("templates")
        usual = resources.files("judge.papers") / "pairs.yaml"
        text = read_text(Path(own)) if own else usual.read_text("utf-8")
        source = read_mapping(text, own or "judge/papers/pairs.yaml")
        templates = source.validated(cls)
        others = sum(len(texts) for kind, texts in templates.hypotheses.items() if kind != GOAL)
        if GOAL not in templates.hypotheses or others < len(HYPOTHESES) - 1:
            message = f"one template of {GOAL} and two of other types at least"
            raise source.refused([(("hypotheses",), message)])
        for number, premise in enumerate(templates.premises):
            if unknown := {*_PLACE.findall(premise)}.difference(_PLACES):
                message = f"there is no {{{min(unknown)}}}, only {', '.join(_PLACES)}"
                raise source.refused([(("premises", str(number)), message)])
        return templates


def drafts(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """`options.each` drafts for each behaviour (default two), with different premise templates, and
    judgements from each group in turn; all drawn by the seed and the line's number."""
    templates = Templates.of(options)

    def contents(row: Record, number: int) -> Iterator[dict[str, Any]]:
        fields = row.usable().visible
        behaviour, location = text_of(fields, "behaviour"), text_of(fields, "location")
        script = {key: content for key, content in fields.items() if key not in _OURS}
        if not (own := bool(str(script.get("premise") or "").strip())):
            script.pop("premise", None)
        rng = Random(f"{options.seed}/{number}")
        order = rng.sample(range(len(templates.premises)), len(templates.premises))
        for turn in range(1 if own else options.each or _PREMISES):
            place = order[turn % len(order)]
            drawn = {
                "behaviour": behaviour,
                "location": location,
                "judgement": rng.choice(templates.judgements[turn % len(templates.judgements)]),
                "form": rng.choice(templates.forms),
                "style": rng.choice(templates.styles),
            }
            task = _filled(templates.premises[place], drawn)
            told = {"judgement": drawn["judgement"], TEMPLATE: place + 1, "premise_task": task}
            if own:
                told = {"premise_task": f"{behaviour}, {location}"}
            yield {**script, **told, **_hypothesis_tasks(templates, rng)}

    return drafts_of("pairs", rows(sources, options), options, contents)


def _filled(template: str, texts: Mapping[str, str]) -> str:
    # All at once, so that braces in a behaviour are not replaced.
    return _PLACE.sub(lambda place: texts[place[1]], template)


def _hypothesis_tasks(templates: Templates, rng: Random) -> dict[str, Any]:
    """One template of a goal and two others, numbered, and their types of inference."""
    of_type = [(kind, text) for kind, texts in templates.hypotheses.items() for text in texts]
    goals = [pair for pair in of_type if pair[0] == GOAL]
    others = [pair for pair in of_type if pair[0] != GOAL]
    chosen = [rng.choice(goals), *rng.sample(others, len(HYPOTHESES) - 1)]
    tasks = "\n".join(f"{number}. {text}" for number, (_, text) in enumerate(chosen, 1))
    return {"hypothesis_tasks": tasks, "inference": [kind for kind, _ in chosen]}


# ---------------------------------------------------------------- the graph


async def premise(state: State) -> None:
    """Write a premise, or take the source's own."""
    work = state["work"]
    if _own_premise(work) and not work.written:
        work.wrote({"premise": work.record.texts["premise"]}, "record")
        return
    await compose(work, "premise_writing", NewPremise, "record", objections(work, [FAULT]))


async def faults(state: State) -> None:
    """Does the premise have a fault (A.2), or name a person, a country or a gender?"""
    await state["work"].check(FAULT)


async def neutralising(state: State) -> None:
    """Take names, countries and gender out of a premise without other faults."""
    work = state["work"]
    await compose(work, "neutralising", NewPremise, "record", objections(work, [FAULT]))


async def hypotheses(state: State) -> None:
    """Write a hypothesis by each of the three templates."""
    work = state["work"]
    if work.last("distinct") is None:
        work.round = 0
    await compose(work, "hypothesis_writing", NewHypotheses, "record", objections(work, LATER))


async def choice(state: State) -> None:
    """The three must differ from one another and from the premise, and give nothing away."""
    work = state["work"]
    texts = [folded(work.record.texts[name]) for name in ("premise", *HYPOTHESES)]
    twice = len({*texts}) < len(texts)
    verdict = Verdict.FAIL if twice else Verdict.PASS
    reason = "two statements are the same" if twice else None
    work.keep(Check(name="distinct", verdict=verdict, by="counting", reason=reason))
    await work.check("hypothesis_indicators")
    await work.additional()


def _own_premise(work: Work) -> bool:
    return TEMPLATE not in work.record.fields


def after_premise(state: State) -> str:
    return END if state["work"].notes else "faults"


def after_faults(state: State) -> str:
    work = state["work"]
    if not objections(work, [FAULT]):
        return "hypotheses"
    check = work.last(FAULT)
    named = check is not None and check.answer == INDICATORS
    if work.round > work.rounds or (_own_premise(work) and not named):
        return END
    return "neutralising" if named else "premise"


def after_hypotheses(state: State) -> str:
    return END if state["work"].notes else "choice"


def after_choice(state: State) -> str:
    work = state["work"]
    return "hypotheses" if objections(work, LATER) and work.round <= work.rounds else END


def lost(work: Work, judgement: Judgement) -> Lost | None:
    """The first failure, for a premise the kind of its fault; without a failure, that hypotheses
    are missing, if so: those of a premise that only a person found sound were never asked for."""
    failure, check = first_failure(work, judgement), work.last(FAULT)
    if failure and failure[0] == FAULT and check is not None and check.answer in FAULTS:
        return check.answer, failure[1]
    if failure is None and HYPOTHESES[0] not in work.record.fields:
        return given_up(work) if work.notes else ("hypothesis_writing", "not asked")
    return failure


_builder = StateGraph(State)
for _node in (premise, faults, neutralising, hypotheses, choice):
    _builder.add_node(_node.__name__, _node)
_builder.add_edge(START, "premise")
_builder.add_conditional_edges("premise", after_premise, ["faults", END])
_builder.add_conditional_edges(
    "faults", after_faults, ["premise", "neutralising", "hypotheses", END]
)
_builder.add_edge("neutralising", "faults")
_builder.add_conditional_edges("hypotheses", after_hypotheses, ["choice", END])
_builder.add_conditional_edges("choice", after_choice, ["hypotheses", END])

_WRITERS = ("premise_writing", "neutralising", "hypothesis_writing")
generator = Generator(
    name="pairs",
    title="Premises of behaviours, with three hypotheses each (CALI)",
    source="Huang & Yang, Culturally Aware Natural Language Inference, sections 3.2 to 3.4",
    workflow=Workflow(
        name="pairs",
        kind="record",
        title="A premise and three hypotheses, from a behaviour",
        graph=_builder.compile(name="pairs"),
        checks=(FAULT, "hypothesis_indicators"),
        counted=("distinct",),
        rewrites=_WRITERS,
        plain=True,
    ),
    drafts=drafts,
    stages=("premise_writing", *FAULTS, FAULT, "hypothesis_writing", *LATER),
    lost=lost,
    options={"templates": "file of templates in place of judge/papers/pairs.yaml"},
    text="premise",
    counted=("inference", "judgement"),
)
