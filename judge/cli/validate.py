"""`judge validate`: parse the flags, run the job, print how it went."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, print_summary
    from judge.run.calibrated import profiled_models, profiles_of

    refuse_unusable(job)
    place = summary.parent if summary is not None and not summary.exists() else summary
    if summary is not None and (summary.is_dir() or not os.access(place or "", os.W_OK)):
        raise UsageError(f"--summary {summary}: cannot be written; name a file in another folder")
    announce(profiled_models(settings, profiles_of(settings)), quiet=quiet)
    with watcher(job, quiet=quiet) as watching:
        report = validate(job, settings, watching)
    held, code = None, report.exit_code
    if fail_under is not None:
        # A gate over no record does not hold: an empty file must not look like a clean one.
        rate = report.summary.pass_rate
        held = rate is not None and rate >= fail_under
        code = code if held or not report.finished else int(Exit.GATE)
    if summary is not None:
        found = {**report.as_json(), "exit_code": code}
        found["gate"] = {"fail_under": fail_under, "holds": held}
        found["settings_from"] = settings.from_files
        text = json.dumps(found, ensure_ascii=False, indent=2) + "\n"
        try:
            summary.write_text(text, "utf-8", "backslashreplace")
        except OSError as error:
            tell(f"--summary {summary} was not written: {error.strerror}")
    if not (report.broken_pipe or quiet):
        print_summary(report, fail_under, held, out)
    if report.fatal is not None:
        tell(report.fatal)
    if report.finished and not report.summary.records and not quiet:
        tell(nothing(job.inputs, job.limit))
    silent = report.broken_pipe or (report.finished and quiet)
    if not silent and (told := _how_to_go_on(report, out, settings)):
        tell(told)
    raise typer.Exit(code)


def _how_to_go_on(report: Report, out: Path | None, settings: Settings) -> str | None:
    """What to type after a run that has not judged every record; None after one that has."""
    again = "with --resume" if out is not None else "run again"
    if report.finished:
        lost = report.summary.passing_errors
        what = f"{counted(lost, 'record')} without a verdict because the server failed"
        return f"{what}; the same command {again} asks once more" if lost else None
    if not (report.begun or report.summary.records or report.batches):
        unchanged = f" and {out} is as it was" if out is not None and out.exists() else ""
        return f"nothing was written{unchanged}; the same command can be run again"
    count = report.summary.records
    written = f"{counted(count, 'record')} {'was' if count == 1 else 'were'} written to "
    written += str(out or "the output")
    if report.batches:
        batches = counted(report.batches, "batch", "batches")
        return (
            f"{written}; {batches} still at the provider; the same command {again} picks up the "
            "results"
        )
    if out is not None:
        return f"{written}; the same command with --resume goes on from there"
    if settings.cache:
        return f"{written}; run it again: replies that are in the cache are not asked again"
    return f"{written}; with -o FILE a run can be gone on with (--resume)"
