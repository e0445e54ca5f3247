"""`judge score`: answers that are at hand, scored as `judge evaluate` scores a model's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.evaluate import Condition, JudgeModel, Option, graded, parsed_options
from judge.cli.options import need_calibrate
from judge.cli.printing import tell
from judge.cli.result_tables import Folder, hand_over, refuse_folder
from judge.errors import Exit, UsageError
from judge.settings import CACHE, LIMITS, Settings

EPILOG = """**Examples**

`judge score normad answers.jsonl normad.csv --condition country` — `{"id", "answer"}` lines

`judge score normad answers.jsonl` — what `judge evaluate -o` wrote holds its own gold

`judge score cqbench predicted.jsonl stories.jsonl values.jsonl --judge-model openai:o3`

`judge score eecc outputs.tsv eecc --option rule=released` — lexical variance and its like

ANSWERS holds a line for each item: its `id` (as `judge evaluate` writes it, or the row's with one
--condition) and its `answer`, null where there is no readable one. GOLD are the benchmark's files,
or lines with `id` and `gold`.

**Exit codes**: 0 scored; 2 bad usage, or ANSWERS and GOLD have no id in common; 3 some lines of
ANSWERS are at fault, and named under the first table; 4 a judge is out of reach.
"""


@opt.with_settings("reading", "votes", "vote_temperature", "seed", LIMITS, CACHE)
def command(
    context: typer.Context,
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which one.")],
    answers: Annotated[str, typer.Argument(metavar="ANSWERS", help="What was answered, by id.")],
    gold: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GOLD]...", help="What is right.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write graded lines here.")
    ] = None,
    as_json: opt.Json = False,
    tables: Folder = None,
    condition: Condition = None,
    option: Option = None,
    judge_model: JudgeModel = None,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
) -> None:
    """Score answers that are at hand by a paper's benchmark, and print the paper's tables.

    Answers that no rule can score (value extraction, knowledge) are graded by --judge-model.
    """
    need_calibrate("judge score")
    opt.refuse_both(resume, overwrite)
    refuse_folder(tables, overwrite or resume)
    if out is not None and not judge_model:
        raise UsageError("-o: lines are written where judges grade: name them with --judge-model")
    from judge.evaluation.benchmark import choices_of, load_benchmark
    from judge.evaluation.evaluating import tables_of
    from judge.evaluation.results import Scored, scored

    benchmark = load_benchmark(name)
    choices = choices_of(benchmark, condition or (), settings.seed, None, parsed_options(option))
    if benchmark.outputs is not None and gold:
        results, faults = benchmark.outputs(answers, gold)
        found = Scored(results, faults=faults)
    else:
        found = scored(benchmark, answers, gold or (), choices)
    results = found.results
    code = int(Exit.INCOMPLETE if found.faults else Exit.OK)
    if judge_model:
        from judge.run.job import Job

        job = Job(inputs=(answers,), out=out, resume=resume, overwrite=overwrite, silent=not out)
        run = graded(job, settings, benchmark, choices, judge_model, results, quiet=quiet)
        if not run.report.finished or run.report.fatal:
            if run.report.fatal is not None:
                tell(run.report.fatal)
            raise typer.Exit(run.report.exit_code)
        results, code = run.results, code or run.report.exit_code
    made = [found.table(), *tables_of(benchmark, results, choices)]
    hand_over(made, tables, as_json=as_json, benchmark=name, model=Path(answers).name)
    if found.faults:
        tell(f"{len(found.faults)} line(s) of {answers} are at fault: see under the first table")
    raise typer.Exit(code)
