"""CQ-Bench from item to table: what is asked step by step, how it is scored, what tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.papers.cqbench import benchmark
from judge.papers.tasks import MeasuredAnswer
from judge.verdict import AnswerOutcome

from .examinee import Examined, ask, asked, items, problems, table, value
from .test_cqbench_stories import STORIES, VALUES


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


def cells(results: Sequence[MeasuredAnswer], name: str, *labels: str) -> dict[str, Any]:
    return table(benchmark, results, name)[labels]


def result(
    condition: str, gold: Any, answer: Any, score: float | None, **more: Any
) -> MeasuredAnswer:
    row = more.pop("row", "a")
    fields = {"id": f"{row}/{condition}/{gold}", "row": row, "condition": condition, "gold": gold}
    outcome = more.pop("outcome", "answered")
    return MeasuredAnswer(
        {**fields, "setting": "single", **more}, AnswerOutcome(outcome), answer, score
    )


def test_attitudes_are_compared_without_case() -> None:
    fields = {"condition": "attitude", "gold": "Not often", "options": ["Often", "Not often"]}
    read = [benchmark.read(fields, answer) for answer in (" not often.", "OFTEN")]
    assert read == ["Not often", "Often"]
    assert [benchmark.score(fields, answer) for answer in read] == [1.0, 0.0]
    with pytest.raises(ValueError, match="none of the options"):
        benchmark.read(fields, "never")


def test_a_selection_is_scored_by_the_mean_f1_of_its_items() -> None:
    results = []
    for row, gold, answer in (
        ("a", ["p--1", "q--1"], ["P--1", "r--1"]),  # one of two given, of two right: F1 1/2
        ("b", ["p--1", "q--1", "s--1"], ["p--1"]),  # one of one given, of three right: F1 1/2
    ):
        score = benchmark.score({"condition": "selection", "gold": gold}, answer)
        results.append(result("selection", gold, answer, score, row=row))
    results.append(result("selection", ["p--1"], None, None, row="c", outcome="unreadable"))
    own = cells(results, "cqbench", "single", "selection")
    assert (value(own["score"]), own["unreadable"], own["stories"]) == (pytest.approx(1 / 3), 1, 3)


def test_extraction_recall_over_stories_and_by_category() -> None:
    results = [
        result("extraction+steps", ["v", "w"], ["x"], 0.75, row="a", category="social"),
        result("extraction+steps", ["v", "w"], ["x"], 0.0, row="b", category="ethical"),
        result("extraction+steps", ["v"], None, None, row="c", outcome="refused"),
        result("extraction+steps", ["v"], ["x"], None, row="d"),
    ]
    # 0.75, 0, 0; the last was not credited.
    found = cells(results, "cqbench", "single", "extraction+steps")["score"]
    assert value(found) == 0.25 and (found.n, found.of) == (3, 4)
    by_category = table(benchmark, results, "cqbench-categories")
    assert [value(one["score"]) for one in by_category.values()] == [0.0, 0.75]


@pytest.mark.parametrize("setting", ["merged", "binary"])
def test_with_fewer_options_a_selection_that_cannot_be_made_is_no_problem(
    tmp_path: Path, setting: str
) -> None:
    few, story = tmp_path / "few.jsonl", tmp_path / "story.jsonl"
    few.write_text('{"topic": "T", "q_id": "1", "q_content": "S", "option": "1. Yes 2. No"}\n')
    story.write_text('{"id": "s", "story": "A story.", "values": ["S--Yes"]}\n')
    sources = str(story), str(few)
    assert len(problems(items(benchmark, *sources))) == 1
    made = asked(items(benchmark, *sources, setting=setting))
    assert {fields["condition"] for fields in made.values()} == {"attitude", "attitude+steps"}
    assert not items(benchmark, *sources, setting=setting, conditions=["selection"])
