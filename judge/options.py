"""Declares settings: those of every run in judge/settings.py, those of a workflow in its
package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from judge.questions.rubric import Rubric

MODELS, JUDGING, ENGINE = "Models", "Judging", "Engine"
LIMITS, CACHE, TRACES, TRUST = "Speed and money", "Cache", "Traces", "Trust"
"""Groups of settings: a command selects some, and its help shows each under the group's name."""


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of a setting, besides its type and default.

    - `unset`: what happens without it, if the default does not say so.
    - `harmless`: an untrusted judge.toml may set it. It loosens no check, runs no code, chooses no
      model or host, and makes no run more expensive.
    - `decides`: it can change a verdict, so its value is part of the fingerprint.
    - `common`: most runs need it, so `--help` shows it.
    - `needs`: the setting without which it has no effect.
    """

    help: str
    unset: str = ""
    group: str = ""
    short: str | None = None
    metavar: str | None = None
    harmless: bool = False
    decides: bool = False
    common: bool = False
    needs: str = ""


def setting(
    help: str,
    *,
    default: Any = None,
    unset: str = "",
    group: str = "",
    short: str | None = None,
    metavar: str | None = None,
    harmless: bool = False,
    decides: bool = False,
    common: bool = False,
    needs: str = "",
    **bounds: Any,
) -> Any:
    """The field of a setting, with pydantic's bounds."""
    option = Option(help, unset, group, short, metavar, harmless, decides, common, needs)
    return Field(default, json_schema_extra={"option": option}, **bounds)  # type: ignore[dict-item]


judging = partial(setting, group=JUDGING, decides=True)
"""A setting that can change a verdict."""


def share_of(percent: str) -> float:
    """The share that a percentage is: 0.999 for 99.9, which divided by 100 is more in binary.

    Raises:
        ValueError: the text is not a number.
    """
    return round(float(percent) / 100, 12)


class Options(BaseModel):
    """Settings of one owner. An entry point in `judge.settings` adds a workflow's settings to the
    others; they get flags, variables and keys of judge.toml in the same way."""

    def own_rubrics(self) -> Sequence[Rubric]:
        """Rubrics that replace built-in ones of the same name, or are asked besides."""
        return ()
