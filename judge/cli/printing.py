"""What is printed for people: text out of records is shown there, and must not steer a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from judge.masking import masked
from judge.printable import printable

if TYPE_CHECKING:
    from rich.console import Console


def tell(message: object) -> None:
    """Lines from `judge` on standard error, without secrets."""
    typer.echo(printable(masked(f"judge: {message}")), err=True)


def say(text: str, *, err: bool = False) -> None:
    """Text or JSON on standard output, or on standard error."""
    typer.echo(printable(text), err=err)


def plain_console(**more: Any) -> Console:
    """A Rich console whose text is `printable`, and never read as Rich's markup."""
    from rich.console import Console
    from rich.segment import Segment

    class Printing(Console):
        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for part in super().render(*arguments, **named):
                yield part if part.control else Segment(printable(part.text), part.style)

    return Printing(**{"highlight": False, "markup": False, **more})


def guard_stdout() -> None:
    """Let nothing that is printed end in a traceback, as it cannot on standard error.

    Halves of surrogate pairs, which records may hold, have no UTF-8 form: they are written as
    escapes, in JSON, too, where they mean the same.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors != "backslashreplace":
        sys.stdout.reconfigure(errors="backslashreplace")


def counted(number: int, what: str, plural: str | None = None) -> str:
    """The number with its noun, in the plural unless it is 1: `1 record`, `0 records`."""
    return f"{number} {what if number == 1 else plural or what + 's'}"
