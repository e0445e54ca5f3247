"""`judge cache`: what it holds, and removing replies."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.help import Command, Group
from judge.cli.options import Json, with_settings
from judge.cli.printing import counted, tell
from judge.errors import Exit, UsageError
from judge.settings import Settings

if TYPE_CHECKING:
    from judge.cache import ReplyCache

app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@contextmanager
def _opened(settings: Settings, context: typer.Context) -> Iterator[ReplyCache]:
    from diskcache.core import DBNAME

    from judge.cache import ReplyCache, cache_dir

    folder = cache_dir(settings.cache_dir)
    if context.params["cache_dir"] is not None and not (folder / DBNAME).is_file():
        # Opening it would make one, and hide a mistyped name.
        raise UsageError(f"--cache-dir {folder}: there is no cache")
    cache = ReplyCache(folder)
    try:
        yield cache
    finally:
        cache.close()


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")


@app.command(cls=Command)
@with_settings("cache_dir")
def stats(context: typer.Context, settings: Settings, as_json: Json = False) -> None:
    """Where the cache is, how many replies it holds, how large and how old it is.

    Example: `judge cache stats --json`
    """
    with _opened(settings, context) as cache:
        told = cache.stats()
    if as_json:
        typer.echo(json.dumps(asdict(told)))
        return
    oldest = "-" if told.oldest_seconds is None else f"{told.oldest_seconds / 86400:.1f} days"
    typer.echo(f"folder   {told.folder}\nentries  {told.entries}")
    typer.echo(f"size     {told.size_bytes / 1e6:.1f} MB\noldest   {oldest}")


@app.command(cls=Command)
@with_settings("cache_dir")
def clear(
    context: typer.Context,
    settings: Settings,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove every reply. They were paid for: asks first.

    Example: `judge cache clear --cache-dir old-replies`
    """
    with _opened(settings, context) as cache:
        told = cache.stats()
        if not yes:
            question = f"Remove {_entries(told.entries)} from {told.folder}? [y/N] "
            typer.echo(question, nl=False, err=True)
            answer = sys.stdin.readline() if sys.stdin is not None else ""
            typer.echo(nl=not answer.endswith("\n"), err=True)
            if answer.strip().lower() not in ("y", "yes"):
                raise UsageError("nothing was removed; --yes removes them without asking")
        typer.echo(f"removed {_entries(cache.clear())}")


@app.command(cls=Command)
@with_settings("cache_dir")
def prune(
    context: typer.Context,
    settings: Settings,
    older_than: Annotated[str, typer.Option(help="An age such as 30d, 12h or 2w.")],
) -> None:
    """Remove replies that were stored longer ago than an age.

    Example: `judge cache prune --older-than 30d`
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", older_than)
    if match is None:
        raise UsageError(f"--older-than {older_than}: give a number and s, m, h, d or w: 30d")
    with _opened(settings, context) as cache:
        typer.echo(f"removed {_entries(cache.prune(float(match[1]) * _UNITS[match[2]]))}")


@app.command(cls=Command)
@with_settings("cache_dir")
def verify(context: typer.Context, settings: Settings) -> None:
    """Read every reply and compare its checksum; exit 3 where one is damaged.

    Damaged replies are not used: a run asks for them anew.

    Example: `judge cache verify --cache-dir old-replies`
    """
    with _opened(settings, context) as cache:
        found = cache.verify()
    typer.echo(f"{_entries(found.entries)}, {found.damaged} damaged")
    if found.database is not None:
        tell(f"the database is damaged: {found.database}")
    if found.damaged or found.database is not None:
        raise typer.Exit(int(Exit.INCOMPLETE))
