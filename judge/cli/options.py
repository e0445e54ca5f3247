"""Options that several commands share."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.printing import tell
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.settings import Settings

_INPUT, _MODELS, _JUDGING = "Input", "Models", "Judging"
_ENGINE, _SPEED, _CACHE = "Engine", "Speed and money", "Cache"

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INPUT]...",
        help="JSON lines, a JSON list, CSV, TSV or Parquet, also .gz and .zst; - reads stdin.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="jsonl, json, csv, tsv or parquet.", rich_help_panel=_INPUT),
]
Limit = Annotated[
    int | None, typer.Option(min=0, help="Only the first N records.", rich_help_panel=_INPUT)
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="N records drawn at random with --seed.", rich_help_panel=_INPUT),
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="PROVIDER:MODEL",
        help="Who judges; several make a panel. Without one the embedded local model judges.",
        rich_help_panel=_MODELS,
    ),
]
AcceptModel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROVIDER:MODEL",
        help="Who decides at the end (default: the judge, in fresh context).",
        rich_help_panel=_MODELS,
    ),
]
RewriteModel = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:MODEL",
        help="Who rewrites; langchain:... for any chat model (default: the judge).",
        rich_help_panel=_MODELS,
    ),
]
CheapModel = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:MODEL",
        help="Who reads P(yes) first; only what it is not sure of is put to the judge.",
        rich_help_panel=_MODELS,
    ),
]
CheapMargin = Annotated[
    float | None,
    typer.Option(
        help="How far from the threshold P(yes) must lie for --cheap-model to be sure, 0 to 0.5. "
        "[default: 0.3]",
        rich_help_panel=_MODELS,
    ),
]
Workflow = Annotated[
    str | None,
    typer.Option(
        help="extraction, norm or story (default: by the record's fields).",
        rich_help_panel=_JUDGING,
    ),
]
Check = Annotated[
    list[str] | None,
    typer.Option(help="Make only this check; may be repeated.", rich_help_panel=_JUDGING),
]
Rubric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|FOLDER|NAME",
        help="A rubric of your own: replaces the built-in one of its name, else is asked as well.",
        rich_help_panel=_JUDGING,
    ),
]
Reading = Annotated[
    str | None,
    typer.Option(
        help="structured (typed reply with evidence) or probability (first token); "
        "default: what suits the model.",
        rich_help_panel=_JUDGING,
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Most rewrites in each loop; 0 repairs nothing. [default: 3]",
        rich_help_panel=_JUDGING,
    ),
]
Votes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Votes of each judge. [default: 3 to accept a story, else 1]",
        rich_help_panel=_JUDGING,
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(help="majority, unanimous or any. [default: majority]", rich_help_panel=_JUDGING),
]
AllVotes = Annotated[
    bool,
    typer.Option(
        "--all-votes",
        help="Ask every vote, also when the verdict is clear.",
        rich_help_panel=_JUDGING,
    ),
]
FailFast = Annotated[
    bool,
    typer.Option(
        "--fail-fast",
        help="Skip, and name, the checks that cannot save a record any more.",
        rich_help_panel=_JUDGING,
    ),
]
Apart = Annotated[
    bool,
    typer.Option(
        "--apart",
        help="Structured readings ask one call a value, not one for all values.",
        rich_help_panel=_JUDGING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, help="Seed of vote 0, and of --sample. [default: 0]", rich_help_panel=_JUDGING
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        help="For single asks; votes use JUDGE_VOTE_TEMPERATURE (0.7). [default: 0]",
        rich_help_panel=_JUDGING,
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        help="Abstain this close to a probability threshold. [default: 0]", rich_help_panel=_JUDGING
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|none",
        help="What `judge calibrate` learnt: judges, thresholds, error rates. [default: the one "
        "that comes with the local model]",
        rich_help_panel=_JUDGING,
    ),
]
Injected = Annotated[
    str | None,
    typer.Option(
        metavar="abstain|ask",
        help="A check whose text holds what has the form of a message to the judge (control "
        "tokens, ready-made replies, ...) abstains, or is asked all the same. [default: abstain]",
        rich_help_panel=_JUDGING,
    ),
]
MinWords = Annotated[
    int | None,
    typer.Option(
        min=0, help="Shorter stories are rejected. [default: 400]", rich_help_panel=_JUDGING
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="local|batch|ray",
        help="Where the work is done: this process, providers' batch APIs, or a Ray cluster. "
        "[default: local]",
        rich_help_panel=_ENGINE,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Of the Ray cluster, such as auto or HOST:PORT. [default: a Ray on this machine]",
        rich_help_panel=_ENGINE,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Ray workers. [default: one for each free core]", rich_help_panel=_ENGINE
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Most calls and records under way at once. [default: 16; 5,000 with --engine batch, "
        "1,024 on a card and 32 on a processor with transformers:]",
        rich_help_panel=_SPEED,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(help="Seconds until a call is given up. [default: 120]", rich_help_panel=_SPEED),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(min=0, help="Stop in good order after N paid calls.", rich_help_panel=_SPEED),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Stop in good order at this cost in USD (prices: judge.toml).",
        rich_help_panel=_SPEED,
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither read nor keep replies.", rich_help_panel=_CACHE)
]
CacheDir = Annotated[
    Path | None,
    typer.Option(help="Where replies are kept (JUDGE_CACHE_DIR).", rich_help_panel=_CACHE),
]


def inputs_or_stdin(inputs: list[str] | None, context: typer.Context) -> list[str]:
    """The inputs named, else standard input where it is a pipe; else help and exit code 2."""
    if inputs:
        return inputs
    if sys.stdin is not None and not sys.stdin.isatty():
        return ["-"]
    # Typer prints formatted help on standard output, where only data may go.
    with redirect_stdout(sys.stderr):
        typer.echo(context.get_help())
    raise typer.Exit(int(Exit.USAGE))


def settings_here(context: typer.Context) -> Settings:
    """The settings of a command that works in this process, in one go.

    Raises:
        UsageError: as `settings`; or an engine is set that only `judge validate` knows.
    """
    from judge.run.engines import refuse_validation_only

    found = settings(context)
    refuse_validation_only(found, context.info_name or "this command")
    return found


def settings(context: typer.Context) -> Settings:
    """The settings of a run: the command's flags that carry a setting's name, above other sources.

    A switch that is off says nothing, so that a variable or judge.toml can still turn it on. Of
    variables that nothing reads it is told that they change nothing.

    Raises:
        UsageError: a value that does not fit, naming the flag, variable or key.
    """
    from judge.settings import Settings, resolve, strays

    for name, near in strays().items():
        tell(f"{name} changes nothing: judge reads no such variable{f'; {near}?' if near else ''}")

    flags = {name: value for name, value in context.params.items() if name in Settings.model_fields}
    flags = {name: value for name, value in flags.items() if value is not False}
    if context.params.get("no_cache"):
        flags["cache"] = False
    return resolve(flags)
