"""`judge label` and `judge review`, started as a person does, and a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ASK = ("--ask", "Is this e-mail polite?", "--on", "email")


class Pages:
    """Commands in a folder of their own; those that serve a page run until they are stopped."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder, self._warm = folder, f"{path.partition(':')[0]}/judge"
        self.env = {**os.environ, "JUDGE_CACHE_DIR": str(folder / "cache")}
        self.running: list[subprocess.Popen[str]] = []

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self._warm, *words]
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )

    def start(self, *words: str) -> tuple[subprocess.Popen[str], str]:
        """The command and the address of its page."""
        command = [sys.executable, "-m", "judge", *words]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.env, stderr=subprocess.PIPE, text=True
        )
        self.running.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+/", line)
        assert address, line + process.stderr.read()
        return process, address[0]

    def write(self, name: str, records: Sequence[Mapping[str, Any]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(one) + "\n" for one in records))

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_bytes().splitlines()]


@pytest.fixture
def pages(tmp_path: Path, judge_path: str) -> Iterator[Pages]:
    pages = Pages(tmp_path, judge_path)
    yield pages
    for process in pages.running:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, or another that is there, through Playwright's driver; its event loop runs
    as long, so that no test with a loop of its own may come between."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed")
    driver = pytest.importorskip("playwright.sync_api", reason="no browser: no driver")
    with driver.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()
