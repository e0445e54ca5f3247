"""LLMBar: which of two outputs follows the instruction better.

Released (Zeng et al., "Evaluating Large Language Models at Evaluating Instruction Following") as
JSON lists of {input, output_1, output_2, label}, label 1 or 2 as the authors agreed. One file a
part: `LLMBar_Natural.json`, `LLMBar_Adversarial_GPTInst.json` and so on, or `dataset.json` in a
folder named for the part (`Natural`, `Adversarial/GPTInst`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.base import Item
from judge.records.fields import one_of, text_of
from judge.records.labels.items import LabelledItem, LabelSet

_LABELS = {"1": "1", "2": "2"}


class LLMBar(LabelSet):
    """One `preference` item a pair of outputs, gold `1` or `2`.

    Fields: `instruction`, `output_1`, `output_2`. Slice: `part`, as the file or its folder says.
    """

    name = "llmbar"
    checks = ("preference",)
    files = ("LLMBar_*.json*", "Natural/dataset.json*", "Adversarial/*/dataset.json*")

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return fields.keys() >= {"input", "output_1", "output_2", "label"}

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        part, source = self._part()
        shown = {
            "instruction": text_of(fields, "input"),
            "output_1": text_of(fields, "output_1"),
            "output_2": text_of(fields, "output_2"),
        }
        yield LabelledItem(
            self.record(item, fields.get("id"), source=source),
            "preference",
            shown,
            gold=one_of(fields.get("label"), _LABELS, "label"),
            slices={"part": part} if part else {},
        )

    def _part(self) -> tuple[str, str]:
        """The part, and a file name that tells its records from those of other parts."""
        path = self.place.path
        if path is None:
            return "", ""
        stem = path.name.partition(".")[0]
        if stem.casefold() == "dataset":
            folder = path.absolute().parent.name
            return folder, f"{folder}/{path.name}"
        return stem.rpartition("_")[2], path.name
