from __future__ import annotations

import random
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.evidence import FUZZY_BOUND, FUZZY_LENGTH, fold, locate

STORY = (
    "He sat down. \u201cI never once\npaid for the tram \u2013 not in my whole life,\u201d "
    "said Bo.\n\n"
    "It\u2019s late\u2026 and she\u00a0left. He sat down again."
)


def found(quote: str, text: str = STORY) -> str | None:
    span = locate(quote, text)
    return None if span is None else text[span.start : span.end]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("He sat down.", "He sat down."),
        ('"I never once paid', "I never once\npaid"),
        ("\u00abI never once paid\u00bb", "I never once\npaid"),
        ("\u300cI never once paid\u300d", "I never once\npaid"),
        ("'It's late'", "It\u2019s late"),
        ("the tram - not in", "the tram \u2013 not in"),
        ("the  tram\t\u2014 not in", "the tram \u2013 not in"),
        ("late... and she left", "late\u2026 and she\u00a0left"),
        ("late\u2026 and she left", "late\u2026 and she\u00a0left"),
        ("said Bo. It's late", "said Bo.\n\nIt\u2019s late"),
    ],
)
def test_a_quote_stands_whatever_its_marks_dashes_and_spaces(quote: str, stands: str) -> None:
    assert found(quote) == stands
    span = locate(quote, STORY)
    assert span is not None and span.score == 100


def test_a_short_quote_must_stand_exactly() -> None:
    quote = "He sat dowm."
    assert len(quote) < FUZZY_LENGTH
    assert locate(quote, STORY) is None


def test_a_long_quote_may_differ_within_the_bound() -> None:
    span = locate("I never once payed for the tram - not in my whole life", STORY)
    assert span is not None
    assert FUZZY_BOUND <= span.score < 100
    assert STORY[span.start : span.end] == (
        "I never once\npaid for the tram \u2013 not in my whole life"
    )


@pytest.mark.parametrize(
    "quote",
    [
        "I have never once paid for the tram - not in my whole life",
        "I once paid for the tram - not in my whole life",
        "I never once paid for a tram - not in my whole life, said Bo",
    ],
)
def test_a_fuzzy_match_begins_and_ends_with_whole_words(quote: str) -> None:
    span = locate(quote, STORY)
    assert span is not None
    for place in (span.start, span.end):
        around = STORY[place - 1 : place + 1]
        assert not (len(around) == 2 and around.isalnum()), STORY[span.start : span.end]


@pytest.mark.parametrize(
    "quote",
    [
        "I always paid for the train, every week of my life",
        "She told everybody that trams are a waste of money",
    ],
)
def test_a_quote_below_the_bound_does_not_stand(quote: str) -> None:
    assert locate(quote, STORY) is None


def test_a_long_quote_does_not_stand_in_a_short_text_that_it_holds() -> None:
    text = "Take off your shoes before"
    assert locate("Take off your shoes before you go in, and wash your hands too", text) is None
    assert locate("Take off your shoes, before", text) is not None


VARIANTS = {
    " ": [" ", "\n", "\u00a0", "  ", "\t\n"],
    '"': ['"', "\u201c", "\u201d", "\u00ab", "\u300d"],
    "'": ["'", "\u2019", "\u2018", "`"],
    "-": ["-", "\u2013", "\u2014", "\u2212"],
}
TEXTS = st.text(
    alphabet="abcXYZ\u00e9\u4e2d.,! \n\u00a0\"\u201c\u201d'\u2019-\u2014\u2026",
    min_size=1,
    max_size=80,
)


@given(text=TEXTS, data=st.data())
def test_any_stretch_of_a_text_is_found_in_any_spelling(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    stretch = text[start:end]
    wanted = fold(stretch).strip("\"' ")
    assume(wanted)
    spelt = "".join(
        data.draw(st.sampled_from(VARIANTS[char])) if char in VARIANTS else char
        for char in fold(stretch)
    )
    span = locate(spelt, text)
    assert span is not None and span.score == 100
    assert 0 <= span.start < span.end <= len(text)
    # An ellipsis folds to three points, of which a stretch may need only the first or the last.
    assert wanted in fold(text[span.start : span.end])
    assert len(fold(text[span.start : span.end])) <= len(wanted) + 4


def test_a_long_quote_that_stands_nowhere_takes_no_quadratic_time() -> None:
    chosen = random.Random(1)
    text = "".join(chosen.choices("abcdefgh ij", k=100_000))
    quote = "".join(chosen.choices("abcdefgh ij", k=20_000))
    began = time.monotonic()
    assert locate(quote, text) is None
    assert time.monotonic() - began < 60
