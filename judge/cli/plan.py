"""`judge plan`: what a run will ask and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from judge.cli import options as opt
from judge.cli.printing import print_lines, print_table, say, tell

if TYPE_CHECKING:
    from judge.api import Plan
    from judge.settings import Settings
    from judge.verdict import Usage

EPILOG = """\b
Example:
  judge plan stories.jsonl -m openai:gpt-4o    with prices from judge.toml
"""


@opt.with_settings("Models", "Judging", "Engine", "Speed and money", "Cache")
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.By = None,
) -> None:
    """Estimate the calls, tokens and cost of a run.

    No model is called; its key, server or GPU may be missing.
    """
    sources = opt.inputs_or_stdin(inputs, context)
    from judge import api

    job = api.Job(
        sources, format=format, limit=limit, sample=sample, sample_seed=settings.seed, by=by
    )
    show_plan(api.plan_job(job, settings), "check", "records")


def show_plan(made: Plan, by: str, what: str) -> None:
    """Print an estimate on standard output, and on standard error what cannot be asked about.

    Args:
        by: what calls are counted by (check, task).
        what: what is judged or asked (records, items).
    """
    from judge.cli.summary import troubles
    from judge.configuration import user_file

    if made.shown:
        tell(made.shown)
    for line in troubles(made.bad):
        tell(line)
    for (name, reason), count in made.unasked.items():
        tell(f"{name}: {count} of {made.records} not asked, {reason}")
    bad = f", {made.bad.records} that cannot be asked about" if made.bad.records else ""
    if not made.records:
        say(f"0 {what}{bad}")
        return
    rows = [(name, str(c["least"]), str(c["most"])) for name, c in made.by_check.items()]
    print_table((by, "least calls", "most calls"), rows)
    say(f"{made.records} {what}{bad}")
    ends = {"least": made.least, "likely": made.likely, "most": made.most}
    say("\n".join(f"{name + ':':7} {_told(usage)}" for name, usage in ends.items()))
    for spec in made.unpriced:
        say(f'No price is known for {spec}: put [prices."{spec}"] into {user_file()}.')
    print_lines(made.assumptions(what))


def _told(usage: Usage) -> str:
    cost = "cost unknown"
    if usage.cost_usd is not None:
        cost = f"{usage.cost_usd:.4f} USD"
    return f"{usage.replies} calls, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"
