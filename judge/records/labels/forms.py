"""The forms in which others publish labels, as data for their reader, `table.LabelTable`.

A comparison's answer is the name of the better field, or `tie`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judge.records.answers import scalar_text
from judge.records.base import RESERVED
from judge.records.fields import object_of


class RawLabel(NamedTuple):
    """One answer to one question, unconverted; `annotator` is None for the reference answer."""

    annotator: object
    question: str
    answer: object


@dataclass(frozen=True, slots=True)
class Form:
    """How a published form names the parts of a labelled item.

    Attributes:
        needs: the fields by which the form is recognised (`.x`: any field that ends in `.x`).
        item: the columns of the item's name, joined by `+`; a line without them is named by its
            `id`, else by a hash of what is shown.
        label: the column of the label.
        annotator: the columns of the annotator's name; the first that is not empty counts.
        annotators: columns that each hold one annotator's labels.
        reader: reads the answers if they are in lists or in several columns.
        answers: the answer that each label means (NO_LABEL for none). With `middle`, labels are
            numbers, and the keys are `below`, `middle` and `above`.
        middle: the number that means a tie; 0 counts as it.
        counts: a line's answer counts only if these fields have these contents.
        fields: the fields that a judge sees, with their paths in the line; without it all fields
            of the object `within`, else all but those that match `omit`.
        pair: the fields of the better and the worse text.
        sides: pairs of fields about two sides, those of the sides' names first. Both orders of two
            sides are one question, so they change places where the second name sorts first, as
            FastChat counts them.
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
    sides: tuple[tuple[str, str], ...] = ()

    def knows(self, fields: Mapping[str, Any]) -> bool:
        """Whether a line has this form."""
        return all(
            any(key.endswith(need) for key in fields) if need.startswith(".") else need in fields
            for need in self.needs
        )

    def columns(self, fields: Mapping[str, Any]) -> dict[str, str]:
        """The columns of a line by their roles: of several the first that is not empty."""
        roles = {
            "item": (self.item,),
            "label": (self.label,),
            "annotator": self.annotator,
            "annotators": self.annotators,
        }
        filled = {
            role: [name for name in names if fields.get(name) not in (None, "")]
            for role, names in roles.items()
        }
        return {role: names[0] for role, names in filled.items() if names}

    def in_order(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A line with its sides in the order of their names, and its answers to suit."""
        names = self.sides[0] if self.sides else ()
        first, second = (str(fields.get(name)) for name in names or ("", ""))
        if first <= second:
            return dict(fields)
        other = {side: pair[1 - place] for pair in self.sides for place, side in enumerate(pair)}
        return {
            key: fields.get(other[key]) if key in other else other[part] if part in names else part
            for key, part in fields.items()
        }


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
    """The model that wins in both orders, else a tie, as FastChat counts it."""
    first, second = fields["g1_winner"], fields["g2_winner"]
    answer = NO_LABEL if "error" in (first, second) else first if first == second else "tie"
    yield RawLabel(fields.get(RESERVED), UNNAMED, answer)


def _fastchat_single(fields: Mapping[str, Any]) -> Iterator[RawLabel]:
    score = fields["score"]
    yield RawLabel(fields.get(RESERVED), UNNAMED, NO_LABEL if score == -1 else score)


def _named(annotator: object, place: int) -> object:
    """The annotator's name, else one made of the answer's place among the record's (from 0):
    without a name it would count as the reference answer."""
    return f"annotator-{place + 1}" if annotator in (None, "") else annotator


def _submitted(response: Mapping[str, Any]) -> bool:
    return response.get("status") not in ("discarded", "draft", "pending")


def _objects(content: object) -> list[dict[str, Any]]:
    return (
        [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    )


NO_LABEL = "null"
"""The answer of an annotator who gave no label; it is counted, and left out."""

UNNAMED = "label"
"""The check of labels without the name of one."""

_ONE_HOT = {
    "response_a": "winner_model_a",
    "response_b": "winner_model_b",
    "tie": "winner_tie",
}
"""Chatbot Arena's columns in tables, by answer: the column of the better side has a 1."""

_SIDES = {"a>b": "response_A", "a>>b": "response_A", "b>a": "response_B", "b>>a": "response_B"}
_WINNERS = {"model_a": "conversation_a", "model_b": "conversation_b"}
_WINNERS |= dict.fromkeys(("tie", "tie (bothbad)", "tie (inconsistent)", "both_bad"), "tie")
_MODELS = {"model_1": "conversation_a", "model_2": "conversation_b"}
_MODELS |= {"tie": "tie", NO_LABEL: NO_LABEL}

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
        sides=(("model_a", "model_b"), ("conversation_a", "conversation_b")),
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
        answers=_MODELS,
        fields={},
        sides=(("model_1", "model_2"),),
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
"""The forms that others publish, the most specific first."""
