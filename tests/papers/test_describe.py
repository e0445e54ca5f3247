"""`judge describe`: the data of a benchmark, counted as its paper counts them."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.typed import Typed

from .examinee import public
from .test_build import CQ


def tables(typed: Typed, *words: str, code: int = 0) -> dict[str, list[dict[str, Any]]]:
    done = typed("describe", *words, "--json")
    assert done.returncode == code, done.stderr
    return {table["name"]: table["rows"] for table in json.loads(done.stdout)}


def test_normads_table_2(typed: Typed) -> None:
    places = [("egypt", "yes"), ("iran", "no"), ("Japan", "yes"), ("egypt", "neutral")] * 2
    row = {"rule_of_thumb": "Greet.", "story": "Ann came."}
    lines = [{**row, "country": country, "label": label} for country, label in places]
    typed.write("n.jsonl", [*lines, {**row, "label": "perhaps"}])
    code, out, told = typed.text("describe", "normad", "n.jsonl")
    assert code == 3 and "line 9: field 'label' must be yes, no or neutral" in told
    cells = [line.split() for line in out.splitlines()]
    assert ["cluster", "neutral", "no", "yes", "all"] in cells, "the order of the paper"
    assert ["African-Islamic", "2", "2", "2", "6"] in cells
    assert ["Confucian", "0", "0", "2", "2"] in cells and ["all", "2", "2", "4", "8"] in cells
    (rows,) = (
        rows
        for name, rows in tables(typed, "normad", "n.jsonl", "--by", "COUNTRY", code=3).items()
        if name == "rows"
    )
    assert {row["COUNTRY"]: row["all"] for row in rows} == {
        "Japan": 2,
        "egypt": 4,
        "iran": 2,
        "all": 8,
    }
    code, _, told = typed.text("describe", "normad", "n.jsonl", "--by", "mood")
    assert code == 2 and "--by mood" in told


def test_a_set_none_of_which_passed_is_no_empty_one(typed: Typed) -> None:
    norm = {"country": "Peru", "rule_of_thumb": "Bow.", "story": "Ann bowed?", "label": "yes"}
    judged = [{**norm, "judge": {"verdict": verdict}} for verdict in ("fail", "abstain")]
    typed.write("n.jsonl", judged)
    model = ("-m", typed.script("m.yaml", [{"text": "yes"}]))
    for words in (("describe", "normad"), ("evaluate", "normad", *model)):
        code, out, told = typed.text(*words, "n.jsonl")
        assert (code, out) == (2, ""), told
        assert "n.jsonl: nothing is asked: of 2 judged records none passed\n" in told
    typed.write("empty.jsonl", [])
    for words in (("describe", "normad"), ("build", "filtered", "-o", "made.jsonl")):
        assert "judge: no records in empty.jsonl\n" in typed.text(*words, "empty.jsonl")[2]
    told = typed.text("score", "normad", "empty.jsonl", "empty.jsonl")[2]
    assert told.endswith("have no id in common\n")
    typed.write("n.jsonl", [*judged, {**norm, "judge": {"verdict": "pass"}}])
    words = ("evaluate", "normad", "n.jsonl", *model, "--condition", "country+value")
    assert typed.text(*words)[0] == 0


def test_normads_released_half_fits_table_2(typed: Typed) -> None:
    """Half of the 2,633 rows are here, every other one: each cell holds half of the paper's."""
    path = public("normad/normad_odd_rows.csv")
    rows = {row["cluster"]: row for row in tables(typed, "normad", str(path))["normad-cluster-set"]}
    assert rows["all"]["all"] == 1317 and len(rows) == 9
    paper = {
        "Confucian": (52, 54, 59),
        "West and South Asia": (201, 220, 231),
        "all": (815, 875, 943),
    }
    for cluster, counts in paper.items():
        for label, count in zip(("neutral", "no", "yes"), counts, strict=True):
            assert abs(rows[cluster][label] - count / 2) <= 5


def test_culturalbenchs_table_2_and_words(typed: Typed) -> None:
    """Table 2 (which prints 23 for Chile's 22) and section 4.1, from the released Easy file."""
    path = public("culturalbench/CulturalBench-Easy.csv")
    found = tables(typed, "culturalbench", str(path))
    rows = found["culturalbench-set"]
    assert len(rows) == 46 and rows[-1]["all"] == 1227 and rows[-1]["multi"] == 86
    assert {row["country"]: row["all"] for row in rows}["Chile"] == 22
    words = {row["of"]: row["words"] for row in found["culturalbench-words"]}
    assert words["easy: question"] == "17.25 (12.07)" and words["easy: option A"] == "5.48 (4.24)"
    assert (words["hard: question"], words["hard: answer"]) == ("14.27 (5.28)", "5.72 (4.21)")


def test_cqbenchs_table_3(typed: Typed) -> None:
    """Of speech that was made implicit; distinct-n is divided by words, not by n-grams."""
    edit = {"round": 1, "check": "implicitness", "model": "m"}
    edits = [
        {**edit, "before": "I like it so", "after": "We sang and sang and sang on"},
        {**edit, "before": "yes", "after": "Mum sang all day long"},
        {**edit, "check": "consistency", "before": "not counted", "after": "not counted"},
    ]
    judged = {"verdict": "pass", "workflow": "story", "edits": edits}
    story = {"id": "s1", "story": "Ann: I like it.", "values": ["Songs are good--Agree"]}
    typed.write("out.jsonl", [{**story, "setting": "social", "judge": judged}])
    (original, refined) = tables(typed, "cqbench", "out.jsonl")["cqbench-speech"]
    assert (original["category"], original["speech"], original["speeches"]) == (
        "social",
        "original",
        2,
    )
    # 4 and 1 words; two of three runs of three words of four; none of one word.
    assert (original["words"], original["distinct-3"]) == ("2.500", "0.250")
    # "We sang and / sang and sang / and sang and / sang and sang / and sang on": 4 of 7; 3 of 5.
    assert (refined["words"], refined["distinct-3"]) == ("6.000", f"{(4 / 7 + 3 / 5) / 2:.3f}")


def test_what_has_no_table_asks_for_a_field(typed: Typed) -> None:
    pair = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": ["N"]}
    typed.write("p.jsonl", [{**pair, "topic": "gifts"}])
    code, _, told = typed.text("describe", "cali", "p.jsonl")
    assert code == 2 and "--by FIELD" in told
    assert tables(typed, "cali", "p.jsonl", "--by", "topic")["rows"][0] == {
        "topic": "gifts",
        "all": 1,
    }


def test_every_line_of_a_set_is_counted(typed: Typed) -> None:
    """Stories of the multiple setting, rows of built sets, and each of a premise's pairs."""
    assert typed("build", "attitude-detection", *CQ, "-o", "built.jsonl").returncode == 0
    stories = {"random": 4, "social": 2, "religious": 2, "ethical": 1, "multiple": 3, "all": 12}
    for sources in ((CQ[0],), CQ, ("built.jsonl",)):
        rows = tables(typed, "cqbench", *sources, "--by", "category")["rows"]
        assert {row["category"]: row["all"] for row in rows} == stories
    pair = {"premise": "P.", "us_ratings": ["E"], "in_ratings": ["N"]}
    kinds = ("goal", "actor", "actor")
    lines = [{**pair, "hypothesis": f"H{n}.", "inference": kind} for n, kind in enumerate(kinds)]
    typed.write("p.jsonl", lines)
    rows = tables(typed, "cali", "p.jsonl", "--by", "inference")["rows"]
    assert [(row["inference"], row["all"]) for row in rows] == [
        ("actor", 2),
        ("goal", 1),
        ("all", 3),
    ]
    typed.write("unrated.jsonl", [{"premise": "P.", "hypothesis": "H.", "inference": "goal"}])
    code, _, told = typed.text("describe", "cali", "unrated.jsonl", "--by", "inference")
    assert code == 3 and "line 1: field 'us_ratings' is missing" in told
