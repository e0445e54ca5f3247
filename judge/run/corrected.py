"""Pass rates by check, corrected for the judges' errors.

A profile's error rates apply to records before repair. A repaired record was rewritten until the
judge passed it, so its checks from before the repair are counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.digest import digest
from judge.judging.answer_reader import AnswerReader
from judge.judging.panel import Panel
from judge.profile import JudgeProfile, Rates
from judge.records.lines import Line, read_check
from judge.records.words import telling_texts
from judge.run.description import RunDescriptions
from judge.run.profiles import Profiles
from judge.stats.corrected_rate import Corrected, design_effect, rogan_gladen
from judge.stats.intervals import Estimate, plain
from judge.verdict import PERSON, Verdict

if TYPE_CHECKING:
    from judge.workflows import By

_DECIDED = (Verdict.PASS, Verdict.FAIL)

_PARTS = 2**16
"""Most clusters, or random groups of clusters, whose answers are summed."""


class Errors(NamedTuple):
    """A check's error rates, which apply to records before repair.

    `unseen` is the deciding field, if the controls do not show that the judge looks at it; `group`
    is a field: records with the same value of it are not independent.
    """

    rates: Rates
    unseen: str | None = None
    group: str | None = None


def error_rates(
    panel: Panel, in_force: Mapping[str, JudgeProfile], profiles: Profiles
) -> Errors | None:
    """The error rates of a panel; of a cascade as a whole.

    None for several judges, for a judge without a profile or with another margin than its
    profile's, and for a profile whose labels a field gave away. `in_force` has the profiles in
    force, by model.
    """
    deciding = [*panel.judges, *([panel.cheap] if panel.cheap else ())]
    for judge in deciding:
        profile = in_force.get(judge.client.spec)
        if profile is None:
            return None
        if judge.reader != AnswerReader(classifier=profile.classifier, sure_at=profile.sure_at):
            return None
    first = in_force[panel.judges[0].client.spec]
    rates = profiles.cascades.get(panel.rubric.name) if panel.cheap else first.rates
    if len(panel.judges) > 1 or rates is None or first.leak is not None:
        return None
    unseen = None if first.controls.get("looks", True) else str(first.controls["field"])
    return Errors(rates, unseen, first.data.group)


@dataclass(slots=True)
class CorrectedRate:
    """One check's pass rate over the added records, before repair.

    Records with the same value of `errors.group`, or else the same text, are a cluster; `ungrouped`
    counts those without such a value; `foreign` those that an earlier run judged in another way, to
    which the error rates do not apply. To bound memory, clusters are hashed by name into `_PARTS`
    parts at most: the spread between random groups of clusters estimates the error of a share as
    the spread between clusters does (Wolter 2007, Introduction to Variance Estimation, chapter 2).
    """

    check: str
    errors: Errors
    ungrouped: int = 0
    foreign: int = 0
    passed: Counter[int] = field(default_factory=Counter)
    undecided: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)

    def add(self, verdicts: Collection[Verdict], fields: Mapping[str, Any]) -> None:
        """Count one record's verdicts: one per value, or one for the record."""
        group = fields.get(self.errors.group) if self.errors.group else None
        self.ungrouped += group in (None, "")
        name = telling_texts(fields) if group in (None, "") else str(group)
        part = int(digest(name)[:8], 16) % _PARTS
        self.passed[part] += sum(verdict is Verdict.PASS for verdict in verdicts)
        self.undecided[part] += sum(verdict not in _DECIDED for verdict in verdicts)
        self.sizes[part] += len(verdicts)

    @property
    def corrected(self) -> Corrected:
        """Rogan and Gladen's estimate from the profile's error rates, or why there is none, such as
        `foreign` records.

        All records count, since a judge may abstain more often on bad ones: the undecided ones,
        here and among the labels, count once as failed and once as passed. If the judge abstains as
        it did on the labels, both estimate the same rate; the more it differs, the farther apart
        they are. The value is their mean; the interval spans both intervals.
        """
        lowest, highest = (self._counted(undecided_pass=flag) for flag in (False, True))
        if self.foreign:
            none = Estimate(None, n=lowest.estimate.n, of=lowest.estimate.of)
            why = f"other settings judged {self.foreign} of these records"
            return replace(lowest, estimate=none, reason=why)
        if lowest.reason or highest.reason:
            return replace(lowest if lowest.reason else highest, raw=lowest.raw)
        return replace(lowest, estimate=lowest.estimate.spanning(highest.estimate))

    def _counted(self, *, undecided_pass: bool) -> Corrected:
        rates, n = self.errors.rates, self.sizes.total()
        undecided = self.undecided if undecided_pass else Counter[int]()
        parts = [(self.passed[part] + undecided[part], size) for part, size in self.sizes.items()]
        share = sum(passes for passes, _ in parts) / n if n else 0.0
        return rogan_gladen(
            sum(passes for passes, _ in parts),
            n,
            *rates.counts(undecided_pass=undecided_pass),
            deff_judged=design_effect(
                [passes - size * share for passes, size in parts],
                [size for _, size in parts],
                n * share * (1 - share),
            ),
            deff_labelled=rates.design_effect,
        )

    def told(self, profile: str | None = None) -> str:
        """The rate, raw and corrected for the judge's errors, in words; by the error rates of the
        user's `profile` or of the one that comes with the package."""
        raw, estimate = self.corrected.raw, self.corrected.estimate
        text = f"{self.check}: the judge passes {raw} of {raw.n}"
        if undecided := self.undecided.total():
            text += f" ({undecided} undecided)"
        if estimate.value is None:
            text += f"; not corrected: {self.corrected.reason}"
        else:
            text += f"; corrected for its errors {estimate}, by {estimate.n} labels"
            text += f" (rates from {profile})" if profile else ""
            text += "; assumes independent records" if self.ungrouped else ""
        if (unseen := self.errors.unseen) is not None:
            text += f"; not shown to look at {unseen}"
        return text

    def as_json(self) -> dict[str, Any]:
        corrected = self.corrected
        return {
            "check": self.check,
            "raw": plain(corrected.raw),
            "undecided": self.undecided.total(),
            "corrected": {**plain(corrected.estimate), "reason": corrected.reason},
            "grouped_by": None if self.ungrouped else self.errors.group,
            "not_shown_to_look_at": self.errors.unseen,
        }


@dataclass(slots=True)
class RatesOfLines:
    """Rates of output lines, by the error rates in the `described` runs; none if several runs of
    one workflow judged them."""

    described: RunDescriptions
    _rates: dict[str, CorrectedRate] = field(default_factory=dict)
    _marks: dict[str, set[str | None]] = field(default_factory=lambda: defaultdict(set))

    def add(self, line: Line) -> None:
        if line.workflow and line.checks and not line.error:
            self._marks[line.workflow].add(line.fingerprint)
            content = self.described.of(line.fingerprint).content.get("error_rates")
            if errors := _errors_in(content):
                count(self._rates, line, errors)

    @property
    def told(self) -> list[str]:
        alone = all(len(marks) == 1 for marks in self._marks.values())
        return [rate.told() for _, rate in sorted(self._rates.items())] if alone else []


def described_errors(errors: Mapping[tuple[str, By], Errors]) -> list[dict[str, Any]]:
    """Error rates as the description beside OUT has them, from which a page corrects rates."""
    return [
        {"check": check, "by": by, **found._asdict(), "rates": found.rates.model_dump()}
        for (check, by), found in errors.items()
    ]


def _errors_in(content: Any) -> dict[tuple[str, By], Errors]:
    """The error rates of a description; none if they are not in the form of judge's."""
    try:
        return {
            (one["check"], one["by"]): Errors(
                Rates.model_validate(one["rates"]), one["unseen"], one["group"]
            )
            for one in content or ()
        }
    except (KeyError, TypeError, ValueError):
        return {}


def count(
    rates: dict[str, CorrectedRate],
    line: Line,
    errors: Mapping[tuple[str, By], Errors],
    *,
    foreign: bool = False,
) -> None:
    """Count one line in the rates, by check.

    Args:
        errors: by check and who makes it. Checks without votes or with an error are not counted.
        foreign: whether the line is from a run with other settings.
    """
    # The error rates are the judge's, so its check counts, also where a person decided after it.
    by_judges = (check for check in line.checks if check["by"] != PERSON)
    checks, fields = _as_it_came(by_judges), line.original_fields
    for check in {check["check"]: check for check in checks}.values():
        check_errors = errors.get((check["check"], check["by"]))
        if check_errors is None or not check.get("votes") or check["verdict"] == Verdict.ERROR:
            continue
        if valid := read_check(check):
            rate = rates.setdefault(valid.name, CorrectedRate(valid.name, check_errors))
            rate.add(valid.verdicts().values(), fields)
            rate.foreign += foreign


def _as_it_came(checks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The checks before repair, which begins where the first check is made again."""
    keys: set[tuple[str, str]] = set()
    for check in checks:
        if (key := (check["check"], check["by"])) in keys:
            return
        keys.add(key)
        yield check
