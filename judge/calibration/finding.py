"""The findings of a calibration, as sentences. The first says how far a judge agrees, what that is
enough for, and how many more labels would halve the interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from judge.questions.patterns import shortened
from judge.records.base import clip
from judge.stats.intervals import percent
from judge.stats.significance import p_text

if TYPE_CHECKING:
    from judge.calibration.report import CheckReport, JudgeReport
    from judge.questions.rubric import Rubric
    from judge.stats.intervals import Estimate

USES = (
    (0.8, "verdicts on single records like these", "for other kinds of text"),
    (0.6, "verdicts that people sample", "for verdicts that people never see"),
    (0.4, "comparing sets of records", "for verdicts on single records"),
    (0.0, "choosing what people read first", "for rates or verdicts"),
)
"""Uses and misuses of a judge, by the lower end of its kappa's interval. The bounds are those of
Landis and Koch (1977), "The Measurement of Observer Agreement for Categorical Data", Biometrics
33(1); the uses are ours."""


def finding(check: CheckReport, judge: JudgeReport) -> str:
    """The first sentence about a judge, without its name.

    For scores it starts with the weighted kappa, the rank correlation and the error in points.
    """
    measures = judge.final
    accuracy, kappa, error = measures.accuracy, measures.agreement, measures.mean_error
    n, of = accuracy.n, measures.items
    if accuracy.value is None:
        return f"answered none of {of} labelled items: use it for nothing yet"
    over = str(n) if n == of else f"the {n} that it answered (of {of})"
    right = sum(row[reference] for reference, row in measures.confusion.items())
    weighted = "" if round(accuracy.value * n) == right else f", {accuracy.value:.2f} by weight"
    text = f"agrees with the labels in {right} of {over}{weighted}, kappa {kappa}"
    if measures.spearman is not None:
        text = f"weighted kappa {kappa}, rank correlation {measures.spearman}, {error} points off "
        text += f"on average, over {over}"
    parts = [f"{text}: {_use(judge, kappa)}", *_more_labels(check, kappa)]
    return "; ".join(parts)


def _use(judge: JudgeReport, kappa: Estimate) -> str:
    labels = [label for label, row in judge.final.confusion.items() if any(row.values())]
    if kappa.value is None or len(labels) < 2:
        return "all labels, or all answers, are the same: label records of every answer first"
    if kappa.low is None:
        if kappa.value == 1:
            return "where all agree nothing says how sure that is: label harder records, too"
        if kappa.value == 0:
            return "no more often than a guess would, so use it for nothing yet"
        return "too few labels for an interval, so use it for nothing yet: label more records"
    if kappa.high is not None and kappa.high < 0:
        return "it agrees less than a guess would: see which answer the labels mean"
    if kappa.low <= 0:
        return "it may be guessing, so use it for nothing yet"
    use, misuse = next((use, misuse) for bound, use, misuse in USES if kappa.low >= bound)
    text = f"use it for {use}, not {misuse}"
    if judge.controls is not None and not judge.controls.looks:
        text += f" (and it is not shown to read {judge.controls.field})"
    return text


def _more_labels(check: CheckReport, kappa: Estimate) -> list[str]:
    """How many more labels would halve the interval.

    Its width is proportional to one over the root of the number of independent clusters, so half
    the width needs four times as many: three times as many more.
    """
    if kappa.low is None:
        return []
    clusters = ""
    if check.clusters < check.with_reference:
        clusters = f", in about {_about(3 * check.clusters)} more clusters,"
    labels = f"about {_about(3 * check.with_reference)} more labels{clusters}"
    return [f"{labels} would halve the interval"]


def _about(count: int) -> int:
    """`count` rounded to two significant digits."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return round(count / unit) * unit


def differences(check: CheckReport) -> Iterator[str]:
    """Says whether each further judge agrees more often with the labels than the first."""
    for pair in check.differences:
        gain = pair.accuracy
        if gain.value is None:
            yield f"{pair.model} and {pair.than} answered no item both: nothing compares them"
            continue
        of = f"on the {gain.n} items that both answered, McNemar's p {p_text(pair.p)}"
        if pair.shown:
            better, worse = pair.model, pair.than
            if gain.value < 0:
                better, worse, gain = worse, better, -gain
            yield f"{better} agrees with the labels more often than {worse}, by {gain} {of}"
        else:
            ends = gain.low or 0.0, gain.high or 0.0
            apart = min(ends) > 0 or max(ends) < 0
            why = ": the interval shows one, the exact test for few items does not" if apart else ""
            yield (
                f"{pair.model} is not shown to be better or worse than {pair.than}: difference "
                f"{gain} {of}{why}"
            )


# ---------------------------------------------------------------- further sentences

NAMED = 5
"""Most records named that have no readable reply."""


def unanswered(check: CheckReport) -> Iterator[str]:
    """Says of each judge how many items have no readable reply, on which records, and why."""
    for judge in check.judges:
        why = shortened(judge.unanswered or "")
        if not judge.outcomes["answered"]:
            yield f"{judge.model}: answered none of {check.items} items: {why}"
        elif judge.lost:
            count = judge.outcomes["error"] + judge.outcomes["unreadable"]
            names = ", ".join(clip(name, 40) for name in judge.lost[:NAMED])
            more = f" and {len(judge.lost) - NAMED} more" if len(judge.lost) > NAMED else ""
            text = f"{count} of {check.items} items got no readable reply ({names}{more})"
            yield f"{judge.model}: {text}, the first: {why}"


def passing(rubric: Rubric) -> str:
    """Says which answers pass."""
    rule = rubric.rule
    if rule.counts:
        return "answers are counted; none passes or fails"
    if rule.equals_label:
        return "the answer passes that is the record's label"
    if rule.bound:
        return f"a score {rule.passes[0]} passes"
    others = (f"; of records with the label {of}, {answer}" for of, answer in rule.by_label.items())
    return f"{' or '.join(rule.passes)} passes{''.join(others)}"


def labels(check: CheckReport) -> Iterator[str]:
    """Says how many labels there are, what each part is for, and how each judge was asked."""
    parts = f"{check.fitted_on} for fitting, {check.held_out} held out for the report"
    if check.folds:
        parts = f"{check.folds} parts, each reported on by a fit to the others"
    yield (
        f"{check.items} items about {check.records} records, {check.with_reference} with a "
        f"reference; {parts}"
    )
    if check.joined:
        yield (
            f"{check.joined} of the records nearly repeat others and count as one with them: "
            f"{check.clusters} are independent"
        )
    for judge in check.judges:
        count = len(judge.questions)
        number = f", {count} question{'s' * (count > 1)}" if count else ""
        text = f"  {judge.model}: {judge.method}{number}, {judge.fit.how}"
        yield f"{text} ({judge.fit.reason})" if judge.fit.reason else text
        for reason, count in judge.skipped.items():
            yield f"  {judge.model}: {count} items not sent to it: {reason}"


def controls(check: CheckReport) -> Iterator[str]:
    """Says how much of each judge's agreement is left without the deciding field."""
    for judge in check.judges:
        if (looks := judge.controls) is not None:
            field = looks.field
            text = f"{judge.name}: {looks.measure} {looks.kappa}; without {field} "
            yield f"{text}{looks.blind}; difference {looks.above}"
            right = looks.as_swapped
            text = f"  with {field} of another record {looks.stays} of the answers stay"
            yield text if right is None else f"{text}, {right} are as they must be"
            if looks.contrast is not None and looks.together is not None:
                text = f"  with {field} turned round: {looks.measure} {looks.contrast}"
                yield f"{text}; both sets together {looks.together}"
            yield f"  {looks.finding()}"


def further(check: CheckReport) -> Iterator[str]:
    """Says how far each judge agrees on further sets, and with fewer labels."""
    for judge in check.judges:
        for source, measures in judge.test_sets.items():
            kappa, name = measures.agreement, measures.agreement_name
            text = f"{name} {kappa}, {kappa.n} of {measures.items} answered"
            if count := judge.left_out.get(source):
                text += f"; {count} left out, of records used for fitting (the same id or text)"
            yield f"{judge.name}: {source}: {text}"
        if judge.curve is not None:
            yield f"{judge.name}: {judge.curve.summary(judge.final.agreement_name)}"


def people(check: CheckReport) -> Iterator[str]:
    """Says how far people agree with one another, and with each judge."""
    for judge in check.judges:
        if (beside := judge.people) is not None:
            yield (
                f"{judge.model} beside {beside.annotators} people on {beside.human_human.n} items: "
                f"people agree with one another {beside.human_human}, with the judge "
                f"{beside.human_judge}"
            )
            if (test := beside.test) is not None:
                as_good = "as good" if test.passes else "not shown to be as good"
                yield (
                    f"{judge.model}: {as_good} as a person by the alternative annotator test: "
                    f"winning rate {test.winning_rate:.2f} among {len(test.p_values)} people"
                )


def policy(check: CheckReport) -> Iterator[str]:
    """Says what each judge of a cascade decides, and with which guarantee."""
    if check.policy is None:
        return
    for judge, stage, share in zip(
        check.judges, check.policy.stages, check.policy.decided, strict=True
    ):
        if stage.threshold is None:
            yield f"{judge.model} cannot be guaranteed: {stage.reason}"
        else:
            yield (
                f"{judge.model} decides from {stage.threshold:.3f} on: {percent(share)} of all; "
                f"agrees {stage.agreement} of {stage.agreement.n}, "
                f"at least {stage.agreement.low:.3f}"
            )
    agreed = [
        judge.profile.guarantee.agreement for judge in check.judges if judge.profile.guarantee
    ]
    answer, of = max(check.references, key=check.references.__getitem__), check.with_reference
    if agreed and (share := check.references[answer] / of) >= agreed[0]:
        yield (
            f"this alone shows no skill: always saying {answer} would agree with {percent(share)} "
            f"of the {of} labels"
        )
    yield f"passed on to people: {percent(round(check.policy.passed_on, 6))}"
