"""A panel: one rubric put to several models, or to one model several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from judge.judging.judge import Judge, Sampling
from judge.judging.voting import Rule
from judge.rubric import Rubric


@dataclass(frozen=True, slots=True)
class Panel:
    """Who votes on a rubric, how often, and how the votes are counted.

    `votes` is what each judge gives; a probability reading gives one, because its votes do not
    differ. With `all_votes` every vote is asked; else asking stops as soon as no further vote can
    change any verdict. `locator` finds the speeches when a reading without evidence has failed.
    `screen` is the cheap judge of a cascade, asked before the panel; the panel is asked about those
    values only of which it is not sure. `injected` says what becomes of a record whose texts hold
    what has the form of a message to the judge (`judge.judging.injection`).
    """

    judges: tuple[Judge, ...]
    votes: int = 1
    rule: Rule = "majority"
    all_votes: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    locator: Judge | None = None
    screen: Judge | None = None
    injected: Literal["abstain", "ask"] = "abstain"

    @property
    def rubric(self) -> Rubric:
        return self.judges[0].rubric

    @property
    def ballots(self) -> tuple[tuple[Judge, int], ...]:
        """(judge, vote index) in the order of asking; models take turns."""
        return tuple(
            (judge, vote)
            for vote in range(self.votes)
            for judge in self.judges
            if vote == 0 or not judge.probabilistic
        )

    @property
    def by_value(self) -> bool:
        """Whether a value whose verdict is clear can be left out of the votes still to come."""
        return not self.all_votes and all(judge.one_by_one for judge in self.judges)

    def as_json(self) -> Mapping[str, object]:
        """What the fingerprint and the output say about this panel."""
        return {
            "models": [judge.client.spec for judge in self.judges],
            "reading": "probability" if self.judges[0].probabilistic else "structured",
            "votes": len(self.ballots),
            "rule": self.rule,
            "temperature": 0.0 if self.judges[0].probabilistic else self.sampling.temperature,
            "seed": self.sampling.seed,
        }
