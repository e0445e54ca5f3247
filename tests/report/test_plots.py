"""Plots of a calibration: what is drawn, what they say, and that they are the same each time."""

from __future__ import annotations

import random
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from made_profiles import bond, judge_profile

from judge.calibration.fitting import Fit
from judge.calibration.measures import measure
from judge.calibration.observations import Judged, Unanswered
from judge.calibration.report import Calibration, CheckReport, JudgeReport
from judge.errors import UsageError
from judge.profiles import Guarantee
from judge.records.labels import LabelledItem
from judge.report.plots import draw
from judge.stats.guarantee import CascadePolicy, grid_from, threshold_with_guarantee

YES_NO = ("yes", "no")
FIRST, SECOND = "relevance.local-qwen2.5-1.5b", "derivation.openai-gpt-4o"


@cache
def made_up(*, items: int = 240, probabilities: bool = True, skill: float = 1.6) -> list[Judged]:
    """Two items a record; `skill` adds to the weight of the right answer."""
    rng = random.Random(0)
    found = []
    for number in range(items):
        gold = rng.choice(YES_NO)
        weights = [(rng.random() + skill * rng.random() * (name == gold)) ** 2 for name in YES_NO]
        chances = {name: w / sum(weights) for name, w in zip(YES_NO, weights, strict=True)}
        item = LabelledItem(f"r{number // 2}", "relevance", {}, gold=gold)
        answer = max(YES_NO, key=chances.__getitem__)
        found.append(Judged(item, "answered", answer, chances if probabilities else {}))
    return found


def report(judged: list[Judged], model: str = "local:qwen2.5-1.5b", **more: Any) -> JudgeReport:
    values: dict[str, Any] = {
        "model": model,
        "reading": "probability",
        "questions": (),
        "fit": Fit(),
        "stands": measure(judged, YES_NO, draws=50),
        "calibrated": None,
        "by": {},
        "people": None,
        "position": None,
        "disagreements": (),
        "skipped": {},
        "profile": judge_profile(bond(model=model)),
        "unanswered": Unanswered.of(judged),
    }
    return JudgeReport(**(values | more))


def checked(
    *judges: JudgeReport, check: str = "relevance", policy: CascadePolicy | None = None
) -> CheckReport:
    return CheckReport(check, YES_NO, 240, 120, 240, 0, 240, judges, policy=policy)


def calibration(*checks: CheckReport) -> Calibration:
    return Calibration(("labels.jsonl",), checks, None)


def policy(judged: list[Judged], agreement: float) -> CascadePolicy:
    sure = [max(one.probabilities.values()) for one in judged]
    agrees = [one.answer == one.item.reference for one in judged]
    grid = grid_from(sure, len(sure), agreement=agreement)
    stage = threshold_with_guarantee(sure, agrees, grid, agreement=agreement)
    return CascadePolicy((stage,), (0.5,), 0.5)


@cache
def full() -> Calibration:
    """A calibrated judge of probabilities with a policy, and a structured one on a second check."""
    judged = made_up()
    promised = Guarantee(agreement=0.7, level=0.95, labels=240, decided=0.5)
    calibrated = measure(made_up(skill=2.0), YES_NO, draws=50)
    first = report(judged, calibrated=calibrated, profile=judge_profile(guarantee=promised))
    return calibration(
        checked(first, policy=policy(judged, 0.7)),
        checked(report(made_up(probabilities=False), "openai:gpt-4o"), check="derivation"),
    )


def texts(path: Path) -> str:
    """The words of an SVG, which must be text of its own and not outlines."""
    nodes = ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(node.itertext()).strip() for node in nodes)


def test_each_plot_says_what_it_shows_and_over_how_many(tmp_path: Path) -> None:
    drawn = {path.name: path for path in draw(full(), tmp_path)}
    kinds = ("reliability", "risk", "threshold")
    assert list(drawn) == [f"{FIRST}.{kind}.{end}" for kind in kinds for end in ("png", "svg")]
    assert drawn[f"{FIRST}.risk.png"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    reliability = texts(drawn[f"{FIRST}.reliability.svg"])
    assert "240 of 240 items have a probability; calibration error" in reliability
    assert "calibrated" in reliability and "share labelled “yes”" in reliability
    check = full().checks[0]
    risk = check.judges[0].final.risk_coverage[-1].risk
    assert f"risk of keeping all {risk:.2f}" in texts(drawn[f"{FIRST}.risk.svg"])
    assert check.policy is not None
    (stage,) = check.policy.stages
    threshold = texts(drawn[f"{FIRST}.threshold.svg"])
    for said in ("chosen", "wanted 0.7", "observed", f"Decides from {stage.threshold:.3f} on"):
        assert said in threshold
    for one in stage.tested:
        assert f"{one.kept} kept" in threshold


def test_without_a_guarantee_the_reason_is_told(tmp_path: Path) -> None:
    judged = made_up(skill=0.3)
    unreached = CascadePolicy((threshold_with_guarantee([], [], [0.9]),), (0.0,), 1.0)
    for found, told in ((policy(judged, 0.95), "agreement of 95%"), (unreached, "no labels")):
        draw(calibration(checked(report(judged), policy=found)), tmp_path)
        shown = texts(tmp_path / f"{FIRST}.threshold.svg")
        assert f"No threshold holds: {told}" in shown
        assert "chosen" not in shown


def test_the_same_findings_give_the_same_bytes_and_leave_settings_alone(tmp_path: Path) -> None:
    import matplotlib

    # Asking for the backend would choose one.
    names = set(matplotlib.rcParams) - {"backend"}
    before = {name: matplotlib.rcParams[name] for name in names}
    first, again = draw(full(), tmp_path / "a"), draw(full(), tmp_path / "b")
    assert {name: matplotlib.rcParams[name] for name in names} == before
    assert [path.name for path in first] == [path.name for path in again]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_names_are_safe_and_never_shared(tmp_path: Path) -> None:
    models = ["a/b:c", "a:b/c", "A-B-C", "../../etc", "…", "$m$" * 100]
    judges = [report(made_up(items=12), model=model) for model in models]
    paths = draw(calibration(checked(*judges, check="../up <b>$c_1$\x00")), tmp_path / "new")
    assert len({path.name.casefold() for path in paths}) == len(paths) == 4 * len(models)
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    stems = [path.name for path in paths if path.match("*.risk.svg")]
    assert stems[:3] == [f"up-b-c_1.{end}.risk.svg" for end in ("a-b-c", "a-b-c-2", "A-B-C-3")]
    shown = texts(paths[-1])
    assert "../up <b>$c_1$" in shown and "$m$$m" in shown and "…" in shown


def test_without_matplotlib_the_way_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install '.*\[calibrate\]'"):
        draw(full(), tmp_path)
