"""EECC: whether a model's stories and explanations change with the nationality it is told of.

Bhatt and Diaz 2024, "Extrinsic Evaluation of Cultural Competence in Large Language Models". The
model writes for every concept and every nationality, five times each, at temperature 0.3. Nothing
is right or wrong: the outputs are compared with one another (`eecc_analysis`) and with surveys of
values.

The released folder holds `identities.tsv` (kind, identity), and for each condition a folder with
`concepts.tsv` (topic, concept) and `templates.tsv` (two cells of no meaning, the template); none
has a header. A file of outputs has a line for each prompt: two cells of no meaning, template,
topic, concept, kind, identity, prompt, then the outputs, with `~| ` for every new line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import UsageError, why_unread
from judge.evaluation.benchmark import (
    Benchmark,
    Choices,
    Fields,
    MeasuredModel,
    Result,
)
from judge.evaluation.eecc_tables import Variance, tables
from judge.records import Item

CONDITIONS = ("stories", "qa")

NEW_LINE = "~| "
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CELLS_BEFORE_OUTPUTS = 8
# English says "a Ugandan" and "an Uzbek": what begins with the sound of "you".
_CONSONANT_SOUND = re.compile(r"eu|ugand|ukrain|urugu", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a condition asks about: its template, and the topic of each of its concepts."""

    condition: str
    template: str
    topics: Mapping[str, str]
    folder: Path

    def fields(self, topic: str, concept: str, kind: str, identity: str) -> dict[str, Any]:
        """What an item about a concept and an identity holds, but for its draw."""
        # Names are filled in at once: a concept that holds braces is not looked into again.
        texts = {"{vowel}": article(identity), "{concept}": concept, "{identity}": identity}
        pattern = "|".join(map(re.escape, texts))
        return {
            "row": f"{self.condition}/{concept}/{identity}",
            "condition": self.condition,
            "topic": topic,
            "concept": concept,
            "identity": identity,
            "kind": kind,
            "prompt": re.sub(pattern, lambda found: texts[found.group()], self.template),
            "data": str(self.folder),
        }


def article(word: str) -> str:
    """`a` or `an`, by the sound that an English word begins with."""
    if _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[:1].casefold() in tuple("aeiou") else "a"


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """One item for each condition, concept, identity and draw, in this order.

    A concept that is listed twice in one topic is asked about once, as the paper counts (345 topics
    of the 347 lines).

    Raises:
        UsageError: not one source, or it is no folder, or a file of it is not there, is no UTF-8 or
            has a faulty line, or a condition has not just one template that names {concept} and
            {identity}.
    """
    folder = _folder(sources)
    kinds = _groups(folder / "identities.tsv", "kind", "identity")
    settings = [read_setting(folder, condition) for condition in choices.conditions]
    number = 0
    for setting in settings:
        for concept, topic in setting.topics.items():
            for identity, kind in kinds.items():
                fields = setting.fields(topic, concept, kind, identity)
                for draw in range(choices.draws):
                    number += 1
                    yield Item(str(folder), number, _drawn(fields, draw))


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """What the model writes for the item's prompt."""
    task = f"eecc_{fields['condition']}"
    return await model.write(task, {"prompt": fields["prompt"]}, draw=fields["draw"])


def read_setting(folder: Path, condition: str) -> Setting:
    """A condition's template and concepts. Raises UsageError as `items`."""
    path = folder / condition / "templates.tsv"
    lines = list(_lines(path))
    if len(lines) != 1:
        raise UsageError(f"{path}: {len(lines)} templates, eecc asks by exactly one")
    template = lines[0][1][-1].strip()
    for name in ("{concept}", "{identity}"):
        if name not in template:
            raise UsageError(f"{path}:1: the template does not name {name}")
    topics = _groups(folder / condition / "concepts.tsv", "topic", "concept")
    return Setting(condition, template, topics, folder)


def read_outputs(outputs: str, sources: Sequence[str]) -> tuple[list[Result], list[str]]:
    """The outputs of a file in the released form, and its lines that cannot be read.

    The template tells which condition a line is of; topics are the folder's where it knows the
    concept, else the line's own. An empty output got no reply (`error`). Lines about the same
    concept and identity go on with further draws. Cells that are quoted as CSV quotes them are
    unquoted, each by itself.

    Args:
        outputs: the file.
        sources: the released folder, for templates, topics and cultural values.

    Raises:
        UsageError: a file is not there or is no UTF-8, or no line of `outputs` can be read.
    """
    path, folder = Path(outputs), _folder(sources)
    there = [condition for condition in CONDITIONS if (folder / condition).is_dir()]
    settings = {one.template: one for one in (read_setting(folder, name) for name in there)}
    results: list[Result] = []
    faults: list[str] = []
    draws: dict[str, int] = defaultdict(int)
    for number, line in _lines(path):
        cells = [_unquoted(cell) for cell in line]
        if cells[2:7] == ["template", "topic", "concept", "granularity", "identity"]:
            continue
        if problem := _fault(cells, settings):
            faults.append(f"{path}:{number}: {problem}")
            continue
        template, topic, concept, kind, identity = (cell.strip() for cell in cells[2:7])
        setting = settings[template]
        topic = setting.topics.get(concept, topic)
        fields = setting.fields(topic, concept, kind, identity) | {"prompt": cells[7].strip()}
        for cell in cells[_CELLS_BEFORE_OUTPUTS:]:
            text = cell.replace(NEW_LINE, "\n").strip()
            drawn = _drawn(fields, draws[fields["row"]])
            draws[fields["row"]] += 1
            results.append(Result(drawn, "answered" if text else "error", text or None))
    if not results:
        first = f": {faults[0]}" if faults else ""
        raise UsageError(f"{path}: no line of it can be read as outputs{first}")
    return results, faults


def _folder(sources: Sequence[str]) -> Path:
    if len(sources) != 1:
        raise UsageError(f"eecc reads one folder in the released layout, not {len(sources)}")
    folder = Path(sources[0])
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder (eecc reads the folder of identities.tsv)")
    return folder


def _fault(cells: Sequence[str], settings: dict[str, Setting]) -> str | None:
    """What is wrong with a line of outputs."""
    if len(cells) <= _CELLS_BEFORE_OUTPUTS:
        needed = _CELLS_BEFORE_OUTPUTS + 1
        return f"{len(cells)} cells, a line of outputs has {needed} or more"
    if cells[2].strip() not in settings:
        return "the template is none of the folder's"
    for place, name in ((4, "concept"), (5, "granularity"), (6, "identity")):
        if not cells[place].strip():
            return f"field {name!r} is empty"
    return None


def _drawn(fields: dict[str, Any], draw: int) -> dict[str, Any]:
    return {"id": f"{fields['row']}/{draw}", **fields, "draw": draw}


def _groups(path: Path, group: str, name: str) -> dict[str, str]:
    """The lines of two cells, a group and a name: each name with its group."""
    found: dict[str, str] = {}
    for number, line in _lines(path):
        cells = [cell.strip() for cell in line]
        if len(cells) != 2 or not all(cells):
            raise UsageError(f"{path}:{number}: not two cells, {group} and {name}")
        if found.setdefault(cells[1], cells[0]) != cells[0]:
            message = f"{name} {cells[1]!r} is of {group} {cells[0]!r} here, and of another before"
            raise UsageError(f"{path}:{number}: {message}")
    return found


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of the lines that are not blank; they end at a line feed and nowhere else.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield number, text.rstrip("\r\n").split("\t")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {why_unread(error)}") from error


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell


benchmark = Benchmark(
    name="eecc",
    title="Extrinsic Evaluation of Cultural Competence",
    source="Bhatt and Diaz 2024, Findings of EMNLP; github.com/shaily99/eecc",
    conditions=CONDITIONS,
    tasks=tuple(f"eecc_{condition}" for condition in CONDITIONS),
    items=items,
    ask=ask,
    tables=tables,
    draws=5,
    temperature=0.3,
    options=Variance,
    outputs=read_outputs,
)
