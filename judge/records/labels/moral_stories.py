"""Moral Stories: a norm, and an action that follows or breaks it.

Released (Emelin et al. 2021, "Moral Stories: Situated Reasoning about Norms, Intents, Actions, and
their Consequences") as JSON lines in two forms: with `ID`, `norm`, both `moral_action` and
`immoral_action`; and in the splits for classification with one of the two and `label`, "1" for the
moral one, its `ID` ending in the label. Crowd workers wrote both actions to a norm, so the labels
hold by construction: no one was asked about the finished text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judge.records.base import Item
from judge.records.fields import LabelError, id_text, one_of, text_of
from judge.records.labels.items import LabelledItem, LabelSet

_SEED = 20210121
_ACTIONS = {"moral_action": "1", "immoral_action": "0"}
_LABELS = {"1": "1", "0": "0"}


class MoralStories(LabelSet):
    """Two items an action: `adherence` (yes or no), and after all of these `relevance`.

    `relevance` pairs each norm with its own action (yes), and for a random half of the items with
    the action of an item that has another norm (no). The pairs are the same each time the file is
    read. That another norm's action has nothing to do with this norm is chance, not a person's
    judgement. Fields: `rule_of_thumb`, `story` (the action).
    """

    name = "moral-stories"
    checks = ("adherence", "relevance")

    def start(self) -> None:
        self._actions: list[LabelledItem] = []

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return {"ID", "norm"} <= fields.keys() and not fields.keys().isdisjoint(_ACTIONS)

    def items(self, item: Item, fields: dict[str, Any]) -> list[LabelledItem]:
        norm = text_of(fields, "norm")
        actions = [key for key in _ACTIONS if fields.get(key)]
        if not actions:
            raise LabelError("field 'moral_action' or 'immoral_action' is missing", "moral_action")
        if len(actions) == 1 and "label" in fields:
            given = one_of(fields["label"], _LABELS, "label")
            if given != _ACTIONS[actions[0]]:
                message = f"field 'label' is {given}, but the line has a {actions[0]}"
                raise LabelError(message, "label")
        own = id_text(fields.get("ID"), "ID")
        found: list[LabelledItem] = []
        for key in actions:
            # The splits for classification number a story's actions in the same way.
            id = f"{own}{_ACTIONS[key]}" if own is not None and len(actions) > 1 else own
            shown = {"rule_of_thumb": norm, "story": text_of(fields, key)}
            gold = "yes" if key == "moral_action" else "no"
            record = self.record(item, id, "ID")
            found.append(LabelledItem(record, "adherence", shown, gold=gold))
        self._actions += [replace(one, source=item.source, line=item.line) for one in found]
        return found

    def rest(self) -> Iterator[LabelledItem]:
        items = self._actions
        chooser = random.Random(_SEED)
        half = chooser.sample(range(len(items)), len(items) // 2)
        others = _other_norms(items, half, chooser)
        for number, item in enumerate(items):
            other = others.get(number)
            story = items[number if other is None else other].fields["story"]
            gold = "yes" if other is None else "no"
            yield replace(
                item, check="relevance", fields={**item.fields, "story": story}, gold=gold
            )


def _other_norms(
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
