"""CALI: inference that differs between cultures, on pairs rated by people of two countries.

Huang & Yang, "Culturally Aware Natural Language Inference", sections 3.6 and 5.1. The released
`data.tsv` holds premise, hypothesis, us_ratings and in_ratings; two groups or more of other names
are read from a file with a column `GROUP_ratings` for each, or with `annotators`, each with group
and labels, as `judge agreement -o` writes them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice
from random import Random
from types import MappingProxyType
from typing import Any

from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import PAPER, Benchmark, Choices, label_of
from judge.papers.countries import country_name
from judge.papers.rows import LOOK, asked, each_row
from judge.papers.tables import ResultSample, results_table
from judge.papers.tasks import Fields, MeasuredAnswer
from judge.records import Record, read, renamed
from judge.records.answers import OWN_ANSWERS
from judge.records.base import own_fields
from judge.records.fields import (
    ENTAILMENT,
    LabelError,
    answer_of,
    listed,
    object_of,
    one_of,
    text_of,
)
from judge.report.table import Cell, Table, TableRow
from judge.stats.majority import MORE_THAN_HALF, MajorityRule, majority

Groups = tuple[str, ...]
"""The groups of raters, which are countries."""

HYPOTHESES = ("hypothesis_1", "hypothesis_2", "hypothesis_3")
"""The fields of a generated premise that hold its hypotheses (section 3.4)."""

GROUPS: Groups = ("us", "in")
RATINGS = "_ratings"

STRONG = MajorityRule(Fraction(3, 4))
"""Section 3.6: a pair is kept if in some group at least this share gave the same label."""

ENTAIL, NOT_ENTAIL = "entail", "not entail"
"""Section 5.1: a binary classification that treats only entailment as positive."""

FIRST, SECOND, EQUAL = "hypothesis 1", "hypothesis 2", "same"
"""Answers of the choice of plausible alternatives, numbered as the hypotheses are in the file."""

CLASSES = {"entailment": (ENTAIL, NOT_ENTAIL), "alternatives": (FIRST, SECOND, EQUAL)}
_BETWEEN = re.compile(r"[\s-]+")
_COUNTRIES = {"us": "the United States", "uk": "the United Kingdom", "in": "India"}
_RANK = {"contradiction": 0, "neutral": 1, "entailment": 2}
_SCALE = {"1": "contradiction", "2": "neutral", "3": "neutral", "4": "neutral", "5": "entailment"}
_POOLED = "all"


@dataclass(frozen=True)
class SentencePair:
    """The pair of one line; `ratings` are labels by group."""

    row: Record
    premise: str
    hypothesis: str
    ratings: Mapping[str, Sequence[str]]

    @cached_property
    def labels(self) -> dict[str, str | None]:
        """The majority label of `all` and of each group, None where the ratings diverge (3.6)."""
        pooled = [label for labels in self.ratings.values() for label in labels]
        return {
            name: _label(ratings) for name, ratings in ((_POOLED, pooled), *self.ratings.items())
        }

    @property
    def kept(self) -> bool:
        """Whether the paper keeps the pair: one group at least agrees strongly (3.6)."""
        return any(_label(labels, STRONG) is not None for labels in self.ratings.values())


def _label(ratings: Sequence[str], rule: MajorityRule = MORE_THAN_HALF) -> str | None:
    """The label that the rule finds; None if there is none, or if people opted out."""
    label = majority(ratings, rule)
    return label if label in _RANK else None


def entailment_of(rating: object, column: str) -> str:
    """A rating as a label: E, N, C or their words, or 1 to 5; an answer that decides nothing
    (`unsure`) unchanged. LabelError for all else.

    On the scale 1 is contradiction, 3 neutral, 5 entailment (3.6). The meaning of 2 and 4 depends
    on the annotator, whom the released lists do not name: they are neutral, as for most.
    """
    answer = answer_of(rating, column)
    return answer if answer in OWN_ANSWERS else one_of(rating, {**ENTAILMENT, **_SCALE}, column)


def groups_of(sources: Sequence[str], columns: Mapping[str, str] = MappingProxyType({})) -> Groups:
    """The groups whose ratings the first records have; the paper's groups if there are fewer than
    two, or if the records come from standard input."""
    if sources[0] == "-":
        return GROUPS
    rows = (item.fields for item in renamed(read(sources[0]), columns) if item.problem is None)
    names: dict[str, None] = {}
    for fields in islice(rows, LOOK):
        with suppress(LabelError):
            names |= dict.fromkeys(ratings_in(fields))
    groups = tuple(names)
    return groups if len(groups) > 1 else GROUPS


def ratings_in(fields: Mapping[str, Any]) -> dict[str, object]:
    """A record's ratings by group: from its columns `GROUP_ratings`, else from its annotators.

    Raises LabelError for a group called `all`, which the groups are together.
    """
    folded = {key.strip().casefold(): content for key, content in fields.items()}
    columns = {key.removesuffix(RATINGS): folded[key] for key in folded if key.endswith(RATINGS)}
    people = folded.get("annotators")
    groups: dict[str, list[object]] = {}
    for about in people.values() if isinstance(people, dict) and not columns else ():
        about = about if isinstance(about, dict) else {}
        group, labels = about.get("group"), object_of(about.get("labels") or {}, "labels")
        if group is not None and labels:
            answer = labels.get("entailment", next(iter(labels.values())))
            groups.setdefault(_BETWEEN.sub("_", str(group).strip().casefold()), []).append(answer)
    if _POOLED in (columns or groups):
        name = _POOLED + RATINGS if columns else "annotators"
        message = f"field {name!r} has a group called all, which the groups are together: rename it"
        raise LabelError(message, name)
    return columns or {**groups}


def pair_of(row: Record, groups: Groups) -> SentencePair:
    """The pair of a row. Raises LabelError for a row without one, or with another group."""
    folded = {key.strip().casefold(): content for key, content in row.visible.items()}
    by_group = ratings_in(row.visible)
    voted = not any(key.endswith(RATINGS) for key in folded) and "annotators" in folded
    if other := [group for group in by_group if group not in groups]:
        message = f"ratings of {other[0]} would not count: the groups are {', '.join(groups)}"
        raise LabelError(f"{message} (of a pipe always these: name a file)", other[0] + RATINGS)
    ratings = {}
    for group in groups:
        column = group + RATINGS
        if group not in by_group and not voted:
            raise LabelError(f"field {column!r} is missing", column)
        ratings[group] = [
            entailment_of(rating, column) for rating in listed(by_group.get(group, []), column)
        ]
    if not any(ratings.values()):
        names = ", ".join(repr(group + RATINGS) for group in groups)
        raise LabelError(f"fields {names} are all empty", groups[0] + RATINGS)
    return SentencePair(row, text_of(folded, "premise"), text_of(folded, "hypothesis"), ratings)


def conditions_of(groups: Groups) -> tuple[str, ...]:
    """Each task without and with the culture indicator of each group."""
    return tuple(
        f"{task}{suffix}" for task in CLASSES for suffix in ("", *(f"+{g}" for g in groups))
    )


_OF_ITEMS = frozenset({"labels", "gold", "golds", "kept", "swapped", "hypotheses"})
"""Fields of an item that a column of the source of that name must not replace."""


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """One item for each question: about each pair in `entailment`, about every two pairs of a
    premise in `alternatives`.

    An item's `row` is its premise, because items about one premise are resampled together;
    `country` is the one whose culture is indicated, or None; `golds` are by `all` and by group,
    None where raters diverge, and `gold` is the one that the indicator names; `kept` says whether
    the paper keeps the pair. `labels` are a pair's majority labels.
    """
    groups = groups_of(sources, choices.columns)
    earlier: dict[str, list[SentencePair]] = defaultdict(list)
    for pair in each_row(sources, lambda row: [pair_of(row, groups)], columns=choices.columns):
        if isinstance(pair, Record):
            yield pair
            continue
        pairs = earlier[pair.premise]
        premise = (pairs or [pair])[0].row.id
        fields = own_fields(pair.row.visible).items()
        columns = {name: content for name, content in fields if name not in _OF_ITEMS}
        for condition in choices.conditions:
            task, _, country = condition.partition("+")
            questions = {pair.row.id: _entailment(pair)}
            if task == "alternatives":
                questions = {
                    f"{partner.row.id}+{pair.row.id}": _alternatives(partner, pair, choices.seed)
                    for partner in pairs
                    if partner.hypothesis != pair.hypothesis
                }
            about = {"pair": pair.row.id, "country": country or None, "premise": pair.premise}
            for key, texts in questions.items():
                whole = {**columns, **about, **texts, "gold": texts["golds"][country or _POOLED]}
                yield asked(pair.row, condition, whole, row=premise, key=key)
        pairs.append(pair)


def _entailment(pair: SentencePair) -> dict[str, Any]:
    golds = {
        name: label and (ENTAIL if label == "entailment" else NOT_ENTAIL)
        for name, label in pair.labels.items()
    }
    labels = {"golds": golds, "labels": pair.labels, "kept": pair.kept}
    return {"hypothesis": pair.hypothesis, **labels}


def _alternatives(first: SentencePair, second: SentencePair, seed: int) -> dict[str, Any]:
    """Two hypotheses of a premise; the seed draws the order in which they are shown."""
    golds: dict[str, str | None] = {}
    for name, label in first.labels.items():
        beside = second.labels[name]
        golds[name] = None
        if label is not None and beside is not None:
            above = _RANK[label] - _RANK[beside]
            golds[name] = EQUAL if above == 0 else FIRST if above > 0 else SECOND
    return {
        "hypotheses": [first.hypothesis, second.hypothesis],
        "swapped": Random(f"{seed}/{first.row.id}+{second.row.id}").random() < 0.5,
        "golds": golds,
        "kept": first.kept and second.kept,
    }


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """Ask the question of an item's condition; a culture indicator names the item's country."""
    group = fields["country"]
    country = _COUNTRIES.get(group) or country_name(group) if group else ""
    texts = {"premise": fields["premise"], "country": country}
    if fields["condition"].startswith("entailment"):
        texts["hypothesis"] = fields["hypothesis"]
        if model.setting == PAPER:
            share = await model.percent("cali_percent", texts)
            model.probabilities = {ENTAIL: share, NOT_ENTAIL: 1 - share}
            return ENTAIL if share >= 0.5 else NOT_ENTAIL
        return await model.choose("cali_entailment", texts, ("Yes", "No"), (ENTAIL, NOT_ENTAIL))
    hypotheses, answers = list(fields["hypotheses"]), [FIRST, SECOND, EQUAL]
    if fields["swapped"]:
        hypotheses, answers = hypotheses[::-1], [SECOND, FIRST, EQUAL]
    texts |= {"hypothesis_1": hypotheses[0], "hypothesis_2": hypotheses[1]}
    options = ("Hypothesis 1", "Hypothesis 2", "Same")
    return await model.choose("cali_alternatives", texts, options, answers)


def _read(fields: Fields, answer: Any) -> str:
    return label_of(answer, CLASSES[fields["condition"].partition("+")[0]])


_MEASURES = {"entailment": "F1", "alternatives": "accuracy"}
_MEASURED = (
    "Entailment: macro F1 of entail and not entail. Alternatives: accuracy. Labels are majorities "
    "over all ratings, and over those of each group."
)
_PAPERS_PAIRS = (
    "Of pairs on which one group at least agrees by 75%, and all have a majority (3.6). All: "
    "those of them where the groups' ratings together have one."
)


def tables(results: Sequence[MeasuredAnswer]) -> list[Table]:
    """Table 2, on the paper's pairs, and the matrix of the groups' labels (figure 3)."""
    title = "Entailment and plausible alternatives against three sets of labels (CALI, table 2)"
    by = {"condition": ("condition", conditions_of(_groups(results[0])))}
    notes = (_MEASURED, _PAPERS_PAIRS)
    matrices = [_matrix(results, *pair) for pair in combinations(_groups(results[0]), 2)]
    return [results_table("cali-labels", title, results, by, _cells, notes), *matrices]


def _groups(result: MeasuredAnswer) -> Groups:
    return tuple(name for name in result.fields["golds"] if name != _POOLED)


def _matrix(results: Sequence[MeasuredAnswer], first: str, second: str) -> Table:
    """The number of pairs by label in one group and in the other (section 3.6: the figure is of the
    unfiltered annotations, and leaves out pairs on which a group diverges)."""
    pairs = [result.fields for result in results if "labels" in result.fields]
    labels = {fields["pair"]: fields["labels"] for fields in pairs}
    counts = Counter((by_group[first], by_group[second]) for by_group in labels.values())
    rows = [
        TableRow((name,), {f"{_head(second)}: {label}": counts[name, label] for label in _RANK})
        for name in _RANK
    ]
    both = sum(count for pair, count in counts.items() if None not in pair)
    apart = both - sum(counts[name, name] for name in _RANK)
    note = (
        f"All pairs on which both groups have a majority, {both} of {len(labels)}, before the "
        f"75% filter, as in the paper; the groups differ on {apart}"
    )
    note += f" ({apart / both:.1%})." if both else "."
    title = f"Labels of {_head(first)} (rows) and {_head(second)} (columns), pairs (CALI, figure 3)"
    name = "cali-matrix"
    if len(_groups(results[0])) > 2:
        name = f"{name}-{first}-{second}".replace("_", "-")
    return Table(name, title, (_head(first),), rows if both else (), (note,))


def _head(group: str) -> str:
    """`US` for `us`, `South Korea` for `south_korea`."""
    return group.upper() if len(group) <= 3 and group != _POOLED else country_name(group)


def _cells(here: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
    sample, measure = ResultSample(here), _MEASURES[here[0].condition.partition("+")[0]]
    cells: dict[str, Cell] = {**sample.counts(), "premises": sample.rows(), "measure": measure}
    for labels in (_POOLED, *_groups(here[0])):
        cells[_head(labels)] = _measured(here, labels, measure)
    return cells


def _measured(results: Sequence[MeasuredAnswer], labels: str, measure: str) -> Cell:
    """The task's measure over the paper's pairs (3.6) that have a majority of these labels."""
    held = [
        replace(result, fields={**result.fields, "gold": gold}, score=float(result.answer == gold))
        for result in results
        if result.fields["kept"] and None not in map(result.fields["golds"].get, _groups(result))
        if (gold := result.fields["golds"][labels]) is not None
    ]
    sample = ResultSample(held)
    found = sample.macro()["F1"] if measure == "F1" else sample.accuracy()
    return replace(found, of=len(results))


benchmark = Benchmark(
    name="cali",
    title="Culturally aware inference: the United States and India, or other groups",
    source="Huang & Yang, Culturally Aware Natural Language Inference, sections 3.6 and 5.1",
    conditions=conditions_of(GROUPS),
    tasks=("cali_entailment", "cali_alternatives", "cali_percent"),
    settings={
        PAPER: "entailment as a percentage that the model writes, entail from 50 (5.1)",
    },
    items=items,
    ask=ask,
    read=_read,
    tables=tables,
    conditions_of=lambda sources, columns: conditions_of(groups_of(sources, columns)),
)
