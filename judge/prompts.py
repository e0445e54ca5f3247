"""From a rubric and a record to the messages that a model is sent."""

from __future__ import annotations

from collections.abc import Sequence

from judge.backends.base import Message, Prompt
from judge.rubric import TEXT_FIELDS, Rubric, system_text
from judge.subject import Subject
from judge.templates import template


def fence(name: str, text: str, mark: str) -> str:
    """Record text between two marked lines that the text itself cannot hold."""
    return f"[{name.replace('_', ' ')} {mark}]\n{text}\n[end {mark}]"


def question(
    rubric: Rubric,
    subject: Subject,
    *,
    step: int | None = None,
    numbers: Sequence[int] = (),
    swapped: bool = False,
) -> Prompt:
    """`messages` of a judging rubric, made once for all votes on the same text."""
    known = (rubric.digest, step, tuple(numbers), swapped)
    prompt = subject.prompts.get(known)
    if prompt is None:
        prompt = messages(rubric, subject, step=step, numbers=numbers, swapped=swapped)
        subject.prompts[known] = prompt
    return prompt


def messages(
    rubric: Rubric,
    subject: Subject,
    *,
    step: int | None = None,
    numbers: Sequence[int] = (),
    passages: Sequence[str] = (),
    findings: Sequence[str] = (),
    swapped: bool = False,
) -> Prompt:
    """The chat messages for one ask: system, then record first and question last.

    Args:
        step: which question of the probability reading; None for the structured reading.
        numbers: the values asked about (from 1); with a step, exactly one.
        passages: the numbered passages that a rewriter is to replace.
        findings: what was found wrong, for a rewriter.
        swapped: show the two fields of the rubric's `order` in each other's place.
    """
    readings = rubric.readings
    if step is None:
        question = readings.structured.question
    else:
        assert readings.probability is not None
        chosen = readings.probability.questions[step]
        question, swapped = chosen.question, swapped != chosen.swapped
    shown = [
        fence(name, subject.texts[rubric.shown_as(name, swapped)], subject.mark)
        for name in TEXT_FIELDS
        if name in rubric.fields
    ]
    asked = template(question).render(_variables(rubric, subject, numbers, passages, findings))
    examples = _examples(rubric) if step is None else ""
    content = "\n\n".join(part for part in (*shown, examples, asked.strip()) if part)
    system: Message = {"role": "system", "content": system_text()}
    return Prompt([system, {"role": "user", "content": content}])


_BEFORE_EXAMPLES = "Examples of such a reply, about other material:"
_AFTER_EXAMPLES = "Now the question, about the material between the marks:"


def _examples(rubric: Rubric) -> str:
    if not rubric.examples:
        return ""
    worked = (
        f"Example {number}:\n{example.text.strip()}\nReply: {example.reply.strip()}"
        for number, example in enumerate(rubric.examples, 1)
    )
    return "\n\n".join((_BEFORE_EXAMPLES, *worked, _AFTER_EXAMPLES))


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
