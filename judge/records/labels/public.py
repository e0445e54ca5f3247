"""Public label sets, in the forms in which their authors released them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from judge.records.base import Item, Problem
from judge.records.fields import (
    ENTAILMENT,
    LabelError,
    answer_of,
    id_text,
    listed,
    one_of,
    slices_of,
    text_of,
)
from judge.records.jsonfiles import kind_of
from judge.records.kinds import NormRecord, build, normalised
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.read import read

_ENTAILMENT_ORDER = ("entailment", "neutral", "contradiction")
_BINARY = {"0": "no", "1": "yes"}
_SEED = 20210121


class Ambient(LabelSet):
    """AmbiEnt: entailment pairs that may be ambiguous.

    Liu et al., "We're Afraid Language Models Aren't Modeling Ambiguity". One `entailment` item a
    pair, with what all three files say of it; problems come first:

    - `linguist_annotations.jsonl` (worker_ids, annotations): group `linguist`; an annotation may be
      several labels joined by a bar, or `discard`.
    - `crowdworker_annotations.jsonl` (q0_gold): nine unnamed workers' labels of the pair as it
      stands, `crowd-1` and on by position, group `crowd`.
    - `test.jsonl` (labels): gold where it is a single label; always in the slice `labels`.

    Whoever labelled a pair twice comes as `NAME` and `NAME (2)`, and so does a second group of
    nine. An id under which another pair stands becomes `ID@SOURCE`. Holds all pairs in memory.
    """

    name = "ambient"
    checks = ("entailment",)
    files = ("test.jsonl*", "linguist_annotations.jsonl*", "crowdworker_annotations.jsonl*")
    merged = True

    def start(self) -> None:
        self._texts: dict[str, dict[str, str]] = {}
        self._times: Counter[tuple[str, str]] = Counter()

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        marks = {"q0_gold", "worker_ids", "premise_ambiguous"}
        return {"premise", "hypothesis"} <= fields.keys() and not marks.isdisjoint(fields)

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        texts = {key: text_of(fields, key) for key in ("premise", "hypothesis")}
        labels: str | None = None
        given: list[tuple[str, str]] = []
        group = "linguist" if "worker_ids" in fields else "crowd"
        if group == "linguist":
            answers = listed(fields.get("annotations"), "annotations")
            workers = listed(fields["worker_ids"], "worker_ids")
            if len(workers) != len(answers):
                counts = f"{len(answers)} answers of {len(workers)} workers"
                raise LabelError(f"field 'annotations' has {counts}", "annotations")
            for number, (worker, answer) in enumerate(zip(workers, answers, strict=True), 1):
                name = id_text(worker, "worker_ids") or f"linguist-{number}"
                given.append((name, _joined(answer, "|", "annotations")))
        elif "q0_gold" in fields:
            for number, answer in enumerate(listed(fields["q0_gold"], "q0_gold"), 1):
                if answer is not None:
                    given.append((f"crowd-{number}", one_of(answer, ENTAILMENT, "q0_gold")))
        elif "labels" in fields:
            labels = _joined(fields["labels"], ",", "labels")
        else:
            raise LabelError("there is no field 'q0_gold', 'annotations' or 'labels'", "labels")
        record = id_text(fields.get("id"), "id") or f"{item.source}#{item.line}"
        if self._texts.setdefault(record, texts) != texts:
            record = f"{record}@{item.source}"
        yield LabelledItem(
            record,
            "entailment",
            texts,
            gold=labels if labels in _ENTAILMENT_ORDER else None,
            annotations=tuple(
                Annotation(self._named(record, name), answer, group) for name, answer in given
            ),
            slices={} if labels is None else {"labels": labels},
        )

    def _named(self, record: str, annotator: str) -> str:
        self._times[record, annotator] += 1
        times = self._times[record, annotator]
        return annotator if times == 1 else f"{annotator} ({times})"


def _joined(content: object, mark: str, key: str) -> str:
    """Labels joined by `mark`, now joined by bars and in one order."""
    answer = answer_of(content, key)
    if answer is None:
        raise LabelError(f"field {key!r} holds null for a label", key)
    if answer == "discard":
        return answer
    found = {one_of(part, ENTAILMENT, key) for part in answer.split(mark)}
    return "|".join(label for label in _ENTAILMENT_ORDER if label in found)


class Cali(LabelSet):
    """CALI: entailment pairs, each rated by people of two countries.

    Huang & Yang, "Culturally Aware Natural Language Inference": `data.tsv` with premise,
    hypothesis, us_ratings, in_ratings; the ratings are lists of E, N and C as Python writes them.
    One `entailment` item a row, without gold. The workers are not named: `us-1` is the first of a
    pair's list, of the group `us`, and need not be the same person in the next pair.
    """

    name = "cali"
    checks = ("entailment",)

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        columns = {key.strip().casefold() for key in fields}
        return {"premise", "hypothesis", "us_ratings", "in_ratings"} <= columns

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        row = {key.strip().casefold(): content for key, content in fields.items()}
        texts = {key: text_of(row, key) for key in ("premise", "hypothesis")}
        annotations: list[Annotation] = []
        for group in ("us", "in"):
            column = f"{group}_ratings"
            for number, rating in enumerate(listed(row.get(column), column), 1):
                answer = one_of(rating, ENTAILMENT, column)
                annotations.append(Annotation(f"{group}-{number}", answer, group))
        if not annotations:
            raise LabelError("fields 'us_ratings' and 'in_ratings' are both empty", "us_ratings")
        record = self.record(item, row.get("id"))
        yield LabelledItem(record, "entailment", texts, annotations=tuple(annotations))


class MultiPico(LabelSet):
    """MultiPICo: is the `reply` to the `post` ironic?

    Casola et al., "MultiPICo: Multilingual Perspectivist Irony Corpus", in the JSON of the shared
    task on learning with disagreements (Le-Wi-Di 2025): an object of id to entry, each with `text`
    (post, reply), `annotations` (an object of annotator to 0 or 1) and `other_info`. One `irony`
    item an entry (yes or no), without gold. Slices: language_variety, source. The annotators'
    groups are their nationalities, from `annotators_meta_LANG.json` beside the file. A problem
    names the entry.
    """

    name = "multipico"
    checks = ("irony",)
    files = ("MP_*.json*", "*MultiPICo*.json*")
    groups = "annotators_meta*.json*"

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        entries = [entry for entry in fields.values() if isinstance(entry, dict)]
        texts = [entry["text"] for entry in entries if "annotations" in entry and "text" in entry]
        return any(isinstance(text, dict) and {"post", "reply"} <= text.keys() for text in texts)

    def parts(self, fields: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        return [
            (id, {**entry, "id": id} if isinstance(entry, dict) else {"entry": entry})
            for id, entry in fields.items()
        ]

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        texts, given, info = (fields.get(key) for key in ("text", "annotations", "other_info"))
        for key, content in (("text", texts), ("annotations", given)):
            if not isinstance(content, dict):
                raise LabelError(f"field {key!r} must be an object, not {kind_of(content)}", key)
        assert isinstance(texts, dict) and isinstance(given, dict), "seen above"
        annotations = tuple(
            Annotation(name, one_of(answer, _BINARY, "annotations"))
            for name, answer in given.items()
            if answer is not None
        )
        if not annotations:
            raise LabelError("field 'annotations' holds no answer", "annotations")
        facts = info if isinstance(info, dict) else {}
        yield LabelledItem(
            self.record(item, fields.get("id")),
            "irony",
            {key: text_of(texts, key) for key in ("post", "reply")},
            annotations=annotations,
            slices=slices_of({key: facts.get(key) for key in ("language_variety", "source")}),
        )


class LLMBar(LabelSet):
    """LLMBar: which of two outputs follows the instruction better.

    Zeng et al., "Evaluating Large Language Models at Evaluating Instruction Following": JSON lists
    of {input, output_1, output_2, label}, one file a part (`LLMBar_Natural.json`, or `dataset.json`
    in a folder named for the part). One `preference` item a pair, gold `1` or `2`. Fields:
    `instruction`, `output_1`, `output_2`. Slice: `part`.
    """

    name = "llmbar"
    checks = ("preference",)
    files = ("LLMBar_*.json*", "Natural/dataset.json*", "Adversarial/*/dataset.json*")

    def start(self) -> None:
        stem = self.path.name.partition(".")[0] if self.path else ""
        named = self.path.absolute().parent.name if self.path and stem == "dataset" else stem
        self._part = named.rpartition("_")[2]

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return fields.keys() >= {"input", "output_1", "output_2", "label"}

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        shown = {"instruction": text_of(fields, "input")}
        shown |= {key: text_of(fields, key) for key in ("output_1", "output_2")}
        yield LabelledItem(
            self.record(item, fields.get("id"), source=self._part),
            "preference",
            shown,
            gold=one_of(fields.get("label"), {"1": "1", "2": "2"}, "label"),
            slices={"part": self._part} if self._part else {},
        )


class MoralStories(LabelSet):
    """Moral Stories: a norm, and an action that follows or breaks it.

    Emelin et al. 2021: JSON lines with `ID`, `norm`, `moral_action` and `immoral_action`, or one of
    the two (the splits for classification). The actions were written to the norm, so the labels
    hold by construction. Two items an action: `adherence` (yes or no), and after all of these
    `relevance`, each norm with its own action (yes) or, for a random half of the items, with
    another norm's (no), the same each time the file is read. That another norm's action has nothing
    to do with this norm is chance, not a person's judgement. Fields: `rule_of_thumb`, `story`.
    """

    name = "moral-stories"
    checks = ("adherence", "relevance")
    _ACTIONS = ("moral_action", "immoral_action")

    def start(self) -> None:
        self._found: list[LabelledItem] = []

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return {"ID", "norm"} <= fields.keys() and not fields.keys().isdisjoint(
            MoralStories._ACTIONS
        )

    def items(self, item: Item, fields: dict[str, Any]) -> list[LabelledItem]:
        norm = text_of(fields, "norm")
        actions = [key for key in self._ACTIONS if fields.get(key)]
        if not actions:
            raise LabelError("field 'moral_action' or 'immoral_action' is missing", "moral_action")
        own = id_text(fields.get("ID"), "ID")
        found: list[LabelledItem] = []
        for key in actions:
            moral = key == "moral_action"
            # The splits for classification number a story's actions in the same way.
            id = f"{own}{moral:d}" if own is not None and len(actions) > 1 else own
            shown = {"rule_of_thumb": norm, "story": text_of(fields, key)}
            record = self.record(item, id, "ID")
            gold = "yes" if moral else "no"
            found.append(
                LabelledItem(record, "adherence", shown, 0, gold, (), {}, item.source, item.line)
            )
        self._found += found
        return found

    def rest(self) -> Iterator[LabelledItem]:
        chooser = random.Random(_SEED)
        half = chooser.sample(range(len(self._found)), len(self._found) // 2)
        others = dict(zip(half, half[1:] + half[:1], strict=True))
        for number, item in enumerate(self._found):
            other = self._found[others.get(number, number)].fields
            norm = item.fields["rule_of_thumb"]
            own = other["rule_of_thumb"] == norm
            story = item.fields["story"] if own else other["story"]
            fields = {"rule_of_thumb": norm, "story": story}
            yield replace(item, check="relevance", fields=fields, gold="yes" if own else "no")


class NormAd(LabelSet):
    """NormAd-ETI: stories, rules of thumb, and whether the action is acceptable by the rule.

    Rao et al., "NormAd": CSV with ID, Country, Background, Axis, Subaxis, Value, Rule-of-Thumb,
    Story, Explanation, Gold Label (yes, no or neutral), or fewer of these columns. The gold labels
    come from how the stories were made (section 4.1). Items of each row: `label_correctness` (the
    label itself), `relevance` (yes, and no for neutral), `adherence` (of yes and no rows). Slices:
    country, cluster (from `iw_clusters.csv` beside the file), subcategory, label.
    """

    name = "normad"
    checks = ("label_correctness", "relevance", "adherence")

    def start(self) -> None:
        found = [*self.path.parent.glob("iw_clusters.csv")] if self.path else []
        rows = [item.fields or {} for file in found for item in read(file)]
        self._clusters = {_country(row.get("country")): row.get("cluster") for row in rows}

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
        golds = {"label_correctness": str(norm.label)}
        golds["relevance"] = "no" if norm.label == "neutral" else "yes"
        if norm.label != "neutral":
            golds["adherence"] = norm.label
        known = norm.model_dump()
        known["cluster"] = norm.cluster or self._clusters.get(_country(norm.country))
        shown = ("rule_of_thumb", "story", "country", "background", "value")
        slices = ("country", "cluster", "subcategory", "label")
        name = self.record(item, norm.id, record.names.get("id", "id"))
        for check, gold in golds.items():
            yield LabelledItem(
                name,
                check,
                {key: known[key] for key in shown if known[key]},
                gold=gold,
                slices={key: known[key] for key in slices if known[key]},
            )


def _country(name: str | None) -> str:
    return (name or "").strip().casefold().replace(" ", "_")
