"""Finding the profile of a judge: in the file that the user named, else among those we ship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from judge.errors import UsageError, why_unread
from judge.profiles.profile import Bond, JudgeProfile, Profile, Rates


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a run: judges by check, and the checks whose judges make a cascade.

    `source` is the user's file; None for the profiles that come with the package, which speak of a
    judge where they fit and are silent where they do not.
    """

    judges: Mapping[str, Sequence[JudgeProfile]] = field(default_factory=dict)
    cascades: Mapping[str, Rates] = field(default_factory=dict)
    source: str | None = None

    @property
    def told(self) -> str:
        """How messages name them."""
        return "the package's profiles" if self.source is None else f"--profile {self.source}"

    @classmethod
    def of(cls, profile: Profile, source: str | None) -> Profiles:
        judges: dict[str, list[JudgeProfile]] = {}
        for judge in profile.judges:
            judges.setdefault(judge.bond.check, []).append(judge)
        return cls(judges, profile.cascades, source)

    def find(self, bond: Bond) -> JudgeProfile | None:
        """What is known of this very judge; None if the profiles say nothing of its check.

        Raises:
            UsageError: the user's profile speaks of the check, but of another judge.
        """
        known = self.judges.get(bond.check, ())
        for judge in known:
            if not judge.bond.differences(bond):
                return judge
        if known and self.source is not None:
            nearest = min((judge.bond.differences(bond) for judge in known), key=len)
            raise UsageError(
                f"--profile {self.source} was made for another judge of {bond.check}: "
                f"{'; '.join(nearest)}. Calibrate this judge, or judge as the profile says"
            )
        return None

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that the profiles speak of, once, the cheap one of a cascade first."""
        return tuple(dict.fromkeys(j.bond.model for known in self.judges.values() for j in known))


def named(path: Path) -> Profiles:
    """The profiles in a file.

    Raises:
        UsageError: it cannot be read, or is no profile; with the file and the key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--profile {path}: cannot be read: {why_unread(error)}") from error
    return Profiles.of(parse(text, f"--profile {path}"), str(path))


def parse(text: str, name: str) -> Profile:
    """A profile from its JSON; `name` stands for the file in messages.

    Raises:
        UsageError: it is none, naming the key at fault.
    """
    try:
        return Profile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(f"{name}: {place}: {first['msg']}") from error


@lru_cache(maxsize=1)
def shipped() -> Profiles:
    """The profiles that come with the package, one file a model."""
    judges: dict[str, list[JudgeProfile]] = {}
    for file in sorted(resources.files("judge.profiles").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".json"):
            for judge in parse(file.read_text("utf-8"), file.name).judges:
                judges.setdefault(judge.bond.check, []).append(judge)
    return Profiles(judges)
