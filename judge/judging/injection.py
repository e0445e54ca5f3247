"""Text in a record that has the form of a message to its judge, found without asking any model.

What is looked for has no place in a story, a norm or a post: a chat's control tokens, headers of
system and tool messages, replies in a judge's own format, lines that close the fence around a
record, the rubric's own question, and text that is hidden or in code. Orders and claims in plain
words have no such form and are not found; nor is text by people who know these patterns and avoid
them. A speaker in a dialogue may be called System or Developer.

Every pattern takes time in proportion to the text: where it repeats something, what follows cannot
match the same characters.
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

_LONG = 1 << 17
_DECODED = 4096
_READABLE = 0.95
_CIPHERED = 3
_MIXES = 3
_SPEAKERS = 2
"""Other lines with a speaker's name that make a text a dialogue."""


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
        for form, passage in _passages(_screened(text, subject), rubric)
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


@dataclass(frozen=True, slots=True)
class Screened:
    """A text's first passage of each form, and the text in small letters with single blanks."""

    found: tuple[tuple[str, str], ...]
    plain: str


def _screened(text: str, subject: Subject) -> Screened:
    """Every check of a record looks at the same texts; each is screened once."""
    seen = subject.screened.get(text)
    if seen is None:
        plain = _plain(text.lower())
        looked = {form: find(text, plain) for form, find in FORMS.items()}
        found = tuple((form, passage) for form, passage in looked.items() if passage is not None)
        seen = subject.screened[text] = Screened(found, plain)
    return seen


def _plain(small: str) -> str:
    # The list of a long text's words would take a hundred times its room.
    return " ".join(small.split()) if len(small) <= _LONG else re.sub(r"\s++", " ", small)


def _passages(seen: Screened, rubric: Rubric) -> Iterator[tuple[str, str]]:
    yield from seen.found
    asked = next((one for one in _sentences_of(rubric) if one in seen.plain), None)
    if asked is not None:
        yield "question", asked


def _sentences_of(rubric: Rubric) -> tuple[str, ...]:
    readings = rubric.readings
    steps = readings.probability.questions if readings.probability else ()
    asked = (rubric.title, readings.structured.question, *(step.question for step in steps))
    return _sentences(asked)


@lru_cache(maxsize=256)
def _sentences(asked: tuple[str, ...]) -> tuple[str, ...]:
    """The longer sentences of these templates that hold no variable, in small letters."""
    parts = (part for one in asked for part in re.split(r"(?<=[.?!:])\s+|\n+", one))
    words = (part.lower().split() for part in parts if "{" not in part)
    return tuple(dict.fromkeys(" ".join(one) for one in words if len(one) >= _QUESTION_WORDS))


# ------------------------------------------------------------ forms


def _control_token(text: str, plain: str) -> str | None:
    return _first(CONTROL, text) if "<" in text or "[" in text else None


_HEADER = re.compile(
    r"""(?imx)
    ^ [^\w\n]{0,8} (?:
        (?: system | developer )
        [ _-] (?: prompt | message | note | notice | update | override | instructions? )
      | (?: tool | function ) [ _-] (?: calls? | results? | output | response )
      | assistant [ _-] (?: message | response | reply )
      | end [ ] of [ ] (?: the [ ] )? system [ ] (?: prompt | message )
    ) (?: [ ] \( [^()\n]{0,40} \) )? [ ]{0,8}+ (?: [])>*|:\#-] | $ )
    | ^ [ \t]*+ role [ \t]*+ : [ \t]*+ (?: system | developer | tool | assistant | user ) \b
    | < /? (?: system | developer | assistant | tool | function ) (?: [_-] \w++ )?
      (?: \s [^<>\n]{0,80} )? >
    """
)
_ROLE = re.compile(
    r"""(?mx)
    ^ (?: [^\w\n]{1,8} (?i: system | developer ) | SYSTEM | DEVELOPER | system | developer )
    [ ]{0,8}+ (?: [])>*|:\#-] | $ )
    """
)
_SPEAKER = re.compile(
    r"(?m)^[^\w\n]{0,4}(?!(?i:system|developer)\b)\w[\w .'-]{0,30}+(?:\([^()\n]{0,30}\))?\W?:"
)
_ROLES = ("system", "developer", "tool", "function", "assistant", "role")


def _message_header(text: str, plain: str) -> str | None:
    if not any(role in plain for role in _ROLES):
        return None
    header = _first(_HEADER, text)
    if header is None and (header := _first(_ROLE, text)) is not None:
        speakers = len(list(islice(_SPEAKER.finditer(text), _SPEAKERS)))
        return header if speakers < _SPEAKERS else None
    return header


_REPLY = re.compile(
    r"""(?ix)
    [{,] \s*+ ["'] (?: answer | verdict | judge | role | presence | reflected | leaks | speeches )
    ["'] \s*+ : \s*+ ["'\[{tfn0-9-]
    """
)


def _reply(text: str, plain: str) -> str | None:
    return _first(_REPLY, text) if "{" in text else None


_NAMED = (
    r"(?:data|record|material|input|document|content|prompt|instructions?|message|context"
    r"|evaluation|examination)"
)
_FENCE = re.compile(
    rf"""(?imx)
    ^ [ \t]*+ \[ (?: end | [a-z][a-z _]{{0,30}} ) [ ] [0-9a-f]{{8}} \] [ \t]*+ $
    | ^ [^\w\s]{{3,}}+ [ ]{{0,8}}+ (?: begin | start | end ) (?: [ ] of )? (?: [ ] the )? [ ]
      {_NAMED} \b
    | </ (?: user[_-]? )? (?: {_NAMED} | texts? | story ) >
    """
)


def _fence(text: str, plain: str) -> str | None:
    return _first(_FENCE, text)


_UNSEEN = re.compile("[\u200b-\u200d\u2060\ufeff\u202e\U000e0020-\U000e007e]")
_HIDDEN = re.compile(
    r"""(?x)
    [\U000e0020-\U000e007e]{7}  # tags; the flags of regions have six at most
    | (?: [A-Za-z] [\u200b-\u200d\u2060\ufeff]++ ){4} [A-Za-z]
    | \u202e [^\u202c\u202e\n]{0,80} [A-Za-z]{3}  # Latin letters, forced to run from right to left
    """
)


def _hidden(text: str, plain: str) -> str | None:
    seen = text.isascii() or _UNSEEN.search(text) is None
    return None if seen else _first(_HIDDEN, text)


_WIDE = "[\uff21-\uff3a\uff41-\uff5a]"
_FULL_WIDTH = re.compile(rf"(?<!{_WIDE}){_WIDE}{{2,}}+(?:\W{{1,3}}+{_WIDE}{{2,}}+){{2}}")
_SPACED = re.compile(r" [A-Za-z](?: {1,3}[A-Za-z]){10,}(?!\w)")


def _disguised(text: str, plain: str) -> str | None:
    wide = None if text.isascii() else _first(_FULL_WIDTH, text)
    return wide or _first(_SPACED, text)


_OTHER = "[\u0370-\u052f]"
"""Greek and Cyrillic."""

_FOREIGN = re.compile(_OTHER)
_MIXED = re.compile(rf"[a-z]{_OTHER}++[a-z]|{_OTHER}[a-z]++{_OTHER}", re.IGNORECASE)


def _mixed(text: str, plain: str) -> str | None:
    """Words of Latin letters with look-alikes of another script between them."""
    if text.isascii() or _FOREIGN.search(text) is None:
        return None
    found = list(islice(_MIXED.finditer(text), _MIXES))
    return _around(text, found[0].start()) if len(found) == _MIXES else None


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/]{24,}+={0,2}+(?![A-Za-z0-9+/_-])")


def _base64(text: str, plain: str) -> str | None:
    """The first run that is base64 of some words in ASCII."""
    for found in _BASE64.finditer(text):
        run = found.group()[:_DECODED].rstrip("=")
        decoded = base64.b64decode(run[: len(run) // 4 * 4])
        readable = sum(32 <= byte < 127 or byte in b"\n\r\t" for byte in decoded)
        if b" " in decoded and readable >= _READABLE * len(decoded):
            return found.group()
    return None


_CIPHER = tuple(
    """gur naq guvf gung lbh abg jvgu nafjre vtaber dhrfgvba jevgr ercyl
    eht siht taht uoy rewsna erongi noitseuq htiw etirw ylper""".split()  # noqa: SIM905
)
"""Frequent words, shifted by thirteen letters and written from their end."""


def _ciphered(text: str, plain: str) -> str | None:
    """Frequent words in ROT13 or from their end; different ones, because one may be a name."""
    padded = f" {plain} "
    known = [word for word in _CIPHER if f" {word} " in padded]
    if len(known) < _CIPHERED:
        return None
    found = re.search("|".join(known), text, re.IGNORECASE)
    return None if found is None else _around(text, found.start())


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    """The first match and what stands behind it in its line, for people who read the quote."""
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


FORMS: Mapping[str, Callable[[str, str], str | None]] = MappingProxyType(
    {
        "control token": _control_token,
        "message header": _message_header,
        "reply": _reply,
        "fence": _fence,
        "hidden text": _hidden,
        "disguised text": _disguised,
        "mixed scripts": _mixed,
        "base64": _base64,
        "cipher": _ciphered,
    }
)
"""What is looked for in any text, whatever the rubric asks. Each takes a text and the same in small
letters with single blanks."""
