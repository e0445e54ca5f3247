"""CALI: inference that differs between cultures, on pairs rated by people of two countries.

Huang & Yang, "Culturally Aware Natural Language Inference", sections 3.6 and 5.1. The released
`data.tsv` holds premise, hypothesis, us_ratings and in_ratings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any

from judge.evaluation.asking import MeasuredModel
from judge.evaluation.benchmark import Benchmark, Choices, Fields, Result, exact
from judge.evaluation.rows import Row, asked, each_row
from judge.evaluation.tables import Cell, Sample, Table, class_scores, results_table
from judge.records import RESERVED, Item
from judge.records.fields import ENTAILMENT, LabelError, listed, one_of, text_of
from judge.stats.intervals import Estimate
from judge.stats.votes import Threshold, majority

GROUPS = ("us", "in")
"""The two groups that rated; ratings and culture indicators go by these names."""

LABEL_SETS = ("all", *GROUPS)
"""The sets of labels of table 2: both groups' ratings together, and each group's own."""

STRONG = Threshold(Fraction(3, 4))
"""Section 3.6: pairs are kept where in one group at least this share gave the same label."""

ENTAIL, NOT_ENTAIL = "entail", "not entail"
"""Section 5.1: a binary classification that treats only entailment as positive."""

FIRST, SECOND, EQUAL = "hypothesis 1", "hypothesis 2", "same"
"""Answers of the choice of plausible alternatives, numbered as the hypotheses are in the file."""

CLASSES = {"entailment": (ENTAIL, NOT_ENTAIL), "alternatives": (FIRST, SECOND, EQUAL)}
CONDITIONS = tuple(f"{task}{more}" for task in CLASSES for more in ("", "+us", "+in"))

_COUNTRIES = {"us": "the United States", "in": "India"}
_RANK = {"contradiction": 0, "neutral": 1, "entailment": 2}
_SCALE = {"1": "contradiction", "2": "neutral", "3": "neutral", "4": "neutral", "5": "entailment"}

# ------------------------------------------------------------ pairs


@dataclass(frozen=True)
class Pair:
    """One line; `ratings` are labels by group."""

    row: Row
    premise: str
    hypothesis: str
    ratings: Mapping[str, Sequence[str]]

    @cached_property
    def labels(self) -> dict[str, str | None]:
        """The majority label of each of LABEL_SETS, None where the ratings diverge (3.6)."""
        pooled = [label for group in GROUPS for label in self.ratings[group]]
        return {"all": majority(pooled), **{g: majority(self.ratings[g]) for g in GROUPS}}

    @property
    def kept(self) -> bool:
        """Whether the paper keeps the pair: one group at least agrees strongly (3.6)."""
        return any(majority(self.ratings[group], STRONG) is not None for group in GROUPS)


def label_of(rating: object, column: str) -> str:
    """A rating as a label: E, N, C or their words, or 1 to 5.

    On the scale 1 is contradiction, 3 neutral, 5 entailment (3.6). What 2 and 4 stand for depends
    on the annotator, whom the released lists do not name: they are neutral, as for most.

    Raises:
        LabelError: none of these.
    """
    text = str(rating).strip()
    if not isinstance(rating, bool) and text in _SCALE:
        return _SCALE[text]
    return one_of(rating, ENTAILMENT, column)


def _pair(row: Row) -> Pair:
    folded = {key.strip().casefold(): content for key, content in row.fields.items()}
    ratings = {}
    for group in GROUPS:
        column = f"{group}_ratings"
        if column not in folded:
            raise LabelError(f"field {column!r} is missing", column)
        ratings[group] = [label_of(one, column) for one in listed(folded[column], column)]
    if not any(ratings.values()):
        raise LabelError("fields 'us_ratings' and 'in_ratings' are both empty", "us_ratings")
    return Pair(row, text_of(folded, "premise"), text_of(folded, "hypothesis"), ratings)


# ------------------------------------------------------------ items


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """One item a question: a pair's own in `entailment`, in `alternatives` of every two pairs.

    An item's `row` is its premise, because items about one premise are drawn together; `country`
    whose culture is indicated, or None; `kept` whether the paper keeps the pair; `gold` the one of
    `gold_all`, `gold_us`, `gold_in` (None where raters diverge) that the indicator names.

    Raises:
        UsageError: a source that cannot be read.
    """
    earlier: dict[str, list[Pair]] = defaultdict(list)
    for pair in each_row(sources, lambda row: [_pair(row)]):
        if isinstance(pair, Item):
            yield pair
            continue
        others = earlier[pair.premise]
        premise = (others or [pair])[0].row.id
        own = {key: text for key, text in pair.row.fields.items() if key != RESERVED}
        for condition in choices.conditions:
            task, _, country = condition.partition("+")
            found = {pair.row.id: _entailment(pair)}
            if task == "alternatives":
                found = {
                    f"{other.row.id}+{pair.row.id}": _alternatives(other, pair, choices.seed)
                    for other in others
                    if other.hypothesis != pair.hypothesis
                }
            about = {"pair": pair.row.id, "country": country or None, "premise": pair.premise}
            for key, fields in found.items():
                gold = fields[f"gold_{country or 'all'}"]
                whole = {**own, **about, **fields, "gold": gold}
                yield asked(pair.row.item, condition, whole, row=premise, key=key)
        others.append(pair)


def _entailment(pair: Pair) -> dict[str, Any]:
    golds = {
        f"gold_{name}": label and (ENTAIL if label == "entailment" else NOT_ENTAIL)
        for name, label in pair.labels.items()
    }
    return {"hypothesis": pair.hypothesis, **golds, "kept": pair.kept}


def _alternatives(one: Pair, other: Pair, seed: int) -> dict[str, Any]:
    """Two hypotheses of a premise, the order in which they are shown drawn by the seed."""
    golds: dict[str, str | None] = {}
    for name in LABEL_SETS:
        label, beside = one.labels[name], other.labels[name]
        gold = None
        if label is not None and beside is not None:
            above = _RANK[label] - _RANK[beside]
            gold = EQUAL if above == 0 else FIRST if above > 0 else SECOND
        golds[f"gold_{name}"] = gold
    return {
        "hypotheses": [one.hypothesis, other.hypothesis],
        "swapped": Random(f"{seed}/{one.row.id}+{other.row.id}").random() < 0.5,
        **golds,
        "kept": one.kept and other.kept,
    }


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """Ask the question of an item's condition; a culture indicator names the item's country."""
    country = _COUNTRIES[fields["country"]] if fields["country"] else ""
    texts = {"premise": fields["premise"], "country": country}
    if fields["condition"].startswith("entailment"):
        texts["hypothesis"] = fields["hypothesis"]
        return await model.choose("cali_entailment", texts, ("Yes", "No"), (ENTAIL, NOT_ENTAIL))
    shown, answers = list(fields["hypotheses"]), [FIRST, SECOND, EQUAL]
    if fields["swapped"]:
        shown, answers = shown[::-1], [SECOND, FIRST, EQUAL]
    texts |= {"hypothesis_1": shown[0], "hypothesis_2": shown[1]}
    options = ("Hypothesis 1", "Hypothesis 2", "Same")
    return await model.choose("cali_alternatives", texts, options, answers)


def score(fields: Fields, answer: Any) -> float | None:
    """1 for the gold label, 0 for another; None where raters diverge.

    Raises:
        ValueError: what is no answer in the item's condition.
    """
    classes = CLASSES[fields["condition"].partition("+")[0]]
    if answer not in classes:
        raise ValueError(f"{answer!r} is none of {', '.join(classes)}")
    return exact(fields, answer)


# ------------------------------------------------------------ tables

_HEADS = {"all": "All", "us": "US", "in": "IN"}
_MEASURES = {"entailment": "F1", "alternatives": "accuracy"}
_MEASURED = (
    "Entailment: macro F1 of entail and not entail. Alternatives: accuracy. Labels are majorities "
    "over all ratings, those of the US, those of India."
)
_PAPERS_PAIRS = (
    "Of pairs on which one group at least agrees by 75 %, and both have a majority (3.6). All: "
    "those of them where both groups' ratings together have one."
)


def tables(results: Sequence[Result]) -> list[Table]:
    """Table 2, on the paper's pairs."""
    title = "Entailment and plausible alternatives against three sets of labels (CALI, table 2)"
    by = {"condition": ("condition", CONDITIONS)}
    return [results_table("cali-labels", title, results, by, _cells, (_MEASURED, _PAPERS_PAIRS))]


def _cells(here: Sequence[Result]) -> dict[str, Cell]:
    sample, measure = Sample(here), _MEASURES[here[0].condition.partition("+")[0]]
    cells: dict[str, Cell] = {**sample.counts(), "premises": sample.rows(), "measure": measure}
    return cells | {head: _measured(here, labels, measure) for labels, head in _HEADS.items()}


def _gold(result: Result, labels: str) -> str | None:
    """The gold of these labels; None for what section 3.6 leaves out, and without a majority."""
    golds: dict[str, str | None] = {name: result.fields[f"gold_{name}"] for name in LABEL_SETS}
    if not result.fields["kept"] or any(golds[group] is None for group in GROUPS):
        return None
    return golds[labels]


def _measured(results: Sequence[Result], labels: str, measure: str) -> Cell:
    """The task's measure over the results that have a gold of these labels, out of all."""
    held = [
        replace(result, fields={**result.fields, "gold": gold}, score=float(result.answer == gold))
        for result in results
        if (gold := _gold(result, labels)) is not None
    ]
    cell = class_scores(held)[measure]
    return replace(cell, of=len(results)) if isinstance(cell, Estimate) else None


benchmark = Benchmark(
    name="cali",
    title="Culturally aware inference: the United States and India",
    source="Huang & Yang, Culturally Aware Natural Language Inference, sections 3.6 and 5.1",
    conditions=CONDITIONS,
    tasks=("cali_entailment", "cali_alternatives"),
    items=items,
    ask=ask,
    score=score,
    tables=tables,
)
