"""Two runs compared: pairing, left-out items, differences and tests by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.papers.results import result_of
from judge.records import lines
from judge.report.compare import Comparison, compare

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
    def run(first: Iterable[Line], second: Iterable[Line]) -> Comparison:
        return compare([write(tmp_path / "a.jsonl", first), write(tmp_path / "b.jsonl", second)])

    return run


def test_an_id_that_reads_as_a_repeated_one_is_another_item(compared: Any) -> None:
    """In both orders, and where several are so."""
    ids = ["a", "a", "a (2)", "a (2)", "a (2) (1)"]
    first = [record("pass", id=name, text=str(n)) for n, name in enumerate(ids)]
    second = [*first[:2], record("fail", id="a (2)", text="2"), *first[3:]]
    found = compared(first, [second[n] for n in (4, 2, 3, 0, 1)])
    assert found.items == {"all": 5, "A": 5, "B": 5}
    assert row(found, "record")["B - A"].value == pytest.approx(-0.2)
    assert row(found, "record")["B"].n == 5


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ({"id": 0}, None),
        ({"ID": "q0"}, None),  # in any spelling
        ({"qid": "q0"}, "q0"),  # of --id qid
        ({"id": "q0"}, "PLACE"),  # a repeated id: the name is a place, which differs by file
    ],
)
def test_records_of_one_id_are_paired_whatever_their_texts(
    compared: Any, own: Line, name: str | None
) -> None:
    def run(file: str, *verdicts: str) -> list[Line]:
        named = {"name": f"{file}.jsonl:1" if name == "PLACE" else name} if name else {}
        lines = [record(given, judge=named, **own, answer=file + given) for given in verdicts]
        return [*lines, record("pass", judge={"name": f"{file}.jsonl:9"}, answer="both")]

    found = compared(run("a", "pass", "pass"), run("b", "fail", "pass"))
    assert found.items == {"all": 3, "A": 3, "B": 3}
    assert row(found, "record")["B - A"].value == pytest.approx(-1 / 3)


@pytest.mark.parametrize("name", [None, "qid"])
def test_records_of_one_id_are_paired_by_content_in_any_order(
    compared: Any, name: str | None
) -> None:
    """The same verdicts in another order never differ, whether `id` or `--id` repeats."""
    texts = {"one": "pass", "two": "fail", "three": "pass"}

    def run(order: Iterable[str]) -> list[Line]:
        lines = []
        for place, text in enumerate(order, 1):
            called = f"f.jsonl:{place}" if place > 1 else name and "a"
            own = {name or "id": "a", "text": text}
            lines.append(record(texts[text], judge={"name": called} if called else {}, **own))
        return lines

    found = compared(run(texts), run(["two", "three", "one"]))
    assert found.items == {"all": 3, "A": 3, "B": 3}
    cells = row(found, "record")
    assert (cells["A, not B"], cells["B, not A"], cells["B - A"].value) == (0, 0, 0.0)


def row(found: Comparison, *labels: str) -> Any:
    """The cells of a row, estimates among them."""
    (only,) = [one for one in found.tables[0].rows if one.labels == labels]
    return only.cells


def labels(found: Comparison) -> list[tuple[str, ...]]:
    return [one.labels for one in found.tables[0].rows]


def values(cells: Any) -> Any:
    return cells["A"].value, cells["B"].value, cells["B - A"].value


def scores(*values: float | None, condition: str = "country") -> list[Line]:
    return [answer(f"n{number}", value, condition) for number, value in enumerate(values)]


def test_only_items_of_both_and_why_others_are_left_out(compared: Any) -> None:
    torn = {"raw": "{torn", "judge": {"verdict": "error", "error": {"type": "bad-input"}}}
    torn["judge"]["name"] = "n0/country"
    lost: Line = {"outcome": "error"}
    ungraded: Line = {"gold": None}
    # Score and more of each item, in A and in B.
    told: list[tuple[tuple[float | None, Line], tuple[float | None, Line]]] = [
        ((1, {}), (1, {})),
        ((None, {"outcome": "refused"}), (1, {})),
        ((None, lost), (None, lost)),
        ((None, ungraded), (None, ungraded)),
        ((None, {"outcome": "refused", **ungraded}), (None, {"outcome": "unreadable", **ungraded})),
        ((1, {}), (None, {"outcome": "unreadable"})),
        ((None, {}), (1, {})),
    ]
    first = [answer(f"n{n}", score, **more) for n, ((score, more), _) in enumerate(told)]
    second = [answer(f"n{n}", score, **more) for n, (_, (score, more)) in enumerate(told)]
    a = [torn, *first, answer("only-a", 1)]
    b = [*second, answer("only-b", 1), answer("only-b2", 1)]
    found = compared(a, b)
    only = row(found, "country")
    assert found.items == {"all": 7, "A": 8, "B": 9}
    assert (only["pairs"], only["of"]) == (3, 7)
    assert values(only)[:2] == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (only["A, not B"], only["B, not A"]) == (1, 1)
    assert found.notes == [
        "lines of A about input that could not be read, no items: 1",
        "country: 4 of 7 pairs are left out: 1 error in A and B, "
        # A line without a score is not scored; it is no wrong answer.
        "2 no score in A and B, 1 no score in A",
    ]


def test_conditions_apart_together_and_adjusted(compared: Any) -> None:
    def run(*shares: str) -> list[Line]:
        named = zip(("country", "value"), shares, strict=True)
        return [line for name, told in named for line in scores(*map(float, told), condition=name)]

    found = compared(run("000000", "010101"), run("111111", "110101"))
    assert labels(found) == [("country",), ("value",), ("overall",)]
    country, value, overall = (row(found, name) for name in ("country", "value", "overall"))
    assert country["McNemar p B"] == 2 / 64
    assert country["Holm p B"] == 4 / 64
    assert (value["McNemar p B"], value["Holm p B"]) == (1, 1)
    # One test that sums the others up: 7 to 0, of the same six rows.
    assert overall["McNemar p B"] == 2 / 128
    assert "Holm p B" not in overall and overall["pairs"] == 12
    assert values(overall)[2] == pytest.approx(7 / 12)


def test_means_of_nine_rows_have_no_interval_and_of_ten_one(compared: Any) -> None:
    for rows in (9, 10):
        first, second = [0.6, 0.7] * 5, [0.7, 0.9] * 5
        cells = row(compared(scores(*first[:rows]), scores(*second[:rows])), "country")
        bounded = [cells[column].low is not None for column in ("A", "B", "B - A")]
        assert bounded == [rows == 10] * 3


def test_holms_p_is_over_all_strata(tmp_path: Path) -> None:
    """Six differences in one of four strata, none in the others: four times 2 / 64."""
    a, b = (
        write(
            tmp_path / name,
            [
                record(
                    "pass", ("polite", verdict if n < 6 else "pass"), id=str(n), city=str(n // 6)
                )
                for n in range(24)
            ],
        )
        for name, verdict in (("a", "fail"), ("b", "pass"))
    )
    rows = {row.labels: row.cells for row in compare([a, b], by=["city"]).tables[1].rows}
    assert [labels[1] for labels in rows] == [*"0123"] * 2, "a check's strata are together"
    assert rows["check polite", "0"]["McNemar p B"] == 2 / 64
    assert rows["check polite", "0"]["Holm p B"] == 4 * 2 / 64
    assert "Holm p B" not in rows["record", "0"]


def test_rows_as_json_keep_the_values_of_a_field_with_the_name_of_a_column(tmp_path: Path) -> None:
    rows = [record("pass", ("polite", "pass"), id=str(n), of=f"s{n % 2}") for n in range(4)]
    found = compare([write(tmp_path / "a", rows)] * 2, by=["of"]).tables[1].as_json()
    cells = [(row["by of"], row["of"], row["McNemar p B"]) for row in found["rows"]]
    assert (found["heads"][1], cells) == ("by of", [("s0", 2, 1.0), ("s1", 2, 1.0)] * 2)


def test_a_stale_score_of_an_unread_answer_is_ignored() -> None:
    """The table by country would take it for a right answer."""
    line = lines.Line.of(answer("n0", 1.0, outcome="unreadable"))
    stale = line and result_of(line)
    assert stale is not None and stale.score is None


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
    assert values(whole)[2] == pytest.approx(1 / 3) and "Holm p B" not in whole
    # Of a check that was made again the last verdict counts.
    assert values(row(found, "check relevance"))[:2] == (0.75, 0.75)
    leakage = row(found, "check leakage")
    assert (leakage["B, not A"], leakage["Holm p B"]) == (1, 1)
    assert "check leakage: 2 of 4 pairs are left out: 1 abstain in A, 1 skipped in A" in found.notes


def test_scores_without_a_verdict_are_compared_by_their_means(
    compared: Any, tmp_path: Path
) -> None:
    """Twelve on a scale to 10, one of them without a score in the second run: the differences are
    ten of 2 and one of -9. A thirteenth has a score in neither run."""

    def run(*scores: float | None) -> list[Line]:
        checks = [{"check": "tone", "verdict": "answered", "score": score} for score in scores]
        checks += [{"check": "tone", "verdict": "unreadable"}]
        return [
            record("answered", judge={"checks": [check]}, id=str(n))
            for n, check in enumerate(checks)
        ]

    runs = compared(run(*[4.0] * 10, 9.0, 3.0), run(*[6.0] * 10, 0.0, None))
    assert labels(runs) == [("score of tone",)], "no row without a figure"
    cells = row(runs, "score of tone")
    assert (cells["pairs"], cells["of"]) == (11, 13) and "McNemar p B" not in cells
    assert values(cells) == pytest.approx((49 / 11, 60 / 11, 1))
    assert cells["B - A"].low < 0 < cells["B - A"].high
    why = "2 of 13 pairs are left out: 1 no score in B, 1 unreadable in A and B"
    assert f"score of tone: {why}" in runs.notes
    (panel,) = runs.panels()
    assert panel.title == "score of tone" and not panel.shares, "its axis is not from 0 to 1"


def test_a_repaired_record_is_compared_as_it_came_and_as_it_was_written(compared: Any) -> None:
    repaired = record("pass", id="x", judge={"original_verdict": "fail"})
    found = compared([record("fail", id="x")], [repaired])
    assert labels(found) == [("record",), ("record after repair",)]
    assert values(row(found, "record")) == (0, 0, 0)
    assert values(row(found, "record after repair")) == (0, 1, 1)
    assert "Holm p B" not in row(found, "record after repair"), "no test of its own"
    assert found.notes == [], "there is no row of a check"
    repaired = record("pass", ("tone", "pass"), id="x", judge={"original_verdict": "fail"})
    found = compared([record("fail", ("tone", "fail"), id="x")], [repaired])
    told = "of repaired records, checks are compared by the new text, as record after repair is"
    assert found.notes == [told]


def test_records_are_known_by_id_else_by_content_before_edits(compared: Any) -> None:
    edited = record("pass", story="New.", judge={"original": {"story": "Old."}})
    plain = record("fail", story="Old.")
    named = [record("pass", id="x", story="One."), record("fail", id="x", story="Two.")]
    same = [record("pass", story="S."), record("fail", story="S.")]
    found = compared([edited, named[0], *same], [plain, named[1], same[0], same[0], same[0]])
    assert found.items == {"all": 4, "A": 4, "B": 5}
    assert values(row(found, "record"))[2] == pytest.approx(-1 / 4)


def test_a_record_with_another_text_takes_no_place_of_one_id(compared: Any) -> None:
    """A line put before those of its id moved them all on by one."""
    first = [record("pass", id="a", story="One."), record("fail", id="a", story="Two.")]
    new = record("pass", id="a", story="Three.")
    for second in ([new, *first], [first[0], new, first[1]]):
        for pair in ((first, second), (second, first)):
            found = compared(*pair)
            assert found.items["all"] == 2 and values(row(found, "record")) == (0.5, 0.5, 0)
    other = record("fail", id="a", story="Four.")
    found = compared([*first, other], [new, *first])
    assert found.items["all"] == 3 and values(row(found, "record")) == (1 / 3, 2 / 3, 1 / 3)


def test_three_runs_are_columns_over_the_items_that_all_have_scored(tmp_path: Path) -> None:
    told = {"a": (0, 0, 1, 0, 1, 0, 1), "b": (1, 1, 1, 1, 1, 1, None), "c": (0, 1, 0, 1, 0, 1, 1)}
    runs = [write(tmp_path / name, scores(*marks)) for name, marks in told.items()]
    found = compare(runs)
    assert (found.runs, found.items) == (
        dict(zip("ABC", runs, strict=True)),
        {"all": 7, "A": 7, "B": 7, "C": 7},
    )
    cells = row(found, "country")
    assert (cells["pairs"], cells["of"]) == (6, 7)
    assert [cells[name].value for name in "ABC"] == [2 / 6, 1.0, 0.5]
    assert cells["B - A"].value == pytest.approx(4 / 6)
    # B alone is right four times, A alone never: 2 / 16; C and A differ in 5, three to two.
    assert [cells[f"{name} B"] for name in ("McNemar p", "Holm p")] == [0.125, 0.25]
    assert [cells[f"{name} C"] for name in ("McNemar p", "Holm p")] == [1, 1]
    assert "country: 1 of 7 pairs are left out: 1 no score in B" in found.notes


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (
            scores(1),
            [record("pass", id="n0")],
            "is of benchmark normad, .* of workflow norm",
        ),
        (
            [record("pass", id="1")],
            [record("pass", id="1", judge={"workflow": "story"})],
            "of workflow norm, .* of workflow story",
        ),
        (scores(1), [answer("m", 1)], "no item is in both"),
        (scores(1), [answer("n0", 1, gold="no")], r"n0/country: gold is 'yes' .* 'no' in"),
        (scores(1), [{"judge": {"verdict": "error", "error": {}}}], "holds no answers"),
        (
            scores(1),
            [answer("n0", 1), answer("n0", 0)],
            "line 2: an earlier line has item n0/country",
        ),
        (
            scores(1),
            [{**answer("n0", score), "id": "n0 (2)"} for score in (1, 0)],
            r"line 2: an earlier line has item n0 \(2\)",
        ),
        (
            scores(1),
            [answer("n0", 1), record("pass", id="1")],
            "line 2: is of workflow norm, earlier lines are of benchmark normad",
        ),
        (scores(1), [answer("n0", 7)], "line 1: not an answer: id"),
        (scores(1), [answer("n0", 1, outcome="odd")], "line 1: not an answer: id"),
    ],
)
def test_runs_that_cannot_be_compared(
    compared: Any, a: list[Line], b: list[Line], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        compared(a, b)


def test_the_papers_tables_are_of_benchmarks_alone(tmp_path: Path) -> None:
    runs = [write(tmp_path / f"{name}.jsonl", [record("pass", id="x")]) for name in "ab"]
    with pytest.raises(UsageError, match=r"--paper: .*a\.jsonl holds no answers to a benchmark"):
        compare(runs, paper=True)


def test_runs_are_named_by_a_letter_each(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", [record("pass", id="x")])
    with pytest.raises(UsageError, match="27 runs: 26 can be compared at most"):
        compare([one] * 27)
    assert [*compare([one] * 26).runs][-1] == "Z"


def test_answers_that_only_count_are_compared_answer_by_answer(tmp_path: Path) -> None:
    """Of twelve records both runs answer eleven, nine alike; by city the two halves."""

    def run(name: str, answers: list[str | None]) -> str:
        rows = []
        for n, given in enumerate(answers):
            check = {"check": "tone", "verdict": "answered" if given else "abstain"}
            check |= {"answer": given} if given else {}
            told = {"checks": [check]}
            rows.append(record(check["verdict"], judge=told, id=str(n), city="xy"[n % 2]))
        return write(tmp_path / name, rows)

    first = run("a", ["warm"] * 10 + ["rude", None])
    second = run("b", ["cold", "warm", "rude", *["warm"] * 7, "rude", "warm"])
    found = compare([first, second])
    alike, changes = found.tables[1:]
    assert not found.tables[0].rows, "nothing passes or fails"
    ((labels, cells),) = [(one.labels, one.cells) for one in alike.rows]
    same = cells["same answer"]
    assert (labels, cells["pairs"], cells["of"]) == (("tone", "B"), 11, 12)
    assert (same.value, same.n, same.of) == (pytest.approx(9 / 11), 11, 12)
    moved = {one.labels: one.cells["items"] for one in changes.rows}
    assert moved == {("tone", "B", "warm", "cold"): 1, ("tone", "B", "warm", "rude"): 1}
    by_city = {t.name: t for t in compare([first, second], by=["city"]).tables}["answers-by"]
    shares = {one.labels: one.cells["same answer"].value for one in by_city.rows}
    assert shares == {("tone", "x", "B"): pytest.approx(4 / 6), ("tone", "y", "B"): 1}
    assert not any("left out" in note for note in found.notes)
    words = str(found).split()
    assert "Mean" not in words and " ".join(words).endswith("tone B warm cold 1 tone B warm rude 1")


def test_answers_to_entries_are_compared_entry_by_entry(tmp_path: Path) -> None:
    """Of three entries one is undecided in the second run; a record with an empty list has none."""

    def run(name: str, *said: str | None) -> str:
        evidence = [
            {"value": f"claim {n}", "verdict": "answered" if a else "abstain"}
            | ({"answer": a} if a else {})
            for n, a in enumerate(said)
        ]
        vote = {"model": "m:a", "verdict": "abstain", "evidence": evidence}
        check = {
            "check": "mood",
            "verdict": "abstain",
            "votes": [vote],
            "counted": ["warm", "rude"],
        }
        empty = {"check": "mood", "verdict": "abstain", "votes": []}
        rows = [
            record("abstain", judge={"checks": [c]}, id=str(n))
            for n, c in enumerate([check, empty])
        ]
        return write(tmp_path / name, rows)

    found = compare([run("a", "warm", "rude", "rude"), run("b", "warm", "warm", None)])
    (alike,) = found.tables[1].rows
    assert (alike.cells["pairs"], alike.cells["of"], alike.cells["same answer"].value) == (
        2,
        3,
        0.5,
    )
    assert [one.labels for one in found.tables[2].rows] == [("mood", "B", "rude", "warm")]
