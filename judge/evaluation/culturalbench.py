"""CulturalBench: what a model knows of everyday life in 45 countries, asked in two ways.

Chiu et al., "CulturalBench", sections 3.3 and 5 and appendix D. Easy: a question with four options,
one of them right; chance is 25 %. Hard: the same question's four answers, each asked alone as true
or false, right only if all four are; chance is 6.25 %.

Deviation from the paper: Easy's options are shuffled, because A is right in 54 % of the released
rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.evaluation.benchmark import Answer, Benchmark, Choices, MeasuredModel, Outcome
from judge.evaluation.culturalbench_rows import LETTERS, Easy, Hard, Question, questions
from judge.evaluation.culturalbench_tables import tables
from judge.evaluation.regions import region_of
from judge.records import Item, Problem
from judge.records.fields import refused
from judge.verdict import Usage

EASY, HARD = "easy", "hard"
EASY_TASK, HARD_TASK = "culturalbench_easy", "culturalbench_hard"
TRUTHS = ("True", "False")
"""The two options of a Hard question, in the order in which they are given to the model."""


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """An item for each question and condition, from Easy rows, Hard rows or both.

    Easy items hold their options in the order in which they are shown, `order` with each option's
    letter in the released file, and `gold`, the right one's letter there. Hard items hold the four
    answers as `options` and for each whether it is true as `gold`.

    A question of which only Hard rows were read cannot be asked as Easy: that is a problem where
    the conditions were chosen, and passed over where they are the usual ones.

    Raises:
        UsageError: a source cannot be read at all.
    """
    for question in questions(sources):
        if isinstance(question, Item):
            yield question
            continue
        for condition in choices.conditions:
            if condition == HARD:
                asked = _hard_fields(question.hard)
            elif question.easy is not None:
                asked = _easy_fields(question.row, question.easy, choices.seed)
            elif choices.conditions == benchmark.usual:
                continue
            else:
                message = f"question {question.row} has no row with four options to ask as Easy"
                yield refused(question.item, Problem(message, "prompt_option_a"))
                continue
            yield _item(question, condition, asked)


async def answer(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """Ask an item: Easy by one question, Hard by four; score 1 or 0.

    An Easy answer is the letter of the chosen option in the released file, `steps` has the letter
    that was shown. An option whose text is the right one's is right, whichever its letter. A Hard
    answer is a list of true and false, null where there was none; its outcome is the first of its
    four questions' that was not answered.

    Raises:
        BackendError: the model gives no reply at all.
    """
    return await (_ask_easy if fields["condition"] == EASY else _ask_hard)(fields, model)


async def _ask_easy(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    options, order = fields["options"], fields["order"]
    texts = {"question": fields["question"], "mode": fields["mode"]}
    given = await model.choose(EASY_TASK, texts, options)
    if given.trouble is not None or given.place is None:
        return Answer(given.trouble or "unreadable", given.usage, reason=given.detail)
    right = options[order.index(fields["gold"])]
    chances = given.probabilities
    return Answer(
        "answered",
        given.usage,
        order[given.place],
        float(options[given.place] == right),
        dict(sorted(zip(order, chances, strict=True))) if chances else None,
        steps={"shown": LETTERS[given.place]},
    )


async def _ask_hard(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    options, gold = fields["options"], fields["gold"]
    steps: list[dict[str, Any]] = []
    usage = Usage()
    for option, true in zip(options, gold, strict=True):
        texts = {"question": fields["question"], "answer": option}
        given = await model.choose(HARD_TASK, texts, TRUTHS)
        usage += given.usage
        said = None if given.trouble is not None or given.place is None else given.place == 0
        step: dict[str, Any] = {"option": option, "answer": said, "gold": true}
        if said is None:
            step |= {"trouble": given.trouble or "unreadable", "detail": given.detail}
        elif given.probabilities:
            step["probability"] = given.probabilities[0]
        steps.append(step)
    said_all = [step["answer"] for step in steps]
    failed = next((step for step in steps if step["answer"] is None), None)
    outcome: Outcome = "answered" if failed is None else failed["trouble"]
    return Answer(
        outcome,
        usage,
        said_all,
        float(said_all == list(gold)) if failed is None else None,
        steps={"options": steps},
        reason=failed["detail"] if failed else None,
    )


def _easy_fields(row: str, easy: Easy, seed: int) -> dict[str, Any]:
    order = list(LETTERS)
    random.Random(f"{seed}/{row}").shuffle(order)
    return {
        "question": easy.question,
        "options": [easy.options[LETTERS.index(letter)] for letter in order],
        "order": order,
        "gold": easy.gold,
    }


def _hard_fields(hard: Hard) -> dict[str, Any]:
    return {
        "question": hard.question,
        "options": list(hard.options),
        "gold": list(hard.truths),
    }


def _item(question: Question, condition: str, asked: Mapping[str, Any]) -> Item:
    slices = {
        "mode": question.mode,
        "country": question.country,
        "region": region_of(question.country) if question.country else None,
        "topic": question.topic,
    }
    fields = {
        "id": f"{question.row}/{condition}",
        "condition": condition,
        "row": question.row,
        **asked,
        **{name: content for name, content in slices.items() if content is not None},
    }
    return Item(question.item.source, question.item.line, fields)


benchmark = Benchmark(
    name="culturalbench",
    title="CulturalBench: questions about everyday life, Easy and Hard",
    source='Chiu et al., "CulturalBench: A Robust, Diverse and Challenging Benchmark on Measuring '
    'the (Lack of) Cultural Knowledge of LLMs", sections 3.3 and 5, appendix D',
    conditions=(EASY, HARD),
    usual=(EASY, HARD),
    tasks=(EASY_TASK, HARD_TASK),
    items=items,
    answer=answer,
    tables=tables,
)
