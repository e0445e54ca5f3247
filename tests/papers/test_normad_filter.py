"""`--workflow normad-filter`: the paper's three filters and no others, one after another."""

from __future__ import annotations

import json

from tests.cli.typed import Typed

RECORD = {
    "country": "egypt",
    "background": "- Shoes stay at the door.",
    "value": "Care",
    "rule_of_thumb": "Take off your shoes.",
    "story": "Noa took off her shoes. Was that acceptable?",
    "label": "yes",
}
LOST = {"relevance": ("1", "2", "5"), "derivation": ("2", "3"), "abstraction": ("4",)}
YES = {"quote": "Shoes stay at the door", "reason": "", "answer": "yes"}
NO = {"quote": None, "reason": "", "answer": "no"}
RUN = ("validate", "n.jsonl", "-m", "scripted:m.yaml", "--workflow", "normad-filter")


def script(typed: Typed, **lost: tuple[str, ...]) -> None:
    """Records 1 to 8; a filter says no of those that are lost to it, after `repair` none."""
    typed.write("n.jsonl", [{"id": str(n), **RECORD} for n in range(1, 9)])
    rules = [
        {"when": {"rubric": name, "id": id}, "reply": NO}
        for name, ids in lost.items()
        for id in ids
    ]
    new = {"story": "Noa kept her shoes on. Was that acceptable?"}
    rules.insert(
        0,
        {
            "when": {"rubric": "relevance", "contains": "kept her"},
            "reply": {**YES, "quote": "kept her shoes"},
        },
    )
    rules.append({"when": {"rubric": "story_regeneration"}, "reply": new})
    rules.append({"when": {"rubric": "relevance"}, "reply": {**YES, "quote": "took off her shoes"}})
    typed.script("m.yaml", [*rules, {"reply": YES}])


def test_each_filter_sees_what_the_one_before_let_through(typed: Typed) -> None:
    script(typed, **LOST)
    code, _, told = typed.text(*RUN, "-o", "o.jsonl", "--summary", "s.json")
    assert code == 0, told
    rows = [line.split() for line in told.splitlines()]
    assert ["relevance", "8", "5"] in rows and ["abstraction", "4", "3"] in rows
    funnel = [[*stage.values()] for stage in json.loads(typed.read("s.json"))["funnel"]["stages"]]
    assert funnel == [["relevance", 8, 5], ["derivation", 5, 4], ["abstraction", 4, 3]]
    lines = [json.loads(line) for line in typed.read("o.jsonl").splitlines()]
    asked = {line["id"]: [c["check"] for c in line["judge"]["checks"]] for line in lines}
    assert asked["2"] == ["relevance"] and asked["3"] == ["relevance", "derivation"]
    assert asked["8"] == ["relevance", "derivation", "abstraction"], "no leakage, no label check"


def test_a_situation_off_the_rule_is_regenerated_first(typed: Typed) -> None:
    script(typed, **LOST)
    run = (*RUN, "--repair", "--rounds", "3", "--test", "story: {contains: kept}")
    code, _, _ = typed.text(*run, "-o", "o.jsonl", "--summary", "s.json")
    assert code == 0
    funnel = [[*stage.values()] for stage in json.loads(typed.read("s.json"))["funnel"]["stages"]]
    assert funnel == [["relevance", 8, 8], ["derivation", 8, 6], ["abstraction", 6, 5]]
    second = json.loads(typed.read("o.jsonl").splitlines()[1])["judge"]["checks"]
    tested = [check["verdict"] for check in second if check["check"] == "story_contains"]
    assert tested == ["fail", "pass"], "the situation as it came, and the new one"
