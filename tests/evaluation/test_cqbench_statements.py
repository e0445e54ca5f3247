"""CQ-Bench's value files: statements and the attitudes to them."""

from __future__ import annotations

import pytest

from judge.evaluation.cqbench_statements import ValueStatement, parse_options, value_statement
from judge.records import Item, Problem


def test_an_item_of_a_list_of_values() -> None:
    line = {"topic": "work", "q_id": 3, "q_content": "Work first. ", "option": " 2. agree 3. No "}
    item = Item("values.jsonl", 1, line)
    assert value_statement(item) == ValueStatement(
        topic="work", q_id="3", statement="Work first.", options=["agree", "No"]
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (" 2. agree 3. Disagree ", ["agree", "Disagree"]),
        ("1. Very important 2. Not at all important", ["Very important", "Not at all important"]),
        ("1) yes, often\n2) no", ["yes, often", "no"]),
        ("-1. Don't know 1. 1 child 2. 2.5 or more", ["Don't know", "1 child", "2.5 or more"]),
        ("1.agree 2.disagree", ["agree", "disagree"]),
        ("agree, Disagree", ["agree", "Disagree"]),
        ("strongly agree\nagree\n", ["strongly agree", "agree"]),
        ("agree", ["agree"]),
        ("  ", []),
    ],
)
def test_options(text: str, options: list[str]) -> None:
    assert parse_options(text) == options


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"q_content": "x", "option": " "}, "'option' must hold attitudes"),
        ({"q_content": "x", "option": 5}, "'option' must hold attitudes, not a number"),
        ({"q_content": "x", "option": ["a", 5]}, "'option' must hold texts"),
        ({"q_content": "", "option": "1. a"}, "'q_content' must be a text"),
        ({"story": "x"}, "no q_content and option"),
    ],
)
def test_what_is_no_value_is_named(fields: dict[str, object], says: str) -> None:
    found = value_statement(Item("a.jsonl", 1, fields))
    assert isinstance(found, Problem)
    assert says in found.message
