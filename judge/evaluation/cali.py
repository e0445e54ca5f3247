"""CALI: inference that differs between cultures, and three tasks that tell why a model misses it.

Huang & Yang, "Culturally Aware Natural Language Inference", sections 5.1, 5.2 and D.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import (
    Benchmark,
    Choices,
    Fields,
    Grader,
    MeasuredModel,
    Result,
    exact,
)
from judge.evaluation.cali_rows import (
    CONDITIONS,
    ENTAIL,
    ENTAILED,
    EQUAL,
    FIRST,
    GROUPS,
    LABEL_SETS,
    NOT_ENTAIL,
    SECOND,
    Pair,
    classes_of,
    compared,
    pair_of,
)
from judge.evaluation.cali_tables import GRADED, tables
from judge.evaluation.rows import asked, each_row, read_sources
from judge.records import Item

COUNTRIES = {"us": "the United States", "in": "India"}

_PERCENTAGES = tuple(range(0, 101, 10))
_NEEDS = {
    "entailment": "premise, hypothesis and ratings",
    "percentage": "premise, hypothesis and ratings",
    "alternatives": "a premise, hypothesis and ratings, with another hypothesis to the premise",
    "knowledge": "question and norms",
    "context": "premise and norms",
    "inference": "premise, hypothesis, norms and ratings",
}

# ------------------------------------------------------------ items


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """One item a question. A line is asked in every condition that it has the fields for.

    Beside the line's own fields each item has `row`, the name of its premise (of its question in
    the knowledge task), because items about one premise are drawn together; `pair`, the line's own
    name; `country`, whose culture is indicated or asked about, or None; `kept`, whether the paper
    keeps the pair; and `gold_all`, `gold_us`, `gold_in` (None where raters diverge), of which
    `gold` is the one that the indicator names, else `gold_all`.

    Raises:
        UsageError: a source that cannot be read, or no line can be asked in one of the conditions.
    """
    lines = list(each_row(read_sources(sources), lambda row: [pair_of(row)]))
    pairs = [line for line in lines if isinstance(line, Pair)]
    first: dict[str, str] = {}
    norms: dict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        if pair.premise is not None:
            first.setdefault(pair.premise, pair.id)
            norms[pair.premise].update(dict.fromkeys(pair.norms.values()))
    earlier: dict[str, list[Pair]] = defaultdict(list)
    made: list[Item] = []
    for line in lines:
        if isinstance(line, Item):
            made.append(line)
            continue
        premise = line.premise or ""
        row = first.get(premise, line.id)
        for condition in choices.conditions:
            task, _, indicated = condition.partition("+")
            if task == "alternatives":
                found = _alternatives(earlier[premise], line, indicated, choices.seed)
            elif task == "context":
                # A premise is asked about once, with the norms of all its lines.
                held = list(norms[premise]) if row == line.id and premise else []
                context = {"premise": premise, "country": None, "gold": held}
                found = iter([(line.id, context)] if held else [])
            else:
                found = _questions(task, line, indicated)
            for key, fields in found:
                whole = {**line.own, "pair": line.id, **fields}
                made.append(asked(line.item, condition, whole, row=row, key=key))
        if line.ratings is not None:
            earlier[premise].append(line)
    there = {item.fields["condition"] for item in made if item.fields is not None}
    missing = [name for name in choices.conditions if name not in there]
    if pairs and missing:
        needs = _NEEDS[missing[0].partition("+")[0]]
        told = f"no line can be asked in {missing[0]!r}, which takes {needs}"
        raise UsageError(f"{told}: name other conditions")
    return iter(made)


def _questions(task: str, pair: Pair, indicated: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keys and fields of the questions that one line makes by itself."""
    texts = {"premise": pair.premise, "hypothesis": pair.hypothesis}
    if task == "knowledge" and pair.question is not None:
        for group, norm in pair.norms.items():
            question = {"question": pair.question, "country": group, "gold": norm}
            yield f"{pair.id}/{group}", question
    elif task == "inference" and pair.hypothesis is not None:
        for group in GROUPS:
            if group in pair.norms:
                told = {"norm": pair.norms[group], "country": group, "gold": pair.effect(group)}
                yield f"{pair.id}/{group}", {**texts, **told}
    elif task in ("entailment", "percentage") and pair.ratings is not None:
        golds = {
            name: label and (ENTAIL if label == ENTAILED else NOT_ENTAIL)
            for name, label in pair.labels.items()
        }
        yield pair.id, {**texts, **_golds(golds, indicated), "kept": pair.kept}


def _alternatives(
    earlier: Sequence[Pair], pair: Pair, indicated: str, seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The line's hypothesis beside each earlier one of its premise, the order drawn by the seed."""
    for other in earlier if pair.ratings is not None else ():
        if other.hypothesis == pair.hypothesis:
            continue
        key = f"{other.id}+{pair.id}"
        golds: dict[str, str | None] = {}
        for labels in LABEL_SETS:
            order = compared(other.labels[labels], pair.labels[labels])
            golds[labels] = None if order is None else (EQUAL, FIRST, SECOND)[order]
        yield (
            key,
            {
                "premise": pair.premise,
                "hypotheses": [other.hypothesis, pair.hypothesis],
                "swapped": Random(f"{seed}/{key}").random() < 0.5,
                **_golds(golds, indicated),
                "kept": other.kept and pair.kept,
            },
        )


def _golds(golds: Mapping[str, str | None], indicated: str) -> dict[str, Any]:
    return {
        "country": indicated or None,
        **{f"gold_{name}": gold for name, gold in golds.items()},
        "gold": golds[indicated or "all"],
    }


# ------------------------------------------------------------ asking


async def ask(fields: Fields, model: MeasuredModel) -> str | list[str]:
    """Ask the question of an item's condition; a culture indicator names the item's country."""
    task = fields["condition"].partition("+")[0]
    country = COUNTRIES[fields["country"]] if fields["country"] else ""
    texts = {name: fields[name] for name in ("premise", "hypothesis") if name in fields}
    texts["country"] = country
    if task == "entailment":
        classes = (ENTAIL, NOT_ENTAIL)
        return await model.choose("cali_entailment", texts, ("Yes", "No"), classes)
    if task == "percentage":
        return await _percentage(texts, model)
    if task == "alternatives":
        shown, answers = list(fields["hypotheses"]), [FIRST, SECOND, EQUAL]
        if fields["swapped"]:
            shown, answers = shown[::-1], [SECOND, FIRST, EQUAL]
        texts |= {"hypothesis_1": shown[0], "hypothesis_2": shown[1]}
        options = ("Hypothesis 1", "Hypothesis 2", "Same")
        return await model.choose("cali_alternatives", texts, options, answers)
    if task == "inference":
        told = {**texts, "country": "", "additional_information": fields["norm"]}
        return await model.choose("cali_inference", told, classes_of(task))
    if task == "knowledge":
        question = fields["question"].replace("{country}", country)
        return await model.write("cali_knowledge", {"question": question})
    return await model.list_texts("cali_context", {"premise": fields["premise"]})


async def _percentage(texts: Mapping[str, str], model: MeasuredModel) -> str:
    """The mean of the percentages by their probabilities, where they were read; else the one given.

    Exactly 50 % is no entailment: the paper sets no threshold, and entailment is what is claimed.
    """
    options = [f"{number} %" for number in _PERCENTAGES]
    given = _PERCENTAGES[options.index(await model.choose("cali_percentage", texts, options))]
    model.steps["percentage"] = given
    share = given / 100
    if model.probabilities:
        weighed = zip(_PERCENTAGES, model.probabilities.values(), strict=True)
        share = sum(number / 100 * weight for number, weight in weighed)
    model.probabilities = {ENTAIL: share, NOT_ENTAIL: 1 - share}
    return ENTAIL if share > 0.5 else NOT_ENTAIL


def score(fields: Fields, answer: Any) -> float | None:
    """1 for the gold label, 0 for another; None where raters diverge, and for what judges grade.

    Raises:
        ValueError: what is no answer in the item's condition.
    """
    if fields["condition"] in GRADED:
        return None
    classes = classes_of(fields["condition"].partition("+")[0])
    if answer not in classes:
        raise ValueError(f"{answer!r} is none of {', '.join(classes)}")
    return exact(fields, answer)


async def grade(result: Result, grader: Grader) -> Result:
    """Score a knowledge or context answer by the norms it holds; other answers as they are.

    Knowledge is right where the norm is matched; of the context task's norms the score is the
    share that the answer covers (D.2). A norm credited in part is neither matched nor covered. The
    score is None where the judges settled some norm's credit neither way.
    """
    if result.condition not in GRADED:
        return result
    golds, given = (
        found if isinstance(found, list) else [found]
        for found in (result.fields["gold"], result.answer)
    )
    graded = await grader.extraction(result.id, given, golds)
    settled = None not in graded.credits
    return replace(
        result,
        score=sum(credit == 1 for credit in graded.credits) / len(golds) if settled else None,
        usage=result.usage + graded.usage,
        steps={**result.steps, "credits": list(graded.credits), "reasons": list(graded.reasons)},
    )


benchmark = Benchmark(
    name="cali",
    title="Culturally aware inference: the United States and India",
    source="Huang & Yang, Culturally Aware Natural Language Inference, sections 5.1, 5.2 and D.2",
    conditions=CONDITIONS,
    usual=tuple(name for name in CONDITIONS if name.startswith(("entailment", "alternatives"))),
    tasks=tuple(f"cali_{task}" for task in _NEEDS),
    items=items,
    ask=ask,
    score=score,
    tables=tables,
    grade=grade,
)
