"""Quotes: found in any spelling, refused if they are not in the text, and printed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.questions.evidence import locate, quote_problem

STORY = (
    "He sat down. \u201cI never once\npaid for the tram \u2013 not in my whole life,\u201d "
    "said Bo.\n\n"
    "It\u2019s late\u2026 and she\u00a0left. He sat down again."
)


def words(quote: str, text: str = STORY) -> str | None:
    """The text's own words for a quote."""
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
        ("the tram\u2014not in", "the tram \u2013 not in"),
        ("the  tram\t\u2014 not in", "the tram \u2013 not in"),
        ("the tram, not in", "the tram \u2013 not in"),
        ("late... and she left", "late\u2026 and she\u00a0left"),
        ("late\u2026 and she left", "late\u2026 and she\u00a0left"),
        ("said Bo. It's late", "said Bo.\n\nIt\u2019s late"),
        ("left", "left"),
    ],
)
def test_marks_dashes_and_blanks_may_differ(quote: str, stands: str) -> None:
    assert words(quote) == stands


@pytest.mark.parametrize("quote", ["कल उत्तर दें।", "کل آئیں گے؟", "¿Viene usted mañana?"])
def test_a_quote_keeps_the_marks_of_every_script(quote: str) -> None:
    assert words(quote, f"A. \u00ab{quote}\u00bb B.") == quote
    assert words(f"\u00ab{quote}\u00bb", f"A. \u00ab{quote}\u00bb B.") == quote


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("Ti\u1ebfng Vi\u1ec7t", normalize("NFD", "Ti\u1ebfng Vi\u1ec7t r\u1ea5t \u0111\u1eb9p.")),
        (
            normalize("NFD", "r\u1ea5t \u0111\u1eb9p"),
            "Ti\u1ebfng Vi\u1ec7t r\u1ea5t \u0111\u1eb9p.",
        ),
        ("Vi\u1ec7t", "Vi\u00ea\u0323t"),  # the dot below behind the hat
        ("The officer", "The o\ufb03cer was rude."),
        ("administrator", "The ad\u00admin\u00adis\u00adtra\u00adtor left."),
        ("administrator left", "The adminis-\ntrator left."),
        ("well-known", "a well-\nknown man"),
        ("well\u2011known", "a well-known man"),
        ("was rude to", "He was\u200b rude\u2060 to us."),
        ("He was", "\uff28\uff45 \uff57\uff41\uff53 rude."),
        ("5 km", "It is 5\u202fkm away."),
        ("costs $500", "It costs $\u00a0500."),
        ("5 %", "by 5%"),
        ("1/2 cup", "\u00bd cup"),
        ("m2", "80 m\u00b2"),
        ("10^12 cells", "10\u00b9\u00b2 cells"),
        ("C6H12O6", "C\u2086H\u2081\u2082O\u2086"),
        ("15", "\uff11\uff15\u6b73"),
        ("5 apples", "\u24605 apples"),
        ("\u0e51\u0e50\u0e50", "\u0e23\u0e32\u0e04\u0e32\u0e51\u0e50\u0e50\u0e1a\u0e32\u0e17"),
        ("\u30ac\u30b9", "\uff76\uff9e\uff7d\u3067\u3059"),
        ("\u5979\u54ed", "\u5979\n\u54ed\u4e86\u3002"),
        ("so, he left", "so*\x07* he _left_"),
        ("\u2764 you", "I \u2764\ufe0f you"),
        ("he was ill", "**he** was __ill__"),
        ("illegal", "<p>is <b>illegal</b></p>"),
        ("is illegal", "this *is* __illegal__ here"),
        ("I am 15", '"I am 15" he said'),
        ('"I am 15"', "I am 15 years old"),
        ('I am 15" he said', "\u201cI am 15\u201d he said"),
        ("wow great", "Oh wow! great\U0001f44d"),
        ("x = y", "let x=y be"),
        ("5 \u00b0C", "at 5\u00b0C"),
        ("C++", "C++ 17"),
        ("five eggs", "# Buy\n\n* five eggs"),
    ],
)
def test_a_quote_stands_in_every_form_that_unicode_has(quote: str, text: str) -> None:
    stands = words(quote, text)
    assert stands is not None
    assert letters(stands) == letters(quote)


@pytest.mark.parametrize(
    ("quote", "text", "stands"),
    [
        # Persian: the narrow gap within a word, as a space or left out
        (
            "\u0645\u06cc \u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.",
            True,
        ),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc \u062e\u0648\u0627\u0647\u0645.",
            True,
        ),
        (
            "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.",
            True,
        ),
        (
            "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc \u062e\u0648\u0627\u0647\u0645.",
            False,
        ),
        # Arabic and Hebrew: with vowel points and without
        ("\u0643\u062a\u0628", "\u0643\u064e\u062a\u064e\u0628\u064e", True),
        ("\u0643\u062a\u0628", "\u0643\u064e\u062a\u064e\u0645\u064e", False),
        ("\u0643\u064f\u062a\u064f\u0628", "\u0643\u064e\u062a\u064e\u0628\u064e", False),
        ("\u0643\u064e\u062a\u064e\u0628\u064e", "\u0643\u062a\u0628", False),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd!", True),
        # Keyboards of two languages have other characters for one letter
        ("\u06a9\u062a\u0627\u0628 \u06cc\u06a9", "\u0643\u062a\u0627\u0628 \u064a\u0643", True),
        ("Die Masse", "Die Ma\u00dfe", False),
        ("Iyi", "\u0130yi", False),
    ],
)
def test_what_a_script_leaves_open_may_differ(quote: str, text: str, stands: bool) -> None:
    found = words(quote, text)
    assert found == (text.rstrip(".!") if stands else None)


def test_a_number_is_the_same_in_the_digits_of_every_script() -> None:
    arabic = "\u0639\u0627\u0645 \u0662\u0660\u0662\u0664\u060c \u0663\u066b\u0665"
    assert words("2024", arabic) == "\u0662\u0660\u0662\u0664"
    assert words("3.5", arabic) == "\u0663\u066b\u0665"
    assert words("\u0967\u0968 km", "It is 12 km away.") == "12 km"  # Hindi
    assert words("202", arabic) is None and words("2025", arabic) is None


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("He sat dowm.", STORY),
        ("I never once payed for the tram - not in my whole life", STORY),
        ("I once paid for the tram - not in my whole life", STORY),
        ("I never paid for the tram - not in my whole life", STORY),
        ("for a tram - not in my whole life", STORY),
        ("happy about it", "He was unhappy about it."),
        ("happy about it", "He was un-happy about it."),
        ("toxic waste", "The non\u2011toxic waste"),
        ("she did", "she didn\u2019t"),
        ("she can", "she cannot"),
        ("he is notable", "he is not able"),
        ("we're here", "were here"),
        ("15 degrees", "5 degrees"),
        ("5 degrees", "15 degrees"),
        ("5 degrees", "-5 degrees"),
        ("5 degrees", "\u22125 degrees"),
        ("35 people", "3.5 people"),
        ("3", "a rise of 3\u00b75 per cent"),
        ("10", "\uff11\uff10\uff10\u5186"),
        ("\u0e51\u0e50", "\u0e51\u0e50\u0e50 \u0e1a\u0e32\u0e17"),  # Thai 10, 100
        ("\u0e53\u0e55", "\u0e53.\u0e55 \u0e1a\u0e32\u0e17"),  # Thai 35, 3.5
        ("\u0ed1\u0ed0", "\u0ed1\u0ed0\u0ed0"),  # Lao
        ("\u1041\u1040", "\u1041\u1040\u1040"),  # Burmese
        ("\u17e1\u17e0", "\u17e1\u17e0\u17e0"),  # Khmer
        ("\u0663", "\u0663\u066b\u0665"),  # Arabic 3, 3.5
        ("\u0663", "\u0663\u066c\u0665\u0660\u0660"),  # Arabic 3, 3,500
        ("\u0663", "\u0663\u060c\u0665"),  # Arabic 3, 3,5
        ("\u0662\u0660", "\u0662\u0660\u066a"),  # Arabic 20, 20%
        ("100", "\u0e3f100"),
        ("100", "100\u17db"),
        ("15 apples", "\u24605 apples"),
        ("15 apples", "\u2460\u200b5 apples"),
        ("1.5 apples", "\u24885 apples"),
        ("1,000", "1.000"),
        ("102", "10\u00b2"),
        ("10 2", "10\u00b2"),
        ("21/2 cups", "2\u00bd cups"),
        ("\u20ac500 a month", "$500 a month"),
        ("500 a month", "$500 a month"),
        ("rose by 5", "rose by 5 %"),
        ("p < 0.05", "p > 0.05"),
        ("x = y", "x \u2260 y"),
        ("he is \U0001f44d", "he is \U0001f44e"),
        ("resume it", "r\u00e9sum\u00e9 it"),
        ("if (user.isAdmin)", "if (!user.isAdmin)"),
        ("C", "written in C# or Java"),
        ("10 6", "10^6 cells"),
        ("5 million", "profit was - 5 million"),
        ("5", "a profit of (5)"),
        ("a profit of 5", "a profit of (5)"),
        ("10 2", "10\u207b\u00b2 m"),
        ("5 people", "5\u201310 people"),
        ("5", "5\u201310 people"),
        ("10-2", "10\u207b\u00b2 m"),
        ("5 people", "~5 people"),
        ("a 5' pipe", 'a 5" pipe'),
        ("a 5", 'a 5" pipe'),
        ("legal", "it is il*legal*"),
        ("legal", "it is <b>il</b>legal"),
        ("toxic waste", "anti/toxic waste"),
        ("tag it", "#\u200btag it"),
        ("us all", "US all"),
        ("\u304b", "\u304c"),
        ("Take off your shoes before you go in", "Take off your shoes before"),
    ],
)
def test_another_word_number_negation_or_sign_does_not_stand(quote: str, text: str) -> None:
    assert locate(quote, text) is None


def test_of_two_places_the_one_that_has_the_words_whole() -> None:
    text = "The unhappy, un-happy man was happy."
    span = locate("happy", text)
    assert span is not None and text[span.start :] == "happy."


@pytest.mark.parametrize(
    "quote",  # English, Hindi, Tamil, vocalised Arabic, a Thai letter with its marks, Thai 100
    [
        "it's ok",
        "3.5 km",
        "<p><b>ok</b></p>",
        "\u0935\u093f\u0936\u094d\u0935\u0935\u093f\u0926\u094d\u092f\u093e\u0932\u092f",
        "\u0baa\u0bb2\u0bcd\u0b95\u0bb2\u0bc8\u0b95\u0bcd\u0b95\u0bb4\u0b95\u0bae\u0bcd",
        "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f\u064c",
        "\u0e17\u0e35\u0e48",
        "\u0e51\u0e50\u0e50",
    ],
)
def test_evidence_has_three_words_in_every_script(quote: str) -> None:
    text = f"Well, {quote} \u4ed6\u8bf4"
    assert "is too short; quote at least 3 words" in (quote_problem(quote, {"t": text}, "t") or "")
    assert quote_problem(f"{quote} \u4ed6\u8bf4", {"t": text}, "t") is None
    assert quote_problem(quote, {"t": f"{quote}!"}, "t") is None


def letters(text: str) -> str:
    """The letters of a quote, which must be the same in every spelling."""
    return "".join(filter(str.isalnum, normalize("NFKC", text)))


VARIANTS = {
    " ": [" ", "\n", "\u00a0", "  ", "\t\n", "\u3000", " \u2014 ", ", ", "\u2026 ", " \u200b"],
    '"': ['"', "\u201c", "\u201d", "\u00ab", "\u300d"],
    "'": ["'", "\u2019", "\u2018", "\uff07"],
    "-": ["-", "\u2013", "\u2010", "\uff0d"],
}
LETTERS = "abcXYZ019\u00e9\u1ec7\ufb01\uff28\u4e2d\u304c\u0e01\u0e31'-"
# A hyphen before or behind a word may be the sign of a number: "- 5 million" is not "5 million".
WORDS = st.text(alphabet=LETTERS, min_size=1).filter(lambda word: "-" not in (word[0], word[-1]))
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)


@st.composite
def respelt(draw: st.DrawFn, text: str) -> str:
    """The text in another Unicode form, with other marks, blanks and signs that are not seen."""
    form = draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    signs = ((c, draw(st.sampled_from(VARIANTS.get(c, [c, c, f"{c}\u00ad"])))) for c in text)
    return normalize(form, "".join(sign if c != sign else c for c, sign in signs))


@given(text=TEXTS, data=st.data())
def test_whole_words_are_found_in_any_spelling(text: str, data: st.DataObject) -> None:
    parts = text.split(" ")
    start = data.draw(st.integers(0, len(parts) - 1))
    quote = " ".join(parts[start : data.draw(st.integers(start + 1, len(parts)))])
    assume(letters(quote))
    found = words(data.draw(respelt(quote)), data.draw(respelt(text)))
    assert found is not None and letters(found) == letters(quote)


@given(text=TEXTS, data=st.data())
def test_a_quote_with_another_letter_or_digit_is_refused(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 1))
    assume(text[place].isalnum())
    quote = text[:place] + data.draw(st.sampled_from("qQ7\u00f1\u6587")) + text[place + 1 :]
    assert locate(data.draw(respelt(quote)), text) is None


SIGNS = [*"#^~/\\@&|+<>=%$", "\u00b1", "\u2260", "\u00ac", "!=", "\u20ac"]
BESIDE = [
    *((sign, "word") for sign in (*SIGNS, "!")),
    *((sign, "5") for sign in (*SIGNS, "-", "- ", "\u2212 ")),
    *((word, sign) for sign in SIGNS for word in ("word", "5")),
    *(("a", sign, "b") for sign in (*SIGNS, "!", "*", "_", "<b>")),
    *(("5", '"'), ("5", "'"), ("(", "5", ")"), ("5", "-", "6"), ("5", " * ", "6")),
]


@given(
    parts=st.sampled_from(BESIDE),
    before=st.sampled_from(["it is ", "(he has) "]),
    blank=st.sampled_from(["", " "]),
)
def test_no_sign_beside_a_word_or_a_number_can_be_left_out(
    parts: tuple[str, ...], before: str, blank: str
) -> None:
    text = f"{before}{''.join(parts)} there"
    assert locate(text, text) is not None
    bare = blank.join(part for part in parts if part.isalnum())
    for quote in (bare, f"{before}{bare}", f"{before}{bare} there", f"{bare} there"):
        assert locate(quote, text) is None


@given(quote=TEXTS, text=TEXTS)
def test_what_is_found_has_the_letters_of_the_quote(quote: str, text: str) -> None:
    found = words(quote, text)
    assert found is None or letters(found) == letters(quote)


@pytest.mark.parametrize(
    "hostile",
    [
        lambda n: " " * n,
        lambda n: "a-" * (n // 2),
        lambda n: "\u0301\u0323" * (n // 2),
        lambda n: "$ 5.5,5 % " * (n // 10),
        lambda n: "".join(random.Random(1).choices("abcdefgh ij", k=n)),
    ],
)
def test_time_grows_with_the_text_and_no_faster(hostile: Callable[[int], str]) -> None:
    def seconds(size: int) -> float:
        text = hostile(size)
        quote = f"{text[: size // 2]} q"
        began = time.process_time()
        assert locate(quote, text) is None
        return time.process_time() - began

    assert seconds(200_000) < 30 * max(seconds(20_000), 0.01)
