"""Le-Wi-Di's form, and MultiPICo in it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.records.labelled import Annotation, LabelledItem
from judge.records.labels import read_labels

from ..conftest import Written
from ..found import answers, faults, lines, sound


def entry(given: object, text: object = "T", **more: object) -> dict[str, object]:
    info = {"source": "reddit", "language_variety": "in", "level": 1.0}
    task = {"annotation task": "irony detection", "annotators": "Ann0,Ann1"}
    rest = {"soft_label": {"1.0": 1}, "hard_label": "1", "split": "dev", "lang": "en"}
    return {**task, "text": text, "annotations": given, **rest, "other_info": info, **more}


REPLY = {"post": "A post.", "reply": "A reply."}


@pytest.mark.parametrize("indent", [None, 1])
def test_multipico(write: Written, indent: int | None) -> None:
    meta = '{"0": {"Age": NaN, "Nationality": "India"}, "1": {"Nationality": "Ireland"}}'
    write("annotators_meta_en.json", meta)
    content = {"dev-2": entry({"Ann0": "0", "Ann1": "1", "Ann2": "1"}, REPLY)}
    path = write("MP_en_dev_test.json", json.dumps(content, indent=indent))
    (item,) = sound(list(read_labels(f"multipico:{path.parent}", "irony")))
    assert item.record == "dev-2"
    assert item.fields == REPLY
    assert item.slices == {"language_variety": "in", "source": "reddit"}
    assert item.gold is None
    assert item.annotations == (
        Annotation("Ann0", "no", "India"),
        Annotation("Ann1", "yes", "Ireland"),
        Annotation("Ann2", "yes"),
    )
    assert sound(list(read_labels(str(path)))) == [item]


def test_multipico_wants_to_know_which_groups(write: Written) -> None:
    write("annotators_meta_en.json", '{"0": "India"}')
    named = write("annotators_meta_de.json", '{"0": "Germany"}')
    path = write("MP_de.json", json.dumps({"a": entry({"Ann0": "0"}, REPLY)}))
    with pytest.raises(UsageError, match=r"annotators_meta_de\.json, annotators_meta_en\.json"):
        read_labels(f"multipico:{path}")
    (item,) = sound(list(read_labels(f"multipico:{path}", annotators=named)))
    assert item.annotations == (Annotation("Ann0", "no", "Germany"),)


def test_multipico_entries_that_are_broken(write: Written) -> None:
    content = {
        "a": entry({"Ann0": "0"}, REPLY),
        "b": entry({"Ann0": "2"}, REPLY),
        "c": entry({"Ann0": "0"}, {"post": "A post."}),
        "d": entry({}, REPLY),
        "e": 5,
    }
    found = list(read_labels(f"multipico:{write('MP.json', json.dumps(content))}"))
    assert faults(found) == [
        (1, "entry 'b': field 'annotations' must be one of no, yes, not '2'"),
        (1, "entry 'c': field 'reply' is missing"),
        (1, "entry 'd': field 'annotations' holds no answer"),
        (1, "entry 'e': an entry must be an object, not a number"),
    ]
    assert [answers(one) for one in found if isinstance(one, LabelledItem)] == [{"Ann0": "no"}]


def test_lewidi(write: Written) -> None:
    content = {
        "1": entry({"Ann0": "0", "Ann1": "1"}),
        "2": entry({"Ann0": "1", "Ann1": None}, {"a": "A", "b": "B"}),
        "3": entry("1,0", **{"annotation task": "Paraphrase, -5 to 5"}),
        "4": entry({"Ann0": "-3"}, **{"annotation task": "Paraphrase, -5 to 5"}),
        "5": entry({"Ann0": "Neutral,Entailment"}, **{"annotation task": ""}),
    }
    items = sound(list(read_labels(str(write("a.json", json.dumps(content))))))
    assert [(one.record, one.check, answers(one)) for one in items] == [
        ("1", "irony_detection", {"Ann0": "no", "Ann1": "yes"}),
        ("2", "irony_detection", {"Ann0": "yes"}),
        ("3", "paraphrase_5_to_5", {"Ann0": "1", "Ann1": "0"}),
        ("4", "paraphrase_5_to_5", {"Ann0": "-3"}),
        ("5", "label", {"Ann0": "neutral,entailment"}),
    ]
    assert items[0].fields == {"text": "T"}
    assert items[1].fields == {"a": "A", "b": "B"}
    assert items[0].slices == {
        "split": "dev",
        "lang": "en",
        "source": "reddit",
        "language_variety": "in",
        "level": "1",
    }
    assert all(one.gold is None for one in items)


def test_lewidi_line_by_line(write: Written) -> None:
    text = lines({"id": "x", **entry({"A": "0"})}, entry({"A": "1"}), {"id": "y", "text": "T"})
    found = list(read_labels(f"lewidi:{write('a.jsonl', text)}"))
    items = [one for one in found if isinstance(one, LabelledItem)]
    assert [one.record for one in items] == ["x", "a.jsonl#2"]
    assert [line for line, _ in faults(found)] == [3, 3]


@pytest.mark.parametrize(
    ("given", "text", "message"),
    [
        ("0,1,1", "T", "has 3 answers of 2 annotators"),
        (["0"], "T", "must be an object, not a list"),
        ({"A": []}, "T", "must hold an answer, not a list"),
        ({"A": "0"}, "", "field 'text' is empty"),
        ({"A": "0"}, 5, "field 'text' must be a text, not a number"),
        ({"A": "0"}, {"post": 5}, "field 'post' must be a text, not a number"),
    ],
)
def test_lewidi_entries_that_are_broken(
    write: Written, given: object, text: object, message: str
) -> None:
    path = write("a.json", json.dumps({"7": entry(given, text)}))
    ((line, said),) = faults(list(read_labels(f"lewidi:{path}")))
    assert (line, said.partition(": ")[0]) == (1, "entry '7'")
    assert message in said


def test_multipico_as_released(public_data: Path) -> None:
    items = sound(list(read_labels(f"multipico:{public_data / 'multipico'}")))
    assert len(items) == 1079
    given = [one for item in items for one in item.annotations]
    assert Counter(one.answer for one in given) == {"no": 3497, "yes": 1576}
    assert len({one.annotator for one in given}) == 74
    assert Counter(one.group for one in given) == {
        "India": 1070,
        "Ireland": 1063,
        "United Kingdom": 994,
        "Australia": 984,
        "United States": 962,
    }
    assert Counter(one.slices["source"] for one in items) == {"reddit": 555, "twitter": 524}
    generic = sound(list(read_labels(f"lewidi:{public_data / 'multipico/MP_en_dev_test.json'}")))
    assert [answers(one) for one in generic] == [answers(one) for one in items]
