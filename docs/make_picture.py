"""Writes docs/run.svg: a real run over the fixture stories, as a terminal shows it.

python docs/make_picture.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
COLOURS = {"pass": "green", "fail": "red"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "judged.jsonl"
        arguments = ["validate", "fixtures/stories.jsonl", "-m", "scripted:fixtures/judge.yaml"]
        run = subprocess.run(
            [sys.executable, "-m", "judge", *arguments, "--no-cache", "-o", str(out)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    with tempfile.TemporaryFile("w") as sink:
        console = Console(record=True, width=104, file=sink, force_terminal=True)
        console.print(Text(f"$ judge {' '.join(arguments)} -o judged.jsonl", style="bold"))
        console.print(Text(run.stderr.rstrip()))
        console.print(
            Text("$ jq -r '[.id, .judge.verdict, .judge.reason] | @tsv' judged.jsonl", style="bold")
        )
        for line in lines:
            verdict = line["judge"]["verdict"]
            row = Text(f"{line['id']}  ")
            row.append(f"{verdict:<5}", style=COLOURS.get(verdict, "yellow"))
            row.append(f" {line['judge']['reason'] or ''}")
            console.print(row)
        console.save_svg(str(ROOT / "docs" / "run.svg"), title="judge")


if __name__ == "__main__":
    main()
