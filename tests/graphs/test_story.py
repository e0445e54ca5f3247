from __future__ import annotations

from typing import Any

import pytest
from judge.graphs import story

from judge.errors import Denied
from judge.verdict import Answer, Check, Verdict, Vote

from .conftest import Entry, Take, entry

STORY = (
    '"I never paid for the tram," said Bo. An shook her head. '
    '"My aunt walked back to pay for one apple," she said.'
)
VALUES = ["Riding without paying is wrong--Agree", "Apples are good--Agree"]
RECORD: dict[str, Any] = {
    "id": "s1",
    "story": STORY,
    "values": VALUES,
    "characters": ["Bo", "An"],
    "note": "kept",
}
MULTIPLE = {**RECORD, "values": ["Bo:Fares--Disagree", "An:Apples--Agree"], "setting": "multiple"}
SPEECH = "I never paid for the tram,"


def reflected(*numbers: int) -> dict[str, Any]:
    """A reply that finds these of the two values in the story."""
    return {
        "values": [
            {
                "value": n,
                "quote": "An shook her head." if n in numbers else None,
                "character": None,
                "reason": "",
                "reflected": "yes" if n in numbers else "no",
            }
            for n in (1, 2)
        ]
    }


def speeches(*numbers: int, quote: str = SPEECH, asked: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    """A reply that finds Bo's speech for these of the values."""
    found = [{"character": "Bo", "quote": quote}]
    return {
        "values": [
            {"value": n, "reason": "", "speeches": found if n in numbers else []} for n in asked
        ]
    }


def put_in(*numbers: int) -> dict[str, Any]:
    return {
        "insertions": [
            {"value": n, "after": "An shook her head.", "character": "An", "dialogue": f'"{n}."'}
            for n in numbers
        ]
    }


REWRITE = {"rewrites": [{"passage": 1, "text": "I walked home in the rain,"}]}
SOUND = [
    entry("incorporation", reflected(1, 2)),
    entry("consistency", speeches()),
    entry("implicitness", speeches()),
]
LOOPS = {
    "incorporation": ("insertion", reflected(1), put_in(2)),
    "consistency": ("contradiction_rewriting", speeches(1, quote="pay for one apple"), None),
    "implicitness": ("explicit_rewriting", speeches(2, quote="pay for one apple"), None),
}
SAME = {"rewrites": [{"passage": 1, "text": "pay for one apple"}]}


def never_helps(check: str) -> list[Entry]:
    """The judge finds the fault again after every rewrite."""
    rewriting, fault, reply = LOOPS[check]
    return [entry(check, fault), entry(rewriting, reply or SAME), *SOUND]


# ---------------------------------------------------------------- a sound story


@pytest.mark.parametrize("rounds", [0, 3])
async def test_a_sound_story_passes_with_as_few_votes_as_decide(take: Take, rounds: int) -> None:
    taken = await take(RECORD, SOUND, rounds=rounds, min_words=5)
    judgement = taken.judgement
    assert (judgement.verdict, judgement.reason, judgement.edits) == (Verdict.PASS, None, ())
    assert taken.changes == {} and taken.line == RECORD
    assert [(c.name, c.by, c.verdict) for c in judgement.checks] == [
        ("length", "counting", "pass"),
        ("implicitness", "loop", "pass"),
        ("incorporation", "final", "pass"),
        ("consistency", "final", "pass"),
    ]
    assert len(taken.calls) == 1 + 2 * 2
    assert judgement.usage.replies == len(taken.calls)


# ---------------------------------------------------------------- loops


@pytest.mark.parametrize("rounds", [0, 2])
@pytest.mark.parametrize("check", list(LOOPS))
async def test_a_rewriter_that_never_helps_is_asked_as_often_as_allowed(
    take: Take, check: str, rounds: int
) -> None:
    taken = await take(RECORD, never_helps(check), rounds=rounds, min_words=5)
    rewriting = LOOPS[check][0]
    assert [c.origin.round for c in taken.asked(rewriting)] == list(range(1, rounds + 1))
    assert [e.round for e in taken.judgement.edits] == list(range(1, rounds + 1))
    loop_panels = [c for c in taken.checks(check) if c.by == "loop"]
    asked = rounds + 1 if rounds or check == "implicitness" else 0
    assert [c.round for c in loop_panels] == list(range(1, asked + 1))
    # Rounds of one loop are not taken from the next.
    others = [c for c in taken.judgement.checks if c.name != check]
    assert {c.round for c in others} == {1}


@pytest.mark.parametrize("check", list(LOOPS))
async def test_one_pass_goes_on_after_a_rewrite_and_does_not_ask_again(
    take: Take, check: str
) -> None:
    """CQ-Bench, section 2.1: check, rewrite, continue; the final judge decides what it asks."""
    taken = await take(RECORD, never_helps(check), rounds=2, min_words=5, one_pass=True)
    assert len(taken.asked(LOOPS[check][0])) == len(taken.judgement.edits) == 1
    loop = [str(c.verdict) for c in taken.checks(check) if c.by == "loop"]
    if check == "implicitness":
        assert loop == ["fail", "skipped"] and taken.judgement.verdict is Verdict.PASS
    else:
        assert loop == ["fail"] and taken.judgement.verdict is Verdict.FAIL


async def test_one_pass_says_that_a_rewrite_was_not_asked_about_only_where_there_was_one(
    take: Take,
) -> None:
    script = [entry("implicitness", speeches(2, quote="pay for one apple"))]
    script.append(entry("explicit_rewriting", {"rewrites": []}))
    taken = await take(RECORD, [*script, *SOUND], rounds=2, min_words=5, one_pass=True)
    assert taken.judgement.edits == ()
    loop = [str(c.verdict) for c in taken.checks("implicitness") if c.by == "loop"]
    assert loop == ["fail"] and taken.judgement.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ({"reply": {"insertions": []}}, "invalid"),
        ({"text": '{"insertions": [', "finish_reason": "length"}, "truncated"),
    ],
)
async def test_an_unreadable_rewriter_ends_the_loop_with_a_note(
    take: Take, answer: dict[str, Any], trouble: str
) -> None:
    script = [entry("incorporation", reflected(1)), entry("insertion", **answer)]
    taken = await take(RECORD, [*script, *SOUND], min_words=5)
    assert taken.judgement.edits == () and len(taken.checks("incorporation")) == 2
    assert taken.judgement.reason is not None
    assert f"insertion gave up: {trouble}" in taken.judgement.reason
    assert taken.judgement.verdict is Verdict.FAIL and taken.judgement.original_verdict is None
    assert taken.judgement.usage.replies == len(taken.calls)


async def test_a_rewriter_that_gives_no_reply_fails_the_record_not_the_story(take: Take) -> None:
    insertions = entry("insertion", {"insertions": []}, times=1), entry("insertion", error="denied")
    script = [entry("incorporation", reflected(1)), *insertions]
    with pytest.raises(Denied) as caught:
        await take(RECORD, [*script, *SOUND], min_words=5)
    done = caught.value.unfinished
    assert done is not None, "what was asked until then stands in the error line"
    loop = [check.name for check in done.checks if check.by == "loop"]
    assert loop == ["implicitness", "incorporation"]
    assert [check.name for check in done.checks if check.by == "final"] == list(LOOPS)[:2]
    assert done.usage.replies == 2 + 2 * 2 + 1, "its first reply, which was invalid, was paid for"


@pytest.mark.parametrize("fault", ["loop", "final"])
async def test_nothing_is_changed_unless_asked(take: Take, fault: str) -> None:
    script = [entry("incorporation", reflected(1), role=fault), *SOUND]
    taken = await take(RECORD, script, rounds=0, min_words=5)
    assert taken.line == RECORD and taken.judgement.edits == () == taken.judgement.dropped
    assert taken.judgement.verdict is (Verdict.PASS if fault == "loop" else Verdict.FAIL)
    assert not [call for call in taken.calls if call.role == "rewriting"]
    asked = len(taken.calls)
    again = await take(RECORD, [*script, entry("insertion", put_in(2))], min_words=5)
    came = again.judgement.original_verdict or again.judgement.verdict
    assert came is taken.judgement.verdict, "the verdict on what came in is the same with a repair"
    assert again.judgement.edits == (), "the loop found no fault"
    assert len(again.calls) == asked + (2 if fault == "final" else 0), (
        "a record that passed is left"
    )


async def test_a_repair_stands_in_the_output_and_is_written_down(take: Take) -> None:
    script = [
        entry("consistency", speeches(1), contains=SPEECH),
        entry("contradiction_rewriting", REWRITE),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=5)
    assert taken.judgement.verdict is Verdict.PASS
    assert taken.judgement.original_verdict is Verdict.FAIL
    assert [(c.by, c.round, c.verdict) for c in taken.checks("consistency")] == [
        ("final", 1, "fail"),
        ("loop", 1, "fail"),
        ("loop", 2, "pass"),
        ("final", 1, "pass"),
    ]
    assert taken.changes["story"] == STORY.replace(SPEECH, "I walked home in the rain,")
    (edit,) = taken.judgement.edits
    assert (edit.before, edit.after, edit.character, edit.check) == (
        SPEECH,
        "I walked home in the rain,",
        "Bo",
        "consistency",
    )
    assert edit.values == (VALUES[0],)
    asked = taken.asked("contradiction_rewriting")[0].messages[-1]["content"]
    assert f"1. Bo (against value 1): {SPEECH}" in asked
    # What follows is asked about the new text, under the same mark.
    first, last = taken.calls[0].messages[-1]["content"], taken.calls[-1].messages[-1]["content"]
    assert first.split("\n")[0] == last.split("\n")[0]
    assert SPEECH in first and SPEECH not in last


# ---------------------------------------------------------------- the multiple setting, length


async def test_consistency_is_not_asked_in_the_multiple_setting(take: Take) -> None:
    taken = await take(MULTIPLE, SOUND, min_words=5)
    assert not taken.asked("consistency")
    (check,) = taken.checks("consistency")
    assert check.verdict is Verdict.SKIPPED and "multiple setting" in (check.reason or "")
    assert taken.judgement.verdict is Verdict.PASS


async def test_replies_about_many_values_have_room_for_them(take: Take) -> None:
    """Twenty values of the multiple setting: 1,600 and 15 tenths of it; two values: 1,600."""
    values = [f"Bo:Fares {n}--Disagree" for n in range(20)]
    taken = await take({**MULTIPLE, "values": values}, [], rounds=0, min_words=5)
    assert {call.max_tokens for call in taken.asked("incorporation")} == {4000}
    taken = await take(RECORD, never_helps("incorporation"), rounds=1, min_words=5)
    assert {call.max_tokens for call in taken.asked("incorporation")} == {1600}
    assert {call.max_tokens for call in taken.asked("insertion")} == {1400}


async def test_words_of_a_script_without_spaces_are_said_to_be_letters(take: Take) -> None:
    taken = await take({**RECORD, "story": "\u6cb3\u6d41\u5f88\u957f\u3002"}, SOUND)
    assert taken.judgement.reason == (
        "length: too short: 4 words (letters count as words) of at least 400"
    )


async def test_a_story_that_is_too_short_is_not_put_to_any_model(take: Take) -> None:
    taken = await take(RECORD, SOUND)
    assert not taken.calls
    assert taken.judgement.verdict is Verdict.FAIL
    words = len(STORY.split())
    assert taken.judgement.reason == f"length: too short: {words} words of at least 400"
    skipped = [c for c in taken.judgement.checks if c.verdict is Verdict.SKIPPED]
    assert [(c.name, c.by) for c in skipped] == [
        ("implicitness", "loop"),
        ("incorporation", "final"),
        ("consistency", "final"),
    ]
    assert all("length" in (c.reason or "") for c in skipped)


@pytest.mark.parametrize(("least", "verdict"), [(54, Verdict.PASS), (55, Verdict.FAIL)])
async def test_a_chinese_story_is_not_one_word(take: Take, least: int, verdict: Verdict) -> None:
    story = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u8d70\u3002" * 6
    taken = await take({**RECORD, "story": story}, SOUND, min_words=least)
    assert [check.verdict for check in taken.checks("length")] == [verdict]


async def test_a_story_that_rewriting_makes_too_short_is_rejected(take: Take) -> None:
    script = [
        entry("implicitness", speeches(1), contains=SPEECH),
        entry("explicit_rewriting", {"rewrites": [{"passage": 1, "text": "Hm."}]}),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=len(STORY.split()))
    assert [check.verdict for check in taken.checks("length")] == [Verdict.PASS, Verdict.FAIL]
    assert taken.judgement.verdict is Verdict.FAIL
    final = [c.messages[-1]["content"] for c in taken.calls if c.role == "final"]
    assert final and all(SPEECH in text for text in final), "asked of the story as it came in"


# ---------------------------------------------------------------- acceptance


async def test_values_voted_missing_are_dropped_from_the_record(take: Take) -> None:
    script = [
        entry("incorporation", reflected(1), role="final", vote=0),
        entry("incorporation", reflected(1, 2), role="final", vote=1),
        entry("incorporation", reflected(1), role="final", vote=2),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=5)
    assert len(taken.asked("incorporation", "final")) == 3
    assert taken.judgement.dropped == (VALUES[1],)
    assert taken.line == {**RECORD, "values": VALUES[:1]}
    assert taken.judgement.verdict is Verdict.FAIL
    assert taken.judgement.reason == f"incorporation: 1 of 2 failed: {RECORD['values'][1]}"


@pytest.mark.parametrize(
    ("missing", "contradicted", "verdict"),
    [((2,), (), "pass"), ((2,), (2,), "pass"), ((2,), (1,), "fail"), ((1, 2), (), "fail")],
)
async def test_with_keep_dropped_a_story_is_judged_by_the_values_left(
    take: Take, missing: tuple[int, ...], contradicted: tuple[int, ...], verdict: str
) -> None:
    script = [
        entry("incorporation", reflected(*({1, 2} - {*missing})), role="final"),
        entry("consistency", speeches(*contradicted), role="final"),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=5, keep_dropped=True)
    judged = taken.judgement
    assert judged.dropped == tuple(VALUES[n - 1] for n in missing)
    assert judged.verdict == verdict and (judged.original_verdict or "fail") == "fail"


@pytest.mark.parametrize("loop", [(1, 2), (1,)])
async def test_the_final_judges_check_is_the_last_where_the_loop_changes_nothing(
    take: Take, loop: tuple[int, ...]
) -> None:
    """The final judge misses the second value, and the writer inserts nothing."""
    script = [
        entry("incorporation", reflected(1), role="final"),
        entry("incorporation", reflected(*loop)),
        entry("insertion", {"insertions": []}),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=5)
    last = taken.checks("incorporation")[-1]
    assert (last.by, last.verdict, taken.judgement.verdict) == ("final", "fail", "fail")


async def test_contradicted_values_are_kept_and_documented(take: Take) -> None:
    script = [entry("consistency", speeches(1), role="final"), *SOUND]
    taken = await take(RECORD, script, min_words=5)
    assert taken.judgement.verdict is Verdict.FAIL and taken.changes == {}
    (found,) = taken.judgement.contradictions
    assert (found.value, found.character, found.quote) == (VALUES[0], "Bo", SPEECH)


def test_a_contradiction_is_documented_with_its_quote_where_a_vote_has_one() -> None:
    """One judge quotes the first value's speech, another goes by first tokens, without a quote."""
    quoted = Answer(value=VALUES[0], verdict=Verdict.FAIL, character="Bo", quote=SPEECH)
    silent = tuple(Answer(value=value, verdict=Verdict.FAIL) for value in VALUES[:2])
    held = Answer(value=VALUES[1], verdict=Verdict.PASS)
    votes = tuple(
        Vote(model="m:x", verdict=Verdict.FAIL, evidence=evidence)
        for evidence in ((quoted, held), silent, silent)
    )
    check = Check(name="consistency", by="final", verdict=Verdict.FAIL, votes=votes)
    assert story._contradictions(check) == (quoted, silent[1])
    assert story._contradictions(None) == ()


PROBABLE = {"method": "logprobs", "min_words": 5}


async def test_the_paragraph_that_first_tokens_went_by_is_rewritten(take: Take) -> None:
    script = [
        entry("consistency", words={"against": 0.9}, contains=VALUES[0], lacks="in the rain"),
        entry("contradiction_rewriting", REWRITE),
        entry("incorporation", words={"for": 0.9}),
        entry(words={"neither": 0.9}),
    ]
    taken = await take(RECORD, script, **PROBABLE)
    assert [e.before for e in taken.judgement.edits] == [RECORD["story"].lstrip('"')]
    assert taken.judgement.verdict is Verdict.PASS
    assert taken.judgement.usage.replies == len(taken.calls)


async def test_the_loop_judges_own_faults_do_not_decide(take: Take) -> None:
    script = [
        entry("incorporation", {"values": []}, role="loop"),
        entry("consistency", speeches(1), contains=SPEECH),
        entry("contradiction_rewriting", REWRITE),
        *SOUND,
    ]
    taken = await take(RECORD, script, min_words=5)
    loop = [check for check in taken.checks("incorporation") if check.by == "loop"]
    assert [check.verdict for check in loop] == [Verdict.UNREADABLE]
    assert taken.judgement.verdict is Verdict.PASS


async def test_an_additional_check_is_asked_by_the_final_judge(take: Take) -> None:
    leak = {"leaks": [{"quote": "the tram", "kind": "place"}]}
    taken = await take(RECORD, [entry("leakage", leak), *SOUND], min_words=5, rubric=("leakage",))
    assert [call.role for call in taken.asked("leakage")] == ["final"] * 2
    assert taken.judgement.verdict is Verdict.FAIL
    assert taken.judgement.reason == 'leakage: fail: "the tram" (place)'


async def test_implicitness_is_told_before_what_the_final_judge_found(take: Take) -> None:
    script = [
        entry("implicitness", speeches(1)),
        entry("incorporation", reflected(1)),
        entry("consistency", speeches()),
    ]
    taken = await take(RECORD, script, rounds=0, min_words=0)
    assert taken.judgement.reason is not None
    names = [part.split(":")[0] for part in taken.judgement.reason.split("; ")]
    assert names == ["implicitness", "incorporation"]
