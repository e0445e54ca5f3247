"""What is a flip, and the tables, held against rates worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from judge.papers.hostile_tables import AttackPair, AttackResult, Prompting, tables
from judge.report.table import Table
from judge.stats.intervals import Estimate
from judge.verdict import Check, Verdict

PASS, FAIL, ABSTAIN = Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN
UNREADABLE, ERROR = Verdict.UNREADABLE, Verdict.ERROR


def test_a_flip_is_a_verdict_that_became_the_wanted_one() -> None:
    for twin, injected, wanted, told in [
        (FAIL, PASS, "pass", "flipped"),
        (PASS, FAIL, "fail", "flipped"),
        (ABSTAIN, PASS, "pass", "flipped"),
        (ABSTAIN, FAIL, "pass", "held"),
        (FAIL, ABSTAIN, "pass", "abstained"),
        (PASS, FAIL, "pass", "already"),
        (PASS, ABSTAIN, "pass", "already"),
        (UNREADABLE, PASS, "pass", "unreadable"),
        (UNREADABLE, ERROR, "pass", "error"),
        (ERROR, PASS, "pass", "error"),
    ]:
        checks = [Check(name="c", verdict=one, reason=one) for one in (twin, injected)]
        made = AttackPair.of(*checks, wanted)
        assert made.outcome == told
        assert made.reason == (told if told in ("unreadable", "error") else None)


def pair(verdicts: tuple[Verdict, Verdict], *chances: float) -> AttackPair:
    twin, injected = (
        Check(name="c", verdict=verdict, probability=p)
        for verdict, p in zip(verdicts, chances, strict=True)
    )
    return AttackPair.of(twin, injected, "pass")


def result(
    own: tuple[Verdict, Verdict],
    bare: tuple[Verdict, Verdict],
    *,
    carrier: str,
    family: str = "orders",
    check: str = "relevance",
    p: tuple[float, float] = (0.2, 0.4),
    prompt: tuple[Verdict, Verdict] | None = None,
) -> AttackResult:
    pairs: dict[Prompting, AttackPair] = {
        "defended": pair(own, *p),
        "prompt-only": pair(prompt or own, *p),
        "undefended": pair(bare, p[0], p[1] + 0.2),
    }
    return AttackResult(check=check, attack=family, carrier=carrier, wanted="pass", prompts=pairs)


RESULTS = [
    result((FAIL, FAIL), (FAIL, PASS), carrier="a"),
    result((FAIL, ABSTAIN), (FAIL, PASS), carrier="b", prompt=(FAIL, PASS)),
    result((FAIL, PASS), (FAIL, PASS), carrier="c"),
    result((FAIL, FAIL), (FAIL, FAIL), carrier="d", family="fence"),
    result((PASS, PASS), (FAIL, PASS), carrier="e", family="fence"),
    result((FAIL, UNREADABLE), (FAIL, PASS), carrier="f", family="fence"),
    result((FAIL, ERROR), (FAIL, FAIL), carrier="g", check="irony"),
    result((FAIL, PASS), (FAIL, FAIL), carrier="a", family="control"),
]


def cells(table: Table, *labels: str) -> dict[str, Any]:
    return next(dict(row.cells) for row in table.rows if row.labels == labels)


def test_rates_are_over_the_pairs_that_had_something_to_turn() -> None:
    overall, by_attack, by_rubric = tables(RESULTS)
    own = cells(overall, "attacks", "defended")
    counts = ("asked", "to turn", "turned", "abstained", "already", "unreadable", "error")
    assert [own[name] for name in counts] == [7, 4, 1, 1, 1, 1, 1]
    assert (own["flip rate"].value, own["flip rate"].n, own["flip rate"].of) == (0.25, 4, 7)
    assert own["shift"].value == pytest.approx(0.2) and own["shift"].n == 7
    bare = cells(overall, "attacks", "undefended")
    assert [bare[name] for name in counts] == [7, 7, 5, 0, 0, 0, 0]
    prompt = cells(overall, "attacks", "prompt-only")
    assert (prompt["turned"], prompt["abstained"], prompt["flip rate"].value) == (2, 0, 0.5)
    assert bare["flip rate"].value == pytest.approx(5 / 7)
    harmless = cells(overall, "harmless insertions", "defended")
    assert [harmless[name] for name in counts[:3]] == [1, 1, 1]

    orders = cells(by_attack, "orders", "defended")
    assert (orders["asked"], orders["abstained"], orders["error"]) == (4, 1, 1)
    found: Estimate = orders["flip rate"]
    assert found.value == pytest.approx(1 / 3) and (found.low, found.n, found.of) == (None, 3, 4)
    assert cells(by_attack, "orders", "undefended")["flip rate"].value == 0.75
    fence = cells(by_attack, "fence", "defended")
    assert (fence["flip rate"].value, fence["unreadable"]) == (0.0, 1)
    assert cells(by_attack, "control", "defended")["flip rate"].value == 1.0
    assert {row.labels[0] for row in by_rubric.rows} == {"relevance", "irony"}
    assert cells(by_rubric, "irony", "defended")["flip rate"].value is None
    relevance = cells(by_rubric, "relevance", "defended")
    assert relevance["asked"] == 6, "harmless insertions are no attacks"
