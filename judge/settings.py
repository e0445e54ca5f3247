"""Settings: flags, then JUDGE_* variables, then judge.toml where one works, then defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from judge.errors import UsageError, why_unread

TOML = "judge.toml"
PREFIX = "JUDGE_"
_KEY = re.compile(r"key|token|secret|password|credential|authorization", re.IGNORECASE)
OTHERS = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "BATCH_MEGABYTES",
        "BATCH_PATIENCE",
        "BATCH_POLL",
        "BATCH_QUIET",
        "BATCH_REQUESTS",
        "HF_DOWNLOAD",
        "LANGGRAPH_RUNTIME",
        "LOCAL_CTX",
        "MODELS_DIR",
        "SERVER",
        "SERVER_LOG",
        "SERVER_OPTIONS",
        "SERVE_TIMEOUT",
        "TORCH_DEVICE",
    )
)
"""Variables that are no settings of a run, but of a machine: read where they are used."""

Words = Annotated[tuple[str, ...], NoDecode]
Thresholds = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)]


class PriceSetting(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Settings(BaseSettings):
    """What a run is made with. In variables, lists are separated by commas."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, toml_file=TOML, extra="forbid")

    model: Words = ()
    accept_model: Words = ()
    rewrite_model: str | None = None
    cheap_model: str | None = None
    cheap_margin: float = Field(default=0.3, ge=0, le=0.5)
    workflow: str | None = None
    check: Words = ()
    rubric: Words = ()
    reading: Literal["structured", "probability"] | None = None
    votes: int | None = Field(default=None, ge=1, le=99)
    rule: Literal["majority", "unanimous", "any"] = "majority"
    all_votes: bool = False
    fail_fast: bool = False
    apart: bool = False
    rounds: int = Field(default=3, ge=0, le=20)
    temperature: float = Field(default=0.0, ge=0, le=2)
    vote_temperature: float = Field(default=0.7, ge=0, le=2)
    rewrite_temperature: float = Field(default=0.7, ge=0, le=2)
    seed: int = Field(default=0, ge=0)
    margin: float = Field(default=0.0, ge=0, lt=0.5)
    thresholds: Mapping[str, Thresholds] = Field(default_factory=dict)
    profile: str | None = None
    min_words: int = Field(default=400, ge=0)
    injected: Literal["abstain", "ask"] = "abstain"
    reasks: int = Field(default=2, ge=0, le=10)
    engine: Literal["local", "batch", "ray"] = "local"
    address: str | None = None
    workers: int | None = Field(default=None, ge=1)
    worker_gpus: int = Field(default=1, ge=0)
    concurrency: int = Field(default=16, ge=1, le=100_000)
    timeout: float = Field(default=120.0, gt=0)
    cache: bool = True
    cache_dir: Path | None = None
    max_calls: int | None = Field(default=None, ge=0)
    max_cost: float | None = Field(default=None, ge=0)
    prices: Mapping[str, PriceSetting] = Field(default_factory=dict)

    @field_validator("model", "accept_model", "check", "rubric", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def resolve(flags: Mapping[str, Any]) -> Settings:
    """Settings from all sources; flags that are None or empty count as not given.

    Raises:
        UsageError: a value that does not fit, naming the flag, variable or key.
    """
    given = {name: value for name, value in flags.items() if value not in (None, (), [])}
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        place = _place(given, tuple(map(str, first["loc"])))
        told = first["msg"]
        if first["type"] == "extra_forbidden" and _KEY.search(str(first["loc"][-1])):
            told = (
                "keys and passwords are read from the environment alone (OPENAI_API_KEY, "
                "VLLM_API_KEY, ...), never from a file: take it out, and if others may have seen "
                "the file, replace it"
            )
        elif first["type"] == "extra_forbidden":
            told = f"there is no such setting; there are {', '.join(sorted(Settings.model_fields))}"
        raise UsageError(f"{place}: {told}") from error
    except SettingsError as error:
        raise UsageError(f"{_undecodable()}: {error.__cause__ or error}") from error
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{TOML}: cannot be read: {why_unread(error)}") from error
    except ValueError as error:
        raise UsageError(f"{TOML}: {error}") from error
    except RecursionError:
        raise UsageError(f"{TOML}: nested too deep to be read") from None


def strays() -> dict[str, str | None]:
    """Variables that look like ours and that nothing reads, each with the nearest that is read.

    None where no name is near.
    """
    known = OTHERS | {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    unknown = sorted(
        name for name in os.environ if name.startswith(PREFIX) and name.upper() not in known
    )
    return {name: next(iter(get_close_matches(name.upper(), known, 1)), None) for name in unknown}


def _place(given: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """Where the value at `path` was set: the first source that has it is the one that counts."""
    name = path[0] if path else ""
    if name in given:
        return f"--{name.replace('_', '-')}"
    if variable := _variable(name):
        return variable
    return f"{TOML} ({'.'.join(path)})"


def _variable(name: str) -> str | None:
    """The environment variable that sets `name`, as it is spelt; None if there is none."""
    wanted = f"{PREFIX}{name}".upper()
    return next((variable for variable in os.environ if variable.upper() == wanted), None)


def _undecodable() -> str:
    """The variables that hold JSON, as far as they are set: one of them does not."""
    return " or ".join(filter(None, map(_variable, ("thresholds", "prices"))))
