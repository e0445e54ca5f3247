"""NormAd's tables by hand, against scikit-learn, and against the paper's own figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.evaluation.benchmark import Outcome, Result
from judge.evaluation.clusters import CLUSTERS, COUNTRIES, cluster_of
from judge.evaluation.normad import benchmark, records, statistics
from judge.evaluation.normad_tables import LABELS, tables
from judge.records import Item, NormRecord

from .examinee import Examined, public, results_of, table, usual, value


def result(
    row: int,
    gold: str,
    given: str | None,
    outcome: Outcome = "answered",
    condition: str = "none",
    **more: str | None,
) -> Result:
    fields = {"id": f"{row}/{condition}", "condition": condition, "row": str(row), "gold": gold}
    score = float(gold == given) if outcome == "answered" else None
    return Result({**fields, **more}, outcome, given, score)


def norm(label: str | None, country: str | None, subcategory: str | None = None) -> NormRecord:
    return NormRecord.model_validate(
        {
            "story": "s",
            "rule_of_thumb": "r",
            "label": label,
            "country": country,
            "subcategory": subcategory,
        }
    )


# ------------------------------------------------------------ table 2

TABLE_2 = {
    "African-Islamic": (212, 228, 247),
    "Catholic Europe": (85, 81, 86),
    "Confucian": (52, 54, 59),
    "English Speaking": (59, 74, 76),
    "Latin America": (70, 73, 89),
    "Orthodox Europe": (80, 84, 89),
    "Protestant Europe": (56, 61, 66),
    "West and South Asia": (201, 220, 231),
    "Total": (815, 875, 943),
}


def test_table_2_of_a_set_with_the_papers_counts() -> None:
    norms = [
        norm(label, countries[number % len(countries)])
        for cluster in CLUSTERS
        for countries in [[name for name in COUNTRIES if cluster_of(name) == cluster]]
        for label, count in zip(("neutral", "no", "yes"), TABLE_2[cluster], strict=True)
        for number in range(count)
    ]
    rows = table(statistics(norms), "normad-set-clusters")
    assert list(rows) == [(name,) for name in TABLE_2]
    found = {
        name: tuple(row.cells[label] for label in ("neutral", "no", "yes"))
        for (name,), row in rows.items()
    }
    assert found == TABLE_2
    assert rows[("Total",)].cells["all"] == 2633


def test_the_released_half_is_half_of_table_2() -> None:
    """Each count over every other row is about half of the full set's."""
    found = [
        row[2] for row in records([public("normad/normad_odd_rows.csv")]) if isinstance(row, tuple)
    ]
    assert len(found) == (2633 + 1) // 2
    rows = table(statistics(found), "normad-set-clusters")
    assert list(rows) == [(name,) for name in TABLE_2]
    totals = rows[("Total",)].cells
    assert [totals[label] for label in ("neutral", "no", "yes")] == [408, 435, 474]
    for (name,), row in rows.items():
        for label, whole in zip(("neutral", "no", "yes"), TABLE_2[name], strict=True):
            half = row.cells[label]
            assert isinstance(half, int) and 0.4 * whole <= half <= 0.6 * whole, (name, label)


def test_the_released_half_by_hand_of_another_reader() -> None:
    import csv
    from pathlib import Path

    with Path(public("normad/iw_clusters.csv")).open(encoding="utf-8", newline="") as file:
        clusters = {row["country"]: row["cluster"] for row in csv.DictReader(file)}
    path = public("normad/normad_odd_rows.csv")
    with Path(path).open(encoding="utf-8", newline="") as file:
        counts = Counter(
            (clusters[row["Country"]], row["Gold Label"]) for row in csv.DictReader(file)
        )
    found = [row[2] for row in records([path]) if isinstance(row, tuple)]
    rows = table(statistics(found), "normad-set-clusters")
    for cluster in CLUSTERS:
        for label in LABELS:
            assert rows[(cluster,)].cells[label] == counts[cluster, label]


def test_what_has_no_cluster_or_label_is_counted_apart() -> None:
    norms = [norm("yes", "atlantis", "eating"), norm(None, "egypt"), norm("no", None, "eating")]
    clusters, subcategories = statistics(norms)
    assert clusters.columns == ("neutral", "no", "yes", "no label", "all")
    rows = table([clusters], "normad-set-clusters")
    assert rows[("(no cluster)",)].cells["all"] == 2
    assert rows[("African-Islamic",)].cells["no label"] == 1
    assert rows[("Total",)].cells["all"] == 3
    kinds = table([subcategories], "normad-set-subcategories")
    assert kinds[("(not said)", "eating")].cells["all"] == 2
    assert "no label" not in statistics(norms[:1])[0].columns


def test_the_tables_of_a_run_count_each_row_once() -> None:
    found = tables(
        [
            result(1, "yes", "yes", cluster="Confucian"),
            result(1, "yes", "no", condition="country", cluster="Confucian"),
            result(2, "no", None, "error", cluster=None),
        ]
    )
    rows = table(found, "normad-set-clusters")
    assert rows[("Confucian",)].cells["all"] == 1
    assert rows[("(no cluster)",)].cells["no"] == 1
    assert rows[("Total",)].cells["all"] == 2


# ------------------------------------------------------------ scores

BY_HAND = [
    result(1, "yes", "yes", cluster="Confucian", axis="Etiquette", subcategory="eating"),
    result(2, "yes", "no", cluster="Confucian", axis="Etiquette", subcategory="visiting"),
    result(3, "no", "no", cluster="English Speaking", axis="Etiquette", subcategory="eating"),
    result(4, "neutral", None, "unreadable", cluster="English Speaking"),
    result(5, "neutral", None, "refused"),
    result(6, "neutral", None, "error"),
    result(1, "yes", "neutral", condition="country", cluster="Confucian"),
]


def test_contexts_by_hand() -> None:
    rows = table(tables(BY_HAND), "normad-contexts")
    assert list(rows) == [("none",), ("country",)]
    cells = rows[("none",)].cells
    assert [cells[name] for name in ("asked", "answered", "refused", "unreadable", "error")] == [
        6,
        3,
        1,
        1,
        1,
    ]
    assert value(cells["accuracy"]) == pytest.approx(2 / 5)
    # Recall: yes 1 of 2, no 1 of 1, neutral 0 of 2.
    assert value(cells["recall"]) == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert cells["rows not asked"] == 0
    assert rows[("country",)].cells["rows not asked"] == 5


def test_labels_by_hand() -> None:
    rows = table(tables(BY_HAND), "normad-labels")
    yes, neutral = rows["none", "yes"].cells, rows["none", "neutral"].cells
    assert (value(yes["accuracy"]), value(yes["precision"])) == (0.5, 1.0)
    assert value(yes["F1"]) == pytest.approx(2 * 1 / (2 + 1))
    assert value(rows["none", "no"].cells["precision"]) == 0.5
    assert (neutral["asked"], neutral["error"]) == (3, 1)
    assert (value(neutral["accuracy"]), value(neutral["precision"])) == (0.0, None)
    empty = rows["country", "no"].cells
    assert (empty["asked"], value(empty["accuracy"])) == (0, None)


def test_slices_by_hand() -> None:
    found = tables(BY_HAND)
    clusters = table(found, "normad-clusters")
    assert [labels for labels in clusters if labels[0] == "none"] == [
        ("none", "Confucian"),
        ("none", "English Speaking"),
        ("none", "(no cluster)"),
    ]
    assert value(clusters["none", "Confucian"].cells["accuracy"]) == 0.5
    kinds = table(found, "normad-subcategories")
    assert value(kinds["none", "Etiquette", "eating"].cells["accuracy"]) == 1.0
    assert kinds["none", "(not said)", "(not said)"].cells["asked"] == 3


def test_confusion_by_hand() -> None:
    rows = table(tables(BY_HAND), "normad-confusion")
    assert [rows["none", "yes"].cells[name] for name in LABELS] == [1, 1, 0]
    neutral = rows["none", "neutral"].cells
    assert [neutral[name] for name in (*LABELS, "refused", "unreadable", "error")] == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]


def test_the_scripts_rule_takes_what_cannot_be_read_as_neutral() -> None:
    cells = table(tables(BY_HAND), "normad-released-rule")[("none",)].cells
    assert (cells["asked"], cells["taken as neutral"], cells["error"]) == (6, 2, 1)
    # Of the five: yes, no, no, neutral and neutral are answered; one is wrong.
    assert value(cells["accuracy"]) == pytest.approx(4 / 5)
    assert value(cells["precision"]) == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert value(cells["recall"]) == pytest.approx((1 / 2 + 1 + 1) / 3)


def test_a_model_that_is_never_readable_has_the_figures_of_appendix_c() -> None:
    """Rows 0.1, 0.33, 0.16 there: on the full set (815, 875, 943) all answers are neutral."""
    golds = ["neutral"] * 815 + ["no"] * 875 + ["yes"] * 943
    results = [result(row, gold, None, "unreadable") for row, gold in enumerate(golds)]
    cells = table(tables(results), "normad-released-rule")[("none",)].cells
    found = [round(value(cells[name]) or 0, 2) for name in ("precision", "recall", "F1")]
    assert found == [0.10, 0.33, 0.16]
    plain = table(tables(results), "normad-contexts")[("none",)].cells
    assert value(plain["accuracy"]) == 0.0
    assert value(plain["precision"]) is None


ANSWERS = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None])), min_size=1, max_size=30
)


@settings(max_examples=15, deadline=None)
@given(ANSWERS)
def test_the_scripts_rule_against_scikit_learn(pairs: list[tuple[str, str | None]]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    results = [
        result(row, gold, given, "answered" if given else "unreadable")
        for row, (gold, given) in enumerate(pairs)
    ]
    golds, answers = [gold for gold, _ in pairs], [given or "neutral" for _, given in pairs]
    precision, _, f1, _ = precision_recall_fscore_support(
        golds, answers, average="macro", zero_division=0
    )
    cells = table(tables(results), "normad-released-rule")[("none",)].cells
    assert value(cells["accuracy"]) == pytest.approx(accuracy_score(golds, answers))
    assert value(cells["precision"]) == pytest.approx(precision)
    assert value(cells["F1"]) == pytest.approx(f1)


def test_errors_alone_leave_every_mean_undefined() -> None:
    found = tables([replace(BY_HAND[0], outcome="error", answer=None, score=None)])
    for name in ("normad-contexts", "normad-released-rule"):
        cells = table(found, name)[("none",)].cells
        assert (cells["error"], value(cells["accuracy"]), value(cells["F1"])) == (1, None, None)


async def test_a_run_over_the_released_half() -> None:
    items = list(benchmark.items([public("normad/normad_odd_rows.csv")], usual(benchmark)))
    some = [item for item in items if isinstance(item, Item)][:90]
    found = await results_of(benchmark, some, Examined(lambda texts, options: 0))
    rows = table(benchmark.tables(found), "normad-contexts")
    assert list(rows) == [("none",), ("country",), ("rule-of-thumb",)]
    share = sum(one.fields["gold"] == "yes" for one in found) / len(found)
    for row in rows.values():
        assert value(row.cells["accuracy"]) == pytest.approx(share)
