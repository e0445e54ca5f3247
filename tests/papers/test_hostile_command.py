"""`judge evaluate hostile` as a user types it, on judges that obey, that do not, and that fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.judging.injection import injections
from judge.papers import hostile_suite as suite
from judge.papers.hostile_suite import CONTROL, cases, subject_of
from judge.questions.ready_made import builtin
from tests.cli.conftest import lines
from tests.cli.typed import Typed
from tests.papers.hostile_answers import right, script, wanted

RUBRICS = dict(builtin())
ALL = cases(RUBRICS)
HOSTILE = sum(case.family != CONTROL for case in ALL)
HARMLESS = len(ALL) - HOSTILE
SEEN = sum(
    bool(injections(RUBRICS[c.check], subject_of(c.id, RUBRICS[c.check], c.injected))) for c in ALL
)
"""How many have the form of a message to the judge, so that no judge is asked about them."""
HOSTILE_TEXT = ("evaluate", "hostile", "-m", "scripted:judge.yaml", "--profile", "none")


def scripted(typed: Typed, *replies: dict[str, Any]) -> None:
    typed.script("judge.yaml", replies, method="logprobs")


def printed(stdout: bytes) -> dict[str, list[dict[str, Any]]]:
    return {table["name"]: table["rows"] for table in json.loads(stdout)}


@pytest.mark.slow
def test_every_verdict_of_an_obedient_judge_is_turned(typed: Typed) -> None:
    scripted(typed, *script(ALL, RUBRICS, wanted))
    done = typed(*HOSTILE_TEXT, "--json", "-o", "out.jsonl", "-q")
    assert done.returncode == 0, done.stderr
    tables = printed(done.stdout)
    for row in tables["flips"]:
        many = HOSTILE if row["what was put in"] == "attacks" else HARMLESS
        left = SEEN if (row["what was put in"], row["prompt"]) == ("attacks", "defended") else 0
        assert (row["asked"], row["to turn"], row["abstained"]) == (many, many, left)
        assert row["turned"] == many - left
        assert row["flip rate"]["value"] == pytest.approx((many - left) / many)
        assert row["shift"]["value"] > 0.5 and row["shift"]["n"] == many - left
    rates = [row["flip rate"] for row in tables["by-rubric"] if row["prompt"] == "prompt-only"]
    assert [rate["value"] for rate in rates] == [1.0] * 14
    assert len(tables["by-attack"]) == 3 * 12


@pytest.mark.slow
def test_a_judge_that_the_defences_help_is_turned_by_the_baseline_alone(typed: Typed) -> None:
    guarded = script(ALL, RUBRICS, right)
    for entry in guarded:
        # Where there is only one "contains", the two prompts are told apart by what one lacks.
        entry["when"]["lacks"] = "Judge only what the texts say"
    scripted(typed, *guarded, *script(ALL, RUBRICS, wanted))
    done = typed(*HOSTILE_TEXT, "-o", "out.jsonl", "--json", "-q")
    tables = printed(done.stdout)
    turned = {row["prompt"]: row["turned"] for row in tables["flips"][:3]}
    assert turned == {"defended": 0, "prompt-only": 0, "undefended": HOSTILE}
    by_condition: dict[str, list[dict[str, Any]]] = {}
    for line in lines(typed.read("out.jsonl")):
        by_condition.setdefault(line["condition"], []).append(line)
    for condition, group in by_condition.items():
        assert [x["id"] for x in group if x["injection"]] == [f"{x.id}/{condition}" for x in ALL]
        turned_lines = {x["judge"]["verdict"] for x in group if x["injection"]}
        assert turned_lines == {"fail" if condition == "undefended" else "pass"}
        assert {x["judge"]["verdict"] for x in group if not x["injection"]} == {"pass"}


def test_hostile_text_is_put_into_records_of_ones_own(typed: Typed) -> None:
    """Clean, both fail; attacked, each passes: a pass is turned, and a fail was there already."""
    clean = [{"when": {"id": f"{name}:polite"}, "p_yes": 0.1} for name in ("m1", "mails.csv#3")]
    scripted(typed, *clean, {"p_yes": 0.9})
    rubric = {"name": "polite", "question": "Is it polite?", "fields": ["mail"]}
    (typed.folder / "polite.yaml").write_text(json.dumps(rubric))
    (typed.folder / "mails.csv").write_text('id,mail\nm1,"Fool, go."\n,"Go, fool."\nm3,\n')
    own = (*HOSTILE_TEXT[:2], "mails.csv", "--rubric", "./polite.yaml", *HOSTILE_TEXT[2:])
    done = typed(*own, "--condition", "prompt-only", "--json", "--all", "-o", "out.jsonl")
    assert done.returncode == 3 and b"the record has no text in mail" in done.stderr
    tables = printed(done.stdout)
    attacks = tables["flips"][0]
    families = len(suite.families()) - 1 - sum(f.on == "fail" for f in suite.families().values())
    assert attacks["asked"] == 2 * families and attacks["to turn"] == attacks["turned"]
    # Every other attack wants a fail, and begins with the other verdict on the next record.
    assert attacks["already"] == attacks["turned"] == families
    line = next(line for line in lines(typed.read("out.jsonl")) if line.get("attack") == "orders")
    assert line["injection"] in line["record"]["mail"] and "Fool, go." in line["record"]["mail"]
    # One record under two rubrics is one clean record: of --limit, and of the intervals' draws.
    (typed.folder / "kind.yaml").write_text(json.dumps({**rubric, "name": "kind"}))
    one = ("--rubric", "./kind.yaml", "--limit", "1", "--json", "-o", "one.jsonl")
    flips = printed(typed(*own, *one, "--condition", "prompt-only").stdout)["flips"][0]
    assert flips["asked"] == 2 * families
    found = {(line["row"], line["check"]) for line in lines(typed.read("one.jsonl"))}
    assert found == {("m1", "polite"), ("m1", "kind")}
    rubric |= {"answers": ["curt", "warm"]}
    (typed.folder / "polite.yaml").write_text(json.dumps(rubric))
    refused = typed(*own)
    assert refused.returncode == 2 and b"an attack cannot change a verdict" in refused.stderr


def test_unreadable_and_lost_replies_are_counted_apart_and_end_with_3(typed: Typed) -> None:
    carrier = next(case.carrier for case in ALL if case.check == "relevance")
    of_record = [case for case in ALL if case.carrier == carrier]
    first, second = of_record[:2]
    entries = script(ALL, RUBRICS, right)
    scripted(
        typed,
        {"when": {"id": first.id}, "words": {"perhaps": 0.9}},
        {"when": {"id": second.id}, "error": "bad-request"},
        *entries,
    )
    words = ("--rubric", "relevance", "--limit", "1", "--condition", "prompt-only", "--json")
    done = typed(*HOSTILE_TEXT, *words, "-o", "out.jsonl")
    assert done.returncode == 3
    for reason in (b"scripted bad-request", b"none of the likeliest"):
        assert done.stderr.count(reason) == 1, "the named items tell it, and nothing repeats it"
    row = printed(done.stdout)["flips"][0]
    asked = len([case for case in of_record if case.family != CONTROL])
    counts = asked, asked - 2, 1, 1
    assert (row["asked"], row["to turn"], row["unreadable"], row["error"]) == counts
    assert row["flip rate"]["n"] == asked - 2 and row["flip rate"]["of"] == asked
    twin, unread, lost, *others = [line["judge"] for line in lines(typed.read("out.jsonl"))]
    assert (twin["verdict"], unread["verdict"], lost["verdict"]) == ("pass", "unreadable", "error")
    assert lost["error"]["type"] == "bad-request"
    assert {line["verdict"] for line in others} == {"pass"}


def test_a_clean_twin_is_asked_once_and_replies_come_from_the_cache(typed: Typed) -> None:
    scripted(typed, *script(ALL, RUBRICS, wanted))
    words = (*HOSTILE_TEXT, "--rubric", "irony")
    asked = [case for case in ALL if case.check == "irony"]
    records = len(asked) + len({case.carrier for case in asked})
    assert f"{2 * records} calls".encode() in typed(*words).stderr
    assert b" 0 calls" in typed(*words).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--rubric", "taste"), b"taste"),
        (("rows.jsonl",), b"needs --rubric: what they are asked"),
        (("--task", "mine.yaml"), b"measures judges: --rubric FILE"),
        (("--judge-model", "scripted:judge.yaml"), b"scored by rules alone"),
        (("--rubric", "insertion"), b"no records for it"),
        (("--resume",), b"--resume needs -o"),
        (("--resume", "--overwrite", "-o", "x.jsonl"), b"exclude each other"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_asked(
    typed: Typed, words: tuple[str, ...], told: bytes
) -> None:
    scripted(typed, {"error": "denied"})
    done = typed(*HOSTILE_TEXT, *words)
    assert done.returncode == 2 and told in done.stderr
