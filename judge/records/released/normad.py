"""NormAd-ETI: stories, rules of thumb, and whether the deed is acceptable by the rule.

Released (Rao et al., "NormAd") as CSV: ID, Country, Background, Axis, Subaxis, Value,
Rule-of-Thumb, Story, Explanation, Gold Label (yes, no or neutral), or with fewer of these columns.
The gold labels come from how the stories were made (section 4.1); people checked a sample.

The workers' answers to the five sub-tasks of section 4.3 are taken from columns `SUBTASK_WORKER`
with an answer, or `SUBTASK` with a list of answers (workers 1 and on) or an object of worker to
answer, in JSON or Python's notation. Case, spaces, hyphens and underscores of SUBTASK do not
matter; it is one of

    derivation, rot_background, rot_cultural_atlas, subtask1, q1
    abstraction, value_rot, subtask2, q2
    value_derivation, value_background, value_cultural_atlas, subtask3, q3
    relevance, story_rot, situation_rot, subtask4, q4
    label_correctness, label_situation_rot, subtask5, q5
    acceptability, human_label: the worker's own label, as in section 4.4

Answers are yes, no, unsure (acceptability: yes, no, neutral, unsure), or an empty cell for none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from judge.records.base import Item, NormRecord, Problem, Record
from judge.records.kinds import build
from judge.records.labelled import Annotation, LabelledItem
from judge.records.names import normalise, normalised, typed_name
from judge.records.read import read
from judge.records.released.common import (
    Form,
    LabelError,
    Labelled,
    Place,
    RecordNames,
    each_line,
    literal,
    one_of,
)

_CLUSTERS = "iw_clusters.csv"
_SUBTASKS: dict[str, tuple[str, ...]] = {
    "derivation": ("derivation", "rotbackground", "rotculturalatlas", "subtask1", "q1"),
    "abstraction": ("abstraction", "valuerot", "subtask2", "q2"),
    "value_derivation": (
        "valuederivation",
        "valuebackground",
        "valueculturalatlas",
        "subtask3",
        "q3",
    ),
    "relevance": ("relevance", "storyrot", "situationrot", "subtask4", "q4"),
    "label_correctness": ("labelcorrectness", "labelsituationrot", "subtask5", "q5"),
    "acceptability": ("acceptability", "humanlabel"),
}
_BY_ALIAS = {alias: name for name, aliases in _SUBTASKS.items() for alias in aliases}
_SHOWN = ("rule_of_thumb", "story", "country", "background", "value")
_SLICES = ("country", "cluster", "subcategory", "label")
_YES_NO = {"yes": "yes", "y": "yes", "no": "no", "n": "no", "unsure": "unsure"}
_LABELS = {**_YES_NO, "neutral": "neutral"}

_Answers = dict[str, tuple[Annotation, ...]]


def read_normad(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """The items of each row: what its gold label says, and what workers answered.

    `label_correctness`: gold is the label; a worker who was asked whether it is right and said yes
    answered the label, one who said no `not yes`, `not no` or `not neutral`. `relevance`: gold is
    yes, and no for neutral. `adherence`: the label, of yes and no rows. `derivation`,
    `abstraction` and `value_derivation`: the workers' answers, without gold. Slices: country,
    cluster (from `iw_clusters.csv` beside the file, where it is there), subcategory, label.
    """
    clusters = _clusters(place)
    with RecordNames() as names:
        yield from each_line(items, partial(_row, names, clusters))


def is_normad(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of this set."""
    return {"country", "ruleofthumb", "story", "goldlabel"} <= normalised(fields)


def _clusters(place: Place) -> dict[str, str]:
    return {
        _country(row["country"]): row["cluster"]
        for file in place.beside(_CLUSTERS)
        for item in read(file)
        if (row := item.fields) is not None and {"country", "cluster"} <= row.keys()
    }


def _country(name: str) -> str:
    return name.strip().casefold().replace(" ", "_")


def _row(
    names: RecordNames, clusters: Mapping[str, str], item: Item, row: dict[str, Any]
) -> list[LabelledItem]:
    record = build(item, "norm")
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field, record.type)
    norm = cast("NormRecord", record.data)
    label = norm.label
    if label is None:
        key = record.names.get("label", "Gold Label")
        raise LabelError(f"field {key!r} must be yes, no or neutral, not empty", key)
    golds: dict[str, str | None] = {
        "label_correctness": label,
        "relevance": "no" if label == "neutral" else "yes",
    }
    if label != "neutral":
        golds["adherence"] = label
    given = _given(row, label)
    golds |= {check: None for check in given if check not in golds}
    fields = _shown(record)
    slices = _slices(norm, clusters)
    name = names.name(item, norm.id, record.names.get("id", "id"))
    return [
        LabelledItem(
            name,
            check,
            fields,
            gold=gold,
            annotations=given.get(check, ()),
            slices=slices,
            source=item.source,
            line=item.line,
        )
        for check, gold in golds.items()
    ]


def _shown(record: Record) -> dict[str, str]:
    texts = {name: getattr(record.data, name) for name in _SHOWN}
    return {name: text for name, text in texts.items() if text}


def _slices(norm: NormRecord, clusters: Mapping[str, str]) -> dict[str, str]:
    found = {name: getattr(norm, name) for name in _SLICES}
    if not found["cluster"] and norm.country:
        found["cluster"] = clusters.get(_country(norm.country))
    return {name: text for name, text in found.items() if text}


def _given(row: Mapping[str, Any], label: str) -> _Answers:
    """The workers' answers, by the check that their sub-task is."""
    given: _Answers = {}
    for key, cell in row.items():
        subtask, worker = _subtask(key)
        if subtask is None or cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        check = "label_correctness" if subtask == "acceptability" else subtask
        answers = tuple(
            Annotation(name, _answer(subtask, label, answer, key))
            for name, answer in _by_worker(cell, worker, key)
        )
        given[check] = given.get(check, ()) + answers
    for check, answers in given.items():
        workers = Counter(answer.annotator for answer in answers)
        twice = next((name for name, count in workers.items() if count > 1), None)
        if twice is not None:
            raise LabelError(f"worker {twice!r} answered {check} twice", check)
    return given


def _subtask(column: str) -> tuple[str | None, str]:
    """The sub-task that a column is about, and its worker, empty where it holds several's."""
    if typed_name("norm", column) is not None:
        return None, ""
    whole = _BY_ALIAS.get(normalise(column))
    if whole is not None:
        return whole, ""
    stem, _, worker = column.rpartition("_")
    return (_BY_ALIAS.get(normalise(stem)), worker) if worker else (None, "")


def _by_worker(cell: object, worker: str, column: str) -> list[tuple[str, object]]:
    if worker:
        return [(worker, cell)]
    content = literal(cell) if isinstance(cell, str) else cell
    if isinstance(content, dict):
        pairs = [(str(name), answer) for name, answer in content.items()]
    elif isinstance(content, list):
        pairs = [(str(number), answer) for number, answer in enumerate(content, 1)]
    else:
        raise LabelError(f"field {column!r} must hold a list of the workers' answers", column)
    return [(name, answer) for name, answer in pairs if answer is not None]


def _answer(subtask: str, label: str, content: object, column: str) -> str:
    if subtask == "acceptability":
        return one_of(content, _LABELS, column)
    answer = one_of(content, _YES_NO, column)
    if subtask != "label_correctness":
        return answer
    return {"yes": label, "no": f"not {label}"}.get(answer, answer)


FORM = Form(
    "normad",
    read_normad,
    is_normad,
    checks=(
        "label_correctness",
        "relevance",
        "adherence",
        "derivation",
        "abstraction",
        "value_derivation",
    ),
)
