"""CulturalBench: questions about countries, with four options.

Released (Chiu et al., "CulturalBench") as CSV in two forms. Easy: data_idx, question_idx,
prompt_question, prompt_option_a to _d, answer (A to D), country. Hard: the same questions, one row
an option, with prompt_option and answer TRUE or FALSE. People verified the answers; their votes
are not released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from judge.records.base import Item
from judge.records.labelled import LabelledItem
from judge.records.released.common import (
    Form,
    Labelled,
    Place,
    RecordNames,
    each_line,
    id_text,
    one_of,
    text_of,
)

_OPTIONS = ("a", "b", "c", "d")
_LETTERS = {letter: letter for letter in _OPTIONS}
_TRUTHS = {"true": "yes", "yes": "yes", "1": "yes", "false": "no", "no": "no", "0": "no"}


def read_culturalbench(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """`quiz` items of Easy rows (gold `a` to `d`), `quiz_hard` items of Hard rows (yes or no).

    Fields: `question`, and `option_a` to `option_d`, or `option`. The record is the question's
    index; a Hard question's options are its numbers 1 and on. Slice: country.
    """
    options: Counter[str] = Counter()
    with RecordNames() as names:
        yield from each_line(items, partial(_row, names, options))


def is_culturalbench(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of this set."""
    return "prompt_question" in fields and (
        {"prompt_option_a", "prompt_option_d"} <= fields.keys() or "prompt_option" in fields
    )


def _row(
    names: RecordNames, options: Counter[str], item: Item, row: dict[str, Any]
) -> list[LabelledItem]:
    question = text_of(row, "prompt_question")
    country = row.get("country")
    slices = {"country": country} if isinstance(country, str) and country.strip() else {}
    if "prompt_option" in row:
        return [_option(options, item, row, question, slices)]
    shown = {f"option_{letter}": text_of(row, f"prompt_option_{letter}") for letter in _OPTIONS}
    gold = one_of(row.get("answer"), _LETTERS, "answer")
    return [
        LabelledItem(
            names.name(item, row.get("question_idx"), "question_idx"),
            "quiz",
            {"question": question, **shown},
            gold=gold,
            slices=slices,
            source=item.source,
            line=item.line,
        )
    ]


def _option(
    options: Counter[str], item: Item, row: dict[str, Any], question: str, slices: dict[str, str]
) -> LabelledItem:
    # The rows of one question share its index, so that it names them without being repeated.
    record = id_text(row.get("question_idx"), "question_idx") or f"{item.source}#{item.line}"
    options[record] += 1
    shown = {"question": question, "option": text_of(row, "prompt_option")}
    gold = one_of(row.get("answer"), _TRUTHS, "answer")
    return LabelledItem(
        record,
        "quiz_hard",
        shown,
        number=options[record],
        gold=gold,
        slices=slices,
        source=item.source,
        line=item.line,
    )


FORM = Form("culturalbench", read_culturalbench, is_culturalbench, checks=("quiz", "quiz_hard"))
