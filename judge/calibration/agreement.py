"""How far people agree with one another, and their majority with gold.

The figures make up the papers' tables: NormAd table 3 (a row a check: Fleiss's kappa, pairwise
agreement, accuracy of the majority; the mean row) and table 4 (a row a group: accuracy for each
gold label, Fleiss's kappa, alpha; the mean row), CALI figure 3 (the majorities of two groups
against each other, Diverge included), and CulturalBench step 3 (questions with one majority, with
several, with none).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from judge.calibration.plain import plain
from judge.errors import UsageError
from judge.records.labels import Annotation, LabelledItem
from judge.stats.agreement import (
    agreement_across,
    class_kappa,
    cohen_kappa,
    count_table,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from judge.stats.bootstrap import bootstrap
from judge.stats.intervals import Estimate
from judge.stats.votes import MORE_THAN_HALF, Threshold, majorities, majority

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[..., float | None]

Drawn = tuple[Any, Any, str]
"""What a statistic is computed from: two answers (or a place in a table), and their record."""

OWN_ANSWERS = frozenset(
    {"unsure", "unanswerable", "don't know", "i don't know", "can't tell", "discard"}
)
"""Answers that decide nothing: counted as answers of their own."""

JOINED = "|"
"""Stands between the answers of an annotator who gave several (AmbiEnt, CulturalBench 3.2)."""

DIVERGE = "diverge"
"""What CALI (3.6) calls a question without a majority."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured: `by` names a slice to group results by, `draws` 0 gives no intervals."""

    majority: Threshold = MORE_THAN_HALF
    by: str | None = None
    draws: int = 1000
    seed: int = 0


@dataclass(slots=True)
class Question:
    """One check about one record (or value), with each annotator's answer."""

    record: str
    check: str
    gold: str | None
    annotations: dict[str, Annotation] = field(default_factory=dict)
    slices: dict[str, str] = field(default_factory=dict)


Rows = Sequence[tuple[Question, Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Figures:
    """One set of annotators over one set of questions.

    `answers` counts every answer. `majorities` counts the majority answers of the questions:
    several of one question (where annotators may give several) joined by bars, DIVERGE for none.

    `measures` are, as far as they can be computed:

    - `fleiss` (kappa), `pairwise` (percent agreement), `alpha` (Krippendorff's), over the questions
      with two ratings (n) out of those with one (of);
    - `cohen` (kappa) for exactly two annotators;
    - `fleiss of ANSWER`, against all other answers (CALI 3.6), where there are more than two;
    - `undecided`, the share of labels that decide nothing ("unsure", "unanswerable"); in all other
      measures these are a class like the others;
    - `accuracy` of the majority, over the questions with gold and a majority (n) out of those with
      gold (of), and `accuracy of GOLD`, the same for each gold answer.
    """

    questions: int
    labels: int
    annotators: int
    answers: Mapping[str, int]
    majorities: Mapping[str, int]
    measures: Mapping[str, Estimate]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many questions have one majority answer, several, or none."""
        diverge = self.majorities.get(DIVERGE, 0)
        several = sum(count for answer, count in self.majorities.items() if JOINED in answer)
        single = self.questions - several - diverge
        return {"single": single, "several": several, "diverge": diverge}


@dataclass(frozen=True, slots=True)
class Across:
    """Two groups against each other.

    `measures`: `pairwise` (one rater from each, over the questions that both answered (n) out of
    all (of)); `same`, the share of same majorities where both groups have one, and `kappa`, Cohen's
    of these. `majorities` counts the second group's under each of the first's, DIVERGE included.
    """

    first: str
    second: str
    measures: Mapping[str, Estimate]
    majorities: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class CheckAgreement:
    """All figures of one check: all annotators, each group, each slice, groups in pairs."""

    check: str
    classes: tuple[str, ...]
    overall: Figures
    groups: Mapping[str, Figures]
    parts: Mapping[str, Figures]
    across: Sequence[Across]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report. `repeated` answers by an annotator who had answered the question before were left
    out, `changed` of them differed; of `conflicting` second gold answers the first one holds."""

    checks: Sequence[CheckAgreement]
    repeated: int = 0
    changed: int = 0
    conflicting: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; numbers rounded to 6 places, undefined ones null."""
        return {
            "repeated": self.repeated,
            "changed": self.changed,
            "conflicting_gold": self.conflicting,
            "checks": [
                {**plain(one), "group_means": plain(means(list(one.groups.values())))}
                for one in self.checks
            ],
            "means": plain(means([one.overall for one in self.checks])),
        }


def agreement(items: Iterable[LabelledItem], options: Options | None = None) -> Agreement:
    """The report on the items' annotations; items without any only bring gold.

    Items of the same record, check and number become one question, so that gold may come from
    another file. Intervals come from a bootstrap of records: questions about one record are drawn
    together, the annotators are taken as they are.

    Raises:
        UsageError: a field to group results by that no record has.
    """
    options = options or Options()
    questions, repeats = _gather(items)
    checks: dict[str, list[Question]] = {}
    for question in questions:
        if question.annotations:
            checks.setdefault(question.check, []).append(question)
    known = {name for asked in checks.values() for question in asked for name in question.slices}
    if options.by is not None and checks and options.by not in known:
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(f"no record has '{options.by}' to slice by; records have: {there}")
    reports = [_check(name, asked, options) for name, asked in checks.items()]
    return Agreement(reports, **repeats)


def means(rows: Sequence[Figures]) -> dict[str, Estimate]:
    """Each measure's mean over the rows where it is defined (n), out of all rows (of).

    The last row of NormAd's tables 3 (rows are checks) and 4 (rows are groups).
    """
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row.measures):
        values = [row.measures[name].value for row in rows if name in row.measures]
        defined = [value for value in values if value is not None]
        average = sum(defined) / len(defined) if defined else None
        found[name] = Estimate(average, n=len(defined), of=len(rows))
    return found


def sorted_answer(answer: str) -> str:
    """The answer; several joined by a bar are sorted and each named once."""
    return JOINED.join(sorted({part.strip() for part in answer.split(JOINED)}))


def _gather(items: Iterable[LabelledItem]) -> tuple[list[Question], dict[str, int]]:
    questions: dict[tuple[str, str, int], Question] = {}
    counts = {"repeated": 0, "changed": 0, "conflicting": 0}
    for item in items:
        gold = None if item.gold is None else sorted_answer(item.gold)
        key = (item.record, item.check, item.number)
        question = questions.setdefault(key, Question(item.record, item.check, gold))
        counts["conflicting"] += None not in (gold, question.gold) and gold != question.gold
        question.gold = gold if question.gold is None else question.gold
        question.slices = {**item.slices, **question.slices}
        for given in item.annotations:
            answer = sorted_answer(given.answer)
            earlier = question.annotations.get(given.annotator)
            if earlier is None:
                question.annotations[given.annotator] = replace(given, answer=answer)
            else:
                counts["repeated"] += 1
                counts["changed"] += answer != earlier.answer
    return list(questions.values()), counts


def _check(check: str, questions: Sequence[Question], options: Options) -> CheckAgreement:
    classes = _classes(questions)
    names = {a.group for q in questions for a in q.annotations.values() if a.group is not None}
    groups = {name: _rows(questions, name) for name in sorted(names)}
    parts: dict[str, list[Question]] = defaultdict(list)
    if options.by is not None:
        for question in questions:
            parts[question.slices.get(options.by, "(none)")].append(question)
    crosswise = [
        Across(a, b, *_across(groups[a], groups[b], len(questions), classes, options))
        for a, b in combinations(groups, 2)
    ]
    return CheckAgreement(
        check,
        classes,
        _figures(_rows(questions), classes, options),
        {name: _figures(rows, classes, options) for name, rows in groups.items()},
        {name: _figures(_rows(parts[name]), classes, options) for name in sorted(parts)},
        [one for one in crosswise if one.measures["pairwise"].n],
    )


def _classes(questions: Sequence[Question]) -> tuple[str, ...]:
    """Every answer given or gold, sorted (numbers by their size), undecided ones last."""
    found = {a.answer for q in questions for a in q.annotations.values()}
    found |= {q.gold for q in questions if q.gold is not None}

    def place(answer: str) -> tuple[bool, int, str]:
        return answer in OWN_ANSWERS, int(answer) if answer.isdecimal() else 0, answer

    return tuple(sorted(found, key=place))


def _rows(questions: Sequence[Question], group: str | None = None) -> Rows:
    """The questions that a group answered (None: all annotators), with its answers by annotator."""
    given = [
        (q, {name: a.answer for name, a in q.annotations.items() if group in (None, a.group)})
        for q in questions
    ]
    return [(question, answers) for question, answers in given if answers]


def _figures(rows: Rows, classes: Sequence[str], options: Options) -> Figures:
    given = [list(answers.values()) for _, answers in rows]
    annotators = sorted({name for _, answers in rows for name in answers})
    counts = count_table(given, classes)
    answers = Counter(answer for one in given for answer in one)
    won = [_winner(one, options.majority) for one in given]
    statistics: dict[str, Statistic] = {
        "fleiss": fleiss_kappa,
        "pairwise": percent_agreement,
        "alpha": krippendorff_alpha,
    }
    for column, name in enumerate(classes if len(classes) > 2 else ()):
        statistics[f"fleiss of {name}"] = partial(class_kappa, column=column)
    raters = counts.sum(axis=1)
    paired = [(at, None, q.record) for at, (q, _) in enumerate(rows) if raters[at] >= 2]
    measures = {
        name: _estimate(_of_table(statistic, counts), paired, len(rows), options)
        for name, statistic in statistics.items()
    }
    undecided, labels = sum(answers[name] for name in OWN_ANSWERS), answers.total()
    measures["undecided"] = Estimate(undecided / labels if labels else None, n=undecided, of=labels)
    if len(annotators) == 2:
        one, other = annotators
        pairs = [(answers.get(one), answers.get(other), q.record) for q, answers in rows]
        both = [pair for pair in pairs if None not in pair]
        measures["cohen"] = _estimate(_kappa, both, len(rows), options)
    golden = [
        (winner, question.gold, question.record)
        for winner, (question, _) in zip(won, rows, strict=True)
        if question.gold is not None
    ]
    for name in ("", *classes):
        held = [one for one in golden if name in ("", one[1])]
        if held:
            decided = [one for one in held if one[0] is not None]
            key = f"accuracy of {name}" if name else "accuracy"
            measures[key] = _estimate(_share_equal, decided, len(held), options)
    return Figures(
        questions=len(rows),
        labels=labels,
        annotators=len(annotators),
        answers={name: answers[name] for name in classes},
        majorities=dict(sorted(Counter(winner or DIVERGE for winner in won).items())),
        measures=measures,
    )


def _of_table(
    statistic: Statistic, *tables: NDArray[np.int64]
) -> Callable[[Sequence[Drawn]], float | None]:
    """A statistic of count tables as one of places in them."""

    def of_places(drawn: Sequence[Drawn]) -> float | None:
        at = [place for place, _, _ in drawn]
        return statistic(*(table[at] for table in tables))

    return of_places


def _winner(answers: Sequence[str], threshold: Threshold) -> str | None:
    """The majority's answer; several, where annotators may give several, joined; None: Diverge."""
    if any(JOINED in answer for answer in answers):
        return JOINED.join(majorities([a.split(JOINED) for a in answers], threshold)) or None
    return majority(answers, threshold)


def _across(
    one: Rows, other: Rows, of: int, classes: Sequence[str], options: Options
) -> tuple[dict[str, Estimate], dict[str, dict[str, int]]]:
    theirs = {id(question): list(answers.values()) for question, answers in other}
    shared = [
        (question.record, list(answers.values()), theirs[id(question)])
        for question, answers in one
        if id(question) in theirs
    ]
    first, second = (count_table([row[n] for row in shared], classes) for n in (1, 2))

    won = [
        (_winner(a, options.majority), _winner(b, options.majority), record)
        for record, a, b in shared
    ]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b, _ in won:
        table[a or DIVERGE][b or DIVERGE] += 1
    places = [(at, None, record) for at, (record, _, _) in enumerate(shared)]
    decided = [(a, b, record) for a, b, record in won if a is not None and b is not None]
    measures = {
        "pairwise": _estimate(_of_table(agreement_across, first, second), places, of, options),
        "same": _estimate(_share_equal, decided, len(shared), options),
        "kappa": _estimate(_kappa, decided, len(shared), options),
    }
    return measures, {name: dict(counts) for name, counts in table.items()}


def _estimate(
    statistic: Callable[[Sequence[Drawn]], float | None],
    drawn: Sequence[Drawn],
    of: int,
    options: Options,
) -> Estimate:
    """The statistic over triples whose last part is the record, by which they are drawn."""
    if not drawn or not options.draws:
        return Estimate(statistic(drawn) if drawn else None, n=len(drawn), of=of)
    records = [record for _, _, record in drawn]
    found = bootstrap(statistic, drawn, records, draws=options.draws, seed=options.seed)
    return replace(found, of=of)


def _kappa(pairs: Sequence[Drawn]) -> float | None:
    return cohen_kappa([one for one, _, _ in pairs], [other for _, other, _ in pairs])


def _share_equal(pairs: Sequence[Drawn]) -> float | None:
    return sum(a == b for a, b, _ in pairs) / len(pairs) if pairs else None
