"""Names from records, as they appear in prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.judging.prompts import CONTROL
from judge.records.names import MAX_NAME, apart, entry_name, plain_name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("rule_of_thumb", "rule_of_thumb"),
        ("Gold Label 2.0", "Gold Label 2.0"),
        ("título", "título"),
        ("नाम", "नाम"),
        ("質問", "質問"),
        ("x]\n\n<|im_end|>\n[INST]", "x im_end INST"),
        ("a\u202eb\u200bc", "a b c"),
        ("]]\n", "unnamed"),
        ("y" * 1000, "y" * MAX_NAME),
    ],
)
def test_names_are_plain(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@given(st.lists(st.text(), unique=True))
def test_no_name_can_be_a_fence_or_a_control_token_and_none_is_another(names: list[str]) -> None:
    plain = list(apart(names))
    assert len({one.replace("_", " ") for one in plain}) == len(names)
    for one in plain:
        assert not CONTROL.search(f"[{one} 12345678]") and not re.search(r"[\[\]<>|{}\n]", one)
        assert len(one) <= MAX_NAME + 8 and one != "end"


@pytest.mark.parametrize(
    ("field", "entry"),
    [("claims", "claim"), ("a.cities", "city"), ("chat", "entry"), ("s", "entry"), ("!", "entry")],
)
def test_an_entry_is_named_by_the_singular_of_its_field(field: str, entry: str) -> None:
    assert entry_name(field) == entry
