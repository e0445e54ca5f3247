"""CulturalBench: what a model knows of everyday life in 45 countries, asked in two ways.

Chiu et al., "CulturalBench", sections 3.3 and 5 and appendix D. Easy: a question with four options,
one of them right; chance is 25 %. Hard: the same question's four answers, each asked alone as true
or false, right only if all four are; chance is 6.25 %.

Deviation from the paper: Easy's options are shuffled, because A is right in 54 % of the released
rows (`--option shuffle=false` shows them as released).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from judge.evaluation.benchmark import (
    Benchmark,
    Choices,
    Fields,
    MeasuredModel,
    NoAnswer,
    Options,
)
from judge.evaluation.countries import region_of
from judge.evaluation.culturalbench_rows import LETTERS, Question, questions
from judge.evaluation.culturalbench_tables import EASY, HARD, tables
from judge.evaluation.rows import asked
from judge.records import Item, Problem
from judge.records.fields import refused
from judge.weights.encoder import SentenceEncoder

EASY_TASK, HARD_TASK = "culturalbench_easy", "culturalbench_hard"

Similarity = Callable[[str, str], float | None]


class Shown(Options):
    """How questions are shown."""

    shuffle: bool = True


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """An item for each question and condition, from Easy rows, Hard rows or both.

    Easy items hold their options in the order in which they are shown, `order` with each option's
    letter in the released file, and `gold`, the right one's letter there. A question has the same
    order in every run with the same seed. Hard items hold the four answers as `options` and for
    each whether it is true as `gold`.

    A question of which only Hard rows were read cannot be asked as Easy; where the user named the
    conditions, that is a problem.

    Raises:
        UsageError: a source cannot be read at all.
    """
    shuffled = not isinstance(choices.options, Shown) or choices.options.shuffle
    for question in questions(sources):
        if isinstance(question, Item):
            yield question
            continue
        for condition in choices.conditions:
            fields = _fields(question, condition, choices.seed, shuffled)
            if fields is not None:
                yield asked(question.item, condition, fields, row=question.row)
            elif choices.chosen:
                message = f"question {question.row} has no row with four options to ask as Easy"
                yield refused(question.item, Problem(message, "prompt_option_a"))


async def ask(fields: Fields, model: MeasuredModel) -> str | list[bool]:
    """Ask Easy by one question, Hard by four.

    An Easy answer is the letter of the chosen option in the released file. A Hard answer is a list
    of true and false; with null in it, where the model did not answer, there is no answer, and the
    outcome is the first one's that is missing.
    """
    if fields["condition"] == EASY:
        texts = {"question": fields["question"], "mode": fields["mode"]}
        return await model.choose(EASY_TASK, texts, fields["options"], fields["order"])
    said: list[bool | None] = []
    chances: dict[str, float] = {}
    lost: NoAnswer | None = None
    for number, option in enumerate(fields["options"], 1):
        texts = {"question": fields["question"], "answer": option}
        try:
            said.append(await model.choose(HARD_TASK, texts, ("True", "False")) == "True")
        except NoAnswer as no:
            said.append(None)
            lost = lost or no
            continue
        if model.probabilities is not None:
            chances[str(number)] = model.probabilities["True"]
    model.probabilities = chances or None
    if lost is not None:
        raise NoAnswer(lost.outcome, lost.detail, said)
    return [one is True for one in said]


def score(fields: Fields, answer: Any) -> float:
    """1 if the answer is right: the right option's letter or text; all four of Hard.

    Two released questions repeat an option's text: either letter is right.

    Raises:
        ValueError: no letter, or no list of four truth values.
    """
    if fields["condition"] == HARD:
        if not isinstance(answer, list) or [type(one) for one in answer] != [bool] * len(LETTERS):
            raise ValueError(f"{answer!r} is no list of {len(LETTERS)} of true and false")
        return float(answer == list(fields["gold"]))
    if answer not in LETTERS:
        raise ValueError(f"{answer!r} is none of {', '.join(LETTERS)}")
    options = dict(zip(fields["order"], fields["options"], strict=True))
    return float(options[answer] == options[fields["gold"]])


def embedding_guesser(similarity: Similarity | None = None) -> Callable[[Fields], Any]:
    """A baseline that knows nothing: it guesses by how alike an option and a country's name are.

    Easy (section 5.1): the option with the highest cosine, the question unseen. Hard: an answer is
    true where no other answer of its question has a higher cosine. The paper has no guesser there;
    this one knows that one of the four is true, which a measured model is not told.

    Args:
        similarity: how alike two texts are, None where that is undefined; the cosine of
            all-MiniLM-L6-v2 if left out.

    Raises:
        UsageError: the weights, or the packages that run them, are not installed.
    """
    alike = similarity or SentenceEncoder().similarity

    def guess(fields: Fields) -> str | list[bool]:
        country = fields.get("country")
        if not country:
            raise NoAnswer("unreadable", "the row names no country to compare options with")
        found = [alike(country, option) for option in fields["options"]]
        cosines = [-2.0 if one is None else one for one in found]
        if fields["condition"] == HARD:
            return [cosine == max(cosines) for cosine in cosines]
        letter: str = fields["order"][cosines.index(max(cosines))]
        return letter

    return guess


def _fields(
    question: Question, condition: str, seed: int, shuffled: bool
) -> Mapping[str, Any] | None:
    about = {
        "mode": question.mode,
        "country": question.country,
        "region": region_of(question.country) if question.country else None,
        "topic": question.topic,
    }
    slices = {name: content for name, content in about.items() if content is not None}
    if condition == HARD:
        hard = question.hard
        shown = {"options": list(hard.options), "gold": list(hard.truths)}
        return {"question": hard.question, **shown, **slices}
    easy = question.easy
    if easy is None:
        return None
    order = list(LETTERS)
    if shuffled:
        random.Random(f"{seed}/{question.row}").shuffle(order)
    options = [easy.options[LETTERS.index(letter)] for letter in order]
    shown = {"options": options, "order": order, "gold": easy.gold}
    return {"question": easy.question, **shown, **slices}


benchmark = Benchmark(
    name="culturalbench",
    title="CulturalBench: questions about everyday life, Easy and Hard",
    source='Chiu et al., "CulturalBench: A Robust, Diverse and Challenging Benchmark on Measuring '
    'the (Lack of) Cultural Knowledge of LLMs", sections 3.3 and 5, appendix D',
    conditions=(EASY, HARD),
    tasks=(EASY_TASK, HARD_TASK),
    items=items,
    ask=ask,
    score=score,
    tables=tables,
    options=Shown,
    baselines={"embedding": embedding_guesser},
)
