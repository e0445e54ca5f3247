"""`judge validate`: parse the flags, run the job, print how it went."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, nothing, tell
from judge.errors import Exit, UsageError
from judge.settings import CACHE, ENGINE, JUDGING, LIMITS, MODELS, Settings

if TYPE_CHECKING:
    from judge.run.task import Report

EPILOG = """**Examples**

`judge validate stories.jsonl -o judged.jsonl` — on the embedded local model

`judge validate norms.csv -m openai:gpt-4o --fail-under 0.95` — as a gate in CI

`generate | judge validate - | jq -c 'select(.judge.verdict == "pass")'` — in a pipeline

`judge validate stories.jsonl -o judged.jsonl --resume` — go on after an interruption

**Exit codes**: 0 all judged; 1 the gate does not hold; 2 bad usage; 3 some records have no verdict;
4 a resource ended (model, budget, disk, cache or OUT), and --resume goes on; 130 interrupted.
"""


@opt.with_settings(MODELS, JUDGING, ENGINE, LIMITS, CACHE)
def command(
    context: typer.Context,
    settings: Settings,
    inputs: opt.Inputs = None,
    out: opt.Out = None,
    resume: opt.Resume = False,
    redo: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT,...",
            help="With --resume: judge again what has one of these verdicts, also by other models.",
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
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
    review: Annotated[
        Path | None,
        typer.Option(help="Write the records that need people (abstain, unreadable) here, too."),
    ] = None,
    quiet: opt.Quiet = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say calls, tokens and cost; judge nothing.")
    ] = False,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
) -> None:
    """Judge records and write each back with its verdict and evidence.

    Stories must carry their values (CQ-Bench), norms must hold together (NormAd), predicted values
    are graded against gold ones (CQ-Bench); the kind is seen from the fields.
    Data goes to standard output or OUT, everything else to standard error.
    """
    opt.refuse_both(resume, overwrite)
    sources = opt.inputs_or_stdin(inputs, context)
    # Imports make a million objects that all stay; the collector would look through them again and
    # again. The run turns it on.
    gc.disable()
    from judge.run.clients import refuse_stray
    from judge.run.job import Job, refuse_unusable
    from judge.run.validate import validate

    refuse_stray(settings)
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        redo=[part.strip() for part in redo.split(",") if part.strip()] if redo else (),
        unordered=unordered,
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
        review=review,
        summary=summary,
    )
    if dry_run:
        from judge.cli.plan import show

        gc.enable()
        show(job, settings)
        return
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, gate, print_summary
    from judge.run.calibrated import profiled_models, profiles_of

    refuse_unusable(job)
    if summary is not None:
        _refuse_unwritable(summary)
    announce(profiled_models(settings, profiles_of(settings)), quiet=quiet)
    with watcher(job, quiet=quiet) as watching:
        report = validate(job, settings, watching)
    held = gate(report, fail_under)
    if summary is not None:
        _write_summary(summary, report, settings, fail_under, held)
    if not (report.broken_pipe or quiet):
        print_summary(report, fail_under, held, out)
    if report.fatal is not None:
        tell(report.fatal)
    if report.finished and not report.summary.records and not quiet:
        tell(nothing(job.inputs, job.limit))
    if not (report.finished or report.broken_pipe):
        tell(_how_to_go_on(report, out, settings))
    elif report.finished and not quiet and (lost := report.summary.passing_errors):
        again = "with --resume" if out is not None else "run again"
        tell(
            f"{counted(lost, 'record')} {'has' if lost == 1 else 'have'} no verdict because the "
            f"server failed; the same command {again} asks for them once more"
        )
    raise typer.Exit(_code(report, held))


def _code(report: Report, held: bool | None) -> int:
    """The exit code: the gate's, where the run came to its end, else the run's."""
    return int(Exit.GATE) if held is False and report.finished else report.exit_code


def _refuse_unwritable(summary: Path) -> None:
    if summary.is_dir() or not os.access(summary if summary.exists() else summary.parent, os.W_OK):
        raise UsageError(
            f"--summary {summary}: cannot be written; name a file in a folder that can"
        )


def _write_summary(
    path: Path, report: Report, settings: Settings, fail_under: float | None, held: bool | None
) -> None:
    told: dict[str, Any] = {**report.as_json(), "exit_code": _code(report, held)}
    told["gate"] = {"fail_under": fail_under, "holds": held}
    told["settings_from"] = {file: list(names) for file, names in settings.from_files.items()}
    try:
        path.write_text(
            json.dumps(told, ensure_ascii=False, indent=2) + "\n", "utf-8", "backslashreplace"
        )
    except OSError as error:
        tell(f"--summary {path} was not written: {error.strerror}")


def _how_to_go_on(report: Report, out: Path | None, settings: Settings) -> str:
    if not (report.begun or report.summary.records or report.batches):
        unchanged = f" and {out} is as it was" if out is not None and out.exists() else ""
        return f"nothing was written{unchanged}; the same command can be run again"
    written = (
        f"{counted(report.summary.records, 'record')} "
        f"{'was' if report.summary.records == 1 else 'were'} written to {out or 'the output'}"
    )
    if report.batches:
        again = "with --resume" if out is not None else "run again"
        return (
            f"{written}; {counted(report.batches, 'batch', 'batches')} still at the provider; "
            f"the same command {again} picks up the results"
        )
    if out is not None:
        return f"{written}; the same command with --resume goes on from there"
    if settings.cache:
        return f"{written}; run it again: replies that are in the cache are not asked again"
    return f"{written}; with -o FILE a run can be gone on with (--resume)"
