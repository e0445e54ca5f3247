"""NormAd's rows, contexts and answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.evaluation.benchmark import Choices
from judge.evaluation.normad import benchmark, records
from judge.evaluation.normad_tables import LABELS
from judge.records import Item

from .examinee import ONE, Examined, asked, public, usual, written

FULL: dict[str, object] = {
    "ID": "7",
    "Country": "south_korea",
    "Background": "### Eating",
    "Axis": "Etiquette",
    "Subaxis": "eating",
    "Value": "Respect at the table",
    "Rule-of-Thumb": "Wait until the eldest has begun.",
    "Story": "Noa began to eat before the eldest did. Is what Noa did socially acceptable?",
    "Explanation": "The eldest begins.",
    "Gold Label": "no",
}
SHORT: dict[str, object] = {
    key: FULL[key] for key in ("ID", "Country", "Rule-of-Thumb", "Story", "Gold Label")
}


def items(*paths: str, conditions: tuple[str, ...] = benchmark.usual) -> list[Item]:
    return list(benchmark.items(paths, Choices(conditions)))


def problem(item: Item) -> str:
    assert item.problem is not None and item.fields is None
    return item.problem.message


def lines(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_a_row_of_the_full_form_is_asked_in_all_four_contexts(tmp_path: Path) -> None:
    found = asked(items(written(tmp_path / "a.csv", [FULL])))
    assert list(found) == ["7/none", "7/country", "7/country+value", "7/rule-of-thumb"]
    assert found["7/none"] == {
        "id": "7/none",
        "condition": "none",
        "row": "7",
        "country": "south_korea",
        "cluster": "Confucian",
        "axis": "Etiquette",
        "subcategory": "eating",
        "value": "Respect at the table",
        "rule_of_thumb": "Wait until the eldest has begun.",
        "story": FULL["Story"],
        "gold": "no",
    }


SHOWN = {
    "none": (),
    "country": ("South Korea",),
    "country+value": ("South Korea", "Respect at the table"),
    "rule-of-thumb": ("Wait until the eldest",),
}


@pytest.mark.parametrize("condition", SHOWN)
async def test_a_context_shows_its_own_and_nothing_more(condition: str, tmp_path: Path) -> None:
    (item,) = items(written(tmp_path / "a.csv", [FULL]), conditions=(condition,))
    model = Examined(lambda texts, options: 1)
    assert item.fields is not None
    await benchmark.answer(item.fields, model)
    (prompt,) = model.prompts
    assert "Noa began to eat" in prompt
    everything = {text for texts in SHOWN.values() for text in texts}
    assert {text for text in everything if text in prompt} == set(SHOWN[condition])
    assert "The eldest begins." not in prompt and "### Eating" not in prompt
    assert ("Judge it by the rule of thumb" in prompt) == (condition == "rule-of-thumb")
    assert ("in the sense of the value" in prompt) == (condition == "country+value")


async def test_answers_are_the_three_labels(tmp_path: Path) -> None:
    fields = asked(items(written(tmp_path / "a.csv", [FULL])))["7/country"]
    right = await benchmark.answer(fields, Examined(lambda texts, options: 1, (0.2, 0.7, 0.1)))
    assert (right.outcome, right.answer, right.score) == ("answered", "no", 1.0)
    assert right.probabilities == {"yes": 0.2, "no": 0.7, "neutral": 0.1}
    assert right.usage == ONE
    wrong = await benchmark.answer(fields, Examined(lambda texts, options: 2))
    assert (wrong.outcome, wrong.answer, wrong.score) == ("answered", "neutral", 0.0)
    assert wrong.probabilities is None


@pytest.mark.parametrize("trouble", ["refused", "unreadable"])
async def test_no_answer_has_no_score(trouble: str, tmp_path: Path) -> None:
    fields = asked(items(written(tmp_path / "a.csv", [FULL])))["7/none"]
    found = await benchmark.answer(fields, Examined(lambda texts, options: trouble))
    assert (found.outcome, found.answer, found.score) == (trouble, None, None)
    assert found.reason == "no answer in it"


def test_a_row_without_a_value_is_passed_over_unless_the_context_was_chosen(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.csv", [SHORT])
    assert list(asked(items(path))) == ["7/none", "7/country", "7/rule-of-thumb"]
    (item,) = items(path, conditions=("country+value",))
    assert problem(item) == "field 'value', which condition 'country+value' shows, is not there"
    assert (item.source, item.line) == ("a.csv", 2)


def test_a_blank_country_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [{**SHORT, "Country": " "}])
    found = asked(items(path))
    assert list(found) == ["7/none", "7/rule-of-thumb"]
    assert found["7/none"]["cluster"] is None


def test_lines_that_were_judged_are_taken_if_they_passed(tmp_path: Path) -> None:
    row = {"story": "Ann bowed.", "rule_of_thumb": "Bow.", "label": "yes"}
    path = lines(
        tmp_path / "out.jsonl",
        {"id": "kept", **row, "judge": {"verdict": "pass"}},
        {"id": "discarded", **row, "judge": {"verdict": "fail"}},
        {"id": "undecided", **row, "judge": {"verdict": "abstain"}},
        {"raw": "{", "judge": {"verdict": "error"}},
        {"id": "unjudged", **row},
    )
    found = asked(items(path, conditions=("none",)))
    assert [fields["row"] for fields in found.values()] == ["kept", "unjudged"]


def test_an_own_cluster_is_kept(tmp_path: Path) -> None:
    row = {"story": "Ann bowed.", "rule_of_thumb": "Bow.", "label": "yes", "country": "japan"}
    path = lines(tmp_path / "a.jsonl", {**row, "cluster": "Island"}, row)
    first, second = asked(items(path, conditions=("none",))).values()
    assert (first["cluster"], second["cluster"]) == ("Island", "Confucian")
    assert (first["id"], second["id"]) == ("a.jsonl#1/none", "a.jsonl#2/none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Gold Label": ""}, "field 'Gold Label' must be yes, no or neutral, not empty"),
        ({"Gold Label": "maybe"}, "field 'Gold Label' must be yes, no or neutral, not 'maybe'"),
        ({"Story": ""}, "field 'Story' is empty"),
    ],
)
def test_a_row_that_cannot_be_asked_is_a_problem(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    found = items(written(tmp_path / "a.csv", [{**FULL, **change}, {**FULL, "ID": "8"}]))
    assert problem(found[0]) == message
    assert found[0].line == 2
    assert len(asked(found[1:])) == 4


def test_an_id_twice_in_one_file_is_a_problem(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [SHORT, {**SHORT, "Story": "Another one."}])
    assert problem(items(path)[-1]) == "id '7' was already on line 2 of a.csv"


def test_ids_of_two_files_may_meet_but_not_for_one_story(tmp_path: Path) -> None:
    first = written(tmp_path / "a.csv", [SHORT])
    second = written(tmp_path / "b.csv", [{**FULL, "Story": "Another one."}])
    third = written(tmp_path / "c.csv", [FULL])
    found = items(first, second, third, conditions=("none",))
    assert list(asked(found[:2])) == ["7/none", "b.csv:7/none"]
    assert problem(found[2]) == "id '7' was already on line 2 of a.csv"


def test_both_released_forms_are_read() -> None:
    half, full = public("normad/normad_odd_rows.csv"), public("normad/normad_4_rows.csv")
    found = [row for row in records([half, full]) if not isinstance(row, Item)]
    assert len(found) == 1317 + 4
    counts = {
        condition: len(list(benchmark.items([half, full], Choices((condition,)))))
        for condition in benchmark.conditions
    }
    assert set(counts.values()) == {1321}
    assert len(asked(list(benchmark.items([half, full], usual(benchmark))))) == 3 * 1321 + 4


def test_labels_stand_for_places() -> None:
    assert LABELS == ("yes", "no", "neutral")
