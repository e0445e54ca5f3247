"""Corrected pass rates from output lines: by hand, by stratum, by value, from labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_profiles import judge_profile, profile

from judge.configuration import resolve
from judge.profiles import item_key
from judge.records import Item, Record, build
from judge.run.calibrated import CorrectedRate, Corrections, binding_of
from judge.run.setup import Bound, Setup
from judge.subject import Subject

SPEC = "scripted:judge.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("judge.yaml").write_text("method: logprobs\nreplies: []")
    return tmp_path


def bound(kind: str, *checks: str, **found: Any) -> Bound:
    """The workflow with this profile for each of the checks."""
    setup = Setup.of(resolve({"model": (SPEC,), "cache": False, "profile": "none"}))
    judges = [
        judge_profile(binding_of(setup.judge(check, SPEC), 1, 0.0), **found) for check in checks
    ]
    Path("p.json").write_text(profile(*judges).model_dump_json())
    return Setup.of(resolve({"cache": False, "profile": "p.json"})).bound(kind)


def norm(number: int) -> dict[str, Any]:
    return {"id": f"n{number}", "rule_of_thumb": "Greet.", "story": f"{number} came in."}


def story(number: int, values: Sequence[str] = ("One--Agree", "Two--Agree")) -> dict[str, Any]:
    return {"id": f"s{number}", "story": f"An told {number} jokes.", "values": list(values)}


def check(name: str, verdict: str, *, by: str = "loop", **values: str) -> dict[str, Any]:
    """A check as an output line has it; `values` are those with a finding."""
    evidence = [{"value": f"{v}--Agree", "verdict": said} for v, said in values.items()]
    vote = {"model": "m:x", "verdict": verdict, "evidence": evidence}
    return {"check": name, "by": by, "verdict": verdict, "votes": [vote]}


def add(
    corrections: Corrections,
    bound: Bound,
    fields: dict[str, Any],
    *checks: dict[str, Any],
    **more: Any,
) -> None:
    judgement = {"verdict": "pass", "checks": list(checks), "edits": [], **more}
    corrections.add(json.dumps({**fields, "judge": judgement}).encode(), judgement, bound)


def relevance(corrections: Corrections, made: Bound, passed: int, failed: int, **more: Any) -> None:
    for number in range(passed + failed):
        verdict = "pass" if number < passed else "fail"
        add(corrections, made, norm(number), check("relevance", verdict), **more)


def only(corrections: Corrections) -> CorrectedRate:
    (rate,) = corrections.rates()
    return rate


# ---------------------------------------------------------------- one check, by hand


def test_a_repaired_record_counts_as_it_came() -> None:
    made, plain, repaired = bound("norm", "relevance"), Corrections(), Corrections()
    relevance(plain, made, 8, 2)
    relevance(repaired, made, 8, 0)
    rewritten = [check("relevance", "pass"), check("relevance", "pass", by="final")]
    for number in (8, 9):
        came = check("relevance", "fail")
        edited = {**norm(number), "story": "New."}
        add(repaired, made, edited, came, *rewritten, original={"story": norm(number)["story"]})
    assert only(repaired) == only(plain)
    assert only(repaired).corrected.raw.n == 10


# ---------------------------------------------------------------- by value


def test_checks_about_values_count_values() -> None:
    made, corrections = bound("story", "incorporation"), Corrections()
    for number in range(10):
        said = {"One": "pass", "Two": "pass" if number < 1 else "fail"}
        verdict = "pass" if number < 1 else "fail"
        add(corrections, made, story(number), check("incorporation", verdict, **said))
    rate = only(corrections)
    assert (rate.corrected.raw.n, rate.corrected.raw.value) == (20, pytest.approx(0.55))
    assert rate.corrected.estimate.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("said", "undecided", "decided"),
    [
        ({"One": "pass", "Two": "abstain"}, 1, 1),
        # Votes that disagree leave no finding behind, and a lost reply leaves none at all.
        ({"One": "fail"}, 1, 1),
        ({}, 2, 0),
    ],
)
def test_values_without_a_verdict_are_undecided(
    said: dict[str, str], undecided: int, decided: int
) -> None:
    made, corrections = bound("story", "incorporation"), Corrections()
    add(corrections, made, story(0), check("incorporation", "abstain", **said))
    rate = only(corrections)
    assert (rate.undecided, rate.corrected.raw.n) == (undecided, decided)


# ---------------------------------------------------------------- labels on the judged records


def labels(*records: dict[str, Any], **truth: bool) -> dict[str, bool]:
    """Every record should pass, or every value as `truth` has it."""
    found = {}
    for fields in records:
        record = build(Item("labels.jsonl", 1, fields))
        assert isinstance(record, Record)
        subject = Subject.of(record)
        for value, good in truth.items():
            found[item_key(subject, f"{value}--Agree")] = good
        if not truth:
            found[item_key(subject, None)] = True
    return found


def test_labels_on_the_judged_records_by_hand() -> None:
    # The judge passes 6 of 10. Of 3 labelled ones that it passed 2 are good, of 2 that it failed 1:
    # 0.6 x 2/3 + 0.4 x 1/2 = 0.6
    known = labels(*(norm(n) for n in (0, 1, 2, 6, 7)))
    bad = [*labels(norm(2)), *labels(norm(7))]
    made = bound("norm", "relevance", labels={**known, **dict.fromkeys(bad, False)})
    corrections = Corrections()
    relevance(corrections, made, 6, 4)
    powered = only(corrections).powered
    assert powered is not None
    assert (powered.n, powered.of) == (5, 10)
    assert powered.value == pytest.approx(0.6)
    told = only(corrections).as_json()["prediction_powered"]
    assert told["value"] == pytest.approx(0.6) and told["n"] == 5
    assert told["low"] < 0.6 < told["high"]


def test_labels_of_single_values_are_found_though_the_value_was_dropped() -> None:
    known = labels(story(0), One=True, Two=True)
    made, corrections = bound("story", "incorporation", labels=known), Corrections()
    dropped = {**story(0), "values": ["One--Agree"]}
    add(
        corrections,
        made,
        dropped,
        check("incorporation", "fail", by="final", One="pass", Two="fail"),
        original={"values": story(0)["values"]},
    )
    rate = only(corrections)
    assert rate.corrected.raw.n == 2 and rate.undecided == 0
    assert rate.powered is not None and rate.powered.n == 2
    assert rate.powered.value == pytest.approx(1.0)
