"""`judge plan`: what a run will ask and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from judge.cli import options as opt
from judge.cli.printing import print_lines, print_message

if TYPE_CHECKING:
    from judge.run.plan import Plan
    from judge.settings import Settings

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
    by: opt.EvenBy = None,
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
    """Print an estimate on standard output; on standard error, the records that cannot be asked.

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
    print_lines(estimate.lines(by, noun))
