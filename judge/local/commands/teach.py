"""`judge teach`: parse flags, teach a local model a check, print what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import calibrate
from judge.cli import options as opt
from judge.cli.printing import counted, print_message
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge teach labels.jsonl --check adherence -o mine.gguf
  judge teach mails.jsonl --ask "Is it polite?" --on mail -o mine.gguf
  judge calibrate mails.jsonl ... -m local:qwen2.5-coder-1.5b+mine.gguf

Labels are as for judge calibrate. Three tenths of the records are kept for testing: judge calibrate
reports on a model with the adapter without the records that taught it.

Exit code 3: some lines could not be used.
"""


@opt.with_settings(
    *("model", "check", "rubric", "ask", "name", "on", "answers", "pass_", "map", "seed"),
    model="Local model to teach.",
    seed="Seed of --sample and of the training.",
)
def command(
    settings: Settings,
    labels: calibrate.Labels,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Write the adapter to this file.", metavar="FILE.gguf"),
    ],
    overwrite: opt.Overwrite = False,
    sample: calibrate.SampleOfCheck = None,
    group: calibrate.Group = None,
    epochs: Annotated[float, typer.Option(min=0.1, max=50, help="Passes over the labels.")] = 2.0,
    quiet: opt.Quiet = False,
) -> None:
    """Teach a local model one check from labels.

    LoRA trains the upper layers of the model to answer the rubric's first question as the labels
    do. It needs about a thousand labels or more; two cores take about a second a label, a GPU
    minutes in all. The adapter is a file of some megabytes that llama.cpp loads.
    """
    from judge.calibration.labels import CalibrationJob
    from judge.cli.progress import steps
    from judge.local.store import part_of
    from judge.local.teaching import teach
    from judge.web.label import question_flags

    if out.suffix != ".gguf":
        raise UsageError(f"-o {out}: name a file that ends in .gguf")
    from judge.arguments import refuse_existing

    refuse_existing("-o", out, overwrite)
    if len(settings.ask) > 1:
        raise UsageError("--ask: a model is taught one question at a time")
    job = CalibrationJob(sources=labels, records=sample, group=group)
    partly = part_of(out)
    earlier = _written(partly)
    try:
        with steps("items", quiet=quiet) as show:
            report = teach(job, settings, out, epochs=epochs, progress=show)
    except KeyboardInterrupt:
        remark, now = "no adapter was written", _written(partly)
        if now is not None:
            old = f"{remark}; {partly} is of an earlier run"
            remark = old if now == earlier else f"the adapter so far is {partly}"
        print_message(f"interrupted; {remark}", new_line=True)
        raise typer.Exit(int(Exit.INTERRUPTED)) from None
    for note in calibrate.unused_labels(report.problems, report.no_label, report.blank):
        print_message(note)
    if report.taken:
        print_message(calibrate.taken_message(report.check, report.taken))
    if report.other_question:
        print_message(report.other_question)
    if report.shown:
        print_message(calibrate.fields_message(report.shown, report.withheld))
    if not quiet:
        title = f"taught {report.check} by {counted(report.items, 'item')}"
        print_message(
            f"{title}, loss {report.loss:.3f}; {report.kept} kept for testing; wrote {out}"
        )
        if not (settings.ask or settings.rubric or settings.check):
            settings = settings.model_copy(update={"check": (report.check,)})
        grouped = ["--group", group] if group else []
        words = ["judge", "calibrate", *labels, *question_flags(settings), *grouped]
        print_message(f"next: {shlex.join([*words, '-m', report.model, '-o', 'taught'])}")
    if report.problems:
        raise typer.Exit(int(Exit.INCOMPLETE))


def _written(path: Path) -> int | None:
    """When the file was written; None if there is none."""
    return path.stat().st_mtime_ns if path.exists() else None
