"""Gates: bounds on a run's pass rates and mean scores, such as `faithful >= 0.9`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError, meant
from judge.options import share_of
from judge.questions.parts import Bound
from judge.records.kinds import RECORD
from judge.run.rubrics import RubricSet, scales_of
from judge.stats.intervals import percent
from judge.verdict import UNDECIDED, Verdict

if TYPE_CHECKING:
    from judge.questions.rubric import Rubric
    from judge.run.summary import Summary

_GATE = re.compile(r"(mean\s+)?(\S+)\s*(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)\s*(%?)")


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound on the pass rate of a check, or on its `mean` score.

    The subject `record` stands for whole records: before repair, or after it (`repaired`). `scale`
    is the lowest and highest score of a check with scores, if it is known.
    """

    subject: str
    bound: Bound
    mean: bool = False
    repaired: bool = False
    scale: tuple[float, float] | None = None

    @classmethod
    def of(cls, text: str) -> Gate:
        """Parse a gate such as `faithful >= 90%`.

        Raises:
            UsageError: the text is not a gate.
        """
        match = _GATE.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"--gate {text!r}: type CHECK >= SHARE or mean CHECK >= SCORE (or <=, >, <), as in "
                "'faithful >= 0.9'"
            )
        mean, subject, sign, number, percent = match.groups()
        limit = share_of(number) if percent else float(number)
        if mean and percent:
            raise UsageError(f"--gate {text!r}: a mean is a score, without %")
        if not mean and not 0 <= limit <= 1:
            hint = "a share is from 0 to 1 (100%)"
            if not percent and 1 < limit <= 100:
                hint = f"for a share of passes type {limit:g}%"
            if not percent and subject != RECORD:
                name = "CHECK" if subject == "mean" else subject
                hint += f"; for a mean score type 'mean {name} {sign} {limit:g}'"
            raise UsageError(f"--gate {text!r}: {hint}")
        return cls(subject, Bound(sign, limit), bool(mean))

    @classmethod
    def from_json(cls, content: Any) -> Gate | None:
        """The gate of `as_json`; None if it is none, such as after an edit by hand."""
        match content:
            case {
                "subject": str(subject),
                "sign": ">=" | "<=" | ">" | "<" as sign,
                "limit": float() as limit,
                "mean": bool(mean),
                "repaired": bool(repaired),
                "scale": None | [float(), float()] as ends,
            }:
                scale = None if ends is None else (ends[0], ends[1])
                return cls(subject, Bound(sign, limit), mean, repaired, scale)
        return None

    def as_json(self) -> dict[str, Any]:
        """The form in the description of a run."""
        return {
            "subject": self.subject,
            "sign": self.bound.sign,
            "limit": self.bound.limit,
            "mean": self.mean,
            "repaired": self.repaired,
            "scale": self.scale and [*map(float, self.scale)],
        }

    @property
    def is_floor(self) -> bool:
        """Whether the bound is a lower one: then an undecided record counts as low."""
        return self.bound.sign in (">", ">=")

    def __str__(self) -> str:
        mean, repaired = "mean " * self.mean, " after repair" * self.repaired
        return f"{mean}{self.subject}{repaired} {self.bound.sign} {self.bound.limit:g}"

    @property
    def open(self) -> str:
        """The outcome in a run that is not finished."""
        return f"gate {self}: open, because the run is not finished"

    def refuse_unfit(self, rubrics: Mapping[str, Rubric], checks: Collection[str]) -> None:
        """Check that the gate fits the run.

        Raises:
            UsageError: the run has no such check, or the check has no scores (for a mean) or no
                answers that pass or fail (for a pass rate).
        """
        if self.subject == RECORD:
            if self.mean:
                raise UsageError(f"--gate '{self}': records have no score; name a check")
            return
        if self.subject not in checks:
            near = meant(self.subject, [*sorted(checks), RECORD])
            raise UsageError(f"--gate '{self}': this run has no such check; {near}")
        rubric = rubrics.get(self.subject)
        if self.mean and (rubric is None or rubric.scale is None):
            raise UsageError(f"--gate '{self}': {self.subject} has no scores, see --answers")
        if self.mean and rubric is not None and rubric.each:
            raise UsageError(f"--gate '{self}': {self.subject} has no mean, only scores of entries")
        if not self.mean and rubric is not None and rubric.rule.counts:
            averaged = rubric.scale and not rubric.each
            more = f", or gate its mean: mean {self.subject} >= X" if averaged else ""
            add = _that_passes([rubric])
            raise UsageError(
                f"--gate '{self}': no answer to {self.subject} passes or fails: {add}{more}"
            )

    def outcome(self, summary: Summary) -> GateOutcome:
        """The value that the run reached."""
        if self.mean:
            return self._mean_outcome(summary)
        if self.subject == RECORD:
            counts = summary.verdicts if self.repaired else summary.before_repair
        else:
            counts = summary.counts_of(self.subject)
        of = counts.total() - counts[Verdict.SKIPPED]
        undecided = {str(v): counts[v] for v in UNDECIDED if counts[v]}
        if not of:
            return GateOutcome(self, None, 0, of)
        passed = (counts[Verdict.PASS], counts[Verdict.PASS] + sum(undecided.values()))
        worst, best = passed if self.is_floor else passed[::-1]
        return GateOutcome(self, worst / of, worst, of, undecided, at_best=best / of)

    def _mean_outcome(self, summary: Summary) -> GateOutcome:
        """The mean of the decided scores; each undecided record counts as the end of the scale that
        is worst for the bound."""
        of = summary.asked(self.subject) + summary.unread(self.subject)
        sums = summary.scores.get(self.subject)
        if sums is None:
            return GateOutcome(self, None, 0, of)
        count, total = sums.count, sums.total
        value, left = total / count, of - count
        if not left:
            return GateOutcome(self, value, count, of, at_best=value)
        if self.scale is None:
            return GateOutcome(self, value, count, of, open_scores=OpenScores(left, None, None))
        worst, best = self.scale if self.is_floor else self.scale[::-1]
        open_scores = OpenScores(left, worst, (total + left * worst) / of)
        at_best = (total + left * best) / of
        return GateOutcome(self, value, count, of, open_scores=open_scores, at_best=at_best)


@dataclass(frozen=True, slots=True)
class OpenScores:
    """The undecided records under a gate on a mean: their `count`, the score that each `counts_as`
    (None: the scale is unknown), and the mean `with_them`."""

    count: int
    counts_as: float | None
    with_them: float | None

    def __str__(self) -> str:
        if self.counts_as is None:
            return f"{self.count} undecided, on an unknown scale"
        verb = "counts" if self.count == 1 else "count"
        return f"{self.count} undecided {verb} as {self.counts_as:g}: {self.with_them:.2f}"


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The pass rate or mean that a run reached; `n` records of `of` count as passing, or have a
    decided score.

    Under a pass rate, `undecided` (records by verdict) count as not passing, or as passing if the
    bound is an upper one; under a mean they are `open_scores`. `at_best` is the value if they were
    all decided in favour of the gate; None if that is unknown.
    """

    gate: Gate
    value: float | None
    n: int
    of: int
    undecided: Mapping[str, int] | None = None
    open_scores: OpenScores | None = None
    at_best: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the bound is reached; False without records.

        Undecided records count as what is worst for the bound.
        """
        value = self.value if self.open_scores is None else self.open_scores.with_them
        return value is not None and self.gate.bound.holds(round(value, 9))

    @property
    def could_hold(self) -> bool:
        """Whether the gate does not hold, but could if the undecided records were decided."""
        best = self.at_best
        return not self.holds and (best is None or self.gate.bound.holds(round(best, 9)))

    @property
    def reached(self) -> str | None:
        """The value in words; None if it is undefined."""
        if self.value is None:
            return None
        return f"{self.value:.2f}" if self.gate.mean else percent(self.value)

    @property
    def counts(self) -> str:
        """Over how many records of how many the value is, and how the undecided ones count."""
        if self.value is None:
            return f"none of {self.of} is decided" if self.of else "there is no record"
        of = f"{self.n} of {self.of}" + (" decided" if self.gate.mean else "")
        notes = [f"{count} {verdict}" for verdict, count in (self.undecided or {}).items()]
        noted = f"; counted as {self._counted_as}: {', '.join(notes)}" if notes else ""
        return of + noted + (f"; {self.open_scores}" if self.open_scores else "")

    def __str__(self) -> str:
        verb = "holds" if self.holds else "does not hold"
        reached = "" if self.reached is None else f"{self.reached}, "
        return f"gate {self.gate}: {verb} ({reached}{self.counts})"

    @property
    def _counted_as(self) -> str:
        return "not passing" if self.gate.is_floor else "passing"

    def as_json(self) -> dict[str, Any]:
        """The form in the summary file."""
        value = None if self.value is None else round(self.value, 6)
        undecided: dict[str, Any] = {}
        if self.undecided:
            undecided["undecided"] = dict(self.undecided)
            undecided["counted_as"] = self._counted_as
        if self.open_scores:
            undecided["without_score"] = asdict(self.open_scores)
        return {
            "gate": str(self.gate),
            "holds": self.holds,
            "value": value,
            "n" if self.gate.mean else "passing": self.n,
            "of": self.of,
            **undecided,
        }


def _that_passes(rubrics: Collection[Rubric]) -> str:
    """What to type so that an answer to one of these, which only count answers, passes."""
    if all(rubric.ranking for rubric in rubrics):
        return "of several fields none passes; compare two, with --pass"
    return "add --pass"


def gates_of(rubrics: RubricSet) -> list[Gate]:
    """The gates of a run: `--fail-under` and `--fail-under-repaired`, on whole records, and
    `--gate`.

    Raises:
        UsageError: a gate is malformed or does not fit the run.
    """
    settings = rubrics.settings
    shares = ((settings.fail_under, False), (settings.fail_under_repaired, True))
    gates = [Gate(RECORD, Bound(">=", x), repaired=late) for x, late in shares if x is not None]
    typed, scales = map(Gate.of, settings.gate), scales_of(rubrics.by_name)
    gates += [replace(gate, scale=scales.get(gate.subject)) for gate in typed]
    for gate in gates:
        gate.refuse_unfit(rubrics.by_name, rubrics.checks())
        if gate.subject == RECORD and rubrics.counting:
            add = _that_passes([rubrics.by_name[name] for name in rubrics.checks()])
            raise UsageError(f"gate {gate}: no answer passes or fails in this run; {add}")
        if gate.subject != RECORD and settings.repair:
            raise UsageError(
                f"--gate '{gate}' with --repair: the checks are of rewritten texts; gate whole "
                "records (--fail-under), or leave --repair out"
            )
    return gates
