"""The moves that workflows share: make a check, go on asking, sum up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judge.judging.judge import Judge
from judge.judging.panel import take_votes
from judge.subject import Subject
from judge.verdict import Check, Verdict
from judge.workflow import By, Context, skip_reason, skipped


async def make_check(
    name: str,
    subject: Subject,
    context: Context,
    *,
    by: By,
    round: int = 1,
    after: Sequence[Check] = (),
) -> list[Check]:
    """The check as a list of one: its verdict, or that it was skipped; empty if not wanted.

    `after` are the checks made so far that decide the record's verdict.
    """
    if name not in context.wanted:
        return []
    if reason := skip_reason(name, subject, context) or hopeless(after, context):
        return [skipped(name, reason, by)]
    return [await take_votes(context.panel(name, by), subject, by=by, round=round)]


def hopeless(decided: Sequence[Check], context: Context) -> str | None:
    """Why no further check can save the record (`--fail-fast`); None if one can.

    Only a `fail` is beyond saving: what is undecided or has no reply may still be outweighed.
    """
    failed = next((c.name for c in decided if c.verdict is Verdict.FAIL), None)
    return f"not asked: {failed} has failed" if failed and context.fail_fast else None


async def additional_checks(
    subject: Subject, context: Context, after: Sequence[Check]
) -> list[Check]:
    """The user's own rubrics, asked by the accepting judge, behind the checks in `after`."""
    made: list[Check] = []
    for name in context.additional:
        made += await make_check(name, subject, context, by="accepting", after=[*after, *made])
    return made


def flagged(check: Check, subject: Subject) -> tuple[int, ...]:
    """The numbers of the values that the check found at fault."""
    return subject.numbered(check.failed_values())


async def located(check: Check, subject: Subject, locator: Judge | None) -> Check:
    """The check with the speeches behind each flagged value: its own, or else the locator's.

    A probability reading tells that a value is contradicted, not where; the locator, a structured
    reading of the same rubric, is asked for the words. Its vote joins the check's and is not
    counted.
    """
    quoted = {finding.value for finding in check.bearing() if finding.quote}
    bare = [n for n in flagged(check, subject) if subject.value(n) not in quoted]
    if not bare or locator is None:
        return check
    vote = await locator.vote(subject, round=check.round, numbers=bare)
    told = vote.model_copy(update={"part": "locator"})
    return check.model_copy(update={"votes": (*check.votes, told)})


def deciding(checks: Iterable[Check]) -> list[Check]:
    """The last check of each name: what the record's verdict rests on.

    The accepting judge comes after the steering judge, and a later round after an earlier one, so
    the last is the one that speaks about the text as it is written out.
    """
    last: dict[str, Check] = {}
    for check in checks:
        last[check.name] = check
    return list(last.values())


def summed_reason(decided: Sequence[Check], notes: Sequence[str]) -> str | None:
    """One line that says which checks stand against the record; None when none does."""
    parts = [
        f"{check.name}: {_described(check)}"
        for check in decided
        if check.verdict not in (Verdict.PASS, Verdict.SKIPPED)
    ]
    if decided and all(check.verdict is Verdict.SKIPPED for check in decided):
        parts.append("no check could be made")
    return "; ".join([*parts, *notes]) or None


def _described(check: Check) -> str:
    verdicts = check.verdicts()
    against = len(check.failed_values())
    if check.verdict is Verdict.FAIL and verdicts and None not in verdicts:
        return f"{against} of {len(verdicts)} values fail"
    return check.reason or str(check.verdict)
