"""Controls: the texts that a judge is shown in place of the deciding field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.calibration import controls
from judge.calibration.observe import record_for
from judge.judging.prompts import mark_of
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.stats.intervals import Estimate

from .judgements import judged

RUBRIC = builtin()["implicitness"]


def story(name: str, value: str, text: str) -> LabelledItem:
    fields = {"story": text, "values": [value, "Old houses stay--Agree"], "characters": []}
    return LabelledItem(Record("", 0, fields, name=name), "implicitness", number=1, gold="no")


def shown(item: LabelledItem) -> Record:
    return record_for(item, RUBRIC).usable()


def test_a_changed_value_leaves_the_rest_of_the_prompt_as_it_was() -> None:
    """Its fence, too: an engine evaluates the story once for all values and controls."""
    items = [story("a", "Dogs bark--Agree", "Ann left."), story("b", "Cats purr--Agree", "Bo sat.")]
    (blind, _) = controls.blinded(items, RUBRIC, "value")
    other, mark = controls.swapped(items, RUBRIC, "value")[0], mark_of(RUBRIC, shown(items[0]))
    assert shown(blind).entry("values", 1) == "(left out)--(left out)"
    assert shown(other).entry("values", 1) == "Cats purr--Agree"
    assert mark_of(RUBRIC, shown(blind)) == mark_of(RUBRIC, shown(other)) == mark


@pytest.mark.parametrize("place", ["story", "value"])
def test_a_fence_is_never_a_text_that_the_record_holds(place: str) -> None:
    mark = mark_of(RUBRIC, shown(story("a", "Dogs bark--Agree", "Ann left.")))
    value = f"{mark}--Agree" if place == "value" else "Cats purr--Agree"
    text = f"[end {mark}]" if place == "story" else "Bo sat."
    other = story("b", value, text)
    changed = story("a", "Dogs bark--Agree", "Ann left.").record.with_fields(other.record.visible)
    assert mark_of(RUBRIC, shown(replace(other, record=changed))) != mark


def test_no_field_comes_from_the_items_own_group() -> None:
    items = [story("a", "Dogs bark--Agree", "Ann left."), story("b", "Cats purr--Agree", "Bo sat.")]
    assert not controls.swapped([replace(one, group="g") for one in items], RUBRIC, "value")


@pytest.mark.parametrize(
    ("above", "contrast", "looks"),
    [(0.4, 0.4, True), (0.0, 0.4, False), (0.4, 0.0, False), (0.4, None, True)],
)
def test_a_judge_looks_where_it_beats_both_the_blind_one_and_chance(
    above: float, contrast: float | None, looks: bool
) -> None:
    def kappa(least: float) -> Estimate:
        return Estimate(least + 0.1, least, least + 0.2, n=50, of=50)

    turned = None if contrast is None else kappa(contrast)
    found = controls.Controls(
        "rule", "kappa", kappa(0.5), kappa(0.1), kappa(above), kappa(0.1), contrast=turned
    )
    assert found.looks is looks


def kappa(value: float | None, low: float | None, high: float | None, n: int = 50) -> Estimate:
    return Estimate(value, low, high, n=n, of=n)


CLEARLY, NOT = kappa(0.3, 0.1, 0.5), kappa(0.1, -0.1, 0.3)
READS, UNSHOWN = "the judge reads it", "it is not shown that the judge reads it"
FEW = "these labels are too few to show that the judge reads it"
TURNED = "with rule turned round agreement is no better than chance: the judge does not read rule"

FALLS = "kappa falls from 0.80 to 0.40 without rule"
UNDEFINED = "with rule turned round kappa is undefined, so whether the judge reads it is unknown"


def falls(to: str, rest: str) -> str:
    return f"kappa falls from {to} without rule: {rest}"


@pytest.mark.parametrize(
    ("with_it", "without", "above", "contrast", "finding"),
    [
        (0.8, 0.4, CLEARLY, None, falls("0.80 to 0.40", READS)),
        (0.8, 0.56, NOT, None, falls("0.80 to 0.56", FEW)),
        # The blind judge agrees worse than by chance, or better than the one that sees the field.
        (0.5, -0.2, CLEARLY, None, falls("0.50 to -0.20", READS)),
        (0.4, 0.6, NOT, None, f"agreement does not fall without rule: {UNSHOWN}"),
        # At the limit itself there is an agreement.
        (0.05, 0.02, NOT, None, falls("0.05 to 0.02", FEW)),
        (0.04, 0.02, NOT, None, "no agreement, with rule or without it"),
        (None, 0.2, NOT, None, "kappa is undefined, so whether the judge reads rule is unknown"),
        (0.8, None, NOT, None, "kappa is undefined, so whether the judge reads rule is unknown"),
        # Turned round, its interval ends at 0, or it has none and the value is no higher.
        (0.8, 0.4, CLEARLY, kappa(-0.3, -0.6, 0.0), TURNED),
        (0.8, 0.4, CLEARLY, kappa(-1.0, None, None), TURNED),
        # Undefined (all its labels are the same, or none is left), it shows neither.
        (0.8, 0.4, CLEARLY, kappa(None, None, None), f"{FALLS}, but {UNDEFINED}"),
        (0.8, 0.4, NOT, kappa(None, None, None), falls("0.80 to 0.40", FEW)),
        # An interval that reaches above 0 shows nothing.
        (0.8, 0.4, CLEARLY, kappa(-0.1, -0.4, 0.2), falls("0.80 to 0.40", FEW)),
        # All of enough items answered rightly: no resample differs, and the value stands for it.
        (0.8, 0.4, CLEARLY, kappa(1.0, None, None, n=20), falls("0.80 to 0.40", READS)),
        (0.8, 0.4, CLEARLY, kappa(1.0, None, None, n=19), falls("0.80 to 0.40", FEW)),
    ],
)
def test_what_the_report_says_of_the_field(
    with_it: float | None,
    without: float | None,
    above: Estimate,
    contrast: Estimate | None,
    finding: str,
) -> None:
    with_rule, blind = kappa(with_it, 0.1, 0.9), kappa(without, 0.0, 0.5)
    found = controls.Controls("rule", "kappa", with_rule, blind, above, NOT, contrast=contrast)
    assert found.finding() == finding
    assert found.looks is finding.endswith(f": {READS}")


def test_a_contrast_set_with_a_single_label_shows_nothing_of_the_judge() -> None:
    rows = [judged(f"r{n}", label, label) for n in range(20) for label in ("yes", "no")]
    turned = [judged(f"r{n}", "yes" if n == 0 else "no", "no") for n in range(20)]
    relevance = builtin()["relevance"]
    measured = controls.controls_of(
        relevance,
        rows,
        [judged("", "yes", row.item.gold) for row in rows],
        [],
        [],
        turned,
        seed=0,
        draws=50,
    )
    # 19 of 20 are right, and kappa would be 0.
    assert measured.contrast == Estimate(None, None, None, n=20, of=20)
    assert measured.finding().endswith("is undefined, so whether the judge reads it is unknown")


def test_scores_that_are_never_right_and_always_near_show_that_the_judge_reads() -> None:
    """One point off each time: kappa is below 0. Labels and scores are uniform over 1 to 4, so by
    chance the square of the distance is (6 * 1 + 4 * 4 + 2 * 9) / 16 = 2.5: weighted kappa 0.6."""
    tone = Rubric.from_dict(
        {
            "name": "tone",
            "question": "How kind?",
            "fields": ["text"],
            "answers": [1, 2, 3, 4],
            "pass": ">= 3",
        }
    )
    near = {"1": "2", "2": "1", "3": "4", "4": "3"}
    rows = [judged(f"r{n}", near[label], label) for n in range(10) for label in near]
    blind = [judged("", "2", row.item.gold) for row in rows]
    measured = controls.controls_of(tone, rows, blind, [], [], None, seed=0, draws=50)
    assert measured.kappa.value == pytest.approx(1 - 1 / 2.5)
    assert (
        measured.finding()
        == "weighted kappa falls from 0.60 to 0.00 without text: the judge reads it"
    )
