"""EECC: whether a model's stories and explanations vary with the nationality in the prompt.

Bhatt and Diaz 2024, "Extrinsic Evaluation of Cultural Competence in Large Language Models". The
model writes for every concept and every nationality, five times each, at temperature 0.3. No output
is right or wrong: the outputs are compared with one another and with surveys of values
(`eecc_tables`).

The released folder holds `identities.tsv` (kind, identity), and for each condition a folder with
`concepts.tsv` (topic, concept) and `templates.tsv` (two unused cells, the template); none has a
header. A user's own folder may have several templates, and other files of values
(`eecc_tables.measures`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from judge.errors import UsageError, why_unread
from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import PAPER, Benchmark, Choices
from judge.papers.eecc_tables import tables
from judge.papers.tasks import Fields, MeasuredAnswer
from judge.records import Record
from judge.verdict import AnswerOutcome

CONDITIONS = ("stories", "qa")

OUTPUTS = 5
"""Outputs for each concept and nationality (section 4.1)."""

# Cells of a released line before its outputs.
_BEFORE_OUTPUTS = 8
# Words that begin with the sound of "you": "a Ugandan", but "an Uzbek".
_CONSONANT_SOUND = re.compile(r"eu|ugand|ukrain|urugu", re.IGNORECASE)


def article(word: str, *, by_letter: bool = False) -> str:
    """`a` or `an`, by the first sound of an English word, or only by its first letter."""
    if not by_letter and _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[:1].casefold() in tuple("aeiou") else "a"


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """One item for each condition, template, concept, identity and draw, in this order.

    A concept that is listed twice in one topic is asked about once, as in the paper's count (345
    topics in 347 lines).

    Raises:
        UsageError: columns are renamed, the source is not one folder, or one of its files is
            missing or faulty.
    """
    if choices.columns:
        raise UsageError("--map: eecc's files have no columns with names")
    folder = _folder(sources)
    for number, prompt in enumerate(_prompts(folder, choices.conditions), 1):
        for draw in range(OUTPUTS):
            fields = {
                "id": f"{prompt.row}/{draw}",
                "row": prompt.row,
                "condition": prompt.condition,
                "topic": prompt.topic,
                "concept": prompt.concept,
                "identity": prompt.identity,
                "kind": prompt.kind,
                **({"template": prompt.number} if prompt.number else {}),
                "prompt": _filled(prompt, by_letter=choices.setting == PAPER),
                "data": str(folder),
                "draw": draw,
            }
            yield Record(str(folder), number, fields)


class _Prompt(NamedTuple):
    """The parts of a prompt; `number` is the template's number from 1, or 0 if there is only
    one."""

    condition: str
    template: str
    number: int
    topic: str
    concept: str
    kind: str
    identity: str

    @property
    def row(self) -> str:
        template = f"{self.number}/" if self.number else ""
        return f"{self.condition}/{template}{self.concept}/{self.identity}"


def _prompts(folder: Path, conditions: Sequence[str]) -> Iterator[_Prompt]:
    """A prompt for each condition, template, concept and identity, in this order."""
    kinds = _groups(folder / "identities.tsv", "kind", "identity")
    for condition in conditions:
        templates = _templates(folder / condition / "templates.tsv")
        topics = _groups(folder / condition / "concepts.tsv", "topic", "concept")
        for number, template in enumerate(templates, 1):
            place = number if len(templates) > 1 else 0
            for (concept, topic), (identity, kind) in product(topics.items(), kinds.items()):
                yield _Prompt(condition, template, place, topic, concept, kind, identity)


def released(
    answers: str, gold: Sequence[str], choices: Choices
) -> Mapping[str, MeasuredAnswer] | None:
    """A model's outputs as the authors release them, by item of the folder.

    The lines, without a header, have cells separated by tabs: two unused ones, template, topic,
    concept, kind, identity, prompt, and the outputs, with `~| ` for a line's end. Outputs beyond
    the five of an item, or to prompts of another folder, are answers to no item.

    Raises:
        UsageError: the file cannot be read, a line has too few cells, or no folder is named.
    """
    rows = _lines(Path(answers))
    first: tuple[int, list[str]] | None = None
    with suppress(UsageError):  # The file is not text.
        first = next(rows, None)
    if first is None or len(first[1]) <= _BEFORE_OUTPUTS:
        return None
    if not gold:
        raise UsageError(f"{answers}: outputs as EECC releases them: name the folder as well")
    prompts = {
        (prompt.template, prompt.topic, prompt.concept, prompt.kind, prompt.identity): prompt.row
        for prompt in _prompts(_folder(gold), CONDITIONS)
    }
    results: dict[str, MeasuredAnswer] = {}
    given: Counter[str] = Counter()
    for number, cells in chain([first], rows):
        if len(cells) <= _BEFORE_OUTPUTS:
            raise UsageError(f"{answers}, line {number}: {len(cells)} cells, and no output")
        cells = [*map(_unquoted, cells)]
        template, topic, concept, kind, identity = (cell.strip() for cell in cells[2:7])
        key = template, topic, concept, kind, identity
        header = topic == "topic" or topic.isdigit()
        # A topic may be a number, too.
        if header and number == first[0] and key not in prompts:
            continue
        row = prompts.get(key, f"line {number}")
        for output in cells[_BEFORE_OUTPUTS:]:
            id = f"{row}/{given[row]}"
            given[row] += 1
            text = output.replace("~| ", "\n").strip()
            outcome = AnswerOutcome.ANSWERED if text else AnswerOutcome.UNREADABLE
            results[id] = MeasuredAnswer({"id": id}, outcome, text or None)
    return results


def _unquoted(cell: str) -> str:
    """A cell without the quotes that pandas writes around it.

    Outputs have no tabs and no line ends, so quotes inside need no further rule.
    """
    inner = cell[1:-1].replace('""', "")
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inner
    return cell[1:-1].replace('""', '"') if quoted else cell


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """The model's text for the item's prompt."""
    task = f"eecc_{fields['condition']}"
    return await model.write(task, {"prompt": fields["prompt"]}, draw=fields["draw"])


def _filled(prompt: _Prompt, *, by_letter: bool) -> str:
    # All names are filled in at once, so that braces in a concept are not replaced.
    vowel = article(prompt.identity, by_letter=by_letter)
    texts = {"{vowel}": vowel, "{concept}": prompt.concept, "{identity}": prompt.identity}
    pattern = "|".join(map(re.escape, texts))
    return re.sub(pattern, lambda match: texts[match.group()], prompt.template)


def _templates(path: Path) -> list[str]:
    templates = [cells[-1].strip() for _, cells in _lines(path)]
    if not templates:
        raise UsageError(f"{path}: no template")
    for number, template in enumerate(templates, 1):
        for name in ("{concept}", "{identity}"):
            if name not in template:
                raise UsageError(f"{path}:{number}: the template does not name {name}")
        if template in templates[: number - 1]:
            raise UsageError(f"{path}:{number}: an earlier line has the same template")
    return templates


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
    """Number and cells of the lines that are not blank. Raises UsageError for an unreadable
    file."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n").split("\t")
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
    without_json=frozenset({None, PAPER}),
    settings={PAPER: "a or an by the letter, as in the scripts; all else is as in the paper"},
    released=released,
)
