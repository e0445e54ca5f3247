"""Makes the messages to a model from a rubric and a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from judge.backends.base import Choice, Message, Prompt, QuestionKind, TypedQuestion
from judge.questions.parts import FirstToken, Label, first_token_question
from judge.questions.replies import YES_NO
from judge.questions.rubric import Rubric
from judge.questions.templates import render, variables_of
from judge.records import Record
from judge.records.names import entry_name, plain_name

CONTROL = re.compile(
    r"""(?ix)
    (<) (?= [|\uff5c]                            # <|im_end|>, <|eot_id|>, and with a wide bar
          | /? (?: s | bos | eos | pad | unk | think | tool_(?:call|response)s?
                 | (?:start|end)_of_turn | start_of_image ) > )
    | (\[) (?= /? (?: inst | system_prompt | available_tools | tool_(?:calls?|results?|content)
                    | think ) \] )
    """
)
"""Where a control token of a chat template begins. Engines interpret such a token in a record's
text (llama.cpp does, and so do tokenizers of transformers): the text would end its message."""


def without_controls(text: str) -> str:
    """The text with a space inside anything that an engine could read as a control token."""
    if "<" not in text and "[" not in text:
        return text
    return CONTROL.sub(lambda match: f"{match.group()} ", text)


def fence(name: str, text: str, mark: str) -> str:
    """Record text between two marked lines that the text itself cannot contain."""
    return f"[{name.replace('_', ' ')} {mark}]\n{without_controls(text)}\n[end {mark}]"


LACKS = "the record has no "
"""Beginning of the reason of a check that is skipped for lack of a field."""


def list_field(rubric: Rubric, record: Record) -> str | None:
    """The list field whose entries the question is about; for a rewriter the first it needs."""
    return rubric.each or next((name for name in rubric.needs if name in record.lists), None)


def lack(rubric: Rubric, record: Record) -> str | None:
    """Why the rubric cannot be asked: its missing or empty fields; None if it can. A test accepts
    an empty field, but needs an entry if it is about each."""
    if rubric.tested:
        lacking = tuple(name for name in rubric.required if not record.has(name))
    else:
        lacking = record.lacks(rubric.required)
    if not lacking and rubric.each and not record.entries(rubric.each):
        lacking = record.lacks([rubric.each]) or (f"list {rubric.each}",)
    if lacking:
        return LACKS + ", ".join(lacking)
    return None if rubric.tested or rubric.fields or record.texts else f"{LACKS}text"


def shown_texts(rubric: Rubric, record: Record) -> dict[str, str]:
    """The texts that the rubric shows, by the record's names for them."""
    return {name: record.texts[name] for name in rubric.shown(record.texts).values()}


def mark_of(rubric: Rubric, record: Record) -> str:
    """The mark of the fence around the record's texts in the rubric's prompts."""
    others = dict.fromkeys((*((rubric.each,) if rubric.each else ()), *rubric.needs))
    return record.mark(rubric.shown(record.texts).values(), others)


@dataclass(frozen=True, slots=True)
class Framing:
    """How a prompt separates the record from the question about it.

    `system` is the system message (None: the rubric's); `shown` takes a field's
    name, its text and the fence's mark; `resumed` leads from worked examples back to the record.
    """

    system: str | None
    shown: Callable[[str, str, str], str]
    resumed: str


DEFENDED = Framing(None, fence, "Now the question, about the material between the marks:")
"""The framing for every judge. `judge evaluate hostile` compares it with another."""


def messages(
    rubric: Rubric,
    record: Record,
    *,
    step: int | None = None,
    swapped: bool = False,
    numbers: Sequence[int] = (),
    passages: Sequence[str] = (),
    findings: Sequence[str] = (),
    framing: Framing = DEFENDED,
) -> Prompt:
    """The chat messages for one ask: system, then record first and question last.

    A record's prompt is made once and reused (`record.prompts`).

    Args:
        step: which question for the first token; None for the structured method.
        swapped: whether the two compared fields swap places; a step has its own `swap`.
        numbers: the entries asked about (from 1); exactly one, unless the reply lists them.
        passages: the numbered passages that a rewriter is to replace.
        findings: what was found wrong, for a rewriter.
        framing: how the record is separated from the question.
    """
    material = (tuple(numbers), tuple(passages), tuple(findings))
    key = (rubric.digest, step, swapped, material, framing)
    if (prompt := record.prompts.get(key)) is not None:
        return prompt
    question, swap = rubric.prompt, rubric.compare if swapped else None
    if step is not None:
        assert rubric.first_token is not None
        question, swap = rubric.first_token[step].question, rubric.first_token[step].swap
    fields = rubric.shown(record.texts, swap=swap)
    mark = mark_of(rubric, record)

    def shown(name: str, text: str) -> str:
        return framing.shown(name, text, mark)

    blocks = [shown(title, record.texts[name]) for title, name in fields.items()]
    names = variables_of(question)
    variables: dict[str, str] = {}
    if names or rubric.each:
        variables = _variables(rubric, record, numbers, passages, findings, shown)
    text = render(question, variables)
    entry = entry_name(rubric.each) if rubric.each and not rubric.lists_entries else None
    if entry and entry not in names:
        text = f"{variables[entry]}\n\n{text}"
    examples = _examples(rubric, framing) if rubric.examples and step is None else ""
    content = "\n\n".join(part for part in (*blocks, examples, text.strip()) if part)
    system: Message = {"role": "system", "content": framing.system or rubric.system or ""}
    prompt = Prompt([system, {"role": "user", "content": content}])
    record.prompts[key] = prompt
    return prompt


def _examples(rubric: Rubric, framing: Framing) -> str:
    worked = (
        f"Example {number}:\n{example.text.strip()}\nReply: {example.reply.strip()}"
        for number, example in enumerate(rubric.examples, 1)
    )
    return "\n\n".join(
        ("Examples of such a reply, about other material:", *worked, framing.resumed)
    )


def _variables(
    rubric: Rubric,
    record: Record,
    numbers: Sequence[int],
    passages: Sequence[str],
    findings: Sequence[str],
    shown: Callable[[str, str], str],
) -> dict[str, str]:
    def listed(name: str, entries: Iterable[tuple[int, str]]) -> str:
        # Further lines are indented, so that none looks like another entry.
        lines = (f"{n}. " + "\n      ".join(entry.splitlines()) for n, entry in entries)
        return shown(name, "\n".join(lines))

    list_name = list_field(rubric, record)
    entries = record.entries(list_name) if list_name else ()
    variables = {
        **{n: shown(n, record.texts[n]) for n in rubric.needs if n in record.texts},
        "label": plain_name(record.label) if record.label else "",
        "passages": listed("passages", enumerate(passages, 1)),
        "findings": listed("findings", enumerate(findings, 1)) if findings else "",
    }
    if list_name:
        variables[list_name] = listed(list_name, ((n, entries[n - 1]) for n in numbers))
    if len(numbers) == 1 and rubric.each:
        entry = entry_name(rubric.each)
        variables[entry] = shown(entry, entries[numbers[0] - 1])
    return variables


# ---------------------------------------------------------------- for decision models

_MAX_LEVELS = 10
"""Most levels of a score that System One accepts."""

_COMPARED = ("answer 1", "answer 2", "neither is better")


def typed_question(
    rubric: Rubric, record: Record, step: int, numbers: Sequence[int] = ()
) -> TypedQuestion:
    """A first-token question in the typed form for decision models.

    The record's text is in the state, and the instructions name its fields. The choices are the
    rubric's answers if the first-token question was made from the rubric's, else that question's
    own words.
    """
    assert rubric.first_token is not None
    question, state = rubric.first_token[step], dict[str, str]()
    instructions, kind, choices = _typed_parts(rubric, question)
    names = variables_of(instructions) | ({entry_name(rubric.each)} if rubric.each else set())

    def named(name: str, text: str) -> str:
        if name in names:
            state[name] = without_controls(text)
        return f"`{name}`"

    for title, name in rubric.shown(record.texts, swap=question.swap).items():
        state[title] = without_controls(record.texts[name])
    variables = _variables(rubric, record, numbers, (), (), named)
    if variables["label"] not in ("", *get_args(Label), *rubric.answers):
        variables["label"] = named("label", variables["label"])
    text = render(instructions, variables).strip()
    if rubric.system_message:
        text = f"{rubric.system_message}\n\n{text}"
    return TypedQuestion(state, text, kind, choices)


def _typed_parts(
    rubric: Rubric, question: FirstToken
) -> tuple[str, QuestionKind, tuple[Choice, ...]]:
    """The template of the instructions, without how to spell the answer; kind and choices."""
    answers, criteria = tuple(question.means.values()), rubric.criteria
    made = _made(rubric.question, answers, rubric.comparing, tuple(criteria.items()))
    own = question.question != made
    template = _without_words(question.question, question.words) if own else rubric.question
    names = question.words if own else _COMPARED if rubric.comparing else answers
    meanings = [criteria.get(question.means.get(word, "")) for word in question.words]
    choices = tuple(map(Choice, question.words, names, meanings))
    kind: QuestionKind = "yes-no" if {*names} == {*YES_NO} else "choice"
    if not own and rubric.scale and all(meanings) and len(choices) <= _MAX_LEVELS:
        kind = "score"
    return template, kind, choices


@lru_cache(maxsize=256)
def _made(
    question: str, answers: tuple[str, ...], comparing: bool, criteria: tuple[tuple[str, str], ...]
) -> str | None:
    """The first-token form of a rubric's question; None if it has none."""
    if len(answers) < 2 or not question:
        return None
    made = first_token_question(question, answers, comparing=comparing, criteria=dict(criteria))
    return made.question


@lru_cache(maxsize=256)
def _without_words(question: str, words: tuple[str, ...]) -> str:
    """The question without a sentence that only lists its words: Answer Yes or No."""
    listed = r",?\s+(?:or\s+)?".join(words)
    return re.sub(rf"\s*\bAnswer\s+(?:with\s+)?{listed}\.", "", question, flags=re.IGNORECASE)
