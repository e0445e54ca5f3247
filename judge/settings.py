"""Settings: flags, then JUDGE_* variables, then judge.toml in the working directory, then defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from judge.errors import UsageError

TOML = "judge.toml"
Words = Annotated[tuple[str, ...], NoDecode]


class PriceSetting(BaseSettings):
    """US dollars for a million tokens."""

    model_config = SettingsConfigDict(extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Settings(BaseSettings):
    """What a run is made with. In variables, lists are separated by commas."""

    model_config = SettingsConfigDict(env_prefix="JUDGE_", toml_file=TOML, extra="forbid")

    model: Words = ()
    accept_model: Words = ()
    rewrite_model: str | None = None
    workflow: str | None = None
    check: Words = ()
    rubric: Words = ()
    reading: Literal["structured", "probability"] | None = None
    votes: int | None = Field(default=None, ge=1, le=99)
    rule: Literal["majority", "unanimous", "any"] = "majority"
    all_votes: bool = False
    rounds: int = Field(default=3, ge=0, le=20)
    temperature: float = Field(default=0.0, ge=0, le=2)
    vote_temperature: float = Field(default=0.7, ge=0, le=2)
    rewrite_temperature: float = Field(default=0.7, ge=0, le=2)
    seed: int = Field(default=0, ge=0)
    margin: float = Field(default=0.0, ge=0, lt=0.5)
    thresholds: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    min_words: int = Field(default=400, ge=0)
    reasks: int = Field(default=2, ge=0, le=10)
    concurrency: int = Field(default=16, ge=1, le=4096)
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
        name = str(first["loc"][0]) if first["loc"] else ""
        flag = f"--{name.replace('_', '-')}"
        place = flag if name in given else f"JUDGE_{name.upper()} or {TOML} ({name})"
        raise UsageError(f"{place}: {first['msg']}") from error
    except ValueError as error:
        raise UsageError(f"{TOML}: {error}") from error
