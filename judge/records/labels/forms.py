"""The forms in which others publish labels: a table of names, which `table.LabelTable` reads.

A comparison's answer is the name of the field that is better, or `tie`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judge.records.answers import scalar_text
from judge.records.base import RESERVED
from judge.records.fields import object_of


class RawLabel(NamedTuple):
    """One answer to one question, as it stands; who gave it, None for the reference answer."""

    annotator: object
    question: str
    answer: object


@dataclass(frozen=True, slots=True)
class Form:
    """How the lines of a published form name what a labelled item has.

    `needs` are the fields that tell it (`.x`: one that ends so). `item`, `label` and `annotator`
    are its columns, of an annotator the first that is filled; a line without those of the item has
    its `id`, or what is shown. `annotators` are columns that each hold the labels of one. `reader`
    reads the answers where they lie in lists or several columns. `answers` are the answers that the
    labels mean (NO_LABEL for none); those below, at and above `middle` where they are numbers.
    Answers count where the fields of `counts` have these contents. `fields` are those that a
    judge sees, by name; or all of the object `within`; or all but `omit`. `pair` are the better
    and the worse text.
    """

    name: str
    needs: tuple[str, ...]
    item: str = ""
    label: str = "label"
    annotator: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    reader: Callable[[Mapping[str, Any]], Iterator[RawLabel]] | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    middle: float | None = None
    counts: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, str] | None = None
    within: str = ""
    omit: str = "(?!)"
    pair: tuple[str, str] | None = None

    def knows(self, fields: Mapping[str, Any]) -> bool:
        """Whether a line's fields are of this form."""
        return all(
            any(key.endswith(need) for key in fields) if need.startswith(".") else need in fields
            for need in self.needs
        )


def _label_studio(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    for place, annotation in enumerate(_objects(fields["annotations"])):
        annotator = annotation.get("completed_by")
        if isinstance(annotator, dict):
            annotator = annotator.get("email") or annotator.get("id")
        annotator = _named(annotator, place)
        for result in [] if annotation.get("was_cancelled") else _objects(annotation.get("result")):
            values = object_of(result.get("value"), "value")
            kind = next((k for k in ("choices", "rating", "text", "number") if k in values), None)
            if kind is not None:
                gold = bool(annotation.get("ground_truth"))
                yield RawLabel(
                    None if gold else annotator, str(result.get("from_name")), values[kind]
                )


def _argilla(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    responses = fields["responses"]
    if isinstance(responses, dict):
        for question, several in responses.items():
            for place, response in enumerate(filter(_submitted, _objects(several))):
                annotator = _named(response.get("user_id"), place)
                yield RawLabel(annotator, question, response.get("value"))
        return
    for place, response in enumerate(filter(_submitted, _objects(responses))):
        annotator = _named(response.get("user_id"), place)
        for question, value in object_of(response.get("values") or {}, "values").items():
            content = value.get("value") if isinstance(value, dict) else value
            yield RawLabel(annotator, question, content)


def _argilla_columns(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    for key in fields:
        question, _, last = key.rpartition(".")
        values = fields[key] if last == "responses" else None
        for number, value in enumerate(values or []):
            users, states = (fields.get(f"{key}.{name}") or [] for name in ("users", "status"))
            annotator = _named(users[number] if number < len(users) else None, number)
            if number >= len(states) or _submitted({"status": states[number]}):
                yield RawLabel(annotator, question, value)


def _arena_columns(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    better = [side for side, column in _ONE_HOT.items() if scalar_text(fields.get(column)) == "1"]
    yield RawLabel(None, UNNAMED, better[0] if len(better) == 1 else NO_LABEL)


def _fastchat_pair(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    """Both orders must name one model; else it is a tie, as FastChat counts it."""
    first, second = fields["g1_winner"], fields["g2_winner"]
    answer = NO_LABEL if "error" in (first, second) else first if first == second else "tie"
    yield RawLabel(fields.get(RESERVED), UNNAMED, answer)


def _fastchat_single(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    score = fields["score"]
    yield RawLabel(fields.get(RESERVED), UNNAMED, NO_LABEL if score == -1 else score)


def _named(annotator: object, place: int) -> object:
    """Who gave the answer at this place among a record's (from 0), by it where no name is there:
    an answer is a person's all the same, and no reference."""
    return f"annotator-{place + 1}" if annotator in (None, "") else annotator


def _submitted(response: Mapping[str, Any]) -> bool:
    return response.get("status") not in ("discarded", "draft", "pending")


def _objects(content: object) -> list[dict[str, Any]]:
    return (
        [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    )


NO_LABEL = "null"
"""The answer of an annotator who gave none: left out, and counted."""

UNNAMED = "label"
"""The question of labels that name none."""

_ONE_HOT = {
    "response_a": "winner_model_a",
    "response_b": "winner_model_b",
    "tie": "winner_tie",
}
"""Chatbot Arena's columns in tables: 1 in that of the better side."""

_SIDES = {"a>b": "response_A", "a>>b": "response_A", "b>a": "response_B", "b>>a": "response_B"}
_WINNERS = {"model_a": "conversation_a", "model_b": "conversation_b"}
_WINNERS |= dict.fromkeys(("tie", "tie (bothbad)", "tie (inconsistent)", "both_bad"), "tie")

FORMS = (
    Form(
        "prodigy-choice",
        ("_task_hash", "accept", "answer"),
        item="_task_hash",
        label="accept",
        annotator=("_annotator_id", "_session_id"),
        counts={"answer": "accept"},
        fields={"text": "text", "html": "html"},
    ),
    Form(
        "prodigy",
        ("_task_hash", "answer"),
        item="_task_hash",
        label="answer",
        annotator=("_annotator_id", "_session_id"),
        answers={"accept": "yes", "reject": "no", "ignore": NO_LABEL},
        fields={"text": "text", "html": "html", "category": "label"},
    ),
    Form("label-studio", ("annotations", "data"), item="id", reader=_label_studio, within="data"),
    Form(
        "label-studio-min",
        ("annotation_id", "annotator", "lead_time"),
        item="id",
        label="",
        annotator=("annotator",),
        omit="annotation_id|annotator|lead_time|created_at|updated_at|id",
    ),
    Form("argilla", ("responses", "fields"), item="id", reader=_argilla, within="fields"),
    Form(
        "argilla-columns",
        (".responses",),
        item="id",
        reader=_argilla_columns,
        omit=r".*\.(responses|suggestion)(\..*)?|id|_server_id|status|external_id|metadata.*|vectors.*",
    ),
    Form(
        "alpaca-eval",
        ("instruction", "output_1", "output_2", "preference"),
        label="preference",
        annotator=("annotator_index", "annotator"),
        answers={"below": "output_1", "middle": "tie", "above": "output_2"},
        middle=1.5,
        fields={name: name for name in ("instruction", "input", "output_1", "output_2")},
    ),
    Form(
        "mt-bench",
        ("model_a", "model_b", "winner", "conversation_a", "conversation_b"),
        item="question_id+model_a+model_b+turn",
        label="winner",
        annotator=(RESERVED,),
        answers=_WINNERS,
        fields={name: name for name in ("conversation_a", "conversation_b")},
    ),
    Form(
        "arena-columns",
        ("winner_model_a", "winner_model_b", "response_a", "response_b"),
        item="id",
        reader=_arena_columns,
        fields={name: name for name in ("prompt", "response_a", "response_b")},
    ),
    Form(
        "fastchat-pair",
        ("question_id", "model_1", "model_2", "turn", "g1_winner", "g2_winner"),
        item="question_id+model_1+model_2+turn",
        reader=_fastchat_pair,
        fields={},
    ),
    Form(
        "fastchat-single",
        ("question_id", "model", "turn", "judgment", "score"),
        item="question_id+model+turn",
        reader=_fastchat_single,
        fields={"user_prompt": "user_prompt"},
    ),
    Form(
        "judgebench",
        ("pair_id", "response_A", "response_B", "label"),
        item="pair_id",
        answers=_SIDES | {"a=b": "tie"},
        fields={name: name for name in ("question", "response_A", "response_B")},
    ),
    Form(
        "pandalm",
        ("response1", "response2", "annotator1"),
        item="idx",
        annotators=("annotator1", "annotator2", "annotator3"),
        answers={"0": "tie", "1": "response1", "2": "response2"},
        fields={name: name for name in ("instruction", "input", "response1", "response2")},
    ),
    Form(
        "safe-rlhf",
        ("prompt", "response_0", "response_1", "better_response_id"),
        label="better_response_id",
        answers={"0": "response_0", "1": "response_1"},
        fields={name: name for name in ("prompt", "response_0", "response_1")},
    ),
    Form(
        "preference-pairs",
        ("chosen", "rejected"),
        pair=("chosen", "rejected"),
        fields={name: name for name in ("prompt", "question", "instruction", "system")},
    ),
)
"""The forms that others publish, the more special ones first."""
