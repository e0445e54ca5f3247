"""Error rates by hand, and the digest of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judge.calibration.labels import Job, subject_of
from judge.calibration.observations import Judged
from judge.calibration.rating import data_of, rates, should_pass
from judge.calibration.trials import Parts, Study
from judge.profiles import Data
from judge.records.labels import Annotation, LabelledItem
from judge.rubric import builtin
from judge.subject import Subject

from .asking import PLAIN, norm_item

RELEVANCE = builtin()["relevance"]


def rated(record: str, answer: str | None, gold: str | None) -> Judged:
    item = norm_item(record, gold)
    subject = subject_of(item, PLAIN)
    assert isinstance(subject, Subject)
    return Judged(item, "answered" if answer else "abstained", answer, subject=subject)


def test_rates_by_hand() -> None:
    found = rates(
        PLAIN,
        [
            rated("a", "yes", "yes"),
            rated("b", "yes", "yes"),
            rated("c", "no", "yes"),
            rated("d", "no", "no"),
            rated("e", "yes", "no"),
            rated("f", None, "yes"),
            rated("g", None, "no"),
            rated("h", "yes", None),
            rated("i", None, None),
            rated("j", "no", "unsure"),
        ],
    )
    assert (found.passed, found.passes) == (2, 3)
    assert (found.failed, found.fails) == (1, 2)
    assert (found.undecided, found.design_effect) == (2, 1.0)


def test_what_passes_depends_on_the_rule_and_the_records_own_label() -> None:
    """Relevance: a story whose label is neutral should not be about the rule."""
    about = [
        Subject("a", "norm", {"story": "x", "rule_of_thumb": "y"}, "mark", label=label)
        for label in ("yes", "neutral", None)
    ]
    assert [should_pass(RELEVANCE, subject, "yes") for subject in about] == [True, False, True]
    assert [should_pass(RELEVANCE, subject, "no") for subject in about] == [False, True, False]
    item = norm_item("a", "no", check="relevance")
    # Said no, as people do, of a neutral story: a pass that should be one.
    found = rates(RELEVANCE, [Judged(item, "answered", "no", subject=about[1])])
    assert (found.passed, found.passes, found.fails) == (1, 1, 0)


def test_the_digest_is_of_items_and_answers_in_any_order() -> None:
    def data_from(items: Sequence[LabelledItem]) -> Data:
        unused: Any = None
        parts = Parts([0, 1, 2], [], [3])
        return data_of(Study(Job(["x.jsonl", "y.csv"]), unused, unused, items, parts, {}))

    voted = norm_item("b", None, annotations=(Annotation("w1", "yes"), Annotation("w2", "no")))
    items = [norm_item("a", "yes"), voted, norm_item("c", "no", number=2), norm_item("c", "no")]
    data = data_from(items)
    assert (data.sources, data.items, data.records) == (("x.jsonl", "y.csv"), 4, 3)
    assert (data.fitted_on, data.held_out) == (3, 1)
    assert data_from(items[::-1]).digest == data.digest
    changed = [
        replace(items[0], gold="no"),
        replace(items[0], number=1),
        replace(items[0], record="other"),
        replace(items[0], annotations=(Annotation("w1", "yes"),)),
    ]
    digests = {data_from([one, *items[1:]]).digest for one in changed}
    assert len(digests | {data.digest}) == len(changed) + 1
