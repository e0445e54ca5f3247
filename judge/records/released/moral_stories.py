"""Moral Stories: a norm, and an action that follows or breaks it.

Released (Emelin et al. 2021, "Moral Stories: Situated Reasoning about Norms, Intents, Actions, and
their Consequences") as JSON lines in two forms: with `ID`, `norm`, both `moral_action` and
`immoral_action`; and in the splits for classification with one of the two and `label`, "1" for the
moral one, its `ID` ending in the label. Crowd workers wrote both actions to a norm, so the labels
hold by construction: nobody was asked about the finished text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from judge.records.base import Item
from judge.records.labelled import LabelledItem
from judge.records.released.common import (
    Form,
    LabelError,
    Labelled,
    Place,
    RecordNames,
    each_line,
    id_text,
    one_of,
    text_of,
)

_SEED = 20210121
_ACTIONS = {"moral_action": "1", "immoral_action": "0"}
_LABELS = {"1": "1", "0": "0"}


def read_moral_stories(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """Two items an action: `adherence` (yes or no), and after all of these `relevance`.

    `relevance` pairs each norm with its own action (yes), and for a random half of the items with
    the action of an item that has another norm (no). The pairs are the same at every reading of
    the same file. That another norm's action has nothing to do with this norm is chance, not
    anybody's judgement. Fields: `rule_of_thumb`, `story` (the action).
    """
    adherence: list[LabelledItem] = []
    with RecordNames() as names:
        for found in each_line(items, partial(_line, names)):
            if isinstance(found, LabelledItem):
                adherence.append(found)
            yield found
    yield from _relevance(adherence)


def is_moral_stories(fields: Mapping[str, Any]) -> bool:
    """Whether a line is of this set."""
    return {"ID", "norm"} <= fields.keys() and not fields.keys().isdisjoint(_ACTIONS)


def _line(names: RecordNames, item: Item, fields: dict[str, Any]) -> list[LabelledItem]:
    norm = text_of(fields, "norm")
    actions = [key for key in _ACTIONS if fields.get(key)]
    if not actions:
        raise LabelError("field 'moral_action' or 'immoral_action' is missing", "moral_action")
    own = id_text(fields.get("ID"), "ID")
    found: list[LabelledItem] = []
    for key in actions:
        label = _ACTIONS[key]
        # The splits for classification number a story's actions in the same way.
        id = f"{own}{label}" if own is not None and len(actions) > 1 else own
        if len(actions) == 1 and "label" in fields:
            given = one_of(fields["label"], _LABELS, "label")
            if given != label:
                message = f"field 'label' is {given}, but the line has a {key}"
                raise LabelError(message, "label")
        found.append(
            LabelledItem(
                names.name(item, id, "ID"),
                "adherence",
                {"rule_of_thumb": norm, "story": text_of(fields, key)},
                gold="yes" if label == "1" else "no",
                source=item.source,
                line=item.line,
            )
        )
    return found


def _relevance(items: Sequence[LabelledItem]) -> Iterator[LabelledItem]:
    chooser = random.Random(_SEED)
    strangers = _strangers(items, chooser.sample(range(len(items)), len(items) // 2), chooser)
    for number, item in enumerate(items):
        other = strangers.get(number)
        story = (item if other is None else items[other]).fields["story"]
        yield LabelledItem(
            item.record,
            "relevance",
            {**item.fields, "story": story},
            gold="yes" if other is None else "no",
            source=item.source,
            line=item.line,
        )


def _strangers(
    items: Sequence[LabelledItem], half: list[int], chooser: random.Random
) -> dict[int, int]:
    """For each item of `half` another one of it that has another norm; each is taken once.

    With the items of a norm side by side, a step as long as the longest such row leaves every row,
    and comes round into none. Empty where one norm has more than half of the items.
    """
    norms = Counter(str(items[number].fields["rule_of_thumb"]) for number in half)
    longest = max(norms.values(), default=0)
    if len(half) < 2 * longest:
        return {}
    order = list(norms)
    chooser.shuffle(order)
    rank = {norm: position for position, norm in enumerate(order)}
    row = sorted(half, key=lambda number: rank[str(items[number].fields["rule_of_thumb"])])
    return {own: row[(at + longest) % len(row)] for at, own in enumerate(row)}


FORM = Form(
    "moral-stories", read_moral_stories, is_moral_stories, checks=("adherence", "relevance")
)
