"""The keys of a rubric's file, and the validation of each and of their combinations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from judge.problems import KeyProblem, Problems
from judge.questions.field_tests import FieldTest
from judge.questions.parts import (
    MAX_ANSWERS,
    NONE,
    TIE,
    Control,
    Example,
    FirstToken,
    Label,
    PassRule,
    QuoteRule,
    Section,
    Text,
    as_tuple,
    decision_fault,
    first_token_question,
    in_orders,
    scale_of,
    scores_of_range,
    with_meanings,
)
from judge.questions.python_checks import PythonFunction
from judge.questions.replies import YES_NO, form_names, form_of, one_answer, whole_reply
from judge.questions.templates import fault
from judge.records.answers import spelling
from judge.records.base import RESERVED
from judge.records.kinds import RECORD, kind_names
from judge.records.names import entry_name

NAME = r"[a-z][a-z0-9_]*"
NAMING = "a name has small letters, digits and _, as in clear_words"
TAKEN = {
    RECORD: "it stands for whole records, in gates and tables",
    RESERVED: "columns of tables begin with it",
}
"""Names that no check can have, and why."""
_LABELS = tuple({"label": label} for label in get_args(Label))


def _known_kind(kind: str) -> str:
    if kind not in kind_names():
        raise ValueError(f"{kind!r} is not one of {', '.join(kind_names())}")
    return kind


KindName = Annotated[str, AfterValidator(_known_kind)]


class RubricKeys(Section):
    """The keys of a rubric's file.

    name, title, source: its name, a one-line title, and its origin.
    system: the system message: a text, or the name of a shipped one (rubrics/_NAME.txt); by default
        the one that all rubrics share.
    kinds: of records with a workflow, the kinds that are asked (none: all). Other records are
        always asked.
    fields: the fields shown before the question (none: all but id and labels, and with `compare`
        only those compared); `a.b` is the field b of a.
    needs: further required fields, which the question can insert as `{{ field }}`.
    each: a list field. The question is asked once per entry, and can insert it as `{{ entry's name
        }}` (`value` for `values`); an entry that is not inserted is shown before the question.
    compare: two fields; the question is which is better. It is asked in both orders; the answers
        are the fields' names, and `tie` with `tie: true`. More fields give one rubric per pair, and
        are ranked by these.
    reply: the form of the typed reply, if it is not quote, reason and answer.
    answers: labels, or rising numbers, which are scores (`1-5` for 1 to 5); default: yes and no.
    pass: the answers that pass, a bound on scores (`>= 4`), or `= label`. Without it, answers of
        one's own are counted. `pass_by_label`: the answer that passes instead for records with a
        label. Records with a label in `not_for_labels` are skipped.
    criteria: the meaning of each answer.
    none: adds the answer "none of these", which never passes; if it is the likeliest, the check
        abstains.
    rotations: the number of orders in which labels are shown to methods that read a first token.
        The mean over the orders answers; if they differ on the likeliest, the check abstains.
    instructions: how to answer in a typed reply, after the question.
    quote: the answers that need a quote, and the field to quote.
    control: the field that decides.
    first_token: the question as worded for methods that read a first token (none: derived from the
        question; an empty list: no such method).
    inserts, lettered, bare: for a measured model's task: fields that its question can insert
        unchanged; options are answered by letter; no system message is sent.
    test, python: instead of a question: a test of a field or of each entry, or a function in a file
        that says whether a record passes. No model is asked; the answers are yes and no. `first`: a
        record that fails it is asked nothing else.
    ranking: the name of the file of a ranking; this rubric compares two of its fields.
    together: the questions of one reply, by name, with their answers; this one is named
        `file.question`.
    """

    name: str
    source: Text = "the user's own"
    system_message: Annotated[str | None, Field(alias="system")] = None
    kinds: tuple[KindName, ...] = ()
    compare: tuple[Text, Text] | None = None
    tie: bool = False
    fields: Annotated[tuple[Text, ...], Field(validate_default=True)] = ()
    each: Text | None = None
    test: FieldTest | None = None
    python: PythonFunction | None = None
    first: bool = False
    reply: str | None = None
    needs: tuple[str, ...] = ()
    not_for_labels: tuple[Label, ...] = ()
    none: bool = False
    answers: Annotated[
        tuple[Text, ...],
        BeforeValidator(scores_of_range),
        Field(max_length=MAX_ANSWERS, validate_default=True),
    ] = ()
    criteria: Mapping[str, Text] = {}
    rotations: Annotated[int, Field(ge=1, le=MAX_ANSWERS)] = 1
    pass_by_label: Mapping[Label, str] = {}
    passes: Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(alias="pass")] = ()
    quote: QuoteRule | None = None
    control: Control | None = None
    inserts: tuple[str, ...] = ()
    lettered: bool = False
    bare: bool = False
    instructions: Text | None = None
    question: Annotated[str, Field(validate_default=True)] = ""
    title: Annotated[str, Field(validate_default=True)] = ""
    max_tokens: Annotated[int, Field(ge=16, le=32000)] = 1024
    first_token: Annotated[tuple[FirstToken, ...] | None, Field(validate_default=True)] = None
    examples: tuple[Example, ...] = ()
    ranking: str = ""
    together: Mapping[str, tuple[str, tuple[str, ...]]] = {}

    # Each key is validated against the keys declared before it, so that all mistakes are reported
    # at once. A key that was itself wrong is missing from `info.data`.

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not re.fullmatch(rf"{NAME}(\.{NAME})?", name):
            raise ValueError(NAMING)
        if name in TAKEN:
            raise ValueError(f"{TAKEN[name]}; choose another name")
        return name

    @field_validator("system_message")
    @classmethod
    def _written(cls, system: str | None) -> str | None:
        """The message; the name of a shipped one is replaced by its text."""
        if system is None or len(system.split()) > 1:
            return system
        file = resources.files("judge.rubrics") / f"_{system}.txt"
        if not re.fullmatch(NAME, system) or not file.is_file():
            raise ValueError(f"no message is called {system!r}: write the text, or culture")
        return file.read_text("utf-8").strip()

    @field_validator("compare")
    @classmethod
    def _two_fields(cls, compare: tuple[str, str] | None) -> tuple[str, str] | None:
        if compare and compare[0] == compare[1]:
            raise ValueError("name two different fields")
        return compare

    @field_validator("tie")
    @classmethod
    def _of_comparison(cls, tie: bool, info: ValidationInfo) -> bool:
        compare = info.data.get("compare", ())
        if tie and compare is None:
            raise ValueError("only a comparison has a tie: name two fields in compare")
        if tie and compare and TIE in compare:
            raise ValueError(f"{TIE!r} is also a field's name: rename the field with --map")
        return tie

    @field_validator("fields")
    @classmethod
    def _with_compared(cls, fields: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*fields, *(info.data.get("compare") or ()))))

    @field_validator("each")
    @classmethod
    def _lists(cls, each: str | None, info: ValidationInfo) -> str | None:
        if each and info.data.get("compare"):
            raise ValueError("compare is about the whole record: use each or compare")
        if each and not re.search(r"[^\W\d]", each):
            raise ValueError("name a list field, as in claims")
        return each

    @field_validator("test")
    @classmethod
    def _of_one_field(cls, test: FieldTest | None, info: ValidationInfo) -> FieldTest | None:
        fields, each = info.data.get("fields", ("",)), info.data.get("each", None)
        if test and len(fields) + bool(each) != 1:
            raise ValueError("name the one field that is tested, as in fields: [answer], or each")
        return test

    @field_validator("first")
    @classmethod
    def _of_test(cls, first: bool, info: ValidationInfo) -> bool:
        if first and info.data.get("test", ...) is None and info.data.get("python", ...) is None:
            raise ValueError("only a test can be first: a question is itself a call to the model")
        return first

    @field_validator("reply")
    @classmethod
    def _known_form(cls, reply: str | None, info: ValidationInfo) -> str | None:
        if reply is None:
            return None
        if (form := form_of(reply)) is None:
            raise ValueError(f"{reply!r} is not one of {', '.join(form_names())}")
        if form.choices and bool(form.parts) and info.data.get("each", "") is None:
            raise ValueError(f"{reply} has a part for each entry: name the list field in each")
        if form.shown and form.shown not in info.data.get("fields", (form.shown,)):
            raise ValueError(f"{reply} is checked against {form.shown}: add it to fields")
        return reply

    @field_validator("answers")
    @classmethod
    def _answers_differ(cls, answers: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not {"compare", "tie", "reply", "none"} <= info.data.keys():
            return ()
        compare, form = info.data["compare"], form_of(info.data["reply"])
        compare = (*compare, TIE) if compare and info.data["tie"] else compare
        usual = compare or (form.choices if form else YES_NO)
        if compare and answers not in ((), compare):
            raise ValueError("a comparison is answered by the name of a field; leave them out")
        if form and answers not in ((), form.choices):
            raise ValueError(f"the reply {form.__name__} has answers of its own; leave them out")
        if info.data["none"] and NONE not in answers:
            if compare or form or scale_of(answers):
                raise ValueError(f"none: only labels have {NONE!r} beside them")
            answers = (*(answers or usual), NONE)
        if not answers or compare:
            return usual
        if len({*answers}) < max(2, len(answers)):
            raise ValueError("give at least two different answers, each once; scores are 1-5")
        by_spelling: dict[str, str] = {}
        for answer in answers:
            if (twin := by_spelling.setdefault(spelling(answer), answer)) != answer:
                raise ValueError(f"{twin!r} and {answer!r} are one answer in two spellings")
        if problem := fault(" ".join(answers), ()):
            raise ValueError(problem)
        if scale_of(answers) is None and all(scale_of((answer, "1e300")) for answer in answers):
            raise ValueError("list the scores in rising order")
        return answers

    @field_validator("criteria")
    @classmethod
    def _of_answers(cls, criteria: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        answers = info.data.get("answers")
        if criteria and info.data.get("compare"):
            raise ValueError("a comparison has no criteria: its answers are fields")
        _need_answers({answer: answer for answer in criteria}, answers)
        if criteria and (problem := fault("\n".join(criteria.values()), ())):
            raise ValueError(problem)
        return {answer: criteria[answer].strip() for answer in answers or () if answer in criteria}

    @field_validator("rotations")
    @classmethod
    def _can_turn(cls, rotations: int, info: ValidationInfo) -> int:
        answers = info.data.get("answers", ())
        if rotations > 1 and answers:
            if len(answers) < 3 or info.data.get("compare") or scale_of(answers):
                raise ValueError("rotations need three labels or more as answers")
            if rotations > len(answers):
                raise ValueError(f"{len(answers)} answers have {len(answers)} orders")
        return rotations

    @field_validator("pass_by_label")
    @classmethod
    def _are_answers(
        cls, pass_by_label: Mapping[Label, str], info: ValidationInfo
    ) -> Mapping[Label, str]:
        _need_answers(pass_by_label, info.data.get("answers"))
        return pass_by_label

    @field_validator("passes")
    @classmethod
    def _can_pass(cls, passes: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        form, answers = form_of(info.data.get("reply")), info.data.get("answers", ())
        if form and not form.choices and passes:
            raise ValueError("the reply is new text, which does not pass or fail")
        if not passes or not answers:
            return passes
        rule = _rule(info.data, passes)
        if problem := rule.fault():
            raise ValueError(problem)
        # If no answer could pass, every record would fail silently.
        for unknown in sorted(rule.passing_ever(info.data.get("not_for_labels", ())) - {*answers}):
            raise ValueError(_no_answer(unknown, answers))
        return passes

    @field_validator("quote", "control")
    @classmethod
    def _known(cls, part: QuoteRule | Control | None, info: ValidationInfo) -> Any:
        fields, answers = info.data.get("fields"), info.data.get("answers")
        each = info.data.get("each")
        entry = (entry_name(each),) if each else ()
        # Without `fields`, all fields are shown except the list `each`, whose entry is shown.
        if part and (part.field not in (*fields, *entry) if fields else part.field == each):
            raise ValueError(f"{part.field!r} is not among the fields")
        for unknown in sorted(part.answers - {*answers}) if part and answers else ():
            raise ValueError(_no_answer(unknown, answers or ()))
        return part

    @field_validator("inserts", "lettered", "bare")
    @classmethod
    def _of_tasks(cls, content: Any, info: ValidationInfo) -> Any:
        if content and info.data.get("passes"):
            raise ValueError("only a measured model's task (a rubric without pass) can have this")
        return content

    @field_validator("question")
    @classmethod
    def _renders(cls, question: str, info: ValidationInfo) -> str:
        keys, question = info.data, question.strip()
        form, names = form_of(keys.get("reply")), {"label", *keys.get("needs", ())}
        if form and not form.choices:
            names |= {"passages", "findings"}
        elif keys.get("each"):
            names |= {keys["each"] if form and form.parts else entry_name(keys["each"])}
        if not keys.get("passes") and form is None:
            names = {"options", *keys.get("fields", ()), *keys.get("inserts", ())}
        if keys.get("test", ...) or keys.get("python", ...):
            return question
        text = f"{question}\n{keys.get('instructions') or ''}" if question else ""
        if problem := fault(text, names, _LABELS):
            raise ValueError(problem)
        return question

    @field_validator("examples")
    @classmethod
    def _reply_alike(cls, examples: tuple[Example, ...], info: ValidationInfo) -> Any:
        known = info.data
        if not known.get("passes") or not {"answers", "compare", "reply"} <= known.keys():
            return examples
        words = ("1", "2", TIE)[: len(known["answers"])] if known["compare"] else known["answers"]
        form = form_of(known["reply"]) or one_answer(words)
        whole = []
        for number, example in enumerate(examples, 1):
            try:
                reply = whole_reply(example.reply, form)
            except ValueError as error:
                raise ValueError(f"example {number}: reply: {error}") from error
            whole.append(example.model_copy(update={"reply": reply}))
        return tuple(whole)

    @field_validator("title")
    @classmethod
    def _titled(cls, title: str, info: ValidationInfo) -> str:
        keys = info.data
        if test := keys.get("test"):
            title = title or test.described(next(iter(keys.get("fields", ())), keys.get("each")))
        if function := keys.get("python"):
            title = title or f"{function.name} of {Path(function.path).name}"
        return title or keys.get("question", "")

    @field_validator("first_token")
    @classmethod
    def _decides(
        cls, questions: tuple[FirstToken, ...] | None, info: ValidationInfo
    ) -> tuple[FirstToken, ...] | None:
        keys = info.data
        needed = {"answers", "passes", "question", "compare", "tie", "fields", "reply"}
        needed |= {"criteria", "rotations"}
        if not needed <= keys.keys():
            return questions
        answers, compare, passes = keys["answers"], keys["compare"], keys["passes"]
        criteria, orders, question = keys["criteria"], keys["rotations"], keys["question"]
        if questions is None and passes and not keys["reply"]:
            comparing = compare is not None
            questions = in_orders(question, answers, criteria, orders) if orders > 1 else ()
            questions = questions or (
                first_token_question(question, answers, comparing=comparing, criteria=criteria),
            )
        questions = questions or ()
        if questions and not passes:
            raise ValueError("only a rubric with pass is answered by a first token")
        names = {"label", *keys.get("needs", ())} - {"values"}
        names |= {entry_name(keys["each"])} if keys.get("each") else set()
        faults = (fault(question.question, names, _LABELS) for question in questions)
        problems: list[KeyProblem] = [
            ((str(place), "question"), problem) for place, problem in enumerate(faults) if problem
        ]
        if problems:
            raise Problems(problems)
        if not keys.get("each") and any(question.overlap for question in questions):
            raise ValueError("overlap counts the words of an entry: name the list field in each")
        if len(keys["fields"]) != 1 and any(question.passages for question in questions):
            raise ValueError("passages come from one text: name one field in fields")
        swap_fields = {name for question in questions for name in question.swap or ()}
        for unknown in sorted(swap_fields - {*keys["fields"]}):
            raise ValueError(f"swap: {unknown!r} is not among the fields")
        questions = with_meanings(questions, answers, compare)
        if questions and (problem := decision_fault(questions, answers, compare, orders)):
            raise ValueError(problem)
        outcomes = {answer for question in questions for answer in question.means.values()}
        rule = _rule(keys, passes)
        reachable = rule.passing_ever(keys.get("not_for_labels", ())) if questions else set()
        for unknown in sorted(reachable - outcomes):
            raise ValueError(f"no question answers {unknown!r}")
        return questions


def _rule(keys: Mapping[str, Any], passes: tuple[str, ...]) -> PassRule:
    """The rule of validated keys."""
    return PassRule(passes, keys.get("pass_by_label", {}), keys["answers"])


def _need_answers(by_key: Mapping[Any, str], answers: Collection[str] | None) -> None:
    """Raise Problems for keys with an answer that is not one of the rubric's."""
    problems: list[KeyProblem] = [
        ((key,), _no_answer(answer, answers))
        for key, answer in by_key.items()
        if answers and answer not in answers
    ]
    if problems:
        raise Problems(problems)


def _no_answer(word: str, answers: Collection[str]) -> str:
    return f"{word!r} is not one of the answers {', '.join(answers)}"
