"""`judge compare` as a user types it: the table, JSON, notes, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main

from .conftest import Shell, jsonl, norm

Typed = Callable[..., tuple[int, str, str]]
# Typer itself takes pydantic for any command's help.
HEAVY = {"numpy", "scipy", "sklearn", "matplotlib", "openai", "langgraph", "pyarrow"}


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """The command in this process and an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["judge", "compare", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


def answers(name: str, told: str, condition: str = "country", benchmark: str = "normad") -> None:
    """Adds answers to a file: 1 right, 0 wrong, e no reply."""
    lines = [
        {
            "id": f"n{number}/{condition}",
            "row": f"n{number}",
            "country": "China" if number % 2 else "India",
            "gold": "yes",
            "judge": {
                "verdict": {"1": "pass", "0": "fail", "e": "error"}[one],
                "benchmark": benchmark,
                "condition": condition,
                "outcome": "error" if one == "e" else "answered",
                "score": None if one == "e" else float(one),
            },
        }
        for number, one in enumerate(told)
    ]
    with Path(name).open("ab") as file:
        file.write(jsonl(lines))


def cells(out: str, *beginning: str) -> list[str]:
    """The cells of the row that begins with these, from all pieces of the table."""
    rows = [[c.strip() for c in line.strip().split("  ") if c.strip()] for line in out.splitlines()]
    pieces = [row for row in rows if row[: len(beginning)] == list(beginning)]
    return [*beginning, *(cell for row in pieces for cell in row[len(beginning) :])]


@pytest.fixture
def runs(typed: Typed) -> None:
    for name, told in (("a.jsonl", "0000001e"), ("b.jsonl", "11111101")):
        answers(name, told)
    for name, told in (("a.jsonl", "0101"), ("b.jsonl", "010")):
        answers(name, told, "value")


@pytest.mark.usefixtures("runs")
def test_the_table_in_a_narrow_terminal(typed: Typed) -> None:
    code, out, told = typed("a.jsonl", "b.jsonl")
    assert code == 0 and "…" not in out
    assert out.splitlines()[:4] == [
        "judge evaluate, normad",
        "A: a.jsonl",
        "B: b.jsonl",
        "11 items in both, 1 only in A, 0 only in B",
    ]
    row = cells(out, "country")
    assert row[1:3] == ["7", "8"]
    assert row[3].startswith("0.14 (") and row[4].startswith("0.86 (")
    # Six to one: 2 * (1 + 7) / 128, one of two tests.
    assert row[5].startswith("0.71 (") and row[6:] == ["1", "6", "0.125", "0.25"]
    assert cells(out, "overall")[-1] == "–"
    assert "judge: country: 1 of 8 pairs are left out: 1 error in A\n" in told
    assert "share a row of the source" in told
    code, out, _ = typed("a.jsonl", "b.jsonl", "--by", "country", "--draws", "50")
    assert cells(out, "country", "all")[2:4] == ["7", "8"]
    assert cells(out, "overall", "India")[2:4] == ["6", "6"]


@pytest.mark.usefixtures("runs")
def test_bad_usage(typed: Typed) -> None:
    answers("other.jsonl", "11", benchmark="cali")
    Path("plain.jsonl").write_text('{"id": "n0", "story": "Ann greets."}\n')
    for words, says in (
        (("a.jsonl", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        (("a.jsonl", "plain.jsonl"), "plain.jsonl, line 1: field 'judge' holds no verdict"),
        (("a.jsonl", "other.jsonl"), "another benchmark each"),
        (("a.jsonl", "b.jsonl", "--by", "axis"), "--by axis: no item has this field"),
        (("a.jsonl", "b.jsonl", "--draws", "0"), "--draws"),
        (("-", "-"), "standard input can be one run, not both"),
        (("a.jsonl",), "RUN_B"),
    ):
        code, out, told = typed(*words)
        assert (code, out) == (2, ""), words
        assert says in told.replace("\n", " "), told


def test_two_runs_of_validate(judge: Shell) -> None:
    """As typed: two judges on the same norms, one run through a pipe."""
    judge.write("norms.jsonl", [norm(number) for number in range(4)])
    judge.script("no.yaml", [{"p_yes": 0.1}])
    words = ("validate", "norms.jsonl", "--check", "relevance", "-q", "-m")
    for name in ("yes", "no"):
        done = judge(*words, f"scripted:{name}.yaml", "-o", f"{name}.jsonl")
        assert done.returncode == 0, done.stderr
    done = judge("compare", "no.jsonl", "-", "--json", stdin=judge.read("yes.jsonl"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["command"], found["names"]) == ("judge validate", ["norm"])
    assert [row["verdict of"] for row in found["rows"]] == ["record", "check relevance"]
    for row in found["rows"]:
        assert (row["A"]["value"], row["B"]["value"], row["pairs"]) == (0.0, 1.0, 4)
        assert row["McNemar p"] == "0.125"
    done = judge("compare", "no.jsonl", "yes.jsonl")
    assert done.returncode == 0
    assert b"4 records in both" in done.stdout
    assert b"\x1b[" not in done.stdout
