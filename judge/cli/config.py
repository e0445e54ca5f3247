"""`judge config`: print every setting, its value, and where it comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.cli.printing import print_lines, print_output, print_table

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge config
  judge config --changed                     what is not at its default
  judge config --config ci/judge.toml        with this file
  judge config --json                        long values in full
"""


@opt.with_settings("Models", "Judging", "Engine", "Speed and money", "Cache", "Traces")
def command(
    settings: Settings,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not at its default.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Print every setting, its value, and where it comes from.

    A flag decides, then a variable, then judge.toml (of --config, else of this folder or the
    nearest one above it in the repository; then of your configuration folder), then the default.
    Secrets are never printed.
    """
    from judge import settings as declared
    from judge.configuration import found_file, user_file
    from judge.redact import redacted

    fields = {declared.key(field): declared.option(field) for field in type(settings).model_fields}
    sources = {name: settings.sources.get(name, "default") for name in fields}
    values = _without_secrets(settings.model_dump(mode="json", by_alias=True))
    names = [name for name in fields if not changed or name in settings.sources]
    if as_json:
        content = {name: {"value": values[name], "source": sources[name]} for name in names}
        print_output(redacted(json.dumps(content, ensure_ascii=False, indent=2)))
        return
    found, mine = settings.config or found_file(), user_file()
    heads = (
        f"judge.toml of this run: {found or 'none'}",
        f"judge.toml of yours: {mine if mine.is_file() else f'none, would be {mine}'}",
    )
    print_lines((*heads, ""))
    rows = []
    for name in names:
        value, unset = values[name], fields[name].unset
        empty = value in (None, [], {}) or (sources[name] == "default" and unset)
        shown = f"({unset or 'not set'})" if empty else _shown(value)
        rows.append((name, redacted(shown), sources[name]))
    print_table(("setting", "value", "from"), rows, labels=3)


def _without_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """The settings without secrets: server URLs lose logins and queries; headers and queries keep
    only their names."""
    from judge.redact import MASK, without_secrets

    servers = {}
    for name, server in values["servers"].items():
        parts = {key: value for key, value in server.items() if value}
        for key in parts.keys() & {"headers", "query"}:
            parts[key] = dict.fromkeys(parts[key], MASK)
        servers[name] = parts | {"url": without_secrets(server["url"])}
    return values | {"servers": servers}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
