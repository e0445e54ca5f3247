"""The profiles of a run: to which judges each applies, and how it changes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from judge.backends import default_model
from judge.backends.base import Method
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.judge import Judge
from judge.profile import Binding, JudgeProfile, Profile, Rates, load_profile, profile_file
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.base import clip
from judge.run.rubrics import RubricSet
from judge.settings import Settings

NO_PROFILE = "none"
"""The value of --profile that disables all profiles, also the package's."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a run: judges by check, and the checks whose judges make a cascade.

    `source` is the user's file; None for the package's profiles, which apply to the judges that
    they fit and are ignored for others.
    """

    judges: Mapping[str, Sequence[JudgeProfile]] = field(default_factory=dict)
    cascades: Mapping[str, Rates] = field(default_factory=dict)
    source: str | None = None
    rubrics: Sequence[Rubric] = ()
    made_by: str = ""

    @property
    def told(self) -> str:
        return f"--profile {self.source}"

    @classmethod
    def of(cls, profile: Profile, source: str | None) -> Profiles:
        judges: dict[str, list[JudgeProfile]] = {}
        for judge in profile.judges:
            judges.setdefault(judge.binding.check, []).append(judge)
        return cls(judges, profile.cascades, source, profile.rubrics, profile.made_by)

    def contents(self) -> Iterator[str]:
        """Messages on the user's profile: its judges, their labels, its own questions."""
        if self.source is None:
            return
        judges = [judge for profiles in self.judges.values() for judge in profiles]
        labels = {judge.binding.check: judge.data.items for judge in judges}
        checks = [f"{check} ({count} items)" for check, count in labels.items()]
        sources = dict.fromkeys(name for judge in judges for name in judge.data.sources)
        yield (
            f"{self.told}, made by {self.made_by}: {', '.join(checks)} by "
            f"{', '.join(self.models)}; labels from {', '.join(sources)}"
        )
        for judge in judges:
            if (why := judge.why_guess(unmeasured=False)) is not None:
                binding = judge.binding
                yield f"{self.told}: {binding.check} by {binding.model} may be a guess: {why}"
        if self.rubrics:
            methods = {judge.binding.check: judge.binding.method for judge in judges}
            questions = (
                f'{rubric.name}: "{_asked(rubric, methods.get(rubric.name))}"'
                for rubric in self.rubrics
            )
            yield f"{self.told} has its own questions: {', '.join(questions)}"

    def unmeasured(self, rubrics: Iterable[Rubric], record: Record) -> Iterator[str]:
        """Messages on fields of a record that these rubrics show, and did not in calibration."""
        for rubric in rubrics:
            profiles = () if rubric.fields else self.judges.get(rubric.name, ())
            known = {name for judge in profiles for name in judge.shown}
            names = [name for name in rubric.shown(record.texts).values() if name not in known]
            if known and names:
                yield (
                    f"{self.told}: {rubric.name} was calibrated without {', '.join(names)}, shown "
                    "here: its figures may not hold; calibrate again with --on FIELD"
                )

    def find(self, rubric: Rubric, bindings: Sequence[Binding]) -> JudgeProfile | None:
        """The profile of a judge on this rubric with one of these bindings, the first that fits;
        None if none does.

        Raises:
            UsageError: the user's profile has the check, but for another judge.
        """
        profiles = self.judges.get(rubric.name, ())
        for binding in bindings:
            for judge in profiles:
                if not judge.binding.differences(binding):
                    return judge
        if profiles and self.source is not None:
            nearest = min(
                (judge.binding.differences(binding) for judge in profiles for binding in bindings),
                key=len,
            )
            keys = list(self._other_keys(rubric))
            texts = [text for text in nearest if not (keys and text.startswith("rubric "))]
            raise UsageError(
                f"{self.told} was made for another judge of {rubric.name}: "
                f"{'; '.join(keys + texts)}. Calibrate this judge, or judge as the profile says"
            )
        return None

    def _other_keys(self, rubric: Rubric) -> Iterator[str]:
        """The keys in which the profile's own rubric differs from this one, in words."""
        for ours in (own.keys for own in self.rubrics if own.name == rubric.name):
            for key in {**ours, **rubric.keys}:
                both = [clip(k[key]) if key in k else "not set" for k in (ours, rubric.keys)]
                if len({*both}) == 2:
                    yield f"{key} {both[0]} in the profile, {both[1]} here"

    def methods(
        self, rubric: Rubric, model: str, identity: Mapping[str, str]
    ) -> tuple[Method, ...]:
        """The methods for which these profiles know the model on this rubric."""
        bindings = [judge.binding for judge in self.judges.get(rubric.name, ())]
        ours = [b for b in bindings if b.rubric == rubric.digest and b.is_of(model, identity)]
        return tuple(dict.fromkeys(binding.method for binding in ours))

    def with_adapter(self, model: str, rubric: Rubric) -> str:
        """The model with the package's adapter that these profiles have for this rubric; the model
        itself if they know it without one, or have none."""
        bindings = [judge.binding for judge in self.judges.get(rubric.name, ())]
        models = [binding.model for binding in bindings if binding.rubric == rubric.digest]
        if model in models:
            return model
        adapters = (spec for spec in models if spec.startswith(f"{model}+"))
        ours = (spec for spec in adapters if self.source is None or spec in shipped().specs)
        return next(ours, model)

    @property
    def models(self) -> tuple[str, ...]:
        """Every model of the profiles, once, a cascade's cheap one first; without its adapter if a
        single model has different ones for different checks."""
        once = all(len(profiles) == 1 for profiles in self.judges.values())
        bare = {judge.binding.base for profiles in self.judges.values() for judge in profiles}
        return tuple(bare) if once and len(bare) == 1 < len(self.specs) else self.specs

    @property
    def specs(self) -> tuple[str, ...]:
        """Every model that the profiles are bound to, with its adapter, once."""
        models = (judge.binding.model for profiles in self.judges.values() for judge in profiles)
        return tuple(dict.fromkeys(models))


def _asked(rubric: Rubric, method: Method | None) -> str:
    """The rubric's question as a judge with this method gets it."""
    if method == "structured" or not rubric.first_token:
        return rubric.prompt
    return rubric.first_token[0].question


def named(path: Path) -> Profiles:
    """The profiles that `--profile` names, a file or the folder of calibrate's -o; raises as
    `load_profile`."""
    path = profile_file(path)
    try:
        return Profiles.of(load_profile(path), str(path))
    except UsageError as error:
        raise UsageError(f"--profile {error}") from error


@lru_cache(maxsize=1)
def shipped() -> Profiles:
    """The profiles of the default model; empty if there is no such model."""
    if (model := default_model()) is None:
        return Profiles()
    return Profiles.of(load_profile(model.profile), None)


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


Questions: TypeAlias = tuple[RubricSet, Profiles]
"""The rubrics of a run, with its settings, and its profiles."""


def questions_of(
    settings: Settings, rubrics: Sequence[Rubric] = (), models: Sequence[str] = ()
) -> Questions:
    """The rubrics of a run that judges by these settings, and `rubrics`; and its profiles.

    Raises:
        UsageError: a rubric, workflow, check or profile cannot be used as named.
    """
    profiles = profiles_of(settings, models)
    settings = profiled_models(settings, profiles)
    explicit = settings.questions or settings.test or settings.rubric or rubrics
    profile_rubrics = () if explicit else profiles.rubrics
    if profile_rubrics and profiles.judges.keys() <= {rubric.name for rubric in profile_rubrics}:
        # As with --ask: every record is asked these alone, with their votes.
        settings = settings.model_copy(update={"workflow": settings.workflow or "record"})
    rubric_set = RubricSet.of(settings, (*rubrics, *profile_rubrics))
    for rubric in map(rubric_set.judging, rubric_set.own):
        if rubric.python is not None:
            rubric.python.load()  # Report faults in its file before any call is paid for.
    return rubric_set, profiles
