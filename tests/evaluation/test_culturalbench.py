"""CulturalBench's rows, Hard made from Easy, the questions and their answers."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.evaluation.benchmark import Choices
from judge.evaluation.culturalbench import benchmark
from judge.evaluation.culturalbench_rows import Easy, Question, hard_of, mode_of, questions
from judge.records import Item
from judge.records.fields import LabelError

from .examinee import Examined, Rule, asked, public, usual, written

STATEMENTS = (
    "How is a seat kept free at a food stall in Singapore?\n"
    "Read the following statements and select the option with all that apply.\n"
    "(i) A packet of tissues\n(ii) An umbrella\n(iii) A wallet\n(iv) A name card"
)
SINGLE = Easy("How is a seat kept free in Singapore?", ("Tissues", "Wallet", "Phone", "Book"), "A")
MULTI = Easy(STATEMENTS, ("i, ii", "(i), (ii), (iv)", "iii", "ii, iii, iv."), "B")


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
            "data_idx": f"{index}{number}",
            "question_idx": index,
            "prompt_question": question,
            "prompt_option": option,
            "answer": str(truth).upper(),
            "country": "Peru",
        }
        for number, (option, truth) in enumerate(options.items())
    ]


def items(*paths: str, conditions: tuple[str, ...] = ("easy", "hard"), seed: int = 0) -> list[Item]:
    return list(benchmark.items(paths, Choices(conditions, seed)))


def message(item: Item) -> str:
    assert item.problem is not None
    return item.problem.message


# ------------------------------------------------------------ Hard from Easy


def test_single_mode_options_become_four_answers() -> None:
    hard = hard_of(SINGLE)
    assert mode_of(SINGLE) == "single"
    assert hard.question == SINGLE.question
    assert hard.options == ("Tissues", "Wallet", "Phone", "Book")
    assert hard.truths == (True, False, False, False)


def test_multi_mode_statements_become_four_answers() -> None:
    hard = hard_of(MULTI)
    assert mode_of(MULTI) == "multi"
    assert hard.question == "How is a seat kept free at a food stall in Singapore?"
    assert hard.options == ("A packet of tissues", "An umbrella", "A wallet", "A name card")
    assert hard.truths == (True, True, False, True)


def test_the_line_about_statements_need_not_be_the_papers() -> None:
    two = STATEMENTS.replace("statements and select", "statements\nand select")
    assert hard_of(Easy(two, MULTI.options, "A")).question.endswith("in Singapore?")
    bare = "What keeps a seat?\n(i) a\n(ii) b\n(iii) c\n(iv) d"
    assert hard_of(Easy(bare, MULTI.options, "C")).question == "What keeps a seat?"
    assert hard_of(Easy(bare, MULTI.options, "C")).truths == (False, False, True, False)


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
    path = public("culturalbench/CulturalBench-Easy.csv")
    found = [one for one in questions([path]) if isinstance(one, Question)]
    assert Counter(one.mode for one in found) == {"single": 1141, "multi": 86}
    asked = [len(one.hard.question.split()) for one in found for _ in one.hard.options]
    answers = [len(option.split()) for one in found for option in one.hard.options]
    assert len(asked) == len(answers) == 4908
    assert statistics.mean(asked) == pytest.approx(14.3, abs=0.05)
    assert statistics.stdev(asked) == pytest.approx(5.27, abs=0.01)
    assert statistics.mean(answers) == pytest.approx(5.72, abs=0.005)
    assert statistics.stdev(answers) == pytest.approx(4.21, abs=0.005)
    trues = Counter(sum(one.hard.truths) for one in found)
    assert trues[1] == 1141 and trues[2] + trues[3] == 86


# ------------------------------------------------------------ reading


def test_easy_and_hard_items_of_an_easy_row(tmp_path: Path) -> None:
    row = easy_row("7", SINGLE, topic="Dining")
    easy, hard = asked(items(written(tmp_path / "a.csv", [row]))).values()
    assert (easy["id"], hard["id"]) == ("7/easy", "7/hard")
    for fields in (easy, hard):
        assert fields["row"] == "7" and fields["mode"] == "single" and fields["topic"] == "Dining"
        assert (fields["country"], fields["region"]) == ("Singapore", "Southeast Asia")
    assert sorted(easy["order"]) == ["A", "B", "C", "D"]
    released = dict(zip("ABCD", SINGLE.options, strict=True))
    assert easy["options"] == [released[letter] for letter in easy["order"]]
    assert easy["gold"] == "A"
    assert hard["options"] == list(SINGLE.options)
    assert hard["gold"] == [True, False, False, False]
    assert (
        "topic" not in asked(items(written(tmp_path / "b.csv", [easy_row("7", SINGLE)])))["7/easy"]
    )


def test_shuffling_hangs_on_seed_and_row_alone(tmp_path: Path) -> None:
    rows = [easy_row(str(number), SINGLE) for number in range(40)]
    path, tail = written(tmp_path / "a.csv", rows), written(tmp_path / "b.csv", rows[20:])
    orders = {row: f["order"] for row, f in asked(items(path, conditions=("easy",))).items()}
    again = {
        row: f["order"]
        for row, f in asked(items(tail, conditions=("easy", "hard"))).items()
        if "order" in f
    }
    assert again == {row: orders[row] for row in again} and len(again) == 20
    other = asked(items(path, conditions=("easy",), seed=1))
    assert {row: fields["order"] for row, fields in other.items()} != orders
    assert len({tuple(order) for order in orders.values()}) > 10


def test_shuffling_spreads_the_right_option_over_the_letters() -> None:
    path = public("culturalbench/CulturalBench-Easy.csv")
    found = asked(items(path, conditions=("easy",)))
    released = Counter(fields["gold"] for fields in found.values())
    assert released == {"A": 658, "B": 254, "C": 189, "D": 126}
    shown = Counter(fields["order"].index(fields["gold"]) for fields in found.values())
    assert all(abs(count - 1227 / 4) < 60 for count in shown.values())


def test_hard_rows_as_released_are_asked_as_hard(tmp_path: Path) -> None:
    rows = hard_rows("3", "What is eaten?", soup=True, rice=True, snow=False, sand=False)
    # The rows of one question need not stand together.
    others = hard_rows("4", "What is drunk?", tea=True, ink=False, oil=False, tar=False)
    path = written(tmp_path / "hard.csv", [*rows[:2], *others, *rows[2:]])
    found = asked(items(path))
    assert list(found) == ["3/hard", "4/hard"]
    assert found["3/hard"]["options"] == ["soup", "rice", "snow", "sand"]
    assert found["3/hard"]["gold"] == [True, True, False, False]
    assert [found[id]["mode"] for id in found] == ["multi", "single"]
    (first, _) = items(path, conditions=("easy",))
    assert message(first) == "question 3 has no row with four options to ask as Easy"


def test_released_hard_rows_come_before_those_made_from_easy(tmp_path: Path) -> None:
    easy = written(tmp_path / "easy.csv", [easy_row("3", SINGLE), easy_row("5", SINGLE)])
    options = {"Tissues": True, "Wallet": False, "Phone": True, "Book": False}
    hard = written(tmp_path / "hard.csv", hard_rows("3", "Seats?", **options))
    found = asked(items(easy, hard))
    assert list(found) == ["3/easy", "3/hard", "5/easy", "5/hard"]
    assert found["3/hard"]["gold"] == [True, False, True, False]
    assert found["5/hard"]["gold"] == [True, False, False, False]


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
            "reads otherwise on line 2 of a.csv",
        ),
    ],
)
def test_rows_that_cannot_be_asked_are_problems(
    rows: list[dict[str, object]], says: str, tmp_path: Path
) -> None:
    found = items(written(tmp_path / "a.csv", rows))
    assert any(item.problem and says in item.problem.message for item in found), found
    assert all(item.source == "a.csv" for item in found)


# ------------------------------------------------------------ asking


async def test_easy_is_answered_by_the_released_letter(tmp_path: Path) -> None:
    fields = asked(items(written(tmp_path / "a.csv", [easy_row("7", SINGLE)])))["7/easy"]
    right = fields["options"].index("Tissues")
    model = Examined(lambda texts, options: right, (0.4, 0.3, 0.2, 0.1))
    found = await benchmark.answer(fields, model)
    assert (found.outcome, found.answer, found.score) == ("answered", "A", 1.0)
    assert found.steps == {"shown": "ABCD"[right]}
    shown = dict(zip(fields["order"], (0.4, 0.3, 0.2, 0.1), strict=True))
    assert found.probabilities == shown and list(found.probabilities) == ["A", "B", "C", "D"]
    wrong = await benchmark.answer(fields, Examined(lambda texts, options: (right + 1) % 4))
    assert wrong.score == 0.0 and wrong.answer != "A"
    (prompt,) = model.prompts
    assert f"{'ABCD'[right]}. Tissues" in prompt and "one letter" in prompt


async def test_a_multi_mode_question_says_that_all_statements_count(tmp_path: Path) -> None:
    rows = [easy_row("1", SINGLE), easy_row("2", MULTI)]
    model = Examined(lambda texts, options: 0)
    for fields in asked(items(written(tmp_path / "a.csv", rows), conditions=("easy",))).values():
        await benchmark.answer(fields, model)
    single, multi = model.prompts
    assert "all of the statements" in multi and "all of the statements" not in single
    assert "(iv) A name card" in multi


async def test_an_option_that_reads_as_the_right_one_is_right(tmp_path: Path) -> None:
    twice = Easy("Where?", ("Madrid", "Seville", "Madrid", "Bilbao"), "A")
    fields = asked(items(written(tmp_path / "a.csv", [easy_row("1", twice)])))["1/easy"]
    place = fields["order"].index("C")
    found = await benchmark.answer(fields, Examined(lambda texts, options: place))
    assert (found.answer, found.score) == ("C", 1.0)


@pytest.mark.parametrize("trouble", ["refused", "unreadable"])
async def test_no_answer_has_no_score(trouble: str, tmp_path: Path) -> None:
    for fields in asked(items(written(tmp_path / "a.csv", [easy_row("7", SINGLE)]))).values():
        found = await benchmark.answer(fields, Examined(lambda texts, options: trouble))
        assert (found.outcome, found.score) == (trouble, None)
        assert found.reason == "no answer in it"


def teller(truths: Mapping[str, bool]) -> Rule:
    """Says of each answer what `truths` has."""
    return lambda texts, options: 0 if truths[texts["answer"]] else 1


async def test_hard_is_right_only_if_all_four_are(tmp_path: Path) -> None:
    fields = asked(items(written(tmp_path / "a.csv", [easy_row("7", MULTI)])))["7/hard"]
    truths = dict(zip(fields["options"], fields["gold"], strict=True))
    model = Examined(teller(truths), (0.9, 0.1))
    found = await benchmark.answer(fields, model)
    assert (found.outcome, found.score) == ("answered", 1.0)
    assert found.answer == [True, True, False, True]
    assert found.usage.replies == 4
    first = {
        "option": "A packet of tissues",
        "answer": True,
        "gold": True,
        "probability": 0.9,
    }
    assert found.steps["options"][0] == first
    for prompt, option in zip(model.prompts, fields["options"], strict=True):
        # Each is asked alone: no other answer stands beside it.
        assert [other for other in fields["options"] if other in prompt] == [option]
    for lie in fields["options"]:
        answers = {**truths, lie: not truths[lie]}
        assert (await benchmark.answer(fields, Examined(teller(answers)))).score == 0.0


async def test_one_of_four_without_an_answer_leaves_no_score(tmp_path: Path) -> None:
    fields = asked(items(written(tmp_path / "a.csv", [easy_row("7", SINGLE)])))["7/hard"]
    said: dict[str, int | str] = {
        "Tissues": 0,
        "Wallet": 1,
        "Phone": "refused",
        "Book": "unreadable",
    }
    found = await benchmark.answer(fields, Examined(lambda texts, options: said[texts["answer"]]))
    assert (found.outcome, found.score) == ("refused", None)
    assert found.answer == [True, False, None, None]
    assert [step.get("trouble") for step in found.steps["options"]] == [
        None,
        None,
        "refused",
        "unreadable",
    ]


def test_every_released_question_is_asked_in_both_set_ups() -> None:
    path = public("culturalbench/CulturalBench-Easy.csv")
    found = asked(list(benchmark.items([path], usual(benchmark))))
    assert len(found) == 2 * 1227
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            easy = found[f"{row['question_idx']}/easy"]
            right = easy["options"][easy["order"].index(row["answer"])]
            assert right == row[f"prompt_option_{row['answer'].lower()}"]
