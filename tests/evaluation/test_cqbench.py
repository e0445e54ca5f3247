"""CQ-Bench from item to table: what is asked step by step, how it is scored, what tables say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.evaluation.benchmark import Result, choices_of
from judge.evaluation.cqbench import benchmark
from judge.stats.intervals import Estimate

from .examinee import Credits, Examined, ask, asked, items, table, value
from .test_cqbench_items import STORIES, VALUES


def item(id: str) -> dict[str, Any]:
    conditions = benchmark.conditions
    return asked(items(benchmark, STORIES, VALUES, conditions=conditions))[id]


def first(task: str, texts: Mapping[str, str], options: Sequence[str]) -> Any:
    """Takes the first options, lists one value, and writes its task's name."""
    if task == "cqbench_selection":
        return list(range(int(texts["count"])))
    if task == "cqbench_extraction":
        return ["People should help."]
    return 0 if task == "cqbench_attitude" else f"by {task}"


# ------------------------------------------------------------ asking


async def test_attitude_is_one_question_with_the_options_in_their_order() -> None:
    model = Examined(lambda *_: 2, (0.0, 0.0, 1.0))
    got = await ask(benchmark, item("cq-02/1/attitude"), model)
    ((task, prompt),) = model.asked
    assert task == "cqbench_attitude"
    assert "A. Agree\nB. Neither agree nor disagree\nC. Disagree" in prompt
    assert "character named above" not in prompt
    assert (got.outcome, got.answer, got.score) == ("answered", "Disagree", 1.0)
    assert got.probabilities == {"Agree": 0.0, "Neither agree nor disagree": 0.0, "Disagree": 1}
    wrong = await ask(benchmark, item("cq-02/1/attitude"), first)
    assert (wrong.answer, wrong.score) == ("Agree", 0.0)


async def test_attitude_in_steps_gathers_analyses_then_chooses() -> None:
    model = Examined(lambda task, *_: 2 if task == "cqbench_attitude" else f"by {task}")
    got = await ask(benchmark, item("cq-10/2/attitude+steps"), model)
    tasks = ["cqbench_attitude_speech", "cqbench_attitude_analysis", "cqbench_attitude"]
    assert [task for task, _ in model.asked] == tasks
    speech, analysis, deciding = (prompt for _, prompt in model.asked)
    assert "Boris" in speech and "Boris" in deciding and "by cqbench" not in speech
    assert "by cqbench_attitude_speech" in analysis
    assert "Agree\nNeither agree nor disagree\nDisagree" in analysis
    assert "by cqbench_attitude_analysis" in deciding and "character named above" in deciding
    assert got.steps == {"related_speech": f"by {tasks[0]}", "analysis": f"by {tasks[1]}"}
    assert (got.score, got.usage.replies) == (1.0, 3)


async def test_selection_asks_for_exactly_as_many_as_are_right() -> None:
    fields, model = item("cq-01/selection+steps"), Examined(first)
    got = await ask(benchmark, fields, model)
    assert [task for task, _ in model.asked] == [
        "cqbench_selection_topics",
        "cqbench_selection_analysis",
        "cqbench_selection",
    ]
    assert got.answer == fields["options"][:4] and len(fields["gold"]) == 4
    right = len(set(fields["options"][:4]) & set(fields["gold"]))
    assert got.score == pytest.approx(right / 4)


async def test_extraction_sums_up_each_topic_then_lists() -> None:
    model = Examined(first)
    got = await ask(benchmark, item("cq-02/extraction+steps"), model)
    topics = ["social", "security", "ethical", "political", "religious", "science & technology"]
    assert list(got.steps["summaries"]) == topics
    assert len(model.asked) == len(topics) + 1
    assert "social: by cqbench_summary\n\nsecurity: " in model.asked[-1][1]
    assert (got.score, got.answer) == (None, ["People should help."])
    religious = await ask(benchmark, item("cq-07/extraction+steps"), first)
    assert list(religious.steps["summaries"]) == ["religious"]


async def test_more_than_ten_predictions_are_cut_and_told() -> None:
    many = [*(f"Value {n}." for n in range(12)), " "]
    fields = item("cq-07/extraction+steps")
    got = await ask(benchmark, fields, lambda task, *_: many if "extract" in task else "s")
    assert got.answer == [f"Value {n}." for n in range(10)]
    assert (got.steps["predicted"], got.steps["cut"]) == (12, 2)


async def test_a_step_that_is_refused_ends_the_item() -> None:
    task = "cqbench_attitude_analysis"
    model = Examined(lambda name, *rest: "refused" if name == task else first(name, *rest))
    got = await ask(benchmark, item("cq-02/1/attitude+steps"), model)
    assert (got.outcome, got.answer, got.score) == ("refused", None, None)
    assert "no answer in it" in str(got.reason)
    assert model.asked[-1][0] == task and got.usage.replies == len(model.asked)


# ------------------------------------------------------------ scoring


async def test_grading_credits_the_gold_values_of_an_extraction() -> None:
    assert benchmark.grade is not None
    fields = item("cq-01/extraction+steps")
    answered = await ask(benchmark, fields, first)
    # S of section 3.1: fully, not settled, partially.
    grader = Credits(1.0, None, 0.5, None)
    graded = await benchmark.grade(answered, grader)
    assert (graded.score, graded.steps["credits"]) == (0.75, [1.0, None, 0.5, None])
    assert graded.usage.replies == answered.usage.replies + 1
    assert grader.asked == [(["People should help."], fields["gold"])]
    chosen = await ask(benchmark, item("cq-02/1/attitude"), first)
    assert await benchmark.grade(chosen, Credits()) is chosen


# ------------------------------------------------------------ tables


def cells(results: Sequence[Result], name: str, *labels: str) -> dict[str, Any]:
    return table(benchmark, results, name)[labels]


ASKED = ("Agree", "Neither agree nor disagree", "Disagree")
OFTEN = ("Very often", "Not often", "Not at all often")


def attitude(
    row: str, gold: str, answer: str | None, options: Sequence[str] = ASKED, **more: Any
) -> Result:
    fields = {
        "id": f"{row}/{gold}/{answer}",
        "row": row,
        "condition": "attitude",
        "setting": "single",
        "category": "political",
        "gold": gold,
        "options": list(options),
        **more,
    }
    if answer is None:
        return Result(fields, "unreadable")
    return Result(fields, "answered", answer, float(answer == gold))


def test_attitudes_are_compared_without_case() -> None:
    results = [
        attitude("a", "Not often", "Not at all often", OFTEN),
        attitude("a", "Not at all often", "not at all often", OFTEN),
    ]
    found = cells(results, "cqbench", "single", "attitude")
    # Not often: 1 right, 0 given; not at all often: 1 hit, 2 given, 1 right: F1 2/3.
    assert value(found["macro F1"]) == pytest.approx((2 / 3 + 0) / 2)


def selection(row: str, gold: list[str], answer: list[str] | None) -> Result:
    about = {"condition": "selection", "setting": "single", "category": "ethical"}
    fields = {"id": row, "row": row, **about, "gold": gold}
    if answer is None:
        return Result(fields, "unreadable")
    return Result(fields, "answered", answer, benchmark.score(fields, answer))


def test_selection_per_item_and_pooled() -> None:
    results = [
        selection("a", ["p--1", "q--1"], ["p--1", "r--1"]),  # F1 1/2
        selection("b", ["p--1", "q--1", "s--1"], ["p--1"]),  # F1 1/2
        selection("c", ["p--1", "q--1"], None),  # F1 0
    ]
    own = cells(results, "cqbench", "single", "selection")
    # 2 hits, 3 given, 7 right in all.
    assert (value(own["score"]), value(own["pooled"])) == (pytest.approx(1 / 3), 0.4)
    assert own["unreadable"] == 1


def extraction(row: str, credits: list[float | None] | None, **more: Any) -> Result:
    fields = {
        "id": row,
        "row": row,
        "condition": "extraction+steps",
        "setting": "single",
        "category": more.pop("category", "social"),
        "gold": ["v--1", "w--1"],
    }
    steps = {} if credits is None else {"credits": credits}
    there = [credit for credit in credits or () if credit is not None]
    score = sum(there) / len(there) if there else None
    return Result(fields, more.pop("outcome", "answered"), ["x", "y"], score, steps=steps)


def test_extraction_recall_over_values_stories_and_categories() -> None:
    results = [
        extraction("a", [1.0, 0.5]),
        extraction("b", [0.0, None], category="ethical"),
        extraction("c", None, outcome="refused"),
        extraction("d", None),
    ]
    every = cells(results, "cqbench", "single", "extraction+steps")
    # Settled: 1, 0.5, 0, and the two values that the refusal did not find: 1.5 / 5.
    recall = every["pooled"]
    assert isinstance(recall, Estimate)
    assert recall.value == pytest.approx(0.3) and (recall.n, recall.of) == (5, 8)
    # Stories: 0.75, 0, 0; the last was not graded.
    assert value(every["score"]) == 0.25
    by_category = table(benchmark, results, "cqbench-categories")
    ethical = by_category["ethical", "extraction+steps"]
    assert value(ethical["score"]) == 0.0


def test_table_3_by_hand(tmp_path: Path) -> None:
    def edit(before: str, after: str, check: str = "implicitness") -> dict[str, Any]:
        return {"round": 1, "check": check, "before": before, "after": after, "model": "m"}

    stories = [
        {
            "id": str(number),
            "story": "Ann talks.",
            "values": ["Greeting matters--Agree"],
            "setting": "social",
            "judge": {"verdict": "pass", "workflow": "story", "edits": edits},
        }
        for number, edits in enumerate(
            (
                [
                    edit("one two three", "one two three one two three"),
                    edit("a b", "c", "consistency"),
                ],
                [edit("one", "one two three four five")],
                [],
            )
        )
    ]
    path = tmp_path / "stories.jsonl"
    path.write_text("".join(json.dumps(story) + "\n" for story in stories))
    choices = choices_of(benchmark, ["extraction+steps"])
    found = [item.fields for item in benchmark.items([str(path)], choices)]
    results = [Result(one, "answered", ["x"], None) for one in found if one is not None] * 2
    cells = table(benchmark, results, "cqbench-rewriting")
    words, three = cells["social", "word count"], cells["social", "distinct-3"]
    assert (words["speeches"], value(words["original"]), value(words["refined"])) == (2, 2.0, 5.5)
    # Runs of three by words: 1 / 3 and 0 / 1 before; 3 / 6 and 3 / 5 after.
    assert value(three["original"]) == pytest.approx(1 / 6)
    assert value(three["refined"]) == pytest.approx((3 / 6 + 3 / 5) / 2)
    assert [name for _, name in cells] == ["word count", "distinct-3", "distinct-4", "distinct-5"]
