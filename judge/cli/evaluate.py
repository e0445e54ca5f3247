"""`judge evaluate`: parse the flags, put a model through a benchmark, show the tables."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli import options as opt
from judge.cli.options import need_calibrate
from judge.cli.printing import nothing, tell
from judge.cli.result_tables import Folder, hand_over, refuse_folder
from judge.errors import Exit, UsageError
from judge.settings import CACHE, LIMITS, Settings

if TYPE_CHECKING:
    from judge.evaluation.benchmark import Benchmark, Choices, Result
    from judge.evaluation.evaluating import Evaluated
    from judge.evaluation.tables import Table
    from judge.run.job import Job
    from judge.run.task import Report

EPILOG = """**Examples**

`judge evaluate normad normad.csv -m openai:gpt-4o -o answers.jsonl --tables tables`

`judge evaluate culturalbench CulturalBench-Easy.csv -m local:qwen2.5-coder-1.5b --limit 100`

`judge evaluate culturalbench CulturalBench-Easy.csv -m baseline:embedding` — the guesser

`judge evaluate cqbench stories.jsonl values.jsonl -m openai:gpt-4o --judge-model openai:o3`

`judge compare answers.jsonl others.jsonl` — two models on the same items

`judge evaluate normad norms.jsonl --statistics` — NormAd's table 2 of a set of norms

**Benchmarks**: normad, culturalbench, cqbench, cali, eecc (`judge evaluate NAME --list` says more).
Answers go to OUT or to standard output, tables to standard output or, beside answers, to standard
error. Lines are kept, resumed and cached like those of `judge validate`.

**Exit codes**: 0 all asked; 2 bad usage; 3 some items have no readable answer; 4 a resource
ended (model, budget, disk, cache or OUT), and --resume goes on; 130 interrupted.
"""

Condition = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this condition; may be repeated.")
]
Option = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A setting of the benchmark's own; may be repeated."),
]
JudgeModel = Annotated[
    list[str] | None,
    typer.Option(metavar="PROVIDER:MODEL", help="Who grades what no rule can; repeatable."),
]


@opt.with_settings(
    "model", "reading", "votes", "temperature", "vote_temperature", "seed", LIMITS, CACHE
)
def command(
    context: typer.Context,
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which one.")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="The benchmark's files; of eecc the released folder.",
            show_default=False,
        ),
    ] = None,
    out: opt.Out = None,
    tables: Folder = None,
    as_json: opt.Json = False,
    condition: Condition = None,
    option: Option = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Answers to each item, where one is not enough.")
    ] = None,
    judge_model: JudgeModel = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Say what the benchmark asks, and stop.")
    ] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Only count what is in the sources.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell calls, tokens and cost; ask nothing.")
    ] = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
) -> None:
    """Put a model through a paper's benchmark and print the paper's tables.

    --model is the model that is measured; --judge-model grades its answers where a rule cannot.
    --limit and --sample count rows of the sources.
    """
    need_calibrate("judge evaluate")
    gc.disable()
    from judge.evaluation.benchmark import choices_of, load_benchmark
    from judge.evaluation.evaluating import evaluate, tables_of
    from judge.run.job import Job

    benchmark = load_benchmark(name)
    if listed:
        gc.enable()
        _tell(benchmark)
        return
    opt.refuse_both(resume, overwrite)
    if dry_run and (as_json or tables or resume):
        flag = "--json" if as_json else "--tables" if tables else "--resume"
        raise UsageError(f"{flag}: a dry run makes no tables, and counts as if nothing were there")
    if not sources:
        raise UsageError(f"judge evaluate {name}: name the files or the folder to ask from")
    refuse_folder(tables, overwrite or resume)
    if statistics:
        if benchmark.statistics is None:
            raise UsageError(f"--statistics: {name} has none")
        counted = benchmark.statistics(sources)
        hand_over(counted, tables, as_json=as_json, benchmark=name, model=sources[0])
        return
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
    )
    own = parsed_options(option)
    choices = choices_of(benchmark, condition or (), settings.seed, draws, own)
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
            job, settings, watching, benchmark=benchmark, choices=choices, judges=judges
        )
    finished = found.report.finished and found.results
    tables_made = tables_of(benchmark, found.results, choices) if finished else []
    _finish(found, tables_made, settings.model[0], context)


def graded(
    job: Job,
    settings: Settings,
    benchmark: Benchmark,
    choices: Choices,
    judges: Sequence[str],
    results: Sequence[Result],
    *,
    quiet: bool,
) -> Evaluated:
    """Answers that are at hand, graded by judges."""
    from judge.cli.progress import watcher
    from judge.evaluation.evaluating import evaluate

    gc.disable()
    with watcher(job, quiet=quiet, items=True, of=len(results)) as watching:
        return evaluate(
            job,
            settings,
            watching,
            benchmark=benchmark,
            choices=choices,
            judges=judges,
            given=results,
        )


def parsed_options(given: Sequence[str] | None) -> dict[str, str]:
    """The values of `--option NAME=VALUE` by name. Raises UsageError where one has another form."""
    for one in given or ():
        if "=" not in one:
            raise UsageError(f"--option {one}: write NAME=VALUE")
    return dict(one.split("=", 1) for one in given or ())


def _finish(found: Evaluated, made: Sequence[Table], measured: str, context: typer.Context) -> None:
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
        from judge.cli.summary import troubles

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


def _tell(benchmark: Benchmark) -> None:
    from judge.task import load_task

    usual = benchmark.usual or benchmark.conditions
    typer.echo(f"{benchmark.name}: {benchmark.title} ({benchmark.source})")
    typer.echo(f"conditions: {', '.join(benchmark.conditions)}")
    typer.echo(f"asked by default: {', '.join(usual)}")
    typer.echo(f"answers to each item: {benchmark.draws}")
    typer.echo(f"graded by judges: {'yes' if benchmark.grade else 'no'}")
    for name, option in benchmark.options.model_fields.items():
        typer.echo(f"option: {name}={option.default}")
    for task in map(load_task, benchmark.tasks):
        typer.echo(f"\n{task.name}: {task.title} ({task.source})")
        typer.echo(task.question.rstrip())


def _told(found: Evaluated) -> str:
    from judge.cli.summary import exchanged

    summary = found.report.summary
    verdicts = ", ".join(f"{count} {name}" for name, count in sorted(summary.verdicts.items()))
    return (
        f"{summary.records} items ({verdicts or 'none'}) in {found.report.seconds:.1f} s, "
        f"{exchanged(found.report)}"
    )
