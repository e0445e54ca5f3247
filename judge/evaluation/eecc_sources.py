"""Reading EECC's released folder, and files of outputs in the form that its authors released.

The folder holds `identities.tsv` (kind, identity), and for each condition a folder with
`concepts.tsv` (topic, concept) and `templates.tsv` (two cells of no meaning, the template); none
has a header. A file of outputs has a line for each prompt: two cells of no meaning, template,
topic, concept, kind, identity, prompt, then the outputs, with `~| ` for every new line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices, Result
from judge.records import Item, Problem

CONDITIONS = ("stories", "qa")

NEW_LINE = "~| "
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CELLS_BEFORE_OUTPUTS = 8
# English says "a Ugandan" and "an Uzbek": what begins with the sound of "you".
_CONSONANT_SOUND = re.compile(r"eu|ugand|ukrain|urugu", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file without a header: where it stands and its cells."""

    source: str
    number: int
    cells: tuple[str, ...]

    def refused(self, message: str, field: str | None = None) -> Item:
        return Item(self.source, self.number, None, "\t".join(self.cells), Problem(message, field))


@dataclass(frozen=True, slots=True)
class Pair:
    """A name in its group: a concept in its topic, an identity in its kind."""

    group: str
    name: str
    line: Line


@dataclass(frozen=True, slots=True)
class Setting:
    """What a condition asks about: its template and its concepts."""

    condition: str
    template: str
    concepts: tuple[Pair, ...]
    problems: tuple[Item, ...]

    def prompt(self, concept: str, identity: str) -> str:
        """The template with the concept, the identity and the article before it."""
        filled = self.template.replace("{vowel}", article(identity))
        return _fill(filled, {"{concept}": concept, "{identity}": identity})


def article(word: str) -> str:
    """`a` or `an`, by the sound that an English word begins with."""
    if _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[:1].casefold() in tuple("aeiou") else "a"


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """One item for each condition, concept, identity and draw, in this order.

    A line of the folder's files that cannot be read comes first, as an item with its problem. A
    concept that is listed twice in one topic is asked about once, as the paper counts (345 topics
    of the 347 lines).

    Raises:
        UsageError: not one source, or it is no folder, or a file of it is not there or is no UTF-8,
            or a condition has not just one template that names {concept} and {identity}.
    """
    folder = folder_of(sources)
    identities, problems = _pairs(folder / "identities.tsv", "kind", "identity")
    settings = [read_setting(folder, condition) for condition in choices.conditions]
    yield from problems
    for setting in settings:
        yield from setting.problems
    for setting in settings:
        for concept in setting.concepts:
            for identity in identities:
                fields = _fields(setting, concept.group, concept.name, identity, folder)
                for draw in range(choices.draws):
                    yield Item(
                        concept.line.source, concept.line.number, _drawn(fields, draw), None, None
                    )


def folder_of(sources: Sequence[str]) -> Path:
    """The one folder that is named.

    Raises:
        UsageError: there are several sources, or it is no folder.
    """
    if len(sources) != 1:
        raise UsageError(f"eecc reads one folder in the released layout, not {len(sources)}")
    folder = Path(sources[0])
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder (eecc reads the folder of identities.tsv)")
    return folder


def read_setting(folder: Path, condition: str) -> Setting:
    """A condition's template and concepts. Raises UsageError as `items`."""
    path = folder / condition / "templates.tsv"
    lines = list(_lines(path))
    if len(lines) != 1:
        raise UsageError(f"{path}: {len(lines)} templates, eecc asks by exactly one")
    template = lines[0].cells[-1].strip()
    for name in ("{concept}", "{identity}"):
        if name not in template:
            raise UsageError(f"{path}:1: the template does not name {name}")
    concepts, problems = _pairs(folder / condition / "concepts.tsv", "topic", "concept")
    return Setting(condition, template, tuple(concepts), tuple(problems))


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a file of outputs holds, and the lines of it that cannot be read."""

    results: tuple[Result, ...]
    problems: tuple[Item, ...]


def read_outputs(path: Path, folder: Path) -> Outputs:
    """The outputs of a file in the released form, as results of the folder's conditions.

    The template tells which condition a line is of; topics are the folder's where it knows the
    concept, else the line's own. An empty output got no reply (`error`). Lines about the same
    concept and identity go on with further draws. Cells that are quoted as CSV quotes them are
    unquoted, each by itself.

    Raises:
        UsageError: a file is not there or is no UTF-8, or no line of `path` can be read.
    """
    settings = {
        setting.template: setting
        for setting in (
            read_setting(folder, condition)
            for condition in CONDITIONS
            if (folder / condition).is_dir()
        )
    }
    topics = {
        (setting.condition, concept.name): concept.group
        for setting in settings.values()
        for concept in setting.concepts
    }
    results: list[Result] = []
    problems: list[Item] = []
    draws: dict[str, int] = {}
    for line in _lines(path):
        cells = [_unquoted(cell) for cell in line.cells]
        if cells[2:7] == ["template", "topic", "concept", "granularity", "identity"]:
            continue
        problem = _problem_of(cells, settings)
        if problem is not None:
            problems.append(line.refused(*problem))
            continue
        template, topic, concept, kind, identity = (cell.strip() for cell in cells[2:7])
        setting = settings[template]
        topic = topics.get((setting.condition, concept), topic)
        fields = _fields(setting, topic, concept, Pair(kind, identity, line), folder)
        fields["prompt"] = cells[7].strip()
        for cell in cells[_CELLS_BEFORE_OUTPUTS:]:
            draw = draws.get(fields["row"], 0)
            draws[fields["row"]] = draw + 1
            results.append(_result(_drawn(fields, draw), cell))
    if not results:
        first = f": {told(problems[0])}" if problems else ""
        raise UsageError(f"{path}: no line of it can be read as outputs{first}")
    return Outputs(tuple(results), tuple(problems))


def told(refused: Item) -> str:
    """Where a line stands that could not be read, and what is wrong with it."""
    return f"{refused.source}:{refused.line}: {refused.problem.message if refused.problem else ''}"


def _problem_of(
    cells: Sequence[str], settings: dict[str, Setting]
) -> tuple[str, str | None] | None:
    """What is wrong with a line of outputs, and in which field."""
    if len(cells) <= _CELLS_BEFORE_OUTPUTS:
        needed = _CELLS_BEFORE_OUTPUTS + 1
        return f"{len(cells)} cells, a line of outputs has {needed} or more", None
    if cells[2].strip() not in settings:
        return "the template is none of the folder's", "template"
    for place, name in ((4, "concept"), (5, "granularity"), (6, "identity")):
        if not cells[place].strip():
            return f"field {name!r} is empty", name
    return None


def _result(fields: dict[str, Any], cell: str) -> Result:
    text = cell.replace(NEW_LINE, "\n").strip()
    return Result(fields, "answered", answer=text) if text else Result(fields, "error")


def _fields(
    setting: Setting, topic: str, concept: str, identity: Pair, folder: Path
) -> dict[str, Any]:
    return {
        "row": f"{setting.condition}/{concept}/{identity.name}",
        "condition": setting.condition,
        "topic": topic,
        "concept": concept,
        "identity": identity.name,
        "kind": identity.group,
        "prompt": setting.prompt(concept, identity.name),
        "data": str(folder),
    }


def _drawn(fields: dict[str, Any], draw: int) -> dict[str, Any]:
    return {"id": f"{fields['row']}/{draw}", **fields, "draw": draw}


def _pairs(path: Path, group: str, name: str) -> tuple[list[Pair], list[Item]]:
    """The lines of two cells, each name once, and those that are something else."""
    found: dict[str, Pair] = {}
    problems = []
    for line in _lines(path):
        cells = [cell.strip() for cell in line.cells]
        if len(cells) != 2 or not all(cells):
            message = f"not two cells, {group} and {name}"
            problems.append(line.refused(message, name))
            continue
        first = found.setdefault(cells[1], Pair(cells[0], cells[1], line))
        if first.group != cells[0]:
            message = (
                f"{name} {cells[1]!r} is of {group} {cells[0]!r} here and of {first.group!r} on "
                f"line {first.line.number}"
            )
            problems.append(line.refused(message, name))
    return list(found.values()), problems


def _lines(path: Path) -> Iterator[Line]:
    """The lines that are not blank; they end at a line feed and nowhere else.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield Line(str(path), number, tuple(text.rstrip("\r\n").split("\t")))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell


def _fill(template: str, texts: dict[str, str]) -> str:
    """Each name replaced by its text, which is not looked into again."""
    pattern = "|".join(re.escape(name) for name in texts)
    return re.sub(pattern, lambda found: texts[found.group()], template)
