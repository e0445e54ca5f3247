"""Reads YAML files of any origin safely, and refuses bad ones with file, line and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from judge.errors import UsageError
from judge.problems import KeyPath, KeyProblem, may_mean, problems_of

T = TypeVar("T", bound=BaseModel)

MAX_DEPTH = 100
"""Deepest nesting that is read. Beyond some ten thousand, libyaml's composer ends the process."""


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A file's mapping with every scalar as text, and each key's line by its path."""

    name: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    nulls: tuple[KeyPath, ...] = ()

    def validated(self, model: type[T]) -> T:
        """The data as this model; raises UsageError with all mistakes, see `refused`."""
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise self.refused(problems_of(error, model.model_fields)) from error

    def refused(self, problems: Iterable[KeyProblem]) -> UsageError:
        """An error with a line `file:line: key: problem` per problem, in the order of the file.

        A missing key gets the line of the nearest key above it, and is not reported beside a
        misspelling of it.
        """
        found, messages = dict.fromkeys(problems), []
        for place, problem in found:
            if place not in self.lines and any(may_mean(other, place) for other in found):
                continue
            above = (place[:length] for length in range(len(place), 0, -1))
            line = next((self.lines[parent] for parent in above if parent in self.lines), 1)
            messages.append((line, f"{self.name}:{line}: {'.'.join(place) or 'file'}: {problem}"))
        return UsageError(
            "\n".join(text for _, text in sorted(messages, key=lambda message: message[0]))
        )


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
"""Plain scalars that YAML reads as null."""

NULL = "is empty or null: leave the key out, or put the word in quotes"


def read_mapping(text: str, name: str) -> YamlMapping:
    """A YAML mapping with every scalar as text, so that `yes` and `no` stay words.

    `name` is the file's. Raises UsageError for bad YAML, a text that is not a mapping, an alias, a
    tag, a duplicate key or a null.
    """
    source = located(text, name)
    if source.nulls:
        raise source.refused((place, NULL) for place in source.nulls)
    return source


_PATHS = ("python", "json_schema")


def composed(content: Any) -> Any:
    """The content with every text but paths composed (NFC), so that é as two characters, as macOS
    may write it, is the é of one."""
    if isinstance(content, str):
        return normalize("NFC", content)
    if isinstance(content, Mapping):
        pairs = ((composed(key), key, part) for key, part in content.items())
        return {name: part if key in _PATHS else composed(part) for name, key, part in pairs}
    return [*map(composed, content)] if isinstance(content, list | tuple) else content


def located(text: str, name: str, example: str = "name: polite") -> YamlMapping:
    """As `read_mapping`, for a file that may hold nulls; `example` shows its form in messages."""
    import yaml

    node = _composed(text, name)
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{name}:1: must be a mapping of keys, as in `{example}`")
    lines: dict[KeyPath, int] = {}
    nulls: list[KeyPath] = []
    data = _data(node, (), name, lines, nulls)
    return YamlMapping(name, data, lines, tuple(nulls))


def read_plain(text: str, name: str) -> Any:
    """Any YAML as plain data: numbers, texts, lists, mappings. Raises UsageError as
    `read_mapping`."""
    import yaml

    _composed(text, name)
    try:
        return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_single_data()
    except (yaml.YAMLError, ValueError, ArithmeticError) as error:
        # PyYAML raises these for values such as 2001-99-99 and `? [a]`.
        problem = getattr(error, "problem", None) or error
        raise UsageError(f"{name}: not valid YAML: {problem}") from error


def _composed(text: str, name: str) -> Any:
    """The text's root node.

    Aliases are refused, because a few lines of them can stand for billions of nodes; so are tags.
    """
    import yaml

    # The C loader if available: with the Python one, reading the rubrics takes a tenth of a second.
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
        of_line = "".join(text.split("\n")[line - 1 : line])
        message = f"{name}:{line}: not valid YAML: {problem}{_to_type(of_line, problem)}"
        raise UsageError(message) from error


_ENTRY = re.compile(r"\s*((?:- +)?[\w.-]+: +|- +)(.*?)\s*")
_SPECIAL = tuple("@`%*&!|>")
_CLOSING = {'"': '"', "'": "'", "[": "]", "{": "}"}


def _to_type(line: str, problem: str) -> str:
    """What to type if a text without quotes on the line is no YAML; "" if that is no reason."""
    entry = _ENTRY.fullmatch(line)
    key, content = entry.groups() if entry else ("", "")
    opened = _CLOSING.get(content[:1])
    unclosed = opened is not None and not content.endswith(opened)
    if ": " in content or content.endswith(":") or content.startswith(_SPECIAL) or unclosed:
        quoted = content.replace("'", "''")
        return f"; put the text in quotes: {key}'{quoted}'"
    if problem.startswith("mapping values"):
        return "; a text with ': ' needs quotes, and the keys of a mapping the same indent"
    return ""


def _data(
    node: Any, place: KeyPath, name: str, lines: dict[KeyPath, int], nulls: list[KeyPath]
) -> Any:
    """A node's plain data; the line of each key and entry goes into `lines`."""
    import yaml

    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        parts = enumerate(node.value)
        return [_data(entry, (*place, str(number)), name, lines, nulls) for number, entry in parts]
    if not isinstance(node, yaml.MappingNode):
        if not node.style and node.value in _NULLS:
            nulls.append(place)
        return node.value
    data: dict[str, Any] = {}
    for key, content in node.value:
        text, line = str(key.value), key.start_mark.line + 1
        if text in data:
            path = ".".join((*place, text))
            raise UsageError(f"{name}:{line}: {path}: duplicate key")
        lines[*place, text] = line
        data[text] = _data(content, (*place, text), name, lines, nulls)
    return data
