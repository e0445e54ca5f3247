"""`judge failed OUT`: the ids of the records that failed, a line each, for a shell's loop.

The package's pyproject.toml: [project.entry-points."judge.commands"] failed = "command"
"""

import json
from pathlib import Path
from typing import Annotated

import typer

EPILOG = """\b
Example:
  judge failed judged.jsonl | xargs -n 1 ./rewrite.sh
"""

Out = Annotated[Path, typer.Argument(metavar="OUT", help="What judge validate -o wrote.")]


def command(out: Out) -> None:
    """Print the ids of records that failed."""
    for text in out.read_text("utf-8").splitlines():
        line = json.loads(text)
        if line["judge"]["verdict"] == "fail":
            typer.echo(line["id"])
