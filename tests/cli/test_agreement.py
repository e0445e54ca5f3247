"""`judge agreement` as a user types it: tables, JSON, notes, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main

from .conftest import Shell, jsonl

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """The command in this process and an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["judge", "agreement", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


def norm(id: str, labels: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    story = f"Ann comes in as number {id} and greets Bo."
    return {"id": id, "rule_of_thumb": "Greet.", "story": story, "labels": labels, **more}


def given(answers: str) -> dict[str, str]:
    named = {"y": "Yes", "n": "No", "?": "Unsure"}
    return {f"w{n}": named.get(answer, answer) for n, answer in enumerate(answers, 1)}


def write(name: str, records: Sequence[Mapping[str, Any]], more: bytes = b"") -> None:
    Path(name).write_bytes(jsonl(records) + more)


@pytest.fixture
def norms(typed: Typed) -> None:
    """Three norms with votes on two checks, and their gold in a second file."""
    write(
        "votes.jsonl",
        [
            norm("a", {"relevance": given("yyy"), "derivation": given("yyn")}, country="China"),
            norm("b", {"relevance": given("yyn"), "derivation": given("nny")}, country="India"),
            norm("c", {"relevance": given("nn?"), "derivation": given("n?y")}, country="India"),
        ],
    )
    answers = {"a": ("yes", "yes"), "b": ("no", "no"), "c": ("no", "no")}
    write(
        "gold.jsonl",
        [norm(id, {"relevance": one, "derivation": two}) for id, (one, two) in answers.items()],
    )


def cells(out: str, *beginning: str) -> list[list[str]]:
    """The cells of each row that begins with these."""
    rows = [[c for c in line.strip().split("  ") if c] for line in out.splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows]
    return [row for row in rows if row[: len(beginning)] == list(beginning)]


@pytest.mark.usefixtures("norms")
def test_normads_columns_and_mean_row(typed: Typed) -> None:
    code, out, told = typed("votes.jsonl", "gold.jsonl", "--draws", "0")
    assert (code, told) == (0, "")
    agreement, majority = cells(out, "relevance", "all")
    assert agreement[2:5] == ["3", "9", "3"]
    assert agreement[7] == "0.56"
    assert majority[2:] == [
        "3",
        "3 (100%)",
        "0 (0%)",
        "0 (0%)",
        "66.7% (2 of 3)",
        "66.7%",
        "50.0% (1 of 2)",
        "100.0% (1 of 1)",
    ]
    mean_agreement, mean_majority = cells(out, "mean")
    assert mean_agreement[3] == "0.39 (2 of 2)"
    assert mean_majority[1] == "83.3% (2 of 2)"


@pytest.mark.usefixtures("norms")
def test_nothing_is_cut_in_a_narrow_terminal(typed: Typed) -> None:
    _, out, _ = typed("votes.jsonl", "gold.jsonl", "--by", "country", "--draws", "20")
    assert "…" not in out
    assert len(cells(out, "relevance", "China")) == 2
    assert cells(out, "relevance", "mean of parts")
    (counts,) = [row for row in cells(out, "all") if row[1:] == ["3", "5", "1", "11.1%"]]
    assert counts


@pytest.mark.usefixtures("norms")
def test_one_check_as_json(typed: Typed) -> None:
    words = ("votes.jsonl", "--check", "relevance", "--json", "--draws", "50", "--seed", "4")
    code, out, _ = typed(*words)
    report = json.loads(out)
    assert code == 0
    assert [check["check"] for check in report["checks"]] == ["relevance"]
    overall = report["checks"][0]["overall"]
    assert overall["pairwise"]["value"] == pytest.approx(5 / 9, abs=1e-6)
    assert overall["undecided"] == {
        "value": 0.111111,
        "low": None,
        "high": None,
        "n": 1,
        "of": 9,
    }
    assert len(report["checks"][0]["pairs"]) == 3
    assert typed(*words)[1] == out


@pytest.mark.usefixtures("norms")
def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_measured(typed: Typed) -> None:
    votes = Path("votes.jsonl").read_bytes()
    Path("torn.jsonl").write_bytes(b'{"id": "x", "labels": {"relev\n' + votes)
    code, out, told = typed("torn.jsonl", "--draws", "0")
    assert code == 3
    assert "torn.jsonl, line 1: " in told and "1 line(s)" in told
    assert out == typed("votes.jsonl", "--draws", "0")[1]


def test_annotators_below_the_cut_are_named_with_their_labels(typed: Typed) -> None:
    records = [
        norm("k1", {"relevance": given("yyn")}, control=True),
        norm("k2", {"relevance": given("nny")}, control=True),
        norm("a", {"relevance": given("yyn")}),
        norm("b", {"relevance": given("nny")}),
    ]
    write("votes.jsonl", records)
    write("gold.jsonl", [norm("k1", {"relevance": "yes"}), norm("k2", {"relevance": "no"})])
    words = ("votes.jsonl", "gold.jsonl", "--controls", "control=yes", "--draws", "0")
    code, out, told = typed(*words, "--drop-below", "0.6")
    assert code == 0
    assert "dropped 1 of 3 annotators, 4 of 12 labels (33%): w3" in told
    assert cells(out, "w3") == [["w3", "4", "2", "0 (0%)", "0", "-", "yes"]]
    assert cells(out, "relevance", "all")[0][2:7] == ["2", "4", "2", "1.00", "1.00"]
    assert "dropped" not in typed(*words)[2]


def test_ratings_and_statements_that_exclude_each_other(typed: Typed) -> None:
    ratings = {"k": "44", "a": "55", "b": "51"}
    records: list[dict[str, Any]] = [
        {"id": id, "premise": "It rains.", "labels": {"entailment": given(said)}}
        for id, said in ratings.items()
    ]
    records[0]["control"] = "mnli"
    for record in records[1:]:
        record["about"] = "rain"
    write("ratings.jsonl", records)
    write("gold.jsonl", [{"id": "k", "labels": {"entailment": "entailment"}}])
    words = ["ratings.jsonl", "gold.jsonl", "--scale", "--controls", "control=mnli"]
    words += ["--exclusive", "about", "--drop-contradictory", "0.5", "--draws", "0"]
    code, out, told = typed(*words)
    assert code == 0
    assert "scales were fitted for 2 annotators; the 2s and 4s of 0" in told
    assert "dropped 1 of 2 annotators, 3 of 6 labels (50%): w1" in told
    assert cells(out, "w1")[0][4:] == ["1", "1 (100%)", "yes"]


@pytest.mark.usefixtures("norms")
def test_majority_that_is_settled(typed: Typed) -> None:
    code, out, told = typed("votes.jsonl", "--majority", "3/3", "--settled", "--draws", "0")
    assert code == 0
    assert "5 questions were left out: no group has a majority" in told
    assert cells(out, "relevance", "all")[1][2:] == ["1", "1 (100%)", "0 (0%)", "0 (0%)"]
    code, out, told = typed("votes.jsonl", "--majority", "4/4", "--settled")
    assert (code, out) == (2, "")
    assert "no label is left of 18" in told


@pytest.mark.usefixtures("norms")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["votes.jsonl", "--majority", "most"], "majority 'most'"),
        (["votes.jsonl", "--drop-below", "0.6"], "--drop-below needs --controls"),
        (["votes.jsonl", "--drop-contradictory", "0.6"], "--drop-contradictory needs --exclusive"),
        (["votes.jsonl", "--controls", "control"], "give FIELD=VALUE"),
        (["votes.jsonl", "--order", "no,No"], "names an answer twice"),
        (["votes.jsonl", "--level", "ordinal"], "level ordinal needs the order"),
        (["votes.jsonl", "--level", "interval"], "level interval needs numbers"),
        (["votes.jsonl", "--level", "ratio"], "ratio"),
        (["votes.jsonl", "--raters", "1"], "raters"),
        (["votes.jsonl", "--order", "yes,noo"], "relevance: the order must name all answers"),
        (["votes.jsonl", "--by", "contry"], "no record has 'contry' to slice by; records have: "),
        (["gold.jsonl"], "do not say who gave which answer"),
        (["empty.jsonl"], "empty.jsonl: no labels at all\n"),
        (["empty.jsonl", "torn.jsonl"], "no labels at all; 1 line(s) could not be read"),
        (["nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_usage(typed: Typed, words: list[str], says: str) -> None:
    write("empty.jsonl", [])
    write("torn.jsonl", [], b"not JSON\n")
    code, out, told = typed(*words)
    assert (code, out) == (2, "")
    assert says in told


def test_cali_as_released(typed: Typed) -> None:
    rows = [
        ('She left "no tip.', "She was unhappy.", "EEEEN", "NNNNE"),
        ('He said "fine.', "He agreed.", "CCCCC", "CCCCN"),
        ("They came late.", "They were rude.", "EENNC", "EENNC"),
    ]
    lines = ["premise\thypothesis\tus_ratings\tin_ratings"]
    lines += ["\t".join([p, h, str(list(us)), str(list(ind))]) for p, h, us, ind in rows]
    Path("data.tsv").write_text("\n".join(lines) + "\n")
    words = ("cali:data.tsv", "--majority", "75%", "--settled", "--raters", "5", "--draws", "0")
    code, out, told = typed(*words)
    assert code == 0
    assert "1 questions were left out: no group has a majority" in told
    assert [row[1:] for row in cells(out, "us")] == [
        ["5", "4", "1", "0.0%"],
        # entailment: P = (1 + 6/10) / 2, shares 0.4 and 0.6, E = 0.52; contradiction is settled.
        ["1.00", "0.58", "-0.11"],
    ]
    # One rater of each: 8 and 20 of 25 pairs agree. Majorities N, C and E, C: (1/2 - 1/4) / (3/4).
    assert cells(out, "in", "us")[0][2:] == ["2", "0.56", "50.0% (1 of 2)", "0.33"]


def test_a_table_and_its_annotators_groups(typed: Typed) -> None:
    votes = {"1": "yyn", "2": "nny", "3": "yyy"}
    rows = [f"{i},{w},{a}" for i, said in votes.items() for w, a in given(said).items()]
    Path("votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    Path("groups.json").write_text(json.dumps({"w1": "Mexico", "w2": "Mexico", "w3": "India"}))
    words = ("votes.csv", "--check", "relevance", "--annotators", "groups.json", "--draws", "0")
    code, out, _ = typed(*words)
    assert code == 0
    assert cells(out, "relevance", "Mexico")[0][2:7] == ["3", "6", "2", "1.00", "1.00"]
    assert cells(out, "India", "Mexico")[0][2:5] == ["3", "0.33", "33.3% (1 of 3)"]


def test_standard_input(judge: Shell) -> None:
    votes = jsonl([norm("a", {"relevance": given("yyn")}), norm("b", {"relevance": given("nnn")})])
    done = judge("agreement", "-", "--json", "--draws", "0", stdin=votes)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["prepared"]["labels"] == 6


def test_nationalities_of_multipico(typed: Typed) -> None:
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "multipico"
    if not folder.is_dir():
        pytest.skip("the public data are not here")
    code, out, _ = typed(f"multipico:{folder / 'MP_en_dev_test.json'}", "--draws", "0")
    assert code == 0
    assert cells(out, "irony", "all")[0][2:5] == ["1079", "5073", "74"]
    assert len(cells(out, "irony", "India")) == 2
    assert cells(out, "Australia", "India")
