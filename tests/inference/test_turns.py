"""Whose turn it is: one model at a time, none for ever, none left out."""

from __future__ import annotations

from judge.inference.turns import Turns


def test_a_model_with_calls_keeps_its_turn_and_hands_it_on_when_it_has_none() -> None:
    turns = Turns(patience=1.0, longest=100.0)
    assert turns.next({"a": 0.0}, 0.0) == "a"
    assert turns.next({"a": 0.0, "b": 0.5}, 5.0) == "a"
    turns.worked(6.0)
    assert turns.next({"b": 0.5}, 6.5) is None
    assert turns.next({"b": 0.5}, 7.0) == "b"
    assert turns.next({}, 8.0) is None


def test_records_that_ask_again_in_time_keep_the_model() -> None:
    turns = Turns(patience=1.0, longest=100.0)
    turns.next({"a": 0.0}, 0.0)
    turns.worked(2.0)
    assert turns.next({"b": 0.0}, 2.9) is None
    assert turns.next({"a": 2.9, "b": 0.0}, 2.95) == "a"


def test_no_model_waits_longer_than_a_longest_turn() -> None:
    turns = Turns(patience=1.0, longest=10.0)
    assert turns.next({"a": 0.0}, 0.0) == "a"
    # A hundred seconds alone are held against nobody.
    assert turns.next({"a": 0.0, "b": 100.0}, 100.0) == "a"
    assert turns.next({"a": 0.0, "b": 100.0}, 109.9) == "a"
    assert turns.next({"a": 0.0, "b": 100.0}, 110.0) == "b"
    assert turns.next({"a": 110.0, "b": 100.0}, 115.0) == "b"
    assert turns.next({"a": 110.0, "b": 100.0}, 120.0) == "a"


def test_of_those_that_wait_the_first_is_next() -> None:
    turns = Turns(patience=0.0)
    assert turns.next({"b": 2.0, "a": 3.0}, 3.0) == "b"
    assert turns.next({"a": 3.0, "c": 2.5}, 4.0) == "c"


def test_a_model_that_is_closed_holds_no_turn() -> None:
    turns = Turns(patience=100.0)
    turns.next({"a": 0.0}, 0.0)
    turns.gone("a")
    assert turns.next({"b": 0.0}, 0.1) == "b"
