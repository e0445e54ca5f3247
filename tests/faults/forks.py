"""The caller of `warm.py`: runs of `judge` that cost a fork instead of a start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from judge.records.lines import FINISHED, REDONE

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCRIPT = Path(__file__).with_name("warm.py")


@dataclass(frozen=True)
class Ended:
    """What came of a run: exit code (negative: the signal), the points it passed, its seconds."""

    code: int
    points: int | None
    seconds: float


class Forks:
    """A warm process that runs `judge` in forks. Used as a context manager.

    Args:
        folder: where it lives; gets the fixtures that runs there can name.
    """

    def __init__(self, folder: Path) -> None:
        for name in ("norms.jsonl", "stories.jsonl", "judge.yaml"):
            (folder / name).write_bytes((FIXTURES / name).read_bytes())
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        words = [sys.executable, str(SCRIPT), str(self._folder)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.communicate()

    def run(
        self,
        folder: Path,
        words: Iterable[str],
        *,
        seed: int,
        env: Mapping[str, str] | None = None,
        die_at: int | None = None,
        kill_after: float | None = None,
        rig: Mapping[str, Any] | None = None,
    ) -> Ended:
        """`judge` in `folder`, killed by itself at a point, by its parent after seconds, or not.

        Args:
            seed: of the time that calls take.
            env: further variables of its environment.
            rig: what else happens to it, as `rigged` in `warm.py` takes it; calls take no time.
        """
        assert self._process is not None and self._process.stdin and self._process.stdout
        job: dict[str, Any] = {
            "folder": str(folder),
            "cache": str(folder / "cache"),
            "words": list(words),
            "seed": seed,
            "env": dict(env or {}),
            "die_at": die_at,
            "kill_after": kill_after,
            "rig": rig,
        }
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return Ended(**json.loads(self._process.stdout.readline()))


def paid_twice(folder: Path) -> list[str]:
    """Keys of replies that were paid for although they lay in the cache."""
    stored, twice = set[str](), []
    for word, key in calls(folder):
        if word == "stored":
            stored.add(key)
        elif word == "paid" and key in stored:
            twice.append(key)
    return twice


def calls(folder: Path) -> list[tuple[str, str]]:
    """The notes of all runs in a folder: (`asked`, record), (`paid`, key), (`stored`, key)."""
    log = folder / "calls.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def finished(folder: Path) -> set[str]:
    """The ids of the records with a line in `out` that a resumed run keeps."""
    found = set()
    path = folder / "out"
    text = path.read_bytes() if path.exists() else b""
    for line in text.splitlines(keepends=True):
        record = json.loads(line) if line.endswith(b"\n") else {}
        if record.get("id") and record["judge"]["verdict"] in FINISHED - REDONE:
            found.add(record["id"])
    return found
