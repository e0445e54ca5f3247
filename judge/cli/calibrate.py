"""`judge calibrate`: parse the flags, put the labels to the judges, show how far they agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.options import need_calibrate
from judge.cli.printing import say, tell
from judge.errors import Exit, UsageError
from judge.settings import CACHE, LIMITS, Settings

if TYPE_CHECKING:
    from judge.calibration.calibration import Job
    from judge.calibration.report import Calibration

EPILOG = """**Examples**

`judge calibrate fixtures/labelled/norms.jsonl --check relevance -o calibrated` — the default judge

`judge calibrate moral-stories:dev.jsonl --check adherence -m openai:gpt-4o`

`judge calibrate normad:normad.csv --check relevance -m local:qwen2.5-coder-1.5b -m openai:gpt-4o
--agree 0.9 -o cascade` — the cheap judge first, the strong one then, people for what is left

`judge validate stories.jsonl --profile calibrated/profile.json` — use what was learnt

**Labels**: JSON lines whose records have `labels`, a table of item, annotator and label (about its
column check, else the one --check), or a public set in its released form, NAME:PATH: moral-stories,
normad, cali, ambient, multipico, llmbar, table.

**Exit codes**: 0 done; 2 bad usage, or no label that can be used; 3 some lines could not be read,
hold what is no answer to the rubric or an item that was there before, some items got no reply, a
judge answered none, or --agree cannot be guaranteed; 4 a model is out of reach; 130 interrupted
(replies are in the cache).
"""

MOST_SHOWN = 160
"""Characters that are shown of a reason."""

Labels = Annotated[
    list[str],
    typer.Argument(metavar="LABELS...", help="Files with labels, or NAME:PATH of a public set."),
]


@opt.with_settings(
    "model", "check", "rubric", "reading", "votes", "apart", "temperature", "seed", LIMITS, CACHE
)
def command(
    settings: Settings,
    labels: Labels,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder for report.json, profile.json and the plots."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what OUT holds.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, not as tables.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Tell results apart by a field, such as country, or annotator_group.",
        ),
    ] = None,
    agree: Annotated[
        float | None,
        typer.Option(min=0.5, max=0.999, help="Guarantee this agreement; decide less for it."),
    ] = None,
    level: Annotated[float, typer.Option(min=0.5, max=0.999, help="With this confidence.")] = 0.95,
    held_out: Annotated[
        float, typer.Option(min=0.1, max=0.9, help="Share of records that nothing is fitted to.")
    ] = 0.5,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many records of each check, drawn with --seed.")
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(min=0, max=1, help="What the alternative annotator test forgives a judge."),
    ] = 0.1,
    draws: Annotated[int, typer.Option(min=10, help="Bootstrap resamples.")] = 1000,
    show: Annotated[
        int, typer.Option(min=0, help="So many disagreements are printed, the surest first.")
    ] = 5,
    annotators: Annotated[
        Path | None, typer.Option(help="File with the annotators' groups.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Say how far judges agree with labels, and make the profile that carries it.

    Half of the records are fitted to, where a reading has something to fit; everything is reported
    on the others. Several --model are compared; with --agree they make a cascade, cheap one first.
    """
    need_calibrate("judge calibrate")
    from judge.calibration.calibration import Job
    from judge.cli.calibration_tables import print_tables
    from judge.cli.summary import announce

    checks = settings.check
    settings = settings.model_copy(update={"profile": "none", "check": ()})
    job = Job(
        sources=labels,
        checks=checks,
        held_out=held_out,
        records=sample,
        by=tuple(by or ()),
        agreement=agree,
        level=level,
        epsilon=epsilon,
        draws=draws,
        seed=settings.seed,
        annotators=annotators,
    )
    if out is not None:
        _refuse_existing(out, overwrite)
    announce(settings, quiet=quiet)
    found = _run(job, settings, quiet)
    if out is not None:
        from judge.report.calibration import write

        write(found, out)
    if as_json:
        import json

        say(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        print_tables(found, show)
    _tell(found, out)
    if found.failed:
        raise typer.Exit(int(Exit.INCOMPLETE))


def _run(job: Job, settings: Settings, quiet: bool) -> Calibration:
    from judge.calibration.calibration import calibrate
    from judge.cli.progress import counting

    try:
        with counting(quiet=quiet) as told:
            return calibrate(job, settings, told)
    except KeyboardInterrupt:
        kept = "replies in the cache are not asked again" if settings.cache else "nothing is kept"
        tell(f"interrupted; {kept}")
        raise typer.Exit(int(Exit.INTERRUPTED)) from None


def _refuse_existing(out: Path, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"-o {out}: is a file; name a folder")
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise UsageError(f"-o {out}: is not empty; name another folder, or --overwrite")


def _tell(found: Calibration, out: Path | None) -> None:
    for item in found.problems[:20]:
        said = item.problem.message if item.problem else ""
        tell(f"{item.source}:{item.line}: {said}")
    if len(found.problems) > 20:
        tell(f"and {len(found.problems) - 20} more such lines")
    for line in _lost(found):
        tell(line)
    if found.refused:
        tell(f"no profile: {found.refused}")
    elif out is not None:
        tell(f"report, plots and profile are in {out}")


def _lost(found: Calibration) -> Iterator[str]:
    """Of each judge that failed, on how many items, and why on the first of them."""
    for check in found.checks:
        for judge in check.judges:
            lost = judge.unanswered
            why = " ".join((lost.reason or "").split())[:MOST_SHOWN]
            if lost.silent:
                yield f"{check.check}, {judge.model}: answered none of {lost.items} items: {why}"
            elif lost.errors:
                failed = f"{lost.errors} of {lost.items} items got no reply"
                yield f"{check.check}, {judge.model}: {failed}, the first: {why}"
