"""Declares settings, and how their values are read: those of every run in judge/settings.py, those
of a workflow in its package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import normalize

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic.fields import FieldInfo

from judge import plugins
from judge.model_tables import StepModel

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


def setting(help: str, *, default: Any = None, **declared: Any) -> Any:
    """The field of a setting, declared by an `Option`'s arguments and pydantic's bounds."""
    ours = {name: declared.pop(name) for name in Option.__slots__ if name in declared}
    option: Any = Option(help, **ours)
    return Field(default, json_schema_extra={"option": option}, **declared)


def option_of(field: FieldInfo) -> Option | None:
    """What `setting` declared of a field; None if it did not declare it."""
    extra: Any = field.json_schema_extra
    option = extra.get("option") if isinstance(extra, dict) else None
    return option if isinstance(option, Option) else None


judging = partial(setting, group=JUDGING, decides=True)
"""A setting that can change a verdict."""


class Options(BaseModel):
    """Settings of one owner. An entry point in `judge.settings` adds a workflow's settings to the
    others; they get flags, variables and keys of judge.toml in the same way."""

    model_config = ConfigDict(defer_build=True)  # Only all of them together are validated.

    def own_rubrics(self) -> Sequence[Rubric]:
        """Rubrics that replace built-in ones of the same name, or are asked besides."""
        return ()


# ---------------------------------------------------------------- types of settings

_NEXT_MODEL = re.compile(r"\s*,\s*(?=\w[\w-]*:)")
_NEXT_PAIR = re.compile(",(?=[^,=]+=)")


def _in_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _joined(value: object) -> object:
    return _split(",".join(map(str, value)) if isinstance(value, list | tuple) else value)


def _answers(value: object) -> object:
    if isinstance(value, list | tuple):
        value = str(value[0]) if len(value) == 1 else tuple(map(str, value))
    return _split(value)


def _models(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(spec for text in value for spec in _NEXT_MODEL.split(str(text)))
    return _split(value)


def _each_once(names: Words) -> Words:
    """A second vote of a model would be the same reply, counted twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is named twice; --votes 2 asks each model twice")
    return names


def _columns(value: object) -> Words:
    if isinstance(value, Mapping):
        pairs = [f"{name}={column}" for name, column in value.items()]
    else:
        texts = value if isinstance(value, list | tuple) else [value]
        pairs = [pair for text in texts for pair in _NEXT_PAIR.split(str(text))]
    columns = _by_name(pairs, "NAME=COLUMN")
    if "judge" in columns:
        raise ValueError(f"judge={columns['judge']}: judge is reserved for the verdict")
    return tuple(normalize("NFC", f"{name}={column}") for name, column in columns.items())


def _models_by_step(value: object) -> object:
    if isinstance(value, Mapping):
        return value
    texts = value if isinstance(value, list | tuple) else str(value).split(",")
    return _by_name(map(str, texts), "STEP=PROVIDER:MODEL")


def _by_name(pairs: Iterable[str], form: str) -> dict[str, str]:
    """The values of texts NAME=VALUE by name; raises ValueError if a name has two values."""
    values: dict[str, str] = {}
    for pair in filter(None, map(str.strip, pairs)):
        name, _, value = (part.strip() for part in pair.partition("="))
        if not name or not value:
            raise ValueError(f"{pair!r} is not {form}")
        if values.setdefault(name, value) != value:
            raise ValueError(f"{name} is named twice: {values[name]} and {value}")
    return values


def _share(value: object) -> object:
    if value is None:
        return None
    number = (text := str(value).strip()).removesuffix("%")
    try:
        share = float(number) if number == text else share_of(number)
    except ValueError:
        raise ValueError(f"{text!r} is not a share: type 0.9 or 90%") from None
    if not 0 <= share <= 1:
        percent = number == text and 2 <= share <= 100
        hint = f"type {share / 100:g}" if percent else "a share is from 0 to 1"
        raise ValueError(f"{text}: {hint}")
    return share


def share_of(percent: str) -> float:
    """The share that a percentage is: 0.999 for 99.9, which divided by 100 is more in binary.

    Raises:
        ValueError: the text is not a number.
    """
    return round(float(percent) / 100, 12)


def _named(value: object) -> object:
    if value == "":
        raise ValueError("must not be empty")
    return value


NamedPath = Annotated[Path | None, BeforeValidator(_named)]
"""Not an empty text, such as that of a shell's unset variable, which would be this folder."""

Words = tuple[str, ...]
WholeTexts = Annotated[Words, BeforeValidator(_in_tuple)]
"""A single text is one of them, commas included."""

Names = Annotated[Words, BeforeValidator(_split)]
"""A single text may hold several, separated by commas."""

NameList = Annotated[Words, BeforeValidator(_joined)]
"""Each text may hold several, separated by commas."""

AnswerNames = Annotated[Words, BeforeValidator(_answers)]
"""A single text, or the only one of a list, may hold several, separated by commas."""

ModelNames = Annotated[Words, BeforeValidator(_models), AfterValidator(_each_once)]
"""A single text may hold several, separated by commas; in a list, by commas before PROVIDER:."""

Columns = Annotated[Words, BeforeValidator(_columns)]
"""NAME=COLUMN, each name once, with é as one character: a table, or texts, each of which may hold
several pairs, separated by commas."""

StepModels = Annotated[Mapping[str, StepModel], BeforeValidator(_models_by_step)]
"""A table; from a flag or variable, texts STEP=PROVIDER:MODEL."""

PassShare = Annotated[float | None, BeforeValidator(_share)]
"""0.9, or 90%."""


# ---------------------------------------------------------------- the settings of packages

_GROUP = "judge.settings"


def owners(core: type[Options]) -> list[type[Options]]:
    """The classes of settings that packages declare besides `core`, judge's own first. A warning
    names each that cannot be used, which is left out."""
    classes: list[type[Options]] = []
    declared = plugins.usable(_GROUP, Options).items()
    for name, owner in sorted(declared, key=lambda pair: not _of_judge(pair[1])):
        if not _of_judge(owner) and (fault := _fault(owner, (*classes, core))):
            plugins.leave_out(plugins.unusable(_GROUP, name, fault))
        else:
            classes.append(owner)
    return classes


def _of_judge(owner: type[Options]) -> bool:
    return owner.__module__.startswith(f"{__package__}.")


def _fault(owner: type[Options], classes: Sequence[type[Options]]) -> str | None:
    """Why a class of settings cannot be used beside the others; None if it can."""
    options = {
        name: option_of(field)
        for settings in classes
        for name, field in settings.model_fields.items()
    }
    shorts = {option.short for option in options.values() if option}
    for name, field in owner.model_fields.items():
        if name in options:
            return f"there is a setting {name} already"
        if (option := option_of(field)) is None:
            return f"{name} is not declared by judge.options.setting"
        if option.short and option.short in shorts:
            return f"{name}: there is a flag {option.short} already"
    try:
        owner.model_rebuild(force=True)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        return str(error).partition("\n")[0]
    return None
