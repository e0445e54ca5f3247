"""The spelling of answers: one for each answer, whoever wrote it and in whatever file.

`spelling` is the only place where answers are made alike. Readers of labels, `judge calibrate`,
`judge agreement`, `judge score` and the replies of models all go by it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

SEVERAL = "|"
"""Stands between the answers of an annotator who gave several."""

NO_LABEL = frozenset(
    [
        *("", "-", "--", "---", "null", "none", "nan", "-nan", "na", "n/a", "n.a", "nil", "nat"),
        *("#n/a", "#na", "#null!", "<na>", "<null>", "(null)", "\\n"),
    ]
)
"""Spellings that stand for "no label", as pandas, SQL, R, Excel, SPSS and people write them. An
answer of the rubric is an answer all the same."""

OPT_OUTS = ("i don't know", "unanswerable", "i don't have knowledge")
"""Answers that are no majority however many gave them."""

OWN_ANSWERS = frozenset({"tie", "unsure", "don't know", "can't tell", "discard", *OPT_OUTS})
"""Answers that decide nothing: counted as answers of their own."""

_TRUTHS = {"true": "yes", "false": "no"}
_STOPS = " .\u3002\uff0e\uff61"
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
        **dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-"),
    }
)
_NUMBER = re.compile(r"([+-]?)(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?", re.ASCII)

_DECIMAL_COMMA = re.compile(r"\A([+-]?\d+),(\d{1,2}|\d{4,})\Z", re.ASCII)
"""A decimal comma (`2,5`); three digits behind a comma are thousands."""


def spelling(text: str) -> str:
    """The answer as all spellings of it are compared.

    Unicode's compatible forms (NFKC: full-width letters and digits), case, blanks, invisible
    characters, apostrophes and dashes, and full stops at the end make no difference; a number is
    written as short as it can be (`1.0`, `1,0` and `01` as `1`), `true` and `false` are yes and no.
    Of several answers with bars between them each is spelt by itself. A spelling is its own.
    """
    return SEVERAL.join(map(_one, unicodedata.normalize("NFKC", text).split(SEVERAL)))


def _one(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.casefold()).translate(_ALIKE)
    visible = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    word = _DECIMAL_COMMA.sub(r"\1.\2", " ".join(visible.split()).rstrip(_STOPS))
    if number := _NUMBER.fullmatch(word):
        return _shortest(*number.groups(""))
    return _TRUTHS.get(word, word)


def _shortest(sign: str, whole: str, part: str) -> str:
    before, after = whole.replace(",", "").lstrip("0") or "0", part.rstrip("0")
    number = f"{before}.{after}" if after else before
    return f"-{number}" if sign == "-" and number != "0" else number


_PASS_WORDS = {"pass": True, "fail": False, "good": True, "bad": False}
_YES_WORDS = {"1": "yes", "0": "no"}


def words_for(answers: Collection[str], passing: Collection[str]) -> dict[str, str]:
    """What words of people stand for among a question's answers, where there is one way: `pass`,
    `good`, `fail` and `bad` where one answer passes and one fails, 1 and 0 where yes passes and no
    fails (else 1 might be a yes, or a pass)."""
    if len(answers) != 2 or len(passing) != 1:
        return {}
    of_verdict = {answer in passing: answer for answer in answers}
    words = {word: of_verdict[passes] for word, passes in _PASS_WORDS.items()}
    return words | (_YES_WORDS if of_verdict == {True: "yes", False: "no"} else {})


def spelt_as(content: object, answers: Iterable[str]) -> str | None:
    """The one of `answers` that a text, number or truth value spells; None for none."""
    text = scalar_text(content)
    if text is None:
        return None
    return {spelling(answer): answer for answer in answers}.get(spelling(text))


def scalar_text(content: object) -> str | None:
    """A text, number or truth value as text (`yes` and `no` for the last); None for all else."""
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        return str(int(content)) if content.is_integer() else repr(content)
    return str(content) if isinstance(content, str | int) else None


def without_no_label(answer: str, answers: Collection[str] = ()) -> str | None:
    """A spelling without the parts that stand for no label; None where nothing is left.

    `answers` are spellings that are answers all the same, such as `none` where a rubric has it.
    """
    parts = answer.split(SEVERAL)
    return SEVERAL.join(p for p in parts if p not in NO_LABEL or p in answers) or None
