"""`--by FIELD`, several at once: tables, samples and counts by what records have in fields."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.cli.conftest import cells
from tests.cli.typed import Typed

from .test_build import CQ

ROWS = [
    {"ID": f"{country}-{label}-{n}", "Country": country, "Subaxis": axis, "Gold Label": label}
    | {"season": 1 + n // 2}
    | {"Rule-of-Thumb": "Greet.", "Story": f"Ann greets, {n}."}
    for country in ("egypt", "peru")
    for n, (label, axis) in enumerate((("yes", "eating"), ("no", "eating"), ("yes", "visiting")))
]
NORMAD = ("normad", "n.jsonl", "--condition", "country")


@pytest.fixture
def norms(typed: Typed) -> Typed:
    """Six norms, answered `yes`; a second run says `no` of Egypt."""
    typed.write("n.jsonl", ROWS)
    for name, egypt in (("a", "yes"), ("b", "no")):
        answers = {row["ID"]: egypt if row["Country"] == "egypt" else "yes" for row in ROWS}
        typed.write(f"{name}.jsonl", [{"id": id, "answer": a} for id, a in answers.items()])
        words = ("score", "normad", f"{name}.jsonl", *NORMAD[1:], "-o", f"{name}.scored.jsonl")
        assert typed(*words).returncode == 0
    return typed


def test_a_score_by_two_fields_whatever_their_case(norms: Typed) -> None:
    by = ("--by", "COUNTRY", "--by", "subcategory")
    code, out, _ = norms.text("score", "normad", "b.jsonl", *NORMAD[1:], *by, "--json")
    sliced = json.loads(out)[1]
    right = {(r["COUNTRY"], r["subcategory"]): r["accuracy"]["value"] for r in sliced["rows"]}
    assert code == 0 and right == {
        ("egypt", "eating"): 0.5,
        ("egypt", "visiting"): 0.0,
        ("peru", "eating"): 0.5,
        ("peru", "visiting"): 1.0,
    }
    words = ("score", "normad", "b.jsonl", *NORMAD[1:], "--by", "season", "--json")
    by_own_column = json.loads(norms.text(*words)[1])[1]["rows"]
    assert {r["season"]: r["accuracy"]["value"] for r in by_own_column} == {"1": 0.5, "2": 0.5}
    code, out, told = norms.text("score", "normad", "b.jsonl", *NORMAD[1:], "--by", "planet")
    assert (code, out) == (2, "") and "--by planet: no record has this field" in told


def test_runs_compared_by_a_field(norms: Typed) -> None:
    words = ("compare", "a.scored.jsonl", "b.scored.jsonl", "--by", "Country", "--json")
    _, sliced = json.loads(norms.text(*words)[1])["tables"]
    rows = [(row["Country"], row["A"]["value"], row["B"]["value"]) for row in sliced["rows"]]
    assert sliced["name"] == "comparison-by"
    assert rows == [("egypt", pytest.approx(2 / 3, abs=1e-5), pytest.approx(1 / 3, abs=1e-5)),
                    ("peru", *[pytest.approx(2 / 3, abs=1e-5)] * 2)]  # fmt: skip


def test_an_evaluation_samples_every_stratum_and_pays_for_no_unknown_field(norms: Typed) -> None:
    model = norms.script("m.yaml", [{"reply": {"answer": "yes"}}])
    words = ("evaluate", *NORMAD, "-m", model, "-o", "o.jsonl", "--sample", "4", "--overwrite")
    assert norms(*words, "--by", "Country", "--by", "gold").returncode == 0
    drawn = [json.loads(line) for line in norms.read("o.jsonl").splitlines()]
    assert Counter((row["country"], row["gold"]) for row in drawn) == {
        (country, label): 1 for country in ("egypt", "peru") for label in ("yes", "no")
    }
    code, _, told = norms.text(*words[:-3], "--by", "planet", "--overwrite")
    assert code == 2 and "--by planet" in told and len(norms.read("o.jsonl").splitlines()) == 4


def test_a_validation_samples_and_counts_by_two_fields(norms: Typed) -> None:
    ask = ("--ask", "Polite?", "-m", "scripted:yes.yaml", "--sample", "4", "--summary", "s.json")
    by = ("--by", "country", "--by", "Gold_Label")
    code, _, told = norms.text("validate", "n.jsonl", *ask, *by, "-o", "o.jsonl")
    counts: Any = json.loads(norms.read("s.json"))["by"]["country, Gold_Label"]
    strata = ["egypt, no", "egypt, yes", "peru, no", "peru, yes"]
    assert code == 0 and sorted(counts) == strata and cells(told, "peru, no")


def test_rows_with_the_value_all_are_not_the_total(norms: Typed) -> None:
    norms.write("all.jsonl", [{**row, "topic": ["all", "x"][n % 2]} for n, row in enumerate(ROWS)])
    code, out, told = norms.text("describe", "normad", "all.jsonl", "--by", "topic", "--json")
    assert code == 0, told
    rows = [[*row.values()] for row in json.loads(out)[0]["rows"]]
    assert rows == [["all", 3], ["x", 3], ["all together", 6]]


def test_what_a_build_wrote_and_left_out_by_a_field(norms: Typed) -> None:
    judged = [{**row, "judge": {"verdict": verdict}} for row, verdict in
              zip(ROWS, ("pass", "pass", "fail", "pass", "fail", "fail"), strict=True)]  # fmt: skip
    norms.write("j.jsonl", judged)
    code, _, told = norms.text("build", "filtered", "j.jsonl", "-o", "f", "--by", "country")
    assert code == 0
    assert cells(told, "egypt") == [["egypt", "2", "1"]] and cells(told, "peru") == [
        ["peru", "1", "2"]
    ]
    # Of 12 stories 4 are random; the values that two of them lack are left out.
    words = ("build", "attitude-detection", *CQ, "-o", "d.jsonl", "--by", "setting")
    code, _, told = norms.text(*words)
    assert code == 0 and {name: cells(told, name) for name in ("random", "ethical")} == {
        "random": [["random", "4", "2"]],
        "ethical": [["ethical", "1", "0"]],
    }
