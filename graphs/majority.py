"""majority: ask, decide, or ask again.

    ask --> decide --> (settled) --> end
     ^         |
     +---------+ (another vote can still change a verdict)

Sequential voting: each pass asks the least number of further votes that could settle every value,
all at once. Whatever they say, the verdicts are those that all votes together would have given,
because asking stops only when no outcome of the missing votes could change one.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from judge.judging.panel import Panel
from judge.judging.voting import needed, opinions_on, settled, tally
from judge.stepping import Stepper
from judge.subject import Subject
from judge.verdict import Check, Finding, Verdict, Vote, gravest


class MajorityState(TypedDict):
    """`numbers` are the values asked about; (0,) stands for the record as a whole."""

    subject: Subject
    round: int
    numbers: tuple[int, ...]
    votes: Annotated[list[Vote], operator.add]


async def ask(state: MajorityState, runtime: Runtime[Panel]) -> dict[str, list[Vote]]:
    """Ask the next votes, as many as could settle the matter."""
    panel, cast = runtime.context, state["votes"]
    ballots = panel.ballots
    if panel.all_votes:
        wanted = len(ballots)
    else:
        wanted = max(
            needed(opinions_on(n, cast), len(ballots), panel.rule) for n in state["numbers"]
        )
    upcoming = ballots[len(cast) : len(cast) + wanted]
    asked = [
        judge.vote(
            state["subject"],
            vote=vote,
            round=state["round"],
            numbers=state["numbers"],
            sampling=panel.sampling,
        )
        for judge, vote in upcoming
    ]
    # A single vote, the usual case, needs no task of its own.
    return {"votes": [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)}


def decide(state: MajorityState, runtime: Runtime[Panel]) -> str:
    """Whether another vote could still change the verdict on any value."""
    panel, cast = runtime.context, state["votes"]
    count = len(panel.ballots)
    if len(cast) >= count:
        return END
    if panel.all_votes:
        return "ask"
    open_ones = (
        n for n in state["numbers"] if not settled(opinions_on(n, cast), count, panel.rule)
    )
    return "ask" if any(True for _ in open_ones) else END


_builder = StateGraph(MajorityState, context_schema=Panel)
_builder.add_node("ask", ask)
_builder.add_edge(START, "ask")
_builder.add_conditional_edges("ask", decide, ["ask", END])
graph = _builder.compile(name="majority")
_stepper = Stepper(graph)


async def take_votes(
    panel: Panel,
    subject: Subject,
    *,
    by: Literal["steering", "accepting"],
    round: int = 1,
    numbers: Sequence[int] | None = None,
) -> Check:
    """One check: the panel's votes on the subject, counted per value.

    The check's probability is the mean over the judges of P(pass), for the weakest value; None
    unless the votes were read from log-probabilities.

    Raises:
        BackendError: the model cannot be reached, refuses the key, or the budget is used up.
    """
    asked = panel.judges[0].subjects(subject) if numbers is None else tuple(numbers)
    start: MajorityState = {"subject": subject, "round": round, "numbers": asked, "votes": []}
    end = await _stepper.run(start, panel)
    votes: list[Vote] = end["votes"]
    opinions = tally(votes, asked, len(panel.ballots), panel.rule)
    verdict = gravest(opinions.values())
    reasons = [vote.reason for vote in votes if vote.reason]
    return Check(
        name=panel.rubric.name,
        verdict=verdict,
        by=by,
        round=round,
        votes=tuple(votes),
        opinions=opinions,
        probability=_probability(votes, asked),
        findings=_findings(subject, votes, opinions),
        reason=reasons[0] if reasons and verdict not in (Verdict.PASS, Verdict.FAIL) else None,
        rubric=panel.rubric.digest,
    )


def _probability(votes: Sequence[Vote], asked: Sequence[int]) -> float | None:
    means = []
    for number in asked:
        read = [vote.probabilities[number] for vote in votes if number in vote.probabilities]
        if not read:
            return None
        means.append(sum(read) / len(read))
    return min(means)


def _findings(
    subject: Subject, votes: Sequence[Vote], opinions: Mapping[int, Verdict]
) -> tuple[Finding, ...]:
    kept: dict[tuple[object, ...], Finding] = {}
    for number, verdict in opinions.items():
        value = subject.value(number) if number else None
        for vote in votes:
            for finding in vote.findings:
                if finding.value == value and finding.verdict is verdict:
                    key = (value, finding.character, finding.quote)
                    kept.setdefault(key, finding)
    return tuple(kept.values())
