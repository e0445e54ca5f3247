"""Where settings come from: the first of these sources that has one decides.

1. the flag
2. the variable, JUDGE_ and the setting's name
3. judge.toml in the working directory; without --trust-config only harmless settings
4. judge.toml in the user's configuration folder
5. the default
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.errors import UsageError, meant, read_text
from judge.model_tables import SECRET_NAME, TABLES
from judge.problems import no_such_key, worded
from judge.settings import (
    PREFIX,
    TOML,
    Settings,
    flag,
    has_flag,
    key,
    option,
    variable,
)

MACHINE = {
    "JUDGE_BATCH_POLL": "seconds between two looks at a batch",
    "JUDGE_BATCH_QUIET": "seconds without a new call after which a batch is sent",
    "JUDGE_BATCH_REQUESTS": "requests in a batch, at most",
    "JUDGE_DEBUG": "1: show the traceback of an unexpected error",
    "JUDGE_LANGGRAPH_RUNTIME": "1: run workflows by LangGraph's own runtime",
    "JUDGE_LOCAL_CTX": "context window of local: models, in tokens",
    "JUDGE_MODELS_DIR": "folder of the weights",
    "JUDGE_SERVER_OPTIONS": "options for the vLLM server that judge starts",
    "JUDGE_TORCH_DEVICE": "device of transformers: models, such as cpu or cuda:1",
    "JUDGE_TRACING": "1: leave LangSmith's tracing, which uploads record texts, as it is set",
}
"""Variables that describe a machine, not a run; read where they are used."""


def resolve(flags: Mapping[str, Any], flag_name: Callable[[str], str] = flag) -> Settings:
    """Settings from all sources; flags that are None or empty count as not given.

    Args:
        flag_name: the name of a setting's flag in messages.

    Raises:
        UsageError: a value that does not fit, naming the flag, variable or key; or judge.toml in
            the working directory sets what only the user may set, and is not trusted.
    """
    values: dict[str, tuple[str, Any]] = {}
    mine, here = user_file(), Path(TOML)
    files = [str(mine)] if mine.is_file() else []
    if here.is_file() and not (files and here.samefile(mine)):
        files.append(TOML)
    for file in files:
        values |= {name: (file, value) for name, value in _read(Path(file)).items()}
    for name in Settings.model_fields:
        if has_flag(name) and (text := os.environ.get(variable(name), "")).strip():
            values[key(name)] = variable(name), text
        if flags.get(name) not in (None, (), []):
            values[key(name)] = flag_name(name), flags[name]
    try:
        settings = Settings.model_validate({name: value for name, (_, value) in values.items()})
    except ValidationError as error:
        first = error.errors()[0]
        names = [str(part) for part in first["loc"]]
        place, _ = values[names[0]]
        source = f"{place} ({'.'.join(names)})" if place in files else place
        raise UsageError(f"{source}: {_why(first)}") from error
    for file in files:
        if names := sorted(name for name, (place, _) in values.items() if place == file):
            settings._from_files[file] = tuple(names)
    harmless = {key(name) for name in Settings.model_fields if option(name).harmless}
    loose = [name for name in settings.from_files.get(TOML, ()) if name not in harmless]
    if loose and not settings.trust_config:
        raise UsageError(
            f"{Path(TOML).absolute()} sets {', '.join(loose)}, which can change verdicts, choose "
            "models and hosts, or run code. If you wrote that file or have read it, add "
            f"{flag('trust_config')} (or {variable('trust_config')}=1), or move the settings to "
            f"{user_file()}"
        )
    return settings


def refuse_stray(settings: Settings, command: str = "validate") -> None:
    """Raises UsageError for a setting of Ray's with another engine or command."""
    if settings.engine == "ray" and command != "validate":
        raise UsageError(
            f"only validate and generate run with engine = ray, and {command} does not: take "
            "JUDGE_ENGINE out of the environment, or engine out of judge.toml"
        )
    for name in ("address", "workers", "worker_gpus"):
        if settings.given(name) and settings.engine != "ray":
            value = f"{flag(name)} {getattr(settings, name)}"
            raise UsageError(f"{value} needs --engine ray; the engine is {settings.engine}")


def strays() -> list[str]:
    """Variables that look like ours and that nothing reads."""
    names = {*MACHINE, *map(variable, Settings.model_fields)}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in names)


def user_file() -> Path:
    """judge.toml in the user's configuration folder, which is always trusted."""
    from platformdirs import user_config_path

    return user_config_path("judge") / TOML


def _read(path: Path) -> Mapping[str, Any]:
    text = read_text(path)
    try:
        values = tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    except RecursionError:
        raise UsageError(f"{path}: nested too deep to be read") from None
    if "trust_config" in values:
        raise UsageError(
            f"{path} (trust_config): a file cannot make itself trusted; use {flag('trust_config')} "
            f"or {variable('trust_config')}=1"
        )
    return values


def _why(error: Any) -> str:
    if error["type"] != "extra_forbidden":
        return worded(error)
    if SECRET_NAME.search(str(error["loc"][-1])):
        return (
            "keys and passwords are read from the environment alone (OPENAI_API_KEY, "
            "VLLM_API_KEY, ...), never from a file: take it out, and if others may have seen "
            "the file, replace it"
        )
    table, *inner = error["loc"]
    if inner:
        return no_such_key(str(inner[-1]), TABLES[table].model_fields)
    return no_such_setting(str(table), map(key, Settings.model_fields))


_FORMER = {
    "injected": "on_injection",
    "margin": "abstain_margin",
    "models": "model_for",
    "neutral": "normad_release",
}
"""What settings were called before, as the nearest name would be that of another one."""


def no_such_setting(name: str, names: Iterable[str]) -> str:
    """The message for an unknown setting, with the nearest of `names`."""
    names = sorted(names)
    return f"unknown setting; {meant(_FORMER.get(name, name), names)}"
