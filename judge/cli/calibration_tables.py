"""What `judge calibrate` prints: how far each judge agrees with the labels, and where it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.cli.printing import WIDEST, plain_console
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.calibration.measures import Measures
    from judge.calibration.report import Calibration, CheckReport, Disagreement, JudgeReport

UNDEFINED = "–"
_SHOWN = 400


def print_tables(found: Calibration, show: int) -> None:
    """Every check: disagreements first, then measures, confusion, slices, people, policy.

    Args:
        show: so many disagreements a judge.
    """
    # Rich cuts cells to the terminal's width, or to 80 in a pipe; these are the data.
    console = plain_console(soft_wrap=True, width=WIDEST)
    for check in found.checks:
        console.print(Text(f"\n{check.check}", style="bold"))
        for line in _labels(check):
            console.print(line, markup=False)
        for judge in check.judges:
            _disagreements(console, check, judge, show)
        console.print(_measures(check))
        for judge in check.judges:
            console.print(_confusion(judge))
            for name, parts in judge.by.items():
                console.print(_slices(judge, name, parts))
        for line in (*_people(check), *_policy(check)):
            console.print(line, markup=False)


def number(estimate: Estimate | None) -> str:
    """Value and interval to two places; a dash where it is undefined or there is none."""
    return UNDEFINED if estimate is None else str(estimate)


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


def _measures(check: CheckReport) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("judge")
    rows = [
        (name, dict(_row(measures))) for judge in check.judges for name, measures in _named(judge)
    ]
    for name in rows[0][1] if rows else ():
        table.add_column(name, justify="right")
    for judge, cells in rows:
        table.add_row(judge, *cells.values())
    return table


def _named(judge: JudgeReport) -> Iterator[tuple[str, Measures]]:
    if judge.calibrated is not None:
        yield f"{judge.model}, as it stands", judge.stands
    yield _final(judge), judge.final


def _final(judge: JudgeReport) -> str:
    """The name that goes with the measures of the final reading."""
    return f"{judge.model}, calibrated" if judge.calibrated else judge.model


def _row(measures: Measures) -> Iterator[tuple[str, str]]:
    classes = list(measures.classes.values())
    yield "answered", f"{measures.accuracy.n} of {measures.items}"
    yield "accuracy", str(measures.accuracy)
    yield "kappa", str(measures.kappa)
    if measures.weighted_kappa is not None:
        yield "weighted kappa", str(measures.weighted_kappa)
    yield "F1", str(classes[0].f1 if len(classes) == 2 else measures.macro.f1)
    yield "AUC", str(measures.auc)
    yield "calibration error", str(measures.calibration_error)
    yield "by chance alone", str(Estimate(measures.error_if_calibrated))


def _confusion(judge: JudgeReport) -> Table:
    confusion = judge.final.confusion
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column(f"label \\ {_final(judge)}")
    for name in confusion.columns:
        table.add_column(name, justify="right")
    for name, counts in zip(confusion.rows, confusion.counts, strict=True):
        table.add_row(name, *(str(count) for count in counts))
    return table


def _slices(judge: JudgeReport, name: str, parts: Mapping[str, Measures]) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column(f"{name}, {_final(judge)}")
    for column in ("items", "answered", "accuracy", "kappa"):
        table.add_column(column, justify="right")
    for value, measures in sorted(parts.items(), key=lambda pair: (-pair[1].items, pair[0])):
        table.add_row(
            Text(value),
            str(measures.items),
            str(measures.accuracy.n),
            str(measures.accuracy),
            str(measures.kappa),
        )
    return table


def _disagreements(console: Console, check: CheckReport, judge: JudgeReport, show: int) -> None:
    found = [one for one in judge.disagreements if one.held_out]
    if not found or not show:
        return
    who = f"{_final(judge)}," if judge.calibrated else judge.model
    apart = " kept apart" if check.held_out < check.items else ""
    told = f"{who} disagrees with {len(found)} of the {judge.final.items} labels{apart}"
    console.print(f"{told}; the surest {min(show, len(found))}:", markup=False)
    for one in found[:show]:
        console.print(_disagreement(one), markup=False)


def _disagreement(one: Disagreement) -> str:
    number = f", value {one.number}" if one.number else ""
    sure = "" if one.confidence is None else f" ({one.confidence:.2f})"
    lines = [f"  {one.record}{number}: says {one.answer}{sure}, the label is {one.reference}"]
    if one.votes:
        lines[0] += f" ({', '.join(f'{n} {answer}' for answer, n in one.votes.items())})"
    lines += [f"    {name}: {_short(text)}" for name, text in one.fields.items() if text]
    if one.evidence:
        lines.append(f"    evidence: {_short(one.evidence)}")
    return "\n".join(lines)


def _short(content: Any) -> str:
    text = " ".join(str(content).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _people(check: CheckReport) -> Iterator[str]:
    for judge in check.judges:
        people = judge.people
        if people is not None:
            yield (
                f"{judge.model} beside {people.annotators} people on {people.human_human.n} items: "
                f"people agree with one another {people.human_human}, with the judge "
                f"{people.human_judge}; beyond chance {people.human_kappa} and "
                f"{people.judge_kappa}"
            )
            yield from _test(judge)
        if judge.position is not None:
            yield (
                f"{judge.model} changes its answer with the order: {judge.position.changed}; "
                f"prefers the first place: {judge.position.first}"
            )


def _test(judge: JudgeReport) -> Iterator[str]:
    test = judge.people.test if judge.people else None
    if test is None:
        yield f"{judge.model}: no alternative annotator test, which needs three people on an item"
        return
    won = sum(one.wins for one in test.annotators)
    told = "as good as a person" if test.passes else "not shown to be as good as a person"
    p = ", ".join(f"{one.p_value:.3g}" for one in test.annotators[:8])
    more = ", …" if len(test.annotators) > 8 else ""
    yield (
        f"{judge.model}: {told} by the alternative annotator test: winning rate "
        f"{test.winning_rate:.2f} ({won} of {len(test.annotators)} people, "
        f"epsilon {test.epsilon}), advantage probability {test.advantage:.2f}, p {p}{more}"
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
                f"{stage.agreement} of {stage.agreement.n}, at least "
                f"{stage.agreement.low:.3f}"
            )
    yield f"passed on to people: {check.policy.passed_on:.0%}"
