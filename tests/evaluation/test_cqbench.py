"""CQ-Bench from item to table: what is asked, step by step, how it is scored, what tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from judge.evaluation.benchmark import Answer, Choices, Given, Graded, Result
from judge.evaluation.cqbench import benchmark
from judge.evaluation.tables import Cell, Table
from judge.stats.intervals import Estimate
from judge.task import load_task
from judge.verdict import Usage

from .test_cqbench_items import STORIES, VALUES

ONE = Usage(1, 10, 2)


@dataclass
class Scripted:
    """A measured model that takes the first options, writes its task's name, and notes all asks."""

    place: int = 0
    entries: tuple[str, ...] = ("People should help.",)
    refuses: str = ""
    asks: list[tuple[str, dict[str, str], tuple[str, ...]]] = field(default_factory=list)

    def _given(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], **given: Any
    ) -> Given:
        load_task(task).prompt(texts, options)
        self.asks.append((task, dict(texts), tuple(options)))
        if task == self.refuses:
            return Given(ONE, "refused", "I would rather not")
        return Given(ONE, **given)

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        chances = tuple(1.0 if n == self.place else 0.0 for n in range(len(options)))
        return self._given(task, texts, options, place=self.place, probabilities=chances)

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        return self._given(task, texts, options, places=tuple(range(count)))

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        return self._given(task, texts, (), entries=self.entries)

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        return self._given(task, texts, (), text=f"by {task}")


@dataclass
class Credits:
    """A grader that gives set credits."""

    credits: tuple[float | None, ...]
    seen: list[tuple[str, list[str], list[str]]] = field(default_factory=list)

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        self.seen.append((id, list(predicted), list(gold)))
        given = self.credits[: len(gold)]
        return Graded(given, ((0,),) * len(given), ("so",) * len(given), ONE)


def items(*conditions: str) -> list[dict[str, Any]]:
    found = benchmark.items([STORIES, VALUES], Choices(conditions or benchmark.conditions))
    return [item.fields for item in found if item.fields is not None]


def item(id: str) -> dict[str, Any]:
    (found,) = (one for one in items() if one["id"] == id)
    return found


async def test_attitude_is_one_question_with_the_options_in_their_order() -> None:
    model = Scripted(place=2)
    answer = await benchmark.answer(item("cq-02/1/attitude"), model)
    ((task, texts, options),) = model.asks
    assert task == "cqbench_attitude"
    assert set(texts) == {"story", "statement"}
    assert options == ("Agree", "Neither agree nor disagree", "Disagree")
    assert (answer.outcome, answer.answer, answer.score) == ("answered", "Disagree", 1.0)
    assert answer.probabilities == {"Agree": 0.0, "Neither agree nor disagree": 0.0, "Disagree": 1}
    wrong = await benchmark.answer(item("cq-02/1/attitude"), Scripted(place=0))
    assert (wrong.answer, wrong.score) == ("Agree", 0.0)


async def test_attitude_in_steps_gathers_analyses_then_chooses() -> None:
    model = Scripted(place=2)
    answer = await benchmark.answer(item("cq-10/2/attitude+steps"), model)
    assert [task for task, _, _ in model.asks] == [
        "cqbench_attitude_speech",
        "cqbench_attitude_analysis",
        "cqbench_attitude",
    ]
    speech, analysis, deciding = (texts for _, texts, _ in model.asks)
    assert {texts["character"] for texts in (speech, analysis, deciding)} == {"Boris"}
    assert "related_speech" not in speech
    assert analysis["related_speech"] == "by cqbench_attitude_speech"
    assert analysis["attitudes"] == "Agree\nNeither agree nor disagree\nDisagree"
    assert deciding["analysis"] == "by cqbench_attitude_analysis"
    assert answer.steps == {
        "related_speech": "by cqbench_attitude_speech",
        "analysis": "by cqbench_attitude_analysis",
    }
    assert (answer.score, answer.usage.replies) == (1.0, 3)


def test_the_question_names_the_character_only_where_there_is_one() -> None:
    task = load_task("cqbench_attitude")
    texts = {"story": "S.", "statement": "T."}
    (_, single) = task.prompt(texts, ("Agree", "Disagree"))
    (_, named) = task.prompt({**texts, "character": "Ann"}, ("Agree", "Disagree"))
    assert "character named above" not in single["content"]
    assert "character named above" in named["content"]
    assert "A. Agree\nB. Disagree" in named["content"]


async def test_selection_asks_for_exactly_as_many_as_are_right() -> None:
    model = Scripted()
    fields = item("cq-01/selection+steps")
    answer = await benchmark.answer(fields, model)
    assert [task for task, _, _ in model.asks] == [
        "cqbench_selection_topics",
        "cqbench_selection_analysis",
        "cqbench_selection",
    ]
    assert model.asks[-1][1]["count"] == "4"
    assert answer.answer == fields["options"][:4]
    hits = len(set(fields["options"][:4]) & set(fields["gold"]))
    assert answer.score == pytest.approx(hits / 4)
    assert model.asks[0][1]["candidate_values"].splitlines() == fields["options"]


async def test_extraction_sums_up_each_topic_then_lists() -> None:
    model = Scripted()
    answer = await benchmark.answer(item("cq-02/extraction+steps"), model)
    topics = ["social", "security", "ethical", "political", "religious", "science & technology"]
    assert [texts.get("topic") for _, texts, _ in model.asks] == [*topics, None]
    assert model.asks[-1][0] == "cqbench_extraction"
    assert model.asks[-1][1]["summary"].startswith("social: by cqbench_summary\n\nsecurity: ")
    assert list(answer.steps["summaries"]) == topics
    assert (answer.score, answer.answer) == (None, ["People should help."])
    religious = Scripted()
    await benchmark.answer(item("cq-07/extraction+steps"), religious)
    assert [texts.get("topic") for _, texts, _ in religious.asks] == ["religious", None]


async def test_more_than_ten_predictions_are_cut_and_told() -> None:
    model = Scripted(entries=(*(f"Value {n}." for n in range(12)), " "))
    answer = await benchmark.answer(item("cq-02/extraction+steps"), model)
    assert answer.answer == [f"Value {n}." for n in range(10)]
    assert (answer.steps["predicted"], answer.steps["cut"]) == (12, 2)
    ten = await benchmark.answer(
        item("cq-02/extraction+steps"), Scripted(entries=tuple(f"{n}" for n in range(10)))
    )
    assert ten.steps["cut"] == 0


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
    model = Scripted(refuses=task)
    answer = await benchmark.answer(item(id), model)
    assert (answer.outcome, answer.answer, answer.score) == ("refused", None, None)
    assert "I would rather not" in str(answer.reason)
    assert model.asks[-1][0] == task
    assert len(answer.steps) == left
    assert answer.usage.replies == len(model.asks)


async def test_grading_credits_the_gold_values_of_an_extraction() -> None:
    assert benchmark.grade is not None
    fields = item("cq-01/extraction+steps")
    answer = await benchmark.answer(fields, Scripted())
    grader = Credits((1.0, 0.5, 0.0, 0.0))
    graded = await benchmark.grade(fields, answer, grader)
    # (1 + 0.5 + 0 + 0) / 4, by the score function of section 3.1.
    assert graded.score == 0.375
    assert graded.steps["credits"] == [1.0, 0.5, 0.0, 0.0]
    assert graded.usage.replies == answer.usage.replies + 1
    assert grader.seen == [(fields["id"], ["People should help."], fields["gold"])]
    unsettled = await benchmark.grade(fields, answer, Credits((1.0, None, 0.5, None)))
    assert unsettled.score == 0.75
    nothing = await benchmark.grade(fields, answer, Credits((None, None, None, None)))
    assert nothing.score is None


async def test_only_answered_extractions_are_graded() -> None:
    assert benchmark.grade is not None
    fields = item("cq-02/1/attitude")
    answer = await benchmark.answer(fields, Scripted())
    assert await benchmark.grade(fields, answer, Credits(())) is answer
    refused = Answer("refused", ONE)
    assert await benchmark.grade(item("cq-01/extraction+steps"), refused, Credits(())) is refused


# -------------------------------------------------------------------- tables


def cell(table: Table, column: str, *labels: str) -> Cell:
    (row,) = (row for row in table.rows if row.labels == labels)
    return row.cells.get(column)


def number(table: Table, column: str, *labels: str) -> float | None:
    found = cell(table, column, *labels)
    assert isinstance(found, Estimate)
    return None if found.value is None else round(found.value, 6)


def named(tables: Sequence[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


def attitude(
    row: str, gold: str, answer: str | None, options: Sequence[str] = (), **more: Any
) -> Result:
    fields = {
        "id": f"{row}/{gold}/{answer}/{sorted(more.items())}",
        "row": row,
        "condition": "attitude",
        "setting": "single",
        "category": "political",
        "gold": gold,
        "options": list(options or ("Agree", "Neither agree nor disagree", "Disagree")),
        **more,
    }
    if answer is None:
        return Result(fields, "unreadable")
    return Result(fields, "answered", answer, float(answer == gold))


OFTEN = ("Very often", "Not often", "Not at all often")


def test_merged_options_turn_a_miss_in_severity_into_a_hit() -> None:
    results = [
        attitude("a", "Not often", "Not at all often", OFTEN),
        attitude("a", "Not at all often", "not at all often", OFTEN),
        attitude("b", "Very often", "Not often", OFTEN),
        attitude("b", "Very often", "Very often", OFTEN),
    ]
    overview = named(benchmark.tables(results))["cqbench"]
    label = "attitude detection"
    assert number(overview, "score", label, "single", "attitude") == 0.5
    assert number(overview, "score", label, "single, merged", "attitude") == 0.75
    # Merged: often/not often. Very often: 1 hit, 1 given, 2 right: F1 2/3; the rest: 2 hits,
    # 3 given, 2 right: F1 4/5.
    macro = number(overview, "macro F1", label, "single, merged", "attitude")
    assert macro == pytest.approx((2 / 3 + 4 / 5) / 2, abs=1e-6)


def test_binary_rows_show_what_the_neutral_stance_costs() -> None:
    neutral = "Neither agree nor disagree"
    results = [
        attitude("a", "Agree", "Agree"),
        attitude("a", "Disagree", neutral),
        attitude("b", neutral, "Agree"),
        attitude("b", neutral, None),
        attitude("c", "Very often", "Very often", OFTEN),
        attitude("a", "Agree", "Agree", ("Agree", "Disagree"), condition="attitude:binary"),
        attitude("a", "Disagree", "Disagree", ("Agree", "Disagree"), condition="attitude:binary"),
    ]
    binary = named(benchmark.tables(results))["cqbench-binary"]
    assert number(binary, "accuracy", "neutral among the options", "attitude") == 0.25
    assert number(binary, "accuracy", "gold not neutral, neutral offered", "attitude") == 0.5
    asked_without = ("gold not neutral, asked without it", "attitude:binary")
    assert number(binary, "accuracy", *asked_without) == 1.0
    assert cell(binary, "unreadable", "neutral among the options", "attitude") == 1


def test_each_option_has_its_recall_precision_and_f1() -> None:
    results = [
        attitude("a", "Agree", "agree"),
        attitude("b", "Agree", "Disagree"),
        attitude("c", "Disagree", "Disagree"),
        attitude("d", "Agree", None),
    ]
    table = named(benchmark.tables(results))["cqbench-options"]
    assert number(table, "recall", "agree", "attitude") == pytest.approx(1 / 3, abs=1e-6)
    assert number(table, "precision", "agree", "attitude") == 1.0
    assert number(table, "F1", "agree", "attitude") == 0.5
    assert number(table, "precision", "disagree", "attitude") == 0.5
    assert cell(table, "asked", "agree", "attitude") == 3


def selection(row: str, gold: list[str], answer: list[str] | None, **more: Any) -> Result:
    fields = {
        "id": row,
        "row": row,
        "condition": "selection",
        "setting": "single",
        "category": "ethical",
        "gold": gold,
        **more,
    }
    return Result(fields, "unreadable" if answer is None else "answered", answer)


def test_selection_per_item_pooled_and_as_released() -> None:
    results = [
        selection("a", ["p--1", "q--1"], ["p--1", "r--1"]),  # P 1/2, R 1/2, F1 1/2
        selection("b", ["p--1", "q--1", "s--1"], ["p--1"]),  # P 1, R 1/3, F1 1/2
        selection("c", ["p--1", "q--1"], None),  # F1 0
    ]
    tables = named(benchmark.tables(results))
    own = tables["cqbench-selection"]
    assert number(own, "F1", "selection") == pytest.approx(1 / 3, abs=1e-6)
    assert number(own, "precision", "selection") == 0.5
    # 2 hits, 3 given, 7 right in all.
    assert number(own, "pooled F1", "selection") == 0.4
    assert cell(own, "unreadable", "selection") == 1
    released = tables["cqbench-selection-released"]
    # Mean precision 3/4, mean recall 5/12 over the two readable: F1 = 2 * 5/16 / (7/6) = 15/28.
    assert number(released, "F1", "selection") == pytest.approx(15 / 28, abs=1e-6)
    assert cell(released, "left out", "selection") == 1
    overview = tables["cqbench"]
    assert number(overview, "score", "value selection", "single", "selection") == pytest.approx(
        1 / 3, abs=1e-6
    )
    assert number(overview, "pooled", "value selection", "single", "selection") == 0.4


def test_items_without_a_reply_are_counted_and_in_no_mean() -> None:
    lost = Result(selection("c", ["p--1"], []).fields, "error")
    table = named(benchmark.tables([selection("a", ["p--1"], ["p--1"]), lost]))["cqbench-selection"]
    assert number(table, "F1", "selection") == 1.0
    assert (cell(table, "asked", "selection"), cell(table, "error", "selection")) == (2, 1)


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
        "gold_topics": ["social", "ethical"],
        **more,
    }
    steps = {} if credits is None else {"credits": credits, "cut": more.get("cut", 0)}
    return Result(fields, outcome, ["x", "y"] if outcome == "answered" else None, steps=steps)


def test_extraction_recall_over_values_stories_categories_and_topics() -> None:
    results = [
        extraction("a", [1.0, 0.5], cut=3),
        extraction("b", [0.0, None], category="ethical"),
        extraction("c", None, "refused"),
        extraction("d", None),
    ]
    table = named(benchmark.tables(results))["cqbench-extraction"]
    every = ("all", "", "extraction+steps")
    # Settled: 1, 0.5, 0, and the two values that the refusal did not find: 1.5 / 5.
    assert number(table, "recall", *every) == 0.3
    recall = cell(table, "recall", *every)
    assert isinstance(recall, Estimate)
    assert (recall.n, recall.of) == (5, 8)
    # Stories: 0.75, 0, 0; nobody graded the last.
    assert number(table, "story recall", *every) == 0.25
    assert cell(table, "unsettled", *every) == 3
    assert (cell(table, "cut", *every), cell(table, "stories cut", *every)) == (3, 1)
    assert number(table, "predictions", *every) == 2.0
    assert number(table, "recall", "category", "ethical", "extraction+steps") == 0.0
    # 1, 0 and the refusal's 0.
    social = ("topic", "social", "extraction+steps")
    assert number(table, "recall", *social) == pytest.approx(1 / 3, abs=1e-6)
    assert cell(table, "gold values", *social) == 4


async def test_a_whole_run_makes_every_table() -> None:
    results = []
    for fields in items():
        given = await benchmark.answer(fields, Scripted())
        results.append(Result(fields, given.outcome, given.answer, given.score, None, given.steps))
    tables = benchmark.tables(results)
    assert [table.name for table in tables] == [
        "cqbench",
        "cqbench-categories",
        "cqbench-options",
        "cqbench-binary",
        "cqbench-selection",
        "cqbench-selection-released",
        "cqbench-extraction",
    ]
    for table in tables:
        table.as_json()
        assert all(len(row.labels) == len(table.heads) for row in table.rows)
        assert {name for row in table.rows for name in row.cells} >= set(table.columns)
    rows = [row.labels for row in tables[0].rows]
    assert ("attitude detection", "multiple", "attitude+steps") in rows
    assert ("value selection", "single", "selection:released") in rows
    assert not benchmark.tables([])
