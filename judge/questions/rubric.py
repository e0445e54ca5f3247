"""A rubric: one question about a record, with its answers and those that pass.

A rubric is a YAML file with the keys of `RubricKeys`; `name` and `question` are enough. A file with
`questions` has several, answered by one reply. One with `test` or `python` asks no model. A rubric
whose reply is new text is a task for a rewriter; one without `pass` is a task for a measured model
(rubrics/tasks/). Every scalar is read as text, so that `yes` and `no` stay words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError

from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.problems import KeyPath, KeyProblem, Problems, no_such_key, problems_of
from judge.questions.keys import NAME, NAMING, RubricKeys
from judge.questions.parts import (
    COUNTED,
    TIE,
    FirstToken,
    PassRule,
    Section,
    joint_question,
    reply_instructions,
    scale_of,
    with_criteria,
)
from judge.questions.python_checks import PythonFunction
from judge.questions.replies import YES_NO, Reply, YesNo, answers_together, form_of, one_answer
from judge.records.kinds import shown_first
from judge.records.names import apart, entry_name
from judge.records.values import as_json
from judge.yamlfile import composed, read_mapping, read_plain

ASKED = "question"
"""The name of the rubric made from a question on the command line."""

MAX_QUESTIONS = 12
"""Most questions that one reply can answer."""

_NO_ANSWER = ("title", "source", "control", "ranking")
"""Keys that do not affect answers."""

_ENTRIES = 5
"""Entries for which `max_tokens` is enough."""


_PAIR = re.compile(r"\\ud[89ab]..\\ud[c-f]..")
"""JSON's escape of a character beyond U+FFFF, a surrogate pair, which YAML does not accept."""


def _character(pair: re.Match[str]) -> str:
    character: str = json.loads(f'"{pair.group()}"')
    return f"\\U{ord(character):08x}"


def _plain(content: Any) -> Any:
    """The JSON of a value in a dict. Other iterables than sets may be read once only."""
    if isinstance(content, set | frozenset) or not isinstance(content, Iterable):
        return as_json(content)
    return list(content)


class Rubric(RubricKeys):
    """One rubric, with the keys of its file (`RubricKeys`)."""

    @classmethod
    def from_text(cls, text: str, name: str = "rubric") -> Rubric:
        """The rubric in a YAML text; `name` is its name in messages. UsageError as in `load`."""
        rubrics = parse(text, name)
        if len(rubrics) > 1:
            raise UsageError(f"{name}: the file has several questions; give a rubric with one")
        return rubrics[0]

    @classmethod
    def of_function(cls, function: Callable[..., Any]) -> Rubric:
        """The check made by a Python function, named after it; UsageError if it is not one."""
        python = PythonFunction.of(function)
        plain = re.sub(r"[^a-z0-9_]+", "_", python.name.lower()).strip("_")
        try:
            return cls.model_validate({**_tested({}), "name": plain or ASKED, "python": python})
        except ValidationError as error:
            _, problem = next(iter(problems_of(error, cls.model_fields)))
            raise UsageError(f"rubric: the function {python.name}: {problem}") from error

    @classmethod
    def from_dict(cls, rubric: Mapping[str, Any]) -> Rubric:
        """The rubric with the keys that its file would have; UsageError as in `load`."""
        keys = {key: content for key, content in rubric.items() if content is not None}
        return cls.from_text(_PAIR.sub(_character, json.dumps(keys, default=_plain)))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Rubric:
        """The rubric in a YAML file; UsageError as in `load`."""
        return cls.from_text(read_text(Path(path)), str(path))

    @cached_property
    def tested(self) -> bool:
        """Whether a test or a function answers it, instead of a model."""
        return self.test is not None or self.python is not None

    @cached_property
    def role(self) -> Literal["judge", "rewrite", "task"]:
        """Whether it is for a judge, for a rewriter, or a task for a measured model."""
        if self.passes:
            return "judge"
        return "rewrite" if self.reply else "task"

    @property
    def form(self) -> type[Reply] | None:
        """The form of the typed reply, if it is not quote, reason and answer."""
        return form_of(self.reply)

    @property
    def reply_type(self) -> type[Reply]:
        """The typed reply of a judge or a rewriter."""
        if self.together:
            questions = self.together.items()
            return answers_together(tuple((name, answers) for name, (_, answers) in questions))
        return self.form or (YesNo if self.words == YES_NO else one_answer(self.words))

    @cached_property
    def lists_entries(self) -> bool:
        """Whether one typed reply has a part for each entry."""
        return self.form is not None and self.form.parts is not None

    @cached_property
    def prompt(self) -> str:
        """The template of the question for a typed reply, with instructions for the answer."""
        if self.together:
            return joint_question(self.together)
        usual = self.role == "judge" and self.form is None
        instructions, question = self.instructions, with_criteria(self.question, self.criteria)
        if instructions is None and usual:
            instructions = reply_instructions(self.answers, comparing=self.comparing)
        return f"{question}\n\n{instructions.strip()}" if instructions else question

    @cached_property
    def deciding_questions(self) -> tuple[FirstToken, ...]:
        """The first-token questions that decide without a profile."""
        return tuple(question for question in self.first_token or () if question.means)

    @cached_property
    def scale(self) -> tuple[float, ...] | None:
        """The answers as rising numbers if they are scores, else None."""
        return scale_of(self.answers) if self.rule.bound or self.rule.counts else None

    @cached_property
    def rule(self) -> PassRule:
        """Which answers pass."""
        return PassRule(self.passes, self.pass_by_label, self.answers)

    @cached_property
    def comparing(self) -> bool:
        """Whether the rubric asks which of two fields is better, in both orders."""
        return self.compare is not None

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The answers as worded in a reply: in a comparison, 1 and 2 for the fields as shown."""
        return ("1", "2", TIE)[: len(self.answers)] if self.comparing else self.answers

    @cached_property
    def file(self) -> str:
        """The name of the rubric's file, which questions asked together share."""
        return self.name.partition(".")[0]

    @cached_property
    def deciding(self) -> str | None:
        """The field that decides the answer: the one of `control`, else the entry or the only
        field; None if there are several and none is named."""
        if self.control:
            return self.control.field
        if self.each:
            return entry_name(self.each)
        return self.fields[0] if len(self.fields) == 1 else None

    @cached_property
    def graded(self) -> bool:
        """Whether votes are counted by answer, not by pass or fail, nor averaged."""
        counted = self.answers != YES_NO or self.rule.counts
        averaged = self.scale is not None and not (self.each and self.rule.counts)
        return counted and not averaged and not self.rule.equals_label

    def passing(self, label: str | None) -> tuple[str, ...]:
        """The answers that pass for a record with this label."""
        assert self.passes, "a judge's rubric says what passes"
        return self.rule.passing(label)

    def shown(
        self, texts: Collection[str], *, swap: tuple[str, str] | None = None
    ) -> Mapping[str, str]:
        """The fields to show of a record with these texts, by title, in order.

        The two fields of `swap` are exchanged. Titles are plain, unique names. Two compared fields
        have the titles `answer 1` and `answer 2`, because the judge might know the names.
        """
        fields = self.fields or tuple(name for name in texts if name != self.each)
        return _titled(fields, self.compare, swap)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Every field that a record must have for this rubric."""
        label = ("label",) if self.rule.equals_label else ()
        others = (*((self.each,) if self.each else ()), *(self.test.fields if self.test else ()))
        return tuple(dict.fromkeys((*self.fields, *self.needs, *label, *others)))

    @cached_property
    def digest(self) -> str:
        """12 hex digits over everything that can change an answer, including the system text."""
        keys = self.model_dump(
            mode="json",
            by_alias=True,
            exclude_defaults=True,
            exclude={**dict.fromkeys(_NO_ANSWER, True), "python": {"path"}},
        )
        return digest({**keys, "system": self.system}, 6)

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of a file with this question only, without title and first-token questions."""
        how = {*_OURS, "first_token", "title"}
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=how)

    @cached_property
    def system(self) -> str | None:
        """The system message; None for a `bare` task, and if no model is asked."""
        if self.tested:
            return None
        if self.role == "task":
            return None if self.bare else system_text("tasks/_system.txt")
        return self.system_message or system_text()

    def reply_limit(self, entries: int) -> int:
        """Most tokens of a reply about `entries` entries.

        `max_tokens` is for up to five, and each further one adds a tenth. (With 1,600, twenty
        entries have 4,000, which is within the 4,096 that some servers allow.)
        """
        return self.max_tokens + self.max_tokens * max(0, entries - _ENTRIES) // 10

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy without cached properties, so that its digest and others are recomputed."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy


@lru_cache(maxsize=256)
def _titled(
    fields: tuple[str, ...], compare: tuple[str, str] | None, swap: tuple[str, str] | None
) -> Mapping[str, str]:
    """`Rubric.shown` for the fields with these names."""
    names = dict.fromkeys((*(name for name in shown_first() if name in fields), *fields))
    partner = {swap[0]: swap[1], swap[1]: swap[0]} if swap else {}
    compared = {compare[0]: "answer 1", compare[1]: "answer 2"} if compare else {}
    # Compared fields first, so that no field of the record takes their titles.
    long = compared | {name: name for name in names if name not in compared}
    titles = dict(zip(long, apart(long.values()), strict=True))
    return {titles[name]: partner.get(name, name) for name in names}


# ---------------------------------------------------------------- loading


@lru_cache(maxsize=4)
def system_text(name: str = "_system.txt") -> str:
    """A shipped system message; by default that of judges whose rubric has none of its own."""
    return (resources.files("judge.rubrics") / name).read_text("utf-8").strip()


def load(path: Path) -> list[Rubric]:
    """The rubrics of a file: one, or one per question.

    Raises UsageError, with file, line and key, for an unreadable file, bad YAML, and an unknown or
    wrong key.
    """
    return parse(read_text(path), str(path))


def parse(text: str, name: str) -> list[Rubric]:
    """The rubrics in YAML text; `name` is the file's name in messages. See `load`."""
    source = read_mapping(text, name)
    try:
        return rubrics_of(
            with_files(source.data, Path(name).parent, lambda: read_plain(text, name)["test"])
        )
    except Problems as error:
        raise source.refused(error.problems) from error


def with_files(
    data: Mapping[str, Any], folder: Path, plain: Callable[[], Any]
) -> Mapping[str, Any]:
    """The data of a rubric's file, with the paths in its test resolved against `folder`.

    An inline JSON Schema is taken from the `plain` test, in which numbers are not read as text.
    """
    python, test = data.get("python"), data.get("test")
    if isinstance(python, str):
        return {**data, "python": str(folder / python)}
    if not isinstance(test, Mapping) or "json_schema" not in test:
        return data
    schema = test["json_schema"]
    if isinstance(schema, Mapping):
        schema = json.dumps(plain()["json_schema"])
    elif isinstance(schema, str) and not schema.lstrip().startswith("{"):
        schema = str(folder / schema)
    return {**data, "test": {**test, "json_schema": schema}}


_OURS = ("together", "ranking")
"""Keys that judge sets, which a file must not have."""

_FIELDS = (field for part in Section.__subclasses__() for field in part.model_fields.items())
_KEYS = (
    "questions",
    *(key for name, field in _FIELDS if (key := field.alias or name) not in _OURS),
)
_TEST_KEYS = (
    *("name", "title", "source", "kinds", "fields", "needs", "each", "not_for_labels"),
    *("test", "python", "first"),
)
_FILE_KEYS = ("name", "source", "system", "kinds", "fields", "max_tokens")
_QUESTION_KEYS = ("question", "answers", "pass", "needs")


def rubrics_of(data: Mapping[str, Any]) -> list[Rubric]:
    """The rubrics of a file's data; raises Problems with every mistake, by key."""
    data = composed(data)
    if "questions" in data:
        return _several(data)
    problems: list[KeyProblem] = []
    for key in data.keys() & {*_OURS}:
        problems.append(((key,), no_such_key(key, _KEYS)))
    keys: Mapping[str, Any] = {key: data[key] for key in data if key not in _OURS}
    if isinstance(compare := keys.get("compare"), list | tuple) and len(compare) > 2:
        return _pairs(keys, compare)
    if tests := keys.keys() & {"test", "python"}:
        unfit = [key for key in keys if key not in _TEST_KEYS and key in _KEYS]
        problems += [((key,), "a test asks nothing: leave it out") for key in unfit]
        problems += [(("test",), "choose one: test or python")] if len(tests) > 1 else []
        keys = _tested(keys)
    rubric, extra = _validated(_with_pass(keys))
    if rubric is None or problems:
        raise Problems([*problems, *extra])
    return [rubric]


def _pairs(keys: Mapping[str, Any], compare: Sequence[Any]) -> list[Rubric]:
    """A rubric for each pair of several fields, named after these, or after their numbers."""
    fields = [*map(str, compare)]
    faults: dict[str, str] = {} if "name" in keys else {"name": "missing key"}
    if len({*fields}) < len(fields):
        faults["compare"] = "name different fields"
    if "pass" in keys:
        faults["pass"] = "leave it out: several fields are ranked, and none passes"
    if faults:
        raise Problems(((key,), fault) for key, fault in faults.items())
    plain = [re.sub(r"[^a-z0-9_]+", "_", field.lower()).strip("_") for field in fields]
    pairs = [*combinations(plain, 2)]
    if "" in plain or len({*map("_".join, pairs)}) < len(pairs):
        plain = [str(number) for number in range(1, len(fields) + 1)]
    ranking, rubrics = str(keys["name"]), list[Rubric]()
    for (first, name), (second, other) in combinations(zip(fields, plain, strict=True), 2):
        pair = {"name": f"{ranking}_{name}_{other}", "compare": (first, second)}
        rubric, problems = _validated(_with_pass({**keys, **pair, "ranking": ranking}))
        if rubric is None:
            raise Problems(problems)
        rubrics.append(rubric)
    return rubrics


def _tested(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a test, with the defaults that its file leaves out."""
    plain = {key: content for key, content in keys.items() if key not in _KEYS or key in _TEST_KEYS}
    return {**plain, "pass": YES_NO[0], "first_token": []}


def _with_pass(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a judge's rubric, with a default for `pass`.

    It is yes; the rubric's own answers, and those of a comparison, are counted.
    """
    reply = keys.get("reply")
    form = form_of(reply) if isinstance(reply, str) else None
    if keys.get("pass") or (form and not form.choices):
        return keys
    if form and form.choices != YES_NO:
        return {**keys, "pass": ""}
    return {**keys, "pass": COUNTED if keys.get("answers") or keys.get("compare") else "yes"}


def _validated(keys: Mapping[str, Any]) -> tuple[Rubric | None, list[KeyProblem]]:
    try:
        return Rubric.model_validate(keys), []
    except ValidationError as error:
        return None, list(problems_of(error, _KEYS))


def _several(data: Mapping[str, Any]) -> list[Rubric]:
    """A rubric for each question of a file whose questions one reply answers."""
    file_keys = (*_FILE_KEYS, "questions")
    problems: list[KeyProblem] = [
        ((key,), no_such_key(key, file_keys)) for key in data if key not in file_keys
    ]
    questions = data["questions"]
    if not isinstance(questions, Mapping) or not 0 < len(questions) <= MAX_QUESTIONS:
        message = f"write 1 to {MAX_QUESTIONS} questions by name"
        raise Problems([*problems, (("questions",), message)])
    parts: dict[str, Mapping[str, Any]] = {}
    for name, part in questions.items():
        place: KeyPath = ("questions", name)
        keys = {"question": part} if isinstance(part, str) else part
        if not re.fullmatch(NAME, name):
            problems.append((place, NAMING))
        elif not isinstance(keys, Mapping):
            problems.append((place, "write the question's text, or a mapping of its keys"))
        else:
            unknown = [key for key in keys if key not in _QUESTION_KEYS]
            problems += [((*place, key), no_such_key(key, _QUESTION_KEYS)) for key in unknown]
            parts[name] = {key: keys[key] for key in _QUESTION_KEYS if key in keys}
    common = {"max_tokens": "2048", **{key: data[key] for key in _FILE_KEYS if key in data}}
    rubrics: dict[str, Rubric] = {}
    for name, keys in parts.items():
        rubric, extra = _validated(
            _with_pass({**common, **keys, "name": f"{data.get('name')}.{name}"})
        )
        inside = ("questions", name)
        problems += [
            ((*inside, *place) if place[0] in _QUESTION_KEYS else place, message)
            for place, message in extra
        ]
        rubrics |= {name: rubric} if rubric else {}
    if problems:
        raise Problems(problems)
    together = {name: (rubric.question, rubric.answers) for name, rubric in rubrics.items()}
    needs = tuple(dict.fromkeys(field for rubric in rubrics.values() for field in rubric.needs))
    update = {"together": together, "needs": needs}
    return [rubric.model_copy(update=update) for rubric in rubrics.values()]
