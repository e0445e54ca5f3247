"""A rubric file: from YAML to questions, reply model and verdict rule.

One rubric is one question put to a judge (or one task put to a rewriter). Files are read with
every scalar as text, so `yes` and `no` stay words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

from judge.errors import UsageError, why_unread
from judge.subject import Kind
from judge.templates import fault
from judge.yamlfile import Place, read_mapping

TEXT_FIELDS = (
    *("country", "background", "value", "rule_of_thumb", "story", "explanation", "subcategory"),
    *("location", "premise", "hypothesis", "post", "reply", "instruction", "output_1", "output_2"),
    "predicted",
)
"""The known kinds' fields, in the order in which a prompt shows them; a record's others follow."""

Text = Annotated[str, Field(min_length=1)]
Label = Literal["yes", "no", "neutral"]
Word = Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
YES_NO = ("yes", "no")


class _Reply(NamedTuple):
    """What a reply model answers (a rewriter's: nothing); the models take long to import.

    `shown` is the field that its quotes or numbers are held against.
    """

    answers: tuple[str, ...] = ()
    per_value: bool = False
    shown: str | None = "story"


_REPLIES: Mapping[str, _Reply] = {
    "ValuesReflected": _Reply(YES_NO, per_value=True),
    "SpeechesFound": _Reply(YES_NO, per_value=True),
    "ValuesExtracted": _Reply(("fully", "partially", "absent"), per_value=True, shown="predicted"),
    "YesNo": _Reply(YES_NO, shown=None),
    "LabelAnswer": _Reply(get_args(Label), shown=None),
    "LeaksFound": _Reply(YES_NO),
    "EntailmentAnswer": _Reply(("entailment", "neutral", "contradiction"), shown=None),
    "ChoiceAnswer": _Reply(("1", "2"), shown=None),
    "Insertions": _Reply(),
    "Rewrites": _Reply(),
    "Regeneration": _Reply(),
}


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Structured(Section):
    """A question whose answer is a typed reply."""

    question: Text
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024


class Step(Section):
    """One question answered by the first token; `yes`/`no` name the answer that it settles, else
    the next step does. `threshold` is the least P(yes) (0 to 1) that counts as yes."""

    question: Text
    yes: str | None = None
    no: str | None = None
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Question(Section):
    """A further question answered by the first token, one of `words`, for profiles to read.

    With `swapped` the two fields of the rubric's `order` are shown in each other's place.
    """

    question: Text
    words: Annotated[tuple[Word, ...], Field(min_length=2, max_length=6)] = YES_NO
    swapped: bool = False


class Logprobs(Section):
    """A short decision list of yes/no questions read from log-probabilities.

    A profile may go by any of its questions and of those in `also`, weighed as calibration found
    best. Questions are numbered through, the steps first.
    """

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=4)]
    also: Annotated[tuple[Question, ...], Field(max_length=16)] = ()

    @model_validator(mode="after")
    def _settles(self) -> Logprobs:
        for number, step in enumerate(self.steps, 1):
            last, settled = number == len(self.steps), bool(step.yes) + bool(step.no)
            if settled != 1 + last:
                wanted = "both yes and no" if last else "one of yes and no, the next step the rest"
                raise ValueError(f"step {number} must settle {wanted}")
        return self

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question, the steps first."""
        return (*(Question(question=step.question) for step in self.steps), *self.also)

    @property
    def answers(self) -> frozenset[str]:
        """Every answer that some step settles."""
        return frozenset(answer for s in self.steps for answer in (s.yes, s.no) if answer)


class Methods(Section):
    structured: Structured
    logprobs: Logprobs | None = None


class VerdictRule(Section):
    """Which answer passes: `pass`, another one for records with a certain label, or the label."""

    passes: str | None = Field(default=None, alias="pass")
    by_label: Mapping[Label, str] = {}
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
        return next((answer for key, answer in self.by_label.items() if key == label), self.passes)


class Evidence(Section):
    """The field that a reply must quote, and the answers that need the quote."""

    field: str
    answers: frozenset[str]

    @field_serializer("answers")
    def _sorted(self, answers: frozenset[str]) -> list[str]:
        """In one order, because that of a set differs from process to process."""
        return sorted(answers)


class Example(Section):
    """A worked example of our own making: material, the value asked about if any, and the reply."""

    text: Text
    reply: Text


class Rubric(Section):
    """One rubric. `fields` are shown before the question (none named: every text of the record),
    `needs` must be there as well; both name fields of any record, `a.b` the field b of object a.

    Records with a label in `not_for_labels` are skipped. `order` names two fields whose order
    should not matter; shown in each other's place, the answers 1 and 2 change places too.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    source: Text
    kinds: tuple[Kind, ...] = ("story", "norm")
    role: Literal["judge", "rewrite"] = "judge"
    about: Literal["record", "values"] = "record"
    fields: tuple[Text, ...] = ()
    needs: tuple[str, ...] = ()
    order: tuple[str, str] | None = None
    not_for_labels: tuple[Label, ...] = ()
    reply: str
    verdict: VerdictRule | None = None
    evidence: Evidence | None = None
    methods: Methods
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _coherent(self) -> Rubric:
        if self.reply not in _REPLIES:
            raise ValueError(f"reply: {self.reply!r} is not one of {', '.join(_REPLIES)}")
        if problems := [*self._misfits(), *self._unknown_answers()]:
            raise ValueError("\n".join(problems))
        return self

    def _misfits(self) -> Iterator[str]:
        """What does not go together, each as `key: problem`."""
        reply, judging = _REPLIES[self.reply], self.role == "judge"
        probability = self.methods.logprobs
        if bool(reply.answers) != judging:
            yield f"reply: {self.reply} does not suit a rubric with role {self.role}"
        elif judging and reply.per_value != (self.about == "values"):
            yield f"reply: {self.reply} does not suit a rubric about: {self.about}"
        if reply.shown and reply.shown not in self.fields:
            yield f"fields: {self.reply} is held against the field {reply.shown}, not shown here"
        if judging and self.verdict is None:
            yield "verdict: a judging rubric says which answer passes"
        if not judging and (self.verdict or probability):
            yield "a rewriting rubric has neither a verdict nor a logprobs method"
        if self.evidence and self.fields and self.evidence.field not in self.fields:
            yield f"evidence: {self.evidence.field!r} is not among the fields"
        if self.order and not set(self.order) <= set(self.fields):
            yield f"order: {', '.join(self.order)} are not both among the fields"
        if self.order is None and probability and any(q.swapped for q in probability.questions):
            yield "methods: a swapped question needs an order to swap"

    def _unknown_answers(self) -> Iterator[str]:
        """A verdict that no answer can bring would fail every record without a word."""
        if self.verdict is None:
            return
        steps = self.methods.logprobs
        labels = [label for label in get_args(Label) if label not in self.not_for_labels]
        # Norms have labels of their own; of other records the label is one of the answers.
        own = self.verdict.pass_equals and "norm" not in self.kinds
        passing = {self.verdict.expected(label) for label in (self.answers if own else labels)}
        named = {
            "verdict": passing,
            "evidence": self.evidence.answers if self.evidence else frozenset(),
            "methods": steps.answers if steps else frozenset(),
        }
        for key, answers in named.items():
            for unknown in sorted(answers - set(self.answers)):
                yield f"{key}: {self.reply} never answers {unknown!r}"
        for unreachable in sorted(passing - steps.answers) if steps else ():
            yield f"methods: no step of the list answers {unreachable!r}"

    @classmethod
    def from_text(cls, text: str) -> Rubric:
        """The rubric of a YAML text; raises UsageError as `load`."""
        return parse(text, "rubric")

    @classmethod
    def from_dict(cls, rubric: Mapping[str, Any]) -> Rubric:
        """The rubric of the keys that its file would have; raises UsageError as `load`."""
        given = {key: one for key, one in rubric.items() if one is not None}
        return parse(json.dumps(given, default=list), "rubric")

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Rubric:
        """The rubric of a YAML file; raises UsageError as `load`."""
        return load(Path(path))

    @property
    def answers(self) -> tuple[str, ...]:
        """What a judging rubric can be answered with."""
        return _REPLIES[self.reply].answers

    @property
    def graded(self) -> bool:
        """Whether votes are counted by their answers, best first, and not as pass or fail."""
        return self.reply == "ValuesExtracted"

    def shown(self, texts: Mapping[str, str]) -> tuple[str, ...]:
        """The fields to show of a record with these texts, in the order in which to show them."""
        named = self.fields or tuple(texts)
        known = tuple(name for name in TEXT_FIELDS if name in named)
        return known + tuple(name for name in named if name not in TEXT_FIELDS)

    def shown_as(self, name: str, swapped: bool) -> str:
        """The field whose text stands where `name` is shown."""
        if self.order is None or not swapped or name not in self.order:
            return name
        first, second = self.order
        return second if name == first else first

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


# ---------------------------------------------------------------- loading


@lru_cache(maxsize=1)
def system_text() -> str:
    """The short system message that all rubrics share (rubrics/_system.txt)."""
    return (resources.files("judge.rubrics") / "_system.txt").read_text("utf-8").strip()


def load(path: Path) -> Rubric:
    """Read one rubric file.

    Raises UsageError for an unreadable file, bad YAML, an unknown or wrong key; with file, line and
    key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {why_unread(error)}") from error
    return parse(text, str(path))


_KEYS = ("pass", *(n for part in Section.__subclasses__() for n in part.model_fields))


def parse(text: str, name: str) -> Rubric:
    """Read a rubric from YAML text; `name` stands for the file in messages. See `load`."""
    source = read_mapping(text, name)
    if "question" in source.data and "methods" not in source.data:
        source = replace(source, data=_long_form(source.data))
    rubric = source.validated(Rubric, _KEYS)
    if problems := list(_template_faults(rubric)):
        raise source.refused(problems)
    return rubric


def _long_form(short: Mapping[str, Any]) -> dict[str, Any]:
    """A rubric with a `question` alone: yes passes, whatever the method."""
    given = dict(short)
    question = str(given.pop("question")).strip()
    step = {"question": f"{question} Answer Yes or No.", "yes": "yes", "no": "no"}
    told = "Quote the words that decide it exactly, or null; give a short reason; answer yes or no."
    return {
        "title": question or "none",
        "source": "the user's own",
        "reply": "YesNo",
        "verdict": {"pass": "yes"},
        "methods": {
            "structured": {"question": question and f"{question}\n\n{told}"},
            "logprobs": {"steps": [step]},
        },
        **given,
    }


def asked_once(question: str, fields: Sequence[str]) -> Rubric:
    """The rubric of a question on the command line: yes passes.

    Raises UsageError for a question that is no template, see `load`.
    """
    if not question.strip():
        raise UsageError("--ask: there is no question")
    short = {"name": "question", "question": question, "fields": fields}
    rubric = Rubric.model_validate(_long_form(short))
    for _, problem in _template_faults(rubric):
        raise UsageError(f"--ask: {problem}")
    return rubric


def _template_faults(rubric: Rubric) -> Iterator[tuple[Place, str]]:
    """Every question must render with what it will be given, whatever the label."""
    known = {"label", *(name for name in rubric.needs if name != "values")}
    per_value, method = rubric.about == "values", rubric.methods.logprobs
    structured = known | ({"values"} if per_value else set())
    if rubric.role == "rewrite":
        structured = known | {"values", "passages", "findings"}
    by_token = known | ({"value", "number"} if per_value else set())
    asked: list[tuple[Place, str, set[str]]]
    asked = [(("structured",), rubric.methods.structured.question, structured)]
    several: Mapping[str, Sequence[Step | Question]] = {}
    if method:
        several = {"steps": method.steps, "also": method.also}
    for part, found in several.items():
        asked += [
            (("logprobs", part, str(n)), one.question, by_token) for n, one in enumerate(found)
        ]
    labels = [{"label": label} for label in get_args(Label)]
    for place, question, allowed in asked:
        if problem := fault(question, allowed, labels):
            yield ("methods", *place, "question"), problem


@lru_cache(maxsize=1)
def builtin() -> Mapping[str, Rubric]:
    """The rubrics that come with the package, by name."""
    folder = resources.files("judge.rubrics")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".yaml"))
    loaded = [parse((folder / file).read_text("utf-8"), f"rubrics/{file}") for file in files]
    return {rubric.name: rubric for rubric in loaded}


def collect(sources: Sequence[str | Rubric]) -> tuple[dict[str, Rubric], tuple[str, ...]]:
    """The built-in rubrics with the user's on top, and the names that the user added.

    `sources` are rubrics, built-in names, rubric files, or folders of them. One that bears a
    built-in name replaces that rubric; any other is an additional check.

    Raises UsageError, see `load`; or for a rubric that cannot do the work of the one it replaces.
    """
    rubrics = dict(builtin())
    added: list[str] = []
    for source in sources:
        for rubric in [source] if isinstance(source, Rubric) else _named(source):
            if problem := _misfit(rubric, builtin().get(rubric.name)):
                place = "rubric" if isinstance(source, Rubric) else source
                raise UsageError(f"{place}: {rubric.name}: {problem}")
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


def _named(source: str) -> list[Rubric]:
    path = Path(source)
    if path.is_dir():
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not files:
            raise UsageError(f"{source}: no .yaml file in this folder")
        return [load(file) for file in files]
    if path.exists():
        return [load(path)]
    if source not in builtin():
        names = ", ".join(builtin())
        raise UsageError(f"{source}: neither a file, a folder nor a built-in rubric ({names})")
    return [builtin()[source]]
