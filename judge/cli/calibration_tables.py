"""What `judge calibrate` prints: how far each judge agrees with the labels, and where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from judge.cli.printing import print_table, say, shortened
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.calibration.measures import Measures
    from judge.calibration.report import Calibration, CheckReport, Disagreement, JudgeReport

UNDEFINED = "–"
_SHOWN = 400


def number(estimate: Estimate | None) -> str:
    """Value and interval to two places; a dash where it is undefined or there is none."""
    return UNDEFINED if estimate is None else str(estimate)


def print_tables(found: Calibration, show: int) -> None:
    """Every check: disagreements first, then measures, confusion, slices, people, policy.

    Args:
        show: so many disagreements a judge.
    """
    for check in found.checks:
        say("\n".join(["", check.check, *_labels(check), *_disagreements(check, show)]))
        rows = [(name, _row(one)) for judge in check.judges for name, one in _readings(judge)]
        print_table(["judge", *rows[0][1]], [[name, *row.values()] for name, row in rows])
        for judge in check.judges:
            confusion = judge.final.confusion
            print_table(
                ["label", *confusion.columns],
                [
                    [name, *map(str, counts)]
                    for name, counts in zip(confusion.rows, confusion.counts, strict=True)
                ],
                title=f"answers of {_final(judge)}",
            )
            for name, parts in judge.by.items():
                by_size = sorted(parts.items(), key=lambda pair: (-pair[1].items, pair[0]))
                print_table(
                    [name, "items", "answered", "accuracy", "kappa"],
                    [
                        [value, str(m.items), str(m.accuracy.n), str(m.accuracy), str(m.kappa)]
                        for value, m in by_size
                    ],
                    title=f"{_final(judge)} by {name}",
                )
        for line in (*_people(check), *_policy(check)):
            say(line)


def _labels(check: CheckReport) -> Iterator[str]:
    yield (
        f"{check.items} items about {check.records} records, {check.referenced} with a reference; "
        f"{check.fitted_on} fitted to, {check.held_out} kept apart and reported on"
    )
    for judge in check.judges:
        asked = f", {len(judge.questions)} questions" if judge.questions else ""
        told = f"  {judge.model}: {judge.reading} reading{asked}, {judge.fit.how}"
        yield f"{told} ({judge.fit.reason})" if judge.fit.reason else told
        for reason, count in judge.skipped.items():
            yield f"  {judge.model}: {count} items could not be put to it: {reason}"


def _disagreements(check: CheckReport, show: int) -> Iterator[str]:
    for judge in check.judges:
        found = [one for one in judge.disagreements if one.held_out]
        if not found or not show:
            continue
        who = f"{_final(judge)}," if judge.calibrated else judge.model
        apart = " kept apart" if check.held_out < check.items else ""
        told = f"{who} disagrees with {len(found)} of the {judge.final.items} labels{apart}"
        yield f"{told}; the surest {min(show, len(found))}:"
        for one in found[:show]:
            yield from _disagreement(one)


def _disagreement(one: Disagreement) -> Iterator[str]:
    number = f", value {one.number}" if one.number else ""
    sure = "" if one.confidence is None else f" ({one.confidence:.2f})"
    votes = ", ".join(f"{n} {answer}" for answer, n in one.votes.items())
    said = f"  {one.record}{number}: says {one.answer}{sure}, the label is {one.reference}"
    yield f"{said} ({votes})" if votes else said
    shown = {**one.fields, "evidence": one.evidence}
    yield from (
        f"    {name}: {shortened(str(text), _SHOWN)}" for name, text in shown.items() if text
    )


def _readings(judge: JudgeReport) -> Iterator[tuple[str, Measures]]:
    if judge.calibrated is not None:
        yield f"{judge.model}, as it stands", judge.stands
    yield _final(judge), judge.final


def _final(judge: JudgeReport) -> str:
    """The name that goes with the measures of the final reading."""
    return f"{judge.model}, calibrated" if judge.calibrated else judge.model


def _row(measures: Measures) -> dict[str, str]:
    classes = list(measures.classes.values())
    shown = {
        "accuracy": measures.accuracy,
        "kappa": measures.kappa,
        "weighted kappa": measures.weighted_kappa,
        "F1": classes[0].f1 if len(classes) == 2 else measures.macro_f1,
        "AUC": measures.auc,
        "calibration error": measures.calibration_error,
        "by chance alone": Estimate(measures.error_if_calibrated),
    }
    answered = {"answered": f"{measures.accuracy.n} of {measures.items}"}
    return answered | {name: str(one) for name, one in shown.items() if one is not None}


def _people(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        people, position = judge.people, judge.position
        if people is not None:
            yield (
                f"{judge.model} beside {people.annotators} people on {people.human_human.n} items: "
                f"people agree with one another {people.human_human}, with the judge "
                f"{people.human_judge}; beyond chance {people.human_kappa} and "
                f"{people.judge_kappa}"
            )
            test = people.test
            if test is None:
                told = "no alternative annotator test, which needs three people on an item"
            else:
                won = sum(one.wins for one in test.annotators)
                as_good = "as good" if test.passes else "not shown to be as good"
                told = (
                    f"{as_good} as a person by the alternative annotator test: winning rate "
                    f"{test.winning_rate:.2f} ({won} of {len(test.annotators)} people, "
                    f"epsilon {test.epsilon}), advantage probability {test.advantage:.2f}"
                )
            yield f"{judge.model}: {told}"
        if position is not None:
            yield (
                f"{judge.model} changes its answer with the order: {position.changed}; "
                f"prefers the first place: {position.first}"
            )


def _policy(check: CheckReport) -> Iterator[str]:
    if check.policy is None:
        return
    for judge, stage, share in zip(
        check.judges, check.policy.stages, check.policy.decided, strict=True
    ):
        if stage.threshold is None:
            yield f"{judge.model} cannot be guaranteed: {stage.reason}"
        else:
            yield (
                f"{judge.model} decides from {stage.threshold:.3f} on: {share:.0%} of all; agrees "
                f"{stage.agreement} of {stage.agreement.n}, at least {stage.agreement.low:.3f}"
            )
    yield f"passed on to people: {check.policy.passed_on:.0%}"
