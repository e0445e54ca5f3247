"""With --fail-fast a record has the verdict that it has without, for fewer calls."""

from __future__ import annotations

from typing import Any

import pytest

from judge.verdict import Verdict

from . import test_norm as norm
from . import test_story as story
from .conftest import Entry, Take, Taken, entry

LEAK = {"leaks": [{"quote": "the tram", "kind": "place"}]}
OUTSPOKEN = story.never_helps("implicitness")
LOST = entry("consistency", role="accepting", **story.FAULTS["unreadable"])


async def both(
    take: Take, record: dict[str, Any], script: list[Entry], **settings: Any
) -> tuple[Taken, Taken]:
    """The record without and with fail_fast."""
    slow = await take(record, script, **settings)
    return slow, await take(record, script, fail_fast=True, **settings)


def skipped(taken: Taken) -> dict[str, str | None]:
    return {c.name: c.reason for c in taken.judgement.checks if c.verdict is Verdict.SKIPPED}


STORIES: list[tuple[list[Entry], dict[str, Any], dict[str, str], int]] = [
    # a sound story: nothing to save
    (story.SOUND, {}, {}, 0),
    # still outspoken: the accepting judge's two checks of two votes each
    (
        [*OUTSPOKEN, entry("leakage", {"leaks": []})],
        {"rubric": ("leakage",)},
        dict.fromkeys(("incorporation", "consistency", "leakage"), "implicitness"),
        6,
    ),
    # a value is missing at the end: consistency (2 votes) and leakage (2 votes)
    (
        [
            entry("incorporation", story.reflected(1), role="accepting"),
            entry("leakage", LEAK),
            *story.SOUND,
        ],
        {"rubric": ("leakage",)},
        dict.fromkeys(("consistency", "leakage"), "incorporation"),
        4,
    ),
    # a contradiction at the end: leakage
    (
        [
            entry("consistency", story.speeches(1), role="accepting"),
            entry("leakage", LEAK),
            *story.SOUND,
        ],
        {"rubric": ("leakage",)},
        {"leakage": "consistency"},
        2,
    ),
    # what is not decided may still be outweighed by an error, so that all is asked
    ([LOST, entry("leakage", LEAK), *story.SOUND], {"rubric": ("leakage",)}, {}, 0),
]


@pytest.mark.parametrize(("script", "settings", "names", "saved"), STORIES)
async def test_a_story_fails_the_same_with_fewer_calls(
    take: Take, script: list[Entry], settings: dict[str, Any], names: dict[str, str], saved: int
) -> None:
    slow, fast = await both(take, story.RECORD, script, min_words=5, rounds=1, **settings)
    assert fast.judgement.verdict is slow.judgement.verdict
    assert len(slow.calls) - len(fast.calls) == saved
    assert skipped(slow) == {}
    assert skipped(fast) == {name: f"not asked: {why} has failed" for name, why in names.items()}


async def test_a_short_story_is_still_told_to_be_short(take: Take) -> None:
    slow, fast = await both(take, story.RECORD, OUTSPOKEN, rounds=0)
    assert fast.judgement == slow.judgement
    assert all("length" in (reason or "") for reason in skipped(fast).values())


LATER = ("derivation", "abstraction", "value_derivation", "label_correctness")
NEVER = [
    entry("relevance", norm.NO),
    entry("story_regeneration", {"story": norm.NEW}, round=1),
    *norm.SOUND,
]
NORMS: list[tuple[list[Entry], int, dict[str, str], int]] = [
    (norm.SOUND, 3, {}, 0),
    # nothing will be written anew, so that a leak would change nothing
    (NEVER, 0, dict.fromkeys(("leakage", *LATER), "relevance"), 5),
    # one round: the steering judge's second examination needs no second fault, the accepting
    # judge's neither, and then the four checks that need no loop
    (NEVER, 1, dict.fromkeys(("leakage", *LATER), "relevance"), 6),
    # the accepting judge has the last word
    (
        [
            entry("relevance", norm.NO, role="accepting"),
            norm.IRRELEVANT,
            norm.REGENERATED,
            *norm.SOUND,
        ],
        3,
        dict.fromkeys(("leakage", *LATER), "relevance"),
        5,
    ),
    (
        [entry("derivation", norm.NO), *norm.SOUND],
        3,
        dict.fromkeys(LATER[1:], "derivation"),
        3,
    ),
    ([entry("derivation", error="bad-request"), *norm.SOUND], 3, {}, 0),
]


@pytest.mark.parametrize(("script", "rounds", "names", "saved"), NORMS)
async def test_a_norm_fails_the_same_with_fewer_calls(
    take: Take, script: list[Entry], rounds: int, names: dict[str, str], saved: int
) -> None:
    slow, fast = await both(take, norm.RECORD, script, rounds=rounds)
    assert fast.judgement.verdict is slow.judgement.verdict
    assert len(slow.calls) - len(fast.calls) == saved
    assert skipped(fast) == {name: f"not asked: {why} has failed" for name, why in names.items()}
