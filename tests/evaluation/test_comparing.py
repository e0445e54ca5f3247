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
from judge.evaluation.comparing import Compared, Comparison, compare
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


def row(found: Comparison, series: str, part: str | None = None) -> Compared:
    (only,) = [one for one in found.rows if (one.series, one.part) == (series, part)]
    return only


def scores(*values: float | None, condition: str = "country") -> list[Line]:
    return [answer(f"n{number}", value, condition) for number, value in enumerate(values)]


# ------------------------------------------------------------------ answers


def test_by_hand(compared: Any) -> None:
    a = scores(1, 1, 0, 0, 0, 0, 0, 0)
    b = scores(1, 0, 1, 1, 1, 1, 1, 0)
    found = compared(a, reversed(b))
    (only,) = found.rows
    assert (found.both, found.only_a, found.only_b) == (8, 0, 0)
    assert (only.series, only.first.value, only.second.value) == ("country", 0.25, 0.75)
    assert only.difference.value == 0.5
    assert (only.difference.n, only.difference.of, only.clusters) == (8, 8, 8)
    # One to five: 2 * (1 + 6) / 64; alone in its family.
    assert only.test is not None
    assert (only.test.only_first, only.test.only_second) == (1, 5)
    assert only.test.p == only.adjusted == pytest.approx(14 / 64)
    expected = mean_estimate([0, -1, 1, 1, 1, 1, 1, 0], Resamples(range(8), draws=200))
    assert (only.difference.low, only.difference.high) == (expected.low, expected.high)
    assert found.as_json()["rows"][0]["mcnemar"] == {
        "only_a_right": 1,
        "only_b_right": 5,
        "p": only.test.p,
        "p_holm": only.adjusted,
    }


def test_only_items_of_both_and_why_others_are_left_out(compared: Any) -> None:
    a = [
        answer("n0", 1),
        answer("n1", None, outcome="refused"),
        answer("n2", None, outcome="error"),
        answer("n3", None, gold=None),
        answer("n4", None, outcome="refused", gold=None),
        answer("n5", 1),
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
        answer("only-b", 1),
        answer("only-b2", 1),
    ]
    found = compared(a, b)
    (only,) = found.rows
    assert (found.both, found.only_a, found.only_b, found.faulty) == (6, 1, 2, (1, 0))
    assert (only.difference.n, only.difference.of) == (3, 6)
    assert (only.first.value, only.second.value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert only.left_out == {"error in A and error in B": 1, "no score in A and no score in B": 2}
    assert only.test is not None
    assert (only.test.only_first, only.test.only_second) == (1, 1)


def test_conditions_apart_together_and_adjusted(compared: Any) -> None:
    def run(*shares: str) -> list[Line]:
        named = zip(("country", "value"), shares, strict=True)
        return [line for name, told in named for line in scores(*map(float, told), condition=name)]

    found = compared(run("000000", "010101"), run("111111", "110101"))
    country, value, overall = found.rows
    assert [one.series for one in found.rows] == ["country", "value", "overall"]
    assert country.test is not None and value.test is not None and overall.test is not None
    assert (country.test.p, value.test.p) == (2 / 64, 1.0)
    assert (country.adjusted, value.adjusted) == (4 / 64, 1.0)
    # One test that sums the others up: 7 to 0, of the same six rows.
    assert (overall.test.p, overall.adjusted) == (2 / 128, None)
    assert (overall.difference.n, overall.clusters) == (12, 6)
    assert overall.difference.value == pytest.approx(7 / 12)


def test_rows_are_drawn_together(compared: Any) -> None:
    a = [answer(f"n{n}", 0, row=f"r{n // 5}") for n in range(40)]
    b = [answer(f"n{n}", n // 5 % 2, row=f"r{n // 5}") for n in range(40)]
    together = compared(a, b).rows[0]
    for line in (*a, *b):
        del line["row"]
    apart = compared(a, b).rows[0]
    assert (together.clusters, apart.clusters) == (8, 40)
    widths = [one.difference.high - one.difference.low for one in (together, apart)]
    assert widths[0] > 1.5 * widths[1]


def test_slices_and_their_own_family(compared: Any) -> None:
    country = {0: "China", 1: "India", 2: None}

    def run(told: str) -> list[Line]:
        return [answer(f"n{n}", float(s), country=country[n % 3]) for n, s in enumerate(told)]

    found = compared(run("000" * 6), run("110" * 6), by="country")
    assert [(one.series, one.part) for one in found.rows] == [
        ("country", None),
        ("country", "(none)"),
        ("country", "China"),
        ("country", "India"),
    ]
    assert row(found, "country").adjusted == 2 / 2**12
    parts = [row(found, "country", name) for name in ("(none)", "China", "India")]
    assert [one.difference.value for one in parts] == [0, 1, 1]
    raw = [one.test.p for one in parts if one.test is not None]
    assert [one.adjusted for one in parts] == holm(raw) == [1.0, 6 / 64, 6 / 64]
    with pytest.raises(UsageError, match="--by continent: no item has"):
        compared(run("0"), run("0"), by="continent")


def test_shares_get_no_mcnemar(compared: Any) -> None:
    only = compared(scores(0.5, 1, 0), scores(1, 1, 0)).rows[0]
    assert only.test is only.adjusted is None
    assert only.difference.value == pytest.approx(0.5 / 3)


def test_a_condition_that_nobody_graded(compared: Any) -> None:
    """A refusal is not a wrong answer where no answer was held against anything."""
    a = [answer("n0", None), answer("n1", None, outcome="refused")]
    b = [answer("n0", 1), answer("n1", 1)]
    (only,) = compared(a, b).rows
    assert (only.difference.value, only.difference.n, only.test) == (None, 0, None)
    assert only.left_out == {"no score in A": 2}


def test_a_condition_of_one_run(compared: Any) -> None:
    a = [*scores(1, 0), *scores(1, 1, condition="value")]
    found = compared(a, scores(1, 1))
    assert [one.series for one in found.rows] == ["country"]
    assert found.lone == {"value": "A"}
    assert (found.both, found.only_a) == (2, 2)


def test_a_run_with_itself(compared: Any) -> None:
    lines = scores(1, 0, 1)
    only = compared(lines, lines).rows[0]
    assert (only.difference.value, only.difference.low, only.difference.high) == (0.0, None, None)
    assert only.test is not None
    assert only.test.p == 1.0


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=12))
def test_the_other_way_round_it_is_the_opposite(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    a = write(folder / "a.jsonl", scores(*(one for one, _ in pairs)))
    b = write(folder / "b.jsonl", scores(*(other for _, other in pairs)))
    there, back = (compare(*run, draws=20).rows[0] for run in ((a, b), (b, a)))
    assert there.difference.value == -(back.difference.value or 0.0)
    assert there.test is not None and back.test is not None
    assert there.test.p == back.test.p
    assert there.test.only_first == back.test.only_second


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
    assert [one.series for one in found.rows] == ["record", "check relevance", "check leakage"]
    whole = row(found, "record")
    assert whole.left_out == {"abstain in A": 1}
    assert (whole.difference.n, whole.difference.of) == (3, 4)
    assert whole.difference.value == pytest.approx(1 / 3)
    assert whole.adjusted is None
    # Of a check that was made again the last verdict counts.
    relevance = row(found, "check relevance")
    assert (relevance.first.value, relevance.second.value) == (0.75, 0.75)
    leakage = row(found, "check leakage")
    assert leakage.left_out == {"abstain in A": 1, "skipped in A": 1}
    assert (leakage.test and leakage.test.only_second, leakage.adjusted) == (1, 1.0)


def test_records_are_known_by_id_else_by_content_before_edits(compared: Any) -> None:
    edited = record("pass", story="New.", judge={"original": {"story": "Old."}})
    plain = record("fail", story="Old.")
    named = [record("pass", id="x", story="One."), record("fail", id="x", story="Two.")]
    same = record("pass", id="y", story="Three.")
    found = compared([edited, named[0], same], [plain, named[1], same])
    assert (found.both, found.changed) == (3, 1)
    assert row(found, "record").difference.value == pytest.approx(-2 / 3)


def test_the_same_record_twice(compared: Any) -> None:
    a = [record("pass", story="S."), record("fail", story="S.")]
    b = [record("pass", story="S."), record("pass", story="S."), record("pass", story="S.")]
    found = compared(a, b)
    assert (found.both, found.only_a, found.only_b) == (2, 0, 1)
    assert row(found, "record").test.only_second == 1  # type: ignore[union-attr]


def test_recall_of_extractions(compared: Any) -> None:
    def run(*recalls: tuple[float | None, int]) -> list[Line]:
        return [
            record(
                "pass",
                id=str(number),
                judge={"extraction": {"recall": recall, "over": over, "of": 2}},
            )
            for number, (recall, over) in enumerate(recalls)
        ]

    found = compared(run((0.5, 2), (0.75, 2), (None, 0)), run((1.0, 2), (0.5, 1), (1.0, 2)))
    recall = row(found, "recall")
    assert (recall.difference.value, recall.difference.n) == (0.5, 1)
    assert recall.left_out == {"no score in B": 1, "no score in A": 1}


def test_a_check_of_one_run_and_one_that_a_record_lacks(compared: Any) -> None:
    a = [record("pass", ("x", "pass"), id="1"), record("pass", ("x", "pass"), id="2")]
    b = [record("pass", ("x", "pass"), ("y", "pass"), id="1"), record("pass", id="2")]
    found = compared(a, b)
    assert found.lone == {"check y": "B"}
    assert row(found, "check x").left_out == {"not there in B": 1}


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
        (scores(1), [{"judge": {"verdict": "error", "error": {}}}], "holds no item"),
        (
            scores(1),
            [answer("n0", 1), answer("n0", 0)],
            "line 2: item n0/country .* line 1 already",
        ),
        (scores(1), [answer("n0", 1), record("pass", id="1")], "line 2: is of judge validate"),
        (scores(1), [answer("n0", 7)], "line 1: score 7 is no number from 0 to 1"),
        (scores(1), [answer("n0", 1, outcome="lost")], "outcome 'lost' is none of answered"),
        (scores(1), [], "holds no item"),
    ],
)
def test_what_cannot_be_compared(compared: Any, a: list[Line], b: list[Line], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        compared(a, b)


def test_files_that_are_not_there_or_torn(tmp_path: Path) -> None:
    there = write(tmp_path / "a.jsonl", scores(1))
    with pytest.raises(UsageError, match="does not exist"):
        compare(there, str(tmp_path / "b.jsonl"))
    torn = tmp_path / "torn.jsonl"
    torn.write_text(json.dumps(scores(1)[0]) + "\n{torn\n")
    with pytest.raises(UsageError, match=r"torn\.jsonl, line 2"):
        compare(there, str(torn))
    with pytest.raises(UsageError, match="one run, not both"):
        compare("-", "-")
