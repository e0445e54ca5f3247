"""`judge score`: answers that are at hand, beside what is right; one command a task."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from judge.cli import options as opt
from judge.cli.evaluate import hand_over, refuse_folder
from judge.cli.help import Command, Group
from judge.cli.options import need_calibrate
from judge.cli.printing import tell
from judge.errors import Exit, UsageError
from judge.settings import CACHE, LIMITS, Settings

if TYPE_CHECKING:
    from judge.evaluation.tables import Table

EPILOG = """**Examples**

`judge score extraction predicted.jsonl gold.jsonl --votes 3 -o graded.jsonl`

`judge score selection predicted.jsonl gold.jsonl --rule released`

`judge score answers answers.jsonl --tables tables` — the tables of `judge evaluate` again

`judge score outputs outputs.tsv eecc` — lexical variance and its like

`judge score norms judged.jsonl` — what is in a set
"""

_ATTITUDE = """**Examples**

`judge score attitude predicted.jsonl gold.jsonl`

`judge score attitude answers.jsonl answers.jsonl --tables tables` — of `judge evaluate cqbench`

**Exit codes**: 0 scored; 2 bad usage, or PRED and GOLD have no id in common; 3 some lines of PRED
are at fault, and named under the first table; 4 standard output cannot be written to.
"""
_SELECTION = """**Examples**

`judge score selection predicted.jsonl gold.jsonl`

`judge score selection predicted.jsonl gold.jsonl --rule released`

**Exit codes**: 0 scored; 2 bad usage, or PRED and GOLD have no id in common; 3 some lines of PRED
are at fault, and named under the first table; 4 standard output cannot be written to.
"""
_EXTRACTION = """**Examples**

`judge score extraction predicted.jsonl gold.jsonl --votes 3 -o graded.jsonl`

`judge score extraction answers.jsonl answers.jsonl -m openai:gpt-4o` — of `judge evaluate cqbench`

**Exit codes**: those of `judge validate`; also 2 where PRED and GOLD have no id in common, and 3
where lines of PRED are at fault, which are named under the first table.
"""
_ANSWERS = """**Examples**

`judge score answers answers.jsonl --tables tables`

**Exit codes**: 0 scored; 2 bad usage, or no line holds an answer; 3 some lines hold none; 4
standard output cannot be written to.
"""
_OUTPUTS = """**Examples**

`judge score outputs outputs.tsv eecc`

`judge score outputs outputs.tsv eecc --rule released`

**Exit codes**: 0 scored; 2 bad usage, or no line can be read; 3 some lines cannot, and are named
under the first table; 4 standard output cannot be written to.
"""
_NORMS = """**Examples**

`judge score norms judged.jsonl`

`judge score norms normad.csv --json`

**Exit codes**: 0 counted; 2 bad usage, or there is no norm; 3 some lines cannot be read; 4 standard
output cannot be written to.
"""

app = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False, epilog=EPILOG)

Pred = Annotated[str, typer.Argument(metavar="PRED", help="What was predicted, by id.")]
Gold = Annotated[str, typer.Argument(metavar="GOLD", help="What is right, by id.")]
Json = Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")]
Folder = Annotated[
    Path | None, typer.Option("--tables", help="Folder for every table as CSV, JSON and figure.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


@app.command(cls=Command, epilog=_ATTITUDE)
def attitude(
    pred: Pred,
    gold: Gold,
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
) -> None:
    """Score attitude detection (CQ-Bench): accuracy and macro F1.

    Also with severities merged, by option, and without the neutral stance.
    """
    from judge.evaluation.scoring import score_attitude

    _begin(tables, overwrite)
    made = score_attitude(pred, gold)
    _end(made.tables, tables, as_json, "attitude", pred)
    _refuse_faults(made.at_fault, pred)


@app.command(cls=Command, epilog=_SELECTION)
def selection(
    pred: Pred,
    gold: Gold,
    rule: Annotated[
        str, typer.Option(help="paper, or released: as the paper's own script counts.")
    ] = "paper",
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
) -> None:
    """Score value selection (CQ-Bench): F1 of each item, and pooled.

    Unreadable answers count as wrong; --rule released leaves them out, and says how many.
    """
    from judge.evaluation.scoring import score_selection

    if rule not in ("paper", "released"):
        raise UsageError(f"--rule {rule}: there are paper and released")
    _begin(tables, overwrite)
    made = score_selection(pred, gold, "released" if rule == "released" else "paper")
    _end(made.tables, tables, as_json, "selection", pred)
    _refuse_faults(made.at_fault, pred)


@app.command(cls=Command, epilog=_EXTRACTION)
@opt.with_settings(
    *("model", "rubric", "reading", "votes", "all_votes", "temperature", "vote_temperature"),
    *("seed", "profile", LIMITS, CACHE),
)
def extraction(
    settings: Settings,
    pred: Pred,
    gold: Gold,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write graded lines here.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with OUT: keep what is finished, redo errors.")
    ] = False,
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Score value extraction (CQ-Bench): judges credit each gold value 1, 0.5 or 0.

    Graded lines go to OUT or to standard output, the recall to standard output or, beside lines,
    to standard error.
    """
    opt.refuse_both(resume, overwrite)
    _begin(tables, overwrite or resume)
    gc.disable()
    from judge.cli.progress import watcher
    from judge.cli.summary import announce, print_summary
    from judge.evaluation.extractions import Extractions
    from judge.run.job import Job, refuse_outputs
    from judge.run.validate import validate_items

    settings = settings.model_copy(update={"workflow": "extraction", "check": ()})
    job = Job(inputs=(pred, gold), out=out, resume=resume, overwrite=overwrite)
    refuse_outputs(job)
    found = Extractions.joined(pred, gold)
    announce(settings, quiet=quiet)
    with watcher(job, quiet=quiet, items=True, of=found.count) as watching:
        report = validate_items(job, settings, watching, found.items(), found.take)
    if report.finished:
        _end(found.tables(), tables, as_json, "extraction", pred, beside=out is None)
    if not quiet:
        print_summary(report, None, None)
    if report.fatal is not None:
        tell(report.fatal)
    if report.exit_code == Exit.OK:
        _refuse_faults(len(found.bad), pred)
    raise typer.Exit(report.exit_code)


@app.command(cls=Command, epilog=_ANSWERS)
def answers(
    run: Annotated[str, typer.Argument(metavar="RUN", help="What `judge evaluate -o` wrote.")],
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
) -> None:
    """Make a benchmark's tables again from its answers."""
    from judge.evaluation.evaluating import load_benchmark
    from judge.evaluation.results import read_run

    _begin(tables, overwrite)
    name, results, others = read_run(run)
    if others:
        first = others[0]
        told = f"{len(others)} line(s) hold no answer, the first is {first.source}:{first.line}"
        tell(told)
    _end(load_benchmark(name).tables(results), tables, as_json, name, run)
    if others:
        raise typer.Exit(int(Exit.INCOMPLETE))


@app.command(cls=Command, epilog=_OUTPUTS)
def outputs(
    written: Annotated[str, typer.Argument(metavar="OUTPUTS", help="Texts in the released form.")],
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The released folder.")],
    rule: Annotated[
        str, typer.Option(help="paper, released (as the authors' scripts count), or distinct.")
    ] = "paper",
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare texts written for many nationalities (Extrinsic Evaluation of Cultural Competence).

    Lexical variance within and across nationalities, top words, and how the likeness of texts
    follows that of cultural values.
    """
    from judge.evaluation.eecc import analyse
    from judge.stats.text import Rule

    rules: tuple[Rule, ...] = get_args(Rule)
    chosen = next((one for one in rules if one == rule), None)
    if chosen is None:
        raise UsageError(f"--rule {rule}: there are {', '.join(rules)}")
    _begin(tables, overwrite)
    made = analyse(written, folder, rule=chosen)
    _end(made.tables, tables, as_json, "eecc", written)
    _refuse_faults(made.at_fault, written)


@app.command(cls=Command, epilog=_NORMS)
def norms(
    sources: Annotated[
        list[str], typer.Argument(metavar="NORMS...", help="Norm records, judged or not.")
    ],
    as_json: Json = False,
    tables: Folder = None,
    overwrite: Overwrite = False,
) -> None:
    """Count a set of norms by cluster, label and subcategory (NormAd, table 2).

    Of judged records only those that passed are counted.
    """
    from judge.evaluation.normad import records, statistics
    from judge.records import Item

    _begin(tables, overwrite)
    found, unread = [], 0
    for record in records(sources):
        if isinstance(record, Item):
            message = record.problem.message if record.problem else "there is no record"
            tell(f"{record.source}:{record.line}: {message}")
            unread += 1
        else:
            found.append(record[2])
    if not found:
        faulty = f"; {unread} line(s) could not be read" if unread else ""
        raise UsageError(
            f"{', '.join(sources)}: holds no norm; judged ones count if they passed{faulty}"
        )
    _end(statistics(found), tables, as_json, "normad", sources[0])
    if unread:
        tell(f"{unread} line(s) could not be read")
        raise typer.Exit(int(Exit.INCOMPLETE))


def _begin(folder: Path | None, replace: bool) -> None:
    need_calibrate("judge score")
    refuse_folder(folder, replace)


def _end(
    made: list[Table],
    folder: Path | None,
    as_json: bool,
    benchmark: str,
    source: str,
    *,
    beside: bool = False,
) -> None:
    """Write the tables to the folder that was named, and print them."""
    model = Path(source).name
    hand_over(made, folder, as_json=as_json, benchmark=benchmark, model=model, beside=beside)


def _refuse_faults(count: int, source: str) -> None:
    """End with exit code 3 where lines are at fault, which the notes of the first table name."""
    if count:
        tell(f"{count} line(s) of {source} are at fault: see the notes under the first table")
        raise typer.Exit(int(Exit.INCOMPLETE))
