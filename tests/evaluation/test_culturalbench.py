"""CulturalBench's rows, Hard made from Easy, questions, answers, tables and the guesser."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.evaluation.benchmark import NoAnswer, Outcome, Result
from judge.evaluation.countries import REGIONS, region_of
from judge.evaluation.culturalbench import benchmark, embedding_guesser
from judge.evaluation.culturalbench_rows import Easy, Question, hard_of, questions
from judge.records.fields import LabelError
from judge.weights.encoder import SentenceEncoder

from .examinee import Examined, ask, asked, items, problems, public, table, value, written

STATEMENTS = (
    "How is a seat kept free at a food stall in Singapore?\n"
    "Read the following statements and select the option with all that apply.\n"
    "(i) A packet of tissues\n(ii) An umbrella\n(iii) A wallet\n(iv) A name card"
)
SINGLE = Easy("How is a seat kept free in Singapore?", ("Tissues", "Wallet", "Phone", "Book"), "A")
MULTI = Easy(STATEMENTS, ("i, ii", "(i), (ii), (iv)", "iii", "ii, iii, iv."), "B")
RELEASED = "culturalbench/CulturalBench-Easy.csv"


def easy_row(index: str, easy: Easy, country: str = "Singapore", **more: str) -> dict[str, object]:
    return {
        "data_idx": index,
        "question_idx": index,
        "prompt_question": easy.question,
        **{f"prompt_option_{letter}": o for letter, o in zip("abcd", easy.options, strict=True)},
        "answer": easy.gold,
        "country": country,
        **more,
    }


def hard_rows(index: str, question: str, **options: bool) -> list[dict[str, object]]:
    return [
        {
            "question_idx": index,
            "prompt_question": question,
            "prompt_option": option,
            "answer": str(truth).upper(),
            "country": "Peru",
        }
        for option, truth in options.items()
    ]


# ------------------------------------------------------------ Hard from Easy


@pytest.mark.parametrize(
    ("easy", "says"),
    [
        (Easy("Which?", ("i, ii", "iii", "iv", "i"), "A"), "question does not list"),
        (Easy(STATEMENTS, ("i, ii", "all", "iv", "i"), "A"), "'prompt_option_b' must name"),
    ],
)
def test_statements_and_options_must_fit(easy: Easy, says: str) -> None:
    with pytest.raises(LabelError, match=says):
        hard_of(easy)


NUMERALS = ("i", "ii", "iii", "iv")
TEXT = st.text("abc ", min_size=1).filter(str.strip)


@given(st.lists(TEXT, min_size=4, max_size=4), st.sets(st.sampled_from(NUMERALS), min_size=1))
def test_any_statements_come_back(texts: list[str], true: set[str]) -> None:
    listed = "\n".join(f"({n}) {text}" for n, text in zip(NUMERALS, texts, strict=True))
    option = ", ".join(n for n in NUMERALS if n in true)
    hard = hard_of(Easy(f"What?\nThe statements:\n{listed}", (option, "i", "ii", "iii"), "A"))
    assert hard.question == "What?"
    assert hard.options == tuple(text.strip() for text in texts)
    assert hard.truths == tuple(n in true for n in NUMERALS)


def test_the_released_questions_have_the_papers_figures() -> None:
    """Sections 4.1 and 5.2: modes, and words in Hard's questions and answers (mean, deviation)."""
    found = [one for one in questions([str(public(RELEASED))]) if isinstance(one, Question)]
    assert Counter(one.mode for one in found) == {"single": 1141, "multi": 86}
    words = [len(one.hard.question.split()) for one in found for _ in one.hard.options]
    answers = [len(option.split()) for one in found for option in one.hard.options]
    assert len(words) == len(answers) == 4908
    assert statistics.mean(words) == pytest.approx(14.3, abs=0.05)
    assert statistics.stdev(words) == pytest.approx(5.27, abs=0.01)
    assert statistics.mean(answers) == pytest.approx(5.72, abs=0.005)
    assert statistics.stdev(answers) == pytest.approx(4.21, abs=0.005)


# The paper's appendix B; its South America says 150 over countries that add up to 151.
QUESTIONS = dict(zip(REGIONS, (27, 150, 115, 76, 96, 134, 127, 106, 159, 211, 26), strict=True))


def test_regions_have_the_papers_numbers_of_questions() -> None:
    with public(RELEASED).open(encoding="utf-8", newline="") as file:
        assert Counter(region_of(row["country"]) for row in csv.DictReader(file)) == QUESTIONS
    assert (region_of("Fiji"), region_of(" south korea")) == (None, "East Asia")


# ------------------------------------------------------------ reading


def test_easy_and_hard_items_of_an_easy_row(tmp_path: Path) -> None:
    row = easy_row("7", SINGLE, topic="Dining")
    easy, hard = asked(items(benchmark, written(tmp_path / "a.csv", [row]))).values()
    assert (easy["id"], hard["id"]) == ("7/easy", "7/hard")
    for fields in (easy, hard):
        assert fields["row"] == "7" and fields["mode"] == "single" and fields["topic"] == "Dining"
        assert (fields["country"], fields["region"]) == ("Singapore", "Southeast Asia")
    released = dict(zip("ABCD", SINGLE.options, strict=True))
    assert sorted(easy["order"]) == ["A", "B", "C", "D"] and easy["gold"] == "A"
    assert easy["options"] == [released[letter] for letter in easy["order"]]
    assert hard["options"] == list(SINGLE.options)
    assert hard["gold"] == [True, False, False, False]


def test_shuffling_hangs_on_seed_and_row_alone_and_spreads_the_right_option() -> None:
    path = str(public(RELEASED))
    found = asked(items(benchmark, path, conditions=["easy"]))
    assert Counter(one["gold"] for one in found.values()) == {
        "A": 658,
        "B": 254,
        "C": 189,
        "D": 126,
    }
    shown = Counter(one["order"].index(one["gold"]) for one in found.values())
    assert all(abs(count - 1227 / 4) < 60 for count in shown.values())
    both = asked(items(benchmark, path))
    assert {id: both[id]["order"] for id in found} == {id: found[id]["order"] for id in found}
    other = asked(items(benchmark, path, conditions=["easy"], seed=1))
    assert any(other[id]["order"] != found[id]["order"] for id in found)
    plain = asked(items(benchmark, path, conditions=["easy"], options={"shuffle": "false"}))
    assert all(one["order"] == list("ABCD") for one in plain.values())


def test_hard_rows_as_released_come_before_those_made_from_easy(tmp_path: Path) -> None:
    rows = hard_rows("3", "What is eaten?", soup=True, rice=True, snow=False, sand=False)
    # The rows of one question need not stand together.
    others = hard_rows("4", "What is drunk?", tea=True, ink=False, oil=False, tar=False)
    hard = written(tmp_path / "hard.csv", [*rows[:2], *others, *rows[2:]])
    easy = written(tmp_path / "easy.csv", [easy_row("3", SINGLE), easy_row("5", SINGLE)])
    found = asked(items(benchmark, easy, hard))
    assert list(found) == ["3/easy", "3/hard", "5/easy", "5/hard", "4/hard"]
    assert found["3/hard"]["options"] == ["soup", "rice", "snow", "sand"]
    assert found["3/hard"]["gold"] == [True, True, False, False]
    assert found["5/hard"]["gold"] == [True, False, False, False]
    assert found["4/hard"]["mode"] == "single"
    first, _ = problems(items(benchmark, hard, conditions=["easy"]))
    assert first == "question 3 has no row with four options to ask as Easy"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([easy_row("1", SINGLE), easy_row("1", MULTI)], "was already on line 2 of a.csv"),
        ([{**easy_row("1", SINGLE), "answer": "E"}], "field 'answer' must be one of A, B, C, D"),
        ([{**easy_row("1", SINGLE), "prompt_option_c": ""}], "'prompt_option_c' is empty"),
        ([{"question": "x", "n": "1"}], "field 'prompt_question' is missing"),
        (hard_rows("3", "What?", a=True, b=False, c=False), "has 3 rows, one for each option"),
        (hard_rows("3", "What?", a=False, b=False, c=False, d=False), "no option that is true"),
        (
            [*hard_rows("3", "What?", a=True), *hard_rows("3", "Who?", b=False)],
            "reads otherwise on line 3 of a.csv",
        ),
    ],
)
def test_rows_that_cannot_be_asked_are_problems(
    rows: list[dict[str, object]], says: str, tmp_path: Path
) -> None:
    found = items(benchmark, written(tmp_path / "a.csv", rows))
    assert any(says in told for told in problems(found)), found
    assert all(item.source == "a.csv" for item in found)


# ------------------------------------------------------------ asking


async def test_easy_is_answered_by_the_released_letter(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [easy_row("7", SINGLE), easy_row("8", MULTI)])
    found = asked(items(benchmark, path))
    fields = found["7/easy"]
    right = fields["options"].index("Tissues")
    model = Examined(lambda *_: right, (0.4, 0.3, 0.2, 0.1))
    answered = await ask(benchmark, fields, model)
    assert (answered.outcome, answered.answer, answered.score) == ("answered", "A", 1.0)
    shown = dict(zip(fields["order"], (0.4, 0.3, 0.2, 0.1), strict=True))
    assert answered.probabilities == shown
    wrong = await ask(benchmark, fields, lambda *_: (right + 1) % 4)
    assert wrong.score == 0.0 and wrong.answer != "A"
    ((_, prompt),) = model.asked
    assert f"{'ABCD'[right]}. Tissues" in prompt and "all of the statements" not in prompt
    model = Examined(lambda *_: 0)
    await ask(benchmark, found["8/easy"], model)
    assert "all of the statements" in model.asked[0][1]


async def test_an_option_that_reads_as_the_right_one_is_right(tmp_path: Path) -> None:
    twice = Easy("Where?", ("Madrid", "Seville", "Madrid", "Bilbao"), "A")
    path = written(tmp_path / "a.csv", [easy_row("1", twice)])
    fields = asked(items(benchmark, path))["1/easy"]
    found = await ask(benchmark, fields, lambda *_: fields["order"].index("C"))
    assert (found.answer, found.score) == ("C", 1.0)


async def test_hard_is_right_only_if_all_four_are(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [easy_row("7", MULTI)])
    fields = asked(items(benchmark, path))["7/hard"]
    truths = dict(zip(fields["options"], fields["gold"], strict=True))
    model = Examined(lambda _, texts, __: 0 if truths[texts["answer"]] else 1, (0.9, 0.1))
    found = await ask(benchmark, fields, model)
    assert (found.outcome, found.score) == ("answered", 1.0)
    assert found.answer == [True, True, False, True] and found.usage.replies == 4
    assert found.probabilities == {"1": 0.9, "2": 0.9, "3": 0.9, "4": 0.9}
    for (_, prompt), option in zip(model.asked, fields["options"], strict=True):
        # Each is asked alone: no other answer stands beside it.
        assert [other for other in fields["options"] if other in prompt] == [option]
    for lie in fields["options"]:
        told = {**truths, lie: not truths[lie]}
        answered = await ask(benchmark, fields, lambda _, t, __, n=told: 1 - int(n[t["answer"]]))  # type: ignore[misc]
        assert answered.score == 0.0


async def test_one_of_four_without_an_answer_leaves_no_score(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [easy_row("7", SINGLE)])
    fields = asked(items(benchmark, path))["7/hard"]
    said: dict[str, Any] = {"Tissues": 0, "Wallet": 1, "Phone": "refused", "Book": "unreadable"}
    found = await ask(benchmark, fields, lambda _, texts, __: said[texts["answer"]])
    assert (found.outcome, found.score) == ("refused", None)
    assert found.answer == [True, False, None, None]


# ------------------------------------------------------------ the guesser


ALIKE = {"Fado": 0.1, "Opera": 0.3, "Tango": 0.7, "Yodel": None}


def test_the_guesser_takes_the_option_most_like_the_country(tmp_path: Path) -> None:
    question = Easy("What is sung?", tuple(ALIKE), "C")
    rows = [easy_row("1", question, "Argentina"), easy_row("2", question, "")]
    found = asked(items(benchmark, written(tmp_path / "a.csv", rows)))
    guess = embedding_guesser(lambda country, option: ALIKE[option])
    assert guess(found["1/easy"]) == "C"
    assert guess(found["1/hard"]) == [False, False, True, False]
    with pytest.raises(NoAnswer, match="the row names no country"):
        guess(found["2/easy"])


@pytest.mark.slow
def test_the_released_questions_are_guessed_above_chance() -> None:
    """Nearly a third of them, where chance is a quarter; the paper's larger model has 40.42 %.

    Every fourth question, for the time it takes.
    """
    if not SentenceEncoder.available():
        pytest.skip("the embedding weights are not here")
    found = asked(items(benchmark, str(public(RELEASED)), conditions=["easy"]))
    guess = embedding_guesser()
    scores = [benchmark.score(one, guess(one)) or 0.0 for one in list(found.values())[::4]]
    assert sum(scores) / len(scores) == pytest.approx(0.313, abs=0.005)


# ------------------------------------------------------------ tables


def easy(
    row: int,
    score: float | None,
    outcome: Outcome = "answered",
    *,
    country: str = "Italy",
    region: str = "South Europe",
    order: str = "ABCD",
    answer: str = "A",
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
    return Result(fields, outcome, answer, score)


def hard(row: int, answers: Sequence[bool | None], gold: list[bool], mode: str) -> Result:
    about = {"mode": mode, "gold": gold, "country": "Spain", "region": "South Europe"}
    fields = {"id": f"{row}/hard", "condition": "hard", "row": str(row), **about}
    if None in answers:
        return Result(fields, "refused", list(answers))
    return Result(fields, "answered", list(answers), float(list(answers) == gold))


GOLD = [True, False, False, False]
HARD = [
    hard(1, GOLD, GOLD, "single"),
    hard(2, [False] * 4, GOLD, "single"),
    hard(3, [True, True, None, False], [True, True, False, False], "multi"),
    hard(4, [True, False, False, True], GOLD, "single"),
]


def test_hard_by_hand() -> None:
    cells = table(benchmark, HARD, "culturalbench-setups")["hard",]
    assert (cells["asked"], cells["answered"], cells["refused"]) == (4, 3, 1)
    assert value(cells["accuracy"]) == 0.25
    # Right: 4, 3, 3 and 3 of 4; the refused one is not.
    assert value(cells["per option"]) == pytest.approx(13 / 16)
    assert value(cells["chance"]) == 0.0625
    modes = table(benchmark, HARD, "culturalbench-modes")
    assert list(modes) == [("hard", "single"), ("hard", "multi")]
    assert value(modes["hard", "single"]["accuracy"]) == pytest.approx(1 / 3)
    options = table(benchmark, HARD, "culturalbench-options")
    assert value(options["single", "true"]["accuracy"]) == pytest.approx(2 / 3)
    assert value(options["single", "false"]["accuracy"]) == pytest.approx(8 / 9)
    multi = options["multi", "false"]
    assert (multi["asked"], multi["answered"], multi["refused"]) == (2, 1, 1)
    assert value(multi["accuracy"]) == 0.5


def test_easy_by_hand() -> None:
    results = [
        easy(1, 1.0, topic="Food"),
        easy(2, 0.0, answer="B"),
        easy(3, None, "unreadable"),
        easy(4, None, "error"),
        easy(5, 1.0, order="BCDA"),
    ]
    cells = table(benchmark, results, "culturalbench-setups")["easy",]
    assert (value(cells["accuracy"]), value(cells["chance"])) == (0.5, 0.25)
    positions = table(benchmark, results, "culturalbench-positions")
    assert value(positions["A",]["accuracy"]) == pytest.approx(1 / 3)
    assert value(positions["D",]["accuracy"]) == 1.0
    assert [positions[letter,]["chosen"] for letter in "AD"] == [1, 1]
    topics = table(benchmark, results, "culturalbench-topics")
    assert (topics["easy", "Food"]["asked"], topics["easy", "(not said)"]["asked"]) == (1, 4)


def test_a_region_is_the_mean_of_its_countries_as_in_tables_5_and_6() -> None:
    """North America, 80.72 % for gpt-3-5-turbo-1106: 18 of 20 and 5 of 7; Oceania, 92.12 %."""
    counts = {
        ("North America", "United States"): (18, 20),
        ("North America", "Canada"): (5, 7),
        ("Oceania", "Australia"): (14, 15),
        ("Oceania", "New Zealand"): (10, 11),
    }
    results = [
        easy(100 * n + number, float(number < right), country=country, region=region)
        for n, ((region, country), (right, of)) in enumerate(counts.items())
        for number in range(of)
    ]
    cells = table(benchmark, results, "culturalbench-regions")
    america = cells["easy", "North America"]
    assert value(america["mean of countries"]) == pytest.approx(0.8072, abs=1e-4)
    assert value(america["accuracy"]) == pytest.approx(23 / 27)
    oceania = cells["easy", "Oceania"]
    assert value(oceania["mean of countries"]) == pytest.approx(0.9212, abs=1e-4)
    lost = [easy(1, 1.0), easy(2, None, "error", country="Spain")]
    cells = table(benchmark, lost, "culturalbench-regions")
    assert value(cells["easy", "South Europe"]["mean of countries"]) is None
