"""From what a judge reads off first tokens to the answers that labels give: fitted, and chosen.

Candidates are the rubric's own decision list, Platt scaling and isotonic regression of each single
question, and regularised multinomial logistic models of several; the one with the least log loss in
cross-validation over the training part is taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judge.judging.reading import LEAST_CHANCE, Chances, Isotonic, Logistic, Reader, features
from judge.rubric import Rubric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_ITEMS = 30
"""Fewest training items that anything is fitted to."""

LEAST_OF_A_CLASS = 5
"""Fewest training items of each answer, so that every fold can have one."""

FOLDS = 5
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the ridge penalty, on features of unit variance."""


@dataclass(frozen=True, slots=True)
class Read:
    """A training item: what was read off it, its reference answer, and the record it is about."""

    chances: Mapping[int, Chances]
    answer: str
    record: str


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate, and how it did in cross-validation: mean log loss in nats, accuracy (0 to 1)."""

    name: str
    questions: tuple[int, ...]
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The combination taken (None: the decision list as it stands), and all that was tried.

    `reason` says why nothing was fitted, where nothing was.
    """

    combination: Logistic | Isotonic | None = None
    how: str = "as it stands"
    tried: tuple[Tried, ...] = ()
    items: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    questions: tuple[int, ...]
    strength: float = 1.0


def fit(rubric: Rubric, reader: Reader, train: Sequence[Read], *, seed: int = 0) -> Fit:
    """The best combination for these items.

    Folds keep the items of a record together. Questions are added one at a time, the best first,
    as long as any is left; every set on the way is a candidate.

    Args:
        reader: how the rubric is read where nothing is fitted.
        seed: of the folds.

    Returns:
        A fit without a combination where there are too few items (`LEAST_ITEMS`), too few of an
        answer (`LEAST_OF_A_CLASS`) or of records, with the reason, and where the decision list
        does best.
    """
    counts = Counter(one.answer for one in train)
    answers = [answer for answer in rubric.answers if counts[answer]]
    if len(train) < LEAST_ITEMS:
        return Fit(items=len(train), reason=f"{len(train)} items to fit to; {LEAST_ITEMS} wanted")
    if len(answers) < 2 or min(counts[a] for a in answers) < LEAST_OF_A_CLASS:
        told = ", ".join(f"{counts[a]} {a}" for a in rubric.answers)
        reason = f"each answer needs {LEAST_OF_A_CLASS} items to fit to; there are {told}"
        return Fit(items=len(train), reason=reason)
    bench = _Bench(rubric, reader, train, answers, seed)
    if not bench.folds:
        reason = "the answers are not spread over enough records to fit to some and try on others"
        return Fit(items=len(train), reason=reason)
    tried = list(bench.tried())
    best = min(tried, key=lambda pair: pair[1].log_loss)
    candidate, score = best
    combination = None if candidate is None else bench.fitted(candidate, range(len(train)))
    return Fit(combination, score.name, tuple(one for _, one in tried), len(train))


@dataclass(slots=True)
class _Bench:
    """Candidates tried on the same folds of the same items."""

    rubric: Rubric
    reader: Reader
    train: Sequence[Read]
    answers: Sequence[str]
    seed: int
    folds: list[tuple[list[int], list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        from sklearn.model_selection import StratifiedGroupKFold

        splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=self.seed)
        y = [one.answer for one in self.train]
        groups = [one.record for one in self.train]
        if len(set(groups)) < FOLDS:
            return
        self.folds = [
            (inside.tolist(), outside.tolist())
            for inside, outside in splitter.split([[0]] * len(y), y, groups)
            if len(outside) and len({y[place] for place in inside}) == len(self.answers)
        ]

    def tried(self) -> Iterator[tuple[_Candidate | None, Tried]]:
        yield None, self._as_it_stands()
        questions = sorted(self.train[0].chances)
        single: dict[int, float] = {}
        for question in questions:
            for candidate in self._of_one(question):
                tried = self._tried(candidate)
                single[question] = min(tried.log_loss, single.get(question, math.inf))
                yield candidate, tried
        chosen: tuple[int, ...] = (min(single, key=lambda q: single[q]),)
        while len(chosen) < len(questions):
            grown = [
                (candidate, self._tried(candidate))
                for question in questions
                if question not in chosen
                for candidate in [_Candidate("logistic", (*chosen, question), 0.1)]
            ]
            chosen = min(grown, key=lambda pair: pair[1].log_loss)[0].questions
            for strength in STRENGTHS:
                candidate = _Candidate("logistic", tuple(sorted(chosen)), strength)
                yield candidate, self._tried(candidate)

    def _of_one(self, question: int) -> Iterator[_Candidate]:
        two = len(self.train[0].chances[question]) == 2 and len(self.answers) == 2
        for strength in STRENGTHS:
            yield _Candidate("platt" if two else "logistic", (question,), strength)
        if two:
            yield _Candidate("isotonic", (question,))

    def _as_it_stands(self) -> Tried:
        pairs = []
        for place in sorted(place for _, outside in self.folds for place in outside):
            one = self.train[place]
            decided = self.reader.decide(self.rubric, one.chances)
            pairs.append((decided.probabilities, one.answer))
        return _score("as it stands", self.reader.wanted(self.rubric), pairs)

    def _tried(self, candidate: _Candidate) -> Tried:
        pairs = []
        for inside, outside in self.folds:
            made = self.fitted(candidate, inside)
            for place in outside:
                one = self.train[place]
                pairs.append((made.probabilities(one.chances), one.answer))
        return _score(candidate.name, candidate.questions, pairs)

    def fitted(self, candidate: _Candidate, places: Sequence[int]) -> Logistic | Isotonic:
        part = [self.train[place] for place in places]
        if candidate.name == "isotonic":
            return _isotonic(part, candidate.questions[0], self.answers)
        return _logistic(part, candidate, self.answers)


def _score(
    name: str, questions: tuple[int, ...], pairs: Sequence[tuple[Mapping[str, float], str]]
) -> Tried:
    losses = [-math.log(max(found.get(true, 0.0), LEAST_CHANCE)) for found, true in pairs]
    right = [max(found, key=lambda a: found[a]) == true for found, true in pairs]
    return Tried(name, questions, sum(losses) / len(losses), sum(right) / len(right))


def _logistic(part: Sequence[Read], candidate: _Candidate, answers: Sequence[str]) -> Logistic:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    x = np.array([[f for q in candidate.questions for f in features(r.chances[q])] for r in part])
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0] = 1.0
    model = LogisticRegression(C=candidate.strength, max_iter=5000)
    model.fit((x - mean) / spread, [one.answer for one in part])
    weights, intercepts = _rows(model.coef_, model.intercept_, len(answers))
    order = [list(model.classes_).index(answer) for answer in answers]
    weights = weights[order] / spread
    intercepts = intercepts[order] - weights @ mean
    return Logistic(
        questions=candidate.questions,
        answers=tuple(answers),
        weights=tuple(tuple(round(float(w), 6) for w in row) for row in weights),
        intercepts=tuple(round(float(b), 6) for b in intercepts),
    )


def _rows(
    weights: NDArray[np.float64], intercepts: NDArray[np.float64], answers: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A row for each class; scikit-learn gives two classes one row, for the second of them."""
    import numpy as np

    if answers > 2:
        return weights, intercepts
    half = np.vstack([-weights / 2, weights / 2])
    return half, np.concatenate([-intercepts / 2, intercepts / 2])


def _isotonic(part: Sequence[Read], question: int, answers: Sequence[str]) -> Isotonic:
    from sklearn.isotonic import IsotonicRegression

    x = [one.chances[question][0] for one in part]
    y = [float(one.answer == answers[0]) for one in part]
    model = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    xs = [round(float(corner), 6) for corner in model.X_thresholds_]
    ys = [round(float(corner), 6) for corner in model.y_thresholds_]
    return Isotonic(
        questions=(question,), answers=(answers[0], answers[1]), xs=tuple(xs), ys=tuple(ys)
    )
