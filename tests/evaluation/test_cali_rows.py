"""CALI's ratings to labels, and its lines, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.evaluation.cali_rows import (
    LESS,
    MORE,
    SAME,
    Place,
    Row,
    compared,
    label_of,
    read_rows,
)
from judge.records import Item
from judge.records.fields import LabelError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cali"
PAIR = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": ["N"]}


def row(us: str, india: str) -> Row:
    ratings = {"us": [label_of(r, "us") for r in us], "in": [label_of(r, "in") for r in india]}
    return Row(Place("a", Item("a", 1, {})), "P", "H", ratings=ratings)


def written(folder: Path, *lines: object) -> list[Row | Item]:
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(read_rows([str(path)]))


def test_ratings_are_mapped_as_section_3_6_says() -> None:
    assert [label_of(rating, "us_ratings") for rating in (1, "2", 3, "4", 5)] == [
        "contradiction",
        "neutral",
        "neutral",
        "neutral",
        "entailment",
    ]
    assert [label_of(rating, "us_ratings") for rating in ("E", "n", " C ", "Entailment")] == [
        "entailment",
        "neutral",
        "contradiction",
        "entailment",
    ]


@pytest.mark.parametrize("rating", [0, 6, "5.0", True, None, "X", [5]])
def test_what_is_no_rating(rating: object) -> None:
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
    found = row(us, india)
    assert tuple(found.labels.values()) == labels
    assert found.kept is kept


def test_what_a_norm_does_is_read_off_the_groups_difference() -> None:
    assert (row("EEE", "NNN").effect("us"), row("EEE", "NNN").effect("in")) == (MORE, LESS)
    assert row("CCC", "NNN").effect("us") == LESS
    assert row("NNN", "NNE").effect("in") == SAME
    assert row("EENN", "CCC").effect("in") is None


@given(st.text("ENC", min_size=1), st.text("ENC", min_size=1))
def test_the_groups_effects_mirror_each_other(us: str, india: str) -> None:
    found = row(us, india)
    mirrored = {MORE: LESS, LESS: MORE, SAME: SAME, None: None}
    assert found.effect("in") == mirrored[found.effect("us")]
    swapped = row(india, us)
    assert swapped.effect("us") == found.effect("in")
    assert swapped.labels["all"] == found.labels["all"]


def test_a_diverging_label_compares_with_nothing() -> None:
    assert compared(None, "neutral") is compared("neutral", None) is None
    assert compared("entailment", "contradiction") == 1
    assert compared("contradiction", "neutral") == -1


def test_the_released_form() -> None:
    """Quoting is off: an open quotation swallows no line."""
    found = [one for one in read_rows([str(FIXTURES / "data.tsv")]) if isinstance(one, Row)]
    assert len(found) == 24
    assert len({one.premise for one in found}) == 8
    by_line = {one.place.item.line: one for one in found}
    assert by_line[8].premise is not None and '"Morning, Ruth as' in by_line[8].premise
    assert by_line[4].labels == {"all": None, "us": None, "in": "contradiction"}
    assert [line for line, one in by_line.items() if not one.kept] == [17]
    assert sum(one.labels["all"] is None for one in found) == 12


def test_norms_beside_the_lines() -> None:
    found = list(read_rows([str(FIXTURES / "norms.jsonl")]))
    rows = {one.place.id: one for one in found if isinstance(one, Row)}
    assert len(rows) == len(found) == 13
    assert set(rows["ask-shoes"].norms) == {"us", "in"}
    assert set(rows["ask-eating"].norms) == {"in"}
    assert rows["shoes-1"].slices["behavior"] == "shoes at the door"
    assert rows["hands-1"].hypothesis is None
    assert (rows["hands-2"].effect("in"), rows["hands-2"].effect("us")) == (LESS, None)
    assert rows["shoes-1"].effect("in") == MORE


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
        ({**PAIR, "norms": {"us": "Q."}, "effect": {"in": MORE}}, "'in', which 'norms' does not"),
        ({**PAIR, "norms": {"us": "Q."}, "effect": {"us": "stronger"}}, "must be one of more"),
        ({"question": "Do people queue?"}, "'norms' is missing"),
        ({"question": "Q?", "norms": {"us": "Y.", "in": "N."}}, "must say {country}"),
    ],
)
def test_lines_that_cannot_be_asked(tmp_path: Path, line: object, says: str) -> None:
    sound, faulty = written(tmp_path, PAIR, line)
    assert isinstance(sound, Row)
    assert isinstance(faulty, Item) and faulty.problem is not None
    assert says in faulty.problem.message
    assert (faulty.line, faulty.fields) == (2, None)


def test_an_id_that_comes_twice(tmp_path: Path) -> None:
    _, second = written(tmp_path, {**PAIR, "id": "x"}, {**PAIR, "id": "x"})
    assert isinstance(second, Item) and second.problem is not None
    assert "already on line 1" in second.problem.message


def test_two_sources_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    paths = [tmp_path / "lines.jsonl", tmp_path / "more" / "lines.jsonl"]
    for path in paths:
        path.write_text(json.dumps(PAIR) + "\n")
    with pytest.raises(UsageError, match=r"two sources are called lines\.jsonl"):
        list(read_rows(list(map(str, paths))))
