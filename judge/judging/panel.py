"""A panel: one rubric put to several models, or to one model several times.

Voting is sequential: each pass concurrently asks for the fewest further votes that could settle
every value. Asking stops when no outcome of the missing votes could change a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from judge.backends.base import Call
from judge.judging.client import Client
from judge.judging.injection import injections
from judge.judging.judge import Judge, Sampling, concurrently
from judge.questions.parts import Bound
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.verdict import SETTLED, Answer, Check, Verdict, Vote, worst
from judge.voting import PASS_OR_FAIL, Opinion, needed


@dataclass(frozen=True)
class Panel:
    """Who votes on a rubric, how often, and how the votes are counted.

    Each judge gives `votes` votes; by `logprobs` or `probe` one, because these do not differ. With
    `all_votes` every vote is asked for, even when the verdict is settled. `cheap`, the cheap judge
    of a cascade, is asked first, then the panel about the values of which it is not sure.
    `explainer` is asked last about what fails, if the judges gave neither quote nor reason; it
    decides nothing. `on_injection`: what to do with text that looks like a message to the judge
    (`judge.judging.injection`). `declined`: why nothing is asked and the check abstains.
    """

    rubric: Rubric
    judges: tuple[Judge, ...]
    votes: int = 1
    all_votes: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    cheap: Judge | None = None
    explainer: Judge | None = None
    on_injection: Literal["abstain", "ask"] = "abstain"
    declined: str | None = None

    @cached_property
    def asks(self) -> tuple[tuple[Judge, int], ...]:
        """(judge, vote index) in the order of asking."""
        return tuple(
            (judge, vote)
            for vote in range(self.votes)
            for judge in self.judges
            if vote == 0 or not judge.probabilistic
        )

    @property
    def votes_once(self) -> str | None:
        """The message that judges vote once although several votes are wanted; None if none do."""
        once = [judge.client.spec for judge in self.judges if judge.probabilistic]
        if self.votes == 1 or not once:
            return None
        others = f", the others {self.votes} times" if len(once) < len(self.judges) else ""
        why = "the model's probabilities are read, so a second vote would be the same"
        return f"{' and '.join(once)}: one vote{others} ({why})"

    def calls(self, record: Record, *, round: int = 1, most: bool) -> Iterator[tuple[Client, Call]]:
        """The calls for a record: with `most` all that may be made, else the fewest, if the cheap
        judge is sure, or all votes agree."""
        if self.cheap is not None:
            for call in self.cheap.calls(record, round=round):
                yield self.cheap.client, call
            if not most:
                return
        asks = self.asks
        if not (most or self.exhaustive):
            asks = asks[: needed([], len(asks), self._choices)]
        for judge, vote in asks:
            for call in judge.calls(record, vote, round, self.sampling):
                yield judge.client, call
        if most and self.explainer is not None:
            for call in self.explainer.calls(record, round=round):
                yield self.explainer.client, call

    @cached_property
    def by_value(self) -> bool:
        """Whether a value whose verdict is settled can be left out of further votes."""
        return not self.exhaustive and all(judge.one_by_one for judge in self.judges)

    @cached_property
    def exhaustive(self) -> bool:
        """Whether every vote is asked for: by `all_votes`; for scores, because each counts in the
        mean; for questions asked together, because they share each reply."""
        return self.all_votes or self.rubric.scale is not None or bool(self.rubric.together)

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The answers by which votes are counted, best first; () if by pass and fail."""
        return self.rubric.answers if self.rubric.graded else ()

    @property
    def _choices(self) -> int:
        """How many different opinions a decided vote can have."""
        return len(self.counted or PASS_OR_FAIL)

    async def check(self, record: Record, *, by: Literal["loop", "final"], round: int = 1) -> Check:
        """One check: the votes on the record, counted for each entry.

        A cheap judge's vote comes first. The check's probability is the judges' mean P(pass) for
        the weakest value; None unless every judge that was asked has one.

        Raises:
            BackendError: as `Judge.vote`.
        """
        name, digest = self.rubric.name, self.rubric.digest
        check = Check(name=name, by=by, verdict=Verdict.ABSTAIN, round=round, rubric=digest)
        if (reason := self.why_not_asked(record)) is not None:
            return check.model_copy(update=reason)
        numbers = self.judges[0].numbers(record)
        votes: list[Vote] = []
        if self.cheap is not None:
            vote = await self.cheap.vote(record, round=round, numbers=numbers)
            votes.append(vote.model_copy(update={"part": "cheap"}))
            sure = {answer.value for answer in vote.evidence if answer.sure}
            numbers = tuple(n for n in numbers if record.entry(self.rubric.each, n) not in sure)
        votes += await self._votes(record, round, numbers)
        check = check.model_copy(
            update={
                "probability": _probability(votes),
                "counted": self.counted,
                "votes": tuple(votes),
            }
        )
        check = check.model_copy(update=self._outcome(check))
        return await self._explained(check, record, round)

    async def _explained(self, check: Check, record: Record, round: int) -> Check:
        """The check with the explainer's vote on what fails, if there is anything to explain."""
        if self.explainer is None or check.verdict is not Verdict.FAIL:
            return check
        if any(answer.quote or answer.reason for answer in check.supporting_evidence()):
            return check
        fails = {value for value, verdict in check.verdicts().items() if verdict is Verdict.FAIL}
        every = self.explainer.numbers(record)
        numbers = [n for n in every if record.entry(self.rubric.each, n) in fails]
        vote = await self.explainer.vote(record, round=round, numbers=numbers or every)
        vote = vote.model_copy(update={"part": "explanation"})
        return check.model_copy(update={"votes": (*check.votes, vote)})

    async def _votes(self, record: Record, round: int, numbers: tuple[int, ...]) -> list[Vote]:
        """As many votes as settle the values with these numbers (0: the record)."""
        asks, choices = self.asks, self._choices
        votes: list[Vote] = []
        opinions: dict[int, list[Opinion]] = {n: [] for n in numbers}
        while True:
            open_votes = {n: needed(opinions[n], len(asks), choices) for n in numbers}
            unsettled = tuple(n for n in numbers if open_votes[n])
            if not unsettled:
                return votes
            concerned = unsettled if self.by_value else numbers
            count = len(asks) if self.exhaustive else max(open_votes.values())
            coroutines = [
                judge.vote(
                    record, vote=vote, round=round, numbers=concerned, sampling=self.sampling
                )
                for judge, vote in asks[len(votes) : len(votes) + count]
            ]
            # A single vote, the usual case, needs no task of its own.
            single = len(coroutines) == 1
            new = [await coroutines[0]] if single else await concurrently(coroutines)
            for vote in new:
                counted_as = vote.counted_as(graded=bool(self.counted))
                for n in concerned:
                    opinions[n].append(counted_as[record.entry(self.rubric.each, n)])
            votes += new

    def why_not_asked(self, record: Record) -> dict[str, Any] | None:
        """Reason and evidence of the check if it abstains without asking: the panel declines, or
        the record holds hostile text, which is quoted
        (docs/decisions/0027-injected-text-abstains.md). None if the panel is asked."""
        if self.declined is not None:
            return {"reason": self.declined}
        passages = injections(self.rubric, record) if self.on_injection == "abstain" else ()
        if not passages:
            return None
        evidence = (
            Answer(
                verdict=Verdict.ABSTAIN,
                quote=passage.passage,
                reason=f"{passage.form} in {passage.field}",
            )
            for passage in passages
        )
        return {"reason": passages[0].why_not_asked, "evidence": tuple(evidence)}

    def _outcome(self, check: Check) -> dict[str, Any]:
        """Verdict, answer, score and reason of the check, from its votes."""
        scale, bound = self.rubric.scale, self.rubric.rule.bound
        verdict, score = mean_score(check.votes, scale, bound) if scale else (None, None)
        verdict = verdict or worst(check.verdicts().values())
        answer = None
        if self.rubric.graded and not self.rubric.each:
            answer = check.outcomes()[None][1]
        elif self.rubric.rule.equals_label and not self.rubric.each and verdict in SETTLED:
            # Votes count by pass and fail, so those that fail may differ in their answers.
            answer = check.only_answer()
        undecided = (v for v in check.votes if v.part == "panel" and v.verdict not in SETTLED)
        reasons = (vote.reason for vote in undecided if vote.reason)
        return {
            "verdict": verdict,
            "answer": answer,
            "score": score,
            "reason": None if verdict in SETTLED else next(reasons, None),
        }


def mean_score(
    votes: Sequence[Vote], scale: Sequence[float], bound: Bound | None
) -> tuple[Verdict | None, float | None]:
    """The verdict on the mean of the votes' scores, and the mean; None for both without a score.

    A lost or unsure vote might have been any score: the check abstains if that could change the
    verdict; without a bound, if at least half of the votes are lost or unsure.
    """
    cast = [vote for vote in votes if vote.part == "panel"] or votes
    scores = [vote.score for vote in cast if vote.score is not None]
    if not scores:
        return None, None
    sure = [v.score for v in cast if v.score is not None and v.verdict is not Verdict.ABSTAIN]
    unsure = len(cast) - len(sure)
    mean = round(sum(scores) / len(scores), 6)
    if bound is None:
        return Verdict.ANSWERED if len(sure) > unsure else Verdict.ABSTAIN, mean
    could = {
        bound.holds(round((sum(sure) + unsure * end) / len(cast), 6))
        for end in (scale[0], scale[-1])
    }
    if len(could) > 1:
        return Verdict.ABSTAIN, mean
    return Verdict.PASS if could == {True} else Verdict.FAIL, mean


def _probability(votes: Sequence[Vote]) -> float | None:
    chances: dict[str | None, list[float]] = {}
    for vote in votes:
        for answer in vote.evidence:
            if vote.part == "panel" or answer.sure:
                if answer.probability is None:
                    return None  # Not every judge has a P(pass).
                chances.setdefault(answer.value, []).append(answer.probability)
    if not chances:
        return None
    return round(min(sum(column) / len(column) for column in chances.values()), 6)
