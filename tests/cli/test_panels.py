"""Several judges in the closing summary, the page and the summary file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.report.pages import Seen

from .conftest import FIXTURES
from .typed import Typed

ASK = ("validate", "r.jsonl", "--ask", "Fine?", "--on", "text", "-m", "scripted:a.yaml")
TWO = (*ASK, "-m", "scripted:b.yaml")
THREE = (*TWO, "-m", "scripted:c.yaml")


def answer(text: str) -> dict[str, Any]:
    return {"quote": None, "reason": "I say so.", "answer": text}


@pytest.fixture(autouse=True)
def judges(typed: Typed) -> None:
    """Of ten records a passes 0-5, b 0-3 and 6-7, c all: a and b differ in 4-7."""
    typed.write("r.jsonl", [{"id": f"r{n}", "text": f"Text number {n}."} for n in range(10)])
    for name, passed in (("a", range(6)), ("b", [0, 1, 2, 3, 6, 7]), ("c", range(10))):
        replies = [{"when": {"id": f"r{n}"}, "reply": answer("yes")} for n in passed]
        typed.script(f"{name}.yaml", [*replies, {"reply": answer("no")}])


def test_a_panel_is_told_and_its_early_stop_makes_no_kappa(typed: Typed) -> None:
    code, _, told = typed.text(*THREE, "-o", "o.jsonl", "--summary", "s.json")
    assert code == 0 and all(len(line) <= 80 for line in told.splitlines())
    words = " ".join(told.split())
    assert "question scripted:a.yaml passes 6 of 10 (60.0%)" in words
    assert "question scripted:c.yaml passes 4 of 4 (100.0%), asked in 4 of 10" in words
    # (0.6 - 0.52) / (1 - 0.52), and 2 / (1 + 1/6).
    assert "scripted:a.yaml and scripted:b.yaml agree in 6 of 10, kappa 0.17 (" in words
    assert "not asked everywhere, so without kappa: scripted:c.yaml" in words
    assert "2 judges count for about 1.7 independent votes or more (Kish 1965)" in words
    # Two votes where a and b agree; where they differ, c bears a out in two records of four.
    assert "question: 10 of 14 further votes changed nothing" in words
    panel = json.loads(typed.read("s.json"))["panels"]["question"]
    assert panel["judges"]["scripted:c.yaml"]["asked"] == 4
    assert panel["pairs"][0]["kappa"]["value"] == pytest.approx(1 / 6, abs=1e-6)
    assert panel["pairs"][-1]["kappa"]["value"] is None
    assert panel["effective_votes"] == {"of": 2, "at_least": pytest.approx(12 / 7, abs=1e-3)}


def test_the_page_and_a_resumed_run_say_the_same(typed: Typed) -> None:
    whole = (*THREE, "--all-votes", "-o", "o.jsonl", "--summary", "s.json")
    first = typed.text(*whole)[2]
    assert "scripted:b.yaml and scripted:c.yaml agree in 6 of 10, kappa 0.00" in " ".join(
        first.split()
    )
    panels = json.loads(typed.read("s.json"))["panels"]
    half = typed.read("o.jsonl").splitlines(keepends=True)[:4]
    (typed.folder / "o.jsonl").write_bytes(b"".join(half))
    assert typed(*whole, "--resume").returncode == 0
    assert json.loads(typed.read("s.json"))["panels"] == panels
    assert typed("report", "o.jsonl", "-o", "p.html").returncode == 0
    page = Seen(typed.read("p.html").decode()).words
    assert "Judges compared" in page
    assert "scripted:b.yamlscripted:c.yaml 6 of 10 0.00" in page
    assert "scripted:c.yaml passes 10 of 10 (100.0%)" in page


def test_what_another_judge_was_asked_again_is_no_kappa_of_the_others(typed: Typed) -> None:
    """The records that two judges were left with are those on which they agree."""
    assert typed(*TWO, "-o", "o.jsonl").returncode == 0
    again = (*ASK[:-1], "scripted:c.yaml", "-o", "o.jsonl", "--resume", "--rejudge", "abstain")
    words = " ".join(typed.text(*again)[2].split())
    assert "scripted:a.yaml passes 4 of 6 (66.7%), asked in 6 of 10" in words
    assert "agree in" not in words and "independent" not in words
    # c passes the four that were left open, and no other judge was asked again.
    assert "scripted:c.yaml passes 4 of 4 (100.0%), asked in 4 of 10" in words


def test_a_vote_edited_by_hand_that_cannot_be_read_ends_no_run(typed: Typed) -> None:
    assert typed(*TWO, "-o", "o.jsonl").returncode == 0
    first, *others = typed.read("o.jsonl").splitlines(keepends=True)
    (typed.folder / "o.jsonl").write_bytes(
        b"".join([first.replace(b'"method":"structured"', b'"method":"guess"'), *others])
    )
    code, _, told = typed.text(*TWO, "-o", "o.jsonl", "--resume", "--summary", "s.json")
    assert code == 0 and "fault in judge" not in told
    assert json.loads(typed.read("s.json"))["panels"]["question"]["units"] == 9


def test_judges_that_never_answer_or_never_differ_are_not_counted_as_independent(
    typed: Typed,
) -> None:
    """c and d pass all ten records, so nothing says how far they depend on each other; without d,
    e never answers, and two judges of three are counted."""
    typed.script("d.yaml", [{"reply": answer("yes")}])
    typed.script("e.yaml", [{"text": "no reply"}])
    many = (*THREE, "--all", "--all-votes", "-m", "scripted:d.yaml", "-o", "o.jsonl")
    words = " ".join(typed.text(*many)[2].split())
    assert "scripted:d.yaml agree in 10 of 10, kappa undefined" in words
    assert "independent votes" not in words
    mute = (*TWO, "--all-votes", "-m", "scripted:e.yaml", "-o", "m.jsonl")
    words = " ".join(typed.text(*mute)[2].split())
    assert "scripted:e.yaml decides nothing" in words
    # 2 / (1 + 1/6)
    assert "2 judges count for about 1.7 independent votes or more" in words


@pytest.mark.parametrize("more", [(), ("-m", "scripted:b.yaml")])
def test_a_judge_that_does_not_repeat_itself_is_told(typed: Typed, more: tuple[str, ...]) -> None:
    """Of r0 to r3 the first vote is said again, of r0 not by the third, of r1 not by the second; of
    r2 the others are unreadable, so nothing is said again."""
    replies: list[dict[str, Any]] = [
        {"when": {"id": "r0", "vote": 2}, "reply": answer("no")},
        {"when": {"id": "r1", "vote": 1}, "reply": answer("no")},
        {"when": {"id": "r2", "vote": 1}, "text": "no reply"},
        {"when": {"id": "r2", "vote": 2}, "text": "no reply"},
        {"reply": answer("yes")},
    ]
    typed.script("a.yaml", replies)
    run = (*ASK, *more, "--limit", "4", "--votes", "3")
    words = " ".join(typed.text(*run, "--all-votes", "-o", "o.jsonl")[2].split())
    of = 4 if more else 3  # b repeats itself.
    assert f"question: asked again, a judge says something else in 2 of {of}" in words
    assert ("further votes changed nothing" in words) == bool(more)
    once = " ".join(typed.text(*ASK, *more, "--limit", "4", "-o", "p.jsonl")[2].split())
    assert "asked again" not in once


def test_a_workflows_own_votes_that_agree_are_told_only_with_votes(typed: Typed) -> None:
    stories = ("validate", str(FIXTURES / "stories.jsonl"), "--limit", "1")
    run = (*stories, "-m", f"scripted:{FIXTURES / 'judge.yaml'}", "-o", "o.jsonl", "--overwrite")
    assert "asked again" not in typed.text(*run)[2]
    assert "asked again, a judge says something else in 0 of" in typed.text(*run, "--votes", "3")[2]


def test_labels_and_scores_of_judges(typed: Typed) -> None:
    for name, words in (("a", "123"), ("b", "133")):
        replies = [{"when": {"id": f"r{n}"}, "reply": answer(word)} for n, word in enumerate(words)]
        typed.script(f"{name}.yaml", replies)
    scored = (*TWO, "--limit", "3", "--answers", "1-3", "-o", "s.jsonl")
    words = " ".join(typed.text(*scored)[2].split())
    assert "scripted:a.yaml mean score 2.00 of 3" in words
    # Squared distances: 1 seen, and 3 * (14 + 19) - 2 * 6 * 7 = 15 by chance, 1 - 3 / 15.
    assert "agree in 2 of 3, weighted kappa 0.80" in words
    assert "2 of 3 further votes changed nothing" in words
    named = (*TWO, "--limit", "3", "--answers", "1,2,3,x", "-o", "n.jsonl")
    words = " ".join(typed.text(*named)[2].split())
    assert "scripted:b.yaml 2 3, 1 1" in words and "agree in 2 of 3, kappa 0.50" in words
    assert "r1 question: undecided (1 2, 1 3)" in words


def test_scores_read_from_probabilities_are_averaged_for_each_judge(typed: Typed) -> None:
    chances = {"r0": {"1": 0.4, "2": 0.6}, "r1": {"1": 0.5, "2": 0.25, "3": 0.25}}
    replies = [{"when": {"id": id}, "words": words} for id, words in chances.items()]
    for name in "ab":
        typed.script(f"{name}.yaml", replies)
    told = typed.text(*TWO, "--limit", "2", "--answers", "1-3", "--method", "logprobs")[2]
    # 1.6 and 1.75; the likeliest answers are 2 and 1.
    assert "question: mean score 1.68" in " ".join(told.split())
    assert "scripted:a.yaml mean score 1.68 of 2" in " ".join(told.split())


def test_a_label_with_the_name_of_a_verdict_gets_no_lost_votes(typed: Typed) -> None:
    """Two calls fail, and one judge says `error`: that is one vote of three for the label."""
    said = {"a": (None, "ok"), "b": (None, "abstain"), "c": ("error", "warning")}
    for name, answers in said.items():
        replies = [
            {"when": {"id": f"r{n}"}, **({"reply": answer(a)} if a else {"error": "bad-request"})}
            for n, a in enumerate(answers)
        ]
        typed.script(f"{name}.yaml", replies)
    labels = ("--answers", "ok,warning,error,abstain", "--limit", "2", "-o", "n.jsonl")
    assert typed(*THREE, *labels).returncode == 3
    checks = [json.loads(line)["judge"]["checks"][0] for line in typed.read("n.jsonl").splitlines()]
    # In the second record no label has two votes of three.
    assert [(check["verdict"], check.get("answer")) for check in checks] == [("abstain", None)] * 2


def test_a_model_named_twice_would_outvote_the_others_by_one_reply(typed: Typed) -> None:
    code, out, told = typed.text(*TWO, "-m", "scripted:a.yaml")
    assert (code, out) == (2, "")
    assert "scripted:a.yaml is named twice; --votes 2 asks each model twice" in told


def test_a_lost_vote_is_counted_beside_those_that_disagree(typed: Typed) -> None:
    typed.script("e.yaml", [{"text": "no reply"}])
    told = " ".join(typed.text(*TWO, "-m", "scripted:e.yaml", "-o", "o.jsonl")[2].split())
    assert "r4 question: undecided (1 pass, 1 fail, 1 unreadable; invalid: Invalid JSON" in told
    assert typed("export", "o.jsonl", "-o", "o.xml").returncode == 0
    assert "undecided (1 pass, 1 fail, 1 unreadable; invalid" in typed.read("o.xml").decode()


def test_a_single_judge_is_told_as_before(typed: Typed) -> None:
    told = typed.text(*ASK, "--votes", "3", "-o", "o.jsonl", "--summary", "s.json")[2]
    assert "agree" not in told and "panels" not in json.loads(typed.read("s.json"))


def test_abstained_records_are_named_and_the_gate_says_how_they_count(typed: Typed) -> None:
    code, _, told = typed.text(*TWO, "-o", "o.jsonl", "--fail-under", "0.5")
    assert code == 1
    assert "(40.0%, 4 of 10; counted as not passing: 4 abstain)" in " ".join(told.split())
    at = told.index("abstained: 4\n")
    assert "  r4  question: undecided (1 pass, 1 fail)" in told[at:]
    assert typed("export", "o.jsonl", "-o", "o.xml").returncode == 0
    xml = typed.read("o.xml").decode()
    assert 'failures="6"' in xml and 'message="abstained' in xml
    assert typed(*TWO, "-o", "o.jsonl", "--overwrite").returncode == 0
    assert typed("export", "o.jsonl", "-o", "o.xml", "--overwrite").returncode == 0
    assert 'failures="2" errors="0" skipped="4"' in typed.read("o.xml").decode()


def test_a_vote_that_the_server_lost_is_asked_again_by_resume(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the vote of b, r0 passes and r4 abstains, because the judges differ."""
    lost = [{"when": {"id": f"r{n}"}, "error": "server-fault", "times": 1} for n in (0, 4)]
    replies = [{"when": {"id": f"r{n}"}, "reply": answer("yes")} for n in (0, 1, 2, 3, 6, 7)]
    typed.script("b.yaml", [*lost, *replies, {"reply": answer("no")}])
    run = (*TWO, "-o", "o.jsonl", "--summary", "s.json")
    with monkeypatch.context() as once:
        once.setattr("judge.judging.transport.MAX_TRIES", 1)
        code, _, told = typed.text(*run)
    before = lines(typed.read("o.jsonl"))
    assert code == 3 and [n for n, line in enumerate(before) if abstains(line)] == [0, 4, 5, 6, 7]
    assert "2 records undecided because the server failed; the same command with --resume" in told
    assert "2 records abstain for want of a vote; --resume asks for it" in told
    summary = json.loads(typed.read("s.json"))
    assert (summary["errors"], summary["short_of_votes"]) == ({"server-fault": 2}, 2)
    code, _, told = typed.text(*run, "--resume")
    after = lines(typed.read("o.jsonl"))
    assert [n for n, line in enumerate(after) if abstains(line)] == [4, 5, 6, 7]
    assert code == 0 and " 8 kept, " in told and "undecided because" not in told
    assert after[5:] == before[5:]


def test_replies_under_way_when_the_budget_ends_are_kept(typed: Typed) -> None:
    """Two judges are asked about three entries at once; four of the six calls are allowed."""
    rubric = {"name": "fine", "question": "Fine?", "fields": ["text"], "each": "parts"}
    (typed.folder / "fine.yaml").write_text(json.dumps(rubric))
    typed.write("r.jsonl", [{"id": "r0", "text": "x", "parts": ["a", "b", "c"]}])
    for name in ("a", "b"):
        typed.script(f"{name}.yaml", [{"delay": 0.2, "reply": answer("yes")}])
    run = ("validate", "r.jsonl", "--rubric", "./fine.yaml", *TWO[6:], "-o", "o.jsonl")
    assert typed.text(*run, "--max-calls", "4")[0] == 4
    code, _, told = typed.text(*run, "--resume")
    assert code == 0 and ", 2 calls, 4 replies reused" in told


def lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def abstains(line: dict[str, Any]) -> bool:
    return bool(line["judge"]["verdict"] == "abstain")


def test_a_lost_vote_that_changes_nothing_is_not_asked_again(typed: Typed) -> None:
    typed.script("b.yaml", [{"error": "bad-request"}])
    entries = {"name": "fine", "question": "Fine?", "each": "parts"}
    (typed.folder / "fine.yaml").write_text(json.dumps(entries))
    typed.write("r.jsonl", [{"id": f"r{n}", "text": "x", "parts": ["a", "b"]} for n in (0, 9)])
    three = ("validate", "r.jsonl", "--rubric", "./fine.yaml", *THREE[6:], "-o", "o.jsonl")
    assert typed(*three).returncode == 3
    assert [*map(abstains, lines(typed.read("o.jsonl")))] == [False, True]
    assert " 1 kept, " in typed.text(*three, "--resume")[2]


def test_a_judge_that_votes_once_among_several_votes_is_named(typed: Typed) -> None:
    typed.script("b.yaml", [{"p_yes": 0.9}], method="logprobs")
    once = "scripted:b.yaml: one vote"
    for words, says in (
        ((*TWO, "--votes", "3"), f"{once}, the others 3 times (the model's"),
        ((*TWO[:-4], *TWO[-2:], "--votes", "3"), f"{once} (the model's"),
    ):
        told = " ".join(typed.text(*words, "-o", "o.jsonl", "--overwrite")[2].split())
        assert says in told, told
    assert once not in typed.text(*TWO, "-o", "o.jsonl", "--overwrite")[2]


def test_a_margin_or_a_cheap_model_without_effect_is_named(typed: Typed) -> None:
    typed.script("b.yaml", [{"p_yes": 0.9}], method="logprobs")
    one, other = (*ASK[:-2], "-m", "scripted:a.yaml"), (*ASK[:-2], "-m", "scripted:b.yaml")
    margin, cheap = ("--abstain-margin", "0.1"), ("--cheap-model", "scripted:b.yaml")
    for words, says in (
        ((*one, *margin), "--abstain-margin has no effect: no judge"),
        ((*one, *cheap, "--cheap-margin", "0.5"), "--cheap-model is not asked: "),
        ((*other, *margin), ""),
        ((*one, *margin, "--final-model", "scripted:b.yaml"), ""),
        ((*one, *cheap), ""),
    ):
        told = typed.text(*words, "-o", "o.jsonl", "--overwrite")[2]
        assert says in told and ("no effect" in told or "not asked" in told) == bool(says), told


def test_a_temperature_without_effect_is_named(typed: Typed) -> None:
    typed.script("b.yaml", [{"p_yes": 0.9}], method="logprobs")
    one, other = (*ASK[:-2], "-m", "scripted:a.yaml"), (*ASK[:-2], "-m", "scripted:b.yaml")
    cold, warm, three = ("--temperature", "0.2"), ("--vote-temperature", "0.2"), ("--votes", "3")
    for words, says in (
        ((*one, *cold), ""),
        (
            (*one, *warm),
            "--vote-temperature has no effect: each judge has one vote (--temperature)",
        ),
        ((*one, *three, *warm), ""),
        (
            (*one, *three, *cold),
            "--temperature has no effect: judges have several votes (--vote-temperature)",
        ),
        ((*other, *cold), "--temperature has no effect: no judge of these checks writes replies"),
        ((*other, "-m", "scripted:a.yaml", *cold), ""),
    ):
        told = " ".join(typed.text(*words, "-o", "o.jsonl", "--overwrite")[2].split())
        assert says in told and ("no effect" in told) == bool(says), told


def test_a_panel_has_a_probability_where_each_judge_gives_one(typed: Typed) -> None:
    for name, chance in (("b", 0.9), ("c", 0.6)):
        typed.script(f"{name}.yaml", [{"p_yes": chance}], method="logprobs")
    typed.script("lost.yaml", [{"error": "bad-request"}], method="logprobs")
    rows = ((["b"], 0.9), (["b", "c"], 0.75), (["a", "b"], None), (["b", "lost", "c"], None))
    for models, probability in rows:
        named = [word for name in models for word in ("-m", f"scripted:{name}.yaml")]
        line = json.loads(typed(*ASK[:-2], *named, "--limit", "1").stdout)
        assert line["judge"]["checks"][0].get("probability") == probability
