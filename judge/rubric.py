"""A rubric file: from YAML to questions, reply model and verdict rule.

One rubric is one question put to a judge (or one task put to a rewriter). Files are read with
every scalar as text, so `yes` and `no` stay words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from judge.ask import Ask, Asked, AskTogether, typed
from judge.errors import UsageError, why_unread
from judge.questions import (
    MOST_ANSWERS,
    REPLIES,
    Bound,
    Control,
    Evidence,
    Example,
    Label,
    Methods,
    Question,
    Section,
    Step,
    Text,
    VerdictRule,
    scale_of,
)
from judge.subject import Kind
from judge.templates import fault
from judge.yamlfile import Place, read_mapping

TEXT_FIELDS = (
    *("country", "background", "value", "rule_of_thumb", "story", "explanation", "subcategory"),
    *("location", "premise", "hypothesis", "post", "reply", "instruction", "output_1", "output_2"),
    "predicted",
)
"""The known kinds' fields, in the order in which a prompt shows them; a record's others follow."""


class Rubric(Section):
    """One rubric. `fields` are shown before the question (none named: every text of the record),
    `needs` must be there as well; both name fields of any record, `a.b` the field b of object a.

    A reply of OwnAnswer has the `answers` named here: labels, or numbers that rise, which are
    scores. Where these are the two fields of `order`, the rubric compares them in both orders.
    `together` are the answers of all questions that one structured reply answers, by name: this one
    is called `file.question`.
    Records with a label in `not_for_labels` are skipped. `order` names two fields whose order
    should not matter; shown in each other's place, the answers 1 and 2 change places too.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
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
    own: Annotated[
        tuple[Text, ...],
        Field(alias="answers", max_length=MOST_ANSWERS, exclude_if=lambda own: not own),
    ] = ()
    together: Annotated[
        Mapping[str, tuple[Text, ...]], Field(exclude_if=lambda together: not together)
    ] = {}
    verdict: VerdictRule | None = None
    evidence: Evidence | None = None
    control: Control | None = None
    methods: Methods
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _coherent(self) -> Rubric:
        if self.reply not in REPLIES:
            raise ValueError(f"reply: {self.reply!r} is not one of {', '.join(REPLIES)}")
        if problems := [*self._misfits(), *self._unknown_answers()]:
            raise ValueError("\n".join(problems))
        return self

    def _misfits(self) -> Iterator[str]:
        """What does not go together, each as `key: problem`."""
        reply, judging = REPLIES[self.reply], self.role == "judge"
        probability = self.methods.logprobs
        if (reply.answers is not None) != judging:
            yield f"reply: {self.reply} does not suit a rubric with role {self.role}"
        elif judging and reply.per_value != (self.about == "values"):
            yield f"reply: {self.reply} does not suit a rubric about: {self.about}"
        if (self.reply == "OwnAnswer") != bool(self.own):
            yield "answers: the reply OwnAnswer has them, and no other"
        elif len({*self.own}) == 1 or len({*self.own}) < len(self.own):
            yield "answers: two different ones at least are needed, each once"
        if reply.shown and reply.shown not in self.fields:
            yield f"fields: {self.reply} is held against the field {reply.shown}, not shown here"
        if judging and self.verdict is None:
            yield "verdict: a judging rubric says which answer passes"
        if not judging and (self.verdict or probability):
            yield "a rewriting rubric has neither a verdict nor a logprobs method"
        if self.evidence and self.fields and self.evidence.field not in self.fields:
            yield f"evidence: {self.evidence.field!r} is not among the fields"
        if self.control and self.deciding != self.control.field:
            yield f"control: {self.control.field!r} is not among the fields"
        if self.control and self.control.swapped and self.control.swapped not in self.answers:
            yield f"control: {self.reply} never answers {self.control.swapped!r}"
        if self.order and not set(self.order) <= set(self.fields):
            yield f"order: {', '.join(self.order)} are not both among the fields"
        if self.order is None and probability and any(q.swapped for q in probability.questions):
            yield "methods: a swapped question needs an order to swap"
        if self.about != "values" and probability and any(q.overlap for q in probability.questions):
            yield "methods: overlap counts the words of a value, and the rubric is not about values"

    def _unknown_answers(self) -> Iterator[str]:
        """A verdict that no answer can bring would fail every record without a word."""
        if self.verdict is None:
            return
        steps = self.methods.logprobs
        labels = [label for label in get_args(Label) if label not in self.not_for_labels]
        if self.verdict.bound and self.scale is None:
            yield f"verdict: {self.verdict.passes!r} bounds scores, and the answers are none"
            return
        if self.scale and not self.verdict.bound:
            yield "verdict: scores pass by a bound, such as '>= 4'"
            return
        # Norms have labels of their own; of other records the label is one of the answers.
        own = self.verdict.pass_equals and "norm" not in self.kinds
        passing = {
            answer
            for label in (self.answers if own else labels)
            for answer in self.verdict.passing(self.answers, label)
        }
        named = {
            "verdict": passing,
            "evidence": self.evidence.answers if self.evidence else frozenset(),
            "methods": steps.answers if steps else frozenset(),
        }
        for key, answers in named.items():
            for unknown in sorted(answers - set(self.answers)):
                yield f"{key}: {self.reply} never answers {unknown!r}"
        for one in steps.choices if steps else ():
            if len(one.words) != len(self.answers):
                yield "methods: the words of choices stand for the answers, one for each"
        for unreachable in sorted(passing - steps.answers) if steps and steps.steps else ():
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
        return one_of(load(Path(path)), str(path))

    @property
    def answers(self) -> tuple[str, ...]:
        """What a judging rubric can be answered with."""
        return self.own or REPLIES[self.reply].answers or ()

    @property
    def scale(self) -> tuple[float, ...] | None:
        """The answers as rising numbers where they are scores of the user's own, else None."""
        return scale_of(self.own)

    @property
    def bound(self) -> Bound | None:
        """What a score must be to pass; None where answers pass by name."""
        return self.verdict.bound if self.verdict and self.scale else None

    @property
    def comparing(self) -> bool:
        """Whether it is asked which of two fields is better, in both orders."""
        return self.order is not None and self.own == self.order

    @property
    def words(self) -> tuple[str, ...]:
        """What a reply may say: the answers, or 1 and 2 for the fields in the order shown."""
        return ("1", "2") if self.comparing else self.answers

    @property
    def file(self) -> str:
        """What the structured method asks about: the rubric, or those that are asked together."""
        return self.name.partition(".")[0]

    @property
    def paid_elsewhere(self) -> bool:
        """Whether another question of the same reply stands for what the reply took."""
        return bool(self.together) and self.name.partition(".")[2] != next(iter(self.together))

    @property
    def deciding(self) -> str | None:
        """The field that the answer turns on: the one that `control` names, else the value, or the
        only field; None where there are several and none is named."""
        if self.about == "values":
            return "value"
        if self.control is None:
            return self.fields[0] if len(self.fields) == 1 else None
        known = not self.fields or self.control.field in self.fields
        return self.control.field if known else None

    @property
    def graded(self) -> bool:
        """Whether votes are counted by their answers, and not as pass or fail."""
        return self.reply == "ValuesExtracted" or (bool(self.own) and self.scale is None)

    def passing(self, label: str | None) -> tuple[str, ...]:
        """The answers that pass for a record with this label."""
        assert self.verdict is not None, "a judging rubric has a verdict rule"
        return self.verdict.passing(self.answers, label)

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

    def title_of(self, name: str) -> str:
        """What a field is called where it is shown: one of two that are compared has no name of
        its own, because the judge might know it."""
        compared = self.comparing and self.order and name in self.order
        return f"answer {self.order.index(name) + 1}" if compared and self.order else name

    @property
    def required(self) -> tuple[str, ...]:
        """Every field that a record must have for this rubric."""
        label = ("label",) if self.verdict and self.verdict.pass_equals else ()
        values = ("values",) if self.about == "values" else ()
        return tuple(dict.fromkeys((*self.fields, *self.needs, *label, *values)))

    @cached_property
    def digest(self) -> str:
        """12 hex digits over everything that can change an answer, the shared system text too."""
        body = self.model_dump_json(by_alias=True, exclude={"title", "source", "control"})
        return hashlib.blake2b(f"{system_text()}\n{body}".encode(), digest_size=6).hexdigest()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with a digest of its own, whenever that of the original was asked for."""
        made = super().model_copy(update=update, deep=deep)
        made.__dict__.pop("digest", None)
        return made


# ---------------------------------------------------------------- loading


@lru_cache(maxsize=1)
def system_text() -> str:
    """The short system message that all rubrics share (rubrics/_system.txt)."""
    return (resources.files("judge.rubrics") / "_system.txt").read_text("utf-8").strip()


def load(path: Path) -> list[Rubric]:
    """The rubrics of a file: one, or as many as it has questions.

    Raises UsageError for an unreadable file, bad YAML, an unknown or wrong key; with file, line and
    key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {why_unread(error)}") from error
    return parse_all(text, str(path))


_KEYS = ("pass", "answers", *(n for p in Section.__subclasses__() for n in p.model_fields))


def parse(text: str, name: str) -> Rubric:
    """Read one rubric from YAML text; `name` stands for the file in messages. See `load`."""
    return one_of(parse_all(text, name), name)


def one_of(rubrics: Sequence[Rubric], name: str) -> Rubric:
    """The one rubric of a file; raises UsageError where it has several."""
    if len(rubrics) > 1:
        raise UsageError(f"{name}: it has several questions; one is wanted here")
    return rubrics[0]


def parse_all(text: str, name: str) -> list[Rubric]:
    """Read the rubrics of YAML text; `name` stands for the file in messages. See `load`."""
    source = read_mapping(text, name)
    if "questions" in source.data:
        keys = (*AskTogether.model_fields, *Asked.model_fields, "pass")
        several = source.validated(AskTogether, keys).long_forms()
        return [Rubric.model_validate(one) for one in several]
    if "methods" not in source.data and "verdict" not in source.data:
        ask = source.validated(Ask, (*Ask.model_fields, "questions", "pass"))
        return [Rubric.model_validate(ask.long_form())]
    rubric = source.validated(Rubric, _KEYS)
    if problems := list(_template_faults(rubric)):
        raise source.refused(problems)
    return [rubric]


def asked_once(
    question: str, fields: Sequence[str], answers: Sequence[str] = (), passes: str | None = None
) -> Rubric:
    """The rubric of a question on the command line; raises UsageError as `typed`."""
    return Rubric.model_validate(typed(question, fields, answers, passes).long_form())


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
        several = {"steps": method.steps, "choices": method.choices, "also": method.also}
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
