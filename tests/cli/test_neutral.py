"""Neutral norms by the paper's rule and by the corrected release's, as a user types it."""

from __future__ import annotations

import json
from typing import Any

from .conftest import lines
from .typed import Typed

ROW: dict[str, Any] = {
    "ID": "3",
    "Country": "japan",
    "Background": "- Shoes stay at the door.",
    "Value": "Care for other people's homes",
    "Rule-of-Thumb": "Take off your shoes before you enter a home.",
    "Story": "At supper Noa asked for more rice. Is what Noa did socially acceptable?",
    "Gold Label": "neutral",
}
SWAPPED = {**ROW, "Other Country": "egypt", "Other Background": "- Leave a little on the plate."}


def said(answer: str, quote: str | None = None) -> str:
    return json.dumps({"quote": quote, "reason": "So it is.", "answer": answer})


def replies(settled: str) -> list[dict[str, Any]]:
    line = "Shoes stay at the door."
    quote = None if settled == "neutral" else line
    return [
        {"when": {"rubric": "relevance"}, "text": said("no")},
        {"when": {"rubric": "leakage"}, "text": '{"leaks": []}'},
        {"when": {"rubric": "derivation"}, "text": said("yes", line)},
        {"when": {"rubric": "abstraction"}, "text": said("yes")},
        {"when": {"rubric": "value_derivation"}, "text": said("yes", line)},
        {"when": {"rubric": "label_correctness"}, "text": said("neutral")},
        {"when": {"rubric": "background_alone"}, "text": said(settled, quote)},
    ]


def judged(typed: Typed, row: dict[str, Any], *flags: str, settled: str = "neutral") -> Any:
    typed.write("n.jsonl", [row])
    model = typed.script("m.yaml", replies(settled))
    done = typed("validate", "n.jsonl", "-m", model, "-q", "--no-cache", *flags)
    (line,) = lines(done.stdout)
    found = {check["check"]: check["verdict"] for check in line["judge"]["checks"]}
    return line["judge"], found


def test_a_rule_that_follows_fails_a_neutral_record_of_the_first_release(typed: Typed) -> None:
    for flags in ((), ("--normad-release", "paper")):
        whole, found = judged(typed, ROW, *flags)
        assert (whole["verdict"], found["derivation"]) == ("fail", "fail")
        assert "background_alone" not in found


def test_in_the_corrected_release_it_must_follow_and_the_background_settle_nothing(
    typed: Typed,
) -> None:
    for row in (ROW, SWAPPED):
        whole, found = judged(typed, row, "--normad-release", "corrected")
        assert whole["verdict"] == "pass", whole["reason"]
        assert {found[n] for n in ("derivation", "value_derivation", "background_alone")} == {
            "pass"
        }
    whole, found = judged(typed, SWAPPED, "--normad-release", "corrected", settled="no")
    assert (whole["verdict"], found["background_alone"]) == ("fail", "fail")
    assert "Shoes stay at the door." in whole["reason"]
    # Of other records nothing changes, and the check is not asked.
    _, found = judged(typed, {**ROW, "Gold Label": "yes"}, "--normad-release", "corrected")
    assert (found["derivation"], found["background_alone"]) == ("pass", "skipped")


def test_two_backgrounds_and_no_word_on_which_is_no_guess(typed: Typed) -> None:
    whole, found = judged(typed, SWAPPED)
    assert found["derivation"] == "skipped" and whole["verdict"] == "pass"
    (check,) = [one for one in whole["checks"] if one["check"] == "derivation"]
    assert "say --normad-release corrected" in check["reason"]
    assert judged(typed, SWAPPED, "--normad-release", "paper")[1]["derivation"] == "fail"
    _, found = judged(typed, {**SWAPPED, "Gold Label": "yes"})
    assert found["derivation"] == "pass", "the rule of a yes record is of its own background"
    _, found = judged(typed, SWAPPED, "--check", "relevance")
    assert [*found] == ["relevance"]


def test_a_question_of_the_users_own_is_asked_alone(typed: Typed) -> None:
    model = typed.script("yes.yaml", [{"reply": {"answer": "yes", "quote": None, "reason": "so"}}])
    typed.write("rows.jsonl", [ROW])
    words = ("validate", "rows.jsonl", "--ask", "Is it kind?", "-m", model, "-q")
    code, out, message = typed.text(*words, "--normad-release", "corrected")
    assert code == 0, message
    assert [check["check"] for check in json.loads(out)["judge"]["checks"]] == ["question"]


def test_the_value_of_a_neutral_record_is_asked_about_where_it_is_wanted(typed: Typed) -> None:
    """NormAd's sub-task 3, which asked people about all labels, as sheets do."""
    assert judged(typed, ROW)[1]["value_derivation"] == "skipped"
    whole, found = judged(typed, ROW, "--value-of-neutral")
    assert (found["value_derivation"], found["derivation"]) == ("pass", "fail")
    names = [check["check"] for check in whole["checks"]]
    assert names.count("value_derivation") == 1
    sheet = ("label", "n.jsonl", "--check", "value_derivation", "--workers", "1", "--sheet")
    assert typed(*sheet, "b.csv").returncode == 0
    assert typed.read("b.csv").count(b"Care for other people") == 1
