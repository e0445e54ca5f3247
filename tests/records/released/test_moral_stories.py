"""Moral Stories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from judge.records import Item
from judge.records.labels import read_labels
from judge.records.released.common import Place
from judge.records.released.moral_stories import read_moral_stories

from ..conftest import Written
from ..found import faults, lines, sound


def moral(at: int, label: str = "1", norm: str = "") -> dict[str, str]:
    action = "moral_action" if label == "1" else "immoral_action"
    return {
        "ID": f"S{at}{label}",
        "norm": norm or f"Norm {at}.",
        action: f"Deed {at}{label}.",
        "label": label,
    }


def test_moral_stories(write: Written) -> None:
    text = lines(*(moral(at, label) for at in range(10) for label in "10"))
    items = sound(list(read_labels(str(write("a.jsonl", text)))))
    adherence = [one for one in items if one.check == "adherence"]
    assert [one.gold for one in adherence] == ["yes", "no"] * 10
    assert adherence[1].record == "S00"
    assert adherence[1].fields == {"rule_of_thumb": "Norm 0.", "story": "Deed 00."}
    relevance = [one for one in items if one.check == "relevance"]
    assert [one.record for one in relevance] == [one.record for one in adherence]
    assert Counter(one.gold for one in relevance) == {"yes": 10, "no": 10}
    for own, paired in zip(adherence, relevance, strict=True):
        norm = paired.fields["rule_of_thumb"].removesuffix(".").split()[1]
        assert own.fields["rule_of_thumb"] == paired.fields["rule_of_thumb"]
        assert (paired.fields["story"].split()[1][0] == norm) == (paired.gold == "yes")
    assert sound(list(read_labels(str(write("a.jsonl", text))))) == items


def test_moral_stories_with_both_actions(write: Written) -> None:
    line = {"ID": "S1", "norm": "N", "moral_action": "M", "immoral_action": "I", "situation": "x"}
    items = sound(list(read_labels(str(write("a.jsonl", lines(line))), "adherence")))
    assert [(one.record, one.gold, one.fields["story"]) for one in items] == [
        ("S11", "yes", "M"),
        ("S10", "no", "I"),
    ]


def test_moral_stories_that_are_broken(write: Written) -> None:
    text = lines(
        moral(1),
        {**moral(2), "label": "0"},
        {"ID": "a", "norm": "N", "label": "1"},
        {**moral(3), "norm": ""},
        {**moral(4), "label": "yes"},
        moral(1),
    )
    found = list(read_labels(f"moral-stories:{write('a.jsonl', text)}", "adherence"))
    assert faults(found) == [
        (2, "field 'label' is 0, but the line has a moral_action"),
        (3, "field 'moral_action' or 'immoral_action' is missing"),
        (4, "field 'norm' is empty"),
        (5, "field 'label' must be one of 1, 0, not 'yes'"),
        (6, "id 'S11' was already on line 1"),
    ]
    assert len(found) == 6


@given(st.lists(st.integers(0, 6), max_size=30))
def test_no_action_is_paired_with_its_own_norm_as_another(norms: list[int]) -> None:
    fields = [
        {"ID": str(at), "norm": f"N{norm}", "moral_action": f"{at} of N{norm}"}
        for at, norm in enumerate(norms)
    ]
    items = [Item("a", at, one) for at, one in enumerate(fields, 1)]
    found = sound(list(read_moral_stories(items, Place())))
    strangers = [one for one in found if one.gold == "no"]
    assert all(
        one.fields["story"].split(" of ")[1] != one.fields["rule_of_thumb"] for one in strangers
    )
    assert len({one.fields["story"] for one in strangers}) == len(strangers)
    assert len(strangers) in (0, len(norms) // 2)
    if len(set(norms)) == len(norms) >= 4:
        assert strangers


def test_moral_stories_as_released(public_data: Path) -> None:
    items = sound(list(read_labels(str(public_data / "moral_stories/norm_distance_dev.jsonl"))))
    counts = Counter((one.check, one.gold) for one in items)
    assert counts == dict.fromkeys(
        [(check, gold) for check in ("adherence", "relevance") for gold in ("yes", "no")], 1000
    )
