"""NormAd's rows, contexts and answers; its tables by hand and against the paper's own figures."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.evaluation.benchmark import Outcome, Result
from judge.evaluation.countries import (
    CLUSTERS,
    COUNTRIES,
    cluster_name,
    cluster_of,
    country_name,
)
from judge.evaluation.normad import benchmark, statistics
from judge.evaluation.normad_tables import LABELS

from .examinee import Examined, ask, asked, items, problems, public, rows, table, value, written

FULL: dict[str, object] = {
    "ID": "7",
    "Country": "south_korea",
    "Background": "### Eating",
    "Axis": "Etiquette",
    "Subaxis": "eating",
    "Value": "Respect at the table",
    "Rule-of-Thumb": "Wait until the eldest has begun.",
    "Story": "Noa began to eat before the eldest did. Is what Noa did socially acceptable?",
    "Explanation": "The eldest begins.",
    "Gold Label": "no",
}
SHORT = {key: FULL[key] for key in ("ID", "Country", "Rule-of-Thumb", "Story", "Gold Label")}
HALF = "normad/normad_odd_rows.csv"

# ------------------------------------------------------------ rows and contexts


def test_a_row_of_the_full_form_is_asked_in_all_four_contexts(tmp_path: Path) -> None:
    found = asked(items(benchmark, written(tmp_path / "a.csv", [FULL])))
    assert list(found) == ["7/none", "7/country", "7/country+value", "7/rule-of-thumb"]
    assert found["7/none"] == {
        "id": "7/none",
        "condition": "none",
        "row": "7",
        "country": "south_korea",
        "cluster": "Confucian",
        "axis": "Etiquette",
        "subcategory": "eating",
        "value": "Respect at the table",
        "rule_of_thumb": "Wait until the eldest has begun.",
        "story": FULL["Story"],
        "gold": "no",
    }


SHOWN = {
    "none": (),
    "country": ("South Korea",),
    "country+value": ("South Korea", "Respect at the table"),
    "rule-of-thumb": ("Wait until the eldest",),
}


@pytest.mark.parametrize("condition", SHOWN)
async def test_a_context_shows_its_own_and_nothing_more(condition: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [FULL])
    (fields,) = asked(items(benchmark, path, conditions=[condition])).values()
    model = Examined(lambda *_: 1, (0.2, 0.7, 0.1))
    right = await ask(benchmark, fields, model)
    ((_, prompt),) = model.asked
    assert "Noa began to eat" in prompt
    everything = {text for texts in SHOWN.values() for text in texts}
    assert {text for text in everything if text in prompt} == set(SHOWN[condition])
    assert "The eldest begins." not in prompt and "### Eating" not in prompt
    assert (right.answer, right.score, right.usage.replies) == ("no", 1.0, 1)
    assert right.probabilities == {"yes": 0.2, "no": 0.7, "neutral": 0.1}
    wrong = await ask(benchmark, fields, lambda *_: 2)
    assert (wrong.answer, wrong.score, wrong.probabilities) == ("neutral", 0.0, None)
    lost = await ask(benchmark, fields, lambda *_: "refused")
    assert (lost.outcome, lost.answer, lost.score) == ("refused", None, None)
    assert lost.reason == "no answer in it"


def test_a_row_without_a_value_is_passed_over_unless_the_context_was_chosen(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.csv", [SHORT, {**SHORT, "ID": "8", "Country": " "}])
    found = asked(items(benchmark, path))
    assert list(found) == ["7/none", "7/country", "7/rule-of-thumb", "8/none", "8/rule-of-thumb"]
    assert found["8/none"]["cluster"] is None
    first, _ = items(benchmark, path, conditions=["country+value"])
    assert problems([first]) == ["field 'value', which condition 'country+value' shows, is missing"]
    assert (first.source, first.line) == ("a.csv", 2)


def test_lines_that_were_judged_are_taken_if_they_passed(tmp_path: Path) -> None:
    row = {"story": "Ann bowed.", "rule_of_thumb": "Bow.", "label": "yes", "cluster": "Island"}
    lines: list[dict[str, Any]] = [
        {"id": "kept", **row, "judge": {"verdict": "pass"}},
        {"id": "discarded", **row, "judge": {"verdict": "fail"}},
        {"id": "undecided", **row, "judge": {"verdict": "abstain"}},
        {"raw": "{", "judge": {"verdict": "error"}},
        row,
    ]
    path = written(tmp_path / "out.jsonl", lines)
    found = asked(items(benchmark, path, conditions=["none"])).values()
    assert [(one["row"], one["cluster"]) for one in found] == [
        ("kept", "Island"),
        ("out.jsonl#5", "Island"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Gold Label": ""}, "must be yes, no or neutral, not empty"),
        ({"Gold Label": "maybe"}, "field 'Gold Label' must be yes, no or neutral, not 'maybe'"),
        ({"Story": ""}, "field 'Story' is empty"),
        ({"ID": "8"}, "id '8' was already on line 2 of a.csv"),
    ],
)
def test_a_row_that_cannot_be_asked_is_a_problem(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.csv", [{**FULL, "ID": "8"}, {**FULL, **change}])
    found = items(benchmark, path)
    assert len(asked(found[:4])) == 4
    assert message in problems(found[4:])[0] and found[4].line == 3


def test_ids_of_two_files_may_meet(tmp_path: Path) -> None:
    first, second = (written(tmp_path / name, [SHORT]) for name in ("a.csv", "b.csv"))
    found = asked(items(benchmark, first, second, conditions=["none"]))
    assert list(found) == ["7/none", "b.csv:7/none"]
    with pytest.raises(UsageError, match="named twice"):
        items(benchmark, first, first)


def test_both_released_forms_are_read() -> None:
    paths = [str(public(HALF)), str(public("normad/normad_4_rows.csv"))]
    for condition in benchmark.conditions:
        assert len(items(benchmark, *paths, conditions=[condition])) == 1317 + 4
    assert len(asked(items(benchmark, *paths))) == 3 * 1321 + 4


# ------------------------------------------------------------ clusters, table 2


def test_clusters_are_the_authors() -> None:
    assert len(COUNTRIES) == len(set(COUNTRIES)) == 75 and len(CLUSTERS) == 8
    with public("normad/iw_clusters.csv").open(encoding="utf-8", newline="") as file:
        theirs = {row["country"]: row["cluster"] for row in csv.DictReader(file)}
    assert {country: cluster_of(country) for country in theirs} == theirs
    assert len(theirs) == len(COUNTRIES)


def test_spelling_does_not_matter() -> None:
    for written_, cluster in (
        ("South Korea", "Confucian"),
        (" timor-leste ", "West and South Asia"),
        ("TÜRKIYE", "African-Islamic"),
        ("Tu\u0308rkiye", "African-Islamic"),
        ("Turkey", "African-Islamic"),
        ("USA", "English Speaking"),
        ("atlantis", None),
    ):
        assert cluster_of(written_) == cluster
    names = ("bosnia_and_herzegovina", "united_states_of_america", "Republic of Korea")
    assert [*map(country_name, names)] == [
        "Bosnia and Herzegovina",
        "United States of America",
        "Republic of Korea",
    ]
    assert cluster_name("West & South Asia") == "West and South Asia"
    assert cluster_name("English-Speaking") == "English Speaking"
    assert cluster_name("Island") == "Island"


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
ORDER = ("neutral", "no", "yes")


def norms(path: Path, *told: tuple[str | None, str | None]) -> str:
    """A file of norms with these labels and countries."""
    lines = [{"story": "s", "rule_of_thumb": "r", "label": a, "country": b} for a, b in told]
    return written(path, lines)


def test_table_2_of_a_set_with_the_papers_counts(tmp_path: Path) -> None:
    told = [
        (label, countries[number % len(countries)])
        for cluster in CLUSTERS
        for countries in [[name for name in COUNTRIES if cluster_of(name) == cluster]]
        for label, count in zip(ORDER, TABLE_2[cluster], strict=True)
        for number in range(count)
    ]
    found = rows(statistics([norms(tmp_path / "n.jsonl", *told)]), "normad-set-clusters")
    assert {name: tuple(cells[o] for o in ORDER) for (name,), cells in found.items()} == TABLE_2
    assert list(found)[-1] == ("Total",) and found["Total",]["all"] == 2633


def test_the_released_half_is_half_of_table_2_and_agrees_with_another_reader() -> None:
    found = rows(statistics([str(public(HALF))]), "normad-set-clusters")
    assert [found["Total",][label] for label in ORDER] == [408, 435, 474]
    with public("normad/iw_clusters.csv").open(encoding="utf-8", newline="") as file:
        clusters = {row["country"]: row["cluster"] for row in csv.DictReader(file)}
    with public(HALF).open(encoding="utf-8", newline="") as file:
        counts = Counter(
            (clusters[row["Country"]], row["Gold Label"]) for row in csv.DictReader(file)
        )
    for cluster in CLUSTERS:
        for label, whole in zip(ORDER, TABLE_2[cluster], strict=True):
            assert found[cluster,][label] == counts[cluster, label]
            assert 0.4 * whole <= counts[cluster, label] <= 0.6 * whole


def test_what_has_no_cluster_or_label_is_counted_apart(tmp_path: Path) -> None:
    told = (("yes", "atlantis"), (None, "egypt"), ("no", None))
    found = rows(statistics([norms(tmp_path / "n.jsonl", *told)]), "normad-set-clusters")
    assert found["(no cluster)",]["all"] == 2 and found["Total",]["all"] == 3
    assert found["African-Islamic",]["no label"] == 1
    with pytest.raises(UsageError, match="holds no norm"):
        statistics([norms(tmp_path / "none.jsonl")])


# ------------------------------------------------------------ scores


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


BY_HAND = [
    result(1, "yes", "yes", cluster="Confucian", axis="Etiquette", subcategory="eating"),
    result(2, "yes", "no", cluster="Confucian", axis="Etiquette", subcategory="visiting"),
    result(3, "no", "no", cluster="English Speaking", axis="Etiquette", subcategory="eating"),
    result(4, "neutral", None, "unreadable", cluster="English Speaking"),
    result(5, "neutral", None, "refused"),
    result(6, "neutral", None, "error"),
    result(1, "yes", "neutral", condition="country", cluster="Confucian"),
]


def test_tables_by_hand() -> None:
    found = {
        name: table(benchmark, BY_HAND, f"normad-{name}")
        for name in ("contexts", "labels", "clusters", "subcategories", "confusion", "set-clusters")
    }
    none = found["contexts"]["none",]
    counts = [none[name] for name in ("asked", "answered", "refused", "unreadable", "error")]
    assert counts == [6, 3, 1, 1, 1]
    assert value(none["accuracy"]) == pytest.approx(2 / 5)
    # Recall: yes 1 of 2, no 1 of 1, neutral 0 of 2.
    assert value(none["recall"]) == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert none["rows not asked"] == 0
    assert found["contexts"]["country",]["rows not asked"] == 5
    yes, neutral = found["labels"]["none", "yes"], found["labels"]["none", "neutral"]
    assert (value(yes["recall"]), value(yes["precision"])) == (0.5, 1.0)
    assert value(yes["F1"]) == pytest.approx(2 * 1 / (2 + 1))
    assert (neutral["asked"], neutral["error"]) == (3, 1)
    assert (value(neutral["recall"]), value(neutral["precision"])) == (0.0, None)
    clusters = found["clusters"]
    assert [one for _, one in clusters if _ == "none"] == [
        "Confucian",
        "English Speaking",
        "(no cluster)",
    ]
    assert value(clusters["none", "Confucian"]["accuracy"]) == 0.5
    assert value(found["subcategories"]["none", "Etiquette", "eating"]["accuracy"]) == 1.0
    assert [found["confusion"]["none", "yes"][label] for label in LABELS] == [1, 1, 0]
    # The set's own table counts each row once.
    assert found["set-clusters"]["Confucian",]["all"] == 2
    assert found["set-clusters"]["Total",]["all"] == 6


def test_a_model_that_is_never_readable_has_the_figures_of_appendix_c() -> None:
    """Rows 0.1, 0.33, 0.16 there: on the full set (815, 875, 943) all answers are neutral."""
    golds = ["neutral"] * 815 + ["no"] * 875 + ["yes"] * 943
    results = [result(row, gold, None, "unreadable") for row, gold in enumerate(golds)]
    cells = table(benchmark, results, "normad-released-rule")["none",]
    found = [round(value(cells[name]) or 0, 2) for name in ("precision", "recall", "F1")]
    assert found == [0.10, 0.33, 0.16]
    plain = table(benchmark, results, "normad-contexts")["none",]
    assert (value(plain["accuracy"]), value(plain["precision"])) == (0.0, None)


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
    cells = table(benchmark, results, "normad-released-rule")["none",]
    assert value(cells["accuracy"]) == pytest.approx(accuracy_score(golds, answers))
    assert value(cells["precision"]) == pytest.approx(precision)
    assert value(cells["F1"]) == pytest.approx(f1)
