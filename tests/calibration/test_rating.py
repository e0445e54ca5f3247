"""Error rates by hand, labels by key, and the digest of the labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.calibration.labels import subject_of
from judge.calibration.observations import Judged
from judge.calibration.rating import data_of, edited, labels_by_key, rates, should_pass
from judge.profiles import item_key
from judge.records import Item, Record, build
from judge.records.labels import Annotation, LabelledItem
from judge.rubric import builtin
from judge.subject import Subject

from .asking import PLAIN, norm_item

RELEVANCE = builtin()["relevance"]


def rated(record: str, answer: str | None, gold: str | None) -> tuple[Judged, Subject]:
    item = norm_item(record, gold)
    subject = subject_of(item, PLAIN)
    assert isinstance(subject, Subject)
    return Judged(item, "answered" if answer else "abstained", answer), subject


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
    found = rates(RELEVANCE, [(Judged(item, "answered", "no"), about[1])])
    assert (found.passed, found.passes, found.fails) == (1, 1, 0)


def test_records_whose_items_go_together_widen_the_intervals() -> None:
    """Ten records of four items, each record wholly right or wholly wrong: worth ten items."""
    pairs = [rated(f"{n}", "yes" if n % 2 else "no", "yes") for n in range(10) for _ in range(4)]
    assert rates(PLAIN, pairs).design_effect == pytest.approx(4.0)
    # All right: the data cannot tell, so the most that clusters of four could bring.
    right = [rated(f"{n}", "yes", "yes") for n in range(10) for _ in range(4)]
    assert rates(PLAIN, right).design_effect == 4.0
    uneven = [rated("big", "yes", "yes")] * 3 + [rated("small", "yes", "yes")]
    assert rates(PLAIN, uneven).design_effect == (9 + 1) / 4
    assert rates(PLAIN, []).design_effect == 1.0


def test_what_passes_by_a_label_is_known_where_the_reference_is_the_label() -> None:
    rubric = builtin()["entailment"]
    item = LabelledItem("a", "entailment", {"premise": "p", "hypothesis": "h"}, gold="neutral")
    subject = subject_of(item, rubric)
    assert isinstance(subject, Subject)
    right = rates(rubric, [(Judged(item, "answered", "neutral"), subject)])
    wrong = rates(rubric, [(Judged(item, "answered", "entailment"), subject)])
    assert (right.passed, right.passes, right.fails) == (1, 1, 0)
    assert (wrong.passed, wrong.passes, wrong.fails) == (0, 1, 0)


def test_labels_are_found_again_by_the_records_text() -> None:
    pairs = [rated("a", "yes", "yes"), rated("b", None, "no"), rated("c", "yes", None)]
    pairs.append(rated("d", "yes", "unsure"))
    found = labels_by_key(PLAIN, pairs)
    assert found == {item_key(pairs[0][1], None): True, item_key(pairs[1][1], None): False}
    fields = {"id": "other", **pairs[0][0].item.fields}
    made = build(Item("elsewhere.csv", 7, fields), "norm")
    assert isinstance(made, Record)
    assert item_key(Subject.of(made), None) in found


def test_each_value_has_a_label_of_its_own() -> None:
    fields = {"story": "An left.", "values": ["Pears--Agree", "Plums--Agree"]}
    rubric, pairs = builtin()["incorporation"], []
    for number, gold in ((1, "yes"), (2, "no")):
        item = LabelledItem("s", "incorporation", fields, number=number, gold=gold)
        subject = subject_of(item, rubric)
        assert isinstance(subject, Subject)
        pairs.append((Judged(item, "answered", "yes"), subject))
    assert list(labels_by_key(rubric, pairs).values()) == [True, False]


def test_edited_records_are_a_stratum_of_their_own() -> None:
    one, subject = rated("a", "yes", "yes")
    for said, expected in (("yes", True), ("no", False), (None, False)):
        slices = {} if said is None else {"edited": said}
        item = replace(one.item, slices=slices)
        assert edited(item) is expected
        assert bool(labels_by_key(PLAIN, [(replace(one, item=item), subject)])) is not expected


def test_the_digest_is_of_items_and_answers_in_any_order() -> None:
    voted = norm_item("b", None, annotations=(Annotation("w1", "yes"), Annotation("w2", "no")))
    items = [norm_item("a", "yes"), voted, norm_item("c", "no", number=2), norm_item("c", "no")]
    data = data_of(["x.jsonl", "y.csv"], items, 3, 1)
    assert (data.sources, data.items, data.records) == (("x.jsonl", "y.csv"), 4, 3)
    assert (data.fitted_on, data.held_out) == (3, 1)
    assert data_of(["z"], items[::-1], 0, 0).digest == data.digest
    changed = [
        replace(items[0], gold="no"),
        replace(items[0], number=1),
        replace(items[0], record="other"),
        replace(items[0], annotations=(Annotation("w1", "yes"),)),
    ]
    digests = {data_of(["x"], [one, *items[1:]], 0, 0).digest for one in changed}
    assert len(digests | {data.digest}) == len(changed) + 1
