"""Where the keys of a YAML file stand, so that a complaint can name file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from judge.errors import UsageError

Place = tuple[str, ...]

_PYTHON = "tag:yaml.org,2002:python/"

# Written in C where it is there; else the rubrics take a tenth of a second to read.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_mapping(text: str, name: str) -> tuple[dict[str, Any], dict[Place, int]]:
    """A YAML mapping with every scalar as text, and each key's line by its path.

    Raises:
        UsageError: bad YAML, no mapping, a tag, or a key that stands twice; `name` stands
            for the file.
    """
    try:
        node, data = _parsed(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{name}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{name}:1: not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{name}:1: a rubric is a mapping of keys, not {type(data).__name__}")
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
