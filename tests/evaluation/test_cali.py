"""CALI's questions, answers, grading and tables, with a model that answers by rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.evaluation.benchmark import Answer, Choices, Given, Graded, Result
from judge.evaluation.cali import benchmark
from judge.evaluation.cali_items import CONDITIONS
from judge.evaluation.cali_rows import LESS, MORE, SAME
from judge.evaluation.tables import Table
from judge.records import Item
from judge.stats.intervals import Estimate
from judge.task import load_task
from judge.verdict import Usage

from .examinee import Unasked

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cali"
DATA, NORMS = str(FIXTURES / "data.tsv"), str(FIXTURES / "norms.jsonl")

ONE = Usage(replies=1, input_tokens=10, output_tokens=1)

Rule = Callable[[str, Mapping[str, str], Sequence[str]], Given]


class ByRule(Unasked):
    """Answers what a function says; notes what was asked, as a prompt."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.asked: list[tuple[str, str]] = []

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        return self._given(task, texts, options)

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        return self._given(task, texts, ())

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        return self._given(task, texts, ())

    def _given(self, task: str, texts: Mapping[str, str], options: Sequence[str]) -> Given:
        prompt = load_task(task).prompt(texts, options)
        self.asked.append((task, str(prompt[-1]["content"])))
        return self.rule(task, texts, options)


def placed(place: int, *probabilities: float) -> Given:
    return Given(ONE, place=place, probabilities=probabilities or None)


def items(*conditions: str, sources: Sequence[str] = (DATA,), seed: int = 0) -> list[Item]:
    return list(benchmark.items(sources, Choices(conditions, seed)))


def fields(item: Item) -> dict[str, Any]:
    assert item.fields is not None, item.problem
    return item.fields


async def answer(asked: Mapping[str, Any], given: Given) -> tuple[Answer, ByRule]:
    model = ByRule(lambda *_: given)
    return await benchmark.answer(asked, model), model


def results(rule: Callable[[Mapping[str, Any]], Any], found: Sequence[Item]) -> list[Result]:
    """Results with the answer that a rule gives to the fields; None is a refusal."""
    made = []
    for item in found:
        told = fields(item)
        given = rule(told)
        gold = told["gold"]
        score = None if gold is None or given is None else float(given == gold)
        made.append(Result(told, "refused" if given is None else "answered", given, score))
    return made


def table(made: Sequence[Table], name: str) -> dict[tuple[str, ...], dict[str, Any]]:
    (found,) = [one for one in made if one.name == name]
    return {row.labels: dict(row.cells) for row in found.rows}


def value(cell: object) -> float:
    assert isinstance(cell, Estimate) and cell.value is not None
    return cell.value


# ------------------------------------------------------------------ items


def test_every_line_is_asked_with_and_without_indicator() -> None:
    found = [fields(one) for one in items("entailment", "entailment+us", "entailment+in")]
    assert len(found) == 72
    assert len({one["id"] for one in found}) == 72
    first = found[:3]
    assert [one["id"] for one in first] == [
        "data.tsv#2/entailment",
        "data.tsv#2/entailment+us",
        "data.tsv#2/entailment+in",
    ]
    # NNNCN and EEEEN: neutral, entailment, and 4 to 5 to 1 together.
    assert [(one["gold_all"], one["gold_us"], one["gold_in"]) for one in first] == [
        (None, "not entail", "entail")
    ] * 3
    assert [one["gold"] for one in first] == [None, "not entail", "entail"]
    assert {one["row"] for one in found[:9]} == {"data.tsv#2"}
    assert found[9]["row"] == "data.tsv#5"
    assert [one["pair"] for one in found if not one["kept"]] == ["data.tsv#17"] * 3
    assert first[0]["us_ratings"] == "['N', 'N', 'N', 'C', 'N']"


def test_alternatives_are_every_two_hypotheses_of_a_premise() -> None:
    found = [fields(one) for one in items("alternatives")]
    assert len(found) == 8 * 3
    # Lines 5 to 7: EEEEN NCNCN, EEENE EEEEE, CCCCC CCCNC.
    early = [one for one in found if one["row"] == "data.tsv#5"]
    golds = {one["id"]: (one["gold_all"], one["gold_us"], one["gold_in"]) for one in early}
    assert golds == {
        "data.tsv#5+data.tsv#6/alternatives": (None, "same", "hypothesis 2"),
        "data.tsv#5+data.tsv#7/alternatives": (None, "hypothesis 1", "hypothesis 1"),
        "data.tsv#6+data.tsv#7/alternatives": ("hypothesis 1",) * 3,
    }
    assert early[0]["hypotheses"][0].startswith("Paul came")
    swapped = [one["swapped"] for one in found]
    assert 0 < sum(swapped) < 24
    others = items("alternatives", "knowledge", sources=(NORMS, DATA))
    assert swapped == [fields(one)["swapped"] for one in others[-24:]]
    assert swapped != [fields(one)["swapped"] for one in items("alternatives", seed=1)]


def test_the_diagnostic_tasks_ask_what_the_norms_allow() -> None:
    found = [fields(one) for one in items("knowledge", "context", "inference", sources=(NORMS,))]
    by = {name: [one for one in found if one["condition"] == name] for name in CONDITIONS}
    assert [one["id"] for one in by["knowledge"]][:2] == [
        "ask-shoes/us/knowledge",
        "ask-shoes/in/knowledge",
    ]
    assert len(by["knowledge"]) == 7
    # One question a premise, whatever the number of its hypotheses, with all norms written to it.
    assert [(one["pair"], len(one["gold"])) for one in by["context"]] == [
        ("shoes-1", 2),
        ("time-1", 2),
        ("gift-1", 2),
        ("hands-1", 1),
    ]
    golds = {one["id"]: one["gold"] for one in by["inference"]}
    assert len(golds) == 7 * 2 + 1
    assert golds["shoes-1/us/inference"] == LESS
    assert golds["shoes-1/in/inference"] == MORE
    assert golds["shoes-2/us/inference"] == SAME
    assert golds["hands-2/in/inference"] == LESS


def test_a_condition_that_no_line_serves() -> None:
    with pytest.raises(UsageError, match="'knowledge', which takes question and norms"):
        items("entailment", "knowledge")
    assert len(items("entailment", "knowledge", sources=(DATA, NORMS))) == 24 + 7 + 7


def test_unreadable_lines_stay_and_do_not_stop_the_others(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    sound = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": ["E"]}
    path.write_text("{torn\n" + json.dumps(sound) + "\n")
    torn, asked = items("entailment", sources=(str(path),))
    assert torn.problem is not None
    assert fields(asked)["gold"] == "entail"
    path.write_text("{torn\n")
    assert len(items("entailment", sources=(str(path),))) == 1


# ------------------------------------------------------------------ asking


async def test_entailment_with_its_probability() -> None:
    plain, american, indian = items("entailment", "entailment+us", "entailment+in")[:3]
    got, model = await answer(fields(american), placed(0, 0.8, 0.2))
    assert (got.answer, got.score) == ("entail", 0.0)
    assert got.probabilities == {"entail": 0.8, "not entail": 0.2}
    ((task, asked),) = model.asked
    assert task == "cali_entailment"
    assert "lives in the United States" in asked
    assert asked.index("[premise ") < asked.index("[hypothesis ") < asked.index("Yes or No")
    got, model = await answer(fields(indian), placed(0))
    assert (got.score, got.probabilities) == (1.0, None)
    assert "lives in India" in model.asked[0][1]
    got, model = await answer(fields(plain), placed(1))
    assert (got.answer, got.score) == ("not entail", None)
    assert "lives in" not in model.asked[0][1]


@pytest.mark.parametrize(
    ("given", "share", "says"),
    [
        (placed(7), 0.7, "entail"),
        (placed(5), 0.5, "not entail"),
        # 0.4 of 0 %, 0.6 of 100 %: the likeliest is 100 %, the mean 60 %.
        (placed(10, 0.4, *[0.0] * 9, 0.6), 0.6, "entail"),
        # The likeliest is 60 %, the mean 0.55 * 0.6 = 33 %.
        (placed(6, 0.45, *[0.0] * 5, 0.55, *[0.0] * 4), 0.33, "not entail"),
    ],
)
async def test_percentages(given: Given, share: float, says: str) -> None:
    (item, *_) = items("percentage+us")
    got, model = await answer(fields(item), given)
    assert got.answer == says
    assert got.probabilities is not None
    assert got.probabilities["entail"] == pytest.approx(share)
    assert got.steps == {"percentage": (given.place or 0) * 10}
    assert "K. 100 %" in model.asked[0][1]


async def test_alternatives_are_told_in_the_files_order() -> None:
    found = [fields(one) for one in items("alternatives+us")]
    swapped = next(one for one in found if one["swapped"])
    straight = next(one for one in found if not one["swapped"])
    got, model = await answer(swapped, placed(0, 0.7, 0.2, 0.1))
    assert got.answer == "hypothesis 2"
    assert got.probabilities == {"hypothesis 2": 0.7, "hypothesis 1": 0.2, "same": 0.1}
    asked = model.asked[0][1]
    first, second = swapped["hypotheses"]
    assert asked.index(second) < asked.index(first)
    assert (await answer(straight, placed(0)))[0].answer == "hypothesis 1"
    assert (await answer(swapped, placed(2)))[0].answer == "same"


async def test_inference_shows_the_norm_and_not_the_country() -> None:
    told = next(fields(one) for one in items("inference", sources=(NORMS,)))
    got, model = await answer(told, placed(1))
    assert (got.answer, got.score) == (LESS, 1.0)
    assert told["norm"] in model.asked[0][1]
    assert "United States" not in model.asked[0][1]


async def test_knowledge_names_the_country() -> None:
    told = [fields(one) for one in items("knowledge", sources=(NORMS,))]
    got, model = await answer(told[1], Given(ONE, text="They take them off."))
    assert (got.answer, got.score) == ("They take them off.", None)
    assert "a home in India?" in model.asked[0][1]


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_no_answer_is_told_as_such(condition: str) -> None:
    told = fields(items(condition, sources=(DATA, NORMS))[-1])
    got, _ = await answer(told, Given(ONE, "refused", "not about people"))
    assert (got.outcome, got.answer, got.score) == ("refused", None, None)
    assert (got.reason, got.usage) == ("not about people", ONE)


# ------------------------------------------------------------------ grading


class Credits:
    def __init__(self, *credits: float | None) -> None:
        self.credits = credits
        self.asked: list[tuple[list[str], list[str]]] = []

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        self.asked.append((list(predicted), list(gold)))
        return Graded(self.credits, ((),) * len(gold), (None,) * len(gold), ONE)


@pytest.mark.parametrize(
    ("credits", "score"),
    [((1.0, 1.0), 1.0), ((1.0, 0.5), 0.5), ((0.5, 0.0), 0.0), ((1.0, None), None)],
)
async def test_context_is_scored_by_recall(
    credits: tuple[float | None, ...], score: float | None
) -> None:
    told = fields(items("context", sources=(NORMS,))[0])
    given, _ = await answer(told, Given(ONE, entries=("Shoes stay on in the US.",)))
    assert given.answer == ["Shoes stay on in the US."]
    grader = Credits(*credits)
    assert benchmark.grade is not None
    got = await benchmark.grade(told, given, grader)
    assert got.score == score
    assert got.usage.replies == 2
    assert got.steps["credits"] == list(credits)
    assert grader.asked == [(["Shoes stay on in the US."], told["gold"])]


async def test_knowledge_is_right_or_not_and_choices_are_not_graded() -> None:
    assert benchmark.grade is not None
    told = fields(items("knowledge", sources=(NORMS,))[0])
    given = Answer("answered", ONE, "It depends.")
    half, full = Credits(0.5), Credits(1.0)
    assert (await benchmark.grade(told, given, half)).score == 0.0
    assert (await benchmark.grade(told, given, full)).score == 1.0
    assert half.asked == [(["It depends."], [told["gold"]])]
    refused = Answer("refused", ONE)
    assert await benchmark.grade(told, refused, half) is refused
    chosen = Answer("answered", ONE, "entail", 1.0)
    assert await benchmark.grade(fields(items("entailment")[0]), chosen, half) is chosen


# ------------------------------------------------------------------ tables


def pairs(folder: Path, *ratings: tuple[str, str], **more: Any) -> str:
    path = folder / "pairs.jsonl"
    told = [
        {
            "id": f"p{number}",
            "premise": f"Premise {number}.",
            "hypothesis": "H.",
            "us_ratings": list(us),
            "in_ratings": list(india),
            **more,
        }
        for number, (us, india) in enumerate(ratings, 1)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in told))
    return str(path)


def test_table_2_by_hand(tmp_path: Path) -> None:
    source = pairs(
        tmp_path,
        ("EEEE", "EEEE"),
        ("EEEEE", "NNN"),  # together 5 of 8: entailment
        ("NNNN", "EEEE"),  # together 4 to 4: no majority
        ("CCCC", "NNNN"),
        ("EENC", "CCCC"),  # the US diverge
        ("EEN", "NNE"),  # nobody agrees by 75 %
        category="other implicatures",
    )
    found = items("entailment", "entailment+us", "entailment+in", sources=(source,))
    made = benchmark.tables(results(lambda told: "entail", found))
    rows = table(made, "cali-labels")
    cells = rows["entailment", "F1"]
    # Pairs 1 to 4 are left. US labels: E E N N; entail has F1 2 * 2 / (4 + 2), the other none.
    assert value(cells["US"]) == pytest.approx((2 / 3 + 0) / 2)
    assert (cells["US"].n, cells["US"].of) == (4, 6)
    # All: E E - N, where pair 4 is C and N, never entailment: 4 of each have no majority.
    assert (cells["All"].n, cells["All"].of) == (2, 6)
    assert value(cells["All"]) == 1.0
    assert value(cells["IN"]) == pytest.approx((2 / 3 + 0) / 2)
    assert cells["asked"] == cells["answered"] == 6
    # Every pair: US E E N N - E; of the pairs 3 are entailment, F1 2 * 3 / (6 + 3).
    every = table(made, "cali-all-pairs")["entailment", "F1"]
    assert value(every["US"]) == pytest.approx((2 / 3 + 0) / 2)
    # All: E E - - N -, by a majority of 8, 5 of 8, none, none, 5 of 8, and 3 to 3.
    assert value(every["All"]) == pytest.approx((2 * 2 / (6 + 2) + 0) / 2)
    assert {every[name].n for name in ("All", "US", "IN")} == {6}
    assert table(made, "cali-classes")["entailment+us", "US"]["accuracy"].value == 0.5
    # Table 4: each indicator against its own labels.
    (category,) = table(made, "cali-categories").values()
    assert category["premises"] == table(made, "cali-labels")["entailment", "F1"]["premises"] > 1
    assert value(category["IN"]) == pytest.approx(1 / 3)
    assert (category["US"].n, category["US"].of) == (4, 6)


def test_an_indicator_that_is_followed_shows_in_its_own_column() -> None:
    found = items("entailment", "entailment+us", "entailment+in")
    made = benchmark.tables(results(lambda told: told[f"gold_{told['country'] or 'us'}"], found))
    rows = table(made, "cali-labels")
    assert value(rows["entailment+us", "F1"]["US"]) == 1.0
    assert value(rows["entailment+in", "F1"]["IN"]) == 1.0
    assert value(rows["entailment+us", "F1"]["IN"]) < 0.6


def test_alternatives_are_scored_by_accuracy() -> None:
    found = items("alternatives")
    made = benchmark.tables(results(lambda told: "same", found))
    cells = table(made, "cali-labels")["alternatives", "accuracy"]
    held = [
        told
        for told in map(fields, found)
        if told["kept"] and told["gold_us"] is not None and told["gold_in"] is not None
    ]
    same = sum(told["gold_us"] == "same" for told in held)
    assert 0 < same < len(held) < 24
    assert value(cells["US"]) == pytest.approx(same / len(held))
    every = table(made, "cali-all-pairs")["alternatives", "accuracy"]
    loose = sum(told["gold_us"] in ("same", None) for told in map(fields, found))
    assert value(every["US"]) == pytest.approx(loose / 24)


def test_refusals_count_as_not_right_and_errors_not_at_all(tmp_path: Path) -> None:
    source = pairs(tmp_path, ("EEEE", "EEEE"), ("EEEE", "EEEE"), ("NNNN", "NNNN"), ("EEEE", "EEEE"))
    found = items("entailment", sources=(source,))
    made = results(lambda told: told["gold"] if told["pair"] != "p2" else None, found)
    made[3] = Result(fields(found[3]), "error")
    cells = table(benchmark.tables(made), "cali-labels")["entailment", "F1"]
    assert (cells["answered"], cells["refused"], cells["error"]) == (2, 1, 1)
    # entail: one hit of two; not entail: one of one. The refusal is nobody's false alarm.
    assert value(cells["All"]) == pytest.approx((2 / 3 + 1) / 2)
    assert (cells["All"].n, cells["All"].of) == (3, 4)


def test_table_3_by_hand() -> None:
    found = items("knowledge", "context", "inference", sources=(NORMS,))

    def score(told: Mapping[str, Any]) -> float | None:
        if told["condition"] == "knowledge":
            return float(told["country"] == "us")
        if told["condition"] == "context":
            return 0.5
        return None if told["gold"] is None else float(told["gold"] == SAME)

    made = [Result(one, "answered", "…", score(one)) for one in map(fields, found)]
    for place, one in enumerate(made):
        if one.fields["condition"] == "inference":
            made[place] = Result(one.fields, "answered", SAME, one.score)
    rows = table(benchmark.tables(made), "cali-diagnostics")
    assert list(rows) == [
        ("shoes at the door",),
        ("time of arrival",),
        ("presents",),
        ("eating by hand",),
        ("mean over behaviors",),
        ("all items",),
    ]
    shoes = rows["shoes at the door",]
    assert (value(shoes["Knowledge US"]), value(shoes["Knowledge IN"])) == (1.0, 0.0)
    assert value(shoes["Context"]) == 0.5
    # Of three pairs and two norms each, the two of shoes-2 change nothing.
    assert value(shoes["Inference"]) == pytest.approx(2 / 6)
    assert "Knowledge US" not in rows["eating by hand",]
    mean = rows["mean over behaviors",]
    # 2/6, 0/4, 2/4, 0/1 over four behaviors; pooled 4/15.
    assert value(mean["Inference"]) == pytest.approx((2 / 6 + 0 + 2 / 4 + 0) / 4)
    assert value(rows["all items",]["Inference"]) == pytest.approx(4 / 15)
    assert (mean["Knowledge US"].n, mean["Knowledge US"].of) == (3, 4)


def test_without_judges_there_is_no_score() -> None:
    found = items("knowledge", "context", sources=(NORMS,))
    made = [Result(fields(one), "answered", "…") for one in found[1:]]
    made.append(Result(fields(found[0]), "refused"))
    tables = benchmark.tables(made)
    counts = table(tables, "cali-diagnostic-counts")["knowledge",]
    assert counts["score"].value is None
    assert (counts["asked"], counts["refused"]) == (7, 1)
    assert [one.name for one in tables] == ["cali-diagnostics", "cali-diagnostic-counts"]


def test_the_benchmark_is_whole() -> None:
    assert set(benchmark.usual) < set(benchmark.conditions)
    for name in benchmark.tasks:
        assert load_task(name).name == name
    made = benchmark.tables(
        results(lambda told: told["gold"], items(*CONDITIONS, sources=(DATA, NORMS)))
    )
    for one in made:
        assert all(len(row.labels) == len(one.heads) for row in one.rows)
        assert all(set(row.cells) <= set(one.columns) for row in one.rows)
        assert json.dumps(one.as_json())
    assert benchmark.tables([]) == []
