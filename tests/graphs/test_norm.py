from __future__ import annotations

from typing import Any

import pytest

from judge.verdict import Verdict

from .conftest import Take, entry

STORY = "Noa rang, greeted everyone and walked across the rug in boots. Was that acceptable?"
NEW = "At supper Noa asked for more rice. Was that acceptable?"
RECORD: dict[str, Any] = {
    "id": "n1",
    "country": "somewhere",
    "background": "- Shoes stay at the door.\n- Guests bring something small.",
    "value": "Care for other people's homes",
    "rule_of_thumb": "Take off your shoes before you enter a home.",
    "story": STORY,
    "label": "no",
}
NAMES = (
    "relevance",
    "leakage",
    "derivation",
    "abstraction",
    "value_derivation",
    "label_correctness",
)


def answer(said: str, quote: str | None = None) -> dict[str, Any]:
    return {"quote": quote, "reason": "", "answer": said}


YES = answer("yes", "walked across the rug")
NO = answer("no")
LINE = answer("yes", "Shoes stay at the door.")
CLEAN: dict[str, Any] = {"leaks": []}
REGENERATED = entry("story_regeneration", {"story": NEW})
SOUND = [
    entry("relevance", YES, contains=STORY),
    entry("relevance", answer("yes", "asked for more rice")),
    entry("leakage", CLEAN),
    entry("derivation", LINE),
    entry("abstraction", answer("yes")),
    entry("value_derivation", LINE),
    entry("label_correctness", answer("no", "walked across the rug"), contains=STORY),
    entry("label_correctness", answer("no", "asked for more rice")),
]
IRRELEVANT = entry("relevance", NO, contains=STORY)


def without(*names: str) -> dict[str, Any]:
    return {name: content for name, content in RECORD.items() if name not in names}


async def test_a_sound_norm_passes_with_one_vote_a_check(take: Take) -> None:
    taken = await take(RECORD, SOUND)
    assert [(c.name, c.by, c.verdict) for c in taken.judgement.checks] == [
        (name, "loop", "pass") for name in NAMES
    ]
    assert taken.judgement.verdict is Verdict.PASS
    assert taken.changes == {} and len(taken.calls) == 6
    assert taken.judgement.usage.replies == 6


async def test_what_a_missing_background_leaves_unchecked_is_named(take: Take) -> None:
    taken = await take(without("background"), SOUND)
    skipped = {c.name: c.reason for c in taken.judgement.checks if c.verdict is Verdict.SKIPPED}
    assert skipped == {
        "derivation": "the record has no background",
        "value_derivation": "the record has no background",
    }
    assert taken.judgement.verdict is Verdict.PASS


@pytest.mark.parametrize("said", ["yes", "no"])
async def test_for_neutral_records_the_expected_answers_are_turned_round(
    take: Take, said: str
) -> None:
    script = [
        entry("relevance", answer(said, "walked across the rug")),
        entry("derivation", answer(said, "Shoes stay at the door.")),
        entry("label_correctness", answer("neutral")),
        *SOUND,
    ]
    taken = await take({**RECORD, "label": "neutral"}, script, rounds=0)
    verdict = Verdict.PASS if said == "no" else Verdict.FAIL
    assert {c.name: c.verdict for c in taken.judgement.checks} == {
        "relevance": verdict,
        "leakage": Verdict.PASS,
        "derivation": verdict,
        "abstraction": Verdict.PASS,
        "value_derivation": Verdict.SKIPPED,
        "label_correctness": Verdict.PASS,
    }
    assert taken.checks("value_derivation")[0].reason == "not asked about neutral records"
    assert taken.judgement.verdict is verdict


# ---------------------------------------------------------------- regeneration


async def test_a_story_that_misses_the_rule_is_written_anew_and_examined_again(take: Take) -> None:
    taken = await take(RECORD, [IRRELEVANT, REGENERATED, *SOUND])
    assert taken.judgement.verdict is Verdict.PASS
    assert taken.line == {**RECORD, "story": NEW}
    assert taken.judgement.original_verdict is Verdict.FAIL
    (edit,) = taken.judgement.edits
    assert (edit.check, edit.before, edit.after) == ("relevance", STORY, NEW)
    relevance = [(c.by, c.round, c.verdict) for c in taken.checks("relevance")]
    assert relevance == [
        ("loop", 1, "fail"),
        ("loop", 2, "pass"),
        ("final", 2, "pass"),
    ]
    assert {c.round for c in taken.checks("abstraction")} == {1}
    # The later checks speak about the new story too.
    assert NEW in taken.asked("label_correctness")[-1].messages[-1]["content"]
    assert taken.judgement.usage.replies == len(taken.calls)


@pytest.mark.parametrize("rounds", [0, 2])
async def test_regeneration_that_never_helps_ends(take: Take, rounds: int) -> None:
    stories = [
        entry("story_regeneration", {"story": f"{NEW} {n}"}, round=n) for n in range(1, rounds + 1)
    ]
    taken = await take(RECORD, [entry("relevance", NO), *stories, *SOUND], rounds=rounds)
    assert len(taken.asked("story_regeneration")) == len(taken.judgement.edits) == rounds
    assert [c.round for c in taken.checks("relevance") if c.by == "loop"] == list(
        range(1, rounds + 2)
    )
    assert len([c for c in taken.checks("relevance") if c.by == "final"]) == min(rounds, 1)
    assert taken.judgement.verdict is Verdict.FAIL
    assert taken.judgement.original_verdict is (Verdict.FAIL if rounds else None), (
        "a record that was rewritten says what it was before"
    )
    assert taken.judgement.reason == "relevance: fail"


async def test_the_final_judge_has_the_last_word_on_a_regenerated_story(take: Take) -> None:
    script = [entry("relevance", NO, role="final"), IRRELEVANT, REGENERATED, *SOUND]
    taken = await take(RECORD, script)
    assert taken.judgement.verdict is Verdict.FAIL
    assert taken.changes == {"story": NEW}


async def test_a_record_without_a_label_is_not_regenerated(take: Take) -> None:
    taken = await take(without("label"), [IRRELEVANT, REGENERATED, *SOUND])
    assert not taken.asked("story_regeneration")
    note = "relevance: fail; story_regeneration gave up: the record has no label"
    assert (taken.judgement.verdict, taken.judgement.reason) == (Verdict.FAIL, note)
