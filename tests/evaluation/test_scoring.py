"""Scores of answers that are at hand: files joined by id, nothing dropped in silence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.evaluation.scoring import score_attitude, score_selection
from judge.evaluation.tables import Cell, Table

from .test_cqbench import cell, named, number

GOLD = [
    {"id": "a", "gold": "Not often", "options": ["Very often", "Not often", "Not at all often"]},
    {"id": "b", "gold": "Agree", "options": ["Agree", "Neither agree nor disagree", "Disagree"]},
    {"id": "c", "gold": "Agree", "options": ["Agree", "Neither agree nor disagree", "Disagree"]},
    {"id": "d", "gold": "Disagree", "options": ["Agree", "Neither agree nor disagree", "Disagree"]},
]
ROW = ("attitude detection", "single", "attitude")


def write(folder: Path, name: str, lines: Sequence[object]) -> str:
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def attitudes(folder: Path, *pred: object, gold: Sequence[object] = GOLD) -> dict[str, Table]:
    written = write(folder, "pred.jsonl", pred), write(folder, "gold.jsonl", gold)
    return named(score_attitude(*written).tables)


def joined(tables: dict[str, Table]) -> dict[str, Cell]:
    return {row.labels[0]: row.cells["count"] for row in tables["joined"].rows}


def test_attitude_by_hand(tmp_path: Path) -> None:
    tables = attitudes(
        tmp_path,
        {"id": "d", "answer": "disagree "},
        {"id": "a", "answer": "Not at all often"},
        {"id": "b", "answer": "Agree"},
        {"id": "c", "answer": "Neither agree nor disagree"},
    )
    table = tables["cqbench"]
    assert number(table, "score", *ROW) == 0.5
    assert number(table, "score", ROW[0], "single, merged", ROW[2]) == 0.75
    # agree 2/3, disagree 1, the other three classes 0.
    assert number(table, "macro F1", *ROW) == pytest.approx((2 / 3 + 1) / 5, abs=1e-6)
    binary = tables["cqbench-binary"]
    sided = ("gold not neutral, neutral offered", "attitude")
    assert number(binary, "accuracy", *sided) == pytest.approx(2 / 3, abs=1e-6)
    assert number(tables["cqbench-options"], "recall", "agree", "attitude") == 0.5
    assert joined(tables)["predictions missing"] == 0


def test_what_is_missing_unreadable_or_no_option_counts_as_wrong_and_is_told(
    tmp_path: Path,
) -> None:
    tables = attitudes(
        tmp_path,
        {"id": "a", "answer": "Not often"},
        {"id": "b", "answer": None},
        {"id": "c", "answer": "Yes, surely"},
        {"id": "z", "answer": "Agree"},
    )
    assert number(tables["cqbench"], "score", *ROW) == 0.25
    assert cell(tables["cqbench"], "unreadable", *ROW) == 3
    assert joined(tables) == {
        "gold items": 4,
        "predictions": 4,
        "gold items with a prediction": 3,
        "predictions missing": 1,
        "predictions for no gold item": 1,
        "predictions that are none of the options": 1,
        "prediction lines at fault": 0,
    }
    notes = " ".join(tables["joined"].notes)
    assert "counted as unreadable: d" in notes
    assert "left out: z" in notes
    assert "c ('Yes, surely')" in notes


def test_lines_at_fault_are_named_with_file_line_and_field(tmp_path: Path) -> None:
    tables = attitudes(
        tmp_path,
        {"id": "a", "answer": "Not often"},
        '{"id": "b", ',
        {"id": "c", "answer": 3},
        {"answer": "Agree"},
        {"id": "a", "answer": "Very often"},
        {"id": "d", "answer": "x", "outcome": "shrugged"},
        {"id": "d"},
    )
    notes = tables["joined"].notes
    assert any(note.startswith("pred.jsonl, line 2: not JSON") for note in notes)
    assert "pred.jsonl, line 3, field 'answer': field 'answer' must be an attitude, not 3" in notes
    assert "pred.jsonl, line 4, field 'id': field 'id' is missing" in notes
    assert "pred.jsonl, line 5: id 'a' was already on line 1" in notes
    assert any("field 'outcome' must be one of answered" in note for note in notes)
    assert joined(tables)["prediction lines at fault"] == 6
    # The first answer to an item stands; what cannot be read is wrong.
    assert number(tables["cqbench"], "score", *ROW) == 0.25


def test_errors_and_refusals_are_columns_and_errors_in_no_mean(tmp_path: Path) -> None:
    tables = attitudes(
        tmp_path,
        {"id": "a", "answer": "Not often"},
        {"id": "b", "outcome": "refused"},
        {"id": "c", "outcome": "error"},
        {"id": "d", "answer": "Disagree"},
    )
    table = tables["cqbench"]
    assert [cell(table, name, *ROW) for name in ("asked", "answered", "refused", "error")] == [
        4,
        2,
        1,
        1,
    ]
    assert number(table, "score", *ROW) == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"id": "a"}, "line 1, field 'gold'"),
        ({"id": "a", "gold": 3}, "line 1, field 'gold'"),
        ("{", "line 1: not JSON"),
    ],
)
def test_gold_at_fault_is_refused(tmp_path: Path, line: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        attitudes(tmp_path, {"id": "a", "answer": "x"}, gold=[line])


def test_the_same_gold_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gold\.jsonl, line 2, field 'id'.*already on line 1"):
        attitudes(tmp_path, gold=[GOLD[0], GOLD[0]])


def evaluated(id: str, condition: str, answer: Any, gold: Any, **more: Any) -> dict[str, Any]:
    told = {"verdict": "pass", "benchmark": "cqbench", "outcome": "answered", "answer": answer}
    item = id.removesuffix(f"/{condition}")
    fields = {"id": id, "condition": condition, "row": item.split("/")[0], "item": item}
    judged = {**told, **more.pop("judge", {})}
    return {**fields, "gold": gold, "setting": "single", **more, "judge": judged}


def test_lines_of_an_evaluation_are_predictions_and_their_own_gold(tmp_path: Path) -> None:
    lines = [
        evaluated("s/1/attitude", "attitude", "Agree", "Agree"),
        evaluated("s/1/attitude+steps", "attitude+steps", "Disagree", "Agree"),
        evaluated("s/selection", "selection", ["p--1"], ["p--1"]),
    ]
    path = write(tmp_path, "run.jsonl", lines)
    table = named(score_attitude(path, path).tables)["cqbench"]
    assert number(table, "score", *ROW) == 1.0
    assert number(table, "score", ROW[0], ROW[1], "attitude+steps") == 0.0
    selection = named(score_selection(path, path).tables)["cqbench-selection"]
    assert number(selection, "F1", "selection") == 1.0


def test_lines_of_an_evaluation_are_joined_to_released_questions(tmp_path: Path) -> None:
    question = {"value": "t", "options": ["Agree", "Neutral", "Disagree"], "gold label": "agree"}
    neutral = {**question, "gold label": "neutral"}
    gold = write(tmp_path, "gold.jsonl", [{"story": "x", "questions": [question, neutral]}])
    lines = [
        evaluated("gold.jsonl#1/1/attitude", "attitude", "Agree", "-"),
        evaluated("gold.jsonl#1/2/attitude", "attitude", "Agree", "-"),
        evaluated("gold.jsonl#1/1/attitude:binary", "attitude:binary", "Disagree", "-"),
    ]
    tables = named(score_attitude(write(tmp_path, "run.jsonl", lines), gold).tables)
    assert number(tables["cqbench"], "score", *ROW) == 0.5
    # The neutral question is none of the binary ones, and is not missing there.
    assert joined(tables)["predictions missing"] == 0
    asked = ("gold not neutral, asked without it", "attitude:binary")
    assert cell(tables["cqbench-binary"], "asked", *asked) == 1


SELECTION: list[dict[str, Any]] = [
    {
        "story": "x",
        "id": "a",
        "options": [f"Some statement {n}--no" for n in range(15)],
        "values": ["Some statement 1--no", "Some statement 2--no"],
    },
    {"id": "b", "gold": ["Other statement 1--no", "Other statement 2--no"]},
    {"id": "c", "gold": "Third statement 1--no\nThird statement 2--no"},
]


def test_selection_by_hand_under_both_rules(tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", SELECTION)
    pred = write(
        tmp_path,
        "pred.jsonl",
        [
            {"id": "a", "answer": ["some statement 1--no", "3. Some statement 2--no"]},
            {"id": "b", "answer": "Other statement 1--no\n\n"},
            {"id": "c", "answer": ["cannot tell"]},
        ],
    )
    own = named(score_selection(pred, gold).tables)
    table = own["cqbench-selection"]
    # a: one of two given, one of two right, 1/2; b: one of one given, 2/3; c: 0.
    assert number(table, "F1", "selection") == pytest.approx((1 / 2 + 2 / 3) / 3, abs=1e-6)
    # 2 hits, 4 given, 6 right.
    assert number(table, "pooled F1", "selection") == 0.4
    assert joined(own)["predictions that are none of the options"] == 1
    released = named(score_selection(pred, gold, "released").tables)
    table = released["cqbench-selection-released"]
    # a reads as both right; c has no readable entry. P (1 + 1) / 2, R (1 + 1/2) / 2: 6/7.
    assert number(table, "F1", "selection") == pytest.approx(6 / 7, abs=1e-6)
    assert cell(table, "left out", "selection") == 1
    assert "cqbench-selection" not in released


def test_an_unreadable_selection_is_zero_by_the_papers_rule(tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", SELECTION[1:])
    pred = write(
        tmp_path,
        "pred.jsonl",
        [{"id": "b", "answer": SELECTION[1]["gold"]}, {"id": "c", "answer": None}],
    )
    table = named(score_selection(pred, gold).tables)["cqbench-selection"]
    assert number(table, "F1", "selection") == 0.5
    assert cell(table, "unreadable", "selection") == 1
    released = named(score_selection(pred, gold, "released").tables)["cqbench-selection-released"]
    assert number(released, "F1", "selection") == 1.0


def test_nothing_right_at_all_is_an_f1_of_zero_under_the_released_rule(tmp_path: Path) -> None:
    gold = write(tmp_path, "gold.jsonl", SELECTION[1:2])
    pred = write(tmp_path, "pred.jsonl", [{"id": "b", "answer": ["else--no"]}])
    released = named(score_selection(pred, gold, "released").tables)["cqbench-selection-released"]
    assert number(released, "F1", "selection") == 0.0
