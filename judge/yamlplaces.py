"""Where the keys of a YAML file stand, so that a complaint can name file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from judge.errors import UsageError

Place = tuple[str, ...]

_PYTHON = "tag:yaml.org,2002:python/"
MAX_DEPTH = 100
"""Deepest nesting that is read. Beyond some ten thousands libyaml's composer ends the process."""

MAX_ALIASED = 100_000
"""Most nodes that aliases may stand for: a few lines of them can stand for billions."""

_KINDS: Mapping[type, str] = {str: "a text", list: "a list"}
"""What else a file can hold, with every scalar as text."""

# Written in C where it is there; else the rubrics take a tenth of a second to read.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_mapping(text: str, name: str) -> tuple[dict[str, Any], dict[Place, int]]:
    """A YAML mapping with every scalar as text, and each key's line by its path.

    Raises:
        UsageError: bad YAML, no mapping, a tag, or a key that stands twice; `name` stands
            for the file.
    """
    refuse_explosive(text, name)
    try:
        node, data = _parsed(text)
    except yaml.YAMLError as error:
        raise _bad(name, error) from error
    if not isinstance(data, dict):
        what = _KINDS.get(type(data), "nothing but blanks and comments")
        raise UsageError(f"{name}:1: a mapping of keys is needed, and here is {what}")
    if "!" in text:
        _refuse_tags(text, name)
    lines: dict[Place, int] = {}
    for place, line, is_key in _lines(node):
        if is_key and place in lines:
            raise UsageError(f"{name}:{line}: {'.'.join(place)}: this key stands here twice")
        lines.setdefault(place, line)
    return data, lines


def _refuse_tags(text: str, name: str) -> None:
    """Every scalar is text here: a tag would be passed over, and whoever wrote it misled."""
    for event in yaml.parse(text, Loader=_LOADER):
        tag = getattr(event, "tag", None) or ""
        if tag.startswith(("!", _PYTHON)) and tag != "!":
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise UsageError(f"{name}:{line}: YAML tags are not read; take {tag} out")


def read_plain(text: str, name: str) -> Any:
    """Any YAML as plain data: numbers, texts, lists, mappings.

    Raises:
        UsageError: bad YAML; `name` stands for the file.
    """
    refuse_explosive(text, name)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _bad(name, error) from error
    except (ValueError, LookupError, AttributeError, ArithmeticError) as error:
        # What PyYAML's constructors raise for 2001-99-99, `!!int ""`, `!!bool x` and their like.
        told = f"{name}: not valid YAML: a value does not fit its type: {error}"
        raise UsageError(told) from error


def refuse_explosive(text: str, name: str) -> None:
    """Let nothing through that small text can grow to: deep nesting, aliases of aliases.

    Raises:
        UsageError: nested beyond MAX_DEPTH, or aliases that stand for more than MAX_ALIASED nodes.
    """
    for loader in (_LOADER, yaml.BaseLoader):
        try:
            _refuse_explosive(text, name, loader)
        except yaml.YAMLError:
            # Bad YAML is for the loaders to tell of; the one that is not written in C takes more.
            continue
        return


def _refuse_explosive(text: str, name: str, loader: Any) -> None:
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    count = aliased = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            count += 1
            opened.append((event.anchor, count))
            if len(opened) > MAX_DEPTH:
                raise _at(name, event, f"nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, began = opened.pop()
            if anchor is not None:
                sizes[anchor] = count - began + 1
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            # An alias inside what it names has no size yet, and is refused by the composer.
            size = sizes.get(event.anchor, 1)
            count, aliased = count + size, aliased + size
            if aliased > MAX_ALIASED:
                raise _at(name, event, f"aliases stand for more than {MAX_ALIASED} nodes")


def _at(name: str, event: Any, problem: str) -> UsageError:
    return UsageError(f"{name}:{event.start_mark.line + 1}: not read: {problem}")


def _bad(name: str, error: yaml.YAMLError) -> UsageError:
    if isinstance(error, yaml.MarkedYAMLError):
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return UsageError(f"{name}:{line}: not valid YAML: {error.problem}")
    return UsageError(f"{name}:1: not valid YAML: {error}")


def _parsed(text: str) -> tuple[Any, Any]:
    """The text as nodes, which know their lines, and as plain data."""
    try:
        return yaml.compose(text, Loader=_LOADER), yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError:
        # The loader that is not written in C says more exactly where it went wrong.
        return yaml.compose(text, Loader=yaml.BaseLoader), yaml.load(text, Loader=yaml.BaseLoader)


def complaint(name: str, where: Place, lines: Mapping[Place, int], problem: str) -> str:
    """`file:line: key: problem`, with the line of the nearest key that is there.

    A problem with the whole file may name the key that it is about, as in `key: problem`.
    """
    problem = problem.removeprefix("Value error, ")
    if not where and (key := problem.partition(":")[0]) and (key,) in lines:
        return f"{name}:{lines[key,]}: {problem}"
    known = where
    while known and known not in lines:
        known = known[:-1]
    return f"{name}:{lines.get(known, 1)}: {'.'.join(where) or 'rubric'}: {problem}"


def _lines(node: Any, path: Place = ()) -> Iterator[tuple[Place, int, bool]]:
    """(path, line, whether it is a key) of everything under a node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*path, str(key.value))
            yield place, key.start_mark.line + 1, True
            yield from _lines(value, place)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            place = (*path, str(number))
            yield place, value.start_mark.line + 1, False
            yield from _lines(value, place)
