"""`--setting paper`: each benchmark asked and measured as its paper does, all in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.papers.cqbench_speech import speech_table
from judge.papers.tasks import MeasuredAnswer
from judge.verdict import AnswerOutcome
from tests.cli.typed import Typed
from tests.loopback import Asked, Loopback, embeds, says
from tests.papers.eecc_folder import write_folder

NORM = {"country": "egypt", "value": "v", "rule_of_thumb": "Greet.", "story": "Ann came."}
EASY = {f"prompt_option_{letter}": f"Way {letter}" for letter in "abcd"}


def tables(done: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of the tables that were printed as JSON, by the table's name."""
    assert done.returncode in (0, 3), done.stderr
    return {table["name"]: table["rows"] for table in json.loads(done.stdout)}


def test_normad_reads_free_text_and_counts_what_it_cannot_read_as_neutral(typed: Typed) -> None:
    golds = ("yes", "no", "neutral", "neutral")
    typed.write("n.jsonl", [{"id": str(n), **NORM, "label": gold} for n, gold in enumerate(golds)])
    said = ("Yes, it is.", "It is hard to say.", "Neither.", "yes or no")
    rules = [
        {"when": {"rubric": "normad_neither", "id": f"{n}/none"}, "reply": text}
        for n, text in enumerate(said)
    ]
    typed.script("model.yaml", rules)
    run = ("evaluate", "normad", "n.jsonl", "-m", "scripted:model.yaml", "--condition", "none")
    asked = typed(*run, "--setting", "paper", "-o", "a.jsonl", "-q")
    assert asked.returncode == 3, "two answers could not be read"
    lines = [json.loads(line)["judge"] for line in typed.read("a.jsonl").splitlines()]
    assert [line["outcome"] for line in lines] == ["answered", "unreadable"] * 2
    assert "hard to say" in lines[1]["reason"] and lines[0]["setting"] == "paper"
    (row,) = tables(typed("score", "normad", "a.jsonl", "--json"))["normad-contexts"]
    assert (row["asked"], row["unreadable"]) == (4, 2)
    # Neutral for the second, wrongly, and for the fourth, rightly.
    assert row["accuracy"]["value"] == 0.75
    # Precision: yes 1 of 1, no never answered, neutral 2 of 3. Recall: 1, 0, 1.
    assert row["precision"]["value"] == pytest.approx(5 / 9, abs=1e-6)
    assert row["recall"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    plain = [{**json.loads(line)} for line in typed.read("a.jsonl").splitlines()]
    for line in plain:
        line["judge"].pop("setting")
    typed.write("plain.jsonl", plain)
    (row,) = tables(typed("score", "normad", "plain.jsonl", "--json"))["normad-contexts"]
    assert row["accuracy"]["value"] == 0.5, "elsewhere it counts as not right"
    (row,) = tables(typed("score", "normad", "plain.jsonl", "--setting", "paper", "--json"))[
        "normad-contexts"
    ]
    assert row["accuracy"]["value"] == 0.75


@pytest.mark.slow
def test_a_model_that_always_answers_neutral_has_the_papers_row(typed: Typed) -> None:
    """Appendix C: precision 0.10, recall 0.33, F1 0.16, of 943, 875 and 815 stories (table 2)."""
    golds = ("yes",) * 943 + ("no",) * 875 + ("neutral",) * 815
    typed.write("n.jsonl", [{"id": str(n), **NORM, "label": gold} for n, gold in enumerate(golds)])
    typed.write("a.jsonl", [{"id": str(n), "answer": "neutral"} for n in range(len(golds))])
    done = typed("score", "normad", "a.jsonl", "n.jsonl", "--condition", "none", "--json")
    (row,) = tables(done)["normad-contexts"]
    found = {name: round(row[name]["value"], 2) for name in ("precision", "recall", "F1")}
    assert found == {"precision": 0.10, "recall": 0.33, "F1": 0.16}
    assert row["accuracy"]["value"] == pytest.approx(0.309533, abs=1e-6)


def test_culturalbench_takes_two_tokens_that_hold_the_label_alone(typed: Typed) -> None:
    row = {**EASY, "prompt_question": "Q?", "answer": "B", "country": "Chile"}
    typed.write("easy.jsonl", [{**row, "question_idx": str(n)} for n in range(4)])
    said = ("B", "(b)", "B Way", "The answer")
    rules: list[dict[str, Any]] = [
        {"when": {"rubric": "culturalbench_easy", "id": f"{n}/easy"}, "reply": text}
        for n, text in enumerate(said)
    ]
    truth = {"when": {"rubric": "culturalbench_hard"}}
    rules += [
        {"when": {**truth["when"], "contains": "Way b"}, "reply": "True."},
        {**truth, "reply": "false"},
    ]
    typed.script("model.yaml", rules)
    run = ("evaluate", "culturalbench", "easy.jsonl", "-m", "scripted:model.yaml")
    done = typed(*run, "--setting", "paper", "-o", "a.jsonl", "--json", "-q")
    easy, hard = tables(done)["culturalbench-setups"]
    assert (easy["answered"], easy["unreadable"], easy["accuracy"]["value"]) == (2, 2, 0.5)
    assert hard["accuracy"]["value"] == 1.0
    first = json.loads(typed.read("a.jsonl").splitlines()[0])
    assert first["order"] == list("ABCD")


def test_the_guesser_takes_the_option_nearest_to_the_country(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CulturalBench 5.1, over /embeddings: no question is sent, and no reply is asked for."""
    vectors = {"Chile": [1.0, 0.0], "Way a": [0.0, 1.0], "Way b": [3.0, 4.0], "Way c": [8.0, 6.0]}

    def script(asked: Asked) -> Any:
        assert asked.prompt in (*vectors, "Way d"), asked.prompt
        return embeds(vectors.get(asked.prompt, [-1.0, 0.0]))

    row = {**EASY, "prompt_question": "Q?", "country": "Chile"}
    golds = enumerate("BCC")
    typed.write("e.jsonl", [{**row, "question_idx": str(n), "answer": gold} for n, gold in golds])
    with Loopback(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run = ("evaluate", "culturalbench", "e.jsonl", "-m", "openai:text-embedding-3-small")
        done = typed(*run, "--setting", "guesser", "-o", "a.jsonl", "--json", "-q")
    found = tables(done)
    (easy,) = found["culturalbench-setups"]
    assert easy["accuracy"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    steps = [json.loads(line)["judge"]["steps"] for line in typed.read("a.jsonl").splitlines()]
    assert steps[0]["similarities"] == {"A": 0.0, "B": 0.6, "C": 0.8, "D": -1.0}
    (similar,) = found["culturalbench-guesser"]
    assert similar["right option"]["value"] == pytest.approx(2.2 / 3, abs=1e-6)
    assert similar["mean of the four"]["value"] == pytest.approx(0.1, abs=1e-6)
    # Ranks 4, 5.5, 5.5 and 2, 2, 2: H = 12 / 42 * (15^2 + 6^2) / 3 - 21 = 3.857, / (1 - 30 / 210).
    assert similar["H"] == 4.5 and similar["p"] == pytest.approx(0.0339, abs=1e-4)


def test_repaired_speech_is_less_like_its_value(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CQ-Bench's table 3, whose similarity goes over /embeddings."""
    value = "Songs are good--Agree"
    vectors = {value: [1.0, 0.0], "I like it so": [3.0, 4.0], "We sang and sang": [0.0, 2.0]}
    vectors |= {"Sing!": [0.0, 1.0], "Mum sang": [4.0, 3.0]}
    edit = {"round": 1, "check": "implicitness", "model": "m", "values": [value]}
    edits = [
        {**edit, "before": "I like it so", "after": "We sang and sang"},
        {**edit, "before": "Sing!", "after": "Mum sang"},
        {**edit, "check": "consistency", "before": "not", "after": "counted"},
    ]
    judged = {"verdict": "pass", "workflow": "story", "edits": edits}
    story = {"id": "s1", "story": "Ann: I like it.", "values": [value], "setting": "social"}
    typed.write("out.jsonl", [{**story, "judge": judged}])
    with Loopback(lambda asked: embeds(vectors[asked.prompt])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run = ("evaluate", "cqbench", "out.jsonl", "-m", "openai:text-embedding-3-small")
        done = typed(*run, "--setting", "speech", "-o", "a.jsonl", "--json", "-q")
    assert done.returncode == 0, done.stderr
    original, refined = tables(done)["cqbench-speech"]
    # 0.6 and 0; 0 and 0.8.
    assert (original["similarity"], refined["similarity"]) == ("0.300", "0.400")
    assert (original["words"], refined["words"]) == ("2.500", "3.000")
    lines = [json.loads(line)["judge"] for line in typed.read("a.jsonl").splitlines()]
    assert [line["verdict"] for line in lines] == ["pass", "fail"], "further away is right"


def test_speech_of_a_script_without_spaces_is_counted_by_letters() -> None:
    """Of five letters, which are two, there are three runs of three, two of them different."""
    fields = dict.fromkeys(("original", "refined"), "\u5531\u5440\u5531\u5440\u5531")
    fields |= {"category": "social", "condition": "speech"}
    answer = MeasuredAnswer(fields, AnswerOutcome.ANSWERED, "original")
    cells = speech_table([answer]).rows[0].cells
    assert [str(cells[name]) for name in ("words", "distinct-3")] == ["5.000", "0.400"]


def test_cqbench_selection_has_the_scripts_score(typed: Typed) -> None:
    """Harmonic mean of mean precision and mean recall, of what can be read, as the scripts."""
    options = [f"s{n}--agree" for n in range(15)]
    rows = [
        {"story": f"Story {n}.", "options": options, "values": options[:size]}
        for n, size in enumerate((2, 4, 2))
    ]
    typed.write("q.jsonl", rows)
    typed.write(
        "a.jsonl",
        [
            {"id": "q.jsonl#1/selection", "answer": options[:1]},
            {"id": "q.jsonl#2/selection", "answer": [options[0], *options[5:8]]},
            {"id": "q.jsonl#3/selection", "answer": None},
        ],
    )
    run = ("score", "cqbench", "a.jsonl", "q.jsonl", "--condition", "selection", "--json")
    (row,) = tables(typed(*run))["cqbench"]
    # F1 of the items: 2/3, 1/4, and 0 for what cannot be read.
    assert row["score"]["value"] == pytest.approx((2 / 3 + 1 / 4) / 3, abs=1e-6)
    (row,) = tables(typed(*run, "--setting", "paper"))["cqbench"]
    precision, recall = (1 + 1 / 4) / 2, (1 / 2 + 1 / 4) / 2
    harmonic = 2 * precision * recall / (precision + recall)
    assert row["score"]["value"] == pytest.approx(harmonic, abs=1e-6)
    assert (row["score"]["n"], row["score"]["of"]) == (2, 3)


def test_attitudes_with_merged_and_with_two_options_and_with_an_example(typed: Typed) -> None:
    """CQ-Bench, tables 1 and 2, B.1 and 3.4: the prompts and the right answers."""
    stances = ["Agree", "Neither agree nor disagree", "Disagree"]
    asked = [
        ("S1", ["Very often", "Not often", "Not at all often"], "Not at all often"),
        (
            "S2",
            ["Definitely should not", "Probably should not", "Probably should"],
            "Probably should",
        ),
        ("S3", stances, "Neither agree nor disagree"),
        ("S4", stances, "Disagree"),
        ("S5", ["Quite good", "Very good"], "Very good"),
        ("S6", ["Disagree", "Neither"], "Disagree"),
        ("S7", ["Very", "Rather", "Not very", "Not at all"], "Rather"),
        ("S8", ["Trust", "Do not trust very much", "Do not trust at all"], "Do not trust at all"),
        ("S9", ["Very much", "Not much", "Not at all"], "Very much"),
    ]
    questions = [{"value": v, "options": o, "gold label": g} for v, o, g in asked]
    typed.write("q.jsonl", [{"id": "s", "story": "Story.", "questions": questions}])
    reply = '{"answer": "%s"}'
    script = [
        {"when": {"contains": "B. not often"}, "reply": reply % "B"},
        {"when": {"contains": "A. should not"}, "reply": reply % "B"},
        {"when": {"contains": "B. do not trust"}, "reply": reply % "B"},
        {"when": {"contains": "A. Agree\nB. Disagree"}, "reply": reply % "B"},
        *(
            {"when": {"contains": f"A. {first}"}, "reply": reply % "A"}
            for first in ("Quite", "Dis")
        ),
        {"when": {"contains": "A worked example", "lacks": "S3"}, "reply": reply % "C"},
    ]
    model = typed.script("m.yaml", [*script, {"reply": reply % "A"}])
    run = ("evaluate", "cqbench", "q.jsonl", "-m", model, "--condition", "attitude", "-q")
    found = {}
    for setting in ("merged", "binary", "one-shot"):
        assert typed(*run, "--setting", setting, "-o", f"{setting}.jsonl").returncode == 0
        answers = map(json.loads, typed.read(f"{setting}.jsonl").splitlines())
        found[setting] = {
            a["statement"]: (a["judge"]["answer"], a["judge"]["score"]) for a in answers
        }
    assert found["merged"]["S1"] == ("not often", 1) and found["merged"]["S2"] == ("should", 1)
    assert found["merged"]["S4"] == ("agree", 0) and found["merged"]["S8"] == ("do not trust", 1)
    assert found["merged"]["S9"] == ("much", 1)
    assert found["binary"]["S4"] == ("Disagree", 1)
    lost = found["one-shot"].keys() - found["merged"].keys()
    assert lost == {"S5", "S7"}, "one option is left, or an empty one"
    assert {"S3", "S6"} == found["one-shot"].keys() - found["binary"].keys()
    assert found["one-shot"]["S4"] == ("Disagree", 1) and found["one-shot"]["S3"] == ("Agree", 0)


def test_what_is_sent_in_the_papers_setting(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tokens at most, no form of reply; the plan counts as many calls."""
    row = {**EASY, "prompt_question": "Q?", "answer": "B", "country": "Chile"}
    typed.write("easy.jsonl", [{**row, "question_idx": "0"}])
    run = ("evaluate", "culturalbench", "easy.jsonl", "-m", "openai:m", "--setting", "paper")
    bodies: list[Any] = []

    def script(asked: Asked) -> Any:
        bodies.append(asked.body)
        return says("B" if "A. Way a" in asked.prompt else "True")

    with Loopback(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert typed(*run, "-o", "a.jsonl", "-q").returncode == 0
        folder = str(write_folder(typed.folder / "eecc", ["German"]))
        free = ("evaluate", "eecc", folder, "-m", "openai:m", "--condition", "qa", "-q")
        assert typed(*free, "-o", "e.jsonl").returncode == 0
    assert not any(asked.probe for asked in server.calls), "a model need not write JSON"
    assert len(bodies) == 10 and not any("response_format" in body for body in bodies)
    bodies = bodies[:5]
    assert {body.get("max_completion_tokens", body.get("max_tokens")) for body in bodies} == {2}
    assert "5 calls" in " ".join(typed.text(*run, "--dry-run")[1].split())
    guess = (*run[:-1], "guesser", "--dry-run")
    assert "5 calls" in " ".join(typed.text(*guess)[1].split())
