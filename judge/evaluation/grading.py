"""Judges that grade the answers which no rule can, through the workflows that judge records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.errors import BackendError, UsageError
from judge.evaluation.benchmark import Graded
from judge.records import Item, Problem, build
from judge.run.setup import Setup
from judge.subject import Subject
from judge.verdict import Check, Finding, Judgement, Usage, Verdict

_SOURCE = "<answers>"


@dataclass(frozen=True, slots=True)
class JudgedGrader:
    """A `Grader` out of a run's judges: models, votes, reading and cache are the setup's."""

    setup: Setup

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Credit each gold value by the workflow `extraction` (graphs/extraction.py).

        The first ten predicted values count; blank ones do not. Without any each credit is 0 and
        nobody is asked.

        Args:
            id: what cached replies and scripted judges know the answer by.

        Raises:
            BackendError: a gold value got no reply at all, or the model is out of reach.
            UsageError: a blank gold value, or settings that leave the check out.
        """
        if not gold:
            return Graded((), (), (), Usage())
        places = [place for place, text in enumerate(predicted) if text.strip()]
        subject = extraction_record(id, [predicted[place] for place in places], gold)
        bound = self.setup.bound_workflow("extraction")
        outcome = await bound.workflow.run(subject, bound.context)
        return _graded(outcome.judgement, places, [value.text for value in subject.values])


def extraction_record(id: str, predicted: Sequence[str], gold: Sequence[str]) -> Subject:
    """An answer as the extraction workflow judges it; no predicted value is blank.

    Raises:
        UsageError: a blank gold value.
    """
    fields = {"id": id, "values": [*gold], "predicted": [*predicted]}
    record = build(Item(_SOURCE, 1, fields), "extraction")
    if isinstance(record, Problem):
        raise UsageError(f"{id}: {record.message}")
    return Subject.of(record)


def _graded(judgement: Judgement, places: Sequence[int], gold: Sequence[str]) -> Graded:
    """`places` are those of the predicted values that were shown, in their order."""
    if judgement.extraction is None:
        raise UsageError("the settings leave out the check value_extraction")
    check: Check = judgement.checks[0]
    outcomes = check.outcomes()
    if any(verdict is Verdict.ERROR for verdict, _ in outcomes.values()):
        raise BackendError(check.reason or "a judge gave no reply")
    bearing = {finding.value: finding for finding in reversed(check.bearing())}
    found = [bearing.get(value) for value in gold]
    return Graded(
        credits=judgement.extraction.credits,
        named=tuple(tuple(places[n - 1] for n in one.predicted) if one else () for one in found),
        reasons=tuple(_reason(one, check) for one in found),
        usage=judgement.usage,
    )


def _reason(found: Finding | None, check: Check) -> str | None:
    """What the judge says of a gold value, or why it has no credit."""
    if found is not None and found.sure:
        return found.reason
    read = any(finding.sure for vote in check.votes for finding in vote.evidence)
    return "the votes do not settle it" if read else "no vote could be read"
