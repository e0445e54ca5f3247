"""Quotes: finds them in a text, and says why a quote is not evidence."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any
from unicodedata import category, combining, decimal, decomposition, normalize

from judge.records.words import UNSPACED, marks

SPEECH_MARKS = '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f'
"""Quotation marks that open and close speech."""

_CLOSING = rf"[{SPEECH_MARKS}'\u2019)\u3009\u300b\u3011\u3015\uff09]*"
SENTENCE_END = re.compile(
    rf"[.!?\u2026\u0589\u061f\u06d4\u0964\u0965\u1362\u104b\u17d4]{_CLOSING}(?=\s|$)"
    rf"|[\u3002\uff01\uff1f\uff61]{_CLOSING}"
)

# ------------------------------------------------------------ normal form

_FOLDS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bb\u02bc\u05f3`\u00b4\u2039\u203a", "'"),
    **dict.fromkeys(f"{SPEECH_MARKS}\u05f4", '"'),
    **dict.fromkeys("\u2014\u2015\u2e3a\u2e3b", " "),
    "\u2212": "-",
    "\u2044": "/",
    "\u2030": "\u2030",
    **dict.fromkeys("\u3002\u00b7\u066b", "."),
    **dict.fromkeys("\u3001\u060c\u066c", ","),
    "\u066a": "%",
    "\u0643": "\u06a9",  # Arabic and Persian keyboards write kaf and yeh with other characters.
    "\u064a": "\u06cc",
}
_UNSEEN = re.compile(
    "[\u034f\u0640\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Invisible characters that Unicode classes as letters and marks."""

_EDGE = "\0"
"""Placed on both sides of a sign that is a word of its own; separates, but is not compared."""

_RAISED = {"<super>": "^", "<sub>": "_"}
"""Replaces the height of a superscript or subscript after a digit."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

_AROUND = "".join(sign for sign, plain in _FOLDS.items() if plain in "\"'") + "' \t\r\n"
"""Quotation marks and white space that may surround a quote."""


def fold(text: str) -> str:
    """Normalises text for comparison.

    Compatibility characters are decomposed (NFKD), quotes, dashes and the digits of all scripts
    unified, invisible characters removed, and each run of white space becomes one space.
    """
    return " ".join(_folded(text)[0].replace(_EDGE, " ").split())


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """The normalised text, with its lines, and the position in `text` of each character."""
    if text.isascii() and not _CONTROL.search(text):
        return text.replace("`", "'"), range(len(text))
    signs: list[str] = []
    places = array("Q")
    for place, char in enumerate(text):
        plain = _plain(char)
        if plain == char:
            signs.append(char)
            places.append(place)
            continue
        if not char.isdecimal():  # 10\u00b2 is not 102, 2\u00bd is not 21/2, and \u24605 is not 15.
            if signs and signs[-1].isdecimal():
                plain = _behind_digit(plain, char, text[place - 1])
            if (char.isnumeric() or plain[-1:].isdecimal()) and _next(text, place).isdecimal():
                plain += " "
        signs += plain
        places.extend([place] * len(plain))
    if not text.isascii():
        _put_in_order(signs)
    return "".join(signs), places


def _behind_digit(plain: str, char: str, before: str) -> str:
    """The normal form `plain` of `char`, set apart from a digit whose character is `before`."""
    kind = decomposition(char).partition(" ")[0]
    if raised := _RAISED.get(kind):
        return plain if decomposition(before).startswith(kind) else raised + plain
    return f" {plain}" if plain[:1].isdecimal() else plain


def _next(text: str, place: int) -> str:
    """The character after a place that is first in its normal form."""
    behind = map(text.__getitem__, range(place + 1, len(text)))
    return next(filter(_plain, behind), "")


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """One character, normalised."""
    if (folded := _FOLDS.get(char)) is not None:
        return folded
    if char.isspace():
        return "\n" if len(f"a{char}a".splitlines()) > 1 else " "
    kind = category(char)
    if kind in ("Cc", "Cf") or _UNSEEN.match(char):
        return ""
    if (plain := normalize("NFKD", char)) != char:
        return "".join(map(_plain, plain))
    if char.isascii():
        return char
    if char.isdecimal():
        return str(decimal(char))
    if kind == "Pd":
        return "-"
    if kind in ("So", "Sm") or char == "\u00a7":
        return f"{_EDGE}{char}{_EDGE}"
    return " " if kind[0] == "P" or kind == "Sk" else char


def _put_in_order(signs: list[str]) -> None:
    """Sort the marks on each letter in Unicode's canonical order.

    `unicodedata.normalize` takes quadratic time in the number of marks.
    """
    begun = None
    for place, sign in enumerate([*signs, ""]):
        if sign and combining(sign):
            begun = place if begun is None else begun
        elif begun is not None:
            signs[begun:place] = sorted(signs[begun:place], key=combining)
            begun = None


# ------------------------------------------------------------ words

_MONEY = (
    "$\u00a2-\u00a5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20cf"
)
_LETTER = rf"[^\s\0!-/:-@\[-`{{-~{_MONEY}\u2030{UNSPACED}]"


@cache
def _word(*, ascii: bool) -> re.Pattern[str]:
    """Matches one token of a comparison.

    A token is a word with its apostrophes; a number with its points, sign and currency; in scripts
    without spaces, every letter; or a sign with meaning: emoji, operators, ! before a word, inches
    and feet after a number, a parenthesis around a number, tags, * and _ within a word.

    The pattern for ASCII texts matches the same there, and compiles in a tenth of the time.
    """
    letter, money = (r"[^\s\0!-/:-@\[-`{-~]", "$") if ascii else (_LETTER, _MONEY)
    return re.compile(
        ("" if ascii else rf"[{UNSPACED}]{marks().pattern}*|")
        + rf"(?:-\s*(?=[{money}]?\s?\.?\d))?(?:[{money}]\s?(?=\.?\d))?(?:(?<![.\w])\.(?=\d))?"
        rf"{letter}+(?:(?:'|(?<=\d)[.,:/](?=\d)){letter}+)*"
        rf"(?:(?<=\d)\s?(?:[%\u2030]|[{money}](?!\s?\.?\d)))?"
        r"|(?:</?[a-zA-Z][a-zA-Z0-9]*(?:\s+[\w-]+=[^<>\n]*)?\s*/?>)+"
        rf"|(?<={letter})[*_]+(?={letter})|(?<=[^\s*][ \t])\*(?=[ \t])"
        rf"|!=|!(?=\(|{letter})|\((?=[\s{money}-]*\d[\d.,]*\s?[%\u2030{money}]?\s*\))"
        rf"|(?<=\d)[\"']|[#^~/\\@&|+<=>%\u2030{money}]"
    )


_LINE_MARKS = re.compile(r"^(?:[ \t]*>)*[ \t]*(?:(?:#{1,6}|\*)(?=[ \t]))?", re.MULTILINE)
"""Markdown's marks before quoted lines, headings and list items."""

_BEFORE = ("!", "(")
"""Signs that belong to the next word, whatever is between."""

_HYPHENS = (
    {"": " ", "-": "-", "-\n": "-"},
    {"": " ", "-": "-", "-\n": ""},
    {"": " ", "-": " ", "-\n": " "},
)
"""Three ways to join words for a comparison, by joint. A sign that touches a word ("") compares
equal to one after a space. A hyphen counts as a hyphen; or, at a line's end, as nothing, because
the line breaks a word; or as a space, as every dash does."""


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a quote: half-open character offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text, each with its joint to the word before it, its start and its end.

    `rows` caches the result of `row`.
    """

    words: list[str]
    joints: list[str]
    starts: array[int]
    ends: array[int]
    rows: dict[int, tuple[str, array[int]]] = field(default_factory=dict)

    def row(self, way: int) -> tuple[str, array[int]]:
        """The words joined in one of the ways of `_HYPHENS`, with a space at the end; and the end
        of each word there."""
        if way not in self.rows:
            hyphens = _HYPHENS[way]
            pairs = zip(self.joints, self.words, strict=True)
            parts = [hyphens.get(joint, joint) + word for joint, word in pairs]
            self.rows[way] = "".join(parts) + " ", array("Q", accumulate(map(len, parts)))
        return self.rows[way]

    def stretches(self, quote: _Words, way: int) -> Iterator[tuple[int, int]]:
        """The indices of the first and last word of each match of `quote`.

        A match begins and ends at a space, not inside a compound.
        """
        (row, ends), (sought, _) = self.row(way), quote.row(way)
        # Matches overlap only in the space between them, so this takes linear time.
        at = row.find(sought)
        while at >= 0:
            behind = at + len(sought) - 1
            first, last = bisect_left(ends, at + 1), bisect_left(ends, behind)
            if self.joints[first] == " " and self.joints[last + 1 : last + 2] in ([], [" "]):
                yield first, last
            at = row.find(sought, behind)


def _split(text: str) -> _Words:
    plain, places = _folded(text)
    plain = _LINE_MARKS.sub(lambda marks: " " * len(marks.group()), plain)
    parts = _Words([], [], array("Q"), array("Q"))
    end, speech, behind_tag, simple = 0, "", False, False
    for match in _word(ascii=plain.isascii()).finditer(plain):
        start, stop = match.span()
        word, gap, joint, behind_simple = match.group(), plain[end:start], " ", simple
        simple = word.isalnum()
        # Fast path: most words follow another one after one space, and need none of this.
        if not (simple and behind_simple and gap == " "):
            word, gap = "".join(word.split()), gap.replace(_EDGE, "")
            if "'" in gap or '"' in gap:
                speech = gap[-1] if gap[-1] in "\"'" else ""
            if gap == "-" and parts.words:
                joint = "-"
            if gap[:1] == "-" and "\n" in gap and gap.rstrip() == "-" and parts.words:
                joint = "-\n" if (parts.words[-1][-1] + word[0]).isalpha() else "-"
            elif parts.words and _touch(parts.words[-1], word, gap, speech):
                joint = ""
            tag = word[0] == "<" and len(word) > 2
            if tag and not re.match(_LETTER, plain[stop : stop + 1]):
                joint = " "  # Tags around whole words are not part of them.
            elif behind_tag and parts.joints[-1] != "":
                joint = " "
            behind_tag = tag
            speech = "" if word == speech else speech
        parts.words.append(word)
        parts.joints.append(joint)
        parts.starts.append(places[start])
        parts.ends.append(places[stop - 1] + 1)
        end = stop
    return parts


def _touch(before: str, word: str, gap: str, speech: str) -> bool:
    """Whether one of two words is a sign that belongs to the other.

    `speech` is the mark of the open speech; that mark after a number closes the speech (it does not
    mean inches or feet).
    """
    if before in _BEFORE:
        return True
    if gap or (speech and speech in (before, word)):
        return False
    sides = before[-1], word[0]
    if any(map(_is_unspaced, sides)) or all(map(str.isalnum, sides)):
        return False
    return "So" not in map(category, sides) or any(map(str.isdecimal, sides))


def _is_unspaced(sign: str) -> bool:
    return not sign.isascii() and re.match(f"[{UNSPACED}]", sign) is not None


# A reply quotes the same text several times, as does every vote and check, while other records run
# concurrently.
_split_once = lru_cache(maxsize=64)(_split)


@lru_cache(maxsize=256)  # A reply's quotes are checked, then printed as spelt in the text.
def locate(quote: str, text: str) -> Span | None:
    """The first place in `text` that matches `quote` word by word, or None.

    Whole words, numbers and signs are compared, in normal form (`fold`); the marks and spaces
    between them, hyphenation, and quotation marks around the quote may differ. The span includes
    the marks around it that the quote also has, except quotation marks. A quote without a word must
    match exactly. Takes linear time in quote and text.

    A zero-width non-joiner is nothing, or as a space. A quote without vowel points stands in a text
    with them: Arabic and Hebrew are written both ways.
    """
    spans = (_locate(one, there) for one, there in _spellings(quote, text))
    if (span := next((span for span in spans if span), None)) is None:
        return None
    points = _POINTS.match(text, span.end)
    return Span(span.start, points.end()) if points else span


_NON_JOINER = "\u200c"
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0670]+")
_NOTHING = "\u200b"


def _spellings(quote: str, text: str) -> Iterator[tuple[str, str]]:
    """The quote, and the text in the same length, in the spellings that are compared."""
    for form in dict.fromkeys((quote, _unwrapped(quote))):
        yield form, text
        if _NON_JOINER in form or _NON_JOINER in text:
            yield form.replace(_NON_JOINER, " "), text.replace(_NON_JOINER, " ")
        if not (form.isascii() or text.isascii() or _POINTS.search(form)) and _POINTS.search(text):
            yield form, _POINTS.sub(lambda points: _NOTHING * len(points[0]), text)


def _locate(quote: str, text: str) -> Span | None:
    quote_words = _split(quote)
    if not quote_words.words:
        bare = quote.strip(_AROUND)
        at = text.find(bare) if bare else -1
        return None if at < 0 else Span(at, at + len(bare))
    there = _split_once(text)
    compounds = {"-", "-\n"} & {*quote_words.joints, *there.joints}
    for way in range(len(_HYPHENS) if compounds else 1):
        for first, last in there.stretches(quote_words, way):
            return _with_marks(quote, quote_words, text, there.starts[first], there.ends[last])
    return None


def _unwrapped(quote: str) -> str:
    """The quote without a pair of quotation marks around it."""
    bare = quote.strip()
    marks = [_FOLDS.get(sign, sign) for sign in (bare[:1], bare[-1:])]
    wrapped = len(bare) > 2 and all(mark in ("'", '"') for mark in marks)
    return bare[1:-1] if wrapped else quote


def _with_marks(quote: str, quote_words: _Words, text: str, start: int, end: int) -> Span:
    """The span from `start` to `end`, extended by the marks around it that the quote also has."""
    first, last = quote[: quote_words.starts[0]], quote[quote_words.ends[-1] :]
    before = "".join(map(_mark, first)).lstrip("\"'")[::-1]
    behind = "".join(map(_mark, last)).rstrip("\"'")
    start -= _alike(before, text[max(0, start - len(before)) : start][::-1])
    return Span(start, end + _alike(behind, text[end : end + len(behind)]))


def _alike(marks: str, text: str) -> int:
    """How many characters at the beginning of the text match these marks, in order."""
    count = 0
    for char in text:
        sign = _mark(char)
        if not sign or not marks.startswith(sign):
            break
        marks, count = marks[len(sign) :], count + 1
    return count


def _mark(char: str) -> str:
    """The normal form of a mark, also of one that is not compared, such as a danda or ¿."""
    return fold(char) or (char if category(char)[0] == "P" else "")


EVIDENCE_WORDS = 3
"""Fewest words of a quote that counts as evidence, unless it is the whole field."""


def _is_word(token: str) -> bool:
    """Whether a token is a word or a number, not a sign or a tag."""
    return token[0] != "<" and any(map(str.isalnum, token))


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What a reply is validated against.

    Args:
        texts: the record's fields by name.
        entries: the entries asked about, by number (from 1).
        typed: the fields that the record's kind knows.
        evidence: the field to quote, and the answers that need a quote.
        passages: how many numbered passages a rewriter was given.
        mark: the fence around the record in prompts, which new text must not hold ("": none).
        passing: the answers that pass; None if answers are only counted.
        names: the answer for each other word of a reply (the `1` and `2` of a comparison).
    """

    texts: Mapping[str, str]
    entries: Mapping[int, str] = field(default_factory=dict)
    typed: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[str, frozenset[str]] | None = None
    passages: int = 0
    mark: str = ""
    passing: Collection[str] | None = ()
    names: Mapping[str, str] = field(default_factory=dict)


COPY = "; copy the words exactly"
"""Advice to the model that is asked again; a user reads the problem without it."""


def quote_problem(
    quote: str, texts: Mapping[str, str], where: str, least: int = EVIDENCE_WORDS
) -> str | None:
    """Why a quote is not evidence from the field `where`; None if it is.

    Evidence is in the field and has at least `least` words (in scripts without spaces: letters), or
    is the whole field.
    """
    text, place = texts.get(where, ""), where.replace("_", " ")
    if (span := locate(quote, text)) is None:
        return f"the quote {quote[:120]!r} is not in the {place}{COPY}"
    if sum(map(_is_word, _split(quote).words)) >= least:
        return None
    if _split(text[span.start : span.end]).words == _split_once(text).words:
        return None
    return f"quote {quote!r} is too short; quote at least {least} words of the {place}"
