"""Profiles: what calibration learnt about judges, each with its binding, classifier and rates."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from judge.backends.base import Method
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.judging.classifiers import Classifier
from judge.problems import problems_of
from judge.questions.rubric import Rubric

_UNBOUND = frozenset({"engine"})
"""Parts of a backend's identity that a profile notes but does not require: the engine's version
moves a probability in the third place (tests/local/test_llama.py), and changes every month."""

Count = Annotated[int, Field(ge=0)]
WeightedCount = Annotated[int | float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class _ProfileModel(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,  # Most runs read no profile.
    )


class Binding(_ProfileModel):
    """The judge that a profile is for: rubric, model, method and sampling.

    `per_entry` says whether the structured method makes a call for each entry.
    """

    check: str
    rubric: str
    model: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
    identity: Mapping[str, str]
    method: Method
    temperature: Annotated[float, Field(ge=0)]
    votes: Annotated[int, Field(ge=1)]
    per_entry: bool = False

    @property
    def base(self) -> str:
        """The model's name without the path of its adapter, whose hash is in the identity."""
        return self.model.rpartition("+")[0] if "adapter" in self.identity else self.model

    def is_of(self, model: str, identity: Mapping[str, str]) -> bool:
        """Whether it is bound to this model: one of this name, or weights on this machine with the
        same hash, wherever they lie."""
        marks = ("provider", "sha256", "adapter")
        alike = all(self.identity.get(mark) == identity.get(mark) for mark in marks)
        return self.model == model or ("sha256" in identity and alike)

    def differences(self, binding: Binding) -> list[str]:
        """The differences from another judge, in words."""
        names = ["check", "rubric", "method", "votes", "per_entry"]
        if self.method == "structured":
            names.append("temperature")
        pairs: list[tuple[str, Any, Any]] = []
        # A file of weights may have another name; its hash is its own.
        unbound = _UNBOUND | ({"model"} if "sha256" in self.identity else set())
        if not self.is_of(binding.model, binding.identity):
            pairs.append(("model", self.base, binding.base))
        pairs += [(name, getattr(self, name), getattr(binding, name)) for name in names]
        pairs += [
            (name, self.identity.get(name), binding.identity.get(name))
            for name in sorted({*self.identity, *binding.identity} - unbound)
        ]
        return [
            f"{name} {ours} in the profile, {theirs} here"
            for name, ours, theirs in pairs
            if ours != theirs
        ]


class Data(_ProfileModel):
    """The labels: their sources, a digest over them, and how they were used. With `folds`, each
    part was reported on by what was fitted to the others. Records with the same value of the field
    `group` are not independent."""

    sources: tuple[str, ...]
    digest: str
    items: Count
    records: Count
    fitted_on: Count
    held_out: Count
    folds: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    group: Annotated[str | None, Field(exclude_if=operator.not_)] = None


class Rates(_ProfileModel):
    """Verdicts against labels, on items that nothing was fitted to.

    Of `passes` items that should pass, the judge passed `passed`; of `fails` that should fail, it
    failed `failed`. Items without a verdict are in neither: `undecided_passes` should pass, and
    `undecided_fails` should fail. `design_effect` (at least 1) is the factor by which the variance
    is larger because items of one cluster are alike.
    """

    passed: WeightedCount
    passes: WeightedCount
    failed: WeightedCount
    fails: WeightedCount
    undecided_passes: WeightedCount = 0
    undecided_fails: WeightedCount = 0
    design_effect: Annotated[float, Field(ge=1)] = 1.0

    @model_validator(mode="after")
    def _parts_of_wholes(self) -> Rates:
        if self.passed > self.passes or self.failed > self.fails:
            raise ValueError("more verdicts are right than there are labels")
        return self

    def counts(self, *, undecided_pass: bool) -> tuple[float, float, float, float]:
        """The right passes, passes, right fails and fails, for `rogan_gladen`, with undecided
        items counted as passed or as failed."""
        return (
            self.passed + undecided_pass * self.undecided_passes,
            self.passes + self.undecided_passes,
            self.failed + (not undecided_pass) * self.undecided_fails,
            self.fails + self.undecided_fails,
        )

    @property
    def unfit(self) -> str | None:
        """Why no pass rate is corrected by these; None if they correct rates."""
        # Every run reads profiles, and few need the statistics.
        from judge.stats.corrected_rate import unfit

        reasons = (
            unfit(*self.counts(undecided_pass=flag), deff_labelled=self.design_effect)
            for flag in (False, True)
        )
        return next(filter(None, reasons), None)

    @property
    def missing(self) -> float:
        """How many more labels like these are worth `MIN_LABELS` independent ones; 0 for none."""
        from judge.stats.corrected_rate import MIN_LABELS

        _, passes, _, fails = self.counts(undecided_pass=False)
        return max(0.0, MIN_LABELS * self.design_effect - passes - fails)


class Guarantee(_ProfileModel):
    """From `sure_at` on, the judge agrees with the labels at least `agreement` of the time.

    This holds with confidence `level`, in the long run, on records like the `labels` tested ones,
    of which the judge was sure of the share `decided` (Jung et al. 2025).
    """

    agreement: Share
    level: Share
    labels: Count
    decided: Share


class JudgeProfile(_ProfileModel):
    """What calibration learnt about one judge.

    - `classifier`: None leaves the rubric's own decision list in force.
    - `measures`: the agreement that was found, as `judge calibrate` reports it; `controls`: what is
      left of it without the deciding field (judge/calibration/controls.py).
    - `elsewhere`: the judge's measures on `sets` whose authors wrote nothing that it was taught or
      fitted to.
    - `shown`: the fields that were shown, if the rubric names none.
    - `leak`: a field that was shown and gives the labels away by itself. The measures are then no
      agreement, and the rates correct nothing.
    - `answered_by`: the models behind a server's address. Which of them answers a run is known only
      after its first line has a fingerprint, so another one is reported, not refused.
    """

    binding: Binding
    data: Data
    classifier: Annotated[Classifier, Field(discriminator="kind")] | None = Field(
        default=None, alias="combination"
    )
    sure_at: Share = 0.0
    guarantee: Guarantee | None = None
    rates: Rates
    answered_by: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    measures: Mapping[str, Any] = {}
    controls: Mapping[str, Any] = {}
    elsewhere: Annotated[Mapping[str, Any], Field(exclude_if=operator.not_)] = {}
    shown: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    leak: Annotated[str | None, Field(exclude_if=operator.not_)] = None

    def why_guess(self, *, unmeasured: bool) -> str | None:
        """Why the judge may be guessing; None if it is better than a guess, both on texts by the
        authors of its labels and on others', and better than without the deciding field.

        Args:
            unmeasured: whether what was not measured counts as a guess.
        """
        if self.leak is not None:
            return f"its labels could be read off the field {self.leak} alone"
        for measures in (self.measures, self.elsewhere):
            kappa = measures.get("kappa", {})
            least = kappa.get("low")
            if least is None and kappa.get("value") == 0:
                least = 0.0  # One answer to all items: there is no interval.
            if unmeasured if least is None else least <= 0:
                return "the profile does not show this judge to be better than a guess"
        looks = self.controls.get("looks")
        if unmeasured if looks is None else not looks:
            return "by the profile's controls this judge does not read the field that decides"
        return None

    @property
    def fingerprint(self) -> str:
        """16 hex digits over everything that changes a verdict or a corrected rate."""
        noted = {"answered_by", "measures", "controls", "elsewhere", "shown", "leak"}
        plain = self.model_dump(mode="json", exclude=noted)
        plain["binding"]["identity"] = {
            name: text for name, text in self.binding.identity.items() if name not in _UNBOUND
        }
        return digest(plain)[:16]


class Profile(_ProfileModel):
    """A profile file: judges in the order of their cascade, check by check.

    `cascades` names the checks whose first judge decides what it is sure of and leaves the rest to
    the next, with the cascade's error rates. `rubrics` has the user's own, in the form of their
    files, so that the profile alone says what to ask.
    """

    format: Literal[1] = 1
    made_by: str
    cascades: Mapping[str, Rates] = {}
    rubrics: tuple[Rubric, ...] = ()
    judges: Annotated[tuple[JudgeProfile, ...], Field(min_length=1)]

    @field_validator("rubrics", mode="before")
    @classmethod
    def _no_code(cls, rubrics: Any) -> Any:
        """Refuse Python code before a rubric is made, which would read its file."""
        if isinstance(rubrics, list) and any(
            isinstance(r, dict) and r.get("python") for r in rubrics
        ):
            raise ValueError("a profile cannot hold Python: name its file on the command line")
        return rubrics

    @model_validator(mode="after")
    def _two_judges_a_cascade(self) -> Profile:
        models = tuple(dict.fromkeys(judge.binding.model for judge in self.judges))
        for check in self.cascades:
            made_of = tuple(j.binding.model for j in self.judges if j.binding.check == check)
            if len(models) != 2 or made_of != models:
                raise ValueError(f"cascades: {check} is not decided by the same two models as all")
        return self


def profile_file(path: Path) -> Path:
    """The file itself; of the folder of calibrate's -o, the profile there."""
    return path / "profile.json" if path.is_dir() else path


def load_profile(path: str | PathLike[str]) -> Profile:
    """The profile in a profile.json, or in the folder that `judge calibrate` wrote;
    `validate(profile=path)` judges by it.

    Raises:
        UsageError: the file cannot be read, or is not a profile.
    """
    text = read_text(path := profile_file(Path(path)))
    try:
        return Profile.model_validate_json(text)
    except ValidationError as error:
        place, problem = next(problems_of(error))
        raise UsageError(f"{path}: {'.'.join(place) or 'the file'}: {problem}") from error
