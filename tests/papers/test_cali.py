"""CALI's ratings, questions, answers and tables, by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.papers.benchmark import choices_of
from judge.papers.cali import SentencePair, benchmark, entailment_of
from judge.papers.tables import sliced_tables, tables_of
from judge.papers.tasks import MeasuredAnswer
from judge.records import Record
from judge.records.fields import LabelError
from judge.stats.intervals import Estimate
from judge.verdict import AnswerOutcome

from .examinee import Examined, ask, asked, problems, table, value, written
from .examinee import items as items_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cali"
DATA = str(FIXTURES / "data.tsv")
TEXTS = {"premise": "P.", "hypothesis": "H."}
PAIR = {**TEXTS, "us_ratings": ["E"], "in_ratings": ["N"]}


def items(
    *conditions: str, sources: Sequence[str] = (DATA,), seed: int = 0
) -> list[dict[str, Any]]:
    return list(asked(items_of(benchmark, *sources, conditions=conditions, seed=seed)).values())


def results(rule: Callable[[Mapping[str, Any]], Any], found: Sequence[Any]) -> list[MeasuredAnswer]:
    """Results with a rule's answer to the fields; None is a refusal."""
    made = []
    for fields in found:
        given, gold = rule(fields), fields["gold"]
        score = None if gold is None or given is None else float(given == gold)
        made.append(
            MeasuredAnswer(
                fields,
                AnswerOutcome.REFUSED if given is None else AnswerOutcome.ANSWERED,
                given,
                score,
            )
        )
    return made


def estimate(cell: object) -> Any:
    assert isinstance(cell, Estimate) and cell.value is not None
    return round(cell.value, 6), cell.n, cell.of


def pair(us: str, india: str) -> SentencePair:
    ratings = {
        "us": [entailment_of(r, "us") for r in us],
        "in": [entailment_of(r, "in") for r in india],
    }
    return SentencePair(Record("a", 1, {}, name="a"), "P", "H", ratings)


def test_ratings_are_mapped_as_section_3_6_says() -> None:
    ratings = (1, "2", 3, "4", 5, 5.0, "1.0", "E", "n", " C ", "Entailment")
    assert [entailment_of(rating, "us_ratings")[0] for rating in ratings] == list("cnnneecence")
    for rating in (0, 6, 4.5, True, None, "X", [5]):
        with pytest.raises(LabelError, match="us_ratings"):
            entailment_of(rating, "us_ratings")


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
    assert [[*one["golds"].values()] for one in first] == [[None, "not entail", "entail"]] * 3
    assert [one["gold"] for one in first] == [None, "not entail", "entail"]
    assert [one["pair"] for one in found if not one["kept"]] == ["data.tsv#17"] * 3
    # Quoting is off: an open quotation swallows no line.
    assert any('"Morning, Ruth as' in one["premise"] for one in found)


def test_alternatives_are_every_two_hypotheses_of_a_premise() -> None:
    found = items("alternatives")
    assert len(found) == 8 * 3
    # Lines 5 to 7: EEEEN NCNCN, EEENE EEEEE, CCCCC CCCNC.
    early = [one for one in found if one["row"] == "data.tsv#5"]
    golds = {one["id"]: tuple(one["golds"].values()) for one in early}
    assert golds == {
        "data.tsv#5+data.tsv#6/alternatives": (None, "same", "hypothesis 2"),
        "data.tsv#5+data.tsv#7/alternatives": (None, "hypothesis 1", "hypothesis 1"),
        "data.tsv#6+data.tsv#7/alternatives": ("hypothesis 1",) * 3,
    }
    swapped = [one["swapped"] for one in found]
    assert 0 < sum(swapped) < 24
    others = items("alternatives", "entailment")
    assert swapped == [one["swapped"] for one in others if "swapped" in one]
    assert swapped != [one["swapped"] for one in items("alternatives", seed=1)]


def test_a_sources_own_labels_are_no_labels_of_groups(tmp_path: Path) -> None:
    own = {"labels": {"likely": "e"}, "kept": "no", "topic": "food"}
    path = written(tmp_path / "p.jsonl", [{**PAIR, **own}, {**PAIR, **own, "hypothesis": "I."}])
    found = items("entailment", "alternatives", sources=[path])
    assert [one.get("labels", {}).get("us", "-") for one in found] == ["entailment"] * 2 + ["-"]
    assert {one["topic"] for one in found} == {"food"} and {one["kept"] for one in found} == {True}
    assert tables_of(benchmark, results(lambda fields: fields["gold"], found))


@pytest.mark.parametrize(
    ("us", "ind", "labels", "kept"),
    [
        (["E", "E", "E", "unsure"], ["C", "N"], ("entailment", None), True),
        (["E", "E", "E", "unsure", "unsure"], ["C", "N"], ("entailment", None), False),
        (["unsure"] * 3 + ["E"], ["N", "N", "C"], (None, "neutral"), False),
    ],
)
def test_who_opts_out_is_a_rater_without_a_label(
    tmp_path: Path, us: list[str], ind: list[str], labels: tuple[Any, ...], kept: bool
) -> None:
    votes = [("us", answer) for answer in us] + [("in", answer) for answer in ind]
    people = {
        f"p{n}": {"group": group, "labels": {"entailment": answer}}
        for n, (group, answer) in enumerate(votes)
    }
    for more in ({"us_ratings": us, "in_ratings": ind}, {"annotators": people}):
        path = written(tmp_path / "p.jsonl", [{**TEXTS, **more}])
        (found,) = items("entailment", sources=[path])
        assert (found["labels"]["us"], found["labels"]["in"], found["kept"]) == (*labels, kept)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({**PAIR, "premise": ""}, "'premise' is empty"),
        ({"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"]}, "'in_ratings' is missing"),
        ({"premise": "P.", "hypothesis": "H."}, "'us_ratings' is missing"),
        ({**PAIR, "us_ratings": [], "in_ratings": []}, "all empty"),
        ({**PAIR, "us_ratings": "E, E"}, "must be a list"),
        ({**PAIR, "all_ratings": ["C"]}, "'all_ratings' has a group called all"),
        ({**TEXTS, "annotators": {"a": {"group": "us", "labels": 3}}}, "must be an object"),
        (
            {**TEXTS, "annotators": {"a": {"group": "All", "labels": {"e": "N"}}}},
            "group called all",
        ),
        ({**PAIR, "us_ratings": ["Z"]}, "must be one of entailment, neutral, contradiction"),
    ],
)
def test_lines_that_cannot_be_asked_do_not_stop_the_others(
    tmp_path: Path, line: dict[str, object], says: str
) -> None:
    path = written(tmp_path / "lines.jsonl", [PAIR, line])
    alone = items_of(benchmark, written(tmp_path / "alone.jsonl", [line]))
    assert says in problems(alone)[0]
    sound, faulty = items_of(benchmark, path, conditions=["entailment"])
    assert sound.fields["gold"] is None
    assert says in problems([faulty])[0] and faulty.line == 2


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


def pairs(folder: Path, *ratings: tuple[str, str]) -> str:
    lines = [
        {**PAIR, "id": n, "premise": f"P {n}.", "us_ratings": list(us), "in_ratings": list(india)}
        for n, (us, india) in enumerate(ratings, 1)
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
    )
    found = items("entailment", "entailment+us", "entailment+in", sources=(source,))
    made = results(lambda fields: "entail", found)
    cells = table(benchmark, made, "cali-labels")["entailment",]
    # Pairs 1 to 4 are left. US labels: E E N N; entail has F1 2 * 2 / (4 + 2), the other none.
    assert estimate(cells["US"]) == (pytest.approx((2 / 3 + 0) / 2, abs=1e-6), 4, 6)
    # All: E E - N, where pair 4 is C and N, never entailment: 4 of each have no majority.
    assert estimate(cells["All"]) == (1.0, 2, 6)
    assert value(cells["IN"]) == pytest.approx((2 / 3 + 0) / 2)
    assert cells["asked"] == cells["answered"] == 6


def test_alternatives_are_scored_by_accuracy() -> None:
    found = items("alternatives")
    made = results(lambda fields: "same", found)
    golds = [one["golds"] for one in found if one["kept"]]
    held = [one["us"] for one in golds if one["us"] and one["in"]]
    same = held.count("same")
    assert 0 < same < len(held) < 24
    cells = table(benchmark, made, "cali-labels")["alternatives",]
    assert value(cells["US"]) == pytest.approx(same / len(held))


def test_the_matrix_of_the_two_groups_labels(tmp_path: Path) -> None:
    source = pairs(
        tmp_path, ("EEEE", "EEEE"), ("EEEE", "NNN"), ("EENC", "CCCC"), ("EEN", "NNE"), ("CCE", "CC")
    )
    found = items("entailment", "entailment+us", sources=(source,))
    made = results(lambda fields: "entail", found)
    cells = table(benchmark, made, "cali-matrix")
    counts = {label: [*row.values()] for (label,), row in cells.items()}
    # Contradiction, neutral, entailment of India; each pair once. The US diverges on the third; on
    # the fourth no group agrees by 75 %, and it is drawn all the same.
    assert counts == {
        "contradiction": [1, 0, 0],
        "neutral": [0, 0, 0],
        "entailment": [0, 2, 1],
    }
    assert next(iter(cells["neutral",])) == "IN: contradiction"
    (matrix,) = (one for one in tables_of(benchmark, made) if one.name == "cali-matrix")
    assert "4 of 5, before the 75% filter" in matrix.notes[0]
    assert "the groups differ on 2 (50.0%)" in matrix.notes[0]


async def test_two_other_groups(tmp_path: Path) -> None:
    line = {"premise": "P.", "hypothesis": "H.", "South_Korea_ratings": ["E"], "uk_ratings": ["N"]}
    path = written(tmp_path / "two.jsonl", [line])
    conditions = choices_of(benchmark, [path]).conditions[:3]
    assert conditions == ("entailment", "entailment+south_korea", "entailment+uk")
    found = list(asked(items_of(benchmark, path, conditions=conditions)).values())
    assert [one["gold"] for one in found] == [None, "entail", "not entail"]
    model = Examined(lambda *_: 0)
    assert (await ask(benchmark, found[1], model)).score == 1.0
    await ask(benchmark, found[2], model)
    assert "lives in South Korea" in model.asked[0][1]
    assert "lives in the United Kingdom" in model.asked[1][1]
    made = results(lambda fields: "entail", found)
    cells = table(benchmark, made, "cali-labels")["entailment+south_korea",]
    assert value(cells["South Korea"]) == 1.0 and value(cells["UK"]) == 0.0
    assert choices_of(benchmark, [DATA]).conditions == benchmark.conditions


@pytest.mark.parametrize("voted", [False, True])
def test_three_groups_by_columns_or_by_votes(tmp_path: Path, voted: bool) -> None:
    ratings = {"us": "EEEE", "uk": "NNNE", "south_korea": "CCNE"}
    line: dict[str, Any] = {"premise": "P.", "hypothesis": "H."}
    if voted:
        people = {f"{g}{n}": (g, answer) for g, a in ratings.items() for n, answer in enumerate(a)}
        names = {"south_korea": "South Korea"}
        line["annotators"] = {
            name: {"group": names.get(g, g), "labels": {"entailment": answer}}
            for name, (g, answer) in people.items()
        }
    else:
        line |= {f"{group}_ratings": list(given) for group, given in ratings.items()}
    path = written(tmp_path / "three.jsonl", [line])
    found = list(asked(items_of(benchmark, path)).values())
    golds = {one["condition"]: one["gold"] for one in found}
    # 6 of 12 are E: no majority of all; of South Korea 2 of 4 are C.
    assert golds == {
        "entailment": None,
        "entailment+us": "entail",
        "entailment+uk": "not entail",
        "entailment+south_korea": None,
    }
    made = results(lambda fields: "entail", found)
    tables = tables_of(benchmark, made)
    assert [one.name for one in tables[1:]] == ["cali-matrix-us-uk"]
    names = [one.name for one in sliced_tables(benchmark, made, ["premise"])]
    assert names == ["cali-labels", "cali-labels-by", "cali-matrix-us-uk"]
