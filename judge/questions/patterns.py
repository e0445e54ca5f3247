"""Regular expressions and JSON Schemas with a time limit on every search."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from time import process_time
from types import FunctionType, SimpleNamespace
from typing import Any
from unicodedata import normalize

from judge.errors import missing_extra
from judge.records.base import clip
from judge.yamlfile import composed

EXTRA = "tests"
"""The extra that installs the libraries of the tests `json_schema` and `language`."""

SECONDS = 1.0
"""Longest time in seconds that a pattern may search one text."""

SCHEMA_SECONDS = 10.0
"""Longest processor time in seconds of a JSON Schema on one text: its references may multiply."""


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ignore_case: bool) -> Any:
    """The composed (NFC) pattern; raises `regex.error` if it is not one."""
    import regex

    return regex.compile(normalize("NFC", pattern), regex.IGNORECASE if ignore_case else 0)


def search(pattern: str, text: str, *, ignore_case: bool = False) -> str | None:
    """The pattern's first match; None if there is none. Raises ValueError if it takes too long."""
    try:
        match = compiled(pattern, ignore_case=ignore_case).search(text, timeout=SECONDS)
    except TimeoutError:
        problem = f"the pattern {clip(pattern, 40)} took more than {SECONDS:g} s on this text"
        raise ValueError(problem) from None
    return match.group() if match else None


@lru_cache(maxsize=64)
def validator(schema: str) -> Any:
    """The validator of a JSON Schema; ValueError if it is not a schema.

    References outside the schema are not fetched, and its patterns have the same time limit.
    Validates only inside `schema_fault`, which limits the time of all.
    """
    try:
        from jsonschema import validators
        from jsonschema.exceptions import SchemaError
        from referencing import Registry
    except ImportError as error:
        raise ValueError(str(missing_extra("needs a library", EXTRA))) from error

    try:
        content = composed(json.loads(schema))
        kind = validators.validator_for(content, default=validators.Draft202012Validator)
        kind.check_schema(content)
    except SchemaError as error:
        message = f"not a JSON Schema: {error.json_path}: {shortened(error.message)}"
        raise ValueError(message) from error
    except ValueError as error:
        raise ValueError(f"not a JSON Schema: {error}") from error
    known = kind.VALIDATORS
    limited = {name: _limited(known[name], {}) for name in _SEARCHING if name in known}
    limited |= {name: _timed(known[name]) for name in _REFERRING if name in known}
    return validators.extend(kind, limited)(content, registry=Registry())


_SEARCHING = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties")
"""The keywords of JSON Schema that search for patterns."""


_REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")
"""The keywords of JSON Schema by which a small one can take exponential time."""

_end: ContextVar[float] = ContextVar("_end")


def schema_fault(schema: str, content: Any) -> Any:
    """What of JSON content does not fit the schema, as jsonschema's error; None if it fits.

    Raises ValueError if the schema takes too long, and jsonschema's errors about references.
    """
    from jsonschema.exceptions import best_match

    checked = validator(schema)
    _end.set(process_time() + SCHEMA_SECONDS)
    return best_match(checked.iter_errors(content))


def _timed(function: Any) -> Any:
    def timed(*words: Any) -> Iterator[Any]:
        if process_time() > _end.get():
            raise ValueError(f"the schema took more than {SCHEMA_SECONDS:g} s on this text")
        yield from function(*words) or ()

    return timed


def _limited(function: Any, copies: dict[str, Any]) -> Any:
    """A copy of a keyword's function, and of those that it calls, in which `re` is our search.

    The library cannot be told how to search.
    """
    names = {**function.__globals__, "re": SimpleNamespace(search=_is_found)}
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copies[function.__name__] = copy
    for name in function.__code__.co_names:
        if isinstance(part := names.get(name), FunctionType):
            names[name] = copies.get(name) or _limited(part, copies)
    return copy


def _is_found(pattern: str, text: str) -> bool:
    return search(pattern, normalize("NFC", text)) is not None


def shortened(text: str, most: int = 160) -> str:
    """The text on one line, cut to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
