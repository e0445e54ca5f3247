"""`judge score` as a user types it: answers that are at hand beside what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cli.result_tables import print_results
from judge.evaluation.tables import Row, Table
from judge.stats.intervals import Estimate

from .typed import Typed

GOLD = [
    {
        "id": "s1",
        "values": ["Elders are heard first.", "Guests pay nothing."],
        "category": "social",
    },
    {"id": "s2", "values": ["Work comes before rest."], "category": "ethical"},
    {"id": "s3", "values": ["Debts are kept."], "category": "ethical"},
]
PREDICTED = [
    {"id": "s1", "predicted": ["The old speak first.", "Hosts invite."]},
    {"id": "s2", "predicted": []},
    {"id": "s9", "predicted": ["Nobody asked."]},
]


def credit(number: int, presence: str, *named: int) -> dict[str, Any]:
    return {"value": number, "reason": "so", "predicted": list(named), "presence": presence}


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("gold.jsonl", GOLD)
    made.write("pred.jsonl", PREDICTED)
    made.script(
        "judge.yaml", [{"reply": {"values": [credit(1, "fully", 1), credit(2, "partially", 2)]}}]
    )
    return made


EXTRACTION = ("score", "extraction", "pred.jsonl", "gold.jsonl", "-m", "scripted:judge.yaml")


def cells(done: bytes, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = next(t for t in json.loads(done) if t["name"] == name)["rows"]
    return rows


def test_each_gold_value_is_credited_and_recall_says_over_how_many(typed: Typed) -> None:
    done = typed(*EXTRACTION, "-o", "graded.jsonl", "--json", "-q")
    assert done.returncode == 0, done.stderr
    by_kind = {row["lines"]: row["count"] for row in cells(done.stdout, "joined")}
    assert by_kind["gold lines without a prediction"] == 1
    assert by_kind["predictions for no gold line"] == 1
    everything, social, ethical = cells(done.stdout, "cqbench-extraction")
    # Credits 1, 0.5; 0 (nothing predicted); 0 (no prediction at all): 1.5 of 4.
    assert everything["recall"]["value"] == pytest.approx(1.5 / 4)
    assert everything["gold values"] == 4
    assert everything["unreadable"] == 1
    assert social["recall"]["value"] == pytest.approx(0.75)
    assert ethical["recall"]["value"] == 0.0
    graded = [json.loads(line) for line in (typed.folder / "graded.jsonl").open()]
    assert [line["judge"]["extraction"]["credits"] for line in graded] == [[1.0, 0.5], [0.0]]


def test_graded_lines_go_to_standard_output_and_tables_beside_them(typed: Typed) -> None:
    done = typed(*EXTRACTION)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["s1", "s2"]
    assert b"recall" in done.stderr


def test_a_judge_without_a_reply_leaves_the_story_out_and_says_so(typed: Typed) -> None:
    typed.script("judge.yaml", [{"error": "bad-request"}])
    done = typed(*EXTRACTION, "-o", "graded.jsonl", "--json", "-q")
    assert done.returncode == 3
    everything = cells(done.stdout, "cqbench-extraction")[0]
    assert everything["error"] == 1
    assert everything["recall"]["n"] == 2


def test_attitudes_and_selections_are_scored_without_any_model(typed: Typed) -> None:
    options = ["Agree", "Neither", "Disagree"]
    typed.write("g.jsonl", [{"id": "a", "gold": "agree", "options": options}] * 1)
    typed.write("p.jsonl", [{"id": "a", "answer": "Agree"}])
    done = typed("score", "attitude", "p.jsonl", "g.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert any(table["name"] == "joined" for table in json.loads(done.stdout))
    typed.write("g.jsonl", [{"id": "a", "gold": ["x", "y"], "options": ["x", "y", "z"]}])
    typed.write("p.jsonl", [{"id": "a", "answer": ["x", "z"]}])
    done = typed("score", "selection", "p.jsonl", "g.jsonl", "--tables", "t")
    assert done.returncode == 0, done.stderr
    assert b"0.50" in done.stdout
    assert (typed.folder / "t" / "tables.json").exists()
    wrong = typed("score", "selection", "p.jsonl", "g.jsonl", "--rule", "mine")
    assert (wrong.returncode, wrong.stdout) == (2, b"")


def test_questions_about_few_stories_are_told_to_be_so_and_bear_no_interval(typed: Typed) -> None:
    gold = [
        {"id": f"{story}/{number}", "row": f"s{story}", "gold": "yes"}
        for story in range(2)
        for number in range(4)
    ]
    answers = ("yes", "yes", "yes", "no", "yes", "yes", "no", "no")
    typed.write("g.jsonl", gold)
    told = zip(gold, answers, strict=True)
    typed.write("p.jsonl", [{"id": one["id"], "answer": answer} for one, answer in told])
    done = typed("score", "attitude", "p.jsonl", "g.jsonl", "--json")
    (row, _) = cells(done.stdout, "cqbench")
    assert (row["asked"], row["stories"]) == (8, 2)
    assert row["score"] == {"value": 0.625, "low": None, "high": None, "n": 8, "of": 8}
    shown = typed("score", "attitude", "p.jsonl", "g.jsonl").stdout.decode()
    assert "no bootstrapped one over fewer than 10 rows" in shown


def test_a_table_that_does_not_say_how_many_were_asked_says_it_with_each_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(*columns: str) -> str:
        row = Row(("a",), {"asked": 3, "F1": Estimate(0.5, n=3, of=3)})
        print_results([Table("t", "Title", ("label",), columns, [row])])
        return capsys.readouterr().out

    assert "0.50, 3 of 3" in shown("F1")
    assert "3 of 3" not in shown("asked", "F1")


def test_a_set_of_norms_is_counted(typed: Typed) -> None:
    norm = {"country": "egypt", "rule_of_thumb": "Greet.", "story": "Ann came in."}
    judged = {"id": "3", **norm, "label": "no", "judge": {"verdict": "fail", "workflow": "norm"}}
    typed.write("n.jsonl", [{"id": "1", **norm, "label": "yes"}, {"id": "2", **norm}, judged])
    done = typed("score", "norms", "n.jsonl", "--json")
    assert done.returncode == 3
    assert b"n.jsonl:2" in done.stderr
    rows = cells(done.stdout, "normad-set-clusters")
    assert rows[0]["cluster"] == "African-Islamic"


@pytest.mark.parametrize("task", ["attitude", "selection"])
def test_lines_at_fault_and_nothing_in_common_are_no_success(typed: Typed, task: str) -> None:
    right: Any = "Agree" if task == "attitude" else ["x"]
    typed.write("g.jsonl", [{"id": "a", "gold": right}, {"id": "b", "gold": right}])
    typed.write("p.jsonl", [{"id": "a", "answer": right}])
    with (typed.folder / "p.jsonl").open("a") as file:
        file.write("{torn\n")
    torn = typed("score", task, "p.jsonl", "g.jsonl")
    assert torn.returncode == 3
    assert b"p.jsonl, line 2: not JSON" in torn.stdout
    assert b"judge: 1 line(s) of p.jsonl are at fault" in torn.stderr
    typed.write("p.jsonl", [{"item": "a", "answer": right}, {"id": "z", "answer": right}])
    apart = typed("score", task, "p.jsonl", "g.jsonl")
    assert (apart.returncode, apart.stdout) == (2, b"")
    assert b"p.jsonl and g.jsonl have no id in common; 1 line(s) of p.jsonl are" in apart.stderr
    assert b"p.jsonl, line 1, field 'id': field 'id' is missing" in apart.stderr


def test_progress_of_an_extraction_is_of_what_is_joined(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.cli.progress.LOG_SECONDS", 0.0)
    done = typed(*EXTRACTION, "-o", "graded.jsonl")
    assert b"judge: 2/2 items, " in done.stderr


def test_an_extraction_beside_a_torn_line_is_not_complete(typed: Typed) -> None:
    with (typed.folder / "pred.jsonl").open("a") as file:
        file.write("{torn\n")
    done = typed(*EXTRACTION, "-o", "graded.jsonl", "-q")
    assert done.returncode == 3
    assert b"pred.jsonl:4: not JSON" in done.stdout
    assert (
        done.stderr
        == b"judge: 1 line(s) of pred.jsonl are at fault: see the notes under the "
        + (b"first table\n")
    )


def test_answers_beside_a_line_without_one_are_not_complete(typed: Typed) -> None:
    row = {"country": "Egypt", "value": "Respect", "rule_of_thumb": "Greet.", "story": "Ann left."}
    typed.write("rows.jsonl", [{"id": "1", **row, "label": "yes"}])
    typed.script("model.yaml", [{"reply": {"answer": "yes"}}])
    ran = typed("evaluate", "normad", "rows.jsonl", "-m", "scripted:model.yaml", "-o", "a.jsonl")
    assert ran.returncode == 0, ran.stderr
    assert typed("score", "answers", "a.jsonl").returncode == 0
    with (typed.folder / "a.jsonl").open("a") as file:
        file.write("{torn\n")
    done = typed("score", "answers", "a.jsonl")
    assert done.returncode == 3
    assert b"judge: 1 line(s) hold no answer, the first is a.jsonl:" in done.stderr
    assert b"accuracy" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("score", "attitude", "pred.jsonl", "absent.jsonl"), b"absent.jsonl"),
        (("score", "extraction", "gold.jsonl", "pred.jsonl"), b"pred.jsonl:1"),
        (("score", "outputs", "pred.jsonl", ".", "--rule", "mine"), b"paper, released, distinct"),
        (("score", "extraction", "pred.jsonl", "gold.jsonl", "--resume"), b"-o"),
    ],
)
def test_what_cannot_be_scored_is_refused(typed: Typed, words: Any, told: bytes) -> None:
    done = typed(*words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
