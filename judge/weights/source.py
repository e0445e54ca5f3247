"""What the two sources of weights, publisher and mirror, share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from judge.errors import Exit, JudgeError
from judge.weights.catalog import WeightsFile


class FetchError(JudgeError):
    """Weights could not be fetched: the command was right, the model is not to be had (exit 4)."""

    exit_code = Exit.UNAVAILABLE


class SourceUnreachable(FetchError):
    """A source cannot be reached or does not have the file; another source may."""


class WrongBytes(FetchError):
    """A source gave other bytes than the catalog pins; nothing of them is kept."""


Report = Callable[[int, str], None]
"""Called with the bytes of the file that are here and a few words on what goes on."""


class Source(Protocol):
    """Completes `part`, the file's first bytes if it exists, to `file.size` bytes."""

    def __call__(self, file: WeightsFile, part: Path, report: Report) -> None: ...


def held(part: Path) -> int:
    """Bytes that an earlier try left in `part`."""
    return part.stat().st_size if part.is_file() else 0


def cut(part: Path, size: int) -> None:
    """Shorten `part` to its first `size` bytes; it is made if it does not exist."""
    with part.open("ab") as stream:
        stream.truncate(size)
