"""How far a job of known length has come, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from judge.cli.progress import LOG_SECONDS

Told = Callable[[str, str, int, int], None]
"""Is told what is worked on, by which model, how many items are done, and of how many."""


@contextmanager
def counting(*, quiet: bool) -> Iterator[Told]:
    """A bar a job on a terminal, a line every few seconds elsewhere, nothing when quiet."""
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        yield from _bars()
    else:
        yield _lines()


def _lines() -> Told:
    last = time.monotonic()

    def told(check: str, model: str, done: int, of: int) -> None:
        nonlocal last
        if done < of and time.monotonic() - last < LOG_SECONDS:
            return
        last = time.monotonic()
        typer.echo(f"judge: {check}, {model}: {done}/{of} items", err=True)

    return told


def _bars() -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    with Progress(console=Console(stderr=True)) as progress:
        tasks: dict[tuple[str, str], TaskID] = {}

        def told(check: str, model: str, done: int, of: int) -> None:
            if (check, model) not in tasks:
                tasks[check, model] = progress.add_task(f"{check}, {model}", total=of)
            progress.update(tasks[check, model], completed=done)

        yield told
