"""Resolves settings: the first of these sources that has one decides.

1. the flag
2. the environment variable, JUDGE_ and the setting's name
3. the file of --config; else judge.toml in the working directory or the nearest parent folder that
   has one, up to the repository's root: without --trust-config only harmless settings
4. judge.toml in the user's configuration folder
5. the default

Of the tables of servers and prices, each entry is decided by itself. A path in a file is relative
to that file's folder, if it exists there.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.errors import UsageError, meant, read_text
from judge.model_tables import SECRET_NAME, TABLES
from judge.problems import no_such_key, worded
from judge.settings import (
    IN_PROCESS,
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
    "JUDGE_BATCH_POLL": "seconds between two checks of a batch",
    "JUDGE_BATCH_QUIET": "seconds without a new call after which a batch is sent",
    "JUDGE_BATCH_REQUESTS": "requests in a batch, at most",
    "JUDGE_DEBUG": "1: show the traceback of an unexpected error",
    "JUDGE_LANGGRAPH_RUNTIME": "1: run workflows by LangGraph's own runtime",
    "JUDGE_LOCAL_CTX": "context window of local: models, in tokens",
    "JUDGE_MODELS_DIR": "folder of the weights",
    "JUDGE_SERVE_KEY": "key that clients of judge serve send",
    "JUDGE_SERVER_OPTIONS": "options for the vLLM server that judge starts",
    "JUDGE_TORCH_DEVICE": "device of transformers: models, such as cpu or cuda:1",
    "JUDGE_TRACING": "1: leave LangSmith's tracing, which uploads record texts, as it is set",
}
"""Environment variables that describe a machine, not a run; read where they are used."""


def resolve(flags: Mapping[str, Any], flag_name: Callable[[str], str] = flag) -> Settings:
    """Settings from all sources; flags that are None or empty count as not given.

    Args:
        flag_name: the name of a setting's flag in messages.

    Raises:
        UsageError: a value does not fit (names the flag, variable or key); or a judge.toml that was
            found sets what only the user may set, and is not trusted.
    """
    values: dict[str, tuple[str, Any]] = {}
    config = flags.get("config") or os.environ.get(variable("config"), "").strip() or None
    found = found_file() if config is None else None
    shown = str(config) if found is None else os.path.relpath(found)
    mine = user_file()
    files = [str(mine)] if mine.is_file() else []
    if config or (found and not (files and found.samefile(mine))):
        files.append(shown)
    texts = {file: read_text(Path(file)) for file in files}
    contents = {file: _read(file, text) for file, text in texts.items()}
    for file, content in contents.items():
        for name, value in content.items():
            _, before = values.get(name, (file, None))
            if not has_flag(name) and isinstance(before, dict) and isinstance(value, dict):
                value = {**before, **value}
            values[name] = file, value
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
        source, _ = values[names[0]]
        if source in files:
            tables = {file: contents[file].get(names[0]) for file in files}
            for file, table in tables.items():
                source = file if isinstance(table, dict) and {*names[1:2]} & {*table} else source
            source = f"{source}:{_line(texts[source], names)} ({'.'.join(names)})"
        raise UsageError(f"{source}: {_why(first)}") from error
    settings._sources = {name: source for name, (source, _) in values.items()}
    settings._files = tuple(texts)
    harmless = {key(name) for name in Settings.model_fields if option(name).harmless}
    decided = settings.from_files.get(shown, ()) if found else ()
    loose = [name for name in decided if name not in harmless]
    if loose and not settings.trust_config:
        raise UsageError(
            f"{found} sets {', '.join(loose)}, which can change verdicts, choose "
            "models and hosts, or run code. If you wrote that file or have read it, add "
            f"{flag('trust_config')} (or {variable('trust_config')}=1), or move the settings to "
            f"{mine}"
        )
    return settings


def found_file() -> Path | None:
    """judge.toml in the working directory, or in the nearest parent folder that has one, up to the
    folder with `.git`; without such a folder, only in the working directory. The search ends at a
    folder of another user.

    Raises:
        UsageError: the file in the working directory, or that folder, belongs to another user.
    """
    # A folder may have been deleted, or a parent may not be readable.
    with suppress(OSError):
        folder = Path.cwd()
        folders = [folder, *folder.parents]
        root = next((n for n, f in enumerate(folders) if os.access(f / ".git", os.F_OK)), 0)
        if (file := folder / TOML).is_file() and not (_is_own(folder) and _is_own(file)):
            raise UsageError(
                f"{file}: the file or its folder is another user's: {flag('config')} {TOML} reads "
                f"it, {flag('config')} {os.devnull} does not"
            )
        for folder in takewhile(_is_own, folders[: root + 1]):
            if (file := folder / TOML).is_file():
                return file if _is_own(file) else None
    return None


def _is_own(path: Path) -> bool:
    """Whether the path belongs to the user of this process; on Windows, which does not tell,
    True."""
    return not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid()


def refuse_stray(settings: Settings, command: str = "validate") -> None:
    """Raises UsageError for a Ray setting typed with another engine, or for an engine with a
    command that has none."""
    if settings.engine not in IN_PROCESS and command != "validate":
        raise UsageError(
            f"only validate and generate run with engine = {settings.engine}, and {command} does "
            "not: take JUDGE_ENGINE out of the environment, or engine out of judge.toml"
        )
    for name in ("address", "workers", "worker_gpus"):
        if settings.typed(name) and settings.engine != "ray":
            value = f"{flag(name)} {getattr(settings, name)}"
            raise UsageError(f"{value} needs --engine ray; the engine is {settings.engine}")


def strays() -> list[str]:
    """Environment variables that begin with JUDGE_ and that nothing reads."""
    names = {*MACHINE, *map(variable, Settings.model_fields)}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in names)


def user_file() -> Path:
    """judge.toml in the user's configuration folder, which is always trusted."""
    from platformdirs import user_config_path

    return user_config_path("judge") / TOML


def _read(name: str, text: str) -> Mapping[str, Any]:
    """The settings in a file's text; `name` is the file's path."""
    try:
        values = tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    except RecursionError:
        raise UsageError(f"{name}: nested too deep to be read") from None
    if "trust_config" in values or "config" in values:
        raise UsageError(
            f"{name}: a file cannot make itself trusted or name another; use "
            f"{flag('trust_config')} or {flag('config')}, or their variables"
        )
    folder = Path(name).parent
    return {
        key: _beside(value, folder) if key in _PATHS else value for key, value in values.items()
    }


_PATHS = (
    *("cache_dir", "profile", "rubric", "test", "workflow"),
    *("model", "final_model", "rewrite_model", "cheap_model", "explain_with", "model_for"),
)
"""Settings in files that may hold paths."""


def _beside(value: Any, folder: Path) -> Any:
    """A setting from a file in `folder`, with its paths made relative to the working directory:
    `a/b.yaml`, or a part of `scripted:b.yaml` or `c.py:variable`. A name without the form of a path
    stays a name, whatever files exist."""
    if isinstance(value, list):
        return [_beside(entry, folder) for entry in value]
    if isinstance(value, dict):
        return {name: _beside(entry, folder) for name, entry in value.items()}
    if not isinstance(value, str):
        return value
    provider, colon, name = value.partition(":")
    for before, path in (("", value), (f"{provider}{colon}", name), ("", provider)):
        joined = folder / path
        if (
            (Path(path).suffix or {"/", os.sep} & {*path})
            and joined.exists()
            and joined != Path(path)
        ):
            return f"{before}{joined}{value[len(before) + len(path) :]}"
    return value


def _line(text: str, names: Iterable[str]) -> int:
    """The line of a key. The parser does not report it, so the key is searched for after its
    table."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", text)
    place = 0
    for name in names:
        key = rf"""(?m)(?:^|[\s.\[{{,"'])({re.escape(name)})["']?[ \t]*[=.\]]"""
        if found := re.compile(key).search(text, place):
            place = found.start(1)
    return text.count("\n", 0, place) + 1


def _why(error: Any) -> str:
    if error["type"] != "extra_forbidden":
        return worded(error)
    if SECRET_NAME.search(str(error["loc"][-1])):
        return (
            "keys and passwords are read from the environment alone (OPENAI_API_KEY, ..., or the "
            "variable that key_env of a server names), never from a file: take it out, and if "
            "others may have seen the file, replace it"
        )
    table, *inner = error["loc"]
    if inner:
        return no_such_key(str(inner[-1]), TABLES[table].model_fields)
    return no_such_setting(str(table), map(key, Settings.model_fields))


def no_such_setting(name: str, names: Iterable[str]) -> str:
    """The message for an unknown setting, with the nearest of `names`."""
    return f"unknown setting; {meant(name, sorted(names))}"
