"""`judge plan`: what a run will ask and cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_lines, print_message, print_output, print_table

if TYPE_CHECKING:
    from judge.api import Plan
    from judge.settings import Settings
    from judge.verdict import Usage

EPILOG = """\b
Example:
  judge plan records.jsonl -m openai:gpt-4o    with prices from judge.toml
"""


@opt.with_settings("Models", "Judging", "Engine", "Speed and money", "Cache", "Traces")
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.ByField = None,
) -> None:
    """Estimate the calls, tokens and cost of a run.

    No model is called; its key, server or GPU may be missing.
    """
    sources = opt.record_files(inputs, context)
    from judge import api

    job = api.Job(
        sources, format=format, limit=limit, sample=sample, sample_seed=settings.seed, by=by or ()
    )
    show_plan(api.plan_job(job, settings), "check", "records")


def show_plan(estimate: Plan, by: str, noun: str) -> None:
    """Print an estimate on standard output, and on standard error what cannot be asked about.

    Args:
        by: what calls are counted by (check, task).
        noun: what is judged or asked (records, items).
    """
    from judge.cli.summary import troubles

    if estimate.shown:
        print_message(estimate.shown)
    for line in troubles(estimate.bad):
        print_message(line)
    for (name, reason), count in estimate.unasked.items():
        print_message(f"{name}: {count} of {estimate.records} not asked, {reason}")
    bad = f", {estimate.bad.records} that cannot be asked about" if estimate.bad.records else ""
    if not estimate.records:
        print_output(f"0 {noun}{bad}")
        return
    rows = [(name, str(c["least"]), str(c["most"])) for name, c in estimate.by_check.items()]
    print_table((by, "least calls", "most calls"), rows)
    print_output(f"{counted(estimate.records, noun.removesuffix('s'))}{bad}")
    ends = {"least": estimate.least, "likely": estimate.likely, "most": estimate.most}
    print_output("\n".join(f"{name + ':':7} {_effort(usage)}" for name, usage in ends.items()))
    print_lines(_prices(estimate))
    print_lines(estimate.assumptions(noun))


def _prices(estimate: Plan) -> Iterator[str]:
    """Which list prices the cost rests on, and which models have none."""
    from judge.configuration import user_file

    for spec, price in estimate.prices.items():
        if date := getattr(price, "date", None):
            pair = f"{price.input:g} and {price.output:g} USD for a million tokens"
            yield f"Price of {spec}: {pair}, of a list of {date}; [prices] in judge.toml overrides."
    for spec in estimate.unpriced:
        yield f'No price known for {spec}: put [prices."{spec}"] into {user_file()}.'


def _effort(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    tokens = f"{usage.input_tokens} tokens read, {usage.output_tokens} written"
    return f"{counted(usage.replies, 'call')}, {tokens}, {cost}"
