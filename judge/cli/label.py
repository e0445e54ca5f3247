"""`judge label`: ask people about records, on a page or a sheet."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_message, print_output
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.report.sheet import Sheet
    from judge.settings import Settings
    from judge.web.label import PageOutcome

_SHEET = "Sheets"
_OF_SHEETS = (
    *("workers", "controls", "control_share", "opt_out", "together", "instructions", "overwrite"),
)
_OF_PAGES = {"annotator": "--annotator", "port": "--port", "open_page": "--open"}
_SCREENS = {"DISPLAY", "WAYLAND_DISPLAY"}

_NEXT = {
    "csv": ("{path}.csv", "the annotators fill the column label"),
    "html": ("{path}.*.jsonl", "send the file; annotators send back what it saves"),
    "label-studio": (
        "EXPORT.json",
        "Label Studio takes {config} as labelling interface (Code)",
    ),
    "argilla": ("EXPORT.json", "rg.Dataset.from_disk reads the folder"),
}
"""For each form of sheet: the file that comes back, and what to do first."""

EPILOG = """\b
Examples:
  judge label mails.csv --ask "Is this e-mail polite?" -o labels.jsonl
  judge label judged.jsonl --rubric polite --sample 100 -o labels.jsonl
  judge label records.csv --check relevance --controls gold.jsonl \\
      --workers 3 --sample 300 --by country --opt-out unsure --sheet s.csv
  judge label mails.csv --ask "Is this e-mail polite?" --sheet mails.html

On the page the keys 0-9, y and n answer, u is unsure, c says why, z takes the last answer back. The
same command continues where it stopped; another --annotator answers the same questions.
judge calibrate and judge agreement read labels and filled sheets, also as Label Studio and Argilla
export them.

Exit code 3: some lines could not be read.
"""

AnnotatorName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Your name, beside your answers. [default: the login name]"),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 is a free one.")]
Open = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the page in the browser, where there is one.")
]


@opt.with_settings(
    *("ask", "name", "compare", "tie", "on", "answers", "pass_"),
    *("rubric", "check", "map", "id", "seed"),
    compare="Ask which field is best.",
)
def command(
    settings: Settings,
    context: typer.Context,
    inputs: opt.Inputs = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Answer on a page; append the labels to this file."),
    ] = None,
    annotator: AnnotatorName = None,
    port: Port = 0,
    open_page: Open = True,
    sheet: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a sheet instead: .csv, .html (a page to send), label-studio:TASKS.json, "
            "argilla:FOLDER.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Annotators of each record. [default: 3]", rich_help_panel=_SHEET),
    ] = None,
    controls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GOLD",
            help="Mix in control questions of these labelled records; repeatable.",
            rich_help_panel=_SHEET,
        ),
    ] = None,
    control_share: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of control questions, rounded up.", rich_help_panel=_SHEET
        ),
    ] = 0.15,
    opt_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ANSWER",
            help="Offer this answer, too, such as unsure; repeatable.",
            rich_help_panel=_SHEET,
        ),
    ] = None,
    together: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Keep records with the same text in this field together.",
            rich_help_panel=_SHEET,
        ),
    ] = None,
    instructions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show this text to annotators (not in .csv).",
            rich_help_panel=_SHEET,
        ),
    ] = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.EvenBy = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Ask people the questions that judges are asked.

    On a page on this machine (-o), or on a sheet (--sheet). Records are shown as judges see them,
    without labels and verdicts. No model is called. On the page a sample of judged records is
    spread over verdicts and probabilities; weights in the labels keep estimates unbiased.
    """
    sources = opt.record_files(inputs, context, out)
    from judge.api import Job
    from judge.report.sheet import write_sheet
    from judge.web.label import calibrate_command, label

    if (out is None) == (sheet is None):
        raise UsageError("name -o LABELS.jsonl for a page, or --sheet FILE.csv for a sheet")
    if by and sample is None:
        raise UsageError("--by needs --sample, the number of records to draw evenly by it")
    job = Job(
        inputs=sources,
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
        by=by or (),
        overwrite=overwrite,
    )
    sheets = {name: f"--{name.replace('_', '-')}" for name in _OF_SHEETS}
    for name, flag in (sheets if sheet is None else _OF_PAGES).items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            what, needed = ("sheet", "--sheet") if sheet is None else ("page", "-o")
            raise UsageError(f"{flag} is for a {what}: it needs {needed}")
    if out is not None:
        outcome = label(
            out,
            job,
            settings,
            annotator=annotator or opt.login_name(),
            ready=lambda address: announce(address, annotator, open_page=open_page),
            port=port,
        )
        end(outcome, out)
        _exit(outcome)
        return
    assert sheet is not None
    written = write_sheet(
        sheet,
        job,
        settings,
        workers=workers,
        controls=controls or (),
        control_share=control_share,
        opt_outs=opt_out or (),
        together=together,
        instructions=instructions,
    )
    print_unasked(written)
    about = f"{counted(written.records, 'record')} and {counted(written.controls, 'control')}"
    who = f", for {counted(written.workers, 'annotator')}" if written.workers else ""
    files = " and ".join(map(str, written.files))
    print_message(f"wrote {files}: {counted(written.rows, 'row')} about {about}{who}")
    if written.controls < written.most_controls:
        share = f"--control-share {control_share:g} asks for {written.most_controls}"
        print_message(f"{share} controls, and --controls holds {written.controls}")
    if by:
        print_message(
            "drawn evenly, and a sheet keeps no weights: its figures over all records may not be "
            "those of the input"
        )
    if wrong := written.not_offered:
        print_message(f"{wrong[0]}: map an answer to it with judge agreement --scale")
    if (step := _NEXT.get(written.form)) is not None:
        back, how = step
        back = back.format(path=shlex.quote(str(written.files[0].with_suffix(""))))
        id_column = [settings.id] if settings.id else []
        named = {"--controls": controls, "--id": id_column, "--opt-out": opt_out}
        more = "".join(
            f" {n} {shlex.quote(one)}" for n, several in named.items() for one in several or ()
        )
        print_message(f"next: {how.format(config=written.files[-1])}; then")
        # One annotator agrees with nobody.
        alone = written.workers == 1 and not controls
        agreement = f"judge agreement {back}{more}"
        then = calibrate_command(back, settings) if alone else agreement
        print_output(f"  {then}", err=True)
    _exit(written)


def _exit(outcome: PageOutcome | Sheet) -> None:
    if outcome.unread:
        raise typer.Exit(int(Exit.INCOMPLETE))


def announce(address: str, annotator: str | None, *, open_page: bool) -> None:
    """Print the page's address, and open it if there is a screen and a terminal."""
    print_message(f"open {address}")
    if annotator is None:
        name = opt.login_name()
        print_message(f"answers are saved under the name {name}; --annotator NAME sets another")
    print_message("press Ctrl-C, or the button on the page, to stop; every answer is saved")
    screen = sys.platform in ("darwin", "win32") or os.environ.keys() & _SCREENS
    if open_page and screen and sys.stderr.isatty():
        import webbrowser

        webbrowser.open(address)


def end(outcome: PageOutcome, out: Path) -> None:
    """Print how many questions were answered, and what to type next."""
    print_unasked(outcome)
    if not outcome.answered:
        print_message(f"no question was answered; {out} has no new answer")
        return
    print_message(f"{outcome.answered} of {counted(outcome.of, 'question')} answered, in {out}")
    for about, words in outcome.closing:
        print_message(about)
        print_output(f"  {words}", err=True)


def print_unasked(outcome: PageOutcome | Sheet) -> None:
    """Print how many records have no question, and further notes."""
    if reasons := outcome.reasons:
        first = "the first: " if len(reasons) > 1 else ""
        print_message(f"{counted(len(reasons), 'record')} left out; {first}{reasons[0]}")
    for note in outcome.notes:
        print_message(note)
