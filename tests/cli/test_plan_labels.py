"""`judge plan --labels`: what it prints, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from judge.cli import main

KAPPA = ("--measure", "kappa", "--expect", "0.6", "--width", "0.1")


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    """`judge plan` in this process: (exit code, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["judge", "plan", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


def test_kappa(planned: Any) -> None:
    code, out, told = planned("--labels", *KAPPA)
    assert (code, told) == (0, "")
    first, heading, _, *rows = out.splitlines()
    assert first == "kappa 0.6 with an interval 0.1 wide: 984 labels"
    assert heading.split() == ["labels", "width", "of", "the", "95", "%", "interval"]
    assert [row.split()[:2] for row in rows] == [
        ["50", "0.443"],
        ["100", "0.314"],
        ["200", "0.222"],
        ["500", "0.140"],
        ["984", "0.100"],
        ["1000", "0.099"],
    ]
    assert [row for row in rows if "wanted" in row] == [rows[4]]


def test_every_option_counts(planned: Any) -> None:
    base = ("--labels", "--measure", "pass-rate", "--expect", "0.8", "--width", "0.1")
    plain = planned(*base)[1]
    for option, value in (
        ("--prevalence", "0.5"),
        ("--level", "0.9"),
        ("--true-positive-rate", "0.8"),
        ("--true-negative-rate", "0.8"),
        ("--judged", "5000"),
    ):
        code, out, _ = planned(*base, option, value)
        assert code == 0 and out != plain, option


def test_not_to_be_had(planned: Any) -> None:
    wanted = ("--measure", "pass-rate", "--expect", "0.8", "--width", "0.02")
    code, out, _ = planned("--labels", *wanted)
    assert code == 0
    assert "not even 10,000,000 labels are enough; judge more items" in out
    assert "wanted" not in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--labels",), "--labels needs --measure"),
        (("--labels", *KAPPA[:4]), "--labels needs --width"),
        (("--labels", "stories.jsonl", *KAPPA), "--labels reads no INPUT"),
        (("--labels", *KAPPA, "--prevalence", "2"), "prevalence is 2"),
        (("--labels", "--measure", "alpha", *KAPPA[2:]), "not one of accuracy, kappa"),
        (("stories.jsonl", "--true-negative-rate", "0.9"), "--true-negative-rate goes with"),
    ],
)
def test_refused(planned: Any, words: tuple[str, ...], why: str) -> None:
    code, out, told = planned(*words)
    assert (code, out) == (2, "")
    assert why in told
