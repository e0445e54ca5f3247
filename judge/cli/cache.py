"""`judge cache`: show and remove cached replies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.options import Json, with_settings
from judge.cli.printing import counted
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.cache import ReplyCache
    from judge.settings import Settings

app = typer.Typer(help="Show and remove cached replies.", no_args_is_help=True)


@contextmanager
def _opened(settings: Settings, context: typer.Context) -> Iterator[ReplyCache]:
    from diskcache.core import DBNAME

    from judge.cache import ReplyCache, cache_dir

    folder = cache_dir(settings.cache_dir)
    if context.params["cache_dir"] is not None and not (folder / DBNAME).is_file():
        # Opening it would create a cache and hide a mistyped name.
        raise UsageError(f"--cache-dir {folder}: there is no cache")
    cache = ReplyCache(folder)
    try:
        yield cache
    finally:
        cache.close()


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")


@app.command()
@with_settings("cache_dir")
def stats(context: typer.Context, settings: Settings, as_json: Json = False) -> None:
    """Show where the cache is, how large and how old.

    Example: judge cache stats --json
    """
    with _opened(settings, context) as cache:
        counts = cache.stats()
    if as_json:
        typer.echo(json.dumps(asdict(counts)))
        return
    oldest = "-" if counts.oldest_seconds is None else f"{counts.oldest_seconds / 86400:.1f} days"
    typer.echo(f"folder   {counts.folder}\nentries  {counts.entries}")
    typer.echo(f"size     {counts.size_bytes / 1e6:.1f} MB\noldest   {oldest}")


@app.command()
@with_settings("cache_dir")
def clear(
    context: typer.Context,
    settings: Settings,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove all replies, after asking: they were paid for.

    Example: judge cache clear --cache-dir old-replies
    """
    with _opened(settings, context) as cache:
        counts = cache.stats()
        if not yes:
            question = f"Remove {_entries(counts.entries)} from {counts.folder}? [y/N] "
            typer.echo(question, nl=False, err=True)
            answer = sys.stdin.readline() if sys.stdin is not None else ""
            typer.echo(nl=not answer.endswith("\n"), err=True)
            if answer.strip().lower() not in ("y", "yes"):
                raise UsageError("nothing was removed; --yes removes them without asking")
        typer.echo(f"removed {_entries(cache.clear())}")


@app.command()
@with_settings("cache_dir")
def prune(
    context: typer.Context,
    settings: Settings,
    older_than: Annotated[
        float, typer.Option(metavar="DAYS", min=0, help="Remove replies older than this.")
    ],
) -> None:
    """Remove old replies.

    Example: judge cache prune --older-than 30
    """
    with _opened(settings, context) as cache:
        typer.echo(f"removed {_entries(cache.prune(older_than * 86400))}")
