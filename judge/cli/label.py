"""`judge label`: records put to people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_message

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge label mails.csv --ask "Is this e-mail polite?" --sheet sheet.csv
  judge label records.csv --check relevance --check derivation --workers 3 \\
      --controls gold.jsonl --sample 300 --by country --by label \\
      --opt-out unsure --sheet sheet.csv
  judge agreement sheet.csv --controls gold.jsonl -o majority.jsonl

A row of the sheet is one question to one annotator, who writes the answer into `label` and why into
`why`; `annotator` and `group` (a nationality, say) are yours to fill in. Rows can be cut into a
file for each annotator: judge agreement takes several.
"""


@opt.with_settings("ask", "name", "on", "answers", "pass_", "rubric", "check", "map", "seed")
def command(
    settings: Settings,
    context: typer.Context,
    sheet: Annotated[Path, typer.Option(metavar="FILE.csv", help="Write the sheet to this file.")],
    inputs: opt.Inputs = None,
    workers: Annotated[int, typer.Option(min=1, help="Annotators of each record.")] = 3,
    controls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GOLD", help="Mix in control questions of these labelled records; repeatable."
        ),
    ] = None,
    control_share: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of control questions, at most.")
    ] = 0.15,
    opt_out: Annotated[
        list[str] | None,
        typer.Option(metavar="ANSWER", help="Offer this answer, too, such as unsure; repeatable."),
    ] = None,
    together: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Records with the same text in this field stand together."
        ),
    ] = None,
    format: opt.Format = None,
    limit: opt.Limit = None,
    sample: opt.Sample = None,
    by: opt.ByField = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Make a sheet on which people answer the questions that judges are asked.

    Records stand there as judges are shown them, without labels and verdicts. No model is called.
    """
    sources = opt.record_files(inputs, context)
    from judge import api

    job = api.Job(
        inputs=sources,
        format=format,
        limit=limit,
        sample=sample,
        sample_seed=settings.seed,
        by=by or (),
        overwrite=overwrite,
    )
    written = api.write_sheet(
        sheet,
        job,
        settings,
        workers=workers,
        controls=controls or (),
        control_share=control_share,
        opt_outs=opt_out or (),
        together=together,
    )
    if written.unasked:
        print_message(f"{counted(written.unasked, 'record')} left out; {written.why}")
    records = counted(written.records, "record")
    print_message(
        f"wrote {sheet}: {counted(written.rows, 'row')} about {records} and "
        f"{counted(written.controls, 'control')}, for {counted(workers, 'annotator')}"
    )
