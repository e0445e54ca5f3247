"""Public label sets, in the forms in which their authors released them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from judge.errors import UsageError
from judge.papers.cali import RATINGS, entailment_of, ratings_in
from judge.records.answers import scalar_text
from judge.records.base import LabelError
from judge.records.fields import (
    ENTAILMENT,
    answer_of,
    id_text,
    listed,
    object_of,
    one_of,
    slices_of,
    text_of,
)
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.record import Record

_ENTAILMENT_ORDER = ("entailment", "neutral", "contradiction")
_BINARY = {"0": "no", "1": "yes"}
_FACTS = ("language_variety", "source")
_NORM_SLICES: tuple[str, ...] = ("country", "subcategory", "label")
_NORM_FIELDS = ("rule_of_thumb", "story", "country", "background", "value")
_SEED = 20210121


class Ambient(LabelSet):
    """AmbiEnt: entailment pairs that may be ambiguous.

    Liu et al., "We're Afraid Language Models Aren't Modeling Ambiguity". One `entailment` item for
    each pair, merged from three files: the linguists' annotations, one or several labels joined by
    a bar, or `discard`; the labels of unnamed crowd workers, `crowd-1` and on by position; gold, if
    `test.jsonl` has a single label, and the slice `labels`. The second annotation of a pair by one
    annotator is by `NAME (2)`. An id that another pair has becomes `ID@SOURCE`.
    """

    name = "ambient"
    files = ("test.jsonl*", "linguist_annotations.jsonl*", "crowdworker_annotations.jsonl*")
    merged = True

    def start(self) -> None:
        self._texts: dict[str, dict[str, str]] = {}
        self._times: Counter[tuple[str, str]] = Counter()

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        texts = {key: text_of(fields, key) for key in ("premise", "hypothesis")}
        labels: str | None = None
        answers: list[Annotation] = []
        if "worker_ids" in fields:
            workers = enumerate(listed(fields["worker_ids"], "worker_ids"), 1)
            names = [id_text(worker, "worker_ids") or f"linguist-{n}" for n, worker in workers]
            entries = listed(fields.get("annotations"), "annotations")
            if len(names) != len(entries):
                counts = f"{len(entries)} answers of {len(names)} workers"
                raise LabelError(f"field 'annotations' has {counts}", "annotations")
            for name, annotation in zip(names, entries, strict=True):
                label = _joined(annotation, "|", "annotations")
                answers.append(Annotation(name, label, "linguist"))
        elif "q0_gold" in fields:
            for number, answer in enumerate(listed(fields["q0_gold"], "q0_gold"), 1):
                label = one_of(answer, ENTAILMENT, "q0_gold")
                answers.append(Annotation(f"crowd-{number}", label, "crowd"))
        else:
            labels = _joined(fields.get("labels"), ",", "labels")
        name = id_text(fields.get("id"), "id") or f"{item.source}#{item.line}"
        if self._texts.setdefault(name, texts) != texts:
            name = f"{name}@{item.source}"
        gold = labels if labels in _ENTAILMENT_ORDER else None
        slices = {} if labels is None else {"labels": labels}
        annotations = tuple(self._numbered(name, annotation) for annotation in answers)
        record = Record(item.source, item.line, texts, name=name)
        yield LabelledItem(record, "entailment", 0, gold, annotations, slices)

    def _numbered(self, name: str, annotation: Annotation) -> Annotation:
        annotator = annotation.annotator
        self._times[name, annotator] += 1
        if (times := self._times[name, annotator]) == 1:
            return annotation
        return replace(annotation, annotator=f"{annotator} ({times})")


def _joined(content: object, mark: str, key: str) -> str:
    """Labels joined by `mark`, joined by bars instead and in a fixed order."""
    answer = answer_of(content, key) or ""
    if answer == "discard":
        return answer
    labels = {one_of(part, ENTAILMENT, key) for part in answer.split(mark)}
    return "|".join(label for label in _ENTAILMENT_ORDER if label in labels)


class Cali(LabelSet):
    """CALI: pairs rated by people of two countries or more.

    Huang & Yang, "Culturally Aware Natural Language Inference": `data.tsv` with premise,
    hypothesis, and a column `GROUP_ratings` for each group. One `entailment` item for each pair,
    without gold; the raters, whom the file does not name, are `us-1` and on by position.
    """

    name = "cali"
    files = ("data.tsv*",)

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        texts = {key: text_of(fields, key) for key in ("premise", "hypothesis")}
        annotations = tuple(
            Annotation(f"{group}-{n}", entailment_of(rating, group + RATINGS), group)
            for group, ratings in ratings_in(fields).items()
            for n, rating in enumerate(listed(ratings, group + RATINGS), 1)
        )
        record = self.record(item, texts, fields.get("id"))
        yield LabelledItem(record, "entailment", 0, None, annotations, slices_of(fields))


class MultiPico(LabelSet):
    """MultiPICo: is the `reply` to the `post` ironic?

    Casola et al., "MultiPICo: Multilingual Perspectivist Irony Corpus", in the JSON of the shared
    task Le-Wi-Di 2025: an object of id to entry, each with `text` (post, reply), `annotations` (an
    object of annotator to 0 or 1) and `other_info`. One `irony` item for each entry (yes or no),
    without gold. Slices: language_variety, source. An annotator's group is the nationality in
    `annotators_meta_LANG.json` in the same folder, if there is exactly one such file.
    """

    name = "multipico"
    files = ("MP_*.json*", "*MultiPICo*.json*")

    def start(self) -> None:
        files = [*self.folder.glob("annotators_meta*.json")] if self.folder else []
        self._nations: dict[str, str | None] = {}
        try:
            # These files have NaN, which is not JSON but which Python's parser reads.
            people = json.loads(files[0].read_bytes()) if len(files) == 1 else {}
            for number, person in object_of(people, "annotators").items():
                nation = object_of(person, number).get("Nationality")
                self._nations[f"Ann{number}"] = scalar_text(nation)
        except (LabelError, OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{files[0]}: the nationalities cannot be read: {error}") from error

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        try:
            texts = object_of(fields.get("text"), "text")
            entries = object_of(fields.get("annotations"), "annotations")
            visible = {key: text_of(texts, key) for key in ("post", "reply")}
            if not entries:
                raise LabelError("field 'annotations' holds no answer", "annotations")
            answers = {
                name: one_of(entry, _BINARY, "annotations") for name, entry in entries.items()
            }
        except LabelError as error:
            message = f"entry {fields.get('id')!r}: {error}"
            raise LabelError(message, error.problem.field) from error
        info = fields.get("other_info")
        facts = {key: info.get(key) for key in _FACTS} if isinstance(info, dict) else {}
        annotations = tuple(
            Annotation(annotator, answer, self._nations.get(annotator))
            for annotator, answer in answers.items()
        )
        record = self.record(item, visible, fields.get("id"))
        yield LabelledItem(record, "irony", 0, None, annotations, slices_of(facts))


class LLMBar(LabelSet):
    """LLMBar: which of two outputs follows the instruction better.

    Zeng et al., "Evaluating Large Language Models at Evaluating Instruction Following": JSON lists
    of {input, output_1, output_2, label}, one file for each part (`LLMBar_Natural.json`). One
    `preference` item for each pair, gold `1` or `2`. Slice: `part`.
    """

    name = "llmbar"
    files = ("LLMBar_*.json*",)

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        part = item.source.partition(".")[0].rpartition("_")[2]
        texts = {"instruction": text_of(fields, "input")}
        texts |= {key: text_of(fields, key) for key in ("output_1", "output_2")}
        gold = one_of(fields.get("label"), {"1": "1", "2": "2"}, "label")
        record = self.record(item, texts, fields.get("id"), source=part)
        yield LabelledItem(record, "preference", gold=gold, slices={"part": part})


class MoralStories(LabelSet):
    """Moral Stories: a norm, and an action that follows or breaks it.

    Emelin et al. 2021: JSON lines with `ID`, `norm`, `moral_action` and `immoral_action`, or one of
    the two (the splits for classification). The actions were written for the norm, so the labels
    hold by construction. Slice: `story_pair`, the two actions of a story. Two items for each
    action: `adherence` (yes or no), and after all of these `relevance`, each norm with its own
    action (yes) or, for a fixed random half of the items, with another norm's (no): a label by
    random pairing, not by a person's judgement.
    """

    name = "moral-stories"

    def start(self) -> None:
        self._found: list[LabelledItem] = []

    def items(self, item: Record, fields: dict[str, Any]) -> list[LabelledItem]:
        norm = text_of(fields, "norm")
        actions = [key for key in ("moral_action", "immoral_action") if fields.get(key)]
        if not actions:
            raise LabelError("field 'moral_action' or 'immoral_action' is missing", "moral_action")
        row_id = id_text(fields.get("ID"), "ID")
        items: list[LabelledItem] = []
        for key in actions:
            moral = key == "moral_action"
            # The splits for classification number a story's actions in the same way.
            id = f"{row_id}{moral:d}" if row_id is not None and len(actions) > 1 else row_id
            texts = {"rule_of_thumb": norm, "story": text_of(fields, key)}
            record = self.record(item, texts, id, "ID")
            paired = row_id is not None and record.id[-1] in "01"
            slices = {"story_pair": record.id[:-1]} if paired else {}
            gold = "yes" if moral else "no"
            items.append(LabelledItem(record, "adherence", 0, gold, (), slices))
        self._found += items
        return items

    def rest(self) -> Iterator[LabelledItem]:
        chooser = random.Random(_SEED)
        half = chooser.sample(range(len(self._found)), len(self._found) // 2)
        partners = dict(zip(half, half[1:] + half[:1], strict=True))
        for number, item in enumerate(self._found):
            record, partner = item.record, self._found[partners.get(number, number)].record.visible
            same_norm = partner["rule_of_thumb"] == record.visible["rule_of_thumb"]
            if not same_norm:
                record = replace(record, fields={**record.visible, "story": partner["story"]})
            yield replace(item, record=record, check="relevance", gold="yes" if same_norm else "no")


class NormAd(LabelSet):
    """NormAd-ETI: stories, rules of thumb, and whether the action is acceptable by the rule.

    Rao et al., "NormAd": CSV with Country, Rule-of-Thumb, Story, Gold Label (yes, no or neutral)
    and further columns. The gold labels come from how the stories were made (section 4.1). Items of
    each row: `label_correctness` (the label itself), `relevance` (yes, and no for neutral),
    `adherence` (of yes and no rows). Slices: country, subcategory, label.
    """

    name = "normad"

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        norm = item.of_kind("norm").usable()
        typed = norm.typed
        if (label := typed.get("label")) is None:
            key = norm.names.get("label", "Gold Label")
            raise LabelError(f"field {key!r} must be yes, no or neutral, not empty", key)
        golds = {"label_correctness": label, "relevance": "no" if label == "neutral" else "yes"}
        if label != "neutral":
            golds["adherence"] = label
        fields = {key: typed[key] for key in _NORM_FIELDS if key in typed}
        slices = {key: typed[key] for key in _NORM_SLICES if key in typed}
        record = self.record(item, fields, typed.get("id"), norm.names.get("id", "id"))
        for check, gold in golds.items():
            yield LabelledItem(record, check, gold=gold, slices=slices)
