"""`judge calibrate`: parse flags, compare judges with labels, print the report."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import (
    MAX_PROBLEMS,
    counted,
    print_lines,
    print_message,
    print_output,
)
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.calibration.report import Calibration, CheckReport
    from judge.records import Record
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge calibrate multipico:dev.csv --check irony -m openai:gpt-4o
  judge calibrate mails.csv --ask "Is it polite?" --label-column human -o out
  judge calibrate mails.csv --ask "Is it polite?" --labels sheet.csv
  judge calibrate labels.jsonl --guarantee 0.9 -m local:NAME -m openai:gpt-4o
  judge validate records.jsonl --profile out/profile.json

Labels: a column, a sheet, a table of item, annotator and label, records with a field `labels`, what
others export (docs/howto/calibrate.md), or a public set, as in multipico:PATH
(docs/papers/protocols.md).

Exit code 3: some lines could not be used, items got no readable reply, --guarantee cannot be met,
or one of the fields shown gives the label away.
"""

_SETS = "Sets and controls"

Labels = Annotated[
    list[str],
    typer.Argument(metavar="LABELS", help="Files with labels, or NAME:PATH of a public set."),
]
SampleOfCheck = Annotated[
    int | None, typer.Option(min=1, help="Only N records of each check and file, drawn by --seed.")
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="Keep records with the same value of FIELD in one part: fitting or reporting.",
        rich_help_panel=_SETS,
    ),
]


@opt.with_settings(
    *("model", "check", "rubric", "ask", "name", "compare", "tie", "on", "answers", "pass_"),
    *("map", "id", "method", "votes"),
    *("per_entry", "temperature", "max_tokens", "reasoning_effort", "seed"),
    *("Speed and money", "Cache"),
    model="Judge to measure; several are compared.",
)
def command(
    settings: Settings,
    labels: Labels,
    label_column: opt.LabelColumn = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="The labels: a table with columns id and label.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder for report.html and profile.json."),
    ] = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD", help="Also report by this field, such as country; repeatable."
        ),
    ] = None,
    guarantee: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=0.999,
            help="Guarantee this agreement with 95% confidence; abstain on the rest.",
        ),
    ] = None,
    sample: SampleOfCheck = None,
    group: Group = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=20,
            help="Cut the records in N parts; report on each with a fit to the others.",
            rich_help_panel=_SETS,
        ),
    ] = None,
    contrast_set: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Labels of a set with the deciding field turned round.",
            rich_help_panel=_SETS,
        ),
    ] = None,
    test_set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABELS",
            help="Also report on this set, without fitting to it; repeatable.",
            rich_help_panel=_SETS,
        ),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            help="Ask again without the deciding field, and with another record's.",
            rich_help_panel=_SETS,
        ),
    ] = True,
    quiet: opt.Quiet = False,
) -> None:
    """Measure how far judges agree with labels, and fit a profile.

    Half of the records are used for fitting, where a method has something to fit; all figures are
    from the other half. With --folds all records serve for both, none at the same time. Each judge
    is asked again without the field that decides, and with another record's, to see whether it
    looks at it. Several --model are compared; with --guarantee they make a cascade, cheap first.
    """
    opt.need_calibrate("judge calibrate")
    from judge import api
    from judge.arguments import refuse_existing
    from judge.cli.progress import steps
    from judge.cli.summary import announce
    from judge.cli.tables import print_calibration

    refuse_existing("-o", out, overwrite, is_folder=True)
    announce(settings, profiled=False, quiet=quiet)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A script's `&` had it ignored.
    try:
        with steps("items", quiet=quiet) as show:
            report = api.calibrate(
                labels,
                label_column=opt.names(label_column),
                sheet=sheet,
                by=by or (),
                guarantee=guarantee,
                sample=sample,
                group=group,
                folds=folds,
                contrast_set=contrast_set,
                test_set=test_set or (),
                controls=controls,
                out=out,
                overwrite=overwrite,
                progress=lambda check, model, n, of: show(f"{check}, {model}", n, of, ""),
                settings=settings,
            )
    except KeyboardInterrupt:
        result = (
            "replies in the cache are not asked again" if settings.cache else "nothing was saved"
        )
        print_message(f"interrupted; {result}", new_line=True)
        raise typer.Exit(int(Exit.INTERRUPTED)) from None
    if as_json:
        print_output(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        print_calibration(report, all_tables=all_tables)
    for line in _troubles(report):
        print_message(line)
    if out is not None:
        profile = "" if report.profile is None else ", profile.json"
        files = f"report.html, report.json, disagreements.jsonl{profile}"
        print_lines([f"judge: wrote {files} to {out}"], err=True)
    if report.failed:
        raise typer.Exit(int(Exit.INCOMPLETE))


def fields_message(fields: Sequence[str], withheld: Sequence[str]) -> str:
    """The fields that a judge is shown when none is named, and those withheld."""
    text = f"fields shown: {', '.join(fields)}"
    answers = ", ".join(f"{name} (people's answers)" for name in withheld)
    return f"{text}; not shown: {answers}" if withheld else text


def taken_message(check: str, names: Sequence[str]) -> str:
    """The note on labels that name another check than the one they were taken for."""
    return f"{check}: its labels are the answers to {', '.join(map(repr, names))}"


def unused_labels(lines: Sequence[Record], answers: int, blank: int) -> Iterator[str]:
    """Notes on lines that could not be used, on this many answers that mean no label, and on rows
    without any."""
    from judge.records.labels import no_label

    for item in lines[:MAX_PROBLEMS]:
        yield f"{item.source}:{item.line}: {item.fault}"
    if len(lines) > MAX_PROBLEMS:
        yield f"and {len(lines) - MAX_PROBLEMS} more such lines"
    if answers:
        yield f"{no_label(answers)}, left out"
    if blank:
        yield f"{counted(blank, 'row')} without a label, left out"


def _troubles(report: Calibration) -> Iterator[str]:
    """Notes: unused lines, the fields shown, unanswered items, what the profile cannot do, or why
    there is none."""
    yield from unused_labels(report.problems, report.no_label, report.blank)
    if report.taught:
        yield f"{counted(report.taught, 'item')} left out, used to teach one of the models"
    for check in report.checks:
        yield from _about_check(check, report.sources)
    yield from report.uncorrected
    if report.refused:
        yield f"no profile: {report.refused}"


def _about_check(check: CheckReport, sources: Sequence[str]) -> Iterator[str]:
    """Notes on a check: its fields, how its labels were read, and items without an answer."""
    if check.shown:
        hint = "name the one that decides (--on, or fields: in the rubric) to see if it is read"
        yield f"{check.check}: {fields_message(check.shown, check.withheld)}; {hint}"
    if check.taken:
        yield taken_message(check.check, check.taken)
    if check.other_question:
        yield f"{', '.join(sources)}: {check.other_question}"
    if check.read_as:
        words = ", ".join(f"{word} as {answer}" for word, answer in check.read_as.items())
        yield f"{check.check}: labels read as answers: {words}"
    if check.leak is not None:
        yield f"{check.check}: {check.leak}"
    for text in check.unanswered:
        yield f"{check.check}, {text}"
