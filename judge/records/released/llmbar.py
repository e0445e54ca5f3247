"""LLMBar: which of two outputs follows the instruction better.

Released (Zeng et al., "Evaluating Large Language Models at Evaluating Instruction Following") as
JSON lists of {input, output_1, output_2, label}, label 1 or 2 as the authors agreed. One file a
part: `LLMBar_Natural.json`, `LLMBar_Adversarial_GPTInst.json` and so on, or `dataset.json` in a
folder named for the part (`Natural`, `Adversarial/GPTInst`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from judge.records.base import Item
from judge.records.labelled import LabelledItem
from judge.records.released.common import (
    Form,
    Labelled,
    Place,
    RecordNames,
    each_line,
    one_of,
    text_of,
)

_KEYS = {"input", "output_1", "output_2", "label"}
_LABELS = {"1": "1", "2": "2"}
_DATASET = "dataset"


def read_llmbar(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One `preference` item a pair of outputs, gold `1` or `2`.

    Fields: `instruction`, `output_1`, `output_2`. Slice: `part`, as the file or its folder says.
    """
    part, source = _part(place.path)
    with RecordNames() as names:
        yield from each_line(items, partial(_pair, names, part, source))


def is_llmbar(fields: Mapping[str, Any]) -> bool:
    """Whether an object is of this set."""
    return fields.keys() >= _KEYS


def _part(path: Path | None) -> tuple[str, str]:
    """The part, and the name under which its records are told from those of other parts."""
    if path is None:
        return "", ""
    stem = path.name.partition(".")[0]
    if stem.casefold() == _DATASET:
        return path.absolute().parent.name, f"{path.absolute().parent.name}/{path.name}"
    return stem.rpartition("_")[2], path.name


def _pair(
    names: RecordNames, part: str, source: str, item: Item, fields: dict[str, Any]
) -> list[LabelledItem]:
    shown = {
        "instruction": text_of(fields, "input"),
        "output_1": text_of(fields, "output_1"),
        "output_2": text_of(fields, "output_2"),
    }
    return [
        LabelledItem(
            names.name(item, fields.get("id"), source=source),
            "preference",
            shown,
            gold=one_of(fields.get("label"), _LABELS, "label"),
            slices={"part": part} if part else {},
            source=item.source,
            line=item.line,
        )
    ]


FORM = Form(
    "llmbar",
    read_llmbar,
    is_llmbar,
    checks=("preference",),
    files=("LLMBar_*.json*", "Natural/dataset.json*", "Adversarial/*/dataset.json*"),
)
