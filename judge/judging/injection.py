"""Text in a record that has the form of a message to its judge, found without asking any model.

What is looked for has no place in a story, a norm or a post: a chat's control tokens, headers of
system and tool messages, replies in a judge's own format, lines that close the fence around a
record, the rubric's own question, and text that is hidden or in code. Orders and claims in plain
words, in whatever language, have no such form and are not found; nor is what people write who know
these patterns and keep clear of them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Literal

from judge.prompts import CONTROL
from judge.rubric import Rubric
from judge.subject import Subject
from judge.verdict import Check, Finding, Verdict

SHOWN = 200
"""Most characters of a found passage that are quoted."""

_QUESTION_WORDS = 6
"""A sentence of a rubric with fewer words may stand in a text by chance."""

_BLOCK = 1 << 17
_OVERLAP = 1 << 12
_RUN = 24
_DECODED = 4096
_READABLE = 0.95
_CIPHERED = 3
_MIXES = 3


@dataclass(frozen=True, slots=True)
class Injection:
    """A passage in the form of a message to the judge.

    `form` is one of `FORMS` or `question`; `passage` are the words as they stand in the field (of
    a question: in small letters), cut after `SHOWN` characters.
    """

    field: str
    form: str
    passage: str


def injections(rubric: Rubric, subject: Subject) -> tuple[Injection, ...]:
    """The first passage of each form in each text that this rubric would show its judges."""
    names = dict.fromkeys((*rubric.fields, *rubric.needs))
    shown = {name: subject.texts[name] for name in names if name in subject.texts}
    if rubric.about == "values" or "values" in rubric.needs:
        shown["values"] = "\n".join(value.text for value in subject.values)
    return tuple(
        Injection(name, form, passage[:SHOWN])
        for name, text in shown.items()
        for form, passage in _all_in(text, rubric)
    )


def set_aside(
    rubric: Rubric,
    found: Sequence[Injection],
    *,
    by: Literal["steering", "accepting", "counting"],
    round: int,
) -> Check:
    """The check of a record that no judge is asked about: it abstains, and quotes what was found.

    Args:
        found: at least one passage.
    """
    first = found[0]
    return Check(
        name=rubric.name,
        verdict=Verdict.ABSTAIN,
        by=by,
        round=round,
        evidence=tuple(
            Finding(verdict=Verdict.ABSTAIN, quote=one.passage, reason=f"{one.form} in {one.field}")
            for one in found
        ),
        reason=f"not asked: {first.field} holds what has the form of a message to the judge "
        f"({first.form})",
        rubric=rubric.digest,
    )


def _all_in(text: str, rubric: Rubric) -> Iterator[tuple[str, str]]:
    # What is remembered keeps its text alive.
    seen = _remembered(text) if len(text) <= _BLOCK else _seen(text)
    yield from seen.found
    if (asked := _question_in(seen.plain, rubric)) is not None:
        yield "question", asked


@dataclass(frozen=True, slots=True)
class _Seen:
    """A text's passages by form, and the text in small letters with single blanks."""

    found: tuple[tuple[str, str], ...]
    plain: str


def _seen(text: str) -> _Seen:
    found: dict[str, str] = {}
    plain = []
    for block in _blocks(text):
        words = block.lower().split()
        looked = _Looked(block, " ".join(words), words)
        plain.append(looked.plain)
        for form, finder in FORMS.items():
            if form not in found and (passage := finder(looked)) is not None:
                found[form] = passage
    return _Seen(tuple(found.items()), " ".join(plain))


# Each check of a record looks at the same texts.
_remembered = lru_cache(maxsize=64)(_seen)


def _blocks(text: str) -> Iterator[str]:
    """The text in pieces that overlap, from line to line where it has lines: the words of a text of
    megabytes would take a hundred times its room."""
    start = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start : end + _OVERLAP]
        start = end


# ------------------------------------------------------------ forms


@dataclass(frozen=True, slots=True)
class _Looked:
    """A text, the same in small letters with single blanks, and the words of that."""

    text: str
    plain: str
    words: Sequence[str]


def _control_token(looked: _Looked) -> str | None:
    begins = "<" in looked.text or "[" in looked.text
    return _first(CONTROL, looked.text) if begins else None


_HEADER = re.compile(
    r"""(?imx)
    ^ [^\w\n]{0,8} (?:
        (?: system | developer )
        (?: [ _-] (?: prompt | message | note | notice | update | override | instructions? ) )?
      | (?: tool | function ) [ _-] (?: calls? | results? | output | response )
      | assistant [ _-] (?: message | response | reply )
      | end [ ] of [ ] (?: the [ ] )? system [ ] (?: prompt | message )
    ) (?: [ ] \( [^()\n]{0,40} \) )? (?: [ ]* [])>*|:\#-] | [ ]* $ )
    | ^ \s* role \s* : \s* (?: system | developer | tool | assistant | user ) \b
    | < /? (?: system | developer | assistant | tool | function ) (?: [_-] \w+ )?
      (?: \s [^<>\n]{0,80} )? >
    """
)
_SPEAKERS = ("system", "developer", "tool", "function", "assistant", "role")


def _message_header(looked: _Looked) -> str | None:
    spoken = any(speaker in looked.plain for speaker in _SPEAKERS)
    return _first(_HEADER, looked.text) if spoken else None


_REPLY = re.compile(
    r"""(?ix)
    [{,] \s* ["'] (?: answer | verdict | judge | role | presence | reflected | leaks | speeches )
    ["'] \s* : \s* ["'\[{tfn0-9-]
    """
)


def _reply(looked: _Looked) -> str | None:
    return _first(_REPLY, looked.text) if "{" in looked.text else None


_NAMED = (
    r"(?:data|texts?|record|material|input|document|story|content|prompt|instructions?"
    r"|message|context|evaluation|examination)"
)
_FENCE = re.compile(
    rf"""(?imx)
    ^ \s* \[ (?: end | [a-z][a-z _]{{0,30}} ) [ ] [0-9a-f]{{8}} \] \s* $
    | ^ [^\w\s]{{3,}} [ ]* (?: begin | start | end ) (?: [ ] of )? (?: [ ] the )? [ ] {_NAMED} \b
    | </ (?: user[_-]? )? {_NAMED} >
    """
)

_HIDDEN = re.compile(
    r"""(?x)
    [\U000e0020-\U000e007e]{7}                    # tags; the flags of regions have six at most
    | (?: [A-Za-z] [\u200b-\u200d\u2060\ufeff]+ ){4} [A-Za-z]
    | \u202e [^\u202c\n]{0,80} [A-Za-z]{3}        # Latin letters, forced to run from right to left
    """
)


_UNSEEN = re.compile("[\u200b-\u200d\u2060\ufeff\u202e\U000e0020-\U000e007e]")


def _hidden(looked: _Looked) -> str | None:
    seen = looked.text.isascii() or _UNSEEN.search(looked.text) is None
    return None if seen else _first(_HIDDEN, looked.text)


_WIDE = "[\uff21-\uff3a\uff41-\uff5a]{2,}"
_FULL_WIDTH = re.compile(rf"{_WIDE}(?:\W{{1,3}}{_WIDE}){{2,}}")
_SPACED = re.compile(r" [A-Za-z](?: {1,3}[A-Za-z]){10,}(?!\w)")


def _disguised(looked: _Looked) -> str | None:
    wide = None if looked.text.isascii() else _first(_FULL_WIDTH, looked.text)
    return wide or _first(_SPACED, looked.text)


_OTHER = "[\u0370-\u052f]"
"""Greek and Cyrillic."""

_FOREIGN = re.compile(_OTHER)
_MIXED = re.compile(rf"[a-z]{_OTHER}+[a-z]|{_OTHER}[a-z]+{_OTHER}", re.IGNORECASE)


def _mixed(looked: _Looked) -> str | None:
    """Words of Latin letters with look-alikes of another script between them."""
    if looked.text.isascii() or _FOREIGN.search(looked.text) is None:
        return None
    found = list(islice(_MIXED.finditer(looked.text), _MIXES))
    return _around(looked.text, found[0].start()) if len(found) == _MIXES else None


_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/]{{{_RUN},}}={{0,2}}(?![A-Za-z0-9+/_-])")


def _base64(looked: _Looked) -> str | None:
    """The first run that is base64 of some words in ASCII."""
    if all(len(word) < _RUN for word in looked.words):
        return None
    for found in _BASE64.finditer(looked.text):
        run = found.group()[:_DECODED].rstrip("=")
        decoded = base64.b64decode(run[: len(run) // 4 * 4])
        readable = sum(32 <= byte < 127 or byte in b"\n\r\t" for byte in decoded)
        if b" " in decoded and readable >= _READABLE * len(decoded):
            return found.group()
    return None


_CIPHER = frozenset(
    """gur naq guvf gung lbh abg jvgu nafjre vtaber dhrfgvba jevgr ercyl
    eht siht taht uoy rewsna erongi noitseuq htiw etirw ylper""".split()  # noqa: SIM905
)
"""Frequent words, shifted by thirteen letters and written from their end."""


def _ciphered(looked: _Looked) -> str | None:
    """Frequent words in ROT13 or from their end; different ones, because one may be a name."""
    known = _CIPHER.intersection(looked.words)
    if len(known) < _CIPHERED:
        return None
    found = re.search("|".join(sorted(known)), looked.text, re.IGNORECASE)
    return None if found is None else _around(looked.text, found.start())


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    """The first match and what stands behind it in its line, for whoever reads the quote."""
    found = pattern.search(text)
    if found is None:
        return None
    begin = found.end() - len(found.group().lstrip())
    end = text.find("\n", found.end())
    return text[begin : len(text) if end < 0 else end][:SHOWN].rstrip()


def _around(text: str, place: int) -> str:
    """The text from a little before this place on, within its line."""
    begin = max(text.rfind("\n", 0, place) + 1, place - SHOWN // 4)
    return text[begin : begin + SHOWN].partition("\n")[0]


FORMS: Mapping[str, Callable[[_Looked], str | None]] = MappingProxyType(
    {
        "control token": _control_token,
        "message header": _message_header,
        "reply": _reply,
        "fence": lambda looked: _first(_FENCE, looked.text),
        "hidden text": _hidden,
        "disguised text": _disguised,
        "mixed scripts": _mixed,
        "base64": _base64,
        "cipher": _ciphered,
    }
)
"""What is looked for in any text, whatever the rubric asks."""


# ------------------------------------------------------------ the rubric's question


def _question_in(plain: str, rubric: Rubric) -> str | None:
    """A sentence of the rubric's title or questions that stands in the text."""
    readings = rubric.readings
    steps = readings.probability.questions if readings.probability else ()
    asked = (rubric.title, readings.structured.question, *(step.question for step in steps))
    return next((one for one in _sentences(asked) if one in plain), None)


@lru_cache(maxsize=256)
def _sentences(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The longer sentences of these templates that hold no variable, in small letters."""
    parts = (part for one in asked for part in re.split(r"(?<=[.?!:])\s+|\n+", one))
    words = (part.lower().split() for part in parts if "{" not in part)
    return tuple(dict.fromkeys(" ".join(one) for one in words if len(one) >= _QUESTION_WORDS))
