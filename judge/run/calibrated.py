"""Profiles applied to a run's judges; pass rates by check, corrected for the judges' errors.

A profile's error rates hold for records as they came in. A repaired record was rewritten until the
judge passed it, so its checks count as they were before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.errors import UsageError
from judge.judging.judge import Judge
from judge.judging.logprobs import Reader
from judge.judging.panel import Panel
from judge.profiles import Binding, JudgeProfile, Profiles, Rates, named, shipped
from judge.settings import Settings
from judge.stats.corrected_rate import ClusterSums, Corrected, rogan_gladen
from judge.stats.intervals import plain
from judge.verdict import Check, Verdict
from judge.weights import store

if TYPE_CHECKING:
    from judge.workflow import By

_DECIDED = (Verdict.PASS, Verdict.FAIL)

NO_PROFILE = "none"
"""The value of --profile that leaves out the profiles of the package, too."""


class Errors(NamedTuple):
    """How a check's verdicts err on records as they came in.

    `unseen` is the deciding field, where the controls do not show that the judge looks at it.
    """

    rates: Rates
    unseen: str | None = None


def profiles_of(settings: Settings) -> Profiles:
    """The profiles that a run uses.

    Raises:
        UsageError: the file cannot be read or is no profile.
    """
    if settings.profile == NO_PROFILE:
        return Profiles()
    return shipped() if settings.profile is None else named(Path(settings.profile))


def profiled_models(settings: Settings, profiles: Profiles) -> Settings:
    """The settings with the judges that the user's profile is for, where the user names none.

    Only the embedded default need not be named: a profile chooses no other model, since that may
    run elsewhere, cost money, or be a script that passes everything.

    Raises:
        UsageError: it knows several judges and none is named; it makes a cascade of others; or it
            is for a model that the user did not name.
    """
    if profiles.source is None:
        return settings
    if not profiles.cascades:
        if settings.model or settings.cheap_model:
            return settings
        if len(profiles.models) > 1:
            told = ", ".join(profiles.models)
            raise UsageError(f"{profiles.told} knows {told}: name one with --model")
        _refuse_unnamed(profiles, [("--model", model) for model in profiles.models])
        return settings.model_copy(update={"model": profiles.models})
    cheap, strong = profiles.models
    if settings.model not in ((), (strong,)) or settings.cheap_model not in (None, cheap):
        raise UsageError(
            f"{profiles.told} is for {cheap} before {strong}; leave out --model and "
            "--cheap-model, or calibrate the judges that you want"
        )
    pairs = ("--cheap-model", cheap, settings.cheap_model), ("--model", strong, settings.model)
    _refuse_unnamed(profiles, [(flag, model) for flag, model, named in pairs if not named])
    return settings.model_copy(update={"model": (strong,), "cheap_model": cheap})


def _refuse_unnamed(profiles: Profiles, unnamed: Iterable[tuple[str, str]]) -> None:
    """Refuse models that only the profile names, each with its flag, but for the default."""
    flags = [f"{flag} {quote(model)}" for flag, model in unnamed if not store.is_default(model)]
    if flags:
        raise UsageError(
            f"{profiles.told} was made for a model that you did not name: add {' '.join(flags)}"
        )


def binding_of(judge: Judge, votes: int, temperature: float) -> Binding:
    """What a profile must be bound to, to apply to this judge.

    `votes` and `temperature` are those of structured replies.
    """
    drawn = not judge.probabilistic
    return Binding(
        check=judge.rubric.name,
        rubric=judge.rubric.digest,
        model=judge.client.spec,
        identity=judge.client.backend.identity(),
        method="structured" if drawn else judge.method,
        temperature=temperature if drawn else 0.0,
        votes=votes if drawn else 1,
        per_value=judge.one_by_one,
    )


def reading_by(judge: Judge, found: JudgeProfile | None, margin: float) -> Judge:
    """The judge with the reader of its profile.

    Args:
        margin: how far from an even chance, or from a threshold, it must be to be sure (0 to 0.5).
    """
    if found is None or found.combination is None:
        sure_at = found.sure_at if found else 0.0
        return replace(judge, reader=Reader(margin=margin, sure_at=sure_at))
    sure_at = max(found.sure_at, 0.5 + margin if margin else 0.0)
    return replace(judge, reader=Reader(combination=found.combination, sure_at=sure_at))


def errors_of(panel: Panel, known: Mapping[str, JudgeProfile], profiles: Profiles) -> Errors | None:
    """How a panel's verdicts err, a cascade's as a whole.

    None for a panel of several judges, of a judge without a profile or with one whose labels a
    field told, or of one that reads by another margin than its profile's. `known` has the profiles
    in force, by model.
    """
    deciding = [*panel.judges, *([panel.cheap] if panel.cheap else ())]
    for judge in deciding:
        found = known.get(judge.client.spec)
        if found is None:
            return None
        if judge.reader != Reader(combination=found.combination, sure_at=found.sure_at):
            return None
    own = known[panel.judges[0].client.spec]
    rates = profiles.cascades.get(panel.rubric.name) if panel.cheap else own.rates
    if len(panel.judges) > 1 or rates is None or own.leak is not None:
        return None
    unseen = None if own.controls.get("looks", True) else str(own.controls["field"])
    return Errors(rates, unseen)


# ---------------------------------------------------------------- corrected pass rates


@dataclass(slots=True)
class CorrectedRate:
    """One check's pass rate over the added records, as they came in.

    `unseen` is the deciding field, where calibration did not show that the judge looks at it.
    """

    check: str
    rates: Rates
    unseen: str | None = None
    undecided: int = 0
    sums: ClusterSums = field(default_factory=ClusterSums)

    def add(self, verdicts: Collection[Verdict]) -> None:
        """Count one record's verdicts: one for each value, or one for the record."""
        decided = [verdict is Verdict.PASS for verdict in verdicts if verdict in _DECIDED]
        self.undecided += len(verdicts) - len(decided)
        if decided:
            self.sums.add(sum(decided), len(decided))

    @property
    def corrected(self) -> Corrected:
        """Rogan and Gladen's estimate from the profile's error rates, or why it is refused."""
        sums, known = self.sums, self.rates
        return rogan_gladen(
            sums.passed,
            sums.n,
            known.passed,
            known.passes,
            known.failed,
            known.fails,
            deff_judged=sums.design_effect,
            deff_labelled=known.design_effect,
        )

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and greatest corrected rate over all records, the undecided ones counted as
        failing or as passing: a judge may abstain more where they are bad (Manski 2003)."""
        low, high = self.corrected.estimate.low, self.corrected.estimate.high
        if low is None or high is None or not self.undecided:
            return None
        decided = self.sums.n / (self.sums.n + self.undecided)
        return low * decided, high * decided + 1 - decided

    def as_json(self) -> dict[str, Any]:
        corrected = self.corrected
        return {
            "check": self.check,
            "raw": plain(corrected.raw),
            "undecided": self.undecided,
            "corrected": {**plain(corrected.estimate), "reason": corrected.reason},
            "with_undecided": plain(self.bounds),
            "not_shown_to_look_at": self.unseen,
        }


class Corrections:
    """Pass rates, over output lines, of the checks whose judge has a profile."""

    def __init__(self) -> None:
        self._rates: dict[str, CorrectedRate] = {}

    def add(self, judgement: Mapping[str, Any], known: Mapping[tuple[str, By], Errors]) -> None:
        """Count one line's `"judge"`; `known` has the errors by check and who makes it."""
        checks = _as_it_came(judgement.get("checks", ()))
        for check in {check["check"]: check for check in checks}.values():
            errors = known.get((check["check"], check["by"]))
            if errors is not None and check["verdict"] not in (Verdict.SKIPPED, Verdict.ERROR):
                rate = CorrectedRate(check["check"], errors.rates, errors.unseen)
                verdicts = Check.model_validate(check).verdicts()
                self._rates.setdefault(rate.check, rate).add(verdicts.values())

    def rates(self) -> list[CorrectedRate]:
        """One for each check, in the order of their names."""
        return [rate for _, rate in sorted(self._rates.items())]


def _as_it_came(checks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The checks of the record as it came in: a repair makes the first of them again."""
    made: set[tuple[str, str]] = set()
    for check in checks:
        if (key := (check["check"], check["by"])) in made:
            return
        made.add(key)
        yield check
