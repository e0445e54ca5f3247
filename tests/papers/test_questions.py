"""`judge generate questions`: CulturalBench's questions, from scenarios to Hard."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from judge.papers.culturalbench import benchmark
from judge.papers.questions import STRATEGIES
from judge.records.answers import OPT_OUTS
from judge.stats.majority import MajorityRule, majorities
from tests.cli.conftest import lines
from tests.cli.typed import Typed

from .examinee import asked, items

SCENARIO = {"id": "s1", "country": "Singapore", "scenario": "A packet of tissues keeps a seat."}
GO = ("generate", "questions", "s.jsonl", "-m", "scripted:w.yaml", "-o", "o.jsonl")


def question(text: str, answer: str = "A", a: str = "Tissues") -> dict[str, str]:
    options = dict(zip("abcd", (a, "A bag", "A book", "A hat"), strict=True))
    named = {f"prompt_option_{letter}": option for letter, option in options.items()}
    return {"prompt_question": text, **named, "answer": answer}


def said(rubric: str, reply: Any, **when: Any) -> dict[str, Any]:
    return {"when": {"rubric": rubric, **when}, "reply": reply}


def answer(text: str) -> dict[str, Any]:
    return {"reason": "-", "answer": text, "quote": None}


REST = [
    said("question_writing", question("How is a seat kept?")),
    said("question_hints", dict.fromkeys(STRATEGIES, "another word")),
    said("verifier", answer("A")),
    said("regional", answer("yes")),
]


def test_a_question_is_revised_by_one_strategy_after_another_until_the_verifier_fails(
    typed: Typed,
) -> None:
    typed.write("s.jsonl", [SCENARIO])
    revisions = [
        said(
            "question_revision",
            question(f"Turn {n + 1}: how?", "B" if n == 2 else "A"),
            round=n + 2,
        )
        for n in range(4)
    ]
    typed.script("w.yaml", [*revisions, *REST])
    typed.script("v.yaml", [said("verifier", answer("A"))])
    done = typed(*GO, "--step", "verifier=scripted:v.yaml")
    assert done.returncode == 0, done.stderr
    (kept,) = lines(typed.read("o.jsonl"))
    assert (kept["prompt_question"], kept["answer"]) == ("Turn 3: how?", "B")
    assert kept["fooled"] is True and kept["verifier"]["answer"] == "A"
    assert len({*kept["revisions"]}) == 3 and {*kept["revisions"]} <= {*STRATEGIES}
    # A verifier that is never wrong ends it after so many rounds; the question says so.
    typed.script("w.yaml", [said("question_revision", question("How, then?")), *REST])
    assert typed(*GO, "--rounds", "8", "--overwrite").returncode == 0
    (kept,) = lines(typed.read("o.jsonl"))
    assert kept["fooled"] is False and sorted(kept["revisions"]) == sorted(STRATEGIES)


def test_each_revision_is_asked_for_in_the_words_of_its_strategy(typed: Typed) -> None:
    typed.write("s.jsonl", [SCENARIO])
    by_words = [
        said("question_revision", question(f"{name}?", "B"), contains=text)
        for name, text in STRATEGIES.items()
    ]
    typed.script("w.yaml", [*by_words, *REST])
    typed(*GO)
    (kept,) = lines(typed.read("o.jsonl"))
    assert kept["revisions"] == [kept["prompt_question"].rstrip("?")]


def test_a_verifier_read_by_its_first_token_says_how_likely_the_right_option_is(
    typed: Typed,
) -> None:
    typed.write("s.jsonl", [SCENARIO])
    typed.script("w.yaml", REST)
    words = {"A": 0.2, "B": 0.7, "C": 0.1}
    typed.script("v.yaml", [{"when": {"rubric": "verifier"}, "words": words}], method="logprobs")
    done = typed(*GO, "--step", "verifier=scripted:v.yaml")
    assert done.returncode == 0, done.stderr
    (kept,) = lines(typed.read("o.jsonl"))
    assert kept["verifier"] == {"answer": "B", "probability_of_right": 0.2}
    assert kept["fooled"] is True and "revisions" not in kept


def test_what_cannot_be_asked_or_is_about_no_region_is_told(typed: Typed) -> None:
    names = ("Kenya", "Nowhere", "Peru", "Chile")
    typed.write("s.jsonl", [{**SCENARIO, "id": name, "country": name} for name in names])
    same = question("What?", a="A hat")
    typed.script(
        "w.yaml",
        [
            said("question_writing", same, contains="Kenya"),
            said("regional", answer("no"), contains="Nowhere"),
            # A revision without four different options leaves the question as it was.
            said("question_revision", same, contains="Chile"),
            said("question_revision", question("How?", "B")),
            *REST,
        ],
    )
    done = typed(*GO)
    assert done.returncode == 0, done.stderr
    lost = lines(typed.read("o.jsonl.discarded.jsonl"))
    told = [(o["country"], *map(o["judge"]["generated"].get, ("stage", "cause"))) for o in lost]
    assert told == [("Kenya", "question_writing", "invalid"), ("Nowhere", "regional", "fail")]
    peru, chile = lines(typed.read("o.jsonl"))
    assert (peru["prompt_question"], chile["prompt_question"]) == ("How?", "How is a seat kept?")
    assert chile["fooled"] is False and "revisions" not in chile
    typed.write("s.jsonl", [{"country": "Kenya"}])
    code, _, err = typed.text(*GO, "--overwrite")
    assert code == 3 and "line 1: field 'scenario' is missing" in err


def test_a_persons_turn_by_file(typed: Typed) -> None:
    """Verified and hinted at; edited by the person; verified again, as it then stands."""
    # In a table, a scenario has empty cells where a question has its text.
    blank = dict.fromkeys(question(""), "")
    typed.write("s.jsonl", [SCENARIO, {**SCENARIO, **blank, "id": "s2", "country": "Peru"}])
    edited = said("verifier", answer("C"), contains="after dark")
    typed.script("w.yaml", [edited, *REST])
    turn = ("--option", "turn=person")
    assert typed(*GO, *turn).returncode == 0
    first, second = lines(typed.read("o.jsonl"))
    assert first["fooled"] is False and first["hints"].keys() == STRATEGIES.keys()
    first["prompt_question"] = "How is a seat kept after dark?"
    typed.write("todo.jsonl", [first, second])
    again = ("generate", "questions", "todo.jsonl", "-m", "scripted:w.yaml", "-o", "p.jsonl", *turn)
    assert typed(*again).returncode == 0
    fooled, other = lines(typed.read("p.jsonl"))
    assert fooled["prompt_question"] == "How is a seat kept after dark?"
    assert (fooled["fooled"], fooled["verifier"]["answer"]) == (True, "C")
    assert "hints" not in fooled and other["fooled"] is False and other["hints"]
    assert fooled["lineage"]["parent"] == first["id"]
    code, _, err = typed.text(*again, "--overwrite", "--option", "turn=mine")
    assert code == 2 and "turn is given twice" in err
    for torn in ("turn", "turn=", "=person"):
        code, _, err = typed.text(*GO, "--option", torn)
        assert code == 2 and f"--option {torn}: write NAME=VALUE" in err
    code, _, err = typed.text(*again[:-1], "turn=mine", "--overwrite")
    assert code == 2 and "turn=mine: there are writer and person" in err


def voted(n: int) -> list[set[str]]:
    """Five people's votes on question n of 2,486: one answer of four of them (1,141 questions), two
    (86), a bare majority, or four who do not know (1,259)."""
    if n < 1141:
        return [{"b"}, {"b"}, {"b"}, {"b", "c"}, {"c"}]
    if n < 1141 + 86:
        return [{"a", "d"}] * 4 + [{"b"}]
    return [{"c"}, {"c"}, {"c"}, {"a"}, {"b"}] if n % 2 else [{OPT_OUTS[0]}] * 4 + [{"a"}]


@pytest.mark.slow
def test_the_papers_counts_from_scenarios_to_hard(typed: Typed) -> None:
    """2,600 questions, 2,486 about a region, 1,227 on which four of five people agree: 1,141 with
    one answer and 86 with several; 4,908 of Hard (3.1 to 3.3)."""
    typed.write(
        "s.jsonl",
        [
            {**SCENARIO, "id": f"s{n}", "country": "Nowhere" if n < 114 else "Peru"}
            for n in range(2600)
        ],
    )
    typed.script(
        "w.yaml",
        [
            said("regional", answer("no"), contains="Nowhere"),
            said("question_revision", question("How?", "B")),
            *REST,
        ],
    )
    assert typed(*GO, "--summary", "sums.json").returncode == 0
    funnel = json.loads(typed.read("sums.json"))["funnel"]
    stages = {one["stage"]: (one["in"], one["out"]) for one in funnel["stages"]}
    assert stages["question_writing"] == (2600, 2600) and stages["regional"] == (2600, 2486)
    made = lines(typed.read("o.jsonl"))
    rule = MajorityRule.parse("4/5")
    labelled = []
    for n, one in enumerate(made):
        winners = [text for text in majorities(voted(n), rule) if text not in OPT_OUTS]
        labelled.append({**one, "labels": {"answer": "|".join(winners) or None}})
    typed.write("labelled.jsonl", labelled)
    assert (
        typed("build", "culturalbench-easy", "labelled.jsonl", "-o", "easy.jsonl").returncode == 0
    )
    easy = lines(typed.read("easy.jsonl"))
    assert len(easy) == 1227 and len(lines(typed.read("easy.jsonl.discarded.jsonl"))) == 1259
    found = asked(items(benchmark, str(typed.folder / "easy.jsonl"), conditions=["hard"])).values()
    assert Counter(one["mode"] for one in found) == {"single": 1141, "multi": 86}
    assert Counter(map(sum, (one["gold"] for one in found))) == {1: 1141, 2: 86}
    assert typed("build", "culturalbench-hard", "easy.jsonl", "-o", "hard.jsonl").returncode == 0
    assert len(lines(typed.read("hard.jsonl"))) == 4908


def test_a_question_with_several_answers_asks_for_a_combination_of_statements(
    typed: Typed,
) -> None:
    labels = {"1": "b", "2": "A|D", "3": "tissues|A BOOK|a hat", "4": None, "5": "x", "6": "a"}
    typed.write(
        "v.jsonl",
        [
            {"id": id, "country": "Peru", "topic": "food", "labels": {"q": label}}
            | question("How is a seat kept?")
            for id, label in labels.items()
        ]
        + [{"id": "7", **question("How?"), "labels": {}}]
        + [{"id": "8", **question("Which type?", a="B"), "labels": {"q": "b"}}],
    )
    code, _, told = typed.text("build", "culturalbench-easy", "v.jsonl", "-o", "easy.jsonl")
    assert code == 3 and "no answer has a majority" in told, told
    assert "'x' names no options" in told
    assert "'b' is one option's letter and another's text" in told
    assert "field 'labels' must hold the majority of one check" in told
    one, two, three, _ = lines(typed.read("easy.jsonl"))
    assert (one["answer"], one["prompt_option_b"], one["question_idx"]) == ("B", "A bag", "1")
    assert two["prompt_question"].splitlines()[2:] == [
        *("(i) Tissues", "(ii) A bag", "(iii) A book", "(iv) A hat"),
    ]
    right = {"2": "(i), (iv)", "3": "(i), (iii), (iv)"}
    for row in (two, three):
        options = [row[f"prompt_option_{letter}"] for letter in "abcd"]
        assert options["ABCD".index(row["answer"])] == right[row["question_idx"]]
        assert len({*options}) == 4
    hard = asked(items(benchmark, str(typed.folder / "easy.jsonl"), conditions=["hard"]))
    assert hard["2/hard"]["gold"] == [True, False, False, True]
    assert hard["2/hard"]["question"] == "How is a seat kept?"
    assert typed("build", "culturalbench-hard", "easy.jsonl", "-o", "hard.jsonl").returncode == 0
    of_hard_file = asked(items(benchmark, str(typed.folder / "hard.jsonl")))["2/hard"]
    names = ("question", "options", "gold", "mode", "country", "topic")
    assert [of_hard_file[n] for n in names] == [hard["2/hard"][n] for n in names]
    assert of_hard_file["topic"] == "food"
    assert typed("build", "culturalbench-easy", "v.jsonl", "-o", "e2.jsonl").returncode == 3
    assert typed.read("e2.jsonl") == typed.read("easy.jsonl")


def test_a_question_with_the_options_of_the_prompts_example_is_lost(typed: Typed) -> None:
    options = (
        "They leave them at the door",
        "They keep them on",
        "They carry them",
        "They give them to the host",
    )
    named = {f"prompt_option_{letter}": o for letter, o in zip("abcd", options, strict=True)}
    copy = {"prompt_question": "What do guests do with tissues?", **named, "answer": "A"}
    own = copy | {f"prompt_option_{letter}": f"They fold them {letter} times" for letter in "ab"}
    typed.write("s.jsonl", [SCENARIO, SCENARIO | {"id": "s2", "scenario": "A hat keeps it."}])
    rest = [said("verifier", answer("B")), *REST[1:]]
    drafts = [said("question_writing", copy, contains="tissues"), said("question_writing", own)]
    typed.script("w.yaml", [*drafts, *rest])
    assert typed(*GO).returncode == 0
    assert [one["lineage"]["parent"] for one in lines(typed.read("o.jsonl"))] == ["s2"]
    (lost,) = lines(typed.read("o.jsonl.discarded.jsonl"))
    assert lost["judge"]["generated"]["cause"] == "copied"
