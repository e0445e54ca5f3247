"""CulturalBench's questions: four options each, as the released files have them, and regions.

Chiu et al., "CulturalBench", sections 3.3 and 5, appendix B.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Any

from judge.papers.countries import canonical
from judge.papers.tasks import Fields
from judge.records.base import clip
from judge.records.fields import LabelError, one_of, text_of

_REGIONS = {
    "North America": ("Canada", "United States"),
    "South America": ("Argentina", "Brazil", "Chile", "Mexico", "Peru"),
    "East Europe": ("Czech Republic", "Poland", "Romania", "Ukraine", "Russia"),
    "South Europe": ("Spain", "Italy"),
    "West Europe": ("France", "Germany", "Netherlands", "United Kingdom"),
    "Africa": ("Egypt", "Morocco", "Nigeria", "South Africa", "Zimbabwe"),
    "Middle East/West Asia": ("Iran", "Israel", "Lebanon", "Saudi Arabia", "Turkey"),
    "South Asia": ("Bangladesh", "India", "Nepal", "Pakistan"),
    "Southeast Asia": (
        *("Indonesia", "Malaysia", "Philippines", "Singapore", "Thailand", "Vietnam"),
    ),
    "East Asia": ("China", "Hong Kong", "Japan", "South Korea", "Taiwan"),
    "Oceania": ("Australia", "New Zealand"),
}
_REGION_OF = {canonical(name): region for region, names in _REGIONS.items() for name in names}

REGIONS = tuple(_REGIONS)
"""The eleven regions of appendix B, table 2, in the order of tables 5 and 6."""

LETTERS = ("A", "B", "C", "D")
"""The letters of a question's options in the released file."""

QUESTION = "prompt_question"
HARD_OPTION = "prompt_option"
"""A column that only the Hard file has."""

OPTIONS = tuple(f"prompt_option_{letter.lower()}" for letter in LETTERS)
_BY_LETTER = {letter.casefold(): letter for letter in LETTERS}
_CHOOSE = "Select the option that names all of the statements that are right."
_NUMERALS = ("i", "ii", "iii", "iv")
_NAMED = re.compile(r"[\siv,()]+\.?")
_STATEMENTS = re.compile(
    r"^(?P<before>.*?)\n\s*\(i\)(?P<i>.*?)\n\s*\(ii\)(?P<ii>.*?)\n\s*\(iii\)(?P<iii>.*?)"
    r"\n\s*\(iv\)(?P<iv>.*)$",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its four options as released; `gold` is the letter of the right one, or ""
    if it is not known."""

    text: str
    options: tuple[str, ...]
    gold: str = ""

    @property
    def multi(self) -> bool:
        """Whether several answers are right: options are combinations of listed statements."""
        return _STATEMENTS.match(self.text) is not None

    def with_several(self, right: Sequence[str], seed: str) -> Question:
        """The question in multi-mode (section 3.3), for several right options: its options become
        statements, and the new options are four combinations of two statements or more, drawn by
        the seed."""
        numeral = dict(zip(LETTERS, _NUMERALS, strict=True))
        statements = (f"({numeral[x]}) {o}" for x, o in zip(LETTERS, self.options, strict=True))
        text = "\n".join((self.text, _CHOOSE, *statements))
        rng, answer = Random(seed), tuple(sorted(right))
        sizes = range(2, len(LETTERS) + 1)
        others = [c for size in sizes for c in combinations(LETTERS, size) if c != answer]
        chosen = [answer, *rng.sample(others, len(LETTERS) - 1)]
        rng.shuffle(chosen)
        options = tuple(", ".join(f"({numeral[x]})" for x in names) for names in chosen)
        return Question(text, options, LETTERS[chosen.index(answer)])

    def easy(self, seed: str | None) -> dict[str, Any]:
        """The fields of its Easy item; without a seed the options are in the released order."""
        order = list(LETTERS)
        if seed is not None:
            Random(seed).shuffle(order)
        options = [self.options[LETTERS.index(letter)] for letter in order]
        return {"question": self.text, "options": options, "order": order, "gold": self.gold}

    def hard(self) -> dict[str, Any]:
        """The fields of its Hard item: four answers, each true or false (section 3.3).

        For a single-mode question they are its options, of which the right one is true. For a
        multi-mode one they are the statements (i) to (iv) that it lists, of which those named by
        the right option are true. Raises LabelError if that option names none.
        """
        match = _STATEMENTS.match(self.text)
        if match is None:
            truths = [letter == self.gold for letter in LETTERS]
            return {"question": self.text, "options": list(self.options), "gold": truths}
        place = LETTERS.index(self.gold)
        right = self.options[place]
        if not _NAMED.fullmatch(right):
            message = f"field {OPTIONS[place]!r} must name statements (as i, iii)"
            raise LabelError(f"{message}, not {clip(right)}", OPTIONS[place])
        true = re.findall(r"[iv]+", right)
        # A line before the statements says what to do with them.
        instruction = r"\n(?=[^\n]*statements)"
        before = re.split(instruction, match["before"], maxsplit=1, flags=re.IGNORECASE)
        return {
            "question": before[0].strip(),
            "options": [match[numeral].strip() for numeral in _NUMERALS],
            "gold": [numeral in true for numeral in _NUMERALS],
        }


def question_of(fields: Fields) -> Question:
    """The question of a row of the released Easy file. Raises LabelError for any other row."""
    question = options_of(fields)
    return replace(question, gold=one_of(fields.get("answer"), _BY_LETTER, "answer"))


def options_of(fields: Fields) -> Question:
    """A question with its options, without the right answer. Raises LabelError as `question_of`."""
    if HARD_OPTION in fields:
        raise LabelError("a row of the Hard file, not of the Easy file", HARD_OPTION)
    text = text_of(fields, QUESTION)
    return Question(text, tuple(text_of(fields, key) for key in OPTIONS))


def region_of(country: str) -> str | None:
    """The country's region, whatever its spelling; None if it is not one of the 45."""
    return _REGION_OF.get(canonical(country))
