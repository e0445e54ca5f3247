"""What is printed for people: text out of records is shown there, and must not steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from judge.redact import printable, redacted

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 10_000
"""Columns of a console for tables that are data: Rich cuts or folds cells at its own width, which
is the terminal's, or 80 in a pipe."""


def tell(message: object) -> None:
    """Lines from `judge` on standard error, without secrets."""
    typer.echo(printable(redacted(f"judge: {message}")), err=True)


def say(text: str, *, err: bool = False) -> None:
    """Text or JSON on standard output, or on standard error."""
    typer.echo(printable(text), err=err)


def nothing(sources: Sequence[str], limit: int | None = None) -> str:
    """What to tell of a run that found nothing to do: nobody should take it for a good one."""
    if limit == 0:
        return "nothing was done: --limit 0"
    names = ("standard input" if source == "-" else source for source in sources)
    return f"no records in {', '.join(names)}"


def plain_console(**more: Any) -> Console:
    """A Rich console whose text is `printable`, and never read as Rich's markup."""
    from rich.console import Console
    from rich.segment import Segment

    class Printing(Console):
        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for part in super().render(*arguments, **named):
                yield part if part.control else Segment(printable(part.text), part.style)

    return Printing(**{"highlight": False, "markup": False, **more})


def counted(number: int, what: str, plural: str | None = None) -> str:
    """The number with its noun, in the plural unless it is 1: `1 record`, `0 records`."""
    return f"{number} {what if number == 1 else plural or what + 's'}"
