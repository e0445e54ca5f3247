"""A rubric file: from YAML to questions, reply model and verdict rule.

One rubric is one question put to a judge (or one task put to a rewriter). Files are read with
every scalar as text, so `yes` and `no` stay words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationError, model_validator

from judge.errors import UsageError, why_unread
from judge.rubricparts import (
    YES_NO,
    Evidence,
    Example,
    Label,
    Readings,
    Section,
    Text,
    VerdictRule,
)
from judge.subject import Kind
from judge.templates import fault
from judge.yamlplaces import Place, complaint, read_mapping

TEXT_FIELDS = (
    "country",
    "background",
    "value",
    "rule_of_thumb",
    "story",
    "explanation",
    "subcategory",
    "location",
    "premise",
    "hypothesis",
    "post",
    "reply",
    "instruction",
    "output_1",
    "output_2",
    "predicted",
)
"""Fields that a rubric may show, in the order in which a prompt shows them."""

ReplyName = Literal[
    "ValuesReflected",
    "SpeechesFound",
    "ValuesExtracted",
    "YesNo",
    "LabelAnswer",
    "LeaksFound",
    "EntailmentAnswer",
    "ChoiceAnswer",
    "Insertions",
    "Rewrites",
    "Regeneration",
]


_ANSWERS: Mapping[str, tuple[str, ...]] = {
    "ValuesReflected": YES_NO,
    "SpeechesFound": YES_NO,
    "ValuesExtracted": ("fully", "partially", "absent"),
    "YesNo": YES_NO,
    "LabelAnswer": get_args(Label),
    "LeaksFound": YES_NO,
    "EntailmentAnswer": ("entailment", "neutral", "contradiction"),
    "ChoiceAnswer": ("1", "2"),
}
"""What each judging reply can answer; the replies themselves are not imported, which takes long."""

_PER_VALUE = frozenset({"ValuesReflected", "SpeechesFound", "ValuesExtracted"})
_ABOUT_ANYTHING = frozenset({"YesNo", "LabelAnswer", "EntailmentAnswer", "ChoiceAnswer"})
_ABOUT_PREDICTIONS = frozenset({"ValuesExtracted"})
_ABOUT_THE_STORY = frozenset(get_args(ReplyName)) - _ABOUT_ANYTHING - _ABOUT_PREDICTIONS


_NAMING = "a name is of small letters, digits and _, and begins with a letter"


class Rubric(Section):
    """One rubric. `fields` are shown before the question, `needs` must be there as well.

    Records with a label in `not_for_labels` are skipped: neither answer would be a fault of theirs.
    `order` names two fields whose order should not matter; where they are shown in each other's
    place, the answers 1 and 2 change places too.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    source: Text
    kinds: tuple[Kind, ...] = ("story", "norm")
    role: Literal["judge", "rewrite"] = "judge"
    about: Literal["record", "values"] = "record"
    fields: Annotated[tuple[str, ...], Field(min_length=1)]
    needs: tuple[str, ...] = ()
    order: tuple[str, str] | None = None
    not_for_labels: tuple[Label, ...] = ()
    reply: ReplyName
    verdict: VerdictRule | None = None
    evidence: Evidence | None = None
    readings: Readings
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _coherent(self) -> Rubric:
        for name in self.fields:
            if name not in TEXT_FIELDS:
                raise ValueError(f"fields: {name!r} is not one of {', '.join(TEXT_FIELDS)}")
        for name in self.needs:
            if name not in (*TEXT_FIELDS, "values", "label"):
                raise ValueError(f"needs: {name!r} is no field of a record that a rubric can need")
        if (self.reply in _ANSWERS) != (self.role == "judge"):
            raise ValueError(f"reply: {self.reply} does not suit a rubric with role {self.role}")
        if self.reply in _ABOUT_THE_STORY and "story" not in self.fields:
            raise ValueError(f"fields: {self.reply} is held against the story, which must be shown")
        if self.reply in _ABOUT_PREDICTIONS and "predicted" not in self.fields:
            raise ValueError(f"fields: {self.reply} names predicted values, which must be shown")
        if self.role == "judge" and (self.reply in _PER_VALUE) != (self.about == "values"):
            raise ValueError(f"reply: {self.reply} does not suit a rubric about: {self.about}")
        if self.role == "judge" and self.verdict is None:
            raise ValueError("verdict: a judging rubric says which answer passes")
        if self.role == "rewrite" and (self.verdict or self.readings.probability):
            raise ValueError("a rewriting rubric has neither a verdict nor a probability reading")
        if self.evidence and self.evidence.field not in self.fields:
            raise ValueError(f"evidence: {self.evidence.field!r} is not among the fields")
        if self.order and not set(self.order) <= set(self.fields):
            raise ValueError(f"order: {', '.join(self.order)} are not both among the fields")
        asked = self.readings.probability.questions if self.readings.probability else ()
        if self.order is None and any(question.swapped for question in asked):
            raise ValueError("readings: a swapped question needs an order to swap")
        self._only_known_answers()
        return self

    def _only_known_answers(self) -> None:
        """A verdict that no answer can bring would fail every record without a word."""
        if self.verdict is None:
            return
        known, steps = set(_ANSWERS[self.reply]), self.readings.probability
        # Norms have labels of their own; of other records the label is one of the answers.
        own = self.verdict.pass_equals and "norm" not in self.kinds
        labels = self.answers if own else self._labels
        passing = {self.verdict.expected(label) for label in labels}
        named = {"verdict": passing, "evidence": self.evidence.answers if self.evidence else set()}
        named["readings"] = steps.answers if steps else set()
        for key, answers in named.items():
            if unknown := sorted(answers - known):
                raise ValueError(f"{key}: {self.reply} never answers {unknown[0]!r}")
        if steps and (unreachable := sorted(passing - steps.answers)):
            raise ValueError(f"readings: no step of the list answers {unreachable[0]!r}")

    @property
    def answers(self) -> tuple[str, ...]:
        """What a judging rubric can be answered with."""
        return _ANSWERS[self.reply]

    @property
    def ordinal(self) -> bool:
        """Whether the answers stand in an order, so that some misses are farther than others."""
        return self.reply in ("EntailmentAnswer", "ValuesExtracted")

    @property
    def graded(self) -> bool:
        """Whether votes are counted by their answers, best first, and not as pass or fail."""
        return self.reply == "ValuesExtracted"

    def shown_as(self, name: str, swapped: bool) -> str:
        """The field whose text stands where `name` is shown."""
        if self.order is None or not swapped or name not in self.order:
            return name
        first, second = self.order
        return second if name == first else first

    @property
    def _labels(self) -> list[str]:
        return [label for label in get_args(Label) if label not in self.not_for_labels]

    @property
    def required(self) -> tuple[str, ...]:
        """Every field that a record must have for this rubric."""
        label = ("label",) if self.verdict and self.verdict.pass_equals else ()
        values = ("values",) if self.about == "values" else ()
        return tuple(dict.fromkeys((*self.fields, *self.needs, *label, *values)))

    @cached_property
    def digest(self) -> str:
        """12 hex digits over everything that can change an answer, the shared system text too."""
        body = self.model_dump_json(by_alias=True, exclude={"title", "source"})
        return hashlib.blake2b(f"{system_text()}\n{body}".encode(), digest_size=6).hexdigest()


# ---------------------------------------------------------------- texts


@lru_cache(maxsize=1)
def system_text() -> str:
    """The short system message that all rubrics share (rubrics/_system.txt)."""
    return (resources.files("judge.rubrics") / "_system.txt").read_text("utf-8").strip()


# ---------------------------------------------------------------- loading


def load(path: Path) -> Rubric:
    """Read one rubric file.

    Raises:
        UsageError: unreadable file, bad YAML, an unknown or wrong key; with file, line and key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {why_unread(error)}") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Rubric:
    """Read a rubric from YAML text; `name` stands for the file in messages. See `load`."""
    data, lines = read_mapping(text, name)
    try:
        rubric = Rubric.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(str(part) for part in first["loc"])
        misnamed = where == ("name",) and first["type"] == "string_pattern_mismatch"
        told = _NAMING if misnamed else first["msg"]
        raise UsageError(complaint(name, where, lines, told)) from error
    _check_templates(rubric, name, lines)
    return rubric


def _check_templates(rubric: Rubric, name: str, lines: Mapping[Place, int]) -> None:
    """Every question must render with what it will be given, whatever the label."""
    questions: list[tuple[Place, str, frozenset[str]]] = [
        (
            ("readings", "structured", "question"),
            rubric.readings.structured.question,
            _variables_of(rubric, step=False),
        )
    ]
    if rubric.readings.probability:
        reading = rubric.readings.probability
        parts = {"steps": [one.question for one in reading.steps]}
        parts["also"] = [one.question for one in reading.also]
        questions += [
            (
                ("readings", "probability", key, str(number), "question"),
                asked,
                _variables_of(rubric, step=True),
            )
            for key, listed in parts.items()
            for number, asked in enumerate(listed)
        ]
    for where, question, allowed in questions:
        labels = [{"label": label} for label in get_args(Label)]
        if problem := fault(question, allowed, labels):
            raise UsageError(complaint(name, where, lines, problem))


def _variables_of(rubric: Rubric, *, step: bool) -> frozenset[str]:
    """What a question of this rubric may show beside the fields that stand before it."""
    known = {"label", *(name for name in rubric.needs if name in TEXT_FIELDS)}
    if rubric.role == "rewrite":
        known |= {"values", "passages", "findings"}
    elif rubric.about == "values":
        known |= {"value", "number"} if step else {"values"}
    return frozenset(known)


@lru_cache(maxsize=1)
def builtin() -> Mapping[str, Rubric]:
    """The rubrics that come with the package, by name."""
    folder = resources.files("judge.rubrics")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".yaml"))
    loaded = [parse((folder / file).read_text("utf-8"), f"rubrics/{file}") for file in files]
    return {rubric.name: rubric for rubric in loaded}


def collect(sources: Sequence[str]) -> tuple[dict[str, Rubric], tuple[str, ...]]:
    """The built-in rubrics with the user's on top, and the names that the user added.

    Args:
        sources: built-in names, rubric files, or folders of them. One that bears a built-in name
            replaces that rubric; any other is an additional check.

    Raises:
        UsageError: see `load`; or a rubric that cannot do the work of the one that it replaces.
    """
    rubrics = dict(builtin())
    added: list[str] = []
    for source in sources:
        for rubric in _named(source, rubrics):
            if problem := _misfit(rubric, builtin().get(rubric.name)):
                raise UsageError(f"{source}: {rubric.name}: {problem}")
            added.append(rubric.name)
            rubrics[rubric.name] = rubric
    return rubrics, tuple(dict.fromkeys(added))


def _misfit(rubric: Rubric, ours: Rubric | None) -> str | None:
    if ours is None:
        if rubric.role == "rewrite":
            names = ", ".join(name for name, r in builtin().items() if r.role == "rewrite")
            return f"no workflow uses this rewriting rubric; those that can be replaced are {names}"
        return None
    if (rubric.role, rubric.about) != (ours.role, ours.about):
        return f"it replaces a built-in rubric with role {ours.role} about {ours.about}"
    if (rubric.role == "rewrite" or ours.graded) and rubric.reply != ours.reply:
        return f"it replaces a built-in rubric whose reply is {ours.reply}"
    return None


def named(source: str) -> Rubric:
    """One rubric by its built-in name or its file.

    Raises:
        UsageError: neither, or a folder with several.
    """
    found = _named(source, builtin())
    if len(found) != 1:
        raise UsageError(f"{source}: holds {len(found)} rubrics; name one file")
    return found[0]


def _named(source: str, rubrics: Mapping[str, Rubric]) -> list[Rubric]:
    path = Path(source)
    if path.is_dir():
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not files:
            raise UsageError(f"{source}: no .yaml file in this folder")
        return [load(file) for file in files]
    if source in rubrics and not path.exists():
        return [rubrics[source]]
    if not path.exists():
        raise UsageError(
            f"{source}: neither a file, a folder nor a built-in rubric "
            f"({', '.join(sorted(rubrics))})"
        )
    return [load(path)]


def as_text(rubric: Rubric) -> str:
    """The rubric as JSON, for `judge rubrics show --json`."""
    return json.dumps(rubric.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2)
