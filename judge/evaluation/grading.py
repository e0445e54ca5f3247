"""Judges that grade answers which no rule can score, by the workflow that judges extractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.errors import BackendError, UsageError
from judge.evaluation.benchmark import Graded
from judge.records import Item, Problem, build
from judge.run.setup import Setup
from judge.subject import Subject
from judge.verdict import Check, Finding, Usage, Verdict


@dataclass(frozen=True, slots=True)
class JudgedGrader:
    """A `Grader` out of a run's judges: models, votes, reading and cache are the setup's."""

    setup: Setup

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Credit each gold value by the workflow `extraction` (graphs/extraction.py).

        The first ten predicted values count; blank ones do not. Without any each credit is 0 and
        no judge is asked.

        Args:
            id: what cached replies and scripted judges know the answer by.

        Raises:
            BackendError: a gold value got no reply at all, or the model is out of reach.
            UsageError: a blank gold value, or settings that leave the check out.
        """
        if not gold:
            return Graded((), (), (), Usage())
        places = [place for place, text in enumerate(predicted) if text.strip()]
        fields = {"id": id, "values": [*gold], "predicted": [predicted[place] for place in places]}
        record = build(Item("<answers>", 1, fields), "extraction")
        if isinstance(record, Problem):
            raise UsageError(f"{id}: {record.message}")
        bound = self.setup.bound_workflow("extraction")
        subject = Subject.of(record)
        judgement = (await bound.workflow.run(subject, bound.context)).judgement
        if judgement.extraction is None:
            raise UsageError("the settings leave out the check value_extraction")
        check = judgement.checks[0]
        if any(verdict is Verdict.ERROR for verdict, _ in check.outcomes().values()):
            raise BackendError(check.reason or "a judge gave no reply")
        bearing = {finding.value: finding for finding in reversed(check.bearing())}
        found = [bearing.get(value.text) for value in subject.values]
        return Graded(
            credits=judgement.extraction.credits,
            named=tuple(
                tuple(places[n - 1] for n in one.predicted) if one else () for one in found
            ),
            reasons=tuple(_reason(one, check) for one in found),
            usage=judgement.usage,
        )


def _reason(found: Finding | None, check: Check) -> str | None:
    """What the judge says of a gold value, or why it has no credit."""
    if found is not None and found.sure:
        return found.reason
    read = any(finding.sure for vote in check.votes for finding in vote.evidence)
    return "the votes do not settle it" if read else "no vote could be read"
