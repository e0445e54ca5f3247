"""The tables of `judge agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from judge.cli.printing import Tables, counted

if TYPE_CHECKING:
    from judge.calibration.agreement_figures import Figures
    from judge.calibration.people import Agreement

_MAX_ANSWERS = 40
"""Most answers printed without --all; with free texts every label may be another answer."""

_MEASURES = {
    "alpha_ordinal": "ordinal α",
    "weighted": "weighted κ",
    "fleiss": "Fleiss κ",
    "pairwise": "pairwise",
    "alpha_nominal": "nominal α",
    "alpha_interval": "interval α",
    "cohen": "Cohen κ",
}


def print_agreement(report: Agreement, all_tables: bool, by_class: bool) -> None:
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
    tables.add(heads, known, headline=False, title="Who annotators are", labels=3)
    heads, ratings = ["who", "rating", "labels", "share"], _shares(report.ratings)
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
