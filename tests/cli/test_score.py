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

NORM = {"country": "egypt", "value": "v", "rule_of_thumb": "Greet.", "story": "Ann came."}
NORMS = [{"id": str(n), **NORM, "label": label} for n, label in enumerate(("yes", "no", "neutral"))]
GOLD = [
    {
        "id": "s1",
        "gold": ["Elders are heard first.", "Guests pay nothing."],
        "gold_topics": ["family", "guests"],
        "category": "social",
        "setting": "single",
    },
    {"id": "s2", "gold": ["Work comes before rest."], "category": "ethical"},
    {"id": "s3", "gold": ["Debts are kept."], "category": "ethical"},
]
PREDICTED = [
    {"id": "s1", "answer": ["The old speak first.", "Hosts invite."]},
    {"id": "s2", "answer": []},
    {"id": "s9", "answer": ["A stranger's."]},
]
EXTRACTION = ("score", "cqbench", "pred.jsonl", "gold.jsonl", "--condition", "extraction+steps")
JUDGED = (*EXTRACTION, "--judge-model", "scripted:judge.yaml")


def credit(number: int, presence: str, *named: int) -> dict[str, Any]:
    return {"value": number, "reason": "so", "predicted": list(named), "presence": presence}


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("norms.jsonl", NORMS)
    made.write("gold.jsonl", GOLD)
    made.write("pred.jsonl", PREDICTED)
    made.script(
        "judge.yaml", [{"reply": {"values": [credit(1, "fully", 1), credit(2, "partially", 2)]}}]
    )
    return made


def rows(done: bytes, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(t for t in json.loads(done) if t["name"] == name)["rows"]
    return found


def counts(done: bytes) -> list[int]:
    return [row["count"] for row in rows(done, "joined")]


def test_answers_made_elsewhere_are_scored_by_the_benchmarks_rule(typed: Typed) -> None:
    typed.write("a.jsonl", [{"id": "0", "answer": "yes"}, {"id": "1", "answer": "yes"}])
    done = typed("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "country", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = rows(done.stdout, "normad-contexts")
    # One right, one wrong, and one without an answer.
    assert (row["asked"], row["answered"], row["unreadable"]) == (3, 2, 1)
    assert row["accuracy"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert counts(done.stdout) == [3, 1, 0, 0]


def test_an_output_line_without_a_score_is_scored(typed: Typed) -> None:
    judge = {"verdict": "pass", "benchmark": "normad", "outcome": "answered", "answer": "yes"}
    fields = {"condition": "none", "row": "0", "gold": "yes"}
    lines = [
        {"id": "0/none", **fields, "judge": judge},
        {"raw": "{", "judge": {"verdict": "error"}},
    ]
    typed.write("a.jsonl", lines)
    done = typed("score", "normad", "a.jsonl", "--json")
    assert done.returncode == 3
    assert rows(done.stdout, "normad-contexts")[0]["accuracy"]["value"] == 1.0
    assert b"1 line(s) of a.jsonl are at fault" in done.stderr


def test_attitudes_selections_and_culturalbench_have_their_own_rules(typed: Typed) -> None:
    gold = {"id": "a", "gold": "agree", "options": ["Agree", "Disagree"], "setting": "single"}
    typed.write("g.jsonl", [gold])
    typed.write("a.jsonl", [{"id": "a", "answer": "Agree "}])
    done = typed("score", "cqbench", "a.jsonl", "g.jsonl", "--condition", "attitude", "--json")
    assert rows(done.stdout, "cqbench")[0]["score"]["value"] == 1.0, done.stderr
    typed.write("g.jsonl", [{"id": "a", "gold": ["x", "y"], "setting": "single"}])
    typed.write("a.jsonl", [{"id": "a", "answer": ["x", "z"]}])
    done = typed("score", "cqbench", "a.jsonl", "g.jsonl", "--condition", "selection", "--json")
    assert rows(done.stdout, "cqbench-selection")[0]["F1"]["value"] == 0.5, done.stderr
    options = {f"prompt_option_{letter}": letter.upper() * 3 for letter in "abcd"}
    typed.write(
        "q.jsonl",
        [
            {
                "question_idx": "7",
                "prompt_question": "Q?",
                **options,
                "answer": "B",
                "country": "Peru",
            }
        ],
    )
    typed.write("a.jsonl", [{"id": "7", "answer": "B"}])
    done = typed("score", "culturalbench", "a.jsonl", "q.jsonl", "--condition", "easy", "--json")
    assert rows(done.stdout, "culturalbench-setups")[0]["accuracy"]["value"] == 1.0, done.stderr


def test_lines_at_fault_are_named_and_are_no_success(typed: Typed) -> None:
    typed.write(
        "a.jsonl", [{"id": "0", "answer": "yes"}, {"answer": "no"}, {"id": "0"}, {"id": "1"}]
    )
    with (typed.folder / "a.jsonl").open("a") as file:
        file.write("{torn\n")
    done = typed("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "none")
    assert done.returncode == 3
    for told in ("line 2: field 'id' is missing", "line 4: field 'answer'", "line 5: not JSON"):
        assert f"a.jsonl, {told}" in done.stdout.decode()
    typed.write("a.jsonl", [{"id": "z", "answer": "yes"}])
    apart = typed("score", "normad", "a.jsonl", "norms.jsonl")
    assert (apart.returncode, apart.stdout) == (2, b"")
    assert b"a.jsonl and norms.jsonl have no id in common" in apart.stderr


# ------------------------------------------------------------ graded by judges


def test_each_gold_value_is_credited_and_recall_says_over_how_many(typed: Typed) -> None:
    done = typed(*JUDGED, "-o", "graded.jsonl", "--json", "-q")
    assert done.returncode == 3, done.stderr
    assert counts(done.stdout) == [3, 1, 1, 0]
    everything, ethical, social = rows(done.stdout, "cqbench-extraction")[:3]
    # Credits 1, 0.5; 0 (nothing predicted); 0 (no answer at all): 1.5 of 4.
    assert everything["recall"]["value"] == pytest.approx(1.5 / 4)
    assert (everything["gold values"], everything["unreadable"]) == (4, 1)
    assert social["recall"]["value"] == pytest.approx(0.75)
    assert ethical["recall"]["value"] == 0.0
    graded = [json.loads(line) for line in (typed.folder / "graded.jsonl").open()]
    assert [line["judge"]["score"] for line in graded] == [0.75, 0.0, None]
    assert graded[0]["judge"]["steps"]["credits"] == [1.0, 0.5]
    again = typed("score", "cqbench", "graded.jsonl", "--json")
    assert rows(again.stdout, "cqbench-extraction")[0] == everything


def test_a_judge_without_a_reply_leaves_the_story_out_and_says_so(typed: Typed) -> None:
    typed.script("judge.yaml", [{"error": "bad-request"}])
    done = typed(*JUDGED, "-o", "graded.jsonl", "--json", "-q")
    assert done.returncode == 3
    everything = rows(done.stdout, "cqbench-extraction")[0]
    assert (everything["error"], everything["recall"]["n"]) == (1, 2)
    typed.script("judge.yaml", [{"error": "unreachable"}])
    gone = typed(*JUDGED, "--no-cache", "-q")
    assert (gone.returncode, gone.stdout) == (4, b"")


# ------------------------------------------------------------ tables


def test_a_table_that_does_not_say_how_many_were_asked_says_it_with_each_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(*columns: str) -> str:
        row = Row(("a",), {"asked": 3, "F1": Estimate(0.5, n=3, of=3)})
        print_results([Table("t", "Title", ("label",), columns, [row])])
        return capsys.readouterr().out

    assert "0.50, 3 of 3" in shown("F1")
    assert "3 of 3" not in shown("asked", "F1")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("score", "normad", "pred.jsonl", "absent.jsonl"), b"absent.jsonl"),
        (("score", "normad", "norms.jsonl"), b"holds no answers of `judge evaluate`"),
        (("score", "cqbench", "pred.jsonl", "gold.jsonl"), b"choose one with --condition"),
        ((*EXTRACTION, "-o", "out.jsonl"), b"name them with --judge-model"),
        (("score", "eecc", "pred.jsonl", ".", "--option", "rule=x"), b"--option rule"),
        ((*JUDGED, "--resume"), b"-o"),
    ],
)
def test_answers_that_cannot_be_scored_are_refused(typed: Typed, words: Any, told: bytes) -> None:
    done = typed(*words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr and done.stdout == b""
