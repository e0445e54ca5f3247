"""Makes rubrics from the questions and tests on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

from judge.errors import UsageError
from judge.problems import Problems
from judge.questions.rubric import ASKED, Rubric, rubrics_of, with_files
from judge.yamlfile import read_mapping, read_plain

_plain = partial(normalize, "NFC")
"""A field's name composed: with é as one character, whether it was typed as one or as two."""

_FORM = "type 'FIELD: {contains: WORD}'"


def rubrics_from_flags(
    question: str,
    fields: Sequence[str],
    answers: Sequence[str] = (),
    passes: str | None = None,
    *,
    name: str = ASKED,
    compare: Sequence[str] = (),
    tie: bool = False,
) -> list[Rubric]:
    """The rubric of a question on the command line; a comparison of several fields gives one rubric
    per pair.

    Raises UsageError with every mistake, each with its flag.
    """
    keys: dict[str, Any] = {"name": name, "question": question, "fields": [*fields]}
    keys |= {"answers": answers} if answers else {}
    keys |= {"compare": [*compare]} if compare else {}
    keys |= {"tie": "true"} if tie else {}
    if passes:
        # One label, several separated by commas, or a bound.
        keys["pass"] = tuple(map(str.strip, passes.split(","))) if "," in passes else passes
    try:
        return rubrics_of(keys)
    except Problems as error:
        flags = {"question": "--ask", "fields": "--on"}
        message = "\n".join(
            f"{flags.get(place[0], f'--{place[0]}')}: {problem}"
            for place, problem in error.problems
        )
        raise UsageError(message) from error


def test_from_flag(text: str) -> Rubric:
    """The rubric of a test on the command line.

    `text` is `FIELD: {contains: WORD}`, optionally with `first: true`, or `file.py:function`. The
    rubric is named after the field and the kind of test, or after the function.

    Raises UsageError, with the flag.
    """
    keys: Mapping[str, Any] = {"python": text}
    field, name = "", text.rpartition(":")[2]
    if not re.search(r"\.py:\w+$", text):
        try:
            data = read_mapping(text, "--test").data if re.search(r":(\s|$)", text) else {}
        except UsageError as error:
            raise UsageError(f"{error}; {_FORM}") from error
        field, test = next(iter(data.items()), ("", None))
        if len(data) != 1 or not isinstance(test, Mapping):
            raise UsageError(f"--test {text!r}: {_FORM}")
        test = {**test}
        keys = {"fields": [_plain(field)], "first": test.pop("first", "false"), "test": test}
        name = "_".join([_plain(field), *(key for key in test if key != "ignore_case")])
    name = re.sub(r"[^a-z0-9_]+", "_", name.lower()).lstrip("_0123456789") or "test"
    try:
        plain = lambda: read_plain(text, "--test")[field]  # noqa: E731
        return rubrics_of(with_files({**keys, "name": name}, Path(), plain))[0]
    except Problems as error:
        raise UsageError(
            "\n".join(f"--test: {'.'.join(place)}: {problem}" for place, problem in error.problems)
        ) from error
