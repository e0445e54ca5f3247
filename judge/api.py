"""The Python API, and the one door of the command line: what `judge COMMAND` does, as a function.

`validate` hands judgements out in memory; `validate_to` writes them as `judge validate -o` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Mapping,
    Sequence,
    Sized,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from importlib import import_module
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, TypeVar

from judge.arguments import (
    Pathlike,
    in_memory,
    inputs,
    refuse_existing,
    refuse_idle_gate,
    resolved,
    settings_and_rubrics,
    source_of,
    sources_of,
    texts,
    with_profile,
)
from judge.backends import default_judge
from judge.configuration import refuse_stray
from judge.errors import JudgeError
from judge.records.lines import Line, Lines
from judge.records.read import input_files
from judge.results import Judgements, Results
from judge.rubric import Rubric
from judge.run.job import Job, files_of
from judge.run.rubrics import collect, load_workflow, replacements, workflow_names
from judge.run.summary import Report, Summary
from judge.run.task import Progress, Watcher
from judge.run.validate import validate as run_validation
from judge.settings import Settings
from judge.verdict import Judgement

if TYPE_CHECKING:
    from judge.calibration.people import Agreement
    from judge.calibration.report import Calibration
    from judge.profile import Profile
    from judge.report.compare import Comparison
    from judge.report.files import Outputs, Written, export, report
    from judge.report.sheet import write_sheet
    from judge.run.corrected import CorrectedRate
    from judge.run.plan import Plan

__all__ = [
    "CorrectedRate",
    "Job",
    "Judgement",
    "Judgements",
    "Plan",
    "Progress",
    "Report",
    "Results",
    "Rubric",
    "Summary",
    "Watcher",
    "Written",
    "acalibrate",
    "agreement",
    "avalidate",
    "calibrate",
    "compare",
    "default_judge",
    "export",
    "files_of",
    "input_files",
    "load_profile",
    "load_results",
    "load_workflow",
    "plan",
    "plan_job",
    "refuse_existing",
    "refuse_idle_gate",
    "refuse_stray",
    "replacements",
    "report",
    "rubrics",
    "run",
    "validate",
    "validate_to",
    "with_profile",
    "workflow_names",
    "write_sheet",
]

_ELSEWHERE = {
    "CorrectedRate": "judge.run.corrected",
    "Plan": "judge.run.plan",
    "Written": "judge.report.files",
    "export": "judge.report.files",
    "write_sheet": "judge.report.sheet",
    "report": "judge.report.files",
}
"""Names that are loaded when they are first used: a run needs none of them."""


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'judge.api' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)


Result = TypeVar("Result")
Records = Any
"""Records, or the files that they are read from: a path, or several as path objects. A string among
records is a text. Of a table (pandas, polars, Arrow, `datasets.Dataset`) the rows are taken."""
AnyRubric = Rubric | Mapping[str, Any] | Pathlike


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
    """Judge records and give each judgement as soon as it and all before it are there.

    At most twice as many records are begun ahead of what was taken as are worked on at once. Close
    the results, or let go of them, to stop the run: what is under way is dropped, replies that were
    paid for stay in the cache. `.all()` takes all of them into a list, `.to_pandas()` into a frame.

    Args:
        records: dicts, texts (records with the field `text`), a table of pandas, polars, Arrow or
            `datasets`, a path, or several path objects. They are read in a thread of the run.
        rubric: the user's own: a `Rubric`, its YAML, a dict, a file, a folder, a built-in name.
        format: of files, where their endings do not tell.
        limit: only the first records.
        sample: so many at random, drawn evenly from the values of the field, or fields, `by`.
        watcher: takes progress and messages.
        settings: as in docs/reference.md, with _ for -: `ask`, `on`, `model`, `workflow`, ...

    Raises:
        UsageError: at the call, for a setting, rubric or path that cannot be used; at the first
            judgement for a model.
        JudgeError: behind the last judgement: what ended the run early, such as a spent budget.
    """
    job, resolved_settings = in_memory(
        records, rubric, settings, format=format, limit=limit, sample=sample, by=by
    )
    from judge.run import memory

    lines = memory.lines(job, resolved_settings, watcher or Watcher())
    bounds = (limit, sample, len(records) if isinstance(records, Sized) else None)
    of = (
        None
        if isinstance(records, str)
        else min((n for n in bounds if n is not None), default=None)
    )
    return Results(_judgements(lines), of)


def avalidate(
    records: Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    watcher: Watcher | None = None,
    **settings: Any,
) -> AsyncIterator[Judgement]:
    """`validate` as an asynchronous iterator: the loop goes on while the judges are asked."""
    job, resolved_settings = in_memory(records, rubric, settings)
    from judge.run import memory

    lines = memory.async_lines(job, resolved_settings, watcher or Watcher())
    return _async_judgements(lines)


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
    fail_under: float | None = None,
    fail_under_repaired: float | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Report:
    """Judge records into a file, as `judge validate -o OUT` does, to the end.

    Args:
        out: the file of output lines; it must be new, or `resume` or `overwrite` be set. Where it
            ends in .csv, .parquet, .xlsx or .jsonl.gz, it is made of the lines beside it.
        resume: keep the finished lines of `out`, and judge what is missing.
        rejudge: with `resume`, verdicts whose records are judged again.
        review: a file for the records that people must decide.
        review_verdicts: verdicts of these records; by default abstain and unreadable.
        decisions: a file with people's labels, which decide.
        summary: a file for the report, as JSON.
        fail_under, fail_under_repaired: `Report.exit_code` is 1 where fewer records pass.
        watcher: takes progress and messages.
        records, rubric, format, limit, sample, by, settings: as `validate`.

    Returns:
        The sums over all lines; `exit_code` as of the command, `fatal` is the error that ended the
        run early. What was done is in `out`.

    Raises:
        UsageError: nothing was judged: a file, setting, rubric or model that cannot be used.
    """
    resolved_settings, rubrics = settings_and_rubrics(rubric, settings)
    refuse_idle_gate(fail_under_repaired, resolved_settings)
    job = Job(
        **inputs(records),
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
        fail_under=fail_under,
        fail_under_repaired=fail_under_repaired,
        rubrics=rubrics,
    )
    return _beside_any_loop(lambda: run(job, resolved_settings, watcher or Watcher()))


def run(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """`judge validate` as a job; its table is made when all lines are there. Raises as
    `validate_to`."""
    report = run_validation(job, settings, watcher)
    if job.table is not None and job.out is not None and report.finished:
        from judge.report.files import make_table

        try:
            make_table(job.out, job.table)
        except JudgeError as error:
            report.fatal = error
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
        UsageError: a file, setting, rubric or model that cannot be used.
    """
    job, resolved_settings = in_memory(
        records, rubric, settings, format=format, limit=limit, sample=sample, by=by
    )
    return _beside_any_loop(lambda: plan_job(job, resolved_settings))


def plan_job(job: Job, settings: Settings) -> Plan:
    """`plan` for a job; raises as that."""
    from judge.run.plan import plan

    return plan(job, settings)


def compare(
    runs: Sequence[Outputs], *, paper: bool = False, by: str | Sequence[str] = ()
) -> Comparison:
    """Compare runs on the records that all have, as `judge compare` does; the first is A.

    Args:
        runs: each a file of output lines, or judgements in memory.
        paper, by: as `judge.report.compare.compare`.

    Raises:
        UsageError: as that.
    """
    from judge.report.compare import compare

    named = zip(ascii_uppercase, runs, strict=False)
    sources = [source for name, run in named for source in sources_of(run, f"run {name}")]
    return compare(sources, paper=paper, by=texts(by))


def calibrate(
    labels: Pathlike | Sequence[Pathlike] | Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    by: str | Sequence[str] = (),
    guarantee: float | None = None,
    sample: int | None = None,
    group: str | None = None,
    folds: int | None = None,
    contrast_set: Pathlike | None = None,
    test_set: Pathlike | Sequence[Pathlike] = (),
    controls: bool = True,
    out: Pathlike | None = None,
    overwrite: bool = False,
    progress: Callable[[str, str, int, int], None] = lambda *_: None,
    settings: Settings | None = None,
    **options: Any,
) -> Calibration:
    """Hold judges against labels, as `judge calibrate` does: how far they agree, and a profile.

    Args:
        labels: files with labels, NAME:PATH of a public set, or records with labels in memory.
        rubric: as `validate`.
        by: fields to tell results apart by.
        guarantee: the agreement to guarantee, from 0.5 to below 1.
        sample: so many records of each check.
        group: a field whose values are never on both sides, of fitting and of reporting.
        contrast_set: labels of a set whose deciding field is turned round.
        test_set: further sets to report on, to which nothing is fitted.
        controls: whether judges are asked without the deciding field, and with another's.
        folds: cut the records in so many parts; each is reported on by what was fitted to the
            others.
        out: a folder for report.json, profile.json and the plots; a new one unless `overwrite`.
        progress: is called with a check, a model, how many items are asked, and out of how many.
        settings: settings that are resolved already, in the place of `rubric` and `options`.
        options: `check`, `model`, `method`, `votes`, `seed`, ...

    Raises:
        UsageError: labels, a setting or a model that cannot be used.
        BackendError: a model is out of reach, or the budget is used up.
    """
    from judge.calibration.calibrate import calibrate as run_calibration
    from judge.calibration.labels import CalibrationJob

    if out is not None:
        refuse_existing("-o", Path(out), overwrite, is_folder=True)
    resolved_settings, rubrics = settings_and_rubrics(rubric, options, "calibrate", settings)
    job = CalibrationJob(
        sources=sources_of(labels),
        rubrics=rubrics,
        records=sample,
        by=texts(by),
        group=group,
        folds=folds,
        contrast_set=None if contrast_set is None else str(contrast_set),
        test_sets=sources_of(test_set, "test set"),
        controls=controls,
        agreement=guarantee,
    )
    calibration = _beside_any_loop(lambda: run_calibration(job, resolved_settings, progress))
    if out is not None:
        from judge.report.plots import write

        write(calibration, Path(out))
    return calibration


async def acalibrate(labels: Any, **options: Any) -> Calibration:
    """`calibrate`, with its arguments and errors: the loop goes on meanwhile."""
    return await asyncio.to_thread(calibrate, labels, **options)


def load_results(outputs: Pathlike | Sequence[Pathlike]) -> Judgements:
    """The judgements in files that `judge validate -o` wrote.

    Raises:
        UsageError: a file cannot be read, or holds no line of `judge validate`.
    """
    lines = Lines.read(texts(outputs))
    return Judgements(
        judgement.model_copy(update={"record": line.fields}) for line, judgement in lines
    )


def load_profile(path: Pathlike) -> Profile:
    """The profile in a profile.json; `validate(profile=path)` judges by it.

    Raises:
        UsageError: it cannot be read, or is no profile.
    """
    from judge.profile import load

    return load(Path(path))


def agreement(
    labels: Pathlike | Sequence[Pathlike],
    *,
    check: str | None = None,
    majority: str = "half",
    opt_out: str | Sequence[str] = (),
    break_ties: bool = False,
    controls: Pathlike | Sequence[Pathlike] = (),
    least: float = 0.6,
    scale: str | None = None,
    raters: int | None = None,
    records: Pathlike | Sequence[Pathlike] = (),
    out: Pathlike | None = None,
    overwrite: bool = False,
    seed: int = 0,
    settings: Settings | None = None,
    **options: Any,
) -> Agreement:
    """Measure how far people agree with one another, as `judge agreement` does.

    Args:
        labels: files with labels, or NAME:PATH of a public set.
        check: only this one.
        majority: what makes one: `0.75`, `75%`, `4/5`, or `half` for more than half.
        opt_out: answers that never make a majority; by default those of the papers.
        break_ties: without a majority the most frequent answer wins, among equals by the seed.
        controls: files with control questions and their right answers.
        least: the share of them that an annotator must have right.
        scale: what ratings stand for, `1=no,2=no|unsure,3=yes`; of several labels the one that an
            annotator's control questions bear out.
        raters: the kappas of classes count so many ratings of each item, drawn at random.
        out: a new file, unless `overwrite`, for the majorities: records with their labels.
        records: files that hold these records as a whole.
        seed: of the intervals, and of what is drawn.
        settings: settings that are resolved already, in the place of `options`.
        options: `map`, `answers`.

    Raises:
        UsageError: no file has labels that say who gave them, or another file cannot be used.
    """
    from judge.answers import OPT_OUTS
    from judge.calibration.crowd import Crowd, scale_of
    from judge.calibration.people import Majority, agreement_of
    from judge.records import dump
    from judge.report.files import writing
    from judge.stats.agreement import MajorityRule

    rule = Majority(
        MajorityRule.parse(majority),
        texts(opt_out) or OPT_OUTS,
        seed if break_ties else None,
        raters,
    )
    crowd = None
    if controls or scale:
        crowd = Crowd(texts(controls), least, scale_of(scale) if scale else {})
    if out is not None:
        refuse_existing("-o", Path(out), overwrite)
    wanted = None if out is None else texts(records)
    resolved_settings = resolved(settings, options)
    report = agreement_of(texts(labels), resolved_settings, check, rule, seed, crowd, wanted)
    if out is not None:
        sources = [*texts(labels), *texts(controls), *texts(records)]
        with writing(Path(out), sources, overwrite=overwrite) as file:
            file.writelines(map(dump, report.majorities))
    return report


def rubrics(sources: Sequence[Pathlike] = ()) -> dict[str, Rubric]:
    """The built-in rubrics, with those of files or folders on top, by name.

    Raises:
        UsageError: a file cannot be read, or is no rubric.
    """
    return collect([source_of(source) for source in sources])[0]


# ---------------------------------------------------------------- beside a caller's loop


def _judgement(line: Line) -> Judgement:
    return Judgement.model_validate({**line.content, "record": line.fields})


def _judgements(lines: Generator[Line, None, None]) -> Generator[Judgement, None, None]:
    with closing(lines):
        yield from map(_judgement, lines)


async def _async_judgements(lines: AsyncGenerator[Line, None]) -> AsyncIterator[Judgement]:
    async with aclosing(lines):
        async for line in lines:
            yield _judgement(line)


def _beside_any_loop(step: Callable[[], Result]) -> Result:
    """The result of `step`, which has an event loop of its own: in a thread where one runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return step()
    return ThreadPoolExecutor(1).submit(step).result()
