"""`judge score` as a user types it: existing answers compared with the right ones."""

from __future__ import annotations

import csv
import errno
import json
from typing import Any

import pytest

from judge.cli.tables import print_results
from judge.report.table import Table, TableRow
from judge.stats.intervals import Estimate
from tests.cli.typed import Typed

NORM = {"country": "egypt", "value": "v", "rule_of_thumb": "Greet.", "story": "Ann came."}
NORMS = [{"id": str(n), **NORM, "label": label} for n, label in enumerate(("yes", "no", "neutral"))]


@pytest.fixture(autouse=True)
def files(typed: Typed) -> None:
    typed.write("norms.jsonl", NORMS)
    answers = [("0", "yes"), ("1", "yes"), ("9", "no")]
    typed.write("a.jsonl", [{"id": id, "answer": answer} for id, answer in answers])


def test_answers_made_elsewhere_are_scored_by_the_benchmarks_rule(typed: Typed) -> None:
    done = typed("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "country", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)[0]["rows"]
    # One right, one wrong, and one without an answer.
    assert (row["asked"], row["answered"], row["unreadable"]) == (3, 2, 1)
    assert row["accuracy"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert b"1 gold item without an answer, counted as unreadable: 2/country\n" in done.stderr
    assert b"1 answer without a gold item, left out: 9\n" in done.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"answer": "no"}, "line 4: field 'id' is missing"),
        ({"id": "2"}, "line 4: field 'answer' is missing"),
        ({"id": "1", "answer": "no"}, "line 4: an earlier line has id 1"),
        ("{torn", "line 4: not JSON"),
    ],
)
def test_a_line_at_fault_is_named_and_nothing_is_scored(typed: Typed, line: Any, told: str) -> None:
    with (typed.folder / "a.jsonl").open("a") as file:
        file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    done = typed("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "none")
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"a.jsonl, {told}" in done.stderr.decode().replace("'1'", "1")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("a.jsonl", "absent.jsonl"), "absent.jsonl"),
        (("norms.jsonl",), "norms.jsonl, line 1: field 'answer' is missing: add --map answer"),
        (("a.jsonl",), "holds no answers of `judge evaluate`: name the benchmark's files"),
        (
            ("a.jsonl", "norms.jsonl"),
            "a.jsonl ('0', ...) and norms.jsonl ('0/none', ...) have no id in common: if ids are "
            "those of rows, add one --condition (none, country, country+value, "
            "rule-of-thumb)",
        ),
    ],
)
def test_answers_that_cannot_be_scored_are_refused(typed: Typed, words: Any, told: str) -> None:
    done = typed("score", "normad", *words)
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert told in done.stderr.decode()


def test_a_table_that_does_not_say_how_many_were_asked_says_it_with_each_number(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def shown(*columns: str) -> str:
        cells = {"asked": 3, "F1": Estimate(0.5, n=3, of=3)}
        row = TableRow(("a",), {name: cells[name] for name in columns})
        print_results([Table("t", "Title", ("label",), [row])], all_tables=False)
        return capfd.readouterr().out

    assert "0.50, 3 of 3" in shown("F1")
    assert "3 of 3" not in shown("asked", "F1")


def test_answers_in_columns_of_other_names(typed: Typed) -> None:
    typed.write("b.jsonl", [{"key": str(n), "said": {"label": "yes"}} for n in range(3)])
    words = ("score", "normad", "b.jsonl", "norms.jsonl", "--condition", "country", "--json")
    done = typed(*words, "--map", "id=key,answer=said.label")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows"][0]["answered"] == 3
    done = typed(*words, "--map", "id=key,answer=says")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"line 1: --map answer=says: the record has no field 'says'" in done.stderr


def test_people_and_two_models_in_one_table(typed: Typed) -> None:
    """Answers made elsewhere become runs."""
    told = {"people": ("yes", "no", "neutral"), "model": ("yes",) * 3, "other": ("yes", "yes")}
    runs = [f"{name}.scored.jsonl" for name in told]
    for (name, answers), run in zip(told.items(), runs, strict=True):
        typed.write(name, [{"id": str(n), "answer": one} for n, one in enumerate(answers)])
        words = ("score", "normad", name, "norms.jsonl", "--condition", "country", "-o", run)
        assert typed(*words).returncode == 0
    code, _, message = typed.text(*words)
    assert code == 2 and "other.scored.jsonl exists" in message
    code, out, message = typed.text("compare", *runs, "--json")
    assert code == 0, message
    found = json.loads(out)
    ((row,),) = (table["rows"] for table in found["tables"])
    assert [round(row[name]["value"], 3) for name in "ABC"] == [1.0, 0.333, 0.333]
    assert found["runs"] == dict(zip("ABC", runs, strict=True))
    code, out, _ = typed.text("compare", *runs)
    assert "A: people.scored.jsonl" in out and "3 items in all runs; 3 in A, 3 in B, 3 in C" in out
    # What was written is an evaluation of its own, and scores as it did.
    done = typed("score", "normad", "people.scored.jsonl", "--json")
    assert json.loads(done.stdout)[0]["rows"][0]["accuracy"]["value"] == 1.0


def test_a_line_of_judge_evaluate_that_lost_its_score_is_scored_anew(typed: Typed) -> None:
    words = ("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "none", "-o", "o")
    assert typed(*words).returncode == 0
    kept = [json.loads(line) for line in typed.read("o").splitlines()]
    for line in kept:
        del line["judge"]["score"]
    typed.write("o", kept)
    (row,) = json.loads(typed("score", "normad", "o", "--json").stdout)[0]["rows"]
    assert row["accuracy"]["value"] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("judged", [{}, {"judge": {"verdict": "pass", "workflow": "questions"}}])
def test_peoples_majorities_are_their_answers_not_the_right_ones_of_the_records(
    typed: Typed, judged: dict[str, Any]
) -> None:
    options = {f"prompt_option_{letter}": letter * 2 for letter in "abcd"}
    row = {"prompt_question": "Which?", **options, "answer": "A", **judged}
    typed.write("easy.jsonl", [{"id": n, "question_idx": n, **row} for n in "12"])
    votes = [("1", "A"), ("2", "B")]
    typed.write(
        "votes.jsonl",
        [
            {"item": id, "check": "right_options", "annotator": name, "label": letter}
            for id, letter in votes
            for name in ("ann", "bo", "cy")
        ],
    )
    out = ("--records", "easy.jsonl", "-o", "majority.jsonl")
    assert typed("agreement", "votes.jsonl", *out).returncode == 0
    words = ("score", "culturalbench", "majority.jsonl", "easy.jsonl", "--condition", "easy")
    done = typed(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["rows"][0]["accuracy"]["value"] == 0.5
    named = typed(*words, "--json", "--map", "answer=answer")
    assert json.loads(named.stdout)[0]["rows"][0]["accuracy"]["value"] == 1
    first, second = map(json.loads, typed.read("majority.jsonl").splitlines())
    typed.write("majority.jsonl", [first, {**second, "labels": {"x": "a", "y": "b"}}])
    code, _, told = typed.text(*words)
    assert code == 2 and "line 2: field 'labels' has majorities of 'x', 'y'" in told


@pytest.mark.parametrize("given", [("Yes.", " NO ", "Neutral"), (True, "false", "neutral\u3002")])
def test_an_answer_has_one_spelling(typed: Typed, given: tuple[Any, ...]) -> None:
    typed.write("b.jsonl", [{"id": str(n), "answer": one} for n, one in enumerate(given)])
    words = ("score", "normad", "b.jsonl", "norms.jsonl", "--condition", "country")
    code, out, told = typed.text(*words, "--json", "-o", "o")
    (row,) = json.loads(out)[0]["rows"]
    assert (code, told) == (0, "")
    assert (row["answered"], row["accuracy"]["value"], row["F1"]["value"]) == (3, 1.0, 1.0)
    # The line has the benchmark's own spelling.
    lines = map(json.loads, typed.read("o").splitlines())
    assert [line["judge"]["answer"] for line in lines] == ["yes", "no", "neutral"]


def test_answers_that_cannot_be_read_are_named_and_end_with_3(typed: Typed) -> None:
    given = ("yes, because", "no", None)
    typed.write("b.jsonl", [{"id": str(n), "answer": one} for n, one in enumerate(given)])
    words = ("score", "normad", "b.jsonl", "norms.jsonl", "--condition", "country")
    code, _, told = typed.text(*words)
    assert code == 3
    assert "judge: 0/country: 'yes, because' is none of yes, no, neutral\n" in told
    assert told.endswith("judge: 1 answer could not be read\n")
    # An answer that is null is none; where all are, nothing was scored.
    typed.write("b.jsonl", [{"id": "0", "answer": None}])
    code, _, told = typed.text(*words)
    assert code == 3 and "no answer could be read: nothing was scored" in told


def test_lines_of_an_evaluation_are_scored_in_the_chosen_conditions_alone(typed: Typed) -> None:
    answers = {"0/none": "yes", "1/none": "yes", "0/country": "yes", "1/country": "no"}
    typed.write("b.jsonl", [{"id": id, "answer": answer} for id, answer in answers.items()])
    typed.write("n.jsonl", NORMS[:2])
    assert typed("score", "normad", "b.jsonl", "n.jsonl", "-o", "ev.jsonl").returncode == 0
    words = ("score", "normad", "ev.jsonl", "--json")
    for conditions, accuracies in (
        ((), {"none": 0.5, "country": 1.0}),
        (("country",), {"country": 1.0}),
        (("country+value", "none"), {"none": 0.5}),
    ):
        code, out, told = typed.text(*words, *(w for c in conditions for w in ("--condition", c)))
        rows = json.loads(out)[0]["rows"]
        assert (code, told) == (0, "")
        assert {row["context"]: row["accuracy"]["value"] for row in rows} == accuracies
    code, out, told = typed.text(*words, "--condition", "rule-of-thumb")
    message = "ev.jsonl: no answer of condition rule-of-thumb: there are none, country\n"
    assert (code, out) == (2, "") and message in told


def test_what_stands_for_no_answer_is_none(typed: Typed) -> None:
    """In a table as in JSON, where it is null."""
    (typed.folder / "b.csv").write_text("id,answer\n0,yes\n1,N/A\n2,\n")
    words = ("score", "normad", "b.csv", "norms.jsonl", "--condition", "country")
    code, _, told = typed.text(*words)
    assert code == 0
    assert told == (
        "judge: no label (none, NULL, NA, - and the like): 2 answers, counted as unreadable\n"
    )


def test_an_item_without_an_answer_is_a_miss_in_every_setting(typed: Typed) -> None:
    """Also where an answer that cannot be read counts as neutral, and in the lines written."""
    typed.write("n.jsonl", [{"id": str(n), **NORM, "label": "neutral"} for n in range(4)])
    given = [{"id": "0", "answer": "yes"}, {"id": "1", "answer": "N/A"}]
    typed.write("b.jsonl", given)
    paper = ("--condition", "country", "--setting", "paper", "--json")
    code, out, told = typed.text("score", "normad", "b.jsonl", "n.jsonl", *paper, "-o", "o")
    (row,) = json.loads(out)[0]["rows"]
    assert (code, row["unreadable"], row["accuracy"]["value"]) == (0, 3, 0.25)
    lost = "2 gold items without an answer, counted as unreadable: 2/country, 3/country\n"
    assert lost in told and "- and the like): 1 answer, counted as unreadable\n" in told
    assert typed.text("score", "normad", "o", *paper) == (code, out, told)
    typed.write("b.jsonl", [*given, {"id": "1/country", "answer": "neutral"}])
    code, out, told = typed.text("score", "normad", "b.jsonl", "n.jsonl", *paper)
    assert (code, out) == (2, "") and "b.jsonl: ids '1' and '1/country' name the same item" in told


def test_hards_four_truth_values_in_a_table(typed: Typed) -> None:
    options = {f"prompt_option_{letter}": letter for letter in "abcd"}
    question = {"question_idx": "7", "prompt_question": "Which?", **options, "answer": "b."}
    typed.write("easy.jsonl", [question])
    text = '"id","answer"\n"7/hard","[\'FALSE\', True, \'no.\', False]"\n"7/easy","\uff22"\n'
    (typed.folder / "said.csv").write_text(text)
    code, out, told = typed.text("score", "culturalbench", "said.csv", "easy.jsonl", "--json")
    assert (code, told) == (0, "")
    assert [row["accuracy"]["value"] for row in json.loads(out)[0]["rows"]] == [1.0, 1.0]


@pytest.mark.slow
def test_normads_released_answers_are_scored_as_their_notebooks_score_them(typed: Typed) -> None:
    """GPT-4 with the rule: 0.876187 of 2,633 rows, as printed there, from 2,307 right answers."""
    labels = ("yes",) * 943 + ("no",) * 875 + ("neutral",) * 815
    spelt = {"yes": "Yes", "no": "no.", "neutral": "Neither"}
    rows = [
        {
            "ID": str(number),
            "Country": "egypt",
            "Value": "v",
            "Rule-of-Thumb": "Greet.",
            "Story": f"Ann came {number}.",
            "Gold Label": label,
            "prediction_label_temp0.0": spelt[label] if number < 2307 else "yes or no",
        }
        for number, label in enumerate(labels)
    ]
    rows[0]["prediction_label_temp0.0"] = "answer: yes"
    with (typed.folder / "etiquette_rot_conditioned_gpt-4.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0]])
        table.writeheader()
        table.writerows(rows)
    done = typed("score", "normad", "etiquette_rot_conditioned_gpt-4.csv", "--json", "-o", "o")
    assert done.returncode == 3, done.stderr
    (row,) = json.loads(done.stdout)[0]["rows"]
    assert (row["context"], row["answered"], row["unreadable"]) == ("rule-of-thumb", 2307, 326)
    assert row["accuracy"]["value"] == pytest.approx(0.876187, abs=1e-6)
    assert b"'yes or no' is none of yes, no, neutral" in done.stderr
    # What it wrote is a run like any other, in another context where one is named.
    assert typed("score", "normad", "o", "--json").stdout == done.stdout
    (typed.folder / "etiquette_rot_conditioned_gpt-4.csv").rename(typed.folder / "gpt-4.csv")
    done = typed("score", "normad", "gpt-4.csv")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"gpt-4.csv: name the condition of these answers: --condition NAME" in done.stderr
    done = typed("score", "normad", "gpt-4.csv", "--condition", "country+value", "--json")
    assert json.loads(done.stdout)[0]["rows"][0]["context"] == "country+value"


def test_output_replaces_no_input_and_is_written_as_a_whole(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("score", "normad", "a.jsonl", "norms.jsonl", "--condition", "country", "-o")
    before = typed.read("a.jsonl")
    (typed.folder / "folder").mkdir()
    for out, told in (
        ("a.jsonl", "-o a.jsonl is the input: name another file"),
        ("norms.jsonl", "-o norms.jsonl is the input: name another file"),
        ("folder", "-o folder: is a folder: name a file"),
        ("no/a.jsonl", "-o no/a.jsonl: cannot be written; name one in a folder that is there"),
    ):
        code, out, said = typed.text(*words, out, "--overwrite")
        assert (code, out) == (2, "") and told in said
    assert typed.read("a.jsonl") == before
    (typed.folder / "null").symlink_to("/dev/null")
    assert typed(*words, "null").returncode == 0
    for name in ("1.jsonl", "2.jsonl"):
        assert typed(*words, name).returncode == 0
    figure = ("compare", "1.jsonl", "2.jsonl", "--figure", "f.svg", "--overwrite")
    assert typed(*figure).returncode == 0
    drawn = typed.read("f.svg")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for again, name in (((*words, "1.jsonl", "--overwrite"), "1.jsonl"), (figure, "f.svg")):
        code, _, said = typed.text(*again)
        told = f"judge: {name} cannot be written: No space left on device; make room there\n"
        assert (code, said) == (4, told)
    assert typed.read("f.svg") == drawn and typed.read("1.jsonl") == typed.read("2.jsonl")
