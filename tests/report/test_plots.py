"""Plots of a calibration: what is drawn, what they say, and that they are the same each time."""

from __future__ import annotations

import random
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from judge.calibration.fitting import Fit
from judge.calibration.measures import measure, slices
from judge.calibration.observations import Judged, Unanswered
from judge.calibration.report import Calibration, CheckReport, JudgeReport
from judge.errors import UsageError
from judge.profiles import Bond, Data, Guarantee, JudgeProfile, Rates
from judge.records.labels import LabelledItem
from judge.report.plots import draw
from judge.stats.guarantee import CascadePolicy, grid_from, threshold_with_guarantee

YES_NO = ("yes", "no")
GRADES = ("agree", "neutral", "disagree")
COUNTRIES = ("Egypt", "Japan", "Brazil & Chile", "$x^2$ <b>", "Côte d’Ivoire")


def made_up(
    seed: int = 0,
    classes: Sequence[str] = YES_NO,
    *,
    items: int = 240,
    probabilities: bool = True,
    skill: float = 1.6,
    values: Sequence[str] = COUNTRIES,
    sharpened: float = 1.0,
) -> list[Judged]:
    """Two items a record; `skill` adds to the weight of the right answer, one in 12 goes lost."""
    rng = random.Random(seed)
    found = []
    for number in range(items):
        gold = rng.choice(classes)
        weights = [(rng.random() + skill * rng.random() * (name == gold)) ** 2 for name in classes]
        weights = [weight**sharpened for weight in weights]
        chances = {name: w / sum(weights) for name, w in zip(classes, weights, strict=True)}
        lost = rng.random() < 1 / 12
        item = LabelledItem(
            f"r{number // 2}", "relevance", {}, gold=gold, slices={"country": rng.choice(values)}
        )
        found.append(
            Judged(
                item,
                rng.choice(["abstained", "unreadable"]) if lost else "answered",
                None if lost else max(classes, key=chances.__getitem__),
                chances if probabilities else {},
            )
        )
    return found


def profile(check: str, model: str, guarantee: Guarantee | None = None) -> JudgeProfile:
    bond = Bond(
        check=check,
        rubric="0",
        model=model,
        identity={},
        reading="probability",
        temperature=0,
        votes=1,
    )
    data = Data(
        sources=("labels.jsonl",), digest="0", items=240, records=120, fitted_on=0, held_out=240
    )
    rates = Rates(passed=0, passes=0, failed=0, fails=0)
    return JudgeProfile(bond=bond, data=data, guarantee=guarantee, rates=rates)


def report(
    judged: Sequence[Judged],
    classes: Sequence[str] = YES_NO,
    *,
    model: str = "local:qwen2.5-1.5b-instruct",
    by: Sequence[str] = (),
    **more: Any,
) -> JudgeReport:
    stands = measure(judged, classes, draws=200)
    values: dict[str, Any] = {
        "model": model,
        "reading": "probability",
        "questions": (),
        "fit": Fit(),
        "stands": stands,
        "calibrated": None,
        "by": {
            name: {
                value: measure(part, classes, draws=200)
                for value, part in slices(judged, name).items()
            }
            for name in by
        },
        "people": None,
        "stability": None,
        "disagreements": (),
        "skipped": {},
        "profile": profile("relevance", model),
        "unanswered": Unanswered.of(judged),
    }
    return JudgeReport(**(values | more))


def checked(
    *judges: JudgeReport, check: str = "relevance", policy: CascadePolicy | None = None
) -> CheckReport:
    return CheckReport(check, YES_NO, 240, 120, 240, 0, 240, judges, policy=policy)


def calibration(*checks: CheckReport) -> Calibration:
    return Calibration(("labels.jsonl",), checks, None)


def policy(judged: Sequence[Judged], agreement: float = 0.7) -> CascadePolicy:
    rows = [
        (max(one.probabilities.values()), one.answer == one.item.reference)
        for one in judged
        if one.answer is not None
    ]
    sure = [confidence for confidence, _ in rows]
    stage = threshold_with_guarantee(
        sure,
        [agrees for _, agrees in rows],
        grid_from(sure, len(rows), agreement=agreement),
        agreement=agreement,
    )
    decided = stage.coverage.value or 0.0
    return CascadePolicy((stage,), (decided,), 1 - decided)


@cache
def full() -> Calibration:
    """A calibrated judge of probabilities with a policy, and a structured one on a second check."""
    judged = made_up()
    promised = Guarantee(agreement=0.7, level=0.95, labels=240, decided=0.5)
    probability = report(
        judged,
        by=["country"],
        calibrated=measure(made_up(sharpened=0.6), YES_NO, draws=200),
        profile=profile("relevance", "local:qwen2.5-1.5b-instruct", promised),
    )
    structured = report(
        made_up(1, GRADES, probabilities=False), GRADES, model="openai:gpt-4o", by=["country"]
    )
    return calibration(
        checked(probability, policy=policy(judged)), checked(structured, check="derivation")
    )


def texts(path: Path) -> list[str]:
    """The words of an SVG, which must be text of its own and not outlines."""
    return [
        "".join(node.itertext()).strip()
        for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    paths = draw(full(), tmp_path_factory.mktemp("plots"))
    return {path.name: path for path in paths}


@dataclass(frozen=True)
class Again:
    """A second drawing, with matplotlib's settings before and after."""

    paths: list[Path]
    before: dict[str, Any]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    import matplotlib

    # Asking for the backend would choose one.
    names = set(matplotlib.rcParams) - {"backend"}
    before = {name: matplotlib.rcParams[name] for name in names}
    paths = draw(full(), tmp_path_factory.mktemp("again"))
    return Again(paths, before, {name: matplotlib.rcParams[name] for name in names})


FIRST = "relevance.local-qwen2.5-1.5b-instruct"
SECOND = "derivation.openai-gpt-4o"


def test_what_there_is_to_show_is_drawn_twice_over(drawn: Mapping[str, Path]) -> None:
    kinds = ("reliability", "risk", "confusion", "threshold", "by-country")
    stems = [*(f"{FIRST}.{kind}" for kind in kinds), f"{SECOND}.confusion", f"{SECOND}.by-country"]
    assert list(drawn) == [f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")]
    for name, path in drawn.items():
        start = path.read_bytes()[:8]
        assert start == (b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"<?xml ve"), name


def words(drawn: Mapping[str, Path], stem: str) -> str:
    return "\n".join(texts(drawn[f"{stem}.svg"]))


def test_each_plot_says_what_it_shows_and_over_how_many(drawn: Mapping[str, Path]) -> None:
    found = full().checks[0]
    assert found.policy is not None
    (stage,), judge = found.policy.stages, found.judges[0]
    assert stage.threshold is not None
    reliability = words(drawn, f"{FIRST}.reliability")
    assert "240 of 240 items have a probability; calibration error" in reliability
    assert "calibrated" in reliability and "share labelled “yes”" in reliability
    risk = words(drawn, f"{FIRST}.risk")
    assert f"risk of keeping all {judge.final.risk_coverage[-1].risk:.2f}" in risk
    threshold = words(drawn, f"{FIRST}.threshold")
    for said in ("chosen", "wanted 0.7", "observed", f"Decides from {stage.threshold:.3f} on"):
        assert said in threshold
    for one in stage.tested:
        assert f"{one.kept} kept" in threshold


def test_confusion_holds_every_count_and_no_empty_outcome(drawn: Mapping[str, Path]) -> None:
    matrix = full().checks[1].judges[0].final.confusion
    shown = texts(drawn[f"{SECOND}.confusion.svg"])
    for name, counts in zip(matrix.rows, matrix.counts, strict=True):
        assert name in shown
        assert {str(count) for count in counts if count} <= set(shown)
    assert {"abstained", "unreadable"} <= set(shown)
    assert not {"skipped", "error"} & set(shown)


def test_without_a_guarantee_the_reason_is_told(tmp_path: Path) -> None:
    judged = made_up(skill=0.3)
    unreached = threshold_with_guarantee([], [], [0.9])
    for number, (found, told) in enumerate(
        (
            (policy(judged, 0.95), "agreement of 95%"),
            (CascadePolicy((unreached,), (0.0,), 1.0), "no labels"),
        )
    ):
        draw(calibration(checked(report(judged), policy=found)), tmp_path / str(number))
        shown = texts(tmp_path / str(number) / f"{FIRST}.threshold.svg")
        assert any(one.startswith(f"No threshold holds: {told}") for one in shown)
        assert not {"chosen"} & set(shown)


def test_slices_are_sorted_and_the_largest_are_drawn(tmp_path: Path) -> None:
    values = [f"country {number:03}" for number in range(90)]
    judge = report(made_up(items=400, values=values), by=["country"])
    parts = judge.by["country"]
    draw(calibration(checked(judge)), tmp_path)
    shown = texts(tmp_path / f"{FIRST}.by-country.svg")
    assert any(f"the 40 largest of {len(parts)} slices" in one for one in shown)
    drawn = [one.rpartition("  ")[0] for one in shown if one.startswith("country ")]
    assert len(drawn) == 40
    values_drawn = [parts[name].accuracy.value or 0.0 for name in drawn]
    assert values_drawn == sorted(values_drawn)
    least = min(parts[name].items for name in drawn)
    assert all(parts[name].items <= least for name in set(parts) - set(drawn))


def test_nothing_is_drawn_where_there_is_nothing_to_show(tmp_path: Path) -> None:
    unlabelled = [replace(one, item=replace(one.item, gold=None)) for one in made_up()]
    judge = report(unlabelled, by=["country"])
    assert draw(calibration(checked(judge)), tmp_path) == []
    assert draw(calibration(), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_judge_that_never_answers_has_only_a_confusion_matrix(tmp_path: Path) -> None:
    silent = [Judged(one.item, "error") for one in made_up()]
    paths = draw(calibration(checked(report(silent, by=["country"]))), tmp_path)
    assert {path.name for path in paths} == {f"{FIRST}.confusion.png", f"{FIRST}.confusion.svg"}
    assert "0 of 240 items answered; accuracy –, kappa –" in texts(paths[1])


def test_the_same_findings_give_the_same_bytes(drawn: Mapping[str, Path], again: Again) -> None:
    assert [path.name for path in again.paths] == list(drawn)
    for path in again.paths:
        assert path.read_bytes() == drawn[path.name].read_bytes(), path.name
        assert b"dc:date" not in path.read_bytes()


def test_names_are_safe_and_never_shared(tmp_path: Path) -> None:
    short = made_up(items=12, probabilities=False)
    models = ["a/b:c", "a:b/c", "A-B-C", "a-b-c-2", "../../etc", "…", "m" * 300]
    judges = [report(short, model=model) for model in models]
    paths = draw(calibration(checked(*judges, check="../up")), tmp_path / "new")
    assert len({path.name.casefold() for path in paths}) == len(paths) == 2 * len(models)
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    stems = [path.name.split(".confusion")[0] for path in paths if path.match("*.confusion.svg")]
    assert stems == [
        "up.a-b-c",
        "up.a-b-c-2",
        "up.A-B-C-3",
        "up.a-b-c-2-2",
        "up.etc",
        "up.unnamed",
        "up." + "m" * 60,
    ]


def test_fields_with_names_alike_keep_their_plots_apart(tmp_path: Path) -> None:
    judge = report(made_up(), by=["country"])
    parts = judge.by["country"]
    judge = replace(judge, by={"a.b": parts, "a/b": parts})
    names = [path.name for path in draw(calibration(checked(judge)), tmp_path)]
    assert f"{FIRST}.by-a-b.svg" in names
    assert f"{FIRST}.by-a-b-2.svg" in names


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    names = ["$\\frac{1}$", "a\x00b\x1b[31m\ncd", "</text><script>", "名前 نص", "\ud800", "x" * 400]
    judge = report(made_up(items=120, values=names), by=["country"], model="$m$" * 40)
    paths = draw(calibration(checked(judge, check="$c_1$")), tmp_path)
    found = {path.name.rsplit(".", 2)[1]: texts(path) for path in paths if path.suffix == ".svg"}
    words = " ".join(found["by-country"])
    for shown in ("$\\frac{1}$", "a b [31m cd", "</text><script>", "名前 نص", "xx…xx"):
        assert shown in words
    for said in found.values():
        assert any(one.startswith("$c_1$: ") for one in said)
        assert any(re.fullmatch(r"[$m]+…[$m]+", one) for one in said)


def test_the_settings_of_the_caller_are_left_alone(again: Again) -> None:
    assert again.after == again.before
    assert "matplotlib.pyplot" not in sys.modules


def test_without_matplotlib_the_way_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install '.*\[calibrate\]'"):
        draw(full(), tmp_path)
