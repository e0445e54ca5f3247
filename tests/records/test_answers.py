"""One spelling for each answer, and the spellings of no label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records import Record
from judge.records.answers import NO_LABEL, spelling, spelt_as, without_no_label
from judge.records.labels import Annotation, LabelledItem


@pytest.mark.parametrize(
    ("alike", "spelt"),
    [
        (("yes", "Yes.", " YES ", "True", "true.", "\uff39\uff45\uff53", "yes\u3002"), "yes"),
        (("No", "FALSE", "\u200bno", "no\u00a0."), "no"),
        (("1", "1.0", "01", "1.", "+1.00", "\uff11"), "1"),
        (("0", "-0.0", "0.000"), "0"),
        (("-1.5", "\u22121.50"), "-1.5"),
        (("1,200", "1200.0"), "1200"),
        (("2,5", "2.50", "+2,50"), "2.5"),
        (("1,0", "1"), "1"),
        ((".5", "0.50", ",5", "+.5"), "0.5"),
        (("-.25", "-0,25"), "-0.25"),
        (("12345678901234567890123.10",), "12345678901234567890123.1"),
        (("I don\u2019t  know.", "i don't know"), "i don't know"),
        (("A. | b", "a|B.", "a\uff5cb"), "a|b"),
        # In Turkish, \u0130yi is the capital form of iyi, and HAYIR that of hay\u0131r.
        (("iyi", "\u0130yi", "\u0130Y\u0130"), "iyi"),
        (("hay\u0131r", "HAYIR"), "hayir"),
        # Four, and three and a half, in the digits of Arabic, Persian, Hindi and Thai.
        (("4", "\u0664", "\u06f4", "\u096a", "\u0e54"), "4"),
        (("3.5", "\u0663\u066b\u0665"), "3.5"),
        (("\u0939\u093e\u0901", "\u0939\u093e\u0901\u0964"), "\u0939\u093e\u0901"),
        # No numbers, and no truth values.
        (("1,2,3",), "1,2,3"),
        (("2.1.0",), "2.1.0"),
        (("y",), "y"),
        (("truth",), "truth"),
    ],
)
def test_all_spellings_of_an_answer_are_one(alike: tuple[str, ...], spelt: str) -> None:
    assert {spelling(one) for one in alike} == {spelt}


@given(st.text(max_size=12))
def test_a_spelling_is_its_own_spelling(text: str) -> None:
    assert spelling(spelling(text)) == spelling(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "NULL", "None", "NaN", "nan.", "NA", "N.A.", "n/a", "-", "\u2014", "#N/A", "<NA>"],
)
def test_what_stands_for_no_label(text: str) -> None:
    assert spelling(text) in NO_LABEL
    assert without_no_label(spelling(text), ()) is None
    assert without_no_label(f"yes|{spelling(text)}", ()) == "yes"


def test_an_answer_of_the_rubric_is_an_answer() -> None:
    given = tuple(Annotation(who, said) for who, said in (("a", "none"), ("b", "null"), ("c", "a")))
    item = LabelledItem(Record("", 0, {}, name="1"), "topic", 0, "none", given)
    kept = item.answered(["None", "A"])
    assert kept.gold == "None" and kept.left_out == 1
    assert [(one.annotator, one.answer) for one in kept.annotations] == [("a", "None"), ("c", "A")]
    alone = item.answered()
    assert (alone.gold, alone.left_out) == (None, 3)
    assert [one.answer for one in alone.annotations] == ["a"]


@pytest.mark.parametrize(
    ("label", "answers", "read"),
    [
        ("Y", ["yes", "no"], "yes"),
        ("n.", ["Yes", "No"], "No"),
        ("\uff39", ["no", "yes", "unsure"], "yes"),
        ("y", ["x", "y", "yes", "no"], "y"),
        ("y", ["yes", "no", "n"], None),
        ("y", ["yes", "never"], None),
        ("y", ["polite", "rude"], None),
        ("y", ["Y", "N"], "Y"),
    ],
)
def test_y_and_n_are_yes_and_no_unless_they_are_answers(
    label: str, answers: list[str], read: str | None
) -> None:
    assert spelt_as(label, answers) == read
    item = LabelledItem(Record("", 0, {}, name="1"), "q", 0, spelling(label))
    assert item.answered(answers).gold == (read or spelling(label))
