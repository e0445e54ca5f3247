"""`judge agreement`: how far people agree, measured before a judge is compared with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_message, print_output
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.calibration.people import Agreement
    from judge.settings import Settings

_NAMED = 5
"""Most annotators named in a message."""

EPILOG = """\b
Examples:
  judge agreement multipico:MP_en_dev_test.json
  judge agreement votes.jsonl --check relevance --majority 4/5 --json
  judge agreement votes.jsonl gold.jsonl
  judge agreement survey.csv --label-column ann,bo,cy
  judge agreement sheet.csv --controls gold.jsonl --least 0.6 \\
      --majority 4/5 --records records.jsonl -o majority.jsonl

Exit code 3: some lines could not be read, and are named.
"""


@opt.with_settings(
    "map",
    "answers",
    "id",
    map="Read this column of LABELS as NAME, as in label=answer; item=a+b.",
    answers="Count these as answers, even words that otherwise mean no label, as in none,some.",
    id="With --records or --controls: the column that names them.",
)
def command(
    settings: Settings,
    context: typer.Context,
    labels: Annotated[
        list[str] | None,
        opt.files(
            "LABELS",
            "Labelled records, FILE or SET:PATH; several files may label the same record.",
        ),
    ] = None,
    label_column: opt.LabelColumn = None,
    check: Annotated[
        str | None,
        typer.Option(help="Only this check; names the check of a table without a column check."),
    ] = None,
    majority: Annotated[
        str,
        typer.Option(
            metavar="SHARE|K/N|half",
            help="What makes a majority: 0.75, 75%, 4/5 (at least 4 votes), or more than half.",
        ),
    ] = "half",
    opt_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ANSWER",
            help="This answer never makes a majority; repeatable. [default: I don't know, "
            "unanswerable, I don't have knowledge]",
        ),
    ] = None,
    break_ties: Annotated[
        bool,
        typer.Option(
            "--break-ties",
            help="Without a majority the most frequent answer wins, unless it is an opt-out; "
            "--seed picks among equals.",
        ),
    ] = False,
    controls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GOLD",
            help="Control questions with their right answers, to drop annotators under --least; "
            "not counted otherwise; repeatable.",
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the control questions answered that an annotator must get right. "
            "[default: 0.6]",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="RATING=LABEL,...",
            help="Labels that ratings mean; of LABEL|LABEL the one that fits an annotator's "
            "control questions, else the first.",
        ),
    ] = None,
    contrary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Pairs of records (item, contrary) that cannot both have an answer; if an "
            "annotator gave it to both, these labels are left out; repeatable.",
        ),
    ] = None,
    raters: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Kappas of classes over N ratings of each item, drawn at random 20 times.",
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A table about annotators, with a column annotator. Each value of another column "
            "is a group; --all shows their shares.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write the majorities: records with their labels."),
    ] = None,
    records: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="With -o: the records as a whole; repeatable."),
    ] = None,
    overwrite: opt.Overwrite = False,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
) -> None:
    """Measure how far people agree with one another.

    Kappas, alpha and majorities, overall and by group. No model is called.
    Tables go to standard output, notes to standard error.
    """
    sources = opt.inputs_or_stdin(labels, context)
    opt.need_calibrate("judge agreement")
    from judge import api
    from judge.cli.agreement_tables import print_agreement
    from judge.stats.majority import MajorityRule

    report = api.agreement(
        sources,
        label_column=opt.names(label_column),
        check=check,
        majority=majority,
        opt_out=opt_out or (),
        break_ties=break_ties,
        controls=controls or (),
        least=least,
        scale=scale,
        contrary=contrary or (),
        raters=raters,
        people=people,
        records=records or (),
        out=out,
        overwrite=overwrite,
        seed=seed,
        settings=settings,
    )
    for message in _unread(report):
        print_message(message)
    if as_json:
        print_output(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        print_agreement(report, all_tables, by_class=raters is not None)
    for message in _about_annotators(report, controlled=bool(controls)):
        print_message(message)
    least_votes = 0 if break_ties else MajorityRule.parse(majority).least
    if 0 < report.most_answers < least_votes:
        print_message(
            f"--majority {majority} needs {least_votes} answers to a question, and none has more "
            f"than {report.most_answers}, so there is no majority: give a share, such as 80%"
        )
    if out is not None:
        print_message(f"wrote {out}: {_records_note(report)}")
    for message in _left_out(report):
        print_message(message)
    if report.unreadable or report.differing:
        raise typer.Exit(int(Exit.INCOMPLETE))


def _unread(report: Agreement) -> Iterator[str]:
    """Messages about lines without a label that can be read."""
    from judge.records.labels import no_label, without_label

    for item in report.problems:
        yield f"{item.source}, line {item.line}: {item.fault}"
    if (unnamed := report.unreadable - len(report.problems)) > 0:
        yield f"and {unnamed} more such lines"
    if report.blank:
        yield without_label(report.blank)
    if report.no_label:
        yield f"{no_label(report.no_label)}, left out; --answers counts such a word as an answer"


def _about_annotators(report: Agreement, *, controlled: bool) -> Iterator[str]:
    """The report's notes, and messages about annotators who were dropped, contradicted themselves
    or, if `controlled`, answered no control question."""
    from judge.stats.intervals import percent

    yield from report.notes
    annotators = report.annotators
    everyone = counted(len(annotators), "annotator")
    if dropped := [name for name, about in annotators.items() if about.dropped]:
        share = percent(report.dropped_labels or 0.0)
        yield f"{len(dropped)} of {everyone} dropped, {share} of the labels: {_named(dropped)}"
    if torn := {name: n for name, about in annotators.items() if (n := about.contradictions)}:
        pairs = counted(sum(torn.values()), "pair")
        yield f"{pairs} of contradictory labels left out: {_named([*torn])}"
    untried = [name for name, about in annotators.items() if controlled and not about.controls]
    if untried:
        yield (
            f"{len(untried)} of {everyone} kept without an answer to a control question: "
            f"{_named(untried)}"
        )


def _records_note(report: Agreement) -> str:
    """How many records were written, and how many without a majority."""
    names = [check.check for check in report.checks]
    rows = [line["labels"] for line in report.majorities]
    without = sum(any(of.get(name, "") is None for name in names) for of in rows)
    note = f", {without} of them without a majority (null)" if without else ""
    return f"{counted(len(rows), 'record')}{note}"


def _left_out(report: Agreement) -> Iterator[str]:
    """Messages about answers that do not count."""
    if report.repeated:
        repeated, differing = counted(report.repeated, "repeated answer"), report.differing
        others = f", {differing} of them different from the first" if differing else ""
        yield f"{repeated} left out{others}; an annotator's first answer to a question counts"
    if report.differing:
        yield "two people may share a name: give each a different one in the column annotator"
    if report.conflicting:
        conflicting = counted(report.conflicting, "differing gold answer")
        yield f"{conflicting} left out; the first one counts"
    if report.unreadable:
        yield f"{counted(report.unreadable, 'line')} could not be read"


def _named(annotators: Sequence[str]) -> str:
    return ", ".join(annotators[:_NAMED]) + (", ..." if len(annotators) > _NAMED else "")
