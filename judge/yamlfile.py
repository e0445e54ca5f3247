"""YAML files that come from anywhere: read safely, and refused with file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from judge.errors import UsageError

T = TypeVar("T", bound=BaseModel)
KeyPath = tuple[str, ...]
KeyProblem = tuple[KeyPath, str]
"""A key's path, and what is wrong with it."""

_WORDS = {
    "tuple_type": "write a list, as in [a, b]",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
}

MAX_DEPTH = 100
"""Deepest nesting that is read. Beyond some ten thousands libyaml's composer ends the process."""


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A file's mapping with every scalar as text, and each key's line by its path."""

    name: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]

    def validated(self, model: type[T]) -> T:
        """The data as this model; raises UsageError with every mistake, see `refused`."""
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise self.refused(problems_of(error, model.model_fields)) from error

    def refused(self, problems: Iterable[KeyProblem]) -> UsageError:
        """One `file:line: key: problem` a line, in the order of the file.

        A key that is not there has the line of the nearest one above it.
        """
        messages = []
        for place, problem in problems:
            above = (place[:length] for length in range(len(place), 0, -1))
            line = next((self.lines[parent] for parent in above if parent in self.lines), 1)
            messages.append((line, f"{self.name}:{line}: {'.'.join(place) or 'file'}: {problem}"))
        return UsageError(
            "\n".join(text for _, text in sorted(messages, key=lambda message: message[0]))
        )


class Problems(ValueError):
    """Several mistakes in one mapping, each with the place of its key."""

    def __init__(self, problems: Iterable[KeyProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "; ".join(f"{'.'.join(place)}: {problem}" for place, problem in self.problems)
        )


def problems_of(error: ValidationError, keys: Iterable[str]) -> Iterator[KeyProblem]:
    """Every mistake that a model found; one of `keys` is proposed for a key that is unknown."""
    for fault in error.errors(include_url=False):
        place = tuple(str(part) for part in fault["loc"])
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, Problems):
            yield from (((*place, *within), problem) for within, problem in cause.problems)
        elif fault["type"] == "extra_forbidden":
            yield place, no_such_key(place[-1], keys)
        else:
            yield place, worded(fault)


def worded(error: Any) -> str:
    """One of pydantic's errors in words that do not speak of Python's types."""
    return _WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")


def no_such_key(key: str, keys: Iterable[str]) -> str:
    """The message for an unknown key, with the nearest of `keys`."""
    near = get_close_matches(key, {*keys} - {key}, 1)
    return "unknown key" + (f"; did you mean {near[0]!r}?" if near else "")


def read_mapping(text: str, name: str) -> YamlMapping:
    """A YAML mapping with every scalar as text, so that `yes` and `no` stay words.

    Raises UsageError for bad YAML, no mapping, an alias, or a duplicate key; `name` is the
    file's.
    """
    import yaml

    node = _composed(text, name)
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{name}:1: must be a mapping of keys, as in `name: polite`")
    lines: dict[KeyPath, int] = {}
    return YamlMapping(name, _data(node, (), name, lines), lines)


def read_plain(text: str, name: str) -> Any:
    """Any YAML as plain data: numbers, texts, lists, mappings. Raises UsageError as above."""
    import yaml

    _composed(text, name)
    try:
        return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_single_data()
    except (yaml.YAMLError, ValueError, ArithmeticError) as error:
        # What PyYAML raises for 2001-99-99, `? [a]` and their like.
        problem = getattr(error, "problem", None) or error
        raise UsageError(f"{name}: not valid YAML: {problem}") from error


def _composed(text: str, name: str) -> Any:
    """The text's one node.

    Aliases are not read, because a few lines of them can stand for billions of nodes; nor are tags.
    """
    import yaml

    # Written in C where it is there; else the rubrics take a tenth of a second to read.
    loader, depth = getattr(yaml, "CBaseLoader", yaml.BaseLoader), 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            line, problem = event.start_mark.line + 1 if event.start_mark else 1, ""
            if depth > MAX_DEPTH:
                problem = f"not read: nested more than {MAX_DEPTH} deep"
            elif isinstance(event, yaml.AliasEvent):
                problem = f"the alias *{event.anchor} is not read: write it out"
            elif tag := getattr(event, "tag", None):
                problem = f"YAML tags are not supported; remove {tag}"
            if problem:
                raise UsageError(f"{name}:{line}: {problem}")
        return yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = f"{getattr(error, 'problem', None) or error}"
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{name}:{line}: not valid YAML: {problem}") from error


def _data(node: Any, place: KeyPath, name: str, lines: dict[KeyPath, int]) -> Any:
    """A node's plain data; the line of each key and entry goes into `lines`."""
    import yaml

    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        parts = enumerate(node.value)
        return [_data(entry, (*place, str(number)), name, lines) for number, entry in parts]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    data: dict[str, Any] = {}
    for key, content in node.value:
        text, line = str(key.value), key.start_mark.line + 1
        if text in data:
            path = ".".join((*place, text))
            raise UsageError(f"{name}:{line}: {path}: duplicate key")
        lines[*place, text] = line
        data[text] = _data(content, (*place, text), name, lines)
    return data
