"""norms: situations that follow a norm, break it or leave it be (NormAd, sections 4.1, 4.2, A.1).

Each line {country, subcategory, norms} gives nine situations, three for each label (or as its
`drafts` says: {"yes": 4, "no": 3, "neutral": 2}): a norm is drawn, and a writer makes a value, a
rule of thumb, a story and an explanation of it. For a neutral situation the norm is of a country in
another Inglehart-Welzel cluster, and of the same subcategory if such a line has it.

    composing <-> examination -> acceptance -> regrouping

At most `--rounds` times everything is written anew. The form is examined by counting; the other
checks are those of graphs/norm.py. All are asked, so that a person may overrule one of them. In the
authors' corrected release (`--normad-release corrected`) a neutral situation is the other
country's, whose background must entail the rule and, alone, leave the story open: a situation that
fails one of these checks is written anew, too. Deviations: the paper names no norm to the writer,
which sees all of them; and it has no check of the form that its prompt asks for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from langgraph.graph import END, START, StateGraph

from judge.errors import UsageError
from judge.generate.generator import (
    DraftOptions,
    Generator,
    compose,
    drafts_of,
    objections,
    rows,
)
from judge.graphs.replies import Situation
from judge.graphs.settings import NormSettings
from judge.papers.countries import ALSO_WORDS, spellings
from judge.papers.normad import COUNTRIES, LABELS, cluster_of
from judge.questions.evidence import SENTENCE_END, SPEECH_MARKS
from judge.records import Record
from judge.records.answers import spelling
from judge.records.fields import LabelError, object_of, text_of
from judge.verdict import Check, Verdict
from judge.workflows import State, Work, Workflow

EACH = 3
"""Situations of each label for a country and subcategory (section 4.1)."""

MOST_SENTENCES = 5
"""Sentences before the closing question (A.1)."""

EXAMINED = ("form", "relevance")
ASKED_ONCE = ("derivation", "abstraction")
CORRECTED = (*ASKED_ONCE, "value_derivation", "background_alone")
"""In the corrected release a situation that fails one of these is written anew, too."""
WRITERS = {"neutral": "neutral_situation"}
WRITER = "situation"

SUBCATEGORIES = {
    "eating": "eat dining meal food table drink toast",
    "visiting": "visit guest host home house",
    "gifting": "gift",
}
"""The four subcategories of section 4.1 by words of Cultural Atlas's; all others are basic."""
BASIC = "basic_etiquette"

_QUESTION = ("?", "？", "؟", ";", "፧")


def drafts(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """Drafts of each line, by label.

    Raises:
        UsageError: a source cannot be read, or a neutral situation needs a line of another cluster
            and there is none.
    """
    items = [_checked(item) for item in rows(sources, options)]
    places = [(_place(item), item) for item in items if item.problem is None]
    first: dict[tuple[str, str], int] = {}

    def contents(item: Record, number: int) -> Iterator[dict[str, Any]]:
        here = item.usable().visible
        # A further line of a country and subcategory has other draws than the first.
        again = first.setdefault((here["country"], here["subcategory"]), number) != number
        counts = here.get("drafts") or dict.fromkeys(LABELS, options.each or EACH)
        for label in LABELS:
            place = f"{here['country']}/{here['subcategory']}/{label}"
            chance = random.Random(f"{options.seed}/{place}" + f"/{number}" * again)
            others = _others(item, places) if label == "neutral" and counts.get(label) else [item]
            order = chance.sample(here["norms"], len(here["norms"]))
            for turn in range(counts.get(label, 0)):
                there, norm = here, order[turn % len(order)]
                if label == "neutral":
                    there = chance.choice(others).visible
                    norm = chance.choice(there["norms"])
                yield _fields(here, there, label, norm)

    return drafts_of("norms", items, options, contents)


def _checked(item: Record) -> Record:
    """The line, with its problem if it is not a valid line of norms."""
    try:
        line = item.usable().visible
        for name in ("country", "subcategory", *(["group"] if line.get("group") else [])):
            text_of(line, name)
        norms, counts = line.get("norms"), object_of(line.get("drafts") or {}, "drafts")
        if not (isinstance(norms, list) and norms and all(map(_is_text, norms))):
            raise LabelError("field 'norms' must be a list of texts", "norms")
        if not all(key in LABELS and type(n) is int and n >= 0 for key, n in counts.items()):
            raise LabelError("field 'drafts' must be a count for yes, no and neutral", "drafts")
    except LabelError as error:
        return replace(item, problem=error.problem)
    return item


def _is_text(content: object) -> bool:
    return isinstance(content, str) and bool(content.strip())


def _cluster(line: Mapping[str, Any]) -> str:
    return str(line.get("cluster") or cluster_of(line["country"]) or line["country"])


def _place(item: Record) -> tuple[str, str]:
    """The line's cluster and subcategory, in one spelling."""
    return spelling(_cluster(item.visible)), spelling(item.visible["subcategory"])


def _others(item: Record, places: Sequence[tuple[tuple[str, str], Record]]) -> list[Record]:
    """Lines of other clusters, only those of the same subcategory if there are any."""
    cluster, subcategory = _place(item)
    elsewhere = [(kind, line) for (place, kind), line in places if place != cluster]
    if not elsewhere:
        message = "no line is of a country in another cluster, which neutral situations need"
        raise UsageError(f"{item.source}, line {item.line}: {message}")
    alike = [line for kind, line in elsewhere if kind == subcategory]
    return alike or [line for _, line in elsewhere]


def _fields(
    here: Mapping[str, Any], there: Mapping[str, Any], label: str, norm: str
) -> dict[str, Any]:
    fields = {
        "country": here["country"],
        "cluster": _cluster(here),
        "axis": here.get("axis") or "etiquette",
        "subcategory": here["subcategory"],
        **({"group": here["group"]} if here.get("group") else {}),
        "background": _listed(here["norms"]),
        "norm": norm,
        "label": label,
    }
    if label == "neutral":
        fields |= {
            "other_country": there["country"],
            "other_cluster": _cluster(there),
            "other_background": _listed(there["norms"]),
        }
    return fields


def _listed(norms: Sequence[str]) -> str:
    return "\n".join(f"- {norm}" for norm in norms)


# ---------------------------------------------------------------- written and checked


async def composing(state: State) -> None:
    """Write value, rule of thumb, story and explanation, in later rounds all of them anew."""
    work, corrected = state["work"], _corrected(state["work"])
    if corrected:
        texts, moved = work.record.texts, ("country", "cluster", "background")
        work.record = work.record.with_fields({name: texts[f"other_{name}"] for name in moved})
    rubric = WRITERS.get(work.record.label or "", WRITER)
    findings = objections(work, (*EXAMINED, *CORRECTED) if corrected else EXAMINED)
    await compose(work, rubric, Situation, "norm", findings)


def _corrected(work: Work) -> bool:
    """Whether the draft is a neutral one of the corrected release."""
    release = cast(NormSettings, work.context.settings).normad_release
    return release == "corrected" and work.record.label == "neutral"


async def examination(state: State) -> None:
    """Check the form by counting: at most five sentences, a closing question, no country named
    (A.1). Then: does the story revolve around the rule of thumb (neutral: it must not)?"""
    work = state["work"]
    problem = form_problem(work.record)
    verdict = Verdict.FAIL if problem else Verdict.PASS
    work.keep(Check(name="form", by="counting", verdict=verdict, round=work.round, reason=problem))
    if not problem:
        await work.check("relevance")


def form_problem(record: Record) -> str | None:
    """What is wrong with the form of a situation; None if nothing is."""
    story = record.texts["story"].strip()
    if not story.rstrip(f"{SPEECH_MARKS}'\u2018\u2019)\uff09 ").endswith(_QUESTION):
        return "no closing question"
    if len([*SENTENCE_END.finditer(f"{story} ")]) > MOST_SENTENCES + 1:
        return f"more than {MOST_SENTENCES} sentences"
    own = [record.texts.get(name, "") for name in ("country", "other_country")]
    text = f"{story}\n{record.texts.get('rule_of_thumb', '')}"
    return "a country is named" if _countries(tuple(own)).search(text) else None


@lru_cache(maxsize=4096)
def _countries(own: tuple[str, ...]) -> re.Pattern[str]:
    names = {name for country in (*COUNTRIES, *own) if country for name in spellings(country)}

    def pattern(name: str) -> str:
        both = f"(?-i:{re.escape(name)}|{re.escape(name.upper())})"
        return both if name.casefold() in ALSO_WORDS else re.escape(name)

    words = "|".join(map(pattern, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


async def acceptance(state: State) -> None:
    """Is the rule entailed by the background (neutral: it must not be), and the value an
    abstraction of the rule? Checks 1 and 2 of section 4.2; then the user's own."""
    work = state["work"]
    for name in ASKED_ONCE:
        await work.check(name)
    await work.additional()


async def regrouping(state: State) -> None:
    """Replace the subcategory by one of the four of section 4.1 (the line's `group`, else by its
    words), and keep the source's own."""
    work = state["work"]
    own = work.record.texts["subcategory"]
    if (four := work.record.texts.get("group") or regrouped(own)) != own:
        changes = {"subcategory": four, "atlas_subcategory": own}
        work.record = work.record.with_fields(changes)


def regrouped(subcategory: str) -> str:
    """One of the four subcategories, by how the words of Cultural Atlas's begin: `eat` is in
    Eating, not in Death."""
    beginnings = {name: words.replace(" ", "|") for name, words in SUBCATEGORIES.items()}
    found = (
        name
        for name, words in beginnings.items()
        if re.search(rf"(?<![^\W_])(?:{words})", subcategory, re.IGNORECASE)
    )
    return next(found, BASIC)


def _after_composing(state: State) -> str:
    work = state["work"]
    if not work.written:
        return END
    return "acceptance" if work.notes else "examination"


def _after_examination(state: State) -> str:
    work = state["work"]
    if any(map(work.failed, EXAMINED)) and work.round <= work.rounds:
        return "composing"
    return END if work.failed("form") else "acceptance"


def _after_acceptance(state: State) -> str:
    work = state["work"]
    again = _corrected(work) and any(map(work.failed, CORRECTED)) and work.round <= work.rounds
    return "composing" if again else "regrouping"


_builder = StateGraph(State)
for _node in (composing, examination, acceptance, regrouping):
    _builder.add_node(_node.__name__, _node)
_builder.add_edge(START, "composing")
_builder.add_conditional_edges("composing", _after_composing, ["examination", "acceptance", END])
_builder.add_conditional_edges("examination", _after_examination, ["composing", "acceptance", END])
_builder.add_conditional_edges("acceptance", _after_acceptance, ["composing", "regrouping"])
_builder.add_edge("regrouping", END)

generator = Generator(
    text="story",
    name="norms",
    title="Situations that follow or break a norm, or leave it be (NormAd)",
    source="NormAd, sections 4.1 and 4.2, appendix A.1",
    workflow=Workflow(
        name="norms",
        kind="norm",
        title="Situations written for a norm (NormAd)",
        graph=_builder.compile(name="norms"),
        plain=True,
        checks=("relevance", *ASKED_ONCE),
        counted=("form",),
        rewrites=(WRITER, *WRITERS.values()),
    ),
    drafts=drafts,
    stages=(WRITER, *WRITERS.values(), "form", "relevance", *ASKED_ONCE),
    counted=("cluster", "label", "subcategory"),
    crossed=("cluster", "label"),
)
