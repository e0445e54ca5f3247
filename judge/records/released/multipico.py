"""MultiPICo: is the reply to a post ironic?

Released (Casola et al., "MultiPICo: Multilingual Perspectivist Irony Corpus"; here in the form of
Le-Wi-Di 2025, data set MP) as JSON in the form that `judge.records.released.lewidi` describes,
with the texts `post` and `reply` and answers 0 and 1. `annotators_meta_LANG.json` beside it holds
each annotator's nationality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judge.records.base import Item
from judge.records.released.common import Form, Labelled, Place, slices_of, text_of
from judge.records.released.lewidi import Shape, entries, read_entries

_SLICES = ("language_variety", "source")


def read_multipico(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One `irony` item an entry (yes or no), without gold; problems come first.

    Fields: `post`, `reply`. Slices: language_variety, source. The annotators' group is their
    nationality, where their file is there. Holds all entries in memory.
    """
    return read_entries(items, Shape(_described, "irony", binary=True))


def is_multipico(fields: Mapping[str, Any]) -> bool:
    """Whether an object is an entry of this set, or holds entries."""
    return any(
        isinstance(entry, dict)
        and isinstance(entry.get("text"), dict)
        and {"post", "reply"} <= entry["text"].keys()
        and "annotations" in entry
        for entry in entries(fields)
    )


def _described(
    entry: Mapping[str, Any], texts: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    info = entry.get("other_info")
    facts = info if isinstance(info, dict) else {}
    shown = {key: text_of(texts, key) for key in ("post", "reply")}
    return shown, slices_of({key: facts.get(key) for key in _SLICES})


FORM = Form(
    "multipico",
    read_multipico,
    is_multipico,
    checks=("irony",),
    files=("MP_*.json*", "*MultiPICo*.json*"),
    groups="annotators_meta*.json*",
)
