"""CulturalBench's tables by hand."""

from __future__ import annotations

import pytest

from judge.evaluation.benchmark import Outcome, Result
from judge.evaluation.culturalbench import benchmark
from judge.evaluation.culturalbench_tables import tables

from .examinee import Examined, public, results_of, table, usual, value

GOLD = [True, False, False, False]


def easy(
    row: int,
    score: float | None,
    outcome: Outcome = "answered",
    *,
    country: str = "Italy",
    region: str = "South Europe",
    shown: str = "A",
    order: str = "ABCD",
    **more: str,
) -> Result:
    fields = {
        "id": f"{row}/easy",
        "condition": "easy",
        "row": str(row),
        "mode": "single",
        "country": country,
        "region": region,
        "order": list(order),
        "gold": "A",
        **more,
    }
    steps = {"shown": shown} if outcome == "answered" else {}
    return Result(fields, outcome, "A", score, None, steps)


def hard(row: int, answers: list[bool | str], gold: list[bool], mode: str = "single") -> Result:
    fields = {
        "id": f"{row}/hard",
        "condition": "hard",
        "row": str(row),
        "mode": mode,
        "gold": gold,
        "country": "Spain",
        "region": "South Europe",
    }
    steps = [
        {"gold": truth, "answer": None, "trouble": answer}
        if isinstance(answer, str)
        else {"gold": truth, "answer": answer}
        for answer, truth in zip(answers, gold, strict=True)
    ]
    trouble = next((answer for answer in answers if isinstance(answer, str)), None)
    outcome: Outcome = "answered"
    if trouble is not None:
        outcome = "refused" if trouble == "refused" else "unreadable"
    score = float(answers == gold) if trouble is None else None
    return Result(fields, outcome, answers, score, None, {"options": steps})


HARD = [
    hard(1, [True, False, False, False], GOLD),
    hard(2, [False, False, False, False], GOLD),
    hard(3, [True, True, "refused", False], [True, True, False, False], "multi"),
    hard(4, [True, False, False, True], GOLD),
]


def test_hard_by_hand() -> None:
    cells = table(tables(HARD), "culturalbench-setups")[("hard",)].cells
    assert (cells["asked"], cells["answered"], cells["refused"]) == (4, 3, 1)
    assert value(cells["accuracy"]) == 0.25
    # Right: 4, 3, 3 and 3 of 4; the refused one is not.
    assert value(cells["per option"]) == pytest.approx(13 / 16)
    assert value(cells["chance"]) == 0.0625


def test_modes_and_options_by_hand() -> None:
    found = tables(HARD)
    modes = table(found, "culturalbench-modes")
    assert list(modes) == [("hard", "single"), ("hard", "multi")]
    assert value(modes["hard", "single"].cells["accuracy"]) == pytest.approx(1 / 3)
    assert value(modes["hard", "multi"].cells["accuracy"]) == 0.0
    options = table(found, "culturalbench-options")
    assert value(options["single", "true"].cells["right"]) == pytest.approx(2 / 3)
    assert value(options["single", "false"].cells["right"]) == pytest.approx(8 / 9)
    multi = options["multi", "false"].cells
    assert (multi["options"], multi["answered"], multi["refused"]) == (2, 1, 1)
    assert value(multi["right"]) == 0.5


def test_easy_by_hand() -> None:
    results = [
        easy(1, 1.0),
        easy(2, 0.0, shown="B"),
        easy(3, None, "unreadable"),
        easy(4, None, "error"),
        easy(5, 1.0, shown="D", order="BCDA"),
    ]
    found = tables(results)
    cells = table(found, "culturalbench-setups")[("easy",)].cells
    assert value(cells["accuracy"]) == 0.5
    assert value(cells["chance"]) == 0.25
    assert "per option" not in cells
    positions = table(found, "culturalbench-positions")
    assert value(positions["easy", "A"].cells["accuracy"]) == pytest.approx(1 / 3)
    assert value(positions["easy", "D"].cells["accuracy"]) == 1.0
    assert [positions["easy", letter].cells["chosen"] for letter in "ABCD"] == [1, 1, 0, 1]
    assert {one.name for one in found}.isdisjoint({"culturalbench-topics", "culturalbench-options"})


def test_a_region_is_the_mean_of_its_countries_as_in_tables_5_and_6() -> None:
    """North America, 80.72 % for gpt-3-5-turbo-1106: 18 of 20 and 5 of 7."""
    results = [
        easy(number, float(number < 18), country="United States", region="North America")
        for number in range(20)
    ] + [
        easy(20 + number, float(number < 5), country="Canada", region="North America")
        for number in range(7)
    ]
    rows = table(tables(results), "culturalbench-regions")
    cells = rows["easy", "North America"].cells
    assert value(cells["mean of countries"]) == pytest.approx(0.8072, abs=1e-4)
    assert value(cells["accuracy"]) == pytest.approx(23 / 27)
    # Oceania, 92.12 % for gpt4o: 14 of 15 and 10 of 11.
    results = [
        easy(number, float(number not in (0, 15)), country=country, region="Oceania")
        for number, country in enumerate(["Australia"] * 15 + ["New Zealand"] * 11)
    ]
    cells = table(tables(results), "culturalbench-regions")["easy", "Oceania"].cells
    assert value(cells["mean of countries"]) == pytest.approx(0.9212, abs=1e-4)


def test_a_country_of_errors_alone_leaves_no_mean() -> None:
    results = [easy(1, 1.0), easy(2, None, "error", country="Spain")]
    cells = table(tables(results), "culturalbench-regions")["easy", "South Europe"].cells
    assert value(cells["mean of countries"]) is None
    assert value(cells["accuracy"]) == 1.0


def test_topics_have_a_table_where_the_file_has_them() -> None:
    rows = table(
        tables([easy(1, 1.0, topic="Food"), easy(2, 0.0, topic="Food"), easy(3, 1.0)]),
        "culturalbench-topics",
    )
    assert value(rows["easy", "Food"].cells["accuracy"]) == 0.5
    assert rows["easy", "(not said)"].cells["asked"] == 1


async def test_saying_false_to_everything_is_right_nowhere_but_in_single_answers() -> None:
    path = public("culturalbench/CulturalBench-Easy.csv")
    items = list(benchmark.items([path], usual(benchmark)))[:160]
    results = await results_of(benchmark, items, Examined(lambda texts, options: 1))
    cells = table(benchmark.tables(results), "culturalbench-setups")[("hard",)].cells
    assert value(cells["accuracy"]) == 0.0
    per_option = value(cells["per option"])
    assert per_option is not None and 0.7 < per_option < 0.76
