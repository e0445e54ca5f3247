"""`judge agreement`: how far people agree with one another, before a judge is held against them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import Tables, counted, no_label, print_message, print_output
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.calibration.people import Agreement, Figures
    from judge.settings import Settings

_MOST_ANSWERS = 40
"""Answers that are printed; free texts may differ without end."""

EPILOG = """\b
Examples:
  judge agreement multipico:MP_en_dev_test.json
  judge agreement votes.jsonl --check relevance --majority 4/5 --json
  judge agreement votes.jsonl gold.jsonl
  judge agreement survey.csv --annotators ann,bo,cy

Exit code 3: some lines could not be read, and are named.
"""

LabelFiles = Annotated[
    list[str] | None,
    opt.files(
        "LABELS",
        "Labelled records, FILE or SET:PATH; what several files say of one record goes together.",
    ),
]
OneCheck = Annotated[
    str | None,
    typer.Option(
        help="Only this check; of a table without a column check: what its labels are about."
    ),
]
Majority = Annotated[
    str,
    typer.Option(
        metavar="SHARE|K/N|half",
        help="What makes a majority: 0.75, 75%, 4/5 (at least 4 votes), or more than half.",
    ),
]
OptOut = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ANSWER",
        help="This answer never makes a majority; repeatable. [default: I don't know, "
        "unanswerable, I don't have knowledge]",
    ),
]


@opt.with_settings(
    "map",
    "answers",
    map="Read this column of LABELS as NAME, as in label=answer; item=a+b.",
    answers="Count these as answers, also what else stands for no label, as in none,some.",
)
def command(
    settings: Settings,
    context: typer.Context,
    labels: LabelFiles = None,
    annotators: opt.Annotators = None,
    check: OneCheck = None,
    majority: Majority = "half",
    opt_out: OptOut = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    every: opt.All = False,
) -> None:
    """Measure how far people agree with one another.

    Kappas, alpha and majorities, overall and by group. No model is called.
    Tables go to standard output, notes to standard error.
    """
    sources = opt.inputs_or_stdin(labels, context)
    settings = opt.with_annotators(settings, annotators)
    opt.need_calibrate("judge agreement")
    from judge import api

    report = api.agreement(
        sources, check=check, majority=majority, opt_out=opt_out or (), seed=seed, settings=settings
    )
    for item in report.problems:
        message = item.problem.message if item.problem else "holds no label"
        print_message(f"{item.source}, line {item.line}: {message}")
    if report.no_label:
        print_message(f"{no_label(report.no_label)}, left out")
    if (more := report.unreadable - len(report.problems)) > 0:
        print_message(f"and {more} more such lines")
    if as_json:
        print_output(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(report, every=every)
    if report.repeated:
        left = f"{counted(report.repeated, 'repeated answer')} of an annotator left out"
        print_message(f"{left}; the first one to a question holds")
    if report.conflicting:
        print_message(
            f"{counted(report.conflicting, 'differing gold answer')} left out; the first one holds"
        )
    if report.unreadable:
        print_message(f"{counted(report.unreadable, 'line')} could not be read")
        raise typer.Exit(int(Exit.INCOMPLETE))


def _show(report: Agreement, *, every: bool) -> None:
    """Print how far people agree and on which answers, and with `every` their majorities."""
    kappas = {
        "ordinal α": "alpha_ordinal",
        "weighted κ": "weighted",
        "Fleiss κ": "fleiss",
        "pairwise": "pairwise",
        "nominal α": "alpha_nominal",
        "interval α": "alpha_interval",
        "Cohen κ": "cohen",
    }
    rows = [
        (check.check, who, one)
        for check in report.checks
        for who, one in {"all": check.overall, **check.groups}.items()
    ]
    shown = {
        head: name for head, name in kappas.items() if any(name in one.measures for *_, one in rows)
    }
    agree = [
        [check, who, str(one.labels)]
        + [str(one.measures.get(name, "–")) for name in shown.values()]
        + [str(one.annotators)]
        for check, who, one in rows
    ]
    counts = [
        [check, who, str(one.questions), *map(str, one.outcomes.values()), _accuracy(one)]
        for check, who, one in rows
    ]
    heads = ["check", "who", "questions", *rows[0][-1].outcomes, "accuracy"]
    tables = Tables(every=every)
    title = "Agreement among annotators (95 % intervals)"
    heads_of_all = ["check", "who", "labels", *shown, "annotators"]
    tables.add(heads_of_all, agree, headline=True, title=title, labels=2)
    answers = [
        [check.check, answer, str(count), str(check.overall.majorities.get(answer, 0))]
        for check in report.checks
        for answer, count in check.overall.answers.items()
    ]
    shown_answers = answers if every else answers[:_MOST_ANSWERS]
    more = len(answers) - len(shown_answers)
    tables.add(
        ["check", "answer", "labels", "majorities"],
        shown_answers,
        headline=True,
        notes=[f"--all shows {counted(more, 'more answer')}"] if more else (),
        title="Answers",
        labels=2,
    )
    tables.add(heads, counts, headline=False, title="Majority of each question", labels=2)
    tables.end()


def _accuracy(figures: Figures) -> str:
    """Of the majority, over the questions with gold and a majority."""
    one = figures.measures.get("accuracy")
    if one is None or one.value is None:
        return "–"
    return f"{one.value:.1%} ({round(one.value * one.n)} of {one.n})"
