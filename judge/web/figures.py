"""Figures about the answers on a page so far: how precisely they measure a judge, how far people
agree with one another, and how far the judge agrees with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import combinations

from judge.records.answers import spelt_as
from judge.records.labels.items import LabelledItem
from judge.report.page import between, percent
from judge.stats.intervals import Estimate, effective_size, score_limits
from judge.web.session import PageQuestion, Session

USUAL = 0.9
"""Agreement with the judge that is assumed for the width of the interval."""

MOST = 5
"""Most differences from the judge that are listed."""

_DRAWS = 200

_DRAWN = ", each weighted by the number of records that it stands for"


def half_width(labels: float) -> float:
    """Half the width of the 95 % interval of an agreement of `USUAL` over this many labels."""
    low, high = score_limits(USUAL, max(labels, 1))
    return (high - low) / 2


def progress(session: Session) -> str:
    """How many questions are answered, and the intervals of each check's labels now and at the end;
    checks that have the same are not named."""
    told = f"{session.answered} of {len(session.questions)} answered"
    checks = dict.fromkeys(place.check for place in session.places)
    widths = {name: _widths(session, name) for name in checks} if session.blind else {}
    if len({*widths.values()}) == 1:
        widths = {"": next(iter(widths.values()))}
    parts = [f"{f'{name}: ' * bool(name)}{width}" for name, width in widths.items() if width]
    usual = f" (if it agrees {USUAL:.0%} of the time)" if parts else ""
    return "; ".join([told, *parts]) + usual


def _widths(session: Session, check: str) -> str:
    """How precisely the labels of a check measure a judge, now and at the end; empty without any.

    An answer that is not one of the question's, such as "unsure", is not a label.
    """
    answers = session.answers.own
    pairs = zip(session.places, session.questions, strict=True)
    items = [(place, question) for place, question in pairs if place.check == check]
    labels = [
        q.weight or 1.0
        for place, q in items
        if place in answers and spelt_as(answers[place].answer, q.rubric.answers)
    ]
    coming = [q.weight or 1.0 for place, q in items if place not in answers]
    if not labels:
        return ""
    now, end = (100 * half_width(effective_size(some)) for some in (labels, labels + coming))
    text = f"{len(labels)} label{'' if len(labels) == 1 else 's'} measure"
    text += f"{'s' if len(labels) == 1 else ''} a judge's agreement to ± {now:.0f} points"
    return text + (f", all {len(labels + coming)} to ± {end:.0f}" if coming else "")


_KAPPAS = ("weighted", "cohen", "fleiss")
"""The measure of `judge agreement` that is shown: the first that it has."""


def among_people(session: Session) -> list[str]:
    """How far the annotators agree, a sentence for each check that two of them answered: the share
    of agreeing pairs, and kappa, as `judge agreement` has them."""
    items = [item for item in session.items() if len(item.annotations) > 1]
    sentences = []
    for check in dict.fromkeys(item.check for item in items):
        part = [item for item in items if item.check == check]
        share = _weighted([(item.weight, _pairwise(item)) for item in part])
        names = sorted({one.annotator for item in part for one in item.annotations})
        both = "both" if len(names) == 2 else "two or more of them"
        questions = "1 question" if len(part) == 1 else f"{len(part)} questions"
        told = f"{', '.join(names)}: {questions} answered by {both} ({check}), the same answer "
        told += f"{percent(share.value)} of the time ({between(share)})"
        told += _DRAWN if len({item.weight for item in part}) > 1 else ""
        if all(map(find_spec, ("numpy", "scipy"))):
            from judge.calibration.people import agreement

            measures = agreement(part, draws=_DRAWS).checks[0].overall.measures
            name, kappa = next((n, measures[n]) for n in _KAPPAS if n in measures)
            told += f", {'weighted ' * (name == 'weighted')}κ {kappa}" * (kappa.value is not None)
        sentences.append(told)
    return sentences


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """A check's judge compared with the annotator: `share` is the weighted share of equal answers,
    `drawn` whether weights differ, `counts` the number by (person's answer, judge's), `differences`
    the latest, `open` the number of answers that the judge or the person left undecided."""

    check: str
    share: Estimate
    drawn: bool = False
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: Sequence[PageQuestion] = ()
    open: int = 0


def beside_judge(session: Session) -> list[JudgeComparison]:
    """The comparison for each check that the judge was asked."""
    own = session.answers.own
    places = dict(zip(session.places, session.questions, strict=True))
    comparisons = []
    for check in dict.fromkeys(place.check for place in session.places):
        asked = [(q, own[p].answer) for p in own if p.check == check and (q := places.get(p))]
        asked = [(question, answer) for question, answer in asked if question.judge]
        agree = [(question, answer, question.agrees(answer)) for question, answer in asked]
        settled = [(question, alike) for question, _, alike in agree if alike is not None]
        if not asked:
            continue
        counts = Counter((answer, q.judge.said) for q, answer in asked if q.judge)
        share = _weighted([(q.weight or 1.0, alike) for q, alike in settled])
        differing = [question for question, alike in settled if not alike]
        undecided = len(asked) - len(settled)
        drawn = len({question.weight for question, _ in settled}) > 1
        comparisons.append(
            JudgeComparison(check, share, drawn, counts, differing[: -MOST - 1 : -1], undecided)
        )
    return comparisons


def _pairwise(item: LabelledItem) -> float:
    """The share of an item's pairs of annotators that agree."""
    pairs = [one.answer == two.answer for one, two in combinations(item.annotations, 2)]
    return sum(pairs) / len(pairs)


def _weighted(hits: Sequence[tuple[float, float]]) -> Estimate:
    """The weighted mean of hits (0 to 1), with Wilson's interval over the effective number of
    items."""
    total = sum(weight for weight, _ in hits)
    if not total:
        return Estimate(None)
    share = sum(weight * hit for weight, hit in hits) / total
    limits = score_limits(share, effective_size([weight for weight, _ in hits]))
    return Estimate(share, *limits, n=len(hits), of=len(hits))
