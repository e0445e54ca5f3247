"""CALI: inference that differs between cultures, and three tasks that tell why a model misses it.

Huang & Yang, "Culturally Aware Natural Language Inference", sections 5.1, 5.2 and D.2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from judge.evaluation.benchmark import Answer, Benchmark, Given, Grader, MeasuredModel
from judge.evaluation.cali_items import (
    ALTERNATIVES,
    CONDITIONS,
    ENTAIL,
    EQUAL,
    FIRST,
    NOT_ENTAIL,
    SECOND,
    items,
)
from judge.evaluation.cali_rows import EFFECTS
from judge.evaluation.cali_tables import GRADED, tables

COUNTRIES = {"us": "the United States", "in": "India"}

_PERCENTAGES = tuple(range(0, 101, 10))
_EVEN = 0.5


async def answer(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """Ask the question of an item's condition; a culture indicator names the item's country."""
    return await _ASKED[fields["condition"].partition("+")[0]](fields, model)


async def grade(fields: Mapping[str, Any], answer: Answer, grader: Grader) -> Answer:
    """Score a knowledge or context answer by the norms it holds; other answers as they are.

    Knowledge is right where the norm is matched; of the context task's norms the score is the
    share that the answer covers (D.2). A norm credited in part is neither matched nor covered. The
    score is None where the judges settled some norm's credit neither way.
    """
    if fields["condition"] not in GRADED or answer.outcome != "answered":
        return answer
    golds = fields["gold"] if isinstance(fields["gold"], list) else [fields["gold"]]
    given = answer.answer if isinstance(answer.answer, list) else [answer.answer]
    graded = await grader.extraction(str(fields["id"]), given, golds)
    settled = [credit for credit in graded.credits if credit is not None]
    covered = sum(credit == 1 for credit in settled)
    return replace(
        answer,
        score=covered / len(golds) if len(settled) == len(golds) else None,
        usage=answer.usage + graded.usage,
        steps={**answer.steps, "credits": list(graded.credits), "reasons": list(graded.reasons)},
    )


async def _entailment(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    given = await model.choose("cali_entailment", _pair(fields), ("Yes", "No"))
    if given.trouble or given.place is None:
        return _nothing(given)
    chosen = (ENTAIL, NOT_ENTAIL)[given.place]
    read = given.probabilities
    shares = dict(zip((ENTAIL, NOT_ENTAIL), read, strict=True)) if read else None
    return _scored(fields, given, chosen, shares)


async def _percentage(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """The mean of the percentages by their probabilities, where they were read; else the one given.

    Exactly 50 % is no entailment: the paper sets no threshold, and entailment is what is claimed.
    """
    options = [f"{number} %" for number in _PERCENTAGES]
    given = await model.choose("cali_percentage", _pair(fields), options)
    if given.trouble or given.place is None:
        return _nothing(given)
    share = _PERCENTAGES[given.place] / 100
    if given.probabilities:
        weighed = zip(_PERCENTAGES, given.probabilities, strict=True)
        share = sum(number / 100 * weight for number, weight in weighed)
    chosen = ENTAIL if share > _EVEN else NOT_ENTAIL
    made = _scored(fields, given, chosen, {ENTAIL: share, NOT_ENTAIL: 1 - share})
    return replace(made, steps={"percentage": _PERCENTAGES[given.place]})


async def _alternatives(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    shown, answers = list(fields["hypotheses"]), list(ALTERNATIVES)
    if fields["swapped"]:
        shown, answers = shown[::-1], [SECOND, FIRST, EQUAL]
    texts = {
        "premise": fields["premise"],
        "hypothesis_1": shown[0],
        "hypothesis_2": shown[1],
        "country": _country(fields),
    }
    options = ("Hypothesis 1", "Hypothesis 2", "Same")
    given = await model.choose("cali_alternatives", texts, options)
    return _chosen(fields, given, answers)


async def _inference(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    texts = {
        "premise": fields["premise"],
        "hypothesis": fields["hypothesis"],
        "additional_information": fields["norm"],
    }
    given = await model.choose("cali_inference", texts, EFFECTS)
    return _chosen(fields, given, EFFECTS)


async def _knowledge(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    question = fields["question"].replace("{country}", _country(fields))
    given = await model.writes("cali_knowledge", {"question": question})
    return _nothing(given) if given.trouble else Answer("answered", given.usage, given.text)


async def _context(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    texts = {"premise": fields["premise"]}
    given = await model.lists("cali_context", texts)
    return _nothing(given) if given.trouble else Answer("answered", given.usage, [*given.entries])


_ASKED: dict[str, Callable[[Mapping[str, Any], MeasuredModel], Awaitable[Answer]]] = {
    "entailment": _entailment,
    "percentage": _percentage,
    "alternatives": _alternatives,
    "knowledge": _knowledge,
    "context": _context,
    "inference": _inference,
}


def _pair(fields: Mapping[str, Any]) -> dict[str, str]:
    return {
        "premise": fields["premise"],
        "hypothesis": fields["hypothesis"],
        "country": _country(fields),
    }


def _country(fields: Mapping[str, Any]) -> str:
    """The country's name; empty without a culture indicator."""
    return COUNTRIES[fields["country"]] if fields["country"] else ""


def _chosen(
    fields: Mapping[str, Any], given: Given, answers: list[str] | tuple[str, ...]
) -> Answer:
    if given.trouble or given.place is None:
        return _nothing(given)
    read = given.probabilities
    shares = dict(zip(answers, read, strict=True)) if read else None
    return _scored(fields, given, answers[given.place], shares)


def _scored(
    fields: Mapping[str, Any], given: Given, chosen: str, shares: Mapping[str, float] | None
) -> Answer:
    gold = fields["gold"]
    score = None if gold is None else float(chosen == gold)
    return Answer("answered", given.usage, chosen, score, shares)


def _nothing(given: Given) -> Answer:
    return Answer(given.trouble or "unreadable", given.usage, reason=given.detail)


benchmark = Benchmark(
    name="cali",
    title="Culturally aware inference: the United States and India",
    source="Huang & Yang, Culturally Aware Natural Language Inference, sections 5.1, 5.2 and D.2",
    conditions=CONDITIONS,
    usual=tuple(
        f"{task}{more}" for task in ("entailment", "alternatives") for more in ("", "+us", "+in")
    ),
    tasks=(
        "cali_entailment",
        "cali_percentage",
        "cali_alternatives",
        "cali_knowledge",
        "cali_context",
        "cali_inference",
    ),
    items=items,
    answer=answer,
    tables=tables,
    grade=grade,
)
