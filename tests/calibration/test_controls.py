"""Controls: what a judge is shown in place of the field that decides."""

from __future__ import annotations

import pytest

from judge.calibration import controls
from judge.calibration.labels import subject_of
from judge.records.labels import LabelledItem
from judge.rubric import builtin
from judge.subject import Subject

RUBRIC = builtin()["implicitness"]


def story(name: str, value: str, text: str) -> LabelledItem:
    fields = {"story": text, "values": [value, "Old houses stay--Agree"], "characters": []}
    return LabelledItem(name, "implicitness", fields, number=1, gold="no")


def shown(item: LabelledItem) -> Subject:
    subject = subject_of(item, RUBRIC)
    assert isinstance(subject, Subject)
    return subject


def test_a_changed_value_leaves_the_rest_of_the_prompt_as_it_was() -> None:
    """Its fence, too: an engine evaluates the story once for all values and controls."""
    items = [story("a", "Dogs bark--Agree", "Ann left."), story("b", "Cats purr--Agree", "Bo sat.")]
    (blind, _) = controls.blinded(items, RUBRIC, "value")
    other = controls.swapped(items, RUBRIC, "value")[0]
    assert shown(blind).value(1) == "(left out)--(left out)"
    assert shown(other).value(1) == "Cats purr--Agree"
    assert shown(blind).mark == shown(other).mark == shown(items[0]).mark


@pytest.mark.parametrize("place", ["story", "value"])
def test_a_fence_is_never_a_text_that_the_record_holds(place: str) -> None:
    mark = shown(story("a", "Dogs bark--Agree", "Ann left.")).mark
    value = f"{mark}--Agree" if place == "value" else "Cats purr--Agree"
    text = f"[end {mark}]" if place == "story" else "Bo sat."
    other = story("b", value, text)
    assert shown(LabelledItem("b", "implicitness", other.fields, number=1, mark=mark)).mark != mark
