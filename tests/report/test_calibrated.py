"""A calibration's sentences and its page: the plots, and that no text is run as markup."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from made_profiles import binding, judge_profile

from judge.calibration.finding import finding
from judge.calibration.fit import Fit
from judge.calibration.measures import measure
from judge.calibration.observe import LabelledAnswer
from judge.calibration.report import Calibration, CheckReport, Disagreement, JudgeReport
from judge.profile import Profile, Rates
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.report.calibrated import page
from judge.stats.intervals import Estimate
from tests.calibration.asking import PLAIN
from tests.report.pages import Seen, payloads, rows

YES_NO = ("yes", "no")


@cache
def report(
    model: str = "local:qwen2.5-1.5b",
    classes: tuple[str, ...] = YES_NO,
    *,
    probabilities: bool = True,
) -> JudgeReport:
    """A judge that is right of 45 items of 60, else one answer off."""
    rng, judged = random.Random(0), []
    for number in range(60):
        place = number % len(classes)
        gold, said = classes[place], classes[place - (number % 4 == 0)]
        p = 0.5 + rng.random() / 2
        rest = (1 - p) / (len(classes) - 1)
        chances = {name: p if name == said else rest for name in classes}
        item = LabelledItem(Record("", number, {}), "relevance", gold=gold)
        judged.append(LabelledAnswer(item, "answered", said, chances if probabilities else {}))
    found = measure(judged, classes, draws=50)
    about = {"quote": model, "reason": model, "fields": {"story": model}, "votes": {}}
    wrong = Disagreement(
        *("r1", "relevance", 0, "yes", "no", 0.9), **about, whys={model: model}, source="", line=1
    )
    return JudgeReport(
        model=model,
        method="logprobs",
        questions=(),
        fit=Fit(),
        uncalibrated=found,
        calibrated=found if probabilities else None,
        by={},
        people=None,
        disagreements=(wrong,),
        skipped={},
        profile=judge_profile(binding()),
        outcomes=Counter(answered=60),
    )


def check(*judges: JudgeReport, name: str = "relevance", clusters: int = 60) -> CheckReport:
    rubric = PLAIN.model_copy(update={"name": name, "question": name})
    labels: dict[str, Any] = {"references": {"yes": 60}, "fitted_on": 0, "held_out": 60}
    labels |= {"items": 60, "records": 60, "labelled_by": {name: 60}, "joined": 0}
    return CheckReport(
        rubric, clusters=clusters, shown=(), withheld=(), leak=None, judges=judges, **labels
    )


def calibration(*judges: JudgeReport, name: str = "relevance") -> Calibration:
    return Calibration(("labels.jsonl",), (check(*judges, name=name),), None)


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.85, 0.95, "use it for verdicts on single records like these, not for other kinds"),
        (0.39, 0.70, "use it for choosing what people read first, not for rates or verdicts"),
        (-0.1, 0.2, "it may be guessing, so use it for nothing yet"),
        (-0.6, -0.2, "it agrees less than a guess would"),
        (None, None, "too few labels for an interval, so use it for nothing yet"),
    ],
)
def test_what_a_judge_is_good_for_goes_by_the_lower_end(
    low: float | None, high: float | None, said: str
) -> None:
    judge = report(probabilities=False)
    kappa = Estimate(0.55, low, high, 60, 60)
    judge = replace(judge, uncalibrated=replace(judge.uncalibrated, kappa=kappa))
    text = finding(check(judge), judge)
    assert text.startswith(f"agrees with the labels in 45 of 60, kappa {kappa}: {said}"), text
    assert ("would halve the interval" in text) == (low is not None)


def test_a_judge_that_agrees_by_chance_alone_is_called_so() -> None:
    """A judge with one answer for all has kappa 0 in every resample, which is no lack of labels."""
    judge = report(probabilities=False)
    judge = replace(
        judge, uncalibrated=replace(judge.uncalibrated, kappa=Estimate(0.0, None, None, 60, 60))
    )
    text = finding(check(judge), judge)
    assert ": no more often than a guess would, so use it for nothing yet" in text
    # Where all labels are yes no judge has another kappa, whatever it answers.
    one_label = {**judge.final.confusion, "no": dict.fromkeys(judge.final.confusion["no"], 0)}
    judge = replace(judge, uncalibrated=replace(judge.uncalibrated, confusion=one_label))
    text = finding(check(judge), judge)
    assert "kappa 0.00: all labels, or all answers, are the same" in text


def test_half_the_interval_takes_four_times_the_labels_and_clusters() -> None:
    judge = report(probabilities=False)
    assert finding(check(judge), judge).endswith("about 180 more labels would halve the interval")
    grouped = finding(check(judge, clusters=12), judge)
    assert "; about 180 more labels, in about 36 more clusters, would halve" in grouped


def test_scores_lead_with_weighted_kappa_ranks_and_points() -> None:
    """Of 60 scores 15 are off: 12 by one point, and 1 is answered by 5 three times."""
    judge = report(classes=("1", "2", "3", "4", "5"), probabilities=False)
    error = judge.final.mean_error
    assert error is not None and error.value == pytest.approx((12 * 1 + 3 * 4) / 60)
    assert error.low is not None and (error.n, error.of) == (60, 60)
    text = finding(check(judge), judge)
    assert re.match(
        r"weighted kappa 0\.\d\d \(.*\), rank correlation 0\.\d\d \(.*\), 0\.40 \(.*\) points", text
    )
    assert [*judge.final.row][1:4] == ["weighted κ", "Spearman ρ", "points off"]


# ---------------------------------------------------------------- the page


def test_the_page_says_the_sentence_first_and_draws_what_there_is() -> None:
    bare = report("openai:gpt-4o", probabilities=False)
    html = page(calibration(report(), bare))
    assert html == page(calibration(report(), bare))
    seen = Seen(html)
    at = seen.words.index("agrees with the labels in 45 of 60")
    assert at < seen.words.index("accuracy") < seen.words.index("Answers (columns)")
    plots = re.findall(r'(?s)<svg class="plot".*?</svg>', html)
    assert [re.search('aria-label="(.*?)"', plot)[1] for plot in plots] == ["Reliability"]  # type: ignore[index]
    # Grey as it stands, then calibrated: a mark for each bin.
    assert plots[0].count("<circle") == 2 * len(report().final.bins)
    assert "over 60 of 60" in seen.words
    assert rows(html, "<bdi>relevance</bdi>")[0][1:] == [
        "local:qwen2.5-1.5b, as it stands",
        "local:qwen2.5-1.5b, calibrated",
        "openai:gpt-4o",
    ]


def test_the_page_counts_records_and_says_what_the_profile_cannot_do() -> None:
    few = Rates(passed=10, passes=20, failed=5, fails=12, undecided_fails=2, design_effect=1.5)
    one = report().profile.model_copy(update={"rates": few})
    about = check(replace(report(), profile=one), name="")
    found = replace(calibration(), checks=(about,), profile=Profile(made_by="judge", judges=[one]))
    seen = " ".join(page(found).split())
    assert "Labelled by</dt><dd>not named (60 records)" in seen
    assert "34 labels worth 23 independent ones: an interval that holds takes 60 at least" in seen
    assert "label about 56 more." in seen  # 60 x 1.5 - 34
    whole = replace(about, items=120, records=60)
    assert "label about 112 more" in page(replace(found, checks=(whole,)))
    assert "not named (60 labels)" in page(replace(found, checks=(whole,)))
    enough = Rates(passed=30, passes=31, failed=30, fails=31)
    good = report().profile.model_copy(update={"rates": enough})
    better = replace(about, judges=(replace(report(), profile=good),))
    assert "corrects no" not in page(replace(found, checks=(better,)))


def test_scores_are_drawn_beside_their_labels() -> None:
    judge = report(classes=("1", "2", "3", "4", "5"), probabilities=False)
    html = page(calibration(judge))
    (plot,) = re.findall(r'(?s)<svg class="plot".*?</svg>', html)
    cells = [n for row in judge.final.confusion.values() for n in row.values() if n]
    assert plot.count("<circle") == len(cells)
    assert "label 1, answer 5: 3" in plot


def test_no_text_acts_and_nothing_is_loaded() -> None:
    calm = {tag for tag, _ in Seen(page(calibration(report()))).elements}
    for text in payloads("http://127.0.0.1:9/"):
        seen = Seen(page(calibration(report(text), name=text)))
        assert {tag for tag, _ in seen.elements} <= {*calm, "span"} and not seen.comments
        attributes = {name for _, found in seen.elements for name in found}
        assert not attributes & {"src", "href", "style"} and not any(
            name.startswith("on") for name in attributes
        )
