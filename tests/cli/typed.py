"""`judge` in this process: as a user types it, without the second that a new process takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main


class Typed:
    """The command in a folder of its own, with a cache of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, captured: Any) -> None:
        self.folder, self._patch, self._captured = folder, monkeypatch, captured
        monkeypatch.chdir(folder)
        monkeypatch.setenv("JUDGE_CACHE_DIR", str(folder / "cache"))

    def script(self, name: str, replies: Sequence[Mapping[str, Any]], **more: Any) -> str:
        """A scripted model."""
        (self.folder / name).write_text(json.dumps({"replies": replies, **more}))
        return f"scripted:{name}"

    def write(self, name: str, records: Iterable[Mapping[str, Any]], more: str = "") -> None:
        """Write a file of JSON lines, and other text after them."""
        text = "".join(json.dumps(record) + "\n" for record in records)
        (self.folder / name).write_text(text + more)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def __call__(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        self._patch.setattr("sys.argv", ["judge", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, told = self._captured.readouterr()
        return subprocess.CompletedProcess(
            words, int(ended.value.code or 0), out.encode(), told.encode()
        )

    def text(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        done = self(*words)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
