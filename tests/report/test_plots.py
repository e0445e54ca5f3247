"""Plots of a calibration: what is drawn, what they say, and that they are the same each time."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from pathlib import Path

from made_profiles import binding, judge_profile

from judge.calibration.fit import Fit
from judge.calibration.measures import measure
from judge.calibration.observe import LabelledAnswer
from judge.calibration.report import Calibration, CheckReport, JudgeReport
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.report.plots import draw

YES_NO = ("yes", "no")


@cache
def report(model: str = "local:qwen2.5-1.5b", *, probabilities: bool = True) -> JudgeReport:
    """A judge that is mostly right."""
    rng, judged = random.Random(0), []
    for number in range(60):
        gold, p = rng.choice(YES_NO), 0.5 + rng.random() / 2
        chances = {name: p if name == gold else 1 - p for name in YES_NO}
        item = LabelledItem(Record("", number, {}), "relevance", gold=gold)
        judged.append(LabelledAnswer(item, "answered", gold, chances if probabilities else {}))
    found = measure(judged, YES_NO, draws=20)
    return JudgeReport(
        model=model,
        method="logprobs",
        questions=(),
        fit=Fit(),
        stands=found,
        calibrated=found,
        by={},
        people=None,
        disagreements=(),
        skipped={},
        profile=judge_profile(binding(model=model)),
        outcomes=Counter(answered=60),
    )


def calibration(*judges: JudgeReport, check: str = "relevance") -> Calibration:
    made = CheckReport(check, YES_NO, 60, 60, 60, 0, (), (), None, 60, 0, 60, judges)
    return Calibration(("labels.jsonl",), (made,), None)


def texts(path: Path) -> str:
    """The words of an SVG, which must be text of its own and not outlines."""
    nodes = ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(node.itertext()).strip() for node in nodes)


def test_a_plot_says_what_it_shows_and_is_the_same_each_time(tmp_path: Path) -> None:
    import matplotlib

    # Asking for the backend would choose one.
    names = set(matplotlib.rcParams) - {"backend"}
    before = {name: matplotlib.rcParams[name] for name in names}
    found = calibration(report(), report("openai:gpt-4o", probabilities=False))
    (path,) = draw(found, tmp_path)
    assert path.name == "relevance.local-qwen2.5-1.5b.reliability.svg"
    shown, drawn = texts(path), path.read_bytes()
    assert "60 of 60 items have a probability; calibration error" in shown
    assert "calibrated" in shown and "share labelled “yes”" in shown
    draw(found, tmp_path)
    assert path.read_bytes() == drawn
    assert {name: matplotlib.rcParams[name] for name in names} == before


def test_names_are_safe_and_never_shared(tmp_path: Path) -> None:
    models = ["a/b:c", "a:b/c", "A-B-C", "../../etc", "…", "$m$" * 100]
    paths = draw(calibration(*map(report, models), check="../up <b>$c_1$\x00"), tmp_path)
    assert len({path.name.casefold() for path in paths}) == len(paths) == len(models)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    ends = ("a-b-c", "2-a-b-c", "3-A-B-C")
    assert [path.name for path in paths[:3]] == [f"up-b-c_1.{end}.reliability.svg" for end in ends]
    shown = texts(paths[-1])
    assert "../up <b>$c_1$" in shown and "$m$$m" in shown and "…" in shown
