"""majority: screen, ask, decide, or ask again.

    (a cascade) --> screen --> decide --> (settled) --> end
         |                      ^  |
         |                      |  v
         +--------------------> ask   (another vote can still change a verdict)

A record whose text is addressed to the judge does not come here (`take_votes`).

The screen is a cascade's cheap judge, where there is one: values that it is sure of keep its
opinion, and only the others are put to the panel (docs/decisions/0014-cascade.md).

Sequential voting: each pass asks the least number of further votes that could settle every value,
all at once. Whatever they say, the verdicts are those that all votes together would have given,
because asking stops only when no outcome of the missing votes could change one. A rubric whose
answers count for themselves (fully, partially, absent) has them counted in the same way.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from judge.judging.injection import injections, set_aside
from judge.judging.panel import Panel
from judge.judging.voting import (
    PASS_OR_FAIL,
    answers_on,
    decide_among,
    needed,
    opinions_on,
    settled,
    tally,
)
from judge.stepping import Stepper
from judge.subject import Subject
from judge.verdict import Check, Finding, Verdict, Vote, gravest


class MajorityState(TypedDict):
    """`numbers` are the values put to the panel; (0,) stands for the record as a whole.

    `screened` is the cheap judge's vote, on them and on the values that it settled; none without a
    cascade.
    """

    subject: Subject
    round: int
    numbers: tuple[int, ...]
    screened: list[Vote]
    votes: Annotated[list[Vote], operator.add]


async def screen(state: MajorityState, runtime: Runtime[Panel]) -> dict[str, Any]:
    """Let the cheap judge settle the values that it is sure of."""
    cheap = runtime.context.screen
    assert cheap is not None, "the branch at the start leads here"
    vote = await cheap.vote(state["subject"], round=state["round"], numbers=state["numbers"])
    return {"screened": [vote], "numbers": tuple(n for n in state["numbers"] if not _sure(vote, n))}


async def ask(state: MajorityState, runtime: Runtime[Panel]) -> dict[str, list[Vote]]:
    """Ask the next votes, as many as could settle the matter."""
    panel, cast = runtime.context, state["votes"]
    ballots, numbers = panel.ballots, state["numbers"]
    if panel.by_value:
        numbers = _unsettled(state, panel)
    if panel.all_votes:
        wanted = len(ballots)
    else:
        answers = _counted_by(panel)
        wanted = max(
            needed(_said(n, cast, panel), len(ballots), panel.rule, answers) for n in numbers
        )
    upcoming = ballots[len(cast) : len(cast) + wanted]
    asked = [
        judge.vote(
            state["subject"],
            vote=vote,
            round=state["round"],
            numbers=numbers,
            sampling=panel.sampling,
        )
        for judge, vote in upcoming
    ]
    # A single vote, the usual case, needs no task of its own.
    return {"votes": [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)}


def cascade(state: MajorityState, runtime: Runtime[Panel]) -> Literal["screen", "ask"]:
    """Whether a cheap judge comes before the panel."""
    return "ask" if runtime.context.screen is None else "screen"


def decide(state: MajorityState, runtime: Runtime[Panel]) -> str:
    """Whether another vote could still change the verdict on any value."""
    panel = runtime.context
    if not state["numbers"] or len(state["votes"]) >= len(panel.ballots):
        return END
    return "ask" if panel.all_votes or _unsettled(state, panel) else END


def _unsettled(state: MajorityState, panel: Panel) -> tuple[int, ...]:
    count, cast, answers = len(panel.ballots), state["votes"], _counted_by(panel)
    return tuple(
        n
        for n in state["numbers"]
        if not settled(_said(n, cast, panel), count, panel.rule, answers)
    )


def _counted_by(panel: Panel) -> Sequence[str]:
    return panel.rubric.answers if panel.rubric.graded else PASS_OR_FAIL


def _said(number: int, votes: Sequence[Vote], panel: Panel) -> Sequence[str]:
    return answers_on(number, votes) if panel.rubric.graded else opinions_on(number, votes)


def _sure(vote: Vote, number: int) -> bool:
    return vote.opinions[number] in (Verdict.PASS, Verdict.FAIL)


_builder = StateGraph(MajorityState, context_schema=Panel)
_builder.add_node("screen", screen)
_builder.add_node("ask", ask)
_builder.add_conditional_edges(START, cascade)
_builder.add_conditional_edges("screen", decide, ["ask", END])
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

    A record that holds what has the form of a message to the judge is put to nobody, unless the
    panel wants it (docs/decisions/0027-injected-text-abstains.md).
    The cheap judge's vote, where there is one, stands first among the votes. The check's
    probability is the mean over the judges of P(pass), for the weakest value; None unless every
    value was settled by log-probabilities.

    Raises:
        BackendError: the model cannot be reached, refuses the key, or the budget is used up.
    """
    asked = panel.judges[0].subjects(subject) if numbers is None else tuple(numbers)
    if panel.injected == "abstain" and (found := injections(panel.rubric, subject)):
        return set_aside(panel.rubric, found, asked, by=by, round=round)
    start = MajorityState(subject=subject, round=round, numbers=asked, screened=[], votes=[])
    end = await _stepper.run(dict(start), panel)
    screened: list[Vote] = end["screened"]
    votes: list[Vote] = end["votes"]
    counted, answers = _count(panel, subject, votes, end["numbers"])
    # A value has its verdict from the cheap judge or from the panel, never from both.
    heard = {n: votes if n in counted else screened for n in asked}
    opinions = {n: counted[n] if n in counted else screened[0].opinions[n] for n in asked}
    if panel.rubric.graded:
        answers |= {n: screened[0].answers[n] for n in asked if n not in counted}
    verdict = gravest(opinions.values())
    reasons = [vote.reason for vote in votes if vote.reason]
    return Check(
        name=panel.rubric.name,
        verdict=verdict,
        by=by,
        round=round,
        votes=(*screened, *votes),
        opinions=opinions,
        answers=answers,
        probability=_probability(heard),
        findings=_findings(subject, heard, opinions, answers),
        reason=reasons[0] if reasons and verdict not in (Verdict.PASS, Verdict.FAIL) else None,
        rubric=panel.rubric.digest,
    )


def _count(
    panel: Panel, subject: Subject, votes: Sequence[Vote], numbers: Sequence[int]
) -> tuple[Mapping[int, Verdict], dict[int, str]]:
    """The verdict on each value, and the answers that stand, where those are what is counted."""
    rubric, asked = panel.rubric, len(panel.ballots)
    if not rubric.graded:
        return tally(votes, numbers, asked, panel.rule), {}
    assert rubric.verdict is not None
    best = rubric.verdict.expected(subject.label)
    opinions: dict[int, Verdict] = {}
    standing: dict[int, str] = {}
    for n in numbers:
        said = decide_among(answers_on(n, votes), asked, panel.rule, rubric.answers)
        if said in rubric.answers:
            standing[n] = said
            opinions[n] = Verdict.PASS if said == best else Verdict.FAIL
        else:
            opinions[n] = Verdict(said)
    return opinions, standing


def _probability(heard: Mapping[int, Sequence[Vote]]) -> float | None:
    means = []
    for number, votes in heard.items():
        read = [vote.probabilities[number] for vote in votes if number in vote.probabilities]
        if not read:
            return None
        means.append(sum(read) / len(read))
    return min(means)


def _findings(
    subject: Subject,
    heard: Mapping[int, Sequence[Vote]],
    opinions: Mapping[int, Verdict],
    answers: Mapping[int, str],
) -> tuple[Finding, ...]:
    """What bears out the verdicts; of rubrics counted by answers, what bears out the answers."""
    kept: dict[tuple[object, ...], Finding] = {}
    of_value: dict[int, Mapping[str | None, Sequence[Finding]]] = {}
    for number, verdict in opinions.items():
        value = subject.value(number) if number else None
        for vote in heard[number]:
            if id(vote) not in of_value:
                of_value[id(vote)] = _by_value(vote)
            for finding in of_value[id(vote)].get(value, ()):
                if finding.answer != answers.get(number, finding.answer):
                    continue
                if finding.verdict is verdict:
                    key = (value, finding.character, finding.quote)
                    kept.setdefault(key, finding)
    return tuple(kept.values())


def _by_value(vote: Vote) -> Mapping[str | None, Sequence[Finding]]:
    """A vote's findings by the value that they are about, in their order."""
    found: dict[str | None, list[Finding]] = {}
    for finding in vote.findings:
        found.setdefault(finding.value, []).append(finding)
    return found
