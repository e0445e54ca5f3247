"""Normalises answers, so that one answer compares equal in every file and reply.

`spelling` is the only normaliser. The readers of labels, `judge calibrate`, `judge agreement`,
`judge score` and the parsers of model replies all use it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from judge.records.words import caseless

SEVERAL = "|"
"""Separates the answers of an annotator who gave several."""

NO_LABEL = frozenset(
    [
        *("", "-", "--", "---", "null", "none", "nan", "-nan", "na", "n/a", "n.a", "nil", "nat"),
        *("#n/a", "#na", "#null!", "<na>", "<null>", "(null)", "\\n"),
    ]
)
"""Spellings of "no label" in pandas, SQL, R, Excel, SPSS and by hand. A spelling that is an answer
of the rubric still counts as that answer."""

OPT_OUTS = ("i don't know", "unanswerable", "i don't have knowledge")
"""Answers that never make a majority, however many people gave them."""

OWN_ANSWERS = frozenset({"tie", "unsure", "don't know", "can't tell", "discard", *OPT_OUTS})
"""Answers that decide nothing. Each counts as a separate answer."""

_TRUTHS = {"true": "yes", "false": "no"}
_STOPS = " .\u0589\u0964\u06d4\u104b\u1362\u17d4\u3002\uff0e\uff61"
_ALIKE = {
    **dict.fromkeys("\u2018\u2019\u02bc", "'"),
    **dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-"),
    "\u066b": ".",
    "\u066c": ",",
}
_DIFFERENT = re.compile("[^\\w\\s\0-\x7f]|[^\\D0-9]|\u02bc")
"""A sign or digit that may be written in another way: none of ASCII."""
_NUMBER = re.compile(r"([+-]?)(\d+|\d{1,3}(?:,\d{3})+|(?=\.))(?:\.(\d+))?", re.ASCII)

_DECIMAL_COMMA = re.compile(r"\A([+-]?\d*),(\d{1,2}|\d{4,})\Z", re.ASCII)
"""A number with a decimal comma (`2,5`). Three digits after a comma are thousands."""


def spelling(text: str) -> str:
    """The normal form of an answer, in which answers are compared.

    Unicode's compatibility forms (NFKC: full-width letters and digits), case, extra spaces,
    invisible characters, kinds of apostrophe and dash, the digits of other scripts, and final full
    stops make no difference. A number is as short as possible (`1.0`, `1,0` and `01` become `1`,
    `.5` becomes `0.5`); `true` and `false` become yes and no. Answers separated by `|` are
    normalised one by one. The function is idempotent.
    """
    return SEVERAL.join(map(_one, unicodedata.normalize("NFKC", text).split(SEVERAL)))


def in_own_letters(text: str) -> str:
    """The normal form, but in the letters of its language: `stra\u00dfe`, which is compared as
    `strasse`, and the last sigma of a Greek word."""
    return _one(text, lambda plain: plain.lower().replace("i\u0307", "i"))


def alike(text: str, without_case: Callable[[str], str] = caseless) -> str:
    """The text in which the characters that make no difference (`spelling`) are the same."""
    plain = unicodedata.normalize("NFKC", without_case(unicodedata.normalize("NFKC", text)))
    return _DIFFERENT.sub(_sign, plain)


def _sign(match: re.Match[str]) -> str:
    char = match[0]
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return "" if unicodedata.category(char) == "Cf" else _ALIKE.get(char, char)


def _one(text: str, without_case: Callable[[str], str] = caseless) -> str:
    plain = " ".join(alike(text, without_case).split()).rstrip(_STOPS)
    word = _DECIMAL_COMMA.sub(r"\1.\2", plain)
    if number := _NUMBER.fullmatch(word):
        return _shortest(*number.groups(""))
    return _TRUTHS.get(word, word)


def _shortest(sign: str, whole: str, part: str) -> str:
    before, after = whole.replace(",", "").lstrip("0") or "0", part.rstrip("0")
    number = f"{before}.{after}" if after else before
    return f"-{number}" if sign == "-" and number != "0" else number


def number_of(spelt: str) -> float | None:
    """The finite number that a normalised answer is; else None."""
    with suppress(ValueError):
        number = float(spelt)
        return number if math.isfinite(number) else None
    return None


_PASS_WORDS = {"pass": True, "fail": False, "good": True, "bad": False}
_YES_WORDS = {"1": "yes", "0": "no"}


def words_for(answers: Collection[str], passing: Collection[str]) -> dict[str, str]:
    """Maps words that people use to a question's answers, where only one meaning is possible.

    `pass`, `good`, `fail` and `bad` are mapped where one answer passes and one fails; 1 and 0 only
    where yes passes and no fails (else 1 could mean yes or pass).
    """
    if len(answers) != 2 or len(passing) != 1:
        return {}
    of_verdict = {answer in passing: answer for answer in answers}
    words = {word: of_verdict[passes] for word, passes in _PASS_WORDS.items()}
    return words | (_YES_WORDS if of_verdict == {True: "yes", False: "no"} else {})


def spelt_as(content: object, answers: Iterable[str]) -> str | None:
    """The entry of `answers` that a text, number or boolean spells; None if there is none."""
    text = scalar_text(content)
    if text is None:
        return None
    return by_spelling(answers).get(spelling(text))


def by_spelling(answers: Iterable[str]) -> dict[str, str]:
    """The answers by their normal form; `y` and `n` are those of yes and no, unless the question
    has an answer `y` or `n`."""
    forms = {spelling(answer): answer for answer in answers}
    if {"yes", "no"} <= forms.keys() and forms.keys().isdisjoint("yn"):
        forms |= {"y": forms["yes"], "n": forms["no"]}
    return forms


def scalar_text(content: object) -> str | None:
    """A text, composed (NFC), a number or boolean as text (booleans as `yes` and `no`); None for
    anything else."""
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        return str(int(content)) if content.is_integer() else repr(content)
    return unicodedata.normalize("NFC", str(content)) if isinstance(content, str | int) else None


def written(content: object) -> dict[str, str]:
    """Each answer in a text, number or boolean, or in a list or mapping of these, as it is written,
    by its normal form."""
    if isinstance(content, Mapping):
        content = list(content.values())
    if isinstance(content, list):
        return {form: text for part in content for form, text in written(part).items()}
    texts = (scalar_text(content) or "").split(SEVERAL)
    return {spelling(text): text.strip() for text in texts if text.strip()}


def in_order(answer: str) -> str:
    """The answer; several joined by `|` are sorted, without duplicates."""
    return SEVERAL.join(sorted({*answer.split(SEVERAL)}))


def without_no_label(answer: str, answers: Collection[str]) -> str | None:
    """A spelling without the parts that mean "no label"; None if nothing is left.

    `answers` are spellings that still count as answers, such as `none` where a rubric has it.
    """
    parts = answer.split(SEVERAL)
    return SEVERAL.join(p for p in parts if p not in NO_LABEL or p in answers) or None
