"""Rubbish, in every form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.labelled import LabelledItem
from judge.records.labels import SETS, read_labels

from ..found import lines

_KEYS = [
    *("ID", "norm", "moral_action", "label", "Country", "Rule-of-Thumb", "Story", "Gold Label"),
    *("q1", "q5_w", "premise", "hypothesis", "us_ratings", "in_ratings", "q0_gold", "worker_ids"),
    *("annotations", "labels", "text", "annotators", "other_info", "input", "output_1"),
    *("prompt_question", "prompt_option", "prompt_option_a", "answer", "question_idx", "item"),
    *("annotator", "group", "gold", "check", "id"),
]
_rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("name", SETS)
@given(st.data())
def test_rubbish_comes_back_as_problems(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / f"{name}-rubbish.jsonl"
    objects = data.draw(
        st.lists(st.dictionaries(st.sampled_from(_KEYS), _rubbish, min_size=3), max_size=3)
    )
    text = lines(*objects).replace("Infinity", "1")
    path.write_text(text, "utf-8")
    for found in read_labels(f"{name}:{path}"):
        assert isinstance(found, LabelledItem) or (found.problem and found.fields is None)
