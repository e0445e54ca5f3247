"""A rubric file: from YAML to messages, reply model and verdict rule.

One rubric is one question put to a judge (or one task put to a rewriter). Files are read with
every scalar as text, so `yes` and `no` stay words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from judge.backends.base import Message
from judge.errors import UsageError
from judge.subject import Kind, Subject

TEXT_FIELDS = (
    "country",
    "background",
    "value",
    "rule_of_thumb",
    "story",
    "explanation",
    "subcategory",
    "location",
)
"""Fields that a rubric may show, in the order in which a prompt shows them."""

_VARIABLES = {"values", "value", "label", "passages", "findings", "number"}
_ENVIRONMENT = SandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
)

Text = Annotated[str, Field(min_length=1)]
ReplyName = Literal[
    "ValuesReflected",
    "SpeechesFound",
    "YesNo",
    "LabelAnswer",
    "LeaksFound",
    "Insertions",
    "Rewrites",
    "Regeneration",
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Structured(_Section):
    """A question whose answer is a typed reply."""

    question: Text
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024


class Step(_Section):
    """One question answered by the first token; `yes`/`no` name the answer that it settles.

    Where one of them is left out, that outcome leaves the matter to the next step. `threshold` is
    the least P(yes) (0 to 1) that counts as yes.
    """

    question: Text
    yes: str | None = None
    no: str | None = None
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Probability(_Section):
    """A short decision list of yes/no questions read from log-probabilities."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=4)]

    @model_validator(mode="after")
    def _settles(self) -> Probability:
        for number, step in enumerate(self.steps, 1):
            last = number == len(self.steps)
            if last and not (step.yes and step.no):
                raise ValueError(f"step {number} is the last one and must settle both yes and no")
            if not (step.yes or step.no):
                raise ValueError(f"step {number} settles nothing; name the answer of yes or of no")
        return self


class Readings(_Section):
    structured: Structured
    probability: Probability | None = None


class VerdictRule(_Section):
    """Which answer passes: `pass`, another one for records with a certain label, or the label."""

    passes: str | None = Field(default=None, alias="pass")
    by_label: Mapping[str, str] = {}
    pass_equals: Literal["label"] | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> VerdictRule:
        if (self.passes is None) == (self.pass_equals is None):
            raise ValueError("name either the answer that passes (pass) or pass_equals: label")
        return self

    def expected(self, label: str | None) -> str:
        """The answer that passes for a record with this label."""
        if self.pass_equals:
            assert label is not None
            return label
        assert self.passes is not None
        return self.by_label.get(label or "", self.passes)


class Evidence(_Section):
    """The field that a reply must quote, and the answers that need the quote."""

    field: str
    answers: frozenset[str]


class Example(_Section):
    """A worked example of our own making: material, the value asked about if any, and the reply."""

    text: Text
    reply: Text


class Rubric(_Section):
    """One rubric. `fields` are shown before the question, `needs` must be there as well.

    Records with a label in `not_for_labels` are skipped: neither answer would be a fault of theirs.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    source: Text
    kinds: tuple[Kind, ...] = ("story", "norm")
    role: Literal["judge", "rewrite"] = "judge"
    about: Literal["record", "values"] = "record"
    fields: Annotated[tuple[str, ...], Field(min_length=1)]
    needs: tuple[str, ...] = ()
    not_for_labels: tuple[str, ...] = ()
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
        rewriting = self.reply in ("Insertions", "Rewrites", "Regeneration")
        if rewriting != (self.role == "rewrite"):
            raise ValueError(f"reply: {self.reply} does not suit a rubric with role {self.role}")
        if self.role == "judge" and self.verdict is None:
            raise ValueError("verdict: a judging rubric says which answer passes")
        if self.role == "rewrite" and (self.verdict or self.readings.probability):
            raise ValueError("a rewriting rubric has neither a verdict nor a probability reading")
        if self.evidence and self.evidence.field not in self.fields:
            raise ValueError(f"evidence: {self.evidence.field!r} is not among the fields")
        return self

    @property
    def required(self) -> tuple[str, ...]:
        """Every field that a record must have for this rubric."""
        label = ("label",) if self.verdict and self.verdict.pass_equals else ()
        return tuple(dict.fromkeys((*self.fields, *self.needs, *label)))

    @cached_property
    def digest(self) -> str:
        """12 hex digits over everything that can change an answer, the shared system text too."""
        body = self.model_dump_json(by_alias=True, exclude={"title", "source"})
        return hashlib.blake2b(f"{system_text()}\n{body}".encode(), digest_size=6).hexdigest()


# ---------------------------------------------------------------- messages


@lru_cache(maxsize=1)
def system_text() -> str:
    """The short system message that all rubrics share (rubrics/_system.txt)."""
    return (resources.files("judge.rubrics") / "_system.txt").read_text("utf-8").strip()


def fence(name: str, text: str, mark: str) -> str:
    """Record text between two marked lines that the text itself cannot hold."""
    return f"[{name.replace('_', ' ')} {mark}]\n{text}\n[end {mark}]"


def messages(
    rubric: Rubric,
    subject: Subject,
    *,
    step: int | None = None,
    numbers: Sequence[int] = (),
    passages: Sequence[str] = (),
    findings: Sequence[str] = (),
) -> list[Message]:
    """The chat messages for one ask: system, then record first and question last.

    Args:
        step: which step of the probability reading; None for the structured reading.
        numbers: the values asked about (from 1); with a step, exactly one.
        passages: the numbered passages that a rewriter is to replace.
        findings: what was found wrong, for a rewriter.
    """
    shown = [
        fence(name, subject.texts[name], subject.mark)
        for name in TEXT_FIELDS
        if name in rubric.fields
    ]
    readings = rubric.readings
    if step is None:
        question = readings.structured.question
    else:
        assert readings.probability is not None
        question = readings.probability.steps[step].question
    asked = _template(question).render(_variables(rubric, subject, numbers, passages, findings))
    examples = _examples(rubric) if step is None else ""
    content = "\n\n".join(part for part in (*shown, examples, asked.strip()) if part)
    return [{"role": "system", "content": system_text()}, {"role": "user", "content": content}]


def _examples(rubric: Rubric) -> str:
    return "\n\n".join(
        f"Example {number}:\n{example.text.strip()}\nReply: {example.reply.strip()}"
        for number, example in enumerate(rubric.examples, 1)
    )


def _variables(
    rubric: Rubric,
    subject: Subject,
    numbers: Sequence[int],
    passages: Sequence[str],
    findings: Sequence[str],
) -> dict[str, str]:
    def listed(name: str, entries: Sequence[str]) -> str:
        lines = "\n".join(f"{n}. {entry}" for n, entry in enumerate(entries, 1))
        return fence(name, lines, subject.mark)

    values = "\n".join(f"{n}. {subject.value(n)}" for n in numbers)
    known = {
        "values": fence("values", values, subject.mark),
        "label": subject.label or "",
        "passages": listed("passages", passages),
        "findings": listed("findings", findings),
        "number": str(numbers[0]) if numbers else "",
        **{n: fence(n, subject.texts[n], subject.mark) for n in rubric.needs if n in subject.texts},
    }
    if len(numbers) == 1:
        known["value"] = fence("value", subject.value(numbers[0]), subject.mark)
    return known


@lru_cache(maxsize=512)
def _template(source: str) -> Template:
    return _ENVIRONMENT.from_string(source)


# ---------------------------------------------------------------- loading


def load(path: Path) -> Rubric:
    """Read one rubric file.

    Raises:
        UsageError: unreadable file, bad YAML, an unknown or wrong key; with file, line and key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Rubric:
    """Read a rubric from YAML text; `name` stands for the file in messages. See `load`."""
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{name}:{line}: not valid YAML: {error.problem}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{name}:1: a rubric is a mapping of keys, not {type(data).__name__}")
    lines = dict(_lines(node))
    try:
        rubric = Rubric.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(str(part) for part in first["loc"])
        raise UsageError(_complaint(name, where, lines, first["msg"])) from error
    _check_templates(rubric, name, lines)
    return rubric


def _lines(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), key.start_mark.line + 1
            for place, line in _lines(value, (*path, str(key.value))):
                if place != (*path, str(key.value)):
                    yield place, line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*path, str(number)))


def _complaint(
    name: str, where: tuple[str, ...], lines: Mapping[tuple[str, ...], int], problem: str
) -> str:
    known = where
    while known and known not in lines:
        known = known[:-1]
    if not where and (key := problem.removeprefix("Value error, ").split(":")[0]):
        known = (key,) if (key,) in lines else known
    place = ".".join(where) or "rubric"
    return f"{name}:{lines.get(known, 1)}: {place}: {problem.removeprefix('Value error, ')}"


def _check_templates(rubric: Rubric, name: str, lines: Mapping[tuple[str, ...], int]) -> None:
    places: list[tuple[tuple[str, ...], str]] = [
        (("readings", "structured", "question"), rubric.readings.structured.question)
    ]
    if rubric.readings.probability:
        places += [
            (("readings", "probability", "steps", str(number), "question"), step.question)
            for number, step in enumerate(rubric.readings.probability.steps)
        ]
    allowed = _VARIABLES | set(rubric.needs)
    for where, question in places:
        try:
            used = meta.find_undeclared_variables(_ENVIRONMENT.parse(question))
        except TemplateSyntaxError as error:
            raise UsageError(_complaint(name, where, lines, f"template: {error}")) from error
        if unknown := sorted(used - allowed):
            problem = f"unknown variable {unknown[0]!r}; known are {', '.join(sorted(allowed))}"
            raise UsageError(_complaint(name, where, lines, problem))


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
    """
    rubrics = dict(builtin())
    added: list[str] = []
    for source in sources:
        for rubric in _named(source, rubrics):
            added.append(rubric.name)
            rubrics[rubric.name] = rubric
    return rubrics, tuple(dict.fromkeys(added))


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
