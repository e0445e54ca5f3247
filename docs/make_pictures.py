"""Takes the pictures of the pages for people, by a browser that is there already.

    python docs/make_pictures.py

Writes docs/images/: the page of `judge label`, that of `judge review`, and the report. A script
stands in for the judges.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ASK = ("--ask", "Is this e-mail polite?", "--on", "email")
JUDGES = (
    "-m",
    "scripted:mails.judge.yaml",
    "-m",
    "scripted:milder.yaml",
    "-m",
    "scripted:stern.yaml",
)
MILD = """replies:
  - when: {contains: again}
    reply: {quote: null, reason: It orders., answer: "no"}
  - reply: {quote: null, reason: No word of it is rude., answer: "yes"}
"""
STERN = """replies:
  - when: {contains: told}
    reply: {quote: You were told last week, reason: It scolds., answer: "no"}
  - when: {contains: again}
    reply: {quote: Your form is wrong again, reason: It blames., answer: "no"}
  - when: {contains: Received}
    finish_reason: refusal
  - reply: {quote: null, reason: It greets., answer: "yes"}
"""


def judge(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "judge", *words], cwd=folder, check=True)


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """The address of the page that the command serves meanwhile."""
    command = [sys.executable, "-m", "judge", *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+/", process.stderr.readline())
        assert found is not None
        yield found[0]
        process.kill()


def main() -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        folder = Path(name)
        os.environ["JUDGE_CACHE_DIR"] = str(folder / "cache")
        shutil.copytree(DOCS / "examples", folder, dirs_exist_ok=True)
        (folder / "milder.yaml").write_text(MILD)
        (folder / "stern.yaml").write_text(STERN)
        judge(folder, "validate", "mails.csv", *ASK, *JUDGES, "--all-votes", "-o", "judged.jsonl")
        judge(folder, "report", "judged.jsonl", "-o", "judged.html")

        def taken(picture: str, address: str, keys: str = "") -> None:
            page: Any = browser.new_page(viewport={"width": 1080, "height": 640})
            page.goto(address)
            for key in keys:
                page.keyboard.press(key)
                page.wait_for_timeout(500)
            page.screenshot(path=DOCS / "images" / picture)
            page.close()

        taken("report.png", (folder / "judged.html").as_uri())
        with served(
            folder, "label", "tutorial/mails.csv", *ASK, "-o", "l.jsonl", "--annotator", "ann"
        ) as address:
            taken("label.png", address, "ynyynyny")
        with served(folder, "review", "judged.jsonl", "--failed", "--annotator", "ann") as address:
            taken("review.png", address)


if __name__ == "__main__":
    main()
