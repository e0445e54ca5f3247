"""How a setting is declared: of every run in judge/settings.py, of a workflow by its package."""

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
"""Groups of settings: a command asks for some of them, and its help shows each under its name."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is declared of a setting beside its type and default.

    `unset` says what happens without it, where the default does not. An untrusted judge.toml may
    set what is `harmless`: it loosens no check, runs no code, chooses no model or host, and makes
    no run dearer. What `decides` can change a verdict, and is part of the fingerprint as it is.
    `common` ones are those that most runs need, which `--help` shows. It does nothing without the
    one that it `needs`.
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


class Options(BaseModel):
    """Settings of one owner. An entry point in `judge.settings` adds a workflow's to all others:
    they have flags, variables and keys of judge.toml as these do."""

    def own_rubrics(self) -> Sequence[Rubric]:
        """Rubrics that take the place of built-in ones of their name, or are asked besides."""
        return ()
