"""Which calls go through the model together."""

from __future__ import annotations

from typing import Any

from judge.inference.batching import Line, Room
from judge.inference.jobs import Job

WIDE = Room(tokens=10_000, prompts=1000, rows=100_000, kept=100_000)


def job(record: str, length: int = 10, **more: Any) -> Job:
    return Job(list(range(length)), lambda outcome: None, record=record, **more)


def taken(line: Line, room: Room, covered: int = 0) -> list[str]:
    return [one.record for one in line.take(room, lambda one: covered)]


def line(*jobs: Job) -> Line:
    made = Line()
    for one in jobs:
        made.add(one)
    return made


def test_a_records_questions_stand_together_whenever_they_came() -> None:
    assert taken(line(job("a"), job("b"), job("a"), job("c"), job("b")), WIDE) == [*"aabbc"]


def test_a_batch_has_room_for_so_many_new_tokens() -> None:
    many = line(*(job(record) for record in "aabbcc"))
    assert taken(many, Room(25, 100, 1000, 1000)) == [*"aabb"]
    assert taken(many, Room(25, 100, 1000, 1000)) == [*"cc"]
    held = line(*(job(record) for record in "abcdef"))
    assert taken(held, Room(25, 100, 1000, 1000), covered=8) == [*"abcdef"]


def test_a_batch_has_room_for_so_many_prompts_and_rows() -> None:
    assert taken(line(*(job(r) for r in "abcd")), Room(1000, 3, 1000, 1000)) == [*"abc"]
    assert taken(line(*(job(r) for r in "abcd")), Room(1000, 9, 25, 1000), covered=9) == [*"ab"]


def test_a_call_larger_than_the_room_goes_alone() -> None:
    assert taken(line(job("a", 500), job("b")), Room(25, 9, 25, 25)) == ["a"]


def test_readings_and_writings_go_apart_and_a_cancelled_call_not_at_all() -> None:
    gone = job("c")
    mixed = line(job("a"), job("b", max_tokens=9), gone, job("d"))
    gone.cancelled = True
    assert taken(mixed, WIDE) == [*"ad"]
    assert taken(mixed, WIDE) == ["b"]
    assert not len(mixed)


def test_replies_have_room_for_what_they_may_become() -> None:
    writing = line(*(job(r, max_tokens=90) for r in "abc"))
    assert taken(writing, Room(1000, 9, 1000, 200)) == [*"ab"]
