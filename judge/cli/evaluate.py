"""`judge evaluate`: parse the flags, put a model through a benchmark, show the tables."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.cli.extras import need_calibrate
from judge.cli.printing import nothing, say, tell
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.evaluation.benchmark import Benchmark
    from judge.evaluation.evaluating import Evaluated
    from judge.evaluation.tables import Table
    from judge.run.task import Report

EPILOG = """**Examples**

`judge evaluate normad normad.csv -m openai:gpt-4o -o answers.jsonl --tables tables`

`judge evaluate culturalbench CulturalBench-Easy.csv -m local:qwen2.5-coder-1.5b --limit 100`

`judge evaluate culturalbench CulturalBench-Easy.csv -m baseline:embedding` — the guesser

`judge evaluate cqbench stories.jsonl values.jsonl -m openai:gpt-4o --judge-model openai:o3`

`judge compare answers.jsonl others.jsonl` — two models on the same items

**Benchmarks**: normad, culturalbench, cqbench, cali, eecc (`judge evaluate NAME --list` says more).
Answers go to OUT or to standard output, tables to standard output or, beside answers, to standard
error. Lines are kept, resumed and cached like those of `judge validate`.

**Exit codes**: 0 all asked; 2 bad usage; 3 some items have no readable answer; 4 the model is out
of reach, or disk, cache or OUT cannot be written to; 130 interrupted.
"""

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SOURCE]...",
        help="The benchmark's files; of eecc the released folder.",
        show_default=False,
    ),
]


def command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which one.")],
    sources: Sources = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write answers here.")] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for every table as CSV, JSON and figure.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
    condition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this condition; may be repeated."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Answers to each item, where one is not enough.")
    ] = None,
    judge_model: Annotated[
        list[str] | None,
        typer.Option(metavar="PROVIDER:MODEL", help="Who grades what no rule can; repeatable."),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Say what the benchmark asks, and stop.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell calls, tokens and cost; ask nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with OUT: keep what is finished, redo errors.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT and tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Only the first N rows.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="N rows drawn at random with --seed.")
    ] = None,
    model: opt.Model = None,
    reading: opt.Reading = None,
    votes: opt.Votes = None,
    temperature: opt.Temperature = None,
    seed: opt.Seed = None,
    concurrency: opt.Concurrency = None,
    timeout: opt.Timeout = None,
    max_calls: opt.MaxCalls = None,
    max_cost: opt.MaxCost = None,
    no_cache: opt.NoCache = False,
    cache_dir: opt.CacheDir = None,
) -> None:
    """Put a model through a paper's benchmark and print the paper's tables.

    --model is the model that is measured; --judge-model grades its answers where a rule cannot.
    """
    need_calibrate("judge evaluate")
    gc.disable()
    from judge.evaluation.evaluating import choices_of, evaluate, load_benchmark
    from judge.run.job import Job

    benchmark = load_benchmark(name)
    if listed:
        gc.enable()
        _tell(benchmark)
        return
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other")
    if dry_run and (as_json or tables or resume):
        flag = "--json" if as_json else "--tables" if tables else "--resume"
        raise UsageError(f"{flag}: a dry run makes no tables, and counts as if nothing were there")
    if not sources:
        raise UsageError(f"judge evaluate {name}: name the files or the folder to ask from")
    settings = opt.settings_here(context)
    refuse_folder(tables, overwrite or resume)
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
    )
    choices = choices_of(benchmark, tuple(condition or ()), settings.seed, draws)
    judges = tuple(judge_model or ())
    if dry_run:
        from judge.cli.plan import show_plan
        from judge.evaluation.planning import plan_evaluation

        made = plan_evaluation(job, settings, benchmark=benchmark, choices=choices, judges=judges)
        show_plan(made, "task", "items")
        return
    from judge.cli.progress import watcher

    with watcher(job, quiet=quiet, items=True) as watching:
        found = evaluate(
            job,
            settings,
            watching,
            benchmark=benchmark,
            choices=choices,
            judges=judges,
        )
    finished = found.report.finished and found.results
    _finish(found, benchmark.tables(found.results) if finished else [], settings.model[0], context)


def _finish(found: Evaluated, made: list[Table], measured: str, context: typer.Context) -> None:
    """Print and write the tables of a run that came to its end; say how to go on with others."""
    report, given = found.report, context.params
    if made:
        hand_over(
            made,
            given["tables"],
            as_json=given["as_json"],
            benchmark=given["name"],
            model=measured,
            beside=given["out"] is None,
        )
    if report.fatal is not None:
        tell(report.fatal)
        if report.exit_code == Exit.USAGE and not report.summary.records:
            # The same command would end in the same way.
            raise typer.Exit(report.exit_code)
    if not given["quiet"]:
        from judge.cli.closing import troubles

        for line in troubles(report.summary):
            tell(line)
        tell(_told(found))
        if report.finished and not report.summary.records:
            tell(nothing(given["sources"], given["limit"]))
    if not (report.finished or report.broken_pipe):
        tell(f"not finished, so there are no tables yet; {how_to_go_on(report, given)}")
    raise typer.Exit(report.exit_code)


def how_to_go_on(report: Report, given: Mapping[str, Any]) -> str:
    """What to type after a run that did not come to its end; `given` are the command's flags."""
    if not given["out"] or not (report.summary.records or given["resume"]):
        return "run it again"
    instead = " in the place of --overwrite" if given["overwrite"] else ""
    return f"the same command with --resume{instead} goes on"


def hand_over(
    made: list[Table],
    folder: Path | None,
    *,
    as_json: bool,
    benchmark: str,
    model: str,
    beside: bool = False,
) -> None:
    """Write tables to the folder, if one is named, and print them as `_show` does.

    Files come first: a reader of standard output that leaves, as `head` does, ends the process.
    A folder that cannot be written to keeps no table from being printed.

    Raises:
        UsageError: matplotlib is not installed, or the folder cannot be written to.
    """
    try:
        if folder is not None:
            from judge.report.results import write

            write(made, folder, benchmark=benchmark, model=model)
    finally:
        _show(made, as_json=as_json, beside=beside)


def _show(made: list[Table], *, as_json: bool, beside: bool) -> None:
    """Print tables on standard output, or where answers go there (`beside`) on standard error."""
    if as_json:
        import json

        told = json.dumps([table.as_json() for table in made], ensure_ascii=False, indent=1)
        say(told, err=beside)
        return
    from judge.cli.result_tables import print_results

    print_results(made, stderr=beside)


def _tell(benchmark: Benchmark) -> None:
    from judge.task import load_task

    usual = [name for name in benchmark.conditions if name in benchmark.usual]
    typer.echo(f"{benchmark.name}: {benchmark.title} ({benchmark.source})")
    typer.echo(f"conditions: {', '.join(benchmark.conditions)}")
    typer.echo(f"asked by default: {', '.join(usual)}")
    typer.echo(f"answers to each item: {benchmark.draws}")
    typer.echo(f"graded by judges: {'yes' if benchmark.grade else 'no'}")
    for name in benchmark.tasks:
        task = load_task(name)
        typer.echo(f"\n{name}: {task.title} ({task.source})")
        typer.echo(task.question.rstrip())


def _told(found: Evaluated) -> str:
    from judge.cli.closing import exchanged

    summary = found.report.summary
    verdicts = ", ".join(f"{count} {name}" for name, count in sorted(summary.verdicts.items()))
    return (
        f"{summary.records} items ({verdicts or 'none'}) in {found.report.seconds:.1f} s, "
        f"{exchanged(found.report)}"
    )


def refuse_folder(folder: Path | None, replace: bool) -> None:
    """Raise UsageError where the folder for tables is a file, or holds something to be kept."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--tables {folder}: is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not replace:
        raise UsageError(f"--tables {folder}: is not empty; name another folder, or --overwrite")
