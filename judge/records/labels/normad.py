"""NormAd-ETI: stories, rules of thumb, and whether the action is acceptable by the rule.

Released (Rao et al., "NormAd") as CSV: ID, Country, Background, Axis, Subaxis, Value,
Rule-of-Thumb, Story, Explanation, Gold Label (yes, no or neutral), or with fewer of these columns.
The gold labels come from how the stories were made (section 4.1); people checked a sample. Their
answers were not released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.base import Item, NormRecord, Problem
from judge.records.fields import LabelError
from judge.records.kinds import build
from judge.records.labels.items import LabelledItem, LabelSet
from judge.records.names import normalised
from judge.records.read import read

_CLUSTERS = "iw_clusters.csv"
_SHOWN = ("rule_of_thumb", "story", "country", "background", "value")
_SLICES = ("country", "cluster", "subcategory", "label")


class NormAd(LabelSet):
    """The items of each row, by its gold label.

    `label_correctness`: the label itself. `relevance`: yes, and no for neutral. `adherence`: the
    label, of yes and no rows. Slices: country, cluster (from `iw_clusters.csv` beside the file,
    where it is there), subcategory, label.
    """

    name = "normad"
    checks = ("label_correctness", "relevance", "adherence")

    def start(self) -> None:
        self._clusters = {
            _country(row["country"]): row["cluster"]
            for file in self.place.beside(_CLUSTERS)
            for item in read(file)
            if (row := item.fields) is not None and {"country", "cluster"} <= row.keys()
        }

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return {"country", "ruleofthumb", "story", "goldlabel"} <= normalised(fields)

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        record = build(item, "norm")
        if isinstance(record, Problem):
            raise LabelError(record.message, record.field, record.type)
        norm = record.data
        assert isinstance(norm, NormRecord), "built as one"
        if norm.label is None:
            key = record.names.get("label", "Gold Label")
            raise LabelError(f"field {key!r} must be yes, no or neutral, not empty", key)
        golds: dict[str, str] = {
            "label_correctness": norm.label,
            "relevance": "no" if norm.label == "neutral" else "yes",
        }
        if norm.label != "neutral":
            golds["adherence"] = norm.label
        shown = {name: text for name in _SHOWN if (text := getattr(norm, name))}
        known = norm.model_dump(include=set(_SLICES))
        known["cluster"] = norm.cluster or self._clusters.get(_country(norm.country or ""))
        slices = {name: known[name] for name in _SLICES if known[name]}
        name = self.record(item, norm.id, record.names.get("id", "id"))
        for check, gold in golds.items():
            yield LabelledItem(name, check, shown, gold=gold, slices=slices)


def _country(name: str) -> str:
    return name.strip().casefold().replace(" ", "_")
