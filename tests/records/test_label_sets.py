"""The public label sets: small files in their released forms, and the released data themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.records.labels import LabelledItem, read_labels
from judge.records.labels.table import LabelTable

from .conftest import Written
from .found import answers, faults, lines, sound

PAIR = {"premise": "P", "hypothesis": "H"}


def linguists(id: object, workers: object, given: list[str]) -> dict[str, Any]:
    return {"id": id, **PAIR, "worker_ids": workers, "annotations": given}


@pytest.fixture
def ambient(write: Written) -> Path:
    """AmbiEnt's folder with its three files, which share pairs."""
    write(
        "linguist_annotations.jsonl",
        lines(
            linguists(4, ["ABS", "GFH"], ["neutral|entailment", "discard"]),
            linguists(5, "['BVU', 'GFH', 'GFH']", ["entailment", "neutral", "entailment"]),
        ),
    )
    crowd = {"id": 4, **PAIR, "q0_gold": ["neutral", "entailment"], "q1_gold": ["neutral"] * 2}
    other = {**crowd, "id": "5", "premise": "P, otherwise"}
    write("crowdworker_annotations.jsonl", lines(crowd, crowd, other))
    path = write(
        "test.jsonl",
        lines(
            {"id": 4, **PAIR, "premise_ambiguous": True, "labels": "neutral, entailment"},
            {"id": "9_c", **PAIR, "premise_ambiguous": False, "labels": "contradiction"},
        ),
    )
    return path.parent


def test_ambient_puts_together_what_its_files_say_of_a_pair(ambient: Path) -> None:
    items = {one.record.id: one for one in sound(list(read_labels(f"ambient:{ambient}")))}
    assert list(items) == ["4", "9_c", "5", "5@crowdworker_annotations.jsonl"]
    assert {one.check for one in items.values()} == {"entailment"}
    shared = items["4"]
    assert (shared.gold, shared.slices) == (None, {"labels": "entailment|neutral"})
    assert answers(shared) == {
        "ABS": "entailment|neutral",
        "GFH": "discard",
        "crowd-1": "neutral",
        "crowd-2": "entailment",
        "crowd-1 (2)": "neutral",
        "crowd-2 (2)": "entailment",
    }
    assert Counter(one.group for one in shared.annotations) == {"linguist": 2, "crowd": 4}
    assert items["9_c"].gold == "contradiction"
    assert answers(items["5"]) == {"BVU": "entailment", "GFH": "neutral", "GFH (2)": "entailment"}
    assert items["5@crowdworker_annotations.jsonl"].record.visible["premise"] == "P, otherwise"


def entry(given: object, text: object = "T", **more: object) -> dict[str, object]:
    """An entry in Le-Wi-Di's form."""
    info = {"source": "reddit", "language_variety": "in", "level": 1.0}
    task = {"annotation task": "irony detection", "annotators": "Ann0,Ann1"}
    rest = {"soft_label": {"1.0": 1}, "hard_label": "1", "split": "dev", "lang": "en"}
    return {**task, "text": text, "annotations": given, **rest, "other_info": info, **more}


REPLY = {"post": "A post.", "reply": "A reply."}


@pytest.mark.parametrize("indent", [None, 1])
def test_multipico(write: Written, indent: int | None) -> None:
    write("annotators_meta_en.json", '{"0": {"Age": NaN, "Nationality": "India"}}')
    content = {"dev-2": entry({"Ann0": "0", "Ann1": "1", "Ann2": "1"}, REPLY)}
    path = write("MP_en_dev_test.json", json.dumps(content, indent=indent))
    (item,) = sound(list(read_labels(f"multipico:{path.parent}", "irony")))
    assert (item.record.id, item.record.visible, item.gold) == ("dev-2", REPLY, None)
    assert item.slices["language_variety"] == "in"
    assert answers(item) == {"Ann0": "no", "Ann1": "yes", "Ann2": "yes"}
    assert [one.group for one in item.annotations] == ["India", None, None]


@pytest.mark.parametrize("people", [b"{", b"\xff", b"[]", b'{"0": 5}', b"[" * 100_000])
def test_nationalities_that_cannot_be_read_are_a_message(write: Written, people: bytes) -> None:
    write("annotators_meta_en.json", people)
    path = write("MP.json", json.dumps({"a": entry({"Ann0": "0"}, REPLY)}))
    with pytest.raises(UsageError, match=r"annotators_meta_en\.json: .* cannot be read"):
        read_labels(f"multipico:{path}")


def test_multipico_entries_that_are_broken(write: Written) -> None:
    content = {
        "a": entry({"Ann0": "0"}, REPLY),
        "b": entry({"Ann0": "2"}, REPLY),
        "c": entry({"Ann0": "0"}, {"post": "A post."}),
        "d": entry({}, REPLY),
        "e": {"text": None},
    }
    found = list(read_labels(f"multipico:{write('MP.json', json.dumps(content))}"))
    assert faults(found) == [
        (2, "entry 'b': field 'annotations' must be one of no, yes, not '2'"),
        (3, "entry 'c': field 'reply' is missing"),
        (4, "entry 'd': field 'annotations' holds no answer"),
        (5, "entry 'e': field 'text' must be an object, not null"),
    ]
    kept = [one for one in found if isinstance(one, LabelledItem)]
    assert [(one.record.id, answers(one)) for one in kept] == [("a", {"Ann0": "no"})]


OUTPUTS = {"input": "I", "output_1": "A", "output_2": "B"}


def test_llmbar_a_file_a_part(write: Written) -> None:
    pairs = [{**OUTPUTS, "label": 1}, {**OUTPUTS, "label": 2}]
    path = write("LLMBar_Adversarial_GPTInst.json", json.dumps(pairs))
    write("LLMBar_Natural.json", json.dumps(pairs[:1]))
    items = sound(list(read_labels(f"llmbar:{path.parent}")))
    assert [(one.record.id, one.slices["part"], one.gold) for one in items] == [
        ("GPTInst#1", "GPTInst", "1"),
        ("GPTInst#2", "GPTInst", "2"),
        ("Natural#1", "Natural", "1"),
    ]
    assert items[0].record.visible == {"instruction": "I", "output_1": "A", "output_2": "B"}
    assert sound(list(read_labels(f"llmbar:{path}"))) == items[:2]


def moral(at: int, label: str = "1", norm: str = "") -> dict[str, str]:
    action = "moral_action" if label == "1" else "immoral_action"
    text = f"Deed {at}{label}."
    return {"ID": f"S{at}{label}", "norm": norm or f"Norm {at}.", action: text, "label": label}


def test_moral_stories_adherence_and_relevance(write: Written) -> None:
    text = lines(*(moral(at, label) for at in range(10) for label in "10"))
    items = sound(list(read_labels(f"moral-stories:{write('a.jsonl', text)}")))
    adherence = [one for one in items if one.check == "adherence"]
    assert [one.gold for one in adherence] == ["yes", "no"] * 10
    assert adherence[1].record.id == "S00"
    assert adherence[1].record.visible == {"rule_of_thumb": "Norm 0.", "story": "Deed 00."}
    relevance = [one for one in items if one.check == "relevance"]
    assert [one.record.id for one in relevance] == [one.record.id for one in adherence]
    assert Counter(one.gold for one in relevance) == {"yes": 10, "no": 10}
    for own, paired in zip(adherence, relevance, strict=True):
        norm = paired.record.visible["rule_of_thumb"].removesuffix(".").split()[1]
        assert own.record.visible["rule_of_thumb"] == paired.record.visible["rule_of_thumb"]
        assert (paired.record.visible["story"].split()[1][0] == norm) == (paired.gold == "yes")
    assert sound(list(read_labels(f"moral-stories:{write('a.jsonl', text)}"))) == items


NORMAD = "ID,Country,Background,Axis,Subaxis,Value,Rule-of-Thumb,Story,Explanation,Gold Label\n"


def test_normad_in_short_neutral_and_broken(write: Written) -> None:
    rows = ("7,iran,R,S,neutral", "2,iran,R,S,maybe", "3,iran,R,S,", "4,iran,,S,yes", "8,iran,R")
    text = "\n".join(("ID,Country,Rule-of-Thumb,Story,Gold Label", *rows, rows[0]))
    found = list(read_labels(f"normad:{write('a.csv', text)}"))
    items = [one for one in found if isinstance(one, LabelledItem)]
    assert [(one.check, one.gold) for one in items] == [
        ("label_correctness", "neutral"),
        ("relevance", "no"),
    ]
    assert items[0].slices == {"country": "iran", "label": "neutral"}
    assert faults(found) == [
        (3, "field 'Gold Label' must be yes, no or neutral, not 'maybe'"),
        (4, "field 'Gold Label' must be yes, no or neutral, not empty"),
        (5, "field 'Rule-of-Thumb' is empty"),
        (6, "the row has 3 cells, the header 5"),
        (7, "id '7' was already on line 2 of a.csv"),
    ]


def counted(data: Path, source: str) -> dict[tuple[str, str | None], int]:
    name, _, path = source.partition(":")
    items = sound(list(read_labels(f"{name}:{data / path}")))
    return Counter((one.check, one.gold) for one in items)


def test_sets_with_gold_as_released(public_data: Path) -> None:
    # One of the random half met its own norm.
    assert counted(public_data, "moral-stories:moral_stories/norm_distance_dev.jsonl") == {
        ("adherence", "yes"): 1000,
        ("adherence", "no"): 1000,
        ("relevance", "yes"): 1001,
        ("relevance", "no"): 999,
    }
    assert counted(public_data, "llmbar:llmbar") == {
        ("preference", "1"): 206,
        ("preference", "2"): 213,
    }
    assert counted(public_data, "normad:normad/normad_odd_rows.csv") == {
        ("label_correctness", "yes"): 474,
        ("label_correctness", "no"): 435,
        ("label_correctness", "neutral"): 408,
        ("relevance", "yes"): 909,
        ("relevance", "no"): 408,
        ("adherence", "yes"): 474,
        ("adherence", "no"): 435,
    }


def test_sets_with_annotators_as_released(public_data: Path) -> None:
    ambient = sound(list(read_labels(f"ambient:{public_data / 'ambient'}", "entailment")))
    assert len(ambient) == 2166
    given = [one for item in ambient for one in item.annotations]
    assert Counter(one.group for one in given) == {"linguist": 4090, "crowd": 4878}
    golds = Counter(one.gold for one in ambient if one.gold is not None)
    assert golds == {"neutral": 642, "entailment": 216, "contradiction": 144}
    assert sum("@" in one.record.id for one in ambient) == 2
    twice = [one for one in ambient if len(one.annotations) >= 18]
    assert {one.record.id for one in twice} == {"38708", "57249"}
    multipico = sound(list(read_labels(f"multipico:{public_data / 'multipico'}")))
    given = [one for item in multipico for one in item.annotations]
    assert (len(multipico), len({one.annotator for one in given})) == (1079, 74)
    assert Counter(one.answer for one in given) == {"no": 3497, "yes": 1576}
    nations = {"India": 1070, "Ireland": 1063, "United Kingdom": 994}
    nations |= {"Australia": 984, "United States": 962}
    assert Counter(one.group for one in given) == nations


def test_a_table_of_a_workflow_s_records_with_their_labels_is_a_table_of_labels() -> None:
    """Their fields are those of a norm record, which alone would be judged."""
    norm = {"country": "JP", "background": "b", "rule-of-thumb": "r", "value": "v", "story": "s"}
    assert not LabelTable.knows(norm | {"label": "yes"})
    assert LabelTable.knows(norm | {"label": "yes", "item": "1"})
    assert LabelTable.knows({"label": "yes", "email": "e"})


def test_a_column_that_names_the_items_is_not_shown_whatever_its_name(write: Written) -> None:
    """A plus in it is no list of columns if the table has it."""
    table = write("t.csv", "a+b,label,text\n1,yes,Hello\n2,no,Bye\n")
    items = sound(list(read_labels(str(table), columns={"item": "a+b", "label": "label"})))
    assert [(one.record.id, one.record.visible) for one in items] == [
        ("1", {"text": "Hello"}),
        ("2", {"text": "Bye"}),
    ]
