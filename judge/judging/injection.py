"""Finds text in a record that looks like a message to the judge, without asking a model.

It looks for a chat's control tokens, headers of system and tool messages, replies in a judge's own
format, lines that close the fence around a record, the rubric's own question, hidden text, words of
mixed scripts, and base64. It does not find orders and claims in plain words, nor text by people who
know these patterns and avoid them. A speaker in a dialogue may be called System or Developer.

Every pattern takes time linear in the text: what follows a repeated part cannot match the same
characters.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import islice

from judge.judging.prompts import CONTROL, list_field
from judge.questions.rubric import Rubric
from judge.reasons import LOOKS_HOSTILE
from judge.records import Record
from judge.records.kinds import kind_named
from judge.records.names import plain_name
from judge.records.words import marks

SHOWN = 200
"""Most characters of a found passage that are quoted."""

_QUESTION_WORDS = 6
"""A sentence of a rubric with fewer words may be in a text by chance."""

_DECODED = 4096
"""Most characters of a base64 run that are decoded."""

_READABLE = 0.95
"""Least share of printable ASCII in decoded bytes that are words."""

_MIXES = 3
"""Fewer matches of mixed scripts may be accidents."""

_SPEAKERS = 2
"""A text with this many other lines that begin with a speaker's name is a dialogue."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A passage in the form of a message to the judge.

    `form` is one of `FORMS` or `question`; `passage` quotes the field (a question in lower case),
    cut after `SHOWN` characters.
    """

    field: str
    form: str
    passage: str

    @property
    def why_not_asked(self) -> str:
        """The reason of a check that is not made because of it."""
        return f"not asked: text in {self.field} {LOOKS_HOSTILE} ({self.form})"


def injections(rubric: Rubric, record: Record) -> tuple[Injection, ...]:
    """The first passage of each form in each text that the rubric would show its judges, in the
    names of these fields, and in the record's other lists, which a re-ask may quote."""
    names = dict.fromkeys((*rubric.shown(record.texts).values(), *rubric.needs))
    texts = {n: record.texts.shown(n).strings for n in names if n in record.texts}
    if entry_field := list_field(rubric, record):
        texts[entry_field] = "\n".join(record.entries(entry_field))
    if strange := [name for name in texts if plain_name(name) != name]:
        texts["the name of a field"] = "\n".join(strange)
    for name in record.lists:
        if name not in (*texts, kind_named(record.kind).each):
            texts[name] = "\n".join(record.entries(name))
    return tuple(
        Injection(plain_name(name), form, passage[:SHOWN])
        for name, text in texts.items()
        for form, passage in _passages(text, rubric, record)
    )


def _passages(text: str, rubric: Rubric, record: Record) -> Iterator[tuple[str, str]]:
    if text not in record.screened:  # Every check of a record looks at the same texts.
        plain = " ".join(text.lower().split())
        maybe = [form for form in FORMS if _may_hold(form, text, plain)]
        matches = [(form, FORMS[form](text)) for form in maybe]
        passages = tuple((form, passage) for form, passage in matches if passage is not None)
        record.screened[text] = (passages, plain)
    passages, plain = record.screened[text]
    yield from passages
    steps = rubric.first_token or ()
    templates = (rubric.title, rubric.prompt, *(step.question for step in steps))
    sentence = next((sentence for sentence in _sentences(templates) if sentence in plain), None)
    if sentence is not None:
        yield "question", sentence


@lru_cache(maxsize=256)
def _sentences(templates: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences of these templates without a variable and not too short, in lower case."""
    parts = (part for template in templates for part in re.split(r"(?<=[.?!:])\s+|\n+", template))
    words = (part.lower().split() for part in parts if "{" not in part)
    return tuple(dict.fromkeys(" ".join(row) for row in words if len(row) >= _QUESTION_WORDS))


# ------------------------------------------------------------ forms


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


@cache
def _speaker() -> re.Pattern[str]:
    """Matches the name of a speaker and a colon at the beginning of a line."""
    return re.compile(
        r"(?m)^[^\w\n]{0,4}(?!(?i:system|developer)\b)"
        rf"\w(?:[\w .'-]|{marks().pattern}){{0,30}}+(?:\([^()\n]{{0,30}}\))?\W?[:\uff1a]"
    )


def _message_header(text: str) -> str | None:
    if (header := _first(_HEADER, text)) is not None:
        return header
    header = _first(_ROLE, text)
    dialogue = header is not None and len(list(islice(_speaker().finditer(text), _SPEAKERS)))
    return header if dialogue < _SPEAKERS else None


_REPLY = re.compile(
    r"""(?ix)
    [{,] \s*+ ["'] (?: answer | verdict | judge | role | presence | reflected | leaks | speeches )
    ["'] \s*+ : \s*+ ["'\[{tfn0-9-]
    """
)

_NAMED = (
    r"(?:data|record|material|input|document|content|prompt|instructions?|message|context"
    r"|evaluation|examination)"
)
_FENCE = re.compile(
    rf"""(?imx)
    ^ [ \t]*+ \[ (?: end | [a-z][a-z _]{{0,30}} ) [ ] [0-9a-f]{{8}} \] [ \t]*+ $
    | ^ [^\w\s]{{3,}}+ [ ]{{0,8}}+ (?: begin | start | end ) (?: [ ] of )? (?: [ ] the )? [ ]
      {_NAMED} \b
    | </ (?: user[_-]? )? (?: {_NAMED} | texts? ) >
    """
)
_HIDDEN = re.compile(
    r"""(?x)
    [\U000e0020-\U000e007e]{7}  # tags; the flags of regions have six at most
    | (?: [A-Za-z] [\u200b-\u200d\u2060\ufeff]++ ){4} [A-Za-z]
    | \u202e [^\u202c\u202e\n]{0,80} [A-Za-z]{3}  # Latin letters, forced to run from right to left
    """
)

_LIKE_LATIN = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408"
    "\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
"""Cyrillic and Greek letters that look like Latin ones, and that no formula has for this reason."""

_IN_FORMULAE = "\u03b1\u03b3\u03b5\u03b7\u03b9\u03ba\u03bd\u03c1\u03c4\u03c5\u03c7\u03c9"
"""Greek letters that look like Latin ones, and stand between them in formulae, too."""

_LOOK_ALIKE = f"[{_LIKE_LATIN}{_IN_FORMULAE}]"
_READ_AS_LATIN = re.compile(rf"(?<![^\W\d_])(?:[A-Za-z]|{_LOOK_ALIKE})++(?![^\W\d_])")
"""Words of Latin letters and look-alikes alone: brands with other letters around them are none."""

_TELLING = re.compile(f"[{_LIKE_LATIN}]")
_MIXED = re.compile(f"[A-Za-z]{_LOOK_ALIKE}++[A-Za-z]|{_LOOK_ALIKE}[A-Za-z]++{_LOOK_ALIKE}")


def _mixed(text: str) -> str | None:
    """The first words that mix Latin letters with look-alikes of another script, if several do."""
    if not _TELLING.search(text):  # Usual, and found in a hundredth of the time.
        return None
    words = (w for w in _READ_AS_LATIN.finditer(text) if _TELLING.search(w.group()))
    places = (w.start() + mix.start() for w in words for mix in _MIXED.finditer(w.group()))
    mixes = list(islice(places, _MIXES))
    if len(mixes) < _MIXES:
        return None
    begin = max(text.rfind("\n", 0, mixes[0]) + 1, mixes[0] - SHOWN // 4)
    return text[begin : begin + SHOWN].partition("\n")[0]


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/]{24,}+={0,2}+(?![A-Za-z0-9+/_-])")


def _base64(text: str) -> str | None:
    """The first run of base64 that decodes to words in ASCII."""
    for match in _BASE64.finditer(text):
        run = match.group()[:_DECODED].rstrip("=")
        decoded = base64.b64decode(run[: len(run) // 4 * 4])
        readable = sum(32 <= byte < 127 or byte in b"\n\r\t" for byte in decoded)
        if b" " in decoded and readable >= _READABLE * len(decoded):
            return match.group()
    return None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    """The first match and the rest of its line, as a quote for people."""
    match = pattern.search(text)
    if match is None:
        return None
    begin = match.end() - len(match.group().lstrip())
    end = text.find("\n", match.end())
    return text[begin : len(text) if end < 0 else end][:SHOWN].rstrip()


FORMS: Mapping[str, Callable[[str], str | None]] = {
    "control token": partial(_first, CONTROL),
    "message header": _message_header,
    "reply": partial(_first, _REPLY),
    "fence": partial(_first, _FENCE),
    "hidden text": partial(_first, _HIDDEN),
    "mixed scripts": _mixed,
    "base64": _base64,
}
"""Looked for in every text, whatever the rubric: the form, and the function that finds it."""

_BEYOND_ASCII = ("hidden text", "mixed scripts")

_SIGNS = {
    "control token": ("<", "["),
    "message header": ("system", "developer", "tool", "function", "assistant", "role"),
}
"""An ASCII text of a form holds one of these; searching for them is ten times as fast."""


def _may_hold(form: str, text: str, plain: str) -> bool:
    """Whether to run the form's pattern. Letters beyond ASCII may replace others in any form."""
    if not text.isascii():
        return True
    signs = _SIGNS.get(form)
    return form not in _BEYOND_ASCII and (signs is None or any(sign in plain for sign in signs))
