"""Two runs compared: pairing, what is left out, differences and tests by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.evaluation.comparing import Comparison, compare
from judge.stats.bootstrap import Resamples, mean_estimate
from judge.stats.significance import holm

Line = dict[str, Any]


def answer(id: str, score: float | None, condition: str = "country", **more: Any) -> Line:
    """A line of judge evaluate, as its runner writes it."""
    outcome = more.pop("outcome", "answered")
    told = {
        "verdict": "pass" if score == 1 else "fail",
        "benchmark": more.pop("benchmark", "normad"),
        "condition": condition,
        "outcome": outcome,
        "answer": "yes",
        "score": score,
    }
    own = {"gold": "yes", "row": id, **more}
    return {"id": f"{id}/{condition}", "condition": condition, **own, "judge": told}


def record(verdict: str, *checks: tuple[str, str], judge: Line | None = None, **own: Any) -> Line:
    """A line of judge validate."""
    told = {
        "verdict": verdict,
        "workflow": "norm",
        "checks": [{"check": name, "verdict": given} for name, given in checks],
        **(judge or {}),
    }
    return {**own, "judge": told}


def write(path: Path, lines: Iterable[Line]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    def run(first: Iterable[Line], second: Iterable[Line], **options: Any) -> Comparison:
        paths = [write(tmp_path / "a.jsonl", first), write(tmp_path / "b.jsonl", second)]
        return compare(*paths, **{"draws": 200, **options})

    return run


def row(found: Comparison, *labels: str) -> Any:
    """The cells of a row, estimates among them."""
    (only,) = [one for one in found.table.rows if one.labels == labels]
    return only.cells


def labels(found: Comparison) -> list[tuple[str, ...]]:
    return [one.labels for one in found.table.rows]


def values(cells: Any) -> Any:
    return cells["A"].value, cells["B"].value, cells["B - A"].value


def scores(*values: float | None, condition: str = "country") -> list[Line]:
    return [answer(f"n{number}", value, condition) for number, value in enumerate(values)]


# ------------------------------------------------------------------ answers


def test_by_hand(compared: Any) -> None:
    a = scores(1, 1, 0, 0, 0, 0, 0, 0)
    b = scores(1, 0, 1, 1, 1, 1, 1, 0)
    found = compared(a, reversed(b))
    only = row(found, "country")
    assert (found.both, found.only_a, found.only_b) == (8, 0, 0)
    assert values(only) == (0.25, 0.75, 0.5)
    assert (only["pairs"], only["of"]) == (8, 8)
    # One to five: 2 * (1 + 6) / 64; alone in its family.
    assert (only["A, not B"], only["B, not A"]) == (1, 5)
    assert float(only["McNemar p"]) == float(only["Holm p"]) == pytest.approx(14 / 64, abs=1e-3)
    expected = mean_estimate([0, -1, 1, 1, 1, 1, 1, 0], Resamples(range(8), draws=200))
    assert (only["B - A"].low, only["B - A"].high) == (expected.low, expected.high)
    assert found.as_json()["rows"][0]["B - A"]["value"] == 0.5


def test_only_items_of_both_and_why_others_are_left_out(compared: Any) -> None:
    a = [
        answer("n0", 1),
        answer("n1", None, outcome="refused"),
        answer("n2", None, outcome="error"),
        answer("n3", None, gold=None),
        answer("n4", None, outcome="refused", gold=None),
        answer("n5", 1),
        answer("n6", None),
        answer("only-a", 1),
        {"raw": "{torn", "judge": {"verdict": "error", "error": {"type": "bad-input"}}},
    ]
    b = [
        answer("n0", 1),
        answer("n1", 1),
        answer("n2", None, outcome="error"),
        answer("n3", None, gold=None),
        answer("n4", None, outcome="unreadable", gold=None),
        answer("n5", None, outcome="unreadable"),
        answer("n6", 1),
        answer("only-b", 1),
        answer("only-b2", 1),
    ]
    found = compared(a, b)
    only = row(found, "country")
    assert (found.both, found.only_a, found.only_b) == (7, 1, 2)
    assert (only["pairs"], only["of"]) == (3, 7)
    assert values(only)[:2] == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (only["A, not B"], only["B, not A"]) == (1, 1)
    assert found.notes == [
        "1 lines of A are about input that could not be read: no items",
        "country: 4 of 7 pairs are left out: 1 error in A and error in B, "
        # A line without a score is not scored; it is no wrong answer.
        "2 no score in A and no score in B, 1 no score in A",
    ]


def test_conditions_apart_together_and_adjusted(compared: Any) -> None:
    def run(*shares: str) -> list[Line]:
        named = zip(("country", "value"), shares, strict=True)
        return [line for name, told in named for line in scores(*map(float, told), condition=name)]

    found = compared(run("000000", "010101"), run("111111", "110101"))
    assert labels(found) == [("country",), ("value",), ("overall",)]
    country, value, overall = (row(found, name) for name in ("country", "value", "overall"))
    assert float(country["McNemar p"]) == pytest.approx(2 / 64, abs=1e-4)
    assert float(country["Holm p"]) == 4 / 64
    assert (value["McNemar p"], value["Holm p"]) == ("1", "1")
    # One test that sums the others up: 7 to 0, of the same six rows.
    assert float(overall["McNemar p"]) == pytest.approx(2 / 128, abs=1e-4)
    assert "Holm p" not in overall and overall["pairs"] == 12
    assert values(overall)[2] == pytest.approx(7 / 12)
    assert "some items share a row" in found.notes[-1]


def test_slices_and_their_own_family(compared: Any) -> None:
    country = {0: "China", 1: "India", 2: None}

    def run(told: str) -> list[Line]:
        return [answer(f"n{n}", float(s), country=country[n % 3]) for n, s in enumerate(told)]

    found = compared(run("000" * 6), run("110" * 6), by="country")
    parts = ["(not said)", "China", "India"]
    assert labels(found) == [("country", "all"), *(("country", part) for part in parts)]
    assert float(row(found, "country", "all")["Holm p"]) == pytest.approx(2 / 2**12, abs=1e-5)
    cells = [row(found, "country", part) for part in parts]
    assert [values(one)[2] for one in cells] == [0, 1, 1]
    adjusted = holm([float(one["McNemar p"]) for one in cells])
    assert [float(one["Holm p"]) for one in cells] == pytest.approx(adjusted, abs=1e-3)
    with pytest.raises(UsageError, match="--by continent: no item has"):
        compared(run("0"), run("0"), by="continent")


def test_a_condition_that_was_not_graded(compared: Any) -> None:
    """A refusal is not a wrong answer where no answer was held against anything."""
    a = [answer("n0", None), answer("n1", None, outcome="refused")]
    found = compared(a, [answer("n0", 1), answer("n1", 1)])
    only = row(found, "country")
    assert (values(only)[2], only["pairs"]) == (None, 0)
    assert found.notes == ["country: 2 of 2 pairs are left out: 2 no score in A"]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=12))
def test_the_other_way_round_it_is_the_opposite(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    a = write(folder / "a.jsonl", scores(*(one for one, _ in pairs)))
    b = write(folder / "b.jsonl", scores(*(other for _, other in pairs)))
    there, back = (row(compare(*run, draws=20), "country") for run in ((a, b), (b, a)))
    assert values(there)[2] == -(values(back)[2] or 0.0)
    assert there["McNemar p"] == back["McNemar p"]
    assert there["A, not B"] == back["B, not A"]


# ------------------------------------------------------------------ records


def test_records_and_checks(compared: Any) -> None:
    checks: Mapping[str, str] = {"p": "pass", "f": "fail", "a": "abstain", "s": "skipped"}

    def run(*told: str) -> list[Line]:
        return [
            record(
                checks[one[0]],
                ("relevance", "fail"),
                ("relevance", checks[one[1]]),
                ("leakage", checks[one[2]]),
                story=f"Story {number}.",
            )
            for number, one in enumerate(told)
        ]

    found = compared(run("ppp", "fpf", "apa", "ffs"), run("ppp", "ppp", "ppp", "fff"))
    assert labels(found) == [("record",), ("check relevance",), ("check leakage",)]
    whole = row(found, "record")
    assert (whole["pairs"], whole["of"]) == (3, 4)
    assert values(whole)[2] == pytest.approx(1 / 3) and "Holm p" not in whole
    # Of a check that was made again the last verdict counts.
    assert values(row(found, "check relevance"))[:2] == (0.75, 0.75)
    leakage = row(found, "check leakage")
    assert (leakage["B, not A"], leakage["Holm p"]) == (1, "1")
    assert "check leakage: 2 of 4 pairs are left out: 1 abstain in A, 1 skipped in A" in found.notes


def test_records_are_known_by_id_else_by_content_before_edits(compared: Any) -> None:
    edited = record("pass", story="New.", judge={"original": {"story": "Old."}})
    plain = record("fail", story="Old.")
    named = [record("pass", id="x", story="One."), record("fail", id="x", story="Two.")]
    same = [record("pass", story="S."), record("fail", story="S.")]
    found = compared([edited, named[0], *same], [plain, named[1], same[0], same[0], same[0]])
    assert (found.both, found.only_a, found.only_b) == (4, 0, 1)
    assert values(row(found, "record"))[2] == pytest.approx(-1 / 4)


def test_recall_of_extractions_and_checks_that_a_run_lacks(compared: Any) -> None:
    def run(*recalls: tuple[float | None, int]) -> list[Line]:
        return [
            record(
                "pass",
                id=str(number),
                judge={"extraction": {"recall": recall, "over": over, "of": 2}},
            )
            for number, (recall, over) in enumerate(recalls)
        ]

    a, b = run((0.5, 2), (0.75, 2), (None, 0)), run((1.0, 2), (0.5, 1), (1.0, 2))
    a[0]["judge"]["checks"] = [{"check": "x", "verdict": "pass"}]
    found = compared(a, b)
    recall = row(found, "recall")
    assert (values(recall)[2], recall["pairs"]) == (0.5, 1)
    assert "check x is only in A" in found.notes
    left = "recall: 2 of 3 pairs are left out: 1 no score in B, 1 no score in A"
    assert left in found.notes


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (scores(1), [record("pass", id="n0")], "is of judge evaluate, .* of judge validate"),
        (scores(1), [answer("n0", 1, benchmark="cali")], "another benchmark each: normad and cali"),
        (
            [record("pass", id="1")],
            [record("pass", id="1", judge={"workflow": "story"})],
            "another workflow each: norm and story",
        ),
        (scores(1), [answer("m", 1)], "no item is in both"),
        (scores(1), [answer("n0", 1, gold="no")], r"item n0/country .*'\"yes\"'.*'\"no\"'.*line 1"),
        (scores(1), [{"id": "n0"}], "b.jsonl, line 1: field 'judge' holds no verdict"),
        (scores(1), [{"judge": {"verdict": "error", "error": {}}}], "holds no answers"),
        (scores(1), [answer("n0", 1), answer("n0", 0)], "line 2: item n0/country .* line 1"),
        (scores(1), [answer("n0", 1), record("pass", id="1")], "line 2: is of judge validate"),
        (scores(1), [answer("n0", 7)], "line 1: an answer has an id"),
        (scores(1), [answer("n0", 1, outcome="lost")], "line 1: an answer has an id"),
        (scores(1), [], "holds no answers"),
    ],
)
def test_runs_that_cannot_be_compared(
    compared: Any, a: list[Line], b: list[Line], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        compared(a, b)
