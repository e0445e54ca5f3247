"""`judge build`: the content of each set, and the reasons for left-out records."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.typed import Typed

FIXTURES = Path(__file__).parents[2] / "fixtures"
CQ = tuple(str(FIXTURES / "cqbench" / name) for name in ("stories.jsonl", "values.jsonl"))
LIE = "A small lie to spare somebody's feelings is acceptable--Disagree"
PRAYER = "Prayer belongs in daily life--Disagree"


def build(typed: Typed, *words: str, code: int = 0) -> tuple[list[Any], list[tuple[str, str]]]:
    """The lines that a command writes, and of what it leaves out the record's id and the reason."""
    ended, shown, told = typed.text("build", *words, "-o", "o", "--overwrite")
    assert (ended, shown) == (code, ""), told
    made, left = (
        [json.loads(line) for line in typed.read(name).splitlines()]
        for name in ("o", "o.discarded.jsonl")
    )
    records = [one["record"] for one in left]
    ids = [str(one.get("id", one.get("question_idx"))) for one in records]
    return made, list(zip(ids, (one["reason"] for one in left), strict=True))


def test_attitudes_are_asked_of_values_that_the_story_carries_and_nobody_contradicts(
    typed: Typed,
) -> None:
    made, left = build(typed, "attitude-detection", *CQ)
    stories = {one["id"]: one["questions"] for one in made}
    assert (len(stories), len(stories["cq-04"]), len(stories["cq-10"])) == (12, 2, 4)
    assert ("cq-04", f"{LIE}: a character contradicts it") in left
    assert ("cq-03", f"{PRAYER}: the story does not carry it") in left
    assert all(one["gold label"] in one["options"] for asked in stories.values() for one in asked)
    assert all(one["name"] for one in stories["cq-10"]), "in the multiple setting"


def test_what_validation_found_missing_or_unsound_is_in_no_question(typed: Typed) -> None:
    story = json.loads(Path(CQ[0]).read_text().splitlines()[0])
    absent = {"verdict": "fail", "evidence": [{"value": story["values"][0], "verdict": "fail"}]}
    missing = {"verdict": "fail", "checks": [{"check": "incorporation", **absent}]}
    stated = [{"check": "implicitness", "verdict": "fail", "round": 1}]
    plain = {"verdict": "fail", "checks": stated}
    rewritten = {"verdict": "pass", "checks": [*stated, {**stated[0], "verdict": "pass"}]}
    judged = {story["id"]: missing, "plain": plain, "rewritten": rewritten}
    typed.write("s.jsonl", [{**story, "id": id, "judge": j} for id, j in judged.items()])
    made, left = build(typed, "attitude-detection", "s.jsonl", CQ[1])
    assert [(one["id"], len(one["questions"])) for one in made] == [("cq-01", 3), ("rewritten", 4)]
    missed = f"{story['values'][0]}: the story does not carry it"
    assert left == [("cq-01", missed), ("plain", "implicitness: fail")]


def test_a_selection_is_drawn_by_the_seed_and_never_offers_what_the_story_was_written_for(
    typed: Typed,
) -> None:
    offered = []
    for seed in range(12):
        made, left = build(typed, "value-selection", *CQ, "--seed", str(seed))
        by_id = {one["id"]: one for one in made}
        assert len(by_id) == 9 and "in the multiple setting" in dict(left)["cq-10"]
        offered.append(by_id["cq-03"]["options"])
        assert len(set(offered[-1])) == 15 and set(by_id["cq-03"]["values"]) < set(offered[-1])
        assert PRAYER not in offered[-1], "dropped as missing"
        others = set(by_id["cq-04"]["options"]) - set(by_id["cq-04"]["values"])
        assert not [one for one in others if one.startswith(LIE.split("--")[0])]
    assert build(typed, "value-selection", *CQ, "--seed", "11")[0] == made
    assert offered[0] != offered[1]


def test_a_released_story_that_was_validated_offers_none_of_its_original_values(
    typed: Typed,
) -> None:
    story = json.loads(Path(CQ[0]).read_text().splitlines()[2])
    released = {**story, "original_values": [*story["values"], PRAYER]}
    for dropped in ([], [PRAYER]):
        judge = {"verdict": "pass", "dropped": dropped}
        typed.write("s.jsonl", [{**released, "id": str(n), "judge": judge} for n in range(40)])
        made, left = build(typed, "value-selection", "s.jsonl", CQ[1])
        assert len(made) == 40 and not [one for one in made if PRAYER in one["options"]]
        assert left == [(str(n), f"{PRAYER}: the story does not carry it") for n in range(40)]


def test_hard_has_a_line_for_each_answer(typed: Typed) -> None:
    row: dict[str, Any] = {f"prompt_option_{letter}": letter * 2 for letter in "abcd"}
    row |= {"question_idx": 7, "prompt_question": "Which?", "answer": "C", "country": "Peru"}
    typed.write("easy.jsonl", [row, {**row, "question_idx": 8, "answer": "E"}])
    made, left = build(typed, "culturalbench-hard", "easy.jsonl", code=3)
    assert [(one["prompt_option"], one["answer"]) for one in made] == [
        *(("aa", False), ("bb", False), ("cc", True), ("dd", False))
    ]
    assert made[2]["id"] == "7/3" and "'answer' must be one of A, B, C, D" in dict(left)["8"]
    judged = {"verdict": "fail", "reason": "regional: everywhere"}
    typed.write("easy.jsonl", [{**row, "judge": judged}, {**row, "question_idx": 8}])
    made, left = build(typed, "culturalbench-hard", "easy.jsonl")
    assert {one["question_idx"] for one in made} == {"8"}
    assert left == [("7", "fail: regional: everywhere")]
    typed.write("easy.jsonl", [row, *({**row, "question_idx": n, "answer": "E"} for n in range(6))])
    words = ("build", "culturalbench-hard", "easy.jsonl", "-o", "hard.jsonl", "--overwrite")
    told = typed.text(*words)[2]
    assert told.count("  line ") == 5 and told.endswith("  ...\n") and "6 left out" in told


def test_filtered_has_records_that_passed_and_pairs_that_a_group_agrees_on(typed: Typed) -> None:
    pair = {"premise": "p", "hypothesis": "h", "us_ratings": "EEEN", "in_ratings": "ENCC"}
    rated = {k: list(v) if k.endswith("ratings") else v for k, v in pair.items()}
    failed = {"verdict": "fail", "reason": "polite: rude"}
    lines: list[dict[str, Any]] = [
        {"id": "kept", **rated},
        {"id": "split", **rated, "us_ratings": ["E", "E", "N", "C"]},
        {
            "id": "Split",
            "Premise": "p",
            "hypothesis": "h",
            "US_ratings": ["E", "N"],
            "in_ratings": [],
        },
        {"id": "failed", **rated, "judge": failed},
        {"id": "passed", "email": "Hi.", "judge": {"verdict": "pass"}},
        {"id": "unknown", "email": "Hi."},
    ]
    typed.write("r.jsonl", lines)
    made, left = build(typed, "filtered", "r.jsonl", code=3)
    assert made == [lines[0], {"id": "passed", "email": "Hi."}]
    assert {id: reason.split(":")[0] for id, reason in left} == {
        "split": "in no group do 75% of the raters agree",
        "Split": "in no group do 75% of the raters agree",
        "failed": "fail",
        "unknown": "it has no verdict (judge validate), no labels (judge agreement -o), no ratings",
    }


def test_a_premise_has_a_kind_of_inference_for_each_hypothesis_or_none(typed: Typed) -> None:
    script = {"premise": "P.", **{f"hypothesis_{n}": f"H{n}." for n in (1, 2, 3)}}
    kinds = ["goal", "cause", "effect", "norm"]
    rows = [{"id": str(n), **script, "inference": kinds[:n]} for n in (0, 2, 3, 4)]
    typed.write("r.jsonl", rows)
    made, left = build(typed, "pairs", "r.jsonl", code=3)
    assert [(one["id"], one["inference"]) for one in made] == [
        *(("0/1", None), ("0/2", None), ("0/3", None)),
        *(("3/1", "goal"), ("3/2", "cause"), ("3/3", "effect")),
    ]
    reasons = [(str(n), f"field 'inference' has {n} kinds for 3 hypotheses") for n in (2, 4)]
    assert left == reasons


def test_answers_of_several_people_are_one_label_only_if_they_are_the_same(typed: Typed) -> None:
    answers: dict[str, Any] = {
        "split": {"ann": "yes", "bo": "no"},
        "most": {"ann": "yes", "bo": "yes", "cy": "no"},
        "silent": {"ann": "yes", "bo": None},
        "unsure": {"ann": "unsure", "bo": "Unsure"},
        "values": {"ann": ["yes", "no"], "bo": ["yes", "yes"]},
        "alone": {"ann": "no"},
        "same": {"ann": "yes", "bo": "Yes."},
        "lists": {"ann": ["yes", "no"], "bo": ["yes", "no"]},
    }
    rows = [{"id": id, "text": "x", "labels": {"q": given}} for id, given in answers.items()]
    typed.write("r.jsonl", rows)
    made, left = build(typed, "filtered", "r.jsonl", code=3)
    assert [one["id"] for one in made] == ["alone", "same", "lists"]
    assert [id for id, _ in left] == ["split", "most", "silent", "unsure", "values"]
    reason = "field 'labels': q has several answers, not a majority: judge agreement -o"
    assert {why for _, why in left} == {reason}


def test_the_largest_groups_alone_are_kept(typed: Typed) -> None:
    """CALI, 5.1: pairs by the behaviour that they cover."""
    names = ["tip", "feet", "tip", "bow", "feet", "", "bow"]
    passed = {"judge": {"verdict": "pass"}}
    typed.write("r.jsonl", [{"id": str(n), "cluster": c, **passed} for n, c in enumerate(names)])
    made, left = build(typed, "filtered", "r.jsonl", "--largest", "2", "--by", "cluster", "-q")
    assert [one["id"] for one in made] == ["0", "1", "2", "4"], "of equals the first"
    assert left[0] == ("3", "cluster 'bow' is none of the 2 largest") and len(left) == 3
    for words, fault in (
        (("--largest", "2"), "name one field"),
        (("--largest", "2", "--by", "none"), "no line has a field none"),
    ):
        code, _, told = typed.text("build", "filtered", "r.jsonl", "-o", "x", *words)
        assert code == 2 and fault in told


def test_stories_come_in_a_pipe_beside_their_value_file(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, left = build(typed, "attitude-detection", *CQ)
    piped = io.TextIOWrapper(io.BytesIO(Path(CQ[0]).read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    assert build(typed, "attitude-detection", "-", CQ[1]) == (made, left)
    model = typed.script("m.yaml", [{"reply": "?"}])
    code, _, told = typed.text("evaluate", "cqbench", "-", "-m", model)
    assert code == 2 and "not through a pipe" in told


def test_in_a_pipe_every_groups_ratings_count_or_are_missed_aloud(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E", "N"], "in_ratings": ["C", "N"]}
    lines = f"{json.dumps({**pair, 'id': 'uk', 'uk_ratings': ['E'] * 4})}\n{json.dumps(pair)}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    made, left = build(typed, "filtered", "-")
    assert [one["id"] for one in made] == ["uk"] and len(left) == 1
    lines = lines.replace("in_ratings", "kr_ratings", 1)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    code, _, told = typed.text("describe", "cali", "-", "--by", "kept")
    assert code == 3 and "line 1: ratings of kr would not count: the groups are us, in" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sets", "s.jsonl"), "no set is called 'sets'; there are attitude-detection"),
        (("filtered",), "name the files to build from"),
        (("value-selection", CQ[0]), "name a value file"),
    ],
)
def test_refused(typed: Typed, words: tuple[str, ...], message: str) -> None:
    code, _, told = typed.text("build", *words, "-o", "o")
    assert code == 2 and message in told and not (typed.folder / "o").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("describe", "normad", "t.csv"),
        ("describe", "cqbench", "t.csv"),
        ("build", "filtered", "t.csv", "-o", "o"),
        ("build", "attitude-detection", "t.csv", CQ[1], "-o", "o"),
    ],
)
def test_a_table_of_verdicts_is_never_taken_for_unjudged_records(
    typed: Typed, words: tuple[str, ...]
) -> None:
    heads = "story,values,rule_of_thumb,label,judge.verdict,relevance.verdict"
    (typed.folder / "t.csv").write_text(f"{heads}\nAnn bowed.,Bow--Agree,Bow.,yes,fail,fail\n")
    code, shown, told = typed.text(*words)
    assert (code, shown) == (2, "") and not (typed.folder / "o").exists()
    assert "t.csv is a table of verdicts: name the JSON lines" in told and "t.csv.jsonl" in told


@pytest.mark.parametrize(
    "words",
    [
        ("build", "culturalbench-hard", "e.csv"),
        ("score", "normad", "a.jsonl", "n.csv"),
        ("agreement", "votes.jsonl"),
    ],
)
def test_json_lines_are_never_written_into_a_file_that_is_read_as_a_table(
    typed: Typed, words: tuple[str, ...]
) -> None:
    code, shown, told = typed.text(*words, "-o", "o.csv")
    assert (code, shown) == (2, "") and not [*typed.folder.glob("o*")]
    assert "-o o.csv: judge writes plain JSON lines, not .csv: name a .jsonl file" in told
