"""`judge plan`: what a run will ask, before anything is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from judge.cli import options as opt

if TYPE_CHECKING:
    from judge.run.validate import Job
    from judge.settings import Settings
    from judge.verdict import Usage

EPILOG = """**Example**

`judge plan stories.jsonl -m openai:gpt-4o` — prices for the cost column come from judge.toml
"""


def command(
    context: typer.Context,
    inputs: opt.Inputs = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    model: opt.Model = None,
    accept_model: opt.AcceptModel = None,
    rewrite_model: opt.RewriteModel = None,
    cheap_model: opt.CheapModel = None,
    cheap_margin: opt.CheapMargin = None,
    workflow: opt.Workflow = None,
    check: opt.Check = None,
    rubric: opt.Rubric = None,
    reading: opt.Reading = None,
    rounds: opt.Rounds = None,
    votes: opt.Votes = None,
    rule: opt.Rule = None,
    all_votes: opt.AllVotes = False,
    fail_fast: opt.FailFast = False,
    apart: opt.Apart = False,
    seed: opt.Seed = None,
) -> None:
    """Estimate calls, tokens and cost of a validation. No model is asked anything."""
    sources = opt.inputs_or_stdin(inputs, context)
    from judge.run.validate import Job

    settings = opt.settings(context)
    job = Job(sources, format=format, limit=limit, sample=sample, sample_seed=settings.seed)
    show(job, settings)


def show(job: Job, settings: Settings) -> None:
    """Print the estimate on standard output."""
    from rich.console import Console
    from rich.table import Table

    from judge.run.plan import CHARACTERS_PER_TOKEN, plan
    from judge.run.setup import Setup

    made = plan(job, Setup.of(settings.model_copy(update={"cache": False, "max_cost": None})))
    table = Table(box=None, pad_edge=False)
    for column in ("check", "least calls", "most calls"):
        table.add_column(column, justify="left" if column == "check" else "right")
    for name, counts in made.by_check.items():
        table.add_row(name, str(counts["least"]), str(counts["most"]))
    console = Console(soft_wrap=True)
    console.print(table)
    unreadable = f", {made.unreadable} that cannot be judged" if made.unreadable else ""
    console.print(f"{made.records} records{unreadable}")
    console.print(f"least: {_told(made.least)}\nmost:  {_told(made.most)}")
    console.print(
        f"Tokens at {CHARACTERS_PER_TOKEN:g} characters each; replies already in the cache and "
        "re-asked replies are not counted."
    )


def _told(usage: Usage) -> str:
    cost = "cost unknown (no price in judge.toml)"
    if usage.cost_usd is not None:
        cost = f"{usage.cost_usd:.4f} USD"
    return f"{usage.replies} calls, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"
