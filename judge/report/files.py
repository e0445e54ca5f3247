"""Files made of judged lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from judge.errors import UsageError, unwritable
from judge.run.output import input_path, refuse_nameless, refuse_same, replacing


@contextmanager
def writing(out: Path, sources: Sequence[str], *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file to write; it takes the place of an earlier one when it is whole.

    Raises UsageError where `out` is an input, a folder, there already and not to be replaced, or
    cannot be opened; JudgeError where it cannot be written further, such as on a full disk.
    """
    refuse_nameless("-o", out, "")
    for source in sources:
        refuse_same("-o", out, input_path(source), "the input")
    if out.exists() and out.stat().st_size and not overwrite:
        raise UsageError(f"{out} exists. Replace it (--overwrite), or name another file with -o")
    opened = False
    try:
        with replacing(out) as file:
            opened = True
            yield file
    except OSError as error:
        if opened:
            raise unwritable(f"{out} cannot be written", error) from error
        raise UsageError(
            f"{out}: cannot be written: {error.strerror or error}; "
            "name a file in a folder that is there and can be written"
        ) from error
