"""`judge validate`: parse flags, run the job, print the summary."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge validate mails.csv --ask "Is this e-mail polite?" -m openai:gpt-4o
  judge validate records.jsonl -o judged.jsonl            on the local model
  judge validate records.csv -m openai:gpt-4o --fail-under 0.95     in CI
  generate | judge validate - | jq -c 'select(.judge.verdict == "pass")'

Exit codes: 0 all judged; 1 a gate does not hold; 2 bad usage; 3 some records have no verdict;
4 a resource ended, continue with --resume; 130 interrupted.
"""


@opt.with_settings("Models", "Judging", "Engine", "Speed and money", "Cache", "Traces")
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    out: opt.Out = None,
    resume: opt.Resume = False,
    rejudge: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT,...",
            help="With --resume: judge records with these verdicts again, also by another model.",
            rich_help_panel=opt.OUTPUT,
            autocompletion=opt.completed("verdicts"),
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    summary: Annotated[
        Path | None,
        typer.Option(
            help="Also write the summary to this file, as JSON.", rich_help_panel=opt.OUTPUT
        ),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(
            help="Also write records for people to decide (abstain, unreadable) to this file, "
            "the least certain first."
        ),
    ] = None,
    review_verdicts: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT,...",
            help="Verdicts of the records for --review, such as fail,abstain.",
            rich_help_panel=opt.OUTPUT,
            autocompletion=opt.completed("verdicts"),
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            help="People's labels of records (a --review, or judge agreement -o), which decide.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    all_tables: opt.All = False,
    quiet: opt.Quiet = False,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.ByField = None,
) -> None:
    """Judge records; write each back with its verdict and evidence.

    Ask your own question with --ask or --rubric. Records with the fields of a workflow (`judge
    workflows list`) are asked its questions.
    They go to OUT, or to standard output unless it is a terminal; all else to standard error.
    """
    sources = opt.record_files(inputs, context, out, review, summary)
    from judge import api
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, end, print_summary

    # Lines of JSON are for programs: a person at a terminal reads the summary.
    on_screen = out is None and not quiet and sys.stdout is not None and sys.stdout.isatty()
    job = api.Job(
        inputs=sources,
        **api.files_of(out),
        silent=on_screen,
        resume=resume,
        overwrite=overwrite,
        rejudge=opt.names(rejudge),
        review_verdicts=opt.names(review_verdicts),
        decisions=decisions,
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
        by=by or (),
        review=review,
        summary=summary,
    )
    job.check(settings.files)  # Before the model is announced.
    if api.asks_model(settings):
        announce(settings, quiet=quiet, before_fetch=lambda: api.look_ahead(job, settings))
    with watcher(job, settings, quiet=quiet) as watching:
        report = api.run(job, settings, watching)
    if not (report.broken_pipe or quiet):
        print_summary(report, job, settings, all_tables=all_tables)
    end(report, job, settings, quiet=quiet)
