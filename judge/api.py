"""The Python API, on which the command line is built: what `judge COMMAND` does, as functions.

`validate` yields judgements in memory; `validate_to` writes them as `judge validate -o` does.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence, Sized
from contextlib import aclosing, closing
from itertools import cycle
from os import PathLike
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from judge.arguments import (
    AnyRubric,
    Pathlike,
    Records,
    in_memory,
    index_of,
    inputs,
    settings_and_rubrics,
    source_of,
    sources_of,
    texts,
)
from judge.errors import JudgeError, Unavailable, UsageError
from judge.judgement import IndexRow, Judgement
from judge.measuring import acalibrate, agreement, calibrate
from judge.profile import load_profile
from judge.questions.rubric import Rubric
from judge.records.lines import Line, Lines
from judge.report.files import export, make_table, report
from judge.results import Judgements, Results
from judge.run.job import Job, files_of, outputs_of
from judge.run.models import model_names
from judge.run.panels import Resources
from judge.run.profiles import questions_of
from judge.run.report import Report, write_summary
from judge.run.rubrics import RubricSet, collect, replacements
from judge.run.stream import beside_any_loop
from judge.run.summary import Summary
from judge.run.task import Progress, Watcher
from judge.run.validate import Validation
from judge.run.validate import validate as run_validation
from judge.settings import Settings

if TYPE_CHECKING:
    from judge.report.compare import Comparison
    from judge.run.plan import Plan

__all__ = [
    "Job",
    "Judgement",
    "Judgements",
    "Progress",
    "Report",
    "Results",
    "Rubric",
    "Summary",
    "Watcher",
    "acalibrate",
    "agreement",
    "calibrate",
    "export",
    "files_of",
    "load_profile",
    "model_names",
    "outputs_of",
    "replacements",
    "report",
]

_log = logging.getLogger(__name__)


def validate(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    by: str | Sequence[str] | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Results:
    """Judge records, and yield each judgement once it and all before it are done.

    The run reads ahead of what you take by at most twice the records it works on concurrently.
    Close or drop the results to stop the run: calls under way are dropped, paid replies stay in the
    cache. `.all()` returns a list of all judgements, `.to_pandas()` a frame, with the
    index of the records if these are a DataFrame or a Series of pandas.

    Args:
        records: dicts, texts (records with the field `text`), judgements (the records that they
            are of), a table of pandas, polars, Arrow or `datasets`, a path, or several path
            objects. They are read in a thread of the run.
        rubric: your own: a `Rubric`, its YAML, a dict, a file, a folder, or a built-in name.
        format: of files whose endings do not tell.
        limit: judge only the first `limit` records.
        sample: judge `sample` records at random, drawn evenly from the values of the fields `by`.
        watcher: receives progress and messages.
        settings: as in docs/reference/, with _ for -: `ask`, `on`, `model`, `workflow`, ...

    Raises:
        UsageError: at the call, if a setting, rubric or path cannot be used; at the first
            judgement, if a model cannot.
        JudgeError: after the last judgement: what ended the run early, such as a spent budget.
    """
    job, resolved_settings = in_memory(
        records, rubric, settings, format=format, limit=limit, sample=sample, by=by
    )
    from judge.run import memory

    questions = questions_of(resolved_settings, job.rubrics)
    lines = memory.lines(job, questions, watcher or Watcher())
    count = None if job.inputs or not isinstance(records, Sized) else len(records)
    bounds = [bound for bound in (limit, sample, count) if bound is not None]
    return Results(_judgements(lines, index_of(records)), min(bounds, default=None))


def avalidate(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    by: str | Sequence[str] | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> AsyncGenerator[Judgement, None]:
    """`validate` as an asynchronous iterator, which does not block the event loop. To stop the run,
    close it (`aclose`), or leave it to `contextlib.aclosing`."""
    job, resolved_settings = in_memory(
        records, rubric, settings, format=format, limit=limit, sample=sample, by=by
    )
    from judge.run import memory

    questions = questions_of(resolved_settings, job.rubrics)
    lines = memory.async_lines(job, questions, watcher or Watcher())
    return _async_judgements(lines, index_of(records))


def validate_to(
    out: Pathlike,
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    resume: bool = False,
    overwrite: bool = False,
    rejudge: str | Sequence[str] = (),
    review: Pathlike | None = None,
    review_verdicts: str | Sequence[str] = (),
    decisions: Pathlike | None = None,
    summary: Pathlike | None = None,
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    by: str | Sequence[str] | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Report:
    """Judge all records into a file, as `judge validate -o OUT` does.

    Args:
        out: the file of output lines; it must be new unless `resume` or `overwrite` is set. With
            the ending .csv, .parquet, .xlsx or .jsonl.gz it is made from the lines beside it.
        resume: keep the finished lines of `out`, and judge what is missing.
        rejudge: with `resume`, verdicts whose records are judged again.
        review: a file for the records that people must decide.
        review_verdicts: verdicts of these records; by default abstain and unreadable.
        decisions: a file with people's labels, which decide.
        summary: a file for the report, as JSON.
        watcher: receives progress and messages.
        records, rubric, format, limit, sample, by, settings: as `validate`; if a `gate`,
            `fail_under` or `fail_under_repaired` does not hold, `Report.exit_code` is 1.

    Returns:
        The sums over all lines. `exit_code` is the command's; `fatal` is the error that ended the
        run early. Finished lines are in `out`.

    Raises:
        UsageError: a file, setting, rubric or model cannot be used; nothing was judged.
    """
    resolved_settings, rubrics = settings_and_rubrics(rubric, settings)
    job = Job(
        **inputs(records, outputs_of(out, review, summary)),
        **files_of(Path(out)),
        resume=resume,
        overwrite=overwrite,
        rejudge=texts(rejudge),
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=resolved_settings.seed,
        by=texts(by or ()),
        review=None if review is None else Path(review),
        review_verdicts=texts(review_verdicts),
        decisions=None if decisions is None else Path(decisions),
        summary=None if summary is None else Path(summary),
        rubrics=rubrics,
    )
    return beside_any_loop(lambda: run(job, resolved_settings, watcher or Watcher()))


def run(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job as `judge validate` does; the table is made once all lines are written, then the
    summary. Raises as `validate_to`."""
    report = run_validation(job, settings, watcher)
    if job.table is not None and job.out is not None and report.finished:
        try:
            make_table(job.out, job.table)
        except JudgeError as error:
            report.fatal = Unavailable(str(error))
    write_summary(job, report, settings)
    return report


def plan(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    by: str | Sequence[str] | None = None,
    **settings: Any,
) -> Plan:
    """Estimate the calls, tokens and cost of a run; no model is called.

    Args:
        records, rubric, format, limit, sample, by, settings: as `validate`.

    Raises:
        UsageError: a file, setting, rubric or model cannot be used.
    """
    job, resolved_settings = in_memory(
        records, rubric, settings, format=format, limit=limit, sample=sample, by=by
    )
    return beside_any_loop(lambda: plan_job(job, resolved_settings))


def plan_job(job: Job, settings: Settings) -> Plan:
    """`plan` for a job; raises as `plan`."""
    from judge.run.plan import plan

    return plan(job, settings)


def look_ahead(job: Job, settings: Settings) -> None:
    """Read the first records, unless from standard input, which can be read once only.

    Raises:
        UsageError: none of them can be judged, as in a run.
    """
    if "-" not in job.inputs:
        Validation(Resources.of(settings, (), rubrics=job.rubrics), job).look_ahead()


def asks_model(settings: Settings) -> bool:
    """Whether a run with these settings asks any model; raises UsageError as `plan`."""
    if settings.questions or not (settings.test or settings.rubric):
        return True
    return not RubricSet.of(settings).model_free


def compare(
    runs: Sequence[Pathlike | Iterable[Judgement]],
    *,
    paper: bool = False,
    by: str | Sequence[str] = (),
) -> Comparison:
    """Compare runs on the records that all have, as `judge compare` does; the first is A.

    Args:
        runs: each a file of output lines, or judgements in memory.
        paper, by: as `judge.report.compare.compare`.

    Raises:
        UsageError: fewer than two runs; and as `judge.report.compare.compare`.
    """
    from judge.report.compare import compare

    several = () if isinstance(runs, str | PathLike | Judgements) else tuple(runs)
    if len(several) < 2:
        raise UsageError("runs: name at least two in a list, [BEFORE, AFTER]")
    sources: list[str] = []
    # Of more than 26, none is left out.
    for name, run in zip(cycle(ascii_uppercase), several, strict=False):
        files = sources_of(run, getattr(run, "source", "") or f"run {name}")
        if len(files) != 1:
            raise UsageError(f"run {name}: a file, or judgements in memory, not {len(files)} files")
        sources += files
    return compare(sources, paper=paper, by=texts(by))


def load_results(outputs: Pathlike | Sequence[Pathlike]) -> Judgements:
    """The judgements in files that `judge validate -o` wrote. A warning counts lines that judge did
    not write, such as one cut off, and names the first; they are left out.

    Raises:
        UsageError: a file cannot be read, or has no line of `judge validate`.
    """
    from judge.run.description import read_description

    sources = texts(outputs)
    lines = Lines.read(sources)
    runs = read_description(*sources)
    found = Judgements(
        judgement.model_copy(update={"record": line.fields, "runs": runs})
        for line, judgement in lines
    )
    found.source = ", ".join(sources)
    if lines.foreign:
        _log.warning(
            "judge: %d of %d lines could not be read as output of judge; the first: %s",
            lines.foreign,
            lines.foreign + lines.judged,
            lines.first_foreign,
        )
    return found


def rubrics(sources: Sequence[Pathlike] = ()) -> dict[str, Rubric]:
    """The built-in rubrics, with those of files or folders on top, by name.

    Raises:
        UsageError: a file cannot be read, or is not a rubric.
    """
    return collect([source_of(source) for source in sources])[0]


def _judgement(line: Line, index: Any) -> Judgement:
    row = None if index is None else IndexRow(index, line.number - 1)
    beside = {"record": line.fields, "row": row, "runs": line.runs}
    return Judgement.model_validate({**line.content, **beside})


def _judgements(lines: Generator[Line, None, None], index: Any) -> Generator[Judgement, None, None]:
    with closing(lines):
        for line in lines:
            yield _judgement(line, index)


async def _async_judgements(
    lines: AsyncGenerator[Line, None], index: Any
) -> AsyncGenerator[Judgement, None]:
    async with aclosing(lines):
        async for line in lines:
            yield _judgement(line, index)
