"""NormAd's rows, contexts and answers; its tables by hand and against the paper's own figures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from judge.papers.countries import country_name
from judge.papers.normad import (
    CLUSTERS,
    benchmark,
    cluster_of,
)
from judge.papers.tasks import MeasuredAnswer
from judge.verdict import AnswerOutcome

from .examinee import Examined, ask, asked, items, problems, public, table, value, written

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


def test_a_row_is_passed_over_where_it_lacks_what_the_context_shows(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [SHORT, {**SHORT, "ID": "8", "Country": " "}])
    found = asked(items(benchmark, path))
    assert list(found) == ["7/none", "7/country", "7/rule-of-thumb", "8/none", "8/rule-of-thumb"]
    assert found["8/none"]["cluster"] is None
    assert items(benchmark, path, conditions=["country+value"]) == []


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


def test_a_row_that_cannot_be_asked_is_a_problem(tmp_path: Path) -> None:
    rows = [
        {**FULL, "ID": "8"},
        {**FULL, "Gold Label": ""},
        {**FULL, "ID": "9", "Gold Label": "maybe"},
    ]
    found = items(benchmark, written(tmp_path / "a.csv", rows))
    assert len(asked(found[:4])) == 4
    empty, other = problems(found[4:])
    assert "must be yes, no or neutral, not empty" in empty
    assert "field 'Gold Label' must be yes, no or neutral, not 'maybe'" in other


def test_clusters_are_the_authors() -> None:
    assert len(CLUSTERS) == 8
    with public("normad/iw_clusters.csv").open(encoding="utf-8", newline="") as file:
        theirs = {row["country"]: row["cluster"] for row in csv.DictReader(file)}
    assert {country: cluster_of(country) for country in theirs} == theirs
    assert len(theirs) == 75


def test_spelling_does_not_matter() -> None:
    for written_, cluster in (
        ("South Korea", "Confucian"),
        (" Tu\u0308rkiye ", "African-Islamic"),
        ("T\u00dcRK\u0130YE", "African-Islamic"),
        ("Turkey", "African-Islamic"),
        ("the United States", "English Speaking"),
        ("Bosnia & Herzegovina", "Orthodox Europe"),
        ("atlantis", None),
    ):
        assert cluster_of(written_) == cluster
    names = ("bosnia_and_herzegovina", "united_states_of_america", "Republic of Korea", "us")
    told = ["Bosnia and Herzegovina", "United States of America", "Republic of Korea", "US"]
    assert [*map(country_name, names)] == told


def result(
    row: int,
    gold: str,
    given: str | None,
    outcome: str = "answered",
    condition: str = "none",
    **more: str | None,
) -> MeasuredAnswer:
    fields = {"id": f"{row}/{condition}", "condition": condition, "row": str(row), "gold": gold}
    score = float(gold == given) if outcome == "answered" else None
    return MeasuredAnswer({**fields, **more}, AnswerOutcome(outcome), given, score)


BY_HAND = [
    result(1, "yes", "yes", cluster="Confucian"),
    result(2, "yes", "no", cluster="Confucian"),
    result(3, "no", "no", cluster="English Speaking"),
    result(4, "neutral", None, "unreadable", cluster="English Speaking"),
    result(5, "neutral", None, "refused"),
    result(6, "neutral", None, "error"),
    result(1, "yes", "neutral", condition="country", cluster="Confucian"),
]


def test_tables_by_hand() -> None:
    found = {
        name: table(benchmark, BY_HAND, f"normad-{name}")
        for name in ("contexts", "labels", "clusters")
    }
    none = found["contexts"]["none",]
    counts = [none[name] for name in ("asked", "answered", "refused", "unreadable", "error")]
    assert counts == [6, 3, 1, 1, 1]
    assert value(none["accuracy"]) == pytest.approx(2 / 5)
    # F1: yes 2 * 1 / (1 + 2), no 2 * 1 / (2 + 1), neutral 0.
    assert value(none["F1"]) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert none["rows not asked"] == 0
    assert found["contexts"]["country",]["rows not asked"] == 5
    yes, neutral = found["labels"]["none", "yes"], found["labels"]["none", "neutral"]
    assert (value(yes["accuracy"]), value(neutral["accuracy"])) == (0.5, 0.0)
    assert (neutral["asked"], neutral["error"]) == (3, 1)
    clusters = found["clusters"]
    assert [one for _, one in clusters if _ == "none"] == [
        "Confucian",
        "English Speaking",
        "(not said)",
    ]
    assert value(clusters["none", "Confucian"]["accuracy"]) == 0.5


def test_a_discarded_line_leaves_its_id_to_the_one_that_replaced_it(tmp_path: Path) -> None:
    row = {"story": "Ann bowed.", "rule_of_thumb": "Bow.", "label": "yes"}
    discarded: dict[str, Any] = {"id": "7", **row, "judge": {"verdict": "fail"}}
    again: dict[str, Any] = {"id": "7", **row, "judge": {"verdict": "pass"}}
    first = written(tmp_path / "first.jsonl", [discarded, again])
    assert list(asked(items(benchmark, first, conditions=["none"]))) == ["7/none"]
    (tmp_path / "both").mkdir()
    second = written(tmp_path / "both" / "second.jsonl", [discarded])
    assert list(asked(items(benchmark, second, first, conditions=["none"]))) == ["7/none"]
    twice = items(benchmark, written(tmp_path / "twice.jsonl", [again, again]), conditions=["none"])
    assert problems(twice) == ["id '7' was already on line 1 of twice.jsonl"]
