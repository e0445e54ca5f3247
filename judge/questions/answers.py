"""A rubric's answers beside those of people: labels in its words, and whether a judge agrees."""

from __future__ import annotations

from judge.questions.rubric import Rubric
from judge.records.answers import OWN_ANSWERS, SEVERAL, words_for
from judge.records.labels.items import LabelledItem
from judge.verdict import SETTLED, Verdict


def in_words_of(item: LabelledItem, rubric: Rubric | None) -> LabelledItem:
    """The item with its labels in the rubric's words, and without those that mean no label; without
    a rubric, in their normal form."""
    if rubric is None:
        return item.answered(OWN_ANSWERS)
    rule = rubric.rule
    by_name = not (rule.equals_label or rule.counts or rule.bound or rule.by_label)
    words = words_for(rubric.answers, rule.passes) if by_name else {}
    return item.answered((*rubric.answers, *OWN_ANSWERS), words)


def is_strange(item: LabelledItem, rubric: Rubric) -> bool:
    """Whether one of the item's labels is neither an answer of the rubric nor undecided."""
    labels = [item.gold or "", *(annotation.answer for annotation in item.annotations)]
    parts = {part for label in labels if label for part in label.split(SEVERAL)}
    return not parts <= {*rubric.answers, *OWN_ANSWERS}


def nearest_answer(rubric: Rubric, score: float) -> str:
    """The answer whose score is nearest, the lower of two."""
    scores = zip(rubric.answers, rubric.scale or (), strict=True)
    return min(scores, key=lambda pair: abs(pair[1] - score))[0]


def agree(
    rubric: Rubric, answer: str, verdict: Verdict, said: str, label: str | None
) -> bool | None:
    """Whether a judge agrees with a person's answer, which is one of the rubric's; None if the
    judge is undecided.

    Args:
        verdict, said: the judge's verdict, and its answer, or mean score, in words (`Check.said`).
        label: the record's label, on which it may depend what passes.
    """
    if verdict not in SETTLED:
        return None
    if rubric.scale and said != verdict:
        return nearest_answer(rubric, float(said)) == answer
    # What passes may differ between the judge's run and this rubric.
    if verdict is Verdict.ANSWERED or rubric.graded or said in rubric.answers:
        return said == answer
    return rubric.rule.verdict(answer, label) is verdict
