"""`judge agreement`: how far people agree, measured before a judge is compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import Tables, counted, no_label, print_message, print_output
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.calibration.people import Agreement, Figures
    from judge.settings import Settings

_NAMED = 5
"""Most annotators named in a message."""

_MAX_ANSWERS = 40
"""Most answers printed without --all; with free texts every label may be another answer."""

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
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of the control questions answered that an annotator must get right.",
        ),
    ] = 0.6,
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
    from judge.stats.agreement import MajorityRule
    from judge.stats.intervals import percent

    if records and out is None:
        raise UsageError("--records needs -o, the file to which its records are written")
    source = context.get_parameter_source("least")
    if not controls and source is not None and source.name == "COMMANDLINE":
        raise UsageError("--least needs --controls, the questions that annotators must get right")
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
    for item in report.problems:
        message = item.problem.message if item.problem else "holds no label"
        print_message(f"{item.source}, line {item.line}: {message}")
    if (unnamed := report.unreadable - len(report.problems)) > 0:
        print_message(f"and {unnamed} more such lines")
    if report.blank:
        print_message(report.blank_message)
    if report.no_label:
        print_message(f"{no_label(report.no_label)}, left out")
    if as_json:
        print_output(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        _print(report, all_tables, by_class=raters is not None)
    for note in report.notes:
        print_message(note)
    everyone = counted(len(report.annotators), "annotator")
    if dropped := [name for name, about in report.annotators.items() if about.dropped]:
        share = percent(report.dropped_labels or 0.0)
        print_message(
            f"{len(dropped)} of {everyone} dropped, {share} of the labels: {_named(dropped)}"
        )
    if torn := {
        name: n for name, about in report.annotators.items() if (n := about.contradictions)
    }:
        print_message(
            f"{counted(sum(torn.values()), 'pair')} of contradictory labels left out: "
            f"{_named([*torn])}"
        )
    untried = [name for name, about in report.annotators.items() if controls and not about.controls]
    if untried:
        print_message(
            f"{len(untried)} of {everyone} kept without an answer to a control question: "
            f"{_named(untried)}"
        )
    least_votes = 0 if break_ties else MajorityRule.parse(majority).least
    if 0 < report.most_answers < least_votes:
        print_message(
            f"--majority {majority} needs {least_votes} answers to a question, and none has more "
            f"than {report.most_answers}, so there is no majority: give a share, such as 80%"
        )
    if out is not None:
        names = [check.check for check in report.checks]
        rows = [line["labels"] for line in report.majorities]
        without = sum(any(of.get(name, "") is None for name in names) for of in rows)
        note = f", {without} of them without a majority (null)" if without else ""
        print_message(f"wrote {out}: {counted(len(rows), 'record')}{note}")
    if report.repeated:
        repeated = counted(report.repeated, "repeated answer")
        others = (
            f", {report.differing} of them different from the first" if report.differing else ""
        )
        print_message(
            f"{repeated} left out{others}; an annotator's first answer to a question counts"
        )
    if report.differing:
        print_message(
            "two people may share a name: give each a different one in the column annotator"
        )
    if report.conflicting:
        conflicting = counted(report.conflicting, "differing gold answer")
        print_message(f"{conflicting} left out; the first one counts")
    if report.unreadable:
        print_message(f"{counted(report.unreadable, 'line')} could not be read")
    if report.unreadable or report.differing:
        raise typer.Exit(int(Exit.INCOMPLETE))


def _named(annotators: Sequence[str]) -> str:
    return ", ".join(annotators[:_NAMED]) + (", ..." if len(annotators) > _NAMED else "")


_MEASURES = {
    "alpha_ordinal": "ordinal α",
    "weighted": "weighted κ",
    "fleiss": "Fleiss κ",
    "pairwise": "pairwise",
    "alpha_nominal": "nominal α",
    "alpha_interval": "interval α",
    "cohen": "Cohen κ",
}


def _print(report: Agreement, all_tables: bool, by_class: bool) -> None:
    """Print agreement and answers, and with `all_tables` the majorities."""
    rows = [
        (check.check, group, figures)
        for check in report.checks
        for group, figures in {"all": check.overall, **check.groups}.items()
    ]
    measures = [name for name in _MEASURES if any(name in row[2].measures for row in rows)]
    of_people = tuple(f"{column}: " for column in report.demographics)
    averaged = {
        (check.check, "mean of groups"): [
            figures for group, figures in check.groups.items() if not group.startswith(of_people)
        ]
        for check in report.checks
    }
    averaged["mean of checks", ""] = [check.overall for check in report.checks]
    means = {of: parts for of, parts in averaged.items() if all_tables and len(parts) > 1}
    agreement = [
        [
            check,
            group,
            *map(str, (f.labels, *(f.measures.get(m, "–") for m in measures), f.annotators)),
        ]
        for check, group, f in rows
    ]
    agreement += [
        [*of, "", *(_mean(parts, m) for m in measures), ""] for of, parts in means.items()
    ]
    majorities = [
        [check, group, str(f.questions), *map(str, f.outcomes.values()), _accuracy(f)]
        for check, group, f in rows
    ]
    blank = [""] * (1 + len(rows[0][2].outcomes))
    majorities += [[*of, *blank, _mean(parts, "accuracy", "{:.1%}")] for of, parts in means.items()]
    answers = [
        [check, who, answer, str(n), f"{n / f.labels:.1%}", str(f.majorities.get(answer, 0))]
        for check, who, f in rows
        for answer, n in f.answers.items()
        if all_tables or who == "all"
    ]
    tables = Tables(all_tables=all_tables)
    title = "Agreement among annotators (95% intervals)"
    heads = ["check", "who", "labels", *map(_MEASURES.__getitem__, measures), "annotators"]
    tables.add(heads, agreement, headline=True, title=title, labels=2)
    hidden = 0 if all_tables else max(len(answers) - _MAX_ANSWERS, 0)
    tables.add(
        ["check", "who", "answer", "labels", "share", "majorities"],
        answers[: len(answers) - hidden],
        headline=True,
        notes=[f"--all shows {counted(hidden, 'more answer')}"] if hidden else (),
        title="Answers",
        labels=3,
    )
    heads = ["check", "who", "questions", *rows[0][2].outcomes, "accuracy"]
    tables.add(heads, majorities, headline=False, title="Majority of each question", labels=2)
    _print_parts(tables, rows, by_class)
    _print_annotators(tables, report)
    tables.end()


def _print_parts(tables: Tables, rows: Sequence[tuple[str, str, Figures]], by_class: bool) -> None:
    """Print the figures of each class, and of each gold label."""
    for title, name, headline in (
        ("Fleiss κ by class", "class_kappas", by_class),
        ("Accuracy of the majority by gold label", "accuracies", False),
    ):
        parts = [
            [check, who, label, str(estimate), str(estimate.n)]
            for check, who, figures in rows
            for label, estimate in getattr(figures, name).items()
        ]
        heads = ["check", "who", "label", "κ" if name == "class_kappas" else "accuracy", "n"]
        tables.add(heads, parts, headline=headline, title=title, labels=3)


def _print_annotators(tables: Tables, report: Agreement) -> None:
    """Print the annotators' groups, the raw ratings, and the results on control questions."""
    known = [
        [column, *row] for column, groups in report.demographics.items() for row in _shares(groups)
    ]
    heads = ["of annotators", "who", "", "annotators", "share"]
    if known:
        tables.add(heads, known, headline=False, title="Who annotators are", labels=3)
    ratings = _shares(report.ratings)
    if ratings:
        heads = ["who", "rating", "labels", "share"]
        tables.add(heads, ratings, headline=False, title="Ratings as they came", labels=2)
    people = [
        [
            name,
            str(about.controls),
            str(about.right),
            str(about.labels),
            "dropped" if about.dropped else "kept",
            " ".join(f"{rating}={label}" for rating, label in about.scale.items()),
        ]
        for name, about in report.annotators.items()
    ]
    heads = ["annotator", "controls", "right", "labels", "", "scale"]
    if people:
        tables.add(heads, people, headline=False, title="Annotators on control questions")


def _shares(groups: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """Rows: the group, what is counted, its count and its share of the group."""
    return [
        [who, name, str(n), f"{n / (sum(counts.values()) or 1):.1%}"]
        for who, counts in groups.items()
        for name, n in counts.items()
    ]


def _mean(figures: Sequence[Figures], measure: str, form: str = "{:.2f}") -> str:
    """The unweighted mean of a measure over checks or groups."""
    estimates = [f.measures.get(measure) for f in figures]
    values = [e.value for e in estimates if e is not None and e.value is not None]
    return form.format(fmean(values)) if values else "–"


def _accuracy(figures: Figures) -> str:
    """The accuracy of the majority, over the questions with gold and a majority."""
    accuracy = figures.measures.get("accuracy")
    if accuracy is None or accuracy.value is None:
        return "–"
    return f"{accuracy.value:.1%} ({round(accuracy.value * accuracy.n)} of {accuracy.n})"
