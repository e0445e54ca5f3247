"""CALI's ratings, questions, answers, grading and tables, by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.evaluation.benchmark import Result
from judge.evaluation.cali import benchmark
from judge.evaluation.cali_rows import CONDITIONS, LESS, MORE, SAME, Pair, compared, label_of
from judge.records import Item
from judge.records.fields import LabelError
from judge.stats.intervals import Estimate

from .examinee import Credits, Examined, ask, asked, problems, table, value, written
from .examinee import items as items_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cali"
DATA, NORMS = str(FIXTURES / "data.tsv"), str(FIXTURES / "norms.jsonl")
PAIR = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": ["N"]}


def items(
    *conditions: str, sources: Sequence[str] = (DATA,), seed: int = 0
) -> list[dict[str, Any]]:
    return list(asked(items_of(benchmark, *sources, conditions=conditions, seed=seed)).values())


def results(rule: Callable[[Mapping[str, Any]], Any], found: Sequence[Any]) -> list[Result]:
    """Results with the answer that a rule gives to the fields; None is a refusal."""
    made = []
    for fields in found:
        given, gold = rule(fields), fields["gold"]
        score = None if gold is None or given is None else float(given == gold)
        made.append(Result(fields, "refused" if given is None else "answered", given, score))
    return made


def estimate(cell: object) -> Any:
    assert isinstance(cell, Estimate) and cell.value is not None
    return round(cell.value, 6), cell.n, cell.of


# ------------------------------------------------------------ ratings


def pair(us: str, india: str) -> Pair:
    ratings = {"us": [label_of(r, "us") for r in us], "in": [label_of(r, "in") for r in india]}
    return Pair("a", Item("a", 1, {}), {}, "P", "H", ratings=ratings)


def test_ratings_are_mapped_as_section_3_6_says() -> None:
    ratings = (1, "2", 3, "4", 5, "E", "n", " C ", "Entailment")
    assert [label_of(rating, "us_ratings")[0] for rating in ratings] == list("cnnneence")
    for rating in (0, 6, "5.0", True, None, "X", [5]):
        with pytest.raises(LabelError, match="us_ratings"):
            label_of(rating, "us_ratings")


@pytest.mark.parametrize(
    ("us", "india", "labels", "kept"),
    [
        # 4 of 5 and 5 of 5; together 9 of 10.
        ("EEEEN", "EEEEE", ("entailment", "entailment", "entailment"), True),
        # Each agrees with itself alone: together 5 to 5, which is no majority.
        ("EEEEE", "NNNNN", (None, "entailment", "neutral"), True),
        # 3 of 5 and 3 of 5: majorities, but none of 75 %; together 3 to 3 to 4.
        ("EEENC", "CCCNN", (None, "entailment", "contradiction"), False),
        # 2 of 4 is no majority; 3 of 4 is one, of exactly 75 %.
        ("EENN", "CCCN", (None, None, "contradiction"), True),
        ("11125", "44444", ("neutral", "contradiction", "neutral"), True),
        ("", "EEE", ("entailment", None, "entailment"), True),
    ],
)
def test_majorities(us: str, india: str, labels: tuple[str | None, ...], kept: bool) -> None:
    assert tuple(pair(us, india).labels.values()) == labels
    assert pair(us, india).kept is kept


@given(st.text("ENC", min_size=1), st.text("ENC", min_size=1))
def test_what_a_norm_does_is_read_off_the_groups_difference(us: str, india: str) -> None:
    """The two groups' effects mirror each other, and change with the groups."""
    found, swapped = pair(us, india), pair(india, us)
    mirrored = {MORE: LESS, LESS: MORE, SAME: SAME, None: None}
    assert found.effect("in") == mirrored[found.effect("us")] == swapped.effect("us")
    assert swapped.labels["all"] == found.labels["all"]
    assert (pair("EEE", "NNN").effect("us"), pair("CCC", "NNN").effect("us")) == (MORE, LESS)
    assert compared(None, "neutral") is compared("neutral", None) is None


# ------------------------------------------------------------ items


def test_the_released_form_is_asked_with_and_without_indicator() -> None:
    found = items("entailment", "entailment+us", "entailment+in")
    assert len(found) == 72 and len({one["row"] for one in found}) == 8
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
    assert [one["pair"] for one in found if not one["kept"]] == ["data.tsv#17"] * 3
    # Quoting is off: an open quotation swallows no line.
    assert any('"Morning, Ruth as' in one["premise"] for one in found)


def test_alternatives_are_every_two_hypotheses_of_a_premise() -> None:
    found = items("alternatives")
    assert len(found) == 8 * 3
    # Lines 5 to 7: EEEEN NCNCN, EEENE EEEEE, CCCCC CCCNC.
    early = [one for one in found if one["row"] == "data.tsv#5"]
    golds = {one["id"]: (one["gold_all"], one["gold_us"], one["gold_in"]) for one in early}
    assert golds == {
        "data.tsv#5+data.tsv#6/alternatives": (None, "same", "hypothesis 2"),
        "data.tsv#5+data.tsv#7/alternatives": (None, "hypothesis 1", "hypothesis 1"),
        "data.tsv#6+data.tsv#7/alternatives": ("hypothesis 1",) * 3,
    }
    swapped = [one["swapped"] for one in found]
    assert 0 < sum(swapped) < 24
    others = items("alternatives", "knowledge", sources=(NORMS, DATA))
    assert swapped == [one["swapped"] for one in others[-24:]]
    assert swapped != [one["swapped"] for one in items("alternatives", seed=1)]


def test_the_diagnostic_tasks_ask_what_the_norms_allow() -> None:
    found = items("knowledge", "context", "inference", sources=(NORMS,))
    by = {name: [one for one in found if one["condition"] == name] for name in CONDITIONS}
    names = [one["id"] for one in by["knowledge"]]
    assert names[:2] == ["ask-shoes/us/knowledge", "ask-shoes/in/knowledge"] and len(names) == 7
    # One question a premise, whatever the number of its hypotheses, with all norms written to it.
    assert [(one["pair"], len(one["gold"])) for one in by["context"]] == [
        ("shoes-1", 2),
        ("time-1", 2),
        ("gift-1", 2),
        ("hands-1", 1),
    ]
    golds = {one["id"]: one["gold"] for one in by["inference"]}
    assert len(golds) == 7 * 2 + 1
    assert (golds["shoes-1/us/inference"], golds["shoes-1/in/inference"]) == (LESS, MORE)
    assert (golds["shoes-2/us/inference"], golds["hands-2/in/inference"]) == (SAME, LESS)


def test_a_condition_that_no_line_serves_is_refused() -> None:
    with pytest.raises(UsageError, match="'knowledge', which takes question and norms"):
        items("entailment", "knowledge")
    assert len(items("entailment", "knowledge", sources=(DATA, NORMS))) == 24 + 8 + 7


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"hypothesis": "H."}, "'premise' is missing"),
        ({"premise": "P."}, "'hypothesis' is missing, and 'norms' too"),
        ({"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"]}, "'in_ratings' is missing"),
        ({**PAIR, "us_ratings": [], "in_ratings": []}, "both empty"),
        ({**PAIR, "us_ratings": "E, E"}, "must be a list"),
        ({**PAIR, "us_ratings": ["Z"]}, "must be one of entailment, neutral, contradiction"),
        ({**PAIR, "norms": {"uk": "Queue."}}, "'norms' must map us, in or both"),
        ({**PAIR, "norms": {"us": ""}}, "'us' is empty"),
        ({"question": "Do people queue?"}, "'norms' is missing"),
        ({"question": "Q?", "norms": {"us": "Y.", "in": "N."}}, "must say {country}"),
    ],
)
def test_lines_that_cannot_be_asked_do_not_stop_the_others(
    tmp_path: Path, line: dict[str, object], says: str
) -> None:
    path = written(tmp_path / "lines.jsonl", [PAIR, line])
    sound, faulty = items_of(benchmark, path, conditions=["entailment"])
    assert sound.fields is not None and sound.fields["gold"] is None
    assert says in problems([faulty])[0] and faulty.line == 2


# ------------------------------------------------------------ asking


async def test_entailment_with_its_probability() -> None:
    plain, american, indian = items("entailment", "entailment+us", "entailment+in")[:3]
    model = Examined(lambda *_: 0, (0.8, 0.2))
    got = await ask(benchmark, american, model)
    assert (got.answer, got.score) == ("entail", 0.0)
    assert got.probabilities == {"entail": 0.8, "not entail": 0.2}
    ((task, prompt),) = model.asked
    assert task == "cali_entailment" and "lives in the United States" in prompt
    assert prompt.index("[premise ") < prompt.index("[hypothesis ") < prompt.index("Yes or No")
    model = Examined(lambda *_: 0)
    assert (await ask(benchmark, indian, model)).score == 1.0
    assert "lives in India" in model.asked[0][1]
    model = Examined(lambda *_: 1)
    got = await ask(benchmark, plain, model)
    assert (got.answer, got.score) == ("not entail", None)
    assert "lives in" not in model.asked[0][1]


@pytest.mark.parametrize(
    ("place", "chances", "share", "says"),
    [
        (7, (), 0.7, "entail"),
        (5, (), 0.5, "not entail"),
        # 0.4 of 0 %, 0.6 of 100 %: the likeliest is 100 %, the mean 60 %.
        (10, (0.4, *[0.0] * 9, 0.6), 0.6, "entail"),
        # The likeliest is 60 %, the mean 0.55 * 0.6 = 33 %.
        (6, (0.45, *[0.0] * 5, 0.55, *[0.0] * 4), 0.33, "not entail"),
    ],
)
async def test_percentages(place: int, chances: tuple[float, ...], share: float, says: str) -> None:
    model = Examined(lambda *_: place, chances)
    got = await ask(benchmark, items("percentage+us")[0], model)
    assert got.answer == says and got.probabilities is not None
    assert got.probabilities["entail"] == pytest.approx(share)
    assert got.steps == {"percentage": place * 10}
    assert "K. 100 %" in model.asked[0][1]


async def test_alternatives_are_told_in_the_files_order() -> None:
    found = items("alternatives+us")
    swapped = next(one for one in found if one["swapped"])
    straight = next(one for one in found if not one["swapped"])
    model = Examined(lambda *_: 0, (0.7, 0.2, 0.1))
    got = await ask(benchmark, swapped, model)
    assert got.answer == "hypothesis 2"
    assert got.probabilities == {"hypothesis 2": 0.7, "hypothesis 1": 0.2, "same": 0.1}
    first, second = swapped["hypotheses"]
    assert model.asked[0][1].index(second) < model.asked[0][1].index(first)
    assert (await ask(benchmark, straight, lambda *_: 0)).answer == "hypothesis 1"
    assert (await ask(benchmark, swapped, lambda *_: 2)).answer == "same"


async def test_inference_shows_the_norm_and_knowledge_names_the_country() -> None:
    told = items("inference", sources=(NORMS,))[0]
    model = Examined(lambda *_: 1)
    got = await ask(benchmark, told, model)
    assert (got.answer, got.score) == (LESS, 1.0)
    assert told["norm"] in model.asked[0][1] and "United States" not in model.asked[0][1]
    model = Examined(lambda *_: "They take them off.")
    got = await ask(benchmark, items("knowledge", sources=(NORMS,))[1], model)
    assert (got.answer, got.score) == ("They take them off.", None)
    assert "a home in India?" in model.asked[0][1]


@pytest.mark.parametrize(
    ("credits", "score"),
    [((1.0, 1.0), 1.0), ((1.0, 0.5), 0.5), ((0.5, 0.0), 0.0), ((1.0, None), None)],
)
async def test_context_is_scored_by_the_share_of_norms_that_are_covered(
    credits: tuple[float | None, ...], score: float | None
) -> None:
    assert benchmark.grade is not None
    fields = items("context", sources=(NORMS,))[0]
    answered = await ask(benchmark, fields, lambda *_: ["Shoes stay on in the US."])
    grader = Credits(*credits)
    got = await benchmark.grade(answered, grader)
    assert (got.score, got.usage.replies) == (score, 2)
    assert got.steps["credits"] == list(credits)
    assert grader.asked == [(["Shoes stay on in the US."], fields["gold"])]


async def test_knowledge_is_right_or_not_and_choices_are_not_graded() -> None:
    assert benchmark.grade is not None
    fields = items("knowledge", sources=(NORMS,))[0]
    given_ = Result(fields, "answered", "It depends.")
    half = Credits(0.5)
    assert (await benchmark.grade(given_, half)).score == 0.0
    assert (await benchmark.grade(given_, Credits(1.0))).score == 1.0
    assert half.asked == [(["It depends."], [fields["gold"]])]
    chosen = Result(items("entailment")[0], "answered", "entail", 1.0)
    assert await benchmark.grade(chosen, half) is chosen


# ------------------------------------------------------------ tables


def pairs(folder: Path, *ratings: tuple[str, str], **more: Any) -> str:
    lines = [
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
    return written(folder / "pairs.jsonl", lines)


def test_table_2_by_hand(tmp_path: Path) -> None:
    source = pairs(
        tmp_path,
        ("EEEE", "EEEE"),
        ("EEEEE", "NNN"),  # together 5 of 8: entailment
        ("NNNN", "EEEE"),  # together 4 to 4: no majority
        ("CCCC", "NNNN"),
        ("EENC", "CCCC"),  # the US diverge
        ("EEN", "NNE"),  # neither agrees by 75 %
        category="other implicatures",
    )
    found = items("entailment", "entailment+us", "entailment+in", sources=(source,))
    made = results(lambda fields: "entail", found)
    cells = table(benchmark, made, "cali-labels")["entailment", "F1"]
    # Pairs 1 to 4 are left. US labels: E E N N; entail has F1 2 * 2 / (4 + 2), the other none.
    assert estimate(cells["US"]) == (pytest.approx((2 / 3 + 0) / 2, abs=1e-6), 4, 6)
    # All: E E - N, where pair 4 is C and N, never entailment: 4 of each have no majority.
    assert estimate(cells["All"]) == (1.0, 2, 6)
    assert value(cells["IN"]) == pytest.approx((2 / 3 + 0) / 2)
    assert cells["asked"] == cells["answered"] == 6
    # Every pair: US E E N N - E; of the pairs 3 are entailment, F1 2 * 3 / (6 + 3).
    every = table(benchmark, made, "cali-all-pairs")["entailment", "F1"]
    assert estimate(every["US"]) == (pytest.approx((2 / 3 + 0) / 2, abs=1e-6), 6, 6)
    # All: E E - - N -, by a majority of 8, 5 of 8, none, none, 5 of 8, and 3 to 3.
    assert value(every["All"]) == pytest.approx((2 * 2 / (6 + 2) + 0) / 2)
    # Table 4: each indicator against its own labels.
    category = table(benchmark, made, "cali-categories")["other implicatures",]
    assert category["premises"] == cells["premises"] == 6
    assert value(category["IN"]) == pytest.approx(1 / 3)
    assert estimate(category["US"])[1:] == (4, 6)


def test_alternatives_are_scored_by_accuracy() -> None:
    found = items("alternatives")
    made = results(lambda fields: "same", found)
    held = [one for one in found if one["kept"] and one["gold_us"] and one["gold_in"]]
    same = sum(one["gold_us"] == "same" for one in held)
    assert 0 < same < len(held) < 24
    cells = table(benchmark, made, "cali-labels")["alternatives", "accuracy"]
    assert value(cells["US"]) == pytest.approx(same / len(held))
    every = table(benchmark, made, "cali-all-pairs")["alternatives", "accuracy"]
    assert value(every["US"]) == pytest.approx(
        sum(one["gold_us"] in ("same", None) for one in found) / 24
    )


def test_table_3_by_hand() -> None:
    def score(fields: Mapping[str, Any]) -> float | None:
        if fields["condition"] == "knowledge":
            return float(fields["country"] == "us")
        if fields["condition"] == "context":
            return 0.5
        return None if fields["gold"] is None else float(fields["gold"] == SAME)

    found = items("knowledge", "context", "inference", sources=(NORMS,))
    made = [Result(one, "answered", SAME, score(one)) for one in found]
    cells = table(benchmark, made, "cali-diagnostics")
    behaviors = ["shoes at the door", "time of arrival", "presents", "eating by hand"]
    assert [name for (name,) in cells] == [*behaviors, "mean over behaviors", "all items"]
    shoes, mean = cells["shoes at the door",], cells["mean over behaviors",]
    assert (value(shoes["Knowledge US"]), value(shoes["Knowledge IN"])) == (1.0, 0.0)
    assert value(shoes["Context"]) == 0.5
    # Of three pairs and two norms each, the two of shoes-2 change nothing.
    assert value(shoes["Inference"]) == pytest.approx(2 / 6)
    assert "Knowledge US" not in cells["eating by hand",]
    # 2/6, 0/4, 2/4, 0/1 over four behaviors; pooled 4/15.
    assert value(mean["Inference"]) == pytest.approx((2 / 6 + 0 + 2 / 4 + 0) / 4)
    assert value(cells["all items",]["Inference"]) == pytest.approx(4 / 15)
    assert estimate(mean["Knowledge US"])[1:] == (3, 4)


def test_without_judges_there_is_no_score() -> None:
    found = items("knowledge", "context", sources=(NORMS,))
    made = [Result(one, "answered", "…") for one in found[1:]]
    made.append(Result(found[0], "refused"))
    counts = table(benchmark, made, "cali-diagnostics")["all items",]
    assert value(counts["Knowledge US"]) is None
    assert (counts["asked"], counts["refused"]) == (11, 1)
