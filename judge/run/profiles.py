"""The profiles of a run: to which judges each applies, and how it changes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from judge.backends import default_model
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.judge import Judge
from judge.profile import Binding, JudgeProfile, Profiles, named, shipped
from judge.settings import Settings

NO_PROFILE = "none"
"""The value of --profile that disables all profiles, also the package's."""


def profiles_of(settings: Settings, models: Sequence[str] = ()) -> Profiles:
    """The profiles of a run, whose models are those of the settings and `models`. The package's
    profiles are read if the default model judges.

    Raises:
        UsageError: the file cannot be read or is not a profile.
    """
    if settings.profile == NO_PROFILE:
        return Profiles()
    if settings.profile is not None:
        return named(Path(settings.profile))
    steps = (step.model for step in settings.model_for.values())
    specs = (*settings.model, *settings.final_model, settings.cheap_model, *steps, *models)
    named_default = (model := default_model()) and any(
        spec and spec.partition("+")[0] == model.spec for spec in specs
    )
    return shipped() if named_default or not settings.model else Profiles()


def profiled_models(settings: Settings, profiles: Profiles) -> Settings:
    """The settings with the judges of the user's profile, if the user names none.

    Only the embedded default need not be named: a profile chooses no other model, since that may
    run elsewhere, cost money, or be a script that passes everything.

    Raises:
        UsageError: the profile has several judges and none is named; it is for a cascade of other
            judges; or it is for a model that the user did not name.
    """
    if profiles.source is None:
        return settings
    if not profiles.cascades:
        if settings.model or settings.cheap_model:
            return settings
        if len(profiles.models) > 1:
            names = ", ".join(profiles.models)
            raise UsageError(
                f"{profiles.told} has several judges ({names}): choose one with --model"
            )
        _refuse_unnamed(profiles, [("--model", model) for model in profiles.models])
        return settings.model_copy(update={"model": profiles.models})
    cheap, strong = profiles.models
    if settings.model not in ((), (strong,)) or settings.cheap_model not in (None, cheap):
        raise UsageError(
            f"{profiles.told} is for the cascade {cheap}, then {strong}: name it as --cheap-model "
            f"{quote(cheap)} --model {quote(strong)}, or calibrate your judges"
        )
    pairs = ("--cheap-model", cheap, settings.cheap_model), ("--model", strong, settings.model)
    _refuse_unnamed(profiles, [(flag, model) for flag, model, explicit in pairs if not explicit])
    return settings.model_copy(update={"model": (strong,), "cheap_model": cheap})


def _refuse_unnamed(profiles: Profiles, unnamed: Iterable[tuple[str, str]]) -> None:
    """Refuse models, except the default, that only the profile names; each comes with its flag."""
    flags = [f"{flag} {quote(model)}" for flag, model in unnamed if model not in shipped().specs]
    if flags:
        raise UsageError(
            f"{profiles.told} was made for a model that you did not name: add {' '.join(flags)}"
        )


def profile_key(judge: Judge, votes: int, temperature: float) -> Binding:
    """The binding that a profile must have to apply to this judge.

    `votes` and `temperature` count only for structured replies.
    """
    sampled = not judge.probabilistic
    return Binding(
        check=judge.rubric.name,
        rubric=judge.rubric.digest,
        model=judge.client.spec,
        identity=judge.client.backend.identity(),
        method="structured" if sampled else judge.method,
        temperature=temperature if sampled else 0.0,
        votes=votes if sampled else 1,
        per_entry=judge.one_by_one,
    )


def with_profile(judge: Judge, profile: JudgeProfile | None, margin: float) -> Judge:
    """The judge with the reader of its profile.

    Args:
        margin: least distance from an even chance, or from a threshold, to be sure (0 to 0.5).
    """
    if profile is None or profile.classifier is None:
        sure_at = profile.sure_at if profile else 0.0
        return replace(judge, reader=AnswerReader(margin=margin, sure_at=sure_at))
    sure_at = max(profile.sure_at, 0.5 + margin if margin else 0.0)
    return replace(judge, reader=AnswerReader(classifier=profile.classifier, sure_at=sure_at))
