"""A panel: one rubric put to several models, or to one model several times.

Voting is sequential: each pass asks, all at once, the fewest further votes that could settle every
value. Asking stops when no outcome of the missing votes could change a verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from judge.judging.injection import Injection, injections
from judge.judging.judge import Judge, Sampling
from judge.records import Record
from judge.rubric import Rubric
from judge.verdict import PASS_OR_FAIL, Answer, Check, Verdict, Vote, needed, worst


@dataclass(frozen=True, slots=True)
class Panel:
    """Who votes on a rubric, how often, and how the votes are counted.

    Each judge gives `votes` votes; by the `logprobs` method one, because its votes do not differ.
    With `all_votes` every vote is asked, whatever the others say. `cheap`, the cheap judge of a
    cascade, is asked first, and the panel about the values of which it is not sure. `injected` says
    what happens to text in the form of a message to the judge (`judge.judging.injection`).
    `declined` says why nothing is asked: the check abstains.
    """

    judges: tuple[Judge, ...]
    votes: int = 1
    all_votes: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    cheap: Judge | None = None
    injected: Literal["abstain", "ask"] = "abstain"
    declined: str | None = None

    @property
    def rubric(self) -> Rubric:
        return self.judges[0].rubric

    @property
    def asks(self) -> tuple[tuple[Judge, int], ...]:
        """(judge, vote index) in the order of asking."""
        return tuple(
            (judge, vote)
            for vote in range(self.votes)
            for judge in self.judges
            if vote == 0 or not judge.probabilistic
        )

    @property
    def by_value(self) -> bool:
        """Whether a value whose verdict is settled can be left out of further votes."""
        return not self.exhaustive and all(judge.one_by_one for judge in self.judges)

    @property
    def exhaustive(self) -> bool:
        """Whether every vote is asked: scores, too, because each counts in the mean, and questions
        asked together, because they share each reply."""
        return self.all_votes or self.rubric.scale is not None or bool(self.rubric.together)

    @property
    def counted(self) -> tuple[str, ...]:
        """The answers that votes are counted by, best first; () if by pass and fail."""
        return self.rubric.answers if self.rubric.graded else ()


async def take_votes(
    panel: Panel,
    subject: Record,
    *,
    by: Literal["loop", "final"],
    round: int = 1,
    numbers: Sequence[int] | None = None,
) -> Check:
    """One check: the panel's votes on the subject, counted per value.

    The cheap judge's vote stands first, if there is one. The check's probability is the judges'
    mean P(pass) for the weakest value; None unless every value was settled by log-probabilities.

    Args:
        numbers: the values to ask about (default: all of the record's).

    Raises:
        BackendError: as `Judge.vote`.
    """
    asked = panel.judges[0].subjects(subject) if numbers is None else tuple(numbers)
    if (unasked := _unasked(panel, subject, by, round)) is not None:
        return unasked
    votes: list[Vote] = []
    if panel.cheap is not None:
        vote = await panel.cheap.vote(subject, round=round, numbers=asked)
        votes.append(vote.model_copy(update={"part": "cheap"}))
        sure = {finding.value for finding in vote.evidence if finding.sure}
        asked = tuple(n for n in asked if subject.about(n) not in sure)
    votes += await _panel_votes(panel, subject, round, asked)
    check = Check(
        name=panel.rubric.name,
        by=by,
        verdict=Verdict.ABSTAIN,
        probability=_probability(votes),
        round=round,
        counted=panel.counted,
        votes=tuple(votes),
        rubric=panel.rubric.digest,
    )
    verdict, score = _scored(panel.rubric, votes)
    if verdict is None:
        verdict = worst(check.verdicts().values())
    answer = check.outcomes()[None][1] if panel.rubric.graded and not panel.rubric.each else None
    reason = None
    clear = (Verdict.PASS, Verdict.FAIL)
    if verdict not in clear:
        undecided = (v for v in votes if v.part == "panel" and v.verdict not in clear)
        reason = next((v.reason for v in undecided if v.reason), None)
    outcome = {"verdict": verdict, "reason": reason, "answer": answer, "score": score}
    return check.model_copy(update=outcome)


def _scored(rubric: Rubric, votes: Sequence[Vote]) -> tuple[Verdict | None, float | None]:
    """The verdict on the mean of the votes' scores, and the mean; None for both without a score.

    A vote that is lost or not sure might have been any score: the check abstains if that could
    change the verdict.
    """
    cast = [vote for vote in votes if vote.part == "panel"] or votes
    scores = [vote.score for vote in cast if vote.score is not None]
    if rubric.scale is None or rubric.bound is None or not scores:
        return None, None
    sure = [v.score for v in cast if v.score is not None and v.verdict is not Verdict.ABSTAIN]
    open_votes = len(cast) - len(sure)
    could = {
        rubric.bound.holds(round((sum(sure) + open_votes * end) / len(cast), 6))
        for end in (rubric.scale[0], rubric.scale[-1])
    }
    mean = round(sum(scores) / len(scores), 6)
    if len(could) > 1:
        return Verdict.ABSTAIN, mean
    return Verdict.PASS if could == {True} else Verdict.FAIL, mean


def _unasked(
    panel: Panel, subject: Record, by: Literal["loop", "final"], round: int
) -> Check | None:
    """The abstention of a panel that declines, or on a record with hostile text, which is quoted
    (docs/decisions/0027-injected-text-abstains.md); None if the panel is asked."""
    reason, found = panel.declined, tuple[Injection, ...]()
    if reason is None and panel.injected == "abstain":
        found = injections(panel.rubric, subject)
        if found:
            reason = (
                f"not asked: {found[0].field} holds what has the form of a message to the judge "
                f"({found[0].form})"
            )
    if reason is None:
        return None
    return Check(
        name=panel.rubric.name,
        verdict=Verdict.ABSTAIN,
        by=by,
        round=round,
        evidence=tuple(
            Answer(verdict=Verdict.ABSTAIN, quote=one.passage, reason=f"{one.form} in {one.field}")
            for one in found
        ),
        reason=reason,
        rubric=panel.rubric.digest,
    )


async def _panel_votes(
    panel: Panel, subject: Record, round: int, numbers: tuple[int, ...]
) -> list[Vote]:
    """As many votes as settle the values with these numbers (0: the record)."""
    asks, graded, answers = panel.asks, panel.rubric.graded, panel.counted or PASS_OR_FAIL
    votes: list[Vote] = []
    said: dict[int, list[str]] = {n: [] for n in numbers}
    open_votes = {n: needed([], len(asks), answers) for n in numbers}
    while open_votes and len(votes) < len(asks):
        asked = tuple(open_votes) if panel.by_value else numbers
        wanted = len(asks) if panel.exhaustive else max(open_votes.values())
        coming = [
            judge.vote(subject, vote=vote, round=round, numbers=asked, sampling=panel.sampling)
            for judge, vote in asks[len(votes) : len(votes) + wanted]
        ]
        # A single vote, the usual case, needs no task of its own.
        new = [await coming[0]] if len(coming) == 1 else await asyncio.gather(*coming)
        for vote in new:
            opinions = vote.counted_as(graded=graded)
            for n in asked:
                said[n].append(opinions[subject.about(n)])
        votes += new
        left = {n: needed(said[n], len(asks), answers) for n in open_votes}
        open_votes = {n: more for n, more in left.items() if more}
    return votes


def _probability(votes: Sequence[Vote]) -> float | None:
    read: dict[str | None, list[float]] = {}
    for vote in votes:
        for finding in vote.evidence:
            if vote.part == "panel" or finding.sure:
                known = read.setdefault(finding.value, [])
                known += [] if finding.probability is None else [finding.probability]
    if not read or not all(read.values()):
        return None
    return round(min(sum(one) / len(one) for one in read.values()), 6)
