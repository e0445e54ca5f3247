"""Compares the judges of a panel: how often each passes, how far each two agree, how many votes
changed nothing, how many a cheap judge settled; and people's decisions with the judges'."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.digest import digest
from judge.records.lines import Line, read_check
from judge.records.words import telling_texts
from judge.verdict import LOST, PERSON, SETTLED, Check, Verdict, Vote, last_of_each
from judge.voting import PASS_OR_FAIL, decide

if TYPE_CHECKING:
    from judge.stats.intervals import Estimate
    from judge.stats.pairs import RaterPair

_MOST_ANSWERS = 4
"""How many answers of a judge are reported, the most frequent first."""


@dataclass(frozen=True, slots=True)
class JudgePair:
    """How far two judges agree: on `agreeing` of the `n` records (or entries) that both decided.

    `kappa` has quadratic weights if answers are scores. It is undefined if one judge was asked only
    `in_part`: those records are the ones on which others differed, or that a run left open.
    """

    judges: tuple[str, str]
    agreeing: int
    n: int
    kappa: Estimate
    in_part: bool


class _Cast(NamedTuple):
    """A judge's vote on one unit; `score` only where answers are scores."""

    model: str
    verdict: str
    answer: str | None
    score: float | None


@dataclass(slots=True)
class PanelVotes:
    """Counts over the votes of one check by several models, in bounded memory.

    A unit is a record, or an entry of a check on entries. A model's first vote on a unit is the
    judge's. By judge, `asked` counts the units that it was asked about, `answers` its decided
    answers of each kind (`pass` and `fail`, or labels, or scores), `passed` the units that it
    passed; `totals` are the sums of its scores. `further` counts the votes after the first of a
    unit put to several judges; `idle` those of them that changed nothing, since the first alone
    gives the same outcome. `repeated` counts the units on which one judge decided more than once,
    `flipped` those of them on which it did not always say the same.
    """

    scale: bool = False
    units: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    further: int = 0
    idle: int = 0
    repeated: int = 0
    flipped: int = 0
    _pairs: dict[tuple[str, str], RaterPair] = field(default_factory=dict)

    def add(self, check: Check, votes: Sequence[Vote], line: Line) -> None:
        """Count the panel's `votes` for a check of an output line."""
        self.scale = self.scale or check.score is not None
        graded = self.scale or bool(check.counted)
        units: dict[str | None, list[_Cast]] = defaultdict(list)
        for vote in votes:
            for value, opinion in vote.counted_as(graded=graded).items():
                units[value].append(_Cast(vote.model, *opinion, vote.score))
        several = len({vote.model for vote in votes}) > 1
        copies = int(digest(telling_texts(line.fields))[:8], 16) if several else 0
        for cast in units.values():
            self.units += 1
            if several:
                self._count(check, cast)
            self._repeat(cast)
            self._compare(cast, copies)

    def add_alone(
        self, check: Mapping[str, Any], vote: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> None:
        """Count the only vote of a check of an output line, with its only answer."""
        self.scale = self.scale or "score" in check
        verdict = str(answer["verdict"])
        named = answer.get("answer") if self.scale or "counted" in check else None
        self.units += 1
        self._compare([_Cast(vote["model"], verdict, named, vote.get("score"))], 0)

    @property
    def by_several(self) -> bool:
        """Whether several judges were asked about the same unit."""
        return bool(self.further or self._pairs)

    def _repeat(self, cast: Sequence[_Cast]) -> None:
        said: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
        for vote in cast:
            if vote.verdict in SETTLED:
                said[vote.model].append((vote.verdict, vote.answer))
        again = [opinions for opinions in said.values() if len(opinions) > 1]
        self.repeated += bool(again)
        self.flipped += any(len({*opinions}) > 1 for opinions in again)

    def _count(self, check: Check, cast: Sequence[_Cast]) -> None:
        opinions = [(vote.verdict, vote.answer) for vote in cast]
        if self.scale:
            idle = check.verdict == cast[0].verdict
            if check.verdict is Verdict.ANSWERED:  # Without a bound the mean is the outcome.
                idle = check.score == cast[0].score
        else:
            idle = decide(opinions, len(cast)) == opinions[0]
        self.further += len(cast) - 1
        self.idle += (len(cast) - 1) * idle

    def _compare(self, cast: Sequence[_Cast], copies: int) -> None:
        first = {vote.model: vote for vote in reversed(cast)}
        said: dict[str, Mapping[str, float]] = {}
        for model in dict.fromkeys(vote.model for vote in cast):
            vote = first[model]
            self.asked[model] += 1
            if vote.verdict in SETTLED and not (self.scale and vote.answer is None):
                opinion = vote.answer or vote.verdict
                self.passed[model] += vote.verdict == Verdict.PASS
                self.answers[model][opinion] += 1
                self.totals[model] += vote.score or 0.0
                said[model] = {"": float(opinion)} if self.scale else {opinion: 1.0}
        for one, two in combinations(said, 2):
            if (two, one) in self._pairs:
                one, two = two, one
            if (one, two) not in self._pairs:
                from judge.stats.pairs import RaterPair

                self._pairs[one, two] = RaterPair()
            self._pairs[one, two].add(copies, said[one], said[two])

    def decided(self, judge: str) -> int:
        """On how many units the judge passed, failed or gave an answer that counts."""
        return self.answers[judge].total()

    @property
    def pairs(self) -> list[JudgePair]:
        """All pairs of judges: those that agree least first, those asked in part last."""
        from judge.stats.intervals import Estimate

        pairs = []
        for judges, pair in self._pairs.items():
            whole, in_part = pair.whole, any(self.asked[judge] < self.units for judge in judges)
            kappa = Estimate(None, n=whole.n, of=whole.n) if in_part else pair.kappa()
            pairs.append(JudgePair(judges, whole.agreeing, whole.n, kappa, in_part))
        return sorted(pairs, key=lambda pair: (pair.in_part, pair.agreeing / pair.n))

    @property
    def effective(self) -> tuple[int, float] | None:
        """How many judges that answer were asked about every unit, and how many independent ones
        they are worth at least; None if a pair of them has no kappa: it may always agree."""
        from judge.stats.pairs import effective_votes

        whole = sum(self.asked[judge] == self.units for judge in self.asked if self.decided(judge))
        everywhere = [pair.kappa.value for pair in self.pairs if not pair.in_part]
        kappas = [kappa for kappa in everywhere if kappa is not None]
        worth = effective_votes(whole, kappas) if len(kappas) == comb(whole, 2) else None
        return None if worth is None else (whole, worth)

    def says(self, judge: str) -> str:
        """A summary of the judge's answers in a few words."""
        answers, of, asked = self.answers[judge], self.decided(judge), self.asked[judge]
        parts = [] if asked == self.units else [f"asked in {asked} of {self.units}"]
        if not of:
            return ", ".join(parts) or "decides nothing"
        if answers.keys() <= {*PASS_OR_FAIL} or self.passed.total():
            from judge.stats.intervals import percent

            passed = self.passed[judge]
            parts.insert(0, f"passes {passed} of {of} ({percent(passed / of)})")
        elif self.scale:
            parts.insert(0, f"mean score {self.totals[judge] / of:.2f} of {of}")
        else:
            most = [f"{n} {answer}" for answer, n in answers.most_common(_MOST_ANSWERS)]
            parts = [*most, *(["..."] if len(answers) > len(most) else []), *parts]
        return ", ".join(parts)

    def findings(self, pairs: int | None = None, *, repeated: bool = True) -> Iterator[str]:
        """The findings in sentences, with at most `pairs` pairs, those that agree least; if
        `repeated`, also that no judge that voted several times said something else."""
        everywhere = [pair for pair in self.pairs if not pair.in_part]
        for pair in everywhere[:pairs]:
            one, two = pair.judges
            kind = "weighted kappa" if self.scale else "kappa"
            known = f"{kind} {pair.kappa}" if pair.kappa.value is not None else f"{kind} undefined"
            yield f"{one} and {two} agree in {pair.agreeing} of {pair.n}, {known}"
        if len(everywhere) > (pairs or len(everywhere)):
            yield f"the other {len(everywhere) - (pairs or 0)} pairs agree more often"
        if [*everywhere] != self.pairs:
            some = ", ".join(judge for judge in self.asked if self.asked[judge] < self.units)
            yield f"not asked everywhere, so without kappa: {some} (see --all-votes)"
        if self.flipped or (self.repeated and repeated):
            yield f"asked again, a judge says something else in {self.flipped} of {self.repeated}"
        if self.further:
            count = f"{self.idle} of {self.further} further votes changed nothing"
            yield f"{count}: the first alone says the same"
        if (effective := self.effective) is not None:
            judges, worth = effective
            count = f"{judges} judges count for about {worth:.1f} independent votes or more"
            yield f"{count} (Kish 1965)"

    def as_json(self) -> dict[str, Any]:
        """The form in the summary file."""
        from judge.stats.intervals import plain

        judges = {
            judge: {
                "passed": self.passed[judge],
                "decided": self.decided(judge),
                "asked": asked,
                "answers": dict(self.answers[judge]),
            }
            for judge, asked in self.asked.items()
        }
        effective = self.effective
        return {
            "units": self.units,
            "judges": judges,
            "pairs": [plain(pair) for pair in self.pairs],
            "further_votes": self.further,
            "changed_nothing": self.idle,
            "repeated": self.repeated,
            "flipped": self.flipped,
            "effective_votes": effective
            and {"of": effective[0], "at_least": round(effective[1], 3)},
        }


def count_votes(panels: dict[str, PanelVotes], line: Line) -> None:
    """Count a line's votes by check; if a person decided it, the judges' votes from before."""
    checks = {check["check"]: check for check in line.checks if check.get("votes")}
    for name, content in checks.items():
        # The cheap judge of a cascade is not part of the panel.
        cast = [vote for vote in content["votes"] if "part" not in vote]
        evidence: Sequence[Any] = (cast[0].get("evidence") or ()) if cast else ()
        if len(cast) == len(evidence) == 1:
            # Not validated: most runs have one vote, and a run may have a million lines.
            panels[name].add_alone(content, cast[0], evidence[0])
        elif cast and (check := read_check(content)):
            panels[name].add(check, [v for v in check.votes if v.part == "panel"], line)


@dataclass(slots=True)
class SupportingVotes:
    """Counts over the votes of one model beside a check's judges: all `votes`, and those `lost`
    without an answer (`problem` is the first one's)."""

    votes: int = 0
    lost: int = 0
    problem: str = ""

    def add(self, vote: Mapping[str, Any]) -> None:
        self.votes += 1
        if all(answer["verdict"] in LOST for answer in vote.get("evidence") or (vote,)):
            self.lost += 1
            self.problem = self.problem or f"{vote['model']}: {vote.get('reason')}"

    def idle(self, model: str, instead: str) -> str | None:
        """The message that the model never answered; None if it did, or was not asked."""
        if not self.votes or self.lost < self.votes:
            return None
        counts = f"{self.lost} of {self.votes} votes lost"
        return f"{model} {self.problem} ({counts}; {instead})"


@dataclass(slots=True)
class CheapVotes(SupportingVotes):
    """The votes of a cascade's cheap judge; `alone` counts those after which no other judge was
    asked."""

    alone: int = 0

    def as_json(self) -> dict[str, int]:
        return {"checks": self.votes, "by_cheap_model_alone": self.alone}


class ByPeople(Counter[tuple[Verdict, Verdict]]):
    """Counts of records of which people decided a check, by the verdict of the judges' checks and
    that of the record. `overturned` counts the checks that judges had decided and people decided
    otherwise, `left_open` those that judges had not decided."""

    overturned = left_open = 0

    def add(self, line: Line) -> None:
        """Count a line that people decided."""
        judgement = line.judgement()
        if (was := judgement.judges_verdict) is None:
            return
        self[was, Verdict(line.verdict)] += 1
        for check in last_of_each(judgement.checks):
            if check.by == PERSON and (judged := judgement.by_people[check.name]) is not None:
                settled = judged.verdict in SETTLED
                self.overturned += settled and judged.verdict != check.verdict
                self.left_open += not settled

    @property
    def changed(self) -> dict[tuple[Verdict, Verdict], int]:
        """The counts of records whose verdict people changed, most frequent first."""
        return {(was, now): n for (was, now), n in self.most_common() if was != now}

    def __str__(self) -> str:
        changes = [f"{n} from {was} to {now}" for (was, now), n in self.changed.items()]
        records = f"{self.total()} record{'s' * (self.total() != 1)}"
        return f"people decided {records}; verdicts changed: {', '.join(changes) or 'none'}"

    def as_json(self) -> dict[str, int]:
        return {"records": self.total(), "changed": sum(self.changed.values())}
