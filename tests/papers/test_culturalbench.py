"""CulturalBench's rows, Hard made from Easy, questions, answers and tables."""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.papers.culturalbench import benchmark
from judge.papers.culturalbench_questions import REGIONS, Question, region_of
from judge.papers.tasks import MeasuredAnswer
from judge.records.fields import LabelError
from judge.stats.intervals import Estimate
from judge.verdict import AnswerOutcome

from .examinee import Examined, ask, asked, items, problems, public, table, value, written

STATEMENTS = (
    "How is a seat kept free at a food stall in Singapore?\n"
    "Read the following statements and select the option with all that apply.\n"
    "(i) A packet of tissues\n(ii) An umbrella\n(iii) A wallet\n(iv) A name card"
)
SINGLE = Question(
    "How is a seat kept free in Singapore?", ("Tissues", "Wallet", "Phone", "Book"), "A"
)
MULTI = Question(STATEMENTS, ("i, ii", "(i), (ii), (iv)", "iii", "ii, iii, iv."), "B")
HARD_ROW = {
    "question_idx": "3",
    "prompt_question": "What is drunk?",
    "prompt_option": "tea",
    "answer": "TRUE",
}
RELEASED = "culturalbench/CulturalBench-Easy.csv"


def easy_row(index: str, easy: Question) -> dict[str, object]:
    return {
        "question_idx": index,
        "prompt_question": easy.text,
        **{f"prompt_option_{letter}": o for letter, o in zip("abcd", easy.options, strict=True)},
        "answer": easy.gold,
        "country": "Singapore",
    }


def test_the_right_option_must_name_statements() -> None:
    with pytest.raises(LabelError, match="'prompt_option_b' must name"):
        Question(STATEMENTS, ("i, ii", "all", "iv", "i"), "B").hard()


def test_the_released_questions_have_the_papers_figures() -> None:
    """Sections 4.1 and 5.2: modes, and words in Hard's questions and answers (mean, deviation)."""
    found = asked(items(benchmark, str(public(RELEASED)), conditions=["hard"])).values()
    assert Counter(one["mode"] for one in found) == {"single": 1141, "multi": 86}
    words = [len(one["question"].split()) for one in found for _ in one["options"]]
    answers = [len(option.split()) for one in found for option in one["options"]]
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


def test_a_country_has_its_region_however_it_is_spelt() -> None:
    found = [region_of(country) for country in ("Fiji", " south korea", "Türkiye", "the U.S.")]
    assert found == [None, "East Asia", "Middle East/West Asia", "North America"]


def test_easy_and_hard_items_of_an_easy_row(tmp_path: Path) -> None:
    row = easy_row("7", SINGLE)
    easy, hard = asked(items(benchmark, written(tmp_path / "a.csv", [row]))).values()
    assert (easy["id"], hard["id"]) == ("7/easy", "7/hard")
    for fields in (easy, hard):
        assert fields["row"] == "7" and fields["mode"] == "single"
        assert (fields["country"], fields["region"]) == ("Singapore", "Southeast Asia")
    released = dict(zip("ABCD", SINGLE.options, strict=True))
    assert sorted(easy["order"]) == ["A", "B", "C", "D"] and easy["gold"] == "A"
    assert easy["options"] == [released[letter] for letter in easy["order"]]
    assert hard["options"] == list(SINGLE.options)
    assert hard["gold"] == [True, False, False, False]


def test_shuffling_hangs_on_seed_and_row_alone_and_spreads_the_right_option() -> None:
    path = str(public(RELEASED))
    found = asked(items(benchmark, path, conditions=["easy"]))
    released = Counter(one["gold"] for one in found.values())
    assert released == {"A": 658, "B": 254, "C": 189, "D": 126}
    shown = Counter(one["order"].index(one["gold"]) for one in found.values())
    assert all(abs(count - 1227 / 4) < 60 for count in shown.values())
    both = asked(items(benchmark, path))
    assert {id: both[id]["order"] for id in found} == {id: found[id]["order"] for id in found}
    other = asked(items(benchmark, path, conditions=["easy"], seed=1))
    assert any(other[id]["order"] != found[id]["order"] for id in found)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([easy_row("1", SINGLE), easy_row("1", MULTI)], "was already on line 2 of a.csv"),
        ([{**easy_row("1", SINGLE), "answer": "E"}], "field 'answer' must be one of A, B, C, D"),
        ([{**easy_row("1", SINGLE), "prompt_option_c": ""}], "'prompt_option_c' is empty"),
        ([{"question": "x", "n": "1"}], "field 'prompt_question' is missing"),
        (
            [{**HARD_ROW, "answer": "maybe"}],
            "field 'answer' must be one of true, false, not 'maybe'",
        ),
        ([{**HARD_ROW, "question_idx": ""}], "field 'question_idx' is missing"),
        ([HARD_ROW, HARD_ROW], "question_idx 3 has 2 readable rows, not 4"),
        ([HARD_ROW] * 5, "question_idx 3 has 5 readable rows, not 4"),
    ],
)
def test_rows_that_cannot_be_asked_are_problems(
    rows: list[dict[str, object]], says: str, tmp_path: Path
) -> None:
    found = items(benchmark, written(tmp_path / "a.csv", rows))
    assert any(says in told for told in problems(found)), found
    assert all(item.source == "a.csv" for item in found)
    assert len(problems(found)) == len(found) or rows[0] != HARD_ROW


def test_the_guesser_asks_no_row_without_a_country(tmp_path: Path) -> None:
    for country, told in (("Singapore", None), (" ", "field 'country' is missing: the guesser")):
        row = {**easy_row("1", SINGLE), "country": country}
        (item,) = items(benchmark, written(tmp_path / "a.csv", [row]), setting="guesser")
        assert (item.problem is None) == (told is None)
        assert told is None or (item.problem and told in item.problem.message)


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
    twice = Question("Where?", ("Madrid", "Seville", "Madrid", "Bilbao"), "A")
    path = written(tmp_path / "a.csv", [easy_row("1", twice)])
    fields = asked(items(benchmark, path))["1/easy"]
    found = await ask(benchmark, fields, lambda *_: fields["order"].index("C"))
    assert (found.answer, found.score) == ("C", 1.0)


async def test_hard_is_right_only_if_all_four_are(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [easy_row("7", MULTI)])
    fields = asked(items(benchmark, path))["7/hard"]
    assert fields["question"] == "How is a seat kept free at a food stall in Singapore?"
    assert fields["options"] == ["A packet of tissues", "An umbrella", "A wallet", "A name card"]
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


def test_a_hard_file_is_asked_as_hard_made_from_its_easy_file(tmp_path: Path) -> None:
    """Released (question_idx four times, TRUE and FALSE, in any order) or built; both modes."""
    two = Question(MULTI.text, MULTI.options, "A")
    easy = [easy_row("7", SINGLE), easy_row("8", MULTI), easy_row("9", two)]
    expected = asked(items(benchmark, written(tmp_path / "a.csv", easy), conditions=["hard"]))
    released = [
        {
            "data_idx": str(4 * number + place),
            "question_idx": fields["row"],
            "prompt_question": fields["question"],
            "prompt_option": option,
            "answer": str(true).upper(),
            "country": "Singapore",
        }
        for number, fields in enumerate(expected.values())
        for place, (option, true) in enumerate(zip(fields["options"], fields["gold"], strict=True))
    ]
    mixed = [*released[::2], *released[1::2]]
    for rows, other in ((released, False), (mixed, True)):
        found = asked(items(benchmark, written(tmp_path / "hard.csv", rows)))
        assert found.keys() == expected.keys()
        for id, fields in expected.items():
            pairs = [set(zip(f["options"], f["gold"], strict=True)) for f in (found[id], fields)]
            assert pairs[0] == pairs[1]
            assert other or found[id] == fields
    assert items(benchmark, str(tmp_path / "hard.csv"), conditions=["easy"]) == []
    # Both files: each question once in either form.
    both = items(benchmark, str(tmp_path / "a.csv"), str(tmp_path / "hard.csv"))
    ids = Counter(item.fields["id"] for item in both)
    assert ids == dict.fromkeys((f"{n}/{form}" for n in "789" for form in ("easy", "hard")), 1)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_pipe_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    easy = [easy_row(index, SINGLE) for index in "123"]
    hard = [{**HARD_ROW, "question_idx": index} for index in "12" for _ in range(4)]
    for rows, ids in ((easy, "123"), (hard, "12")):
        path = written(tmp_path / name, rows)
        piped = io.TextIOWrapper(io.BytesIO(Path(path).read_bytes()))
        monkeypatch.setattr("sys.stdin", piped)
        found = asked(items(benchmark, "-", conditions=["hard"]))
        assert [*found] == [f"{index}/hard" for index in ids]


async def test_one_of_four_without_an_answer_leaves_no_score(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [easy_row("7", SINGLE)])
    fields = asked(items(benchmark, path))["7/hard"]
    said: dict[str, Any] = {"Tissues": 0, "Wallet": 1, "Phone": "refused"}
    found = await ask(benchmark, fields, lambda _, texts, __: said[texts["answer"]])
    assert (found.outcome, found.score, found.answer) == ("refused", None, None)


def test_a_rows_own_topic_stays_to_slice_by(tmp_path: Path) -> None:
    row = {**easy_row("0", SINGLE), "topic": "food", "data_idx": "9", "gold": "Z"}
    found = asked(items(benchmark, written(tmp_path / "easy.csv", [row])))
    for fields in found.values():
        assert fields["topic"] == "food" and "data_idx" not in fields and fields["gold"] != "Z"


def easy(row: int, score: float | None, country: str, region: str) -> MeasuredAnswer:
    fields = {"id": f"{row}/easy", "condition": "easy", "row": str(row), "mode": "single"}
    outcome: str = "error" if score is None else "answered"
    return MeasuredAnswer(
        {**fields, "country": country, "region": region}, AnswerOutcome(outcome), "A", score
    )


def test_a_region_is_the_mean_of_its_countries_as_in_tables_5_and_6() -> None:
    """North America, 80.72 % for gpt-3-5-turbo-1106: 18 of 20 and 5 of 7; Oceania, 92.12 %."""
    counts = {
        ("North America", "United States"): (18, 20),
        ("North America", "Canada"): (5, 7),
        ("Oceania", "Australia"): (14, 15),
        ("Oceania", "New Zealand"): (10, 11),
    }
    results = [
        easy(100 * n + number, float(number < right), country, region)
        for n, ((region, country), (right, of)) in enumerate(counts.items())
        for number in range(of)
    ]
    cells = table(benchmark, results, "culturalbench-regions")
    america = cells["easy", "North America"]
    assert value(america["mean of countries"]) == pytest.approx(0.8072, abs=1e-4)
    assert value(america["accuracy"]) == pytest.approx(23 / 27)
    oceania = cells["easy", "Oceania"]
    assert value(oceania["mean of countries"]) == pytest.approx(0.9212, abs=1e-4)
    # Of one country, two spellings: 5 of 7 in all, not the mean of 1 of 1 and 4 of 6.
    respelt = [
        replace(r, fields={**r.fields, "country": " canada"}) if r.row == "100" else r
        for r in results
    ]
    america = table(benchmark, respelt, "culturalbench-regions")["easy", "North America"]
    assert value(america["mean of countries"]) == pytest.approx((18 / 20 + 5 / 7) / 2)
    # An answer without a score is not a wrong one.
    unscored = MeasuredAnswer(
        {**results[0].fields, "id": "u", "row": "u"}, AnswerOutcome.ANSWERED, "A", None
    )
    cells = table(benchmark, [*results, unscored], "culturalbench-regions")
    assert value(cells["easy", "North America"]["mean of countries"]) == pytest.approx(
        0.8072, abs=1e-4
    )
    lost = [easy(1, 1.0, "Italy", "South Europe"), easy(2, None, "Spain", "South Europe")]
    cells = table(benchmark, lost, "culturalbench-regions")
    assert value(cells["easy", "South Europe"]["mean of countries"]) is None
    # Rows that do not say their country are no further country.
    unsaid = [easy(3, 0.0, "", "South Europe"), easy(4, 1.0, " ", "Elsewhere")]
    cells = table(benchmark, [lost[0], *unsaid], "culturalbench-regions")
    mean = cells["easy", "South Europe"]["mean of countries"]
    assert (value(mean), mean.n, mean.of) == (1.0, 1, 2)
    assert cells["easy", "Elsewhere"]["mean of countries"] == Estimate(None, of=1)
