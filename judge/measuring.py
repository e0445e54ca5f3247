"""The part of the Python API that compares judges with labels, and people with one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.arguments import (
    AnyRubric,
    Pathlike,
    Records,
    refuse_existing,
    refuse_of_a_file,
    resolved,
    settings_and_rubrics,
    sources_of,
    texts,
)
from judge.errors import UsageError, refuse_outside
from judge.records.base import clip
from judge.records.read import InMemory, input_files
from judge.run.stream import beside_any_loop

if TYPE_CHECKING:
    from judge.calibration.people import Agreement
    from judge.calibration.report import Calibration
    from judge.questions.rubric import Rubric
    from judge.settings import Settings


_OF_AGREEMENT = ("answers", "config", "id", "map", "trust_config")
"""The settings that have an effect on people's agreement."""


def calibrate(
    labels: Pathlike | Sequence[Pathlike] | Records,
    *,
    rubric: AnyRubric | Sequence[AnyRubric] = (),
    label_column: str | Sequence[str] = (),
    sheet: Pathlike | None = None,
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
    """Compare judges with labels, as `judge calibrate` does: how far they agree, and a profile.

    Args:
        labels: files with labels, NAME:PATH of a public set, or records with labels in memory.
        rubric: as `validate`.
        label_column: the column of the labels; several have the labels of one person each.
        sheet: a file with the labels of the records `labels`, by their ids: columns `id`, `label`.
        by: fields whose values get separate results.
        guarantee: the agreement to guarantee, from 0.5 to 0.999.
        sample: the number of records to use of each check and file.
        group: a field whose values are never split between fitting and reporting.
        contrast_set: labels of a set whose deciding field is reversed.
        test_set: further sets to report on, to which nothing is fitted.
        controls: whether judges are also asked without the deciding field, and with another's.
        folds: the number of parts that the records are split into; each is reported on by a fit to
            the others.
        out: a folder for report.json, report.html and profile.json; a new one unless `overwrite`.
        progress: is called with a check, a model, how many items are asked, and out of how many.
        settings: settings that are resolved already, instead of `rubric` and `options`.
        options: `check`, `model`, `method`, `votes`, `seed`, ...

    Raises:
        UsageError: labels, a setting or a model cannot be used.
        BackendError: a model cannot be reached, or the budget is spent.
    """
    from judge.calibration.calibrate import calibrate as run_calibration
    from judge.calibration.labels import CalibrationJob

    refuse_of_a_file(options)
    refuse_outside("guarantee", guarantee, 0.5, 0.999, whole=False)
    refuse_outside("sample", sample, 1)
    refuse_outside("folds", folds, 2, 20)
    if out is not None:
        refuse_existing("-o", Path(out), overwrite, is_folder=True)
    rubrics: Sequence[Rubric] = ()
    if settings is None:
        settings, rubrics = settings_and_rubrics(rubric, options, "calibrate")
    sources, problems, labels_in = sources_of(labels), list[Any](), None
    places: dict[str, tuple[str, int]] = {}
    if sheet is not None:
        from judge.records.labels.joined import with_labels

        files = sources if any(isinstance(s, InMemory) for s in sources) else input_files(sources)
        columns = texts(label_column) or ["label"]
        sources, problems, places = with_labels(files, str(sheet), columns, settings.id)
        labels_in = ", ".join(map(clip, columns))
    else:
        settings = _with_label_columns(settings, texts(label_column))
    job = CalibrationJob(
        sources=sources,
        checks=settings.check,
        problems=problems,
        labels_in=labels_in,
        label_places=places,
        records=sample,
        by=texts(by),
        group=group,
        folds=folds,
        contrast_set=None if contrast_set is None else str(contrast_set),
        test_sets=sources_of(test_set, "test set"),
        adapters=True,
        controls=controls,
        agreement=guarantee,
        seed=settings.seed,
    )
    calibration = beside_any_loop(lambda: run_calibration(job, settings, rubrics, progress))
    if out is not None:
        from judge.report.calibrated import write

        write(calibration, Path(out))
    return calibration


async def acalibrate(labels: Any, **options: Any) -> Calibration:
    """`calibrate`, with its arguments and errors, without blocking the event loop."""
    return await asyncio.to_thread(calibrate, labels, **options)


def agreement(
    labels: Pathlike | Sequence[Pathlike] | Records,
    *,
    label_column: str | Sequence[str] = (),
    check: str | None = None,
    majority: str | float = "half",
    opt_out: str | Sequence[str] = (),
    break_ties: bool = False,
    controls: Pathlike | Sequence[Pathlike] = (),
    least: float | None = None,
    scale: str | None = None,
    contrary: Pathlike | Sequence[Pathlike] = (),
    raters: int | None = None,
    people: Pathlike | None = None,
    records: Pathlike | Sequence[Pathlike] = (),
    out: Pathlike | None = None,
    overwrite: bool = False,
    seed: int = 0,
    settings: Settings | None = None,
    **options: Any,
) -> Agreement:
    """Measure how far people agree with one another, as `judge agreement` does.

    Args:
        labels: files with labels, NAME:PATH of a public set, or records with labels in memory.
        label_column: the columns of the labels, one per person; or a single one for all.
        check: only this check.
        majority: the share that makes a majority: `0.75`, `75%`, `4/5`, or `half` for more than
            half.
        opt_out: answers that never make a majority; by default those of the papers.
        break_ties: without a majority the most frequent answer wins, unless it is an opt-out;
            among equals by the seed.
        controls: files with control questions and their right answers.
        least: the share of them that an annotator must have right; by default 0.6.
        scale: the labels of ratings, `1=no,2=no|unsure,3=yes`; of several labels the one that an
            annotator's control questions confirm.
        contrary: files with pairs of records that cannot both have an answer: `item`, `contrary`,
            `answer`; the labels of an annotator who gave it to both do not count.
        raters: the number of ratings of each item, drawn at random, for kappas of classes.
        people: a file about the annotators (a column `annotator` and any others): annotators with
            the same content of a column are a group.
        out: a new file, unless `overwrite`, for the majorities: records with their labels.
        records: files with these records in full.
        seed: of the intervals, and of random draws.
        settings: settings that are resolved already, instead of `options`.
        options: `map`, `answers`, `id` (with `records` or `controls`: the column that names them).

    Raises:
        UsageError: no file has labels with their annotators, or another file cannot be used.
    """
    from judge.calibration.crowd import LEAST, Crowd, scale_of
    from judge.calibration.majority import Majority
    from judge.calibration.people import agreement_of
    from judge.records import dump
    from judge.records.answers import OPT_OUTS
    from judge.report.files import writing
    from judge.run.output import refuse_ending
    from judge.stats.majority import MajorityRule

    refuse_outside("least", least, 0, 1, whole=False)
    refuse_outside("seed", seed, 0)
    refuse_outside("raters", raters, 2)
    if least is not None and not controls:
        raise UsageError("--least needs --controls, the questions that annotators must get right")
    if records and out is None:
        raise UsageError("--records needs -o, the file to which its records are written")
    rule = Majority(
        MajorityRule.parse(str(majority)),
        texts(opt_out) or OPT_OUTS,
        seed if break_ties else None,
        raters,
    )
    answers, crowd = sources_of(labels, "labels"), None
    settings = settings or resolved(options, _OF_AGREEMENT)
    settings = _with_label_columns(settings, texts(label_column))
    if controls or scale or contrary:
        meanings = scale_of(scale) if scale else {}
        share = LEAST if least is None else least
        crowd = Crowd(texts(controls), share, meanings, texts(contrary), settings.id)
    if out is not None:
        refuse_ending("-o", Path(out))
        sources = [*answers, *texts(controls), *texts(contrary), *texts(records)]
        sources += [] if people is None else [str(people)]
        refuse_existing("-o", Path(out), overwrite, sources=sources)
    wanted = None if out is None else texts(records)
    about = None if people is None else str(people)
    report = agreement_of(answers, settings, check, rule, seed, crowd, wanted, about)
    if out is not None:
        with writing(Path(out), sources, overwrite=overwrite) as file:
            file.writelines(map(dump, report.majorities))
    return report


def _with_label_columns(settings: Settings, columns: Sequence[str]) -> Settings:
    """The settings with these columns of labels in `map`: a single one, or one per person."""
    if not columns:
        return settings
    role = "label" if len(columns) == 1 else "annotators"
    return settings.model_copy(update={"map": (*settings.map, f"{role}={'+'.join(columns)}")})
