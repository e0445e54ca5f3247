"""The command line: one file a command, put together here; errors become exit codes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from judge import __version__
from judge.cli import (
    agreement,
    audit,
    cache,
    calibrate,
    compare,
    evaluate,
    models,
    plan,
    report,
    rubrics,
    score,
    serve,
    validate,
    workflows,
)
from judge.cli.printing import tell
from judge.cli.stderr import unfailing
from judge.cli.stdout import ReaderGone, guard_stdout
from judge.errors import Exit, JudgeError
from judge.masking import guard_process

EPILOG = """**Examples**

`judge validate stories.jsonl -o judged.jsonl`

`judge plan norms.csv -m openai:gpt-4o`

`judge COMMAND --help` — what a command does, with examples
"""


class _PlainGroup(TyperGroup):
    """Shows its help without Rich, whose import takes longer than all else that the help needs."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{**more, "rich_markup_mode": None})

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write("\n")
        for line in (self.epilog or "").replace("**", "").replace("`", "").splitlines():
            if line:
                formatter.write(f"  {line}\n" if line.startswith("judge") else f"{line}:\n")


app = typer.Typer(
    name="judge",
    cls=_PlainGroup,
    epilog=EPILOG,
    help="Check culturally grounded text written by language models.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    "validate", epilog=validate.EPILOG, short_help="Judge records; write each with its verdict."
)(validate.command)
app.command("plan", epilog=plan.EPILOG, short_help="Estimate calls, tokens and cost of a run.")(
    plan.command
)
app.command(
    "calibrate", epilog=calibrate.EPILOG, short_help="Say how far judges agree with labels."
)(calibrate.command)
app.command(
    "agreement", epilog=agreement.EPILOG, short_help="Say how far people agree with one another."
)(agreement.command)
app.command(
    "evaluate", epilog=evaluate.EPILOG, short_help="Put a model through a paper's benchmark."
)(evaluate.command)
app.command(
    "compare", epilog=compare.EPILOG, short_help="Say how two runs differ on the same items."
)(compare.command)
app.command(
    "report", epilog=report.EPILOG, short_help="Make a page of judged records, for people."
)(report.command)
app.command(
    "audit", epilog=audit.EPILOG, short_help="Say how often hostile text turns a judge's verdict."
)(audit.command)
models.app.command(
    "serve", epilog=serve.EPILOG, short_help="Start a model server, watch it, stop it."
)(serve.command)
app.add_typer(score.app, name="score", help="Score answers that are at hand.")
app.add_typer(cache.app, name="cache", help="Look after the replies on disk.")
app.add_typer(models.app, name="models", help="Fetch and find local models.")
app.add_typer(rubrics.app, name="rubrics", help="Read the questions that judges are asked.")
app.add_typer(workflows.app, name="workflows", help="See the workflows, as text or as pictures.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which one.")
    ] = False,
) -> None:
    """Check culturally grounded text written by language models."""


def main() -> None:
    """The console script."""
    guard_process()
    unfailing()
    guard_stdout()
    try:
        code = _ended(app)
        # What is still in the buffer would fail where nobody could tell of it.
        sys.exit(_ended(sys.stdout.flush) or code)
    finally:
        # Typer has put a hook for tracebacks of its own in place of ours.
        guard_process()
        gc.enable()


def _ended(step: Callable[[], object]) -> int | str | None:
    """The exit code that a step ends with, its error told."""
    try:
        step()
    except SystemExit as end:
        return end.code
    except ReaderGone:
        return int(Exit.READER_GONE)
    except JudgeError as error:
        tell(error)
        return int(error.exit_code)
    return int(Exit.OK)
