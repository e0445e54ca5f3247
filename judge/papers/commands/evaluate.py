"""`judge evaluate`: parse flags, run a benchmark on a model, print the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge import plugins
from judge.cli import options as opt
from judge.cli.printing import print_lines, print_message, print_table
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge evaluate normad normad.csv -m openai:gpt-4o -o answers.jsonl
  judge evaluate culturalbench CulturalBench-Easy.csv -m local:NAME
  judge evaluate cqbench stories.jsonl values.jsonl -m openai:gpt-4o \\
      --judge-model openai:o3
  judge evaluate normad normad.csv -m openai:gpt-4o --task my_prompt.yaml
  judge evaluate hostile -m openai:gpt-4o       a judge under hostile text
  judge evaluate hostile mails.csv --rubric ./mine.yaml    on your own records
  judge compare answers.jsonl others.jsonl      two models

Benchmarks: normad, culturalbench, cqbench, cali, eecc and hostile (docs/reference/ says what they
ask). hostile measures judges: it puts hostile text into its own records, or into yours
(docs/explain/hostile-text.md).
With -o, answers go to OUT and tables to standard output; without -o, answers go to standard output
and tables to standard error. Answers are resumed and cached as in judge validate.
"""

_NAME = typer.Argument(
    metavar="BENCHMARK",
    help="See `judge evaluate --list`.",
    show_default=False,
    autocompletion=opt.completed("judge.benchmarks"),
)
BenchmarkName = Annotated[str, _NAME]
ShowList = Annotated[bool, typer.Option("--list", help="List the benchmarks and what they ask.")]
BenchmarkFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE", help="The benchmark's files; for eecc its folder."),
]
Condition = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this condition; repeatable.")
]
JudgeModel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROVIDER:MODEL",
        help="Model that grades answers that no rule can; repeatable.",
        autocompletion=opt.completed("models"),
    ),
]
TaskFile = Annotated[
    list[Path] | None,
    typer.Option(
        "--task",
        metavar="FILE",
        help="Ask in your own words: a task file that replaces the built-in one; repeatable.",
    ),
]
Setting = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Ask in another way, such as the paper's; see --list."),
]


@opt.with_settings(
    *("model", "method", "votes", "temperature", "vote_temperature", "max_tokens"),
    *("reasoning_effort", "seed", "map"),
    *("Speed and money", "Cache", "Traces"),
    *("rubric", "cheap_model", "cheap_margin", "abstain_margin", "profile"),
    map="Read this column of the sources as NAME; a.b is b within a.",
    model="Model to measure.",
    rubric="hostile: ask this rubric; with your own records it may be any; repeatable.",
)
def command(
    settings: Settings,
    name: Annotated[str, _NAME] = "",
    sources: BenchmarkFiles = None,
    list_: ShowList = False,
    out: opt.Out = None,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    condition: Condition = None,
    judge_model: JudgeModel = None,
    task: TaskFile = None,
    setting: Setting = None,
    dry_run: opt.DryRun = False,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.ByField = None,
) -> None:
    """Run a paper's benchmark on a model; print the paper's tables.

    --model is the model to measure; --judge-model grades its answers where a rule cannot.
    --limit and --sample count rows of the sources.
    """
    if list_:
        _list_benchmarks()
        return
    if not name:
        raise UsageError("name a benchmark; judge evaluate --list shows them")
    opt.need_calibrate("judge evaluate")
    from judge.api import Job
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, end, print_short
    from judge.cli.tables import print_tables
    from judge.papers.benchmark import choices_of, load_benchmark
    from judge.papers.evaluating import evaluate, plan_evaluation
    from judge.papers.tables import sliced_tables

    benchmark = load_benchmark(name)
    if benchmark.rubrics is None and not sources:
        raise UsageError(f"judge evaluate {name}: name the files or the folder to ask from")
    sources = sources or []
    job = Job(
        inputs=sources,
        out=out,
        resume=resume,
        overwrite=overwrite,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
        by=by or (),
    )
    choices = choices_of(
        benchmark,
        sources,
        condition or (),
        seed=settings.seed,
        tasks=task or (),
        columns=settings.columns,
        setting=setting,
        rubrics=settings.rubric,
    )
    judges = tuple(judge_model or ())
    if dry_run:
        from judge.cli.plan import show_plan

        plan = plan_evaluation(job, settings, benchmark=benchmark, choices=choices, judges=judges)
        show_plan(plan, "task", "items")
        return
    if benchmark.rubrics is not None:
        announce(settings, quiet=quiet)
    with watcher(job, quiet=quiet, items=True) as watching:
        report, results = evaluate(
            job, settings, watching, benchmark=benchmark, choices=choices, judges=judges
        )
    if report.finished and results:
        print_tables(
            sliced_tables(benchmark, results, job.by),
            as_json=as_json,
            all_tables=all_tables,
            beside=out is None,
            headlines=2 if by else 1,
        )
    if not quiet:
        print_short(report, "item")
    if report.finished:
        served = {result.condition for result in results}
        for unserved in (result for result in condition or () if result not in served):
            print_message(
                f"--condition {unserved}: no line of {', '.join(sources)} has what it needs"
            )
    elif not report.broken_pipe:
        print_message("no tables yet: the run is not finished")
    end(report, job, settings, quiet=quiet)


def _list_benchmarks() -> None:
    from judge.papers.benchmark import BENCHMARKS, load_benchmark

    benchmarks = [load_benchmark(name) for name in plugins.names(BENCHMARKS)]
    rows = [
        (benchmark.name, benchmark.title, ", ".join(benchmark.conditions))
        for benchmark in benchmarks
    ]
    notes = [
        f"{benchmark.name} --setting {name}: {change}."
        for benchmark in benchmarks
        for name, change in benchmark.settings.items()
    ]
    notes += [
        f"{benchmark.name}: temperature {benchmark.temperature}, the paper's, unless --temperature "
        "is given."
        for benchmark in benchmarks
        if benchmark.temperature is not None
    ]
    heads = ("name", "what for", "conditions")
    print_table(heads, rows)
    print_lines(notes)
