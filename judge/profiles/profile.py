"""What a profile holds: for each judge its bond, its combination, its error rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judge.backends.base import Reading
from judge.digest import digest
from judge.judging.combining import Combination
from judge.subject import Subject

_UNBOUND = frozenset({"engine"})
"""Parts of a backend's identity that a profile notes and does not hold one to: the engine's version
moves a probability in the third place (tests/backends/test_local.py), and changes every month."""

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Bond(_Part):
    """What a judge's profile speaks of: the same rubric, model, reading and sampling, or none.

    `apart` tells whether a structured reading takes a call for each value.
    """

    check: str
    rubric: str
    model: str
    identity: Mapping[str, str]
    reading: Reading
    temperature: Annotated[float, Field(ge=0)]
    votes: Annotated[int, Field(ge=1)]
    apart: bool = False

    def differences(self, other: Bond) -> list[str]:
        """What `other` has otherwise, in words; none if the profile speaks of it."""
        told = []
        for name in ("check", "model", "rubric", "reading", "votes", "apart"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                told.append(f"{name} {ours} in the profile, {theirs} here")
        if self.reading == "structured" and self.temperature != other.temperature:
            told.append(f"temperature {self.temperature} in the profile, {other.temperature} here")
        names = sorted({*self.identity, *other.identity} - _UNBOUND)
        told += [
            f"{name} {self.identity.get(name)} in the profile, {other.identity.get(name)} here"
            for name in names
            if self.identity.get(name) != other.identity.get(name)
        ]
        return told


class Data(_Part):
    """The labels: their sources, a digest over them, and how they were used."""

    sources: tuple[str, ...]
    digest: str
    items: Count
    records: Count
    fitted_on: Count
    held_out: Count


class Rates(_Part):
    """Verdicts against labels, on items that nothing was fitted to.

    Of `passes` items that should pass the judge passed `passed`; of `fails` that should fail it
    failed `failed`; items without a verdict are in neither and counted in `undecided`.
    `design_effect` (1 and up) is how much wider intervals are because items of one record are
    alike.
    """

    passed: Count
    passes: Count
    failed: Count
    fails: Count
    undecided: Count = 0
    design_effect: Annotated[float, Field(ge=1)] = 1.0

    @model_validator(mode="after")
    def _parts_of_wholes(self) -> Rates:
        if self.passed > self.passes or self.failed > self.fails:
            raise ValueError("more verdicts are right than there are labels")
        return self


class Guarantee(_Part):
    """From `sure_at` on the judge agrees with the labels at least `agreement` of the time.

    With the confidence `level`, in the long run, on records like the `labels` that it was tested
    on; `decided` is the share of those that it was sure of (Jung et al. 2025).
    """

    agreement: Share
    level: Share
    labels: Count
    decided: Share


class JudgeProfile(_Part):
    """What calibration learnt about one judge.

    `combination` None leaves the rubric's own decision list in force. `labels` holds, by
    `item_key`, whether a labelled item that nothing was fitted to should pass. `measures` is the
    agreement that was found, as `judge calibrate` reports it.
    """

    bond: Bond
    data: Data
    combination: Combination | None = None
    sure_at: Share = 0.0
    guarantee: Guarantee | None = None
    rates: Rates
    edited: Rates | None = None
    labels: Mapping[str, bool] = {}
    measures: Mapping[str, Any] = {}

    @property
    def fingerprint(self) -> str:
        """16 hex digits over all that changes a verdict or a corrected rate."""
        plain = self.model_dump(mode="json", exclude={"measures"})
        plain["bond"]["identity"] = {
            name: text for name, text in self.bond.identity.items() if name not in _UNBOUND
        }
        return digest(plain)[:16]


class Profile(_Part):
    """A profile file: judges in the order of their cascade, check by check.

    `cascades` names the checks whose first judge decides what it is sure of and leaves the rest to
    the next, with the error rates of the whole.
    """

    format: Literal[1] = 1
    made_by: str
    cascades: Mapping[str, Rates] = {}
    judges: Annotated[tuple[JudgeProfile, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _two_judges_a_cascade(self) -> Profile:
        models = tuple(dict.fromkeys(judge.bond.model for judge in self.judges))
        for check in self.cascades:
            made_of = tuple(j.bond.model for j in self.judges if j.bond.check == check)
            if len(models) != 2 or made_of != models:
                raise ValueError(f"cascades: {check} is not decided by the same two models as all")
        return self


def item_key(subject: Subject, value: str | None) -> str:
    """What tells a labelled item again: the record's texts as they were read, and the value."""
    texts = {name: text for name, text in subject.texts.items() if text}
    return digest({"texts": texts, "value": value})[:16]
