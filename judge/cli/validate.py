"""`judge validate`: parse the flags, run the job, print how it went."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.run.validate import Report

EPILOG = """**Examples**

`judge validate stories.jsonl -o judged.jsonl` — on the embedded local model

`judge validate norms.csv -m openai:gpt-4o --fail-under 0.95` — as a gate in CI

`generate | judge validate - | jq -c 'select(.judge.verdict == "pass")'` — in a pipeline

`judge validate stories.jsonl -o judged.jsonl --resume` — go on after an interruption

**Exit codes**: 0 all judged; 1 the gate does not hold; 2 bad usage; 3 some records have no verdict;
4 the model is out of reach; 130 interrupted.
"""


def command(
    context: typer.Context,
    inputs: opt.Inputs = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write here instead of standard output.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with OUT: keep what is finished, redo errors.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Write records as they finish.")
    ] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if fewer than this share of records pass."),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Write the closing summary here, as JSON.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell calls, tokens and cost; judge nothing.")
    ] = False,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    model: opt.Model = None,
    accept_model: opt.AcceptModel = None,
    rewrite_model: opt.RewriteModel = None,
    workflow: opt.Workflow = None,
    check: opt.Check = None,
    rubric: opt.Rubric = None,
    reading: opt.Reading = None,
    rounds: opt.Rounds = None,
    votes: opt.Votes = None,
    rule: opt.Rule = None,
    all_votes: opt.AllVotes = False,
    temperature: opt.Temperature = None,
    seed: opt.Seed = None,
    margin: opt.Margin = None,
    min_words: opt.MinWords = None,
    concurrency: opt.Concurrency = None,
    timeout: opt.Timeout = None,
    max_calls: opt.MaxCalls = None,
    max_cost: opt.MaxCost = None,
    no_cache: opt.NoCache = False,
    cache_dir: opt.CacheDir = None,
) -> None:
    """Judge records and write each back with its verdict and evidence.

    Stories must carry their values (CQ-Bench), norms must hold together (NormAd); the kind is seen
    from the fields. Data goes to standard output or OUT, everything else to standard error.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other")
    sources = opt.inputs_or_stdin(inputs, context)
    flags = {
        "model": model,
        "accept_model": accept_model,
        "rewrite_model": rewrite_model,
        "workflow": workflow,
        "check": check,
        "rubric": rubric,
        "reading": reading,
        "rounds": rounds,
        "votes": votes,
        "rule": rule,
        "all_votes": all_votes or None,
        "temperature": temperature,
        "seed": seed,
        "margin": margin,
        "min_words": min_words,
        "concurrency": concurrency,
        "timeout": timeout,
        "max_calls": max_calls,
        "max_cost": max_cost,
        "cache": False if no_cache else None,
        "cache_dir": cache_dir,
    }
    from judge.run.validate import Job, validate
    from judge.settings import resolve

    settings = resolve(flags)
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        unordered=unordered,
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
    )
    if dry_run:
        from judge.cli.plan import show

        show(job, settings)
        return
    from judge.cli.default_model import announce
    from judge.cli.progress import watcher

    settings = announce(settings, quiet=quiet)
    watching = watcher(job, quiet=quiet)
    with watching:
        report = validate(job, settings, watching)
    _finish(report, out, summary, fail_under, quiet)


def _finish(
    report: Report, out: Path | None, summary: Path | None, fail_under: float | None, quiet: bool
) -> None:
    from judge.cli.closing import gate, print_summary

    held = gate(report, fail_under)
    code = report.exit_code
    if held is False and code in (Exit.OK, Exit.INCOMPLETE):
        code = int(Exit.GATE)
    if summary is not None:
        told: dict[str, Any] = {**report.as_json(), "exit_code": code}
        told["gate"] = {"fail_under": fail_under, "holds": held}
        summary.write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", "utf-8")
    if report.broken_pipe:
        _close_stdout()
    elif not quiet:
        print_summary(report, fail_under, held)
    if report.fatal is not None:
        typer.echo(f"judge: {report.fatal}", err=True)
    if report.fatal is not None or report.interrupted:
        typer.echo(f"judge: {_how_to_go_on(report, out)}", err=True)
    raise typer.Exit(code)


def _how_to_go_on(report: Report, out: Path | None) -> str:
    written = report.summary.records
    if out is None:
        return f"{written} records were written; replies are in the cache, so run it again"
    return f"{written} records are in {out}; the same command with --resume goes on from there"


def _close_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it flushes at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
