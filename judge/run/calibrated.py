"""A run's judges and the profiles that speak of them: who reads how, and with what error rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from judge.errors import UsageError
from judge.judging.judge import Judge
from judge.judging.panel import Panel
from judge.judging.reading import Reader
from judge.profiles import Bond, JudgeProfile, Profiles, Rates, named, shipped
from judge.rubric import Rubric
from judge.settings import Settings

NO_PROFILE = "none"
"""What --profile takes to leave out even the profiles that come with the package."""


class Errors(NamedTuple):
    """How a check's verdicts err on records that were not edited.

    `labels` has, by `item_key`, whether a labelled item should pass.
    """

    rates: Rates
    labels: Mapping[str, bool]


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
        UsageError: the profile knows several judges, and none is named; or it makes a cascade, and
            other models are named.
    """
    if profiles.source is None:
        return settings
    if not profiles.cascades:
        if settings.model or settings.cheap_model:
            return settings
        if len(profiles.models) > 1:
            told = ", ".join(profiles.models)
            raise UsageError(f"--profile {profiles.source} knows {told}: name one with --model")
        return settings.model_copy(update={"model": profiles.models})
    cheap, strong = profiles.models
    if settings.model not in ((), (strong,)) or settings.cheap_model not in (None, cheap):
        raise UsageError(
            f"--profile {profiles.source} is for {cheap} before {strong}; leave out --model and "
            "--cheap-model, or calibrate the judges that you want"
        )
    return settings.model_copy(update={"model": (strong,), "cheap_model": cheap})


def bond_of(judge: Judge, votes: int, temperature: float) -> Bond:
    """What a profile must have been made for to speak of this judge.

    Args:
        votes: how many votes this judge gives; one where they are read from log-probabilities.
        temperature: of structured replies.
    """
    return Bond(
        check=judge.rubric.name,
        rubric=judge.rubric.digest,
        model=judge.client.spec,
        identity=judge.client.backend.identity(),
        reading="probability" if judge.probabilistic else "structured",
        temperature=0.0 if judge.probabilistic else temperature,
        votes=1 if judge.probabilistic else votes,
        apart=judge.one_by_one,
    )


def refuse_misfit(judge: Judge, found: JudgeProfile, profiles: Profiles) -> None:
    """See that a profile's combination can be applied to the rubric it is bound to.

    Raises:
        UsageError: it asks what the rubric does not, or answers what the rubric cannot.
    """
    if found.combination is None:
        return
    reading, rubric = judge.rubric.readings.probability, judge.rubric
    asked = reading.questions if judge.probabilistic and reading is not None else ()
    problem = found.combination.misfit([len(question.words) for question in asked])
    if unknown := [a for a in found.combination.answers if a not in rubric.answers]:
        problem = f"answer {unknown[0]}, which {rubric.name} does not have"
    if problem:
        told = f"{profiles.told}: the combination for {rubric.name}"
        raise UsageError(f"{told} is made for {problem}")


def refuse_thresholds(settings: Settings, rubrics: Mapping[str, Rubric]) -> None:
    """See that the user's thresholds are those of questions that the rubrics have.

    Raises:
        UsageError: no rubric is called so, it is not read by probability, or it has fewer steps.
    """
    steps = {
        name: len(rubric.readings.probability.steps)
        for name, rubric in rubrics.items()
        if rubric.readings.probability is not None
    }
    for name, given in settings.thresholds.items():
        if name not in steps:
            told = f"no rubric called {name!r} is read by probability; there are {', '.join(steps)}"
            raise UsageError(f"thresholds: {told}")
        if len(given) > steps[name]:
            has = f"{name} has {steps[name]} step{'s' if steps[name] > 1 else ''}"
            raise UsageError(f"thresholds.{name}: {has}, and {len(given)} thresholds are given")


def reading_by(
    judge: Judge, found: JudgeProfile | None, settings: Settings, margin: float
) -> Judge:
    """The judge with the reader that its profile or the user's thresholds make.

    Args:
        margin: how far from an even chance, or from a threshold, it must be to be sure (0 to 0.5).
    """
    own = settings.thresholds.get(judge.rubric.name)
    if found is None or own:
        return replace(judge, reader=Reader(tuple(own or ()), margin))
    if found.combination is None:
        return replace(judge, reader=Reader((), margin, sure_at=found.sure_at))
    sure_at = max(found.sure_at, 0.5 + margin if margin else 0.0)
    return replace(judge, reader=Reader(combination=found.combination, sure_at=sure_at))


def errors_of(panel: Panel, known: Mapping[str, JudgeProfile], profiles: Profiles) -> Errors | None:
    """How a panel's verdicts err, a cascade's as a whole.

    None for a panel of several judges, of a judge without a profile, or of one that reads by other
    thresholds than its profile's.

    Args:
        known: the profiles in force, by model.
    """
    if len(panel.judges) != 1:
        return None
    judge = panel.judges[0]
    found = known.get(judge.client.spec)
    if found is None or not _reads_by(judge, found):
        return None
    if panel.screen is None:
        return Errors(found.rates, found.labels)
    cheap = known.get(panel.screen.client.spec)
    whole = profiles.cascades.get(panel.rubric.name)
    if whole is None or cheap is None or not _reads_by(panel.screen, cheap):
        return None
    return Errors(whole, found.labels)


def _reads_by(judge: Judge, found: JudgeProfile) -> bool:
    return judge.reader == Reader(combination=found.combination, sure_at=found.sure_at)
