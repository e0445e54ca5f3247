"""Words mistakes in the keys of a file plainly: pydantic's errors and our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from judge.errors import nearest

KeyPath = tuple[str, ...]
KeyProblem = tuple[KeyPath, str]
"""A key's path, and what is wrong with it."""

_LIST = "write a list, as in [a, b]"
_KEYS = "write a mapping of keys, as in {{a: b}}"
_TEXT = "must be text"
_WHOLE = "must be a whole number"
_NUMBER = "must be a number"
_TRUTH = "must be true or false"
_WORDS: Mapping[str, str] = {
    "missing": "missing key",
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), _KEYS),
    **dict.fromkeys(("string_type", "string_sub_type"), _TEXT),
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _TRUTH),
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "has characters that it may not have",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "write at most {max_length} characters",
    "too_long": "too many entries: at most {max_length}",
    "too_short": "too few entries: at least {min_length}",
}
"""The message for each of pydantic's types of error; placeholders are from pydantic's context."""


_UNKNOWN = "unknown key"


class Problems(ValueError):
    """Several mistakes in one mapping, each with the path of its key."""

    def __init__(self, problems: Iterable[KeyProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "; ".join(f"{'.'.join(place)}: {problem}" for place, problem in self.problems)
        )


def problems_of(error: ValidationError, keys: Iterable[str] = ()) -> Iterator[KeyProblem]:
    """Every mistake that a pydantic model found; for an unknown key one of `keys` is suggested."""
    for fault in error.errors(include_url=False):
        # `[key]` is pydantic's, for a key that a mapping may not have.
        place = tuple(str(part) for part in fault["loc"] if part != "[key]")
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, Problems):
            yield from (((*place, *within), problem) for within, problem in cause.problems)
        elif fault["type"] == "extra_forbidden":
            yield place, no_such_key(place[-1], keys)
        elif fault["type"] == "missing" and isinstance(fault["loc"][-1], int):
            yield place[:-1], "too few entries"
        elif fault["type"] == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"]:
            continue  # An entry is wrong, which is reported already.
        else:
            yield place, worded(fault)


def worded(error: Any) -> str:
    """One of pydantic's errors in words that do not name Python's types."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"]).replace("'", "")
        return f"{str(error['input'])[:60]!r} is not one of {expected}"
    if kind == "string_too_short":
        return "must not be empty"
    words = _WORDS.get(kind)
    return words.format(**context) if words else str(error["msg"]).removeprefix("Value error, ")


def no_such_key(key: str, keys: Iterable[str], *, all: bool = False) -> str:
    """The message for an unknown key, with the nearest of `keys`; else, if wanted, with all."""
    near = nearest(key, {*keys} - {key})
    others = f"; the keys are {', '.join(keys)}" if all else ""
    return f"{_UNKNOWN}; did you mean {near!r}?" if near else f"{_UNKNOWN}{others}"


def may_mean(problem: KeyProblem, place: KeyPath) -> bool:
    """Whether the problem is an unknown key that may be a misspelling of the key at `place`."""
    (*above, key), message = problem
    alike = tuple(above) == place[:-1] and nearest(key, place[-1:])
    return message.startswith(_UNKNOWN) and bool(alike)
