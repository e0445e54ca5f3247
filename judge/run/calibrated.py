"""A run's judges and the profiles that speak of them: who reads how, with what error rates, and the
pass rates by check, as the judge has them and corrected for its errors.

What a profile knows about errors it knows of records as they came in. A repaired record was
rewritten until the judge passed it, so its checks count as they were before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.errors import UsageError
from judge.judging.judge import Judge
from judge.judging.logprobs import Reader
from judge.judging.panel import Panel
from judge.profiles import Binding, JudgeProfile, Profiles, Rates, item_key, named, shipped
from judge.records import RESERVED, Item, Problem, build
from judge.settings import Settings
from judge.stats.corrected_rate import ClusterSums, Corrected, prediction_powered, rogan_gladen
from judge.stats.intervals import Estimate, plain
from judge.subject import Subject
from judge.verdict import Check, Verdict

if TYPE_CHECKING:
    from judge.run.setup import Bound

_DECIDED = (Verdict.PASS, Verdict.FAIL)

NO_PROFILE = "none"
"""What --profile takes to leave out even the profiles that come with the package."""


class Errors(NamedTuple):
    """How a check's verdicts err on records as they came in.

    `labels` has, by `item_key`, whether a labelled item should pass; `unseen` is the deciding field
    where the controls do not show that the judge looks at it.
    """

    rates: Rates
    labels: Mapping[str, bool]
    unseen: str | None = None


def profiles_of(settings: Settings) -> Profiles:
    """The profiles that a run goes by.

    Raises:
        UsageError: the file cannot be read or is no profile.
    """
    if settings.profile == NO_PROFILE:
        return Profiles()
    return shipped() if settings.profile is None else named(Path(settings.profile))


def profiled_models(settings: Settings, profiles: Profiles) -> Settings:
    """The settings with the judges that the user's profile names, where the user names none.

    Raises:
        UsageError: it knows several judges and none is named, or it makes a cascade of others.
    """
    if profiles.source is None:
        return settings
    if not profiles.cascades:
        if settings.model or settings.cheap_model:
            return settings
        if len(profiles.models) > 1:
            told = ", ".join(profiles.models)
            raise UsageError(f"{profiles.told} knows {told}: name one with --model")
        return settings.model_copy(update={"model": profiles.models})
    cheap, strong = profiles.models
    if settings.model not in ((), (strong,)) or settings.cheap_model not in (None, cheap):
        raise UsageError(
            f"{profiles.told} is for {cheap} before {strong}; leave out --model and "
            "--cheap-model, or calibrate the judges that you want"
        )
    return settings.model_copy(update={"model": (strong,), "cheap_model": cheap})


def binding_of(judge: Judge, votes: int, temperature: float) -> Binding:
    """What a profile must have been made for to speak of this judge.

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
    """The judge with the reader that its profile makes.

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

    None for a panel of several judges, of a judge without a profile, or of one that reads by
    another margin than its profile's. `known` has the profiles in force, by model.
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
    if len(panel.judges) > 1 or rates is None:
        return None
    unseen = None if own.controls.get("looks", True) else str(own.controls["field"])
    return Errors(rates, own.labels, unseen)


# ---------------------------------------------------------------- corrected pass rates


@dataclass(slots=True)
class CorrectedRate:
    """One check's pass rate over the records, as they came in, whose verdicts were added.

    `unseen` is the deciding field, where calibration did not show that the judge looks at it;
    `pairs` counts (judge passed, should pass) where labels on these very records know it.
    """

    check: str
    rates: Rates
    unseen: str | None = None
    undecided: int = 0
    sums: ClusterSums = field(default_factory=ClusterSums)
    pairs: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(self, verdicts: Mapping[str | None, str], truth: Mapping[str | None, bool]) -> None:
        """Count one record's verdicts, by value, and what they should have been."""
        decided = {value: v == Verdict.PASS for value, v in verdicts.items() if v in _DECIDED}
        self.undecided += len(verdicts) - len(decided)
        if decided:
            self.sums.add(sum(decided.values()), len(decided))
        for value in decided.keys() & truth.keys():
            self.pairs[decided[value], truth[value]] += 1

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
    def powered(self) -> Estimate | None:
        """The prediction-powered estimate from labels on these very records; None without any."""
        sums, design = self.sums, (self.sums.design_effect, self.rates.design_effect)
        found = prediction_powered(
            sums.passed, sums.n, self.pairs, deff_judged=design[0], deff_labelled=design[1]
        )
        return found if found.n else None

    def as_json(self) -> dict[str, Any]:
        corrected = self.corrected
        return {
            "check": self.check,
            "raw": plain(corrected.raw),
            "undecided": self.undecided,
            "corrected": {**plain(corrected.estimate), "reason": corrected.reason},
            "prediction_powered": plain(self.powered),
            "not_shown_to_look_at": self.unseen,
        }


class Corrections:
    """Adds up output lines, check by check, for those checks whose judge has a profile."""

    def __init__(self) -> None:
        self._rates: dict[str, CorrectedRate] = {}

    def add(
        self,
        text: bytes,
        judgement: Mapping[str, Any],
        bound: Bound,
        columns: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Count one output line that a workflow with these errors brought, of a record with these
        columns."""
        subject: Subject | None = None
        checks = _as_it_came(judgement.get("checks", ()))
        for check in {check["check"]: check for check in checks}.values():
            errors = bound.errors.get((check["check"], check["by"]))
            if errors is None or check["verdict"] in (Verdict.SKIPPED, Verdict.ERROR):
                continue
            about = bound.context.panel(check["check"], check["by"]).rubric.about
            if subject is None and (errors.labels or about == "values"):
                subject = _subject(text, bound, columns)
            verdicts: dict[str | None, str] = {None: check["verdict"]}
            if about == "values" and subject is not None:
                # A value on which nothing was found is undecided.
                verdicts = {value.text: Verdict.ABSTAIN for value in subject.values}
                found = Check.model_validate(check).verdicts()
                verdicts |= {value: said for value, said in found.items() if value is not None}
            truth: dict[str | None, bool] = {}
            if subject is not None and errors.labels:
                keys = {value: item_key(subject, value) for value in verdicts}
                truth = {v: errors.labels[key] for v, key in keys.items() if key in errors.labels}
            rate = CorrectedRate(check["check"], errors.rates, errors.unseen)
            self._rates.setdefault(rate.check, rate).add(verdicts, truth)

    def rates(self) -> list[CorrectedRate]:
        """One for each check, in the order of their names."""
        return [rate for _, rate in sorted(self._rates.items())]


def _as_it_came(checks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The checks of the record as it came in: a rewrite makes one that was made before again."""
    made: set[tuple[str, str]] = set()
    for check in checks:
        if (key := (check["check"], check["by"])) in made:
            return
        made.add(key)
        yield check


def _subject(text: bytes, bound: Bound, columns: Mapping[str, str]) -> Subject | None:
    """The record of an output line as it was read."""
    line = json.loads(text)
    original = line.pop(RESERVED).get("original") or {}
    item = Item("", 0, {**line, **original}, columns=columns)
    record = build(item, bound.workflow.kind)
    return None if isinstance(record, Problem) else Subject.of(record)
