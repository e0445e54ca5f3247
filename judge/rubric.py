"""A rubric: one question put to a judge, or one task put to a rewriter, and what passes.

A rubric is a YAML file with the keys of `Rubric`, or with the few of the short form
(judge/shorthand.py). Every scalar is read as text, so that `yes` and `no` stay words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from judge.answers import spelling
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.names import apart
from judge.questions import (
    MOST_ANSWERS,
    Bound,
    Control,
    Evidence,
    Example,
    Label,
    Methods,
    Section,
    Text,
    VerdictRule,
    scale_of,
)
from judge.replies import OWN_ANSWER, REPLIES, YES_NO, Reply, one_answer
from judge.shorthand import SHORT_KEYS, in_full
from judge.subject import Kind
from judge.templates import fault
from judge.yamlfile import Problems, problems_of, read_mapping

TEXT_FIELDS = (
    *("country", "background", "value", "rule_of_thumb", "story", "explanation", "subcategory"),
    *("location", "premise", "hypothesis", "post", "reply", "instruction", "output_1", "output_2"),
    "predicted",
)
"""The known kinds' fields, in the order in which a prompt shows them; a record's others follow."""


class Rubric(Section):
    """One rubric. `fields` are shown before the question (none named: all but id and labels),
    `needs` must be there as well; both name fields of any record, `a.b` the field b of object a.

    A reply of OwnAnswer has the `answers` named here: labels, or numbers that rise, which are
    scores. Where these are the two fields of `order`, the rubric compares them in both orders.
    `together` are the answers of all questions that one structured reply answers, by name: this one
    is called `file.question`.
    Records with a label in `not_for_labels` are skipped. `order` names two fields whose order
    should not matter; shown in each other's place, the answers 1 and 2 change places too.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
    title: str = ""
    source: Text = "the user's own"
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
        Field(
            alias="answers",
            max_length=MOST_ANSWERS,
            exclude_if=lambda own: not own,
            validate_default=True,
        ),
    ] = ()
    together: Annotated[
        Mapping[str, tuple[Text, ...]], Field(exclude_if=lambda together: not together)
    ] = {}
    verdict: Annotated[VerdictRule | None, Field(validate_default=True)] = None
    evidence: Evidence | None = None
    control: Control | None = None
    methods: Methods
    examples: tuple[Example, ...] = ()

    # Each key is checked against those before it, so that all mistakes are reported at once. A key
    # that is wrong itself is missing from `info.data`.

    @field_validator("reply")
    @classmethod
    def _suits(cls, reply: str, info: ValidationInfo) -> str:
        if reply not in REPLIES and reply != OWN_ANSWER:
            raise ValueError(f"{reply!r} is not one of {', '.join((*REPLIES, OWN_ANSWER))}")
        form, role, about = _form(reply), info.data.get("role"), info.data.get("about")
        if role and bool(form.choices) != (role == "judge"):
            raise ValueError(f"{reply} does not suit a rubric with role {role}")
        if role == "judge" and about and bool(form.per_value) != (about == "values"):
            raise ValueError(f"{reply} does not suit a rubric about: {about}")
        if form.shown and form.shown not in info.data.get("fields", (form.shown,)):
            raise ValueError(f"{reply} is held against {form.shown}, which is not among the fields")
        return reply

    @field_validator("own")
    @classmethod
    def _apart(cls, own: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "reply" in info.data and (info.data["reply"] == OWN_ANSWER) != bool(own):
            raise ValueError(f"the reply {OWN_ANSWER} has them, and no other")
        if own and len({*own}) < max(2, len(own)):
            raise ValueError("two different ones at least are needed, each once")
        spelt: dict[str, str] = {}
        for answer in own:
            if (other := spelt.setdefault(spelling(answer), answer)) != answer:
                raise ValueError(f"{other!r} and {answer!r} are one answer in two spellings")
        if own and (problem := fault(" ".join(own), ())):
            raise ValueError(problem)
        if own and scale_of(own) is None and all(scale_of((one, "1e300")) for one in own):
            raise ValueError("scores stand in rising order")
        return own

    @field_validator("verdict")
    @classmethod
    def _can_pass(cls, rule: VerdictRule | None, info: ValidationInfo) -> VerdictRule | None:
        role, answers = info.data.get("role"), _answers(info.data)
        if role and (rule is None) == (role == "judge"):
            raise ValueError("a judging rubric says which answer passes, a rewriting one does not")
        if rule and answers:
            if problem := rule.misfit(answers, scale_of(info.data["own"])):
                raise ValueError(problem)
            # A verdict that no answer can bring would fail every record without a word.
            for unknown in sorted(_passing(rule, answers, info.data) - {*answers}):
                raise ValueError(f"{unknown!r} is none of the answers {', '.join(answers)}")
        return rule

    @field_validator("order", "evidence", "control")
    @classmethod
    def _known(cls, given: Any, info: ValidationInfo) -> Any:
        if given is None:
            return None
        fields, answers = info.data.get("fields"), _answers(info.data)
        named, said = given, frozenset[str]()
        if isinstance(given, Evidence | Control):
            named, said = (given.field,), given.answers
        if isinstance(given, Control) and info.data.get("about") == "values":
            fields = ("value",)
        for unknown in sorted({*named} - {*fields} if fields else ()):
            raise ValueError(f"{unknown!r} is not among the fields")
        for unknown in sorted(said - {*answers} if answers else ()):
            raise ValueError(f"{unknown!r} is none of the answers {', '.join(answers)}")
        return given

    @field_validator("methods")
    @classmethod
    def _answerable(cls, methods: Methods, info: ValidationInfo) -> Methods:
        known, answers = info.data, _answers(info.data)
        rewriting, per_value = known.get("role") == "rewrite", known.get("about") == "values"
        given = {"label", *known.get("needs", ())} - {"values"}
        structured = given | ({"values"} if per_value or rewriting else set())
        structured |= {"passages", "findings"} if rewriting else set()
        token = given | ({"value", "number"} if per_value else set())
        problems = [*methods.unrendered(structured, token)]
        asked = methods.logprobs.questions if methods.logprobs else ()
        if not per_value and any(question.overlap for question in asked):
            told = "overlap counts the words of a value, and the rubric is not about values"
            problems.append((("logprobs",), told))
        if len(known.get("fields", ())) != 1 and any(question.passages for question in asked):
            told = "passages are cut out of one text: name one field in fields"
            problems.append((("logprobs",), told))
        if methods.logprobs and rewriting:
            problems += [(("logprobs",), "a rewriting rubric is not answered by a first token")]
        elif methods.logprobs and answers and "order" in known:
            rule, ordered = known.get("verdict"), known["order"] is not None
            passing = _passing(rule, answers, known) if rule else ()
            misfits = methods.logprobs.misfits(answers, passing, ordered)
            problems += [(("logprobs",), told) for told in misfits]
        if problems:
            raise Problems(problems)
        return methods

    @classmethod
    def from_text(cls, text: str, name: str = "rubric") -> Rubric:
        """The rubric of a YAML text, which messages call `name`; raises UsageError as `load`."""
        rubrics = parse(text, name)
        if len(rubrics) > 1:
            raise UsageError(f"{name}: it has several questions; one is wanted here")
        return rubrics[0]

    @classmethod
    def from_dict(cls, rubric: Mapping[str, Any]) -> Rubric:
        """The rubric of the keys that its file would have; raises UsageError as `load`."""
        given = {key: one for key, one in rubric.items() if one is not None}
        return cls.from_text(json.dumps(given, default=list))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Rubric:
        """The rubric of a YAML file; raises UsageError as `load`."""
        return cls.from_text(read_text(Path(path)), str(path))

    @property
    def answers(self) -> tuple[str, ...]:
        """What a judging rubric can be answered with."""
        return self.own or REPLIES[self.reply].choices

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
        """Whether the rubric asks which of two fields is better, in both orders."""
        return self.order is not None and self.own == self.order

    @property
    def words(self) -> tuple[str, ...]:
        """What a reply may say: the answers, or 1 and 2 for the fields in the order shown."""
        return ("1", "2") if self.comparing else self.answers

    @property
    def file(self) -> str:
        """The name of the rubric, or of those that are asked together in one reply."""
        return self.name.partition(".")[0]

    @property
    def paid_elsewhere(self) -> bool:
        """Whether the usage of the reply is counted with another of its questions."""
        return bool(self.together) and self.name.partition(".")[2] != next(iter(self.together))

    @property
    def deciding(self) -> str | None:
        """The field that the answer turns on: the one that `control` names, else the value, or the
        only field; None where there are several and none is named."""
        if self.about == "values":
            return "value"
        if self.control:
            return self.control.field
        return self.fields[0] if len(self.fields) == 1 else None

    @property
    def graded(self) -> bool:
        """Whether votes are counted by their answers, and not as pass or fail."""
        return self.reply == "ValuesExtracted" or (bool(self.own) and self.scale is None)

    def passing(self, label: str | None) -> tuple[str, ...]:
        """The answers that pass for a record with this label."""
        assert self.verdict is not None, "a judging rubric has a verdict rule"
        return self.verdict.passing(self.answers, label)

    def shown(self, texts: Collection[str], *, swapped: bool = False) -> Mapping[str, str]:
        """The fields to show of a record with these texts, by title, in the order to show them.

        Titles are plain names, each once. Of two fields that are compared, `answer 1` and `answer
        2` are the titles, because the judge might know the names.
        """
        named = self.fields or tuple(texts)
        return _titled(named, self.order or ("", ""), self.comparing, swapped)

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
        return digest(f"{system_text()}\n{body}".encode(), 6)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with a digest of its own, whenever that of the original was asked for."""
        made = super().model_copy(update=update, deep=deep)
        made.__dict__.pop("digest", None)
        return made


@lru_cache(maxsize=256)
def _titled(
    named: tuple[str, ...], order: tuple[str, str], comparing: bool, swapped: bool
) -> Mapping[str, str]:
    """As `Rubric.shown`, of the fields with these names."""
    known = tuple(name for name in TEXT_FIELDS if name in named)
    first, second = order
    other = {first: second, second: first} if swapped else {}
    titles = {first: "answer 1", second: "answer 2"} if comparing else {}
    names = (*known, *(name for name in named if name not in TEXT_FIELDS))
    # First those of a comparison, so that no field of the record takes their titles.
    first_titles = dict(zip(titles, apart(titles.values()), strict=True))
    others = [name for name in names if name not in titles]
    later = list(apart((*titles.values(), *others)))[len(titles) :]
    title_of = first_titles | dict(zip(others, later, strict=True))
    return {title_of[name]: other.get(name, name) for name in names}


# ---------------------------------------------------------------- checking


def _form(reply: str) -> type[Reply]:
    return REPLIES.get(reply) or one_answer(YES_NO)


def _answers(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The answers, once they are known to be valid; else empty."""
    if not {"reply", "own"} <= known.keys():
        return ()
    return known["own"] or _form(known["reply"]).choices


def _passing(rule: VerdictRule, answers: Sequence[str], known: Mapping[str, Any]) -> set[str]:
    """Every answer that passes for some label, even ones that `answers` lacks."""
    labels = set(get_args(Label)) - {*known.get("not_for_labels", ())}
    if rule.pass_equals and "norm" not in known.get("kinds", ()):
        # Norms have labels of their own; of other records the label is one of the answers.
        labels = {*answers}
    return {answer for label in labels for answer in rule.passing(answers, label)}


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
    return parse(read_text(path), str(path))


def parse(text: str, name: str) -> list[Rubric]:
    """Read the rubrics of YAML text; `name` stands for the file in messages. See `load`."""
    source = read_mapping(text, name)
    try:
        return _made(source.data)
    except Problems as error:
        raise source.refused(error.problems) from error


ASKED = "question"
"""The name of the rubric of a question on the command line."""


def asked_once(
    question: str, fields: Sequence[str], answers: Sequence[str] = (), passes: str | None = None
) -> Rubric:
    """The rubric of a question on the command line.

    Raises UsageError with every mistake, each with its flag.
    """
    given: dict[str, Any] = {"name": ASKED, "question": question, "fields": fields}
    given |= {"answers": answers} if answers else {}
    if passes:
        # One label, several with commas between them, or a bound.
        given["pass"] = tuple(map(str.strip, passes.split(","))) if "," in passes else passes
    try:
        return _made(given)[0]
    except Problems as error:
        flags = {"question": "--ask", "fields": "--on", "answers": "--answers", "pass": "--pass"}
        told = "\n".join(f"{flags[place[0]]}: {problem}" for place, problem in error.problems)
        raise UsageError(told) from error


_FIELDS = (field for part in Section.__subclasses__() for field in part.model_fields.items())
_KEYS = (*SHORT_KEYS, *(field.alias or name for name, field in _FIELDS))


def _made(data: Mapping[str, Any]) -> list[Rubric]:
    """The rubrics of a file's data; raises Problems with every mistake, by the keys of the file."""
    written, problems = in_full(data)
    made: list[Rubric] = []
    for one in written:
        try:
            made.append(Rubric.model_validate(one.data))
        except ValidationError as error:
            problems += [(one.place(at), told) for at, told in problems_of(error, _KEYS)]
    if problems:
        # What is wrong with one of several questions is wrong with the text of all, too.
        told = {problem for place, problem in problems if place != ("questions",)}
        once = dict.fromkeys(problems)
        raise Problems(p for p in once if p[0] != ("questions",) or p[1] not in told)
    return made


@lru_cache(maxsize=1)
def builtin() -> Mapping[str, Rubric]:
    """The rubrics that come with the package, by name."""
    folder = resources.files("judge.rubrics")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".yaml"))
    texts = [((folder / file).read_text("utf-8"), f"rubrics/{file}") for file in files]
    return {rubric.name: rubric for text, name in texts for rubric in parse(text, name)}
