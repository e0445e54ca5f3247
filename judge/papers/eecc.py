"""EECC: whether a model's stories and explanations change with the nationality it is told of.

Bhatt and Diaz 2024, "Extrinsic Evaluation of Cultural Competence in Large Language Models". The
model writes for every concept and every nationality, five times each, at temperature 0.3. Nothing
is right or wrong: the outputs are compared with one another and with surveys of values
(`eecc_tables`).

The released folder holds `identities.tsv` (kind, identity), and for each condition a folder with
`concepts.tsv` (topic, concept) and `templates.tsv` (two cells of no meaning, the template); none
has a header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from judge.errors import UsageError, why_unread
from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import Benchmark, Choices
from judge.papers.eecc_tables import tables
from judge.papers.tasks import Fields
from judge.records import Record

CONDITIONS = ("stories", "qa")

OUTPUTS = 5
"""Outputs for each concept and nationality (section 4.1)."""

# English says "a Ugandan" and "an Uzbek": what begins with the sound of "you".
_CONSONANT_SOUND = re.compile(r"eu|ugand|ukrain|urugu", re.IGNORECASE)


def article(word: str) -> str:
    """`a` or `an`, by the sound that an English word begins with."""
    if _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[:1].casefold() in tuple("aeiou") else "a"


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """One item for each condition, concept, identity and draw, in this order.

    A concept that is listed twice in one topic is asked about once, as the paper counts (345 topics
    of the 347 lines).

    Raises:
        UsageError: columns are renamed, the source is not one folder, or one of its files is
            missing or faulty.
    """
    if choices.columns:
        raise UsageError("--map: eecc's files have no columns with names")
    folder = _folder(sources)
    kinds = _groups(folder / "identities.tsv", "kind", "identity")
    settings = [
        (
            condition,
            _template(folder / condition / "templates.tsv"),
            _groups(folder / condition / "concepts.tsv", "topic", "concept"),
        )
        for condition in choices.conditions
    ]
    number = 0
    for condition, template, topics in settings:
        for (concept, topic), (identity, kind) in product(topics.items(), kinds.items()):
            row = f"{condition}/{concept}/{identity}"
            for draw in range(OUTPUTS):
                number += 1
                fields = {
                    "id": f"{row}/{draw}",
                    "row": row,
                    "condition": condition,
                    "topic": topic,
                    "concept": concept,
                    "identity": identity,
                    "kind": kind,
                    "prompt": _prompt(template, concept, identity),
                    "data": str(folder),
                    "draw": draw,
                }
                yield Record(str(folder), number, fields)


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """What the model writes for the item's prompt."""
    task = f"eecc_{fields['condition']}"
    return await model.write(task, {"prompt": fields["prompt"]}, draw=fields["draw"])


def _prompt(template: str, concept: str, identity: str) -> str:
    # Names are filled in at once: a concept that holds braces is not looked into again.
    texts = {"{vowel}": article(identity), "{concept}": concept, "{identity}": identity}
    pattern = "|".join(map(re.escape, texts))
    return re.sub(pattern, lambda match: texts[match.group()], template)


def _template(path: Path) -> str:
    lines = list(_lines(path))
    if len(lines) != 1:
        raise UsageError(f"{path}: {len(lines)} templates, eecc asks by exactly one")
    template = lines[0][1][-1].strip()
    for name in ("{concept}", "{identity}"):
        if name not in template:
            raise UsageError(f"{path}:1: the template does not name {name}")
    return template


def _folder(sources: Sequence[str]) -> Path:
    if len(sources) != 1:
        raise UsageError(f"eecc reads one folder in the released layout, not {len(sources)}")
    folder = Path(sources[0])
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder (eecc reads the folder of identities.tsv)")
    return folder


def _groups(path: Path, group: str, name: str) -> dict[str, str]:
    """Each name with its group, from lines of two cells: group, name."""
    texts: dict[str, str] = {}
    for number, line in _lines(path):
        cells = [cell.strip() for cell in line]
        if len(cells) != 2 or not all(cells):
            raise UsageError(f"{path}:{number}: not two cells, {group} and {name}")
        if texts.setdefault(cells[1], cells[0]) != cells[0]:
            message = f"{name} {cells[1]!r} is of {group} {cells[0]!r} here, and of another before"
            raise UsageError(f"{path}:{number}: {message}")
    return texts


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of the lines that are not blank. Raises UsageError: unreadable."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            yield from ((reader.line_num, cells) for cells in reader if any(map(str.strip, cells)))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {why_unread(error)}") from error


benchmark = Benchmark(
    name="eecc",
    title="Extrinsic Evaluation of Cultural Competence",
    source="Bhatt and Diaz 2024, Findings of EMNLP; github.com/shaily99/eecc",
    conditions=CONDITIONS,
    tasks=tuple(f"eecc_{condition}" for condition in CONDITIONS),
    items=items,
    ask=ask,
    tables=tables,
    temperature=0.3,
)
