"""CQ-Bench's items: the questions made of stories, and their wrong options."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.graphs.values import Value

from judge.errors import UsageError
from judge.papers.benchmark import choices_of
from judge.papers.cqbench import TOPICS, benchmark
from judge.papers.cqbench_stories import (
    Statement,
    Story,
    ValueList,
    folded,
    parse_options,
    selection,
    value_list,
)
from judge.papers.datasets import DATASETS
from judge.records import Record, read
from judge.records.fields import LabelError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cqbench"
STORIES, VALUES = str(FIXTURES / "stories.jsonl"), str(FIXTURES / "values.jsonl")
EVERY = choices_of(benchmark, [], benchmark.conditions)


def made(*sources: str, conditions: tuple[str, ...] = benchmark.conditions, seed: int = 0) -> Any:
    """The fields of the items, and the problems beside them."""
    items = list(benchmark.items(sources, choices_of(benchmark, sources, conditions, seed=seed)))
    fields = [item.fields for item in items if item.problem is None]
    return fields, [item.problem.message for item in items if item.problem is not None]


def asked(*sources: str, condition: str, seed: int = 0) -> list[dict[str, Any]]:
    fields, problems = made(*sources, conditions=(condition,), seed=seed)
    assert not problems
    return list(fields)


def write(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def statement(text: str, *options: str, topic: str = "SOCIAL VALUES") -> dict[str, str]:
    listed = " ".join(f"{number}. {option}" for number, option in enumerate(options, 1))
    return {"topic": topic, "q_id": "1", "q_content": text, "option": f" {listed} "}


def test_the_fixtures_are_what_their_readme_says() -> None:
    fields, problems = made(STORIES, VALUES)
    assert not problems
    assert len({one["id"] for one in fields}) == len(fields)
    # Two values are contradicted, and nine stories are not of the multiple setting.
    values = sum(len(item.fields["values"]) for item in read(STORIES) if item.fields)
    counts = Counter(one["condition"] for one in fields)
    assert counts["attitude"] == counts["attitude+steps"] == values - 2
    assert {counts[name] for name in counts if name.startswith(("selection", "extraction"))} == {9}


def test_contradicted_values_are_not_asked_about_but_stay_right_in_selection() -> None:
    fields, _ = made(STORIES, VALUES)
    about = [one["item"] for one in fields if one["condition"] == "attitude"]
    assert "cq-04/1" in about
    assert "cq-04/2" not in about
    (selection,) = (one for one in fields if one["id"] == "cq-04/selection")
    assert "A small lie to spare somebody's feelings is acceptable--Disagree" in selection["gold"]


def test_a_value_that_a_story_lists_twice_is_asked_about_once(tmp_path: Path) -> None:
    values = write(tmp_path / "v.jsonl", *(statement(text, "Yes", "No") for text in ("S1", "S2")))
    twice = {"id": "s", "story": "They met.", "values": ["S1--Yes", "s1--yes.", "S2--No"]}
    several = {**twice, "id": "m", "setting": "multiple"}
    several["values"] = [f"{name}:S1--Yes" for name in ("Ann", "Bo", "Ann")]
    stories = write(tmp_path / "s.jsonl", twice, several)
    asked_about = [
        (one["row"], one.get("character"), one["statement"])
        for one in asked(stories, values, condition="attitude")
    ]
    single = [("s", None, "S1"), ("s", None, "S2")]
    assert asked_about == [*single, ("m", "Ann", "S1"), ("m", "Bo", "S1")]
    (extraction,) = asked(stories, values, condition="extraction+steps")
    assert extraction["gold"] == ["S1--Yes", "S2--No"]


@pytest.mark.parametrize("form", ["as built", "as text", "keys in another case"])
def test_a_built_set_is_asked_about_with_its_own_options(tmp_path: Path, form: str) -> None:
    """Whatever the seed of the evaluation is, and without the value file."""
    built = DATASETS["value-selection"][1]((STORIES, VALUES), 3)
    rows = [one for one in built if isinstance(one, dict)]
    lines = rows
    if form == "as text":
        lines = [{**row, "options": repr(row["options"])} for row in rows]
    if form == "keys in another case":
        lines = [{key.title(): content for key, content in row.items()} for row in rows]
    selections = asked(write(tmp_path / "vs.jsonl", *lines), condition="selection", seed=9)
    assert len(rows) == 9
    assert [(one["row"], one["options"], one["gold"]) for one in selections] == [
        (row["id"], row["options"], row["values"]) for row in rows
    ]
    fields, problems = made(str(tmp_path / "vs.jsonl"))
    assert {one["condition"] for one in fields} == {"selection", "selection+steps"}
    assert not problems


def test_a_built_file_of_questions_gives_the_items_of_its_stories(tmp_path: Path) -> None:
    built = DATASETS["attitude-detection"][1]((STORIES, VALUES), 0)
    rows = [one for one in built if isinstance(one, dict)]
    own = asked(write(tmp_path / "ad.jsonl", *rows), condition="attitude")
    stories = asked(STORIES, VALUES, condition="attitude")
    names = ("id", "story", "statement", "options", "gold", "setting", "category", "location")

    def told(items: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [(*map(one.get, names), one.get("character")) for one in items]

    assert told(own) == told(stories)
    assert {"cq-04/1/attitude", "cq-04/3/attitude"} <= {one["id"] for one in own}, (
        "2 is contradicted"
    )
    assert {one["setting"] for one in own} == {"single", "multiple"}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"options": ["a--1"], "values": ["b--1"]}, "'values': 'b--1' is none of the options"),
        ({"options": ["a--1", "A--1."], "values": ["a--1"]}, "'options' holds a text twice"),
        ({"options": [], "values": ["a--1"]}, "'options' must be a list of texts"),
        ({"questions": [{"value": "a", "options": ["1"]}]}, "'gold label' is missing"),
        ({"questions": "none"}, "'questions' must be a list"),
    ],
)
def test_a_built_row_that_cannot_be_asked_about_is_named(
    tmp_path: Path, row: dict[str, Any], problem: str
) -> None:
    fields, problems = made(write(tmp_path / "b.jsonl", {"story": "Ann spoke.", **row}))
    assert not fields and len(problems) == 1 and problem in problems[0]


def test_a_built_set_is_not_built_from_as_if_it_held_stories(tmp_path: Path) -> None:
    row = {"story": "Ann spoke.", "options": ["a--1"], "values": ["a--1"]}
    for build in ("attitude-detection", "value-selection"):
        path = write(tmp_path / f"{build}.jsonl", row)
        (left,) = DATASETS[build][1]((path, VALUES), 0)
        assert isinstance(left, Record) and left.problem is not None
        assert "name the stories" in left.problem.message


def test_selection_has_15_options_with_the_gold_among_them_in_the_lists_spelling() -> None:
    for one in asked(STORIES, VALUES, condition="selection"):
        assert len(set(map(folded, one["options"]))) == 15
        assert set(one["gold"]) < set(one["options"])
    # The file writes `agree`, the story `Agree`: two spellings would tell which is right.
    selections = asked(STORIES, VALUES, condition="selection")
    (gold,) = (one["gold"] for one in selections if one["row"] == "cq-02")
    assert "Time with friends matters more than a bigger salary--agree" in gold


def test_a_seed_gives_the_same_options_whatever_else_is_run() -> None:
    alone = asked(STORIES, VALUES, condition="selection+steps", seed=3)
    among = made(STORIES, VALUES, seed=3)[0]
    assert alone == [one for one in among if one["condition"] == "selection+steps"]
    plain = {one["row"]: one["options"] for one in among if one["condition"] == "selection"}
    assert plain == {one["row"]: one["options"] for one in alone}
    other = asked(STORIES, VALUES, condition="selection+steps", seed=4)
    assert all(one["options"] != two["options"] for one, two in zip(alone, other, strict=True))


def pool(statements: int) -> ValueList:
    return ValueList(
        "a.jsonl",
        {f"s{n}": Statement(f"S{n}", ("Yes", "No")) for n in range(statements)},
    )


def story(*contradicted: Value) -> Story:
    return Story("Ann talks.", None, (), contradicted, (), False, None)


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**16), st.integers(0, 3))
def test_other_options_are_never_gold_and_never_of_a_contradicted_statement(
    gold: int, seed: int, contradicted: int
) -> None:
    known = pool(14)
    right = [(f"S{n}", "Yes") for n in range(gold)]
    against = [Value.parse(f"s{n}--yes") for n in range(min(contradicted, gold))]
    found = selection(known, story(*against), right, str(seed))
    assert len(set(found["options"])) == 15
    assert found["gold"] == ["--".join(pair) for pair in right]
    others = set(found["options"]) - set(found["gold"])
    assert len(others) == 15 - gold
    barred = {value.statement.upper() for value in against}
    assert not {one.split("--")[0] for one in others} & barred


def test_a_pool_that_is_too_small_says_what_is_there_and_needed() -> None:
    with pytest.raises(LabelError, match=r"it has 1 values, and a.jsonl leaves 13 other"):
        selection(pool(7), story(), [("S1", "Yes")], "0")
    with pytest.raises(LabelError, match="16 values"):
        selection(pool(20), story(), [(f"S{n}", "Yes") for n in range(16)], "0")


def test_released_stories(tmp_path: Path) -> None:
    values = write(
        tmp_path / "v.jsonl",
        statement("Jobs: men first", "agree", "Neither agree/disagree", "Disagree"),
        statement("God matters", "Important", "Not important", topic="RELIGIOUS_VALUES"),
        statement("Work", "Agree", "Disagree"),
    )
    path = tmp_path / "dataset_random_original.json"
    story = {
        "original_values": "Jobs: men first--disagree\nGod matters--important\nWork--agree",
        "values": "Jobs: men first--disagree\nGod matters--important",
        "story": "Ann, Bo, Cy and Di talk.",
        "contradiction": {"God matters--important": ["Bo"]},
    }
    path.write_text(json.dumps([story, {**story, "contradiction": ["Work--agree"]}], indent=4))
    found = asked(str(path), values, condition="attitude")
    assert [(o["item"], o["gold"], o["category"]) for o in found] == [
        ("dataset_random_original.json#2/1", "Disagree", "random"),
        ("dataset_random_original.json#12/1", "Disagree", "random"),
        ("dataset_random_original.json#12/2", "Important", "random"),
    ]


def test_extraction_needs_no_value_file_and_the_other_tasks_do(tmp_path: Path) -> None:
    stories = write(tmp_path / "s.jsonl", {"story": "A talk.", "values": "Work--agree\nGod--no"})
    (one,) = asked(stories, condition="extraction+steps")
    assert one["topics"] == list(TOPICS)
    assert one["gold"] == ["Work--agree", "God--no"]
    for condition in ("attitude", "selection"):
        with pytest.raises(UsageError, match="value file"):
            made(stories, conditions=(condition,))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"story": "x", "values": ["Flying--agree"]}, "no such statement with such an attitude"),
        ({"story": "x", "values": ["Voting should be a duty, not a choice--Maybe"]}, "no such"),
        ({"story": "x", "values": ["a--b"], "judge": {"verdict": "error"}}, "validate it again"),
        (
            {
                "story": "x",
                "values": ["a--b"],
                "judge": {"verdict": "fail", "checks": [{"check": "length", "verdict": "fail"}]},
            },
            "for its length",
        ),
        ({"story": "x", "values": ["a--b"], "contradiction": 3}, "must be an object or a list"),
        ({"story": "x", "values": ["a--b"], "contradiction": ["c"]}, "without an attitude"),
    ],
)
def test_lines_that_give_no_question_say_why(tmp_path: Path, line: Any, says: str) -> None:
    bad = write(tmp_path / "s.jsonl", line)
    items = list(benchmark.items([bad, VALUES], EVERY))
    problems = [item for item in items if item.problem is not None]
    assert problems
    assert all(item.fields == line and item.line == 1 for item in problems)
    assert says in str(problems[0].problem and problems[0].problem.message)


def test_value_files_alone_and_faulty_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="value files only"):
        made(VALUES)
    with pytest.raises(UsageError, match="name one value file"):
        made(STORIES, VALUES, write(tmp_path / "w.jsonl", statement("Work", "Agree", "Disagree")))
    lines = [statement("Work", "Agree", "Disagree"), statement("work.", "Yes", "No")]
    with pytest.raises(UsageError, match=r"v\.jsonl, line 2: .* with other attitudes"):
        value_list(write(tmp_path / "v.jsonl", *lines))
    for line, says in (
        ({"topic": "x"}, "'option' must hold attitudes"),
        ({"q_content": "x", "option": " "}, "'option' must hold attitudes"),
        ({"q_content": "x", "option": ["a", 5]}, "'option' must hold attitudes"),
        ({"q_content": "", "option": "1. a"}, "'q_content' is empty"),
    ):
        with pytest.raises(UsageError, match=rf"v\.jsonl, line 1: .*{says}"):
            value_list(write(tmp_path / "v.jsonl", line))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (" 2. agree 3. Disagree ", ["agree", "Disagree"]),
        ("1) yes, often\n2) no", ["yes, often", "no"]),
        ("-1. Don't know 1. 1 child 2. 2.5 or more", ["Don't know", "1 child", "2.5 or more"]),
    ],
)
def test_options(text: str, options: list[str]) -> None:
    assert parse_options(text) == options
