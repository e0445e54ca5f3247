"""CQ-Bench from item to table: what is asked step by step, how it is scored, what tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.evaluation.benchmark import Result
from judge.evaluation.cqbench import benchmark
from judge.evaluation.cqbench_values import hits, merged
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


@pytest.mark.parametrize(
    ("id", "task", "left"),
    [
        ("cq-02/1/attitude", "cqbench_attitude", 0),
        ("cq-02/1/attitude+steps", "cqbench_attitude_analysis", 1),
        ("cq-02/selection+steps", "cqbench_selection_topics", 0),
        ("cq-02/extraction+steps", "cqbench_extraction", 1),
    ],
)
async def test_a_step_that_is_refused_ends_the_item(id: str, task: str, left: int) -> None:
    model = Examined(lambda name, *rest: "refused" if name == task else first(name, *rest))
    got = await ask(benchmark, item(id), model)
    assert (got.outcome, got.answer, got.score) == ("refused", None, None)
    assert "no answer in it" in str(got.reason)
    assert model.asked[-1][0] == task and len(got.steps) == left
    assert got.usage.replies == len(model.asked)


# ------------------------------------------------------------ scoring


def test_a_selection_by_hand() -> None:
    assert hits(["A--b", "c--d", "e--f"], ["a--B", "c--d", "g--h", "i--j"]) == (2, 3, 4)
    fields = {"condition": "selection", "gold": ["a--B", "c--d", "g--h", "i--j"]}
    assert benchmark.score(fields, ["A--b", "c--d", "e--f"]) == pytest.approx(4 / 7)
    assert benchmark.score(fields, []) == 0.0


OPTIONS = [f"Statement number {n} of the list--{a}" for n in range(5) for a in ("agree", "no", "x")]


@settings(deadline=None)
@given(st.sets(st.integers(0, 14), min_size=1), st.sets(st.integers(0, 14), min_size=1))
def test_f1_is_that_of_scikit_learn(given_: set[int], gold: set[int]) -> None:
    from sklearn.metrics import f1_score

    fields = {"condition": "selection", "gold": [OPTIONS[n] for n in gold]}
    own = benchmark.score(fields, [OPTIONS[n] for n in given_])
    there = f1_score([n in gold for n in range(15)], [n in given_ for n in range(15)])
    assert own == pytest.approx(there)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # The paper's own two examples (table 2, section 3.2).
        ("Definitely should not have the right", "probably should not have the right ", True),
        ("Not often", "not at all often", True),
        ("Very often", "Not often", False),
        ("Probably should have the right", "Probably should not have the right", False),
        ("Agree", "Neither agree nor disagree", False),
    ],
)
def test_merged_options(one: str, other: str, same: bool) -> None:
    assert (merged(one) == merged(other)) is same


@pytest.mark.parametrize(
    ("credits", "score"),
    [
        # S of section 3.1: fully, partially, not mentioned.
        ((1.0, 0.5, 0.0, 0.0), 0.375),
        ((1.0, None, 0.5, None), 0.75),
        ((None, None, None, None), None),
    ],
)
async def test_grading_credits_the_gold_values_of_an_extraction(
    credits: tuple[float | None, ...], score: float | None
) -> None:
    assert benchmark.grade is not None
    fields = item("cq-01/extraction+steps")
    answered = await ask(benchmark, fields, first)
    grader = Credits(*credits)
    graded = await benchmark.grade(answered, grader)
    assert graded.score == score
    assert graded.steps["credits"] == list(credits)
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


def test_merged_options_turn_a_miss_in_severity_into_a_hit() -> None:
    results = [
        attitude("a", "Not often", "Not at all often", OFTEN),
        attitude("a", "Not at all often", "not at all often", OFTEN),
        attitude("b", "Very often", "Not often", OFTEN),
        attitude("b", "Very often", "Very often", OFTEN),
    ]
    label = "attitude detection"
    assert value(cells(results, "cqbench", label, "single", "attitude")["score"]) == 0.5
    together = cells(results, "cqbench", label, "single, merged", "attitude")
    assert value(together["score"]) == 0.75
    # Merged: often/not often. Very often: 1 hit, 1 given, 2 right: F1 2/3; the rest: 2 hits,
    # 3 given, 2 right: F1 4/5.
    assert value(together["macro F1"]) == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_binary_rows_show_what_the_neutral_stance_costs() -> None:
    binary = {"options": ("Agree", "Disagree"), "condition": "attitude:binary"}
    results = [
        attitude("a", "Agree", "Agree"),
        attitude("a", "Disagree", ASKED[1]),
        attitude("b", ASKED[1], "Agree"),
        attitude("b", ASKED[1], None),
        attitude("c", "Very often", "Very often", OFTEN),
        attitude("a", "Agree", "Agree", **binary),
        attitude("a", "Disagree", "Disagree", **binary),
    ]
    found = table(benchmark, results, "cqbench-binary")
    offered = found["neutral among the options", "attitude"]
    assert (value(offered["accuracy"]), offered["unreadable"]) == (0.25, 1)
    sided = found["gold not neutral, neutral offered", "attitude"]
    assert value(sided["accuracy"]) == 0.5
    without = found["gold not neutral, asked without it", "attitude:binary"]
    assert value(without["accuracy"]) == 1.0


def test_each_option_has_its_recall_precision_and_f1() -> None:
    results = [
        attitude("a", "Agree", "agree"),
        attitude("b", "Agree", "Disagree"),
        attitude("c", "Disagree", "Disagree"),
        attitude("d", "Agree", None),
    ]
    agree = cells(results, "cqbench-options", "agree", "attitude")
    assert value(agree["recall"]) == pytest.approx(1 / 3)
    assert (value(agree["precision"]), value(agree["F1"]), agree["asked"]) == (1.0, 0.5, 3)
    disagree = cells(results, "cqbench-options", "disagree", "attitude")
    assert value(disagree["precision"]) == 0.5


def selection(row: str, gold: list[str], answer: list[str] | None) -> Result:
    about = {"condition": "selection", "setting": "single", "category": "ethical"}
    fields = {"id": row, "row": row, **about, "gold": gold}
    return Result(fields, "unreadable" if answer is None else "answered", answer)


def test_selection_per_item_and_pooled() -> None:
    results = [
        selection("a", ["p--1", "q--1"], ["p--1", "r--1"]),  # P 1/2, R 1/2, F1 1/2
        selection("b", ["p--1", "q--1", "s--1"], ["p--1"]),  # P 1, R 1/3, F1 1/2
        selection("c", ["p--1", "q--1"], None),  # F1 0
    ]
    own = cells(results, "cqbench-selection", "selection")
    assert value(own["F1"]) == pytest.approx(1 / 3)
    assert value(own["precision"]) == 0.5
    # 2 hits, 3 given, 7 right in all.
    assert (value(own["pooled F1"]), own["unreadable"]) == (0.4, 1)
    overview = cells(results, "cqbench", "value selection", "single", "selection")
    assert (value(overview["score"]), value(overview["pooled"])) == (pytest.approx(1 / 3), 0.4)


def extraction(
    row: str, credits: list[float | None] | None, outcome: Any = "answered", **more: Any
) -> Result:
    fields = {
        "id": row,
        "row": row,
        "condition": "extraction+steps",
        "setting": "single",
        "category": "social",
        "gold": ["v--1", "w--1"],
        **more,
    }
    steps = {} if credits is None else {"credits": credits}
    return Result(fields, outcome, ["x", "y"] if outcome == "answered" else None, steps=steps)


def test_extraction_recall_over_values_stories_and_categories() -> None:
    results = [
        extraction("a", [1.0, 0.5]),
        extraction("b", [0.0, None], category="ethical"),
        extraction("c", None, "refused"),
        extraction("d", None),
    ]
    found = table(benchmark, results, "cqbench-extraction")
    every = found["all", "", "extraction+steps"]
    # Settled: 1, 0.5, 0, and the two values that the refusal did not find: 1.5 / 5.
    recall = every["recall"]
    assert isinstance(recall, Estimate)
    assert recall.value == pytest.approx(0.3) and (recall.n, recall.of) == (5, 8)
    # Stories: 0.75, 0, 0; the last was not graded.
    assert value(every["story recall"]) == 0.25
    assert every["unsettled"] == 3
    assert value(found["category", "ethical", "extraction+steps"]["recall"]) == 0.0


async def test_a_whole_run_makes_every_table() -> None:
    every = asked(items(benchmark, STORIES, VALUES, conditions=benchmark.conditions))
    results = [await ask(benchmark, fields, first) for fields in every.values()]
    found = table(benchmark, results, "cqbench")
    assert ("attitude detection", "multiple", "attitude+steps") in found
    assert ("value selection", "single", "selection+steps") in found
