"""YAML files that come from anywhere: read safely, and refused with file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from judge.errors import UsageError

T = TypeVar("T")
Place = tuple[str, ...]

MAX_DEPTH = 100
"""Deepest nesting that is read. Beyond some ten thousands libyaml's composer ends the process."""

MAX_NODES = 100_000
"""Most nodes, those that aliases stand for included: a few lines of them can stand for billions."""

_UNTAGGED = ("str", "seq", "map")

# Written in C where it is there; else the rubrics take a tenth of a second to read.
_TEXTS = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_PLAIN = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A file's mapping with every scalar as text, and each key's line by its path."""

    name: str
    data: dict[str, Any]
    lines: Mapping[Place, int] = field(default_factory=dict)

    def validated(self, model: TypeAdapter[T], keys: Iterable[str] = ()) -> T:
        """The data as this model; `keys` are proposed in the place of unknown ones.

        Raises:
            UsageError: every mistake of the file, each with its line and key.
        """
        try:
            return model.validate_python(self.data)
        except ValidationError as error:
            raise self.refused(_problems(error, tuple(keys))) from error

    def refused(self, problems: Iterable[tuple[Place, str]]) -> UsageError:
        """One `file:line: key: problem` a line, in the order of the file.

        A problem with the whole file may name the key that it is about, as in `key: problem`. A key
        that is not there has the line of the nearest one above it.
        """
        told = []
        for place, problem in problems:
            key, colon, rest = problem.partition(": ")
            if not place and colon and (key,) in self.lines:
                place, problem = (key,), rest
            known = place
            while known and known not in self.lines:
                known = known[:-1]
            line = self.lines.get(known, 1)
            told.append((line, f"{self.name}:{line}: {'.'.join(place) or 'file'}: {problem}"))
        return UsageError("\n".join(text for _, text in sorted(told, key=lambda one: one[0])))


def _problems(error: ValidationError, keys: tuple[str, ...]) -> list[tuple[Place, str]]:
    found = []
    for one in error.errors(include_url=False):
        place = tuple(str(part) for part in one["loc"])
        told = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            near = get_close_matches(place[-1], {*keys} - {place[-1]}, 1)
            told = "there is no such key" + (f"; did you mean {near[0]!r}?" if near else "")
        found += [(place, problem) for problem in told.split("\n")]
    return found


def read_mapping(text: str, name: str) -> YamlMapping:
    """A YAML mapping with every scalar as text, so that `yes` and `no` stay words.

    Raises:
        UsageError: bad YAML, no mapping, a tag, or a key that stands twice; `name` stands for the
            file.
    """
    _, node = _composed(text, name, _TEXTS)
    if not isinstance(node, yaml.MappingNode):
        kinds = {yaml.ScalarNode: "a text", yaml.SequenceNode: "a list"}
        what = kinds.get(type(node), "nothing but blanks and comments")
        raise UsageError(f"{name}:1: a mapping of keys is needed, and here is {what}")
    lines: dict[Place, int] = {}
    return YamlMapping(name, _data(node, (), name, lines), lines)


def read_plain(text: str, name: str) -> Any:
    """Any YAML as plain data: numbers, texts, lists, mappings.

    Raises:
        UsageError: bad YAML; `name` stands for the file.
    """
    loader, node = _composed(text, name, _PLAIN)
    try:
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise _bad(name, error) from error
    except (ValueError, LookupError, AttributeError, ArithmeticError) as error:
        # What PyYAML's constructors raise for 2001-99-99, `!!int ""`, `!!bool x` and their like.
        told = f"{name}: not valid YAML: a value does not fit its type: {error}"
        raise UsageError(told) from error


def _composed(text: str, name: str, kind: Any) -> tuple[Any, Any]:
    """(loader, the text's one node), after seeing that it is not nested too deep or grown large."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=kind):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise UsageError(f"{name}:{line}: not read: nested more than {MAX_DEPTH} deep")
        loader = kind(text)
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _bad(name, error) from error
    if "*" in text and _count(node, {}) > MAX_NODES:
        raise UsageError(f"{name}:1: not read: aliases stand for more than {MAX_NODES} nodes")
    return loader, node


def _count(node: Any, known: dict[int, int]) -> int:
    """How many nodes a node is, with those that aliases stand for."""
    if id(node) not in known:
        known[id(node)] = 0  # of what holds itself, which the composer refuses
        parts = node.value if isinstance(node, yaml.CollectionNode) else ()
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def _data(node: Any, place: Place, name: str, lines: dict[Place, int]) -> Any:
    """A node's plain data; the line of each key and entry goes into `lines`."""
    line = node.start_mark.line + 1
    if node.tag.rpartition(":")[2] not in _UNTAGGED:
        raise UsageError(f"{name}:{line}: YAML tags are not read; take {node.tag} out")
    if isinstance(node, yaml.SequenceNode):
        entries = []
        for number, entry in enumerate(node.value):
            lines.setdefault((*place, str(number)), entry.start_mark.line + 1)
            entries.append(_data(entry, (*place, str(number)), name, lines))
        return entries
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for key, content in node.value:
        text, line = str(key.value), key.start_mark.line + 1
        if text in found:
            told = ".".join((*place, text))
            raise UsageError(f"{name}:{line}: {told}: this key stands here twice")
        lines.setdefault((*place, text), line)
        found[text] = _data(content, (*place, text), name, lines)
    return found


def _bad(name: str, error: yaml.YAMLError) -> UsageError:
    mark = getattr(error, "problem_mark", None)
    told = getattr(error, "problem", None) or error
    return UsageError(f"{name}:{mark.line + 1 if mark else 1}: not valid YAML: {told}")
