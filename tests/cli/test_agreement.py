"""`judge agreement` as a user types it: tables, JSON, notes, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main

from .conftest import jsonl

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
def test_normads_columns_and_means(typed: Typed) -> None:
    code, out, told = typed("votes.jsonl", "gold.jsonl", "--draws", "0")
    assert (code, told) == (0, "")
    assert "relevance: agreement of 9 labels by 3 annotators" in out
    relevance, majority, accuracy = cells(out, "all")[:3]
    assert relevance[2] == "0.56"
    assert majority[1:] == ["3", "3 (100%)", "0 (0%)", "0 (0%)"]
    assert accuracy[1:] == ["66.7% (2 of 3)", "50.0% (1 of 2)", "100.0% (1 of 1)"]
    assert cells(out, "pairwise", "0.39") == [["pairwise", "0.39", "2 of 2"]]
    assert cells(out, "accuracy", "0.83") == [["accuracy", "0.83", "2 of 2"]]


@pytest.mark.usefixtures("norms")
def test_one_check_as_json(typed: Typed) -> None:
    words = ("votes.jsonl", "--check", "relevance", "--json", "--draws", "50", "--seed", "4")
    code, out, _ = typed(*words)
    report = json.loads(out)
    assert code == 0
    assert [check["check"] for check in report["checks"]] == ["relevance"]
    overall = report["checks"][0]["overall"]
    assert overall["measures"]["pairwise"]["value"] == pytest.approx(5 / 9, abs=1e-6)
    assert overall["measures"]["undecided"] == {
        "value": 0.111111,
        "low": None,
        "high": None,
        "n": 1,
        "of": 9,
    }
    assert typed(*words)[1] == out


@pytest.mark.usefixtures("norms")
def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_measured(typed: Typed) -> None:
    votes = Path("votes.jsonl").read_bytes()
    Path("torn.jsonl").write_bytes(b'{"id": "x", "labels": {"relev\n' + votes)
    code, out, told = typed("torn.jsonl", "--draws", "0")
    assert code == 3
    assert "torn.jsonl, line 1: " in told and "1 line(s)" in told
    assert out == typed("votes.jsonl", "--draws", "0")[1]


@pytest.mark.usefixtures("norms")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["votes.jsonl", "--majority", "most"], "majority 'most'"),
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


def test_a_table_and_its_annotators_groups(typed: Typed) -> None:
    votes = {"1": "yyn", "2": "nny", "3": "yyy"}
    rows = [f"{i},{w},{a}" for i, said in votes.items() for w, a in given(said).items()]
    Path("votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    Path("groups.json").write_text(json.dumps({"w1": "Mexico", "w2": "Mexico", "w3": "India"}))
    words = ("votes.csv", "--check", "relevance", "--annotators", "groups.json", "--draws", "0")
    code, out, _ = typed(*words)
    assert code == 0
    assert cells(out, "Mexico")[0][1:3] == ["1.00", "1.00"]
    assert cells(out, "India, Mexico")[0][1:3] == ["0.33", "0.33"]
