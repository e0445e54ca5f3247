"""`judge calibrate` as a user types it: tables, JSON, the folder it leaves, exit codes."""

from __future__ import annotations

import errno
import json
import random
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.profiles import named

from .conftest import FIXTURES, Shell, jsonl, lines

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """The command in this process and an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.yaml").write_text(PLAIN)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(tmp_path / "cache"))

    def run(*words: str, command: str = "calibrate") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["judge", command, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


PLAIN = """
name: plain
title: Is the rule kept?
source: made up
kinds: [norm]
fields: [rule_of_thumb, story]
reply: YesNo
verdict: {pass: "yes"}
readings:
  structured: {question: "Is the rule kept? Answer yes or no."}
  probability:
    steps:
      - {question: "Is the rule kept? Answer Yes or No.", "yes": "yes", "no": "no"}
"""
"""A rubric with a single question, which is fitted to quickly."""

ASKED = ("--check", "plain", "--rubric", "plain.yaml", "-q")
CHECK = (*ASKED, "--draws", "20")


def norm(number: int, answer: Any, seems: str, **more: Any) -> dict[str, Any]:
    """A norm whose story says, for a scripted judge, how it seems: `bright`, `dim`, ..."""
    return {
        "id": f"n{number}",
        "rule_of_thumb": "Greet.",
        "story": f"On a {seems} day Ann came in as number {number}.",
        "labels": {"plain": answer},
        **more,
    }


def script(name: str, chances: Mapping[str, float], **more: Any) -> str:
    """A judge that reads P(yes) off how a story seems; its spec."""
    replies = [{"when": {"contains": f"a {seems} day"}, "p_yes": p} for seems, p in chances.items()]
    text = json.dumps({"reading": "probability", "replies": replies, **more})
    Path(name).write_text(text)
    return f"scripted:{name}"


def write(name: str, records: Iterable[Mapping[str, Any]], more: bytes = b"") -> None:
    Path(name).write_bytes(jsonl(records) + more)


def seeming(count: int, wrong: int = 10, seed: int = 0) -> list[dict[str, Any]]:
    """Half bright (yes), half dim (no), with one in `wrong` labelled otherwise."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        bright = number % 2 == 0
        turned = rng.random() < 1 / wrong
        country = ["India", "Peru"][number // 2 % 2]
        answer = "yes" if bright != turned else "no"
        found.append(norm(number, answer, "bright" if bright else "dim", country=country))
    return found


YES_SAYER = {"bright": 0.9, "dim": 0.6}
"""Says yes to everything, and less so where it is wrong: something to fit."""

SENSIBLE = {"bright": 0.9, "dim": 0.1}


def cells(out: str, *beginning: str) -> list[list[str]]:
    """The cells of each row that begins with these."""
    rows = [[c.strip() for c in line.strip().split("  ") if c.strip()] for line in out.splitlines()]
    return [row for row in rows if row[: len(beginning)] == list(beginning)]


# ---------------------------------------------------------------- one command


def test_the_fixtures_in_one_command_leave_report_and_profile(typed: Typed) -> None:
    """Offline, with a scripted judge; the profile is one that a validation goes by."""
    replies = [{"when": {"contains": "not"}, "p_yes": 0.6}, {"p_yes": 0.9}]
    judge = script("yes.yaml", {}, replies=replies)
    labelled = str(FIXTURES / "labelled" / "norms.jsonl")
    words = ("--check", "relevance", "-m", judge, "-o", "done", "--draws", "20")
    code, out, told = typed(labelled, *words)
    assert code == 0, told
    assert told.rstrip().endswith("judge: report, plots and profile are in done")
    report = json.loads(Path("done/report.json").read_text())
    (check,) = report["checks"]
    assert (check["check"], check["items"], check["with_reference"]) == ("relevance", 101, 101)
    wrong = check["judges"][0]["disagreements"]
    assert lines(Path("done/disagreements.jsonl").read_bytes()) == [
        {"model": judge, **one} for one in wrong
    ]
    # What is told is of the half that is reported on, as its confusion matrix is.
    confusion = check["judges"][0]["calibrated"]["confusion"]["counts"]
    apart = sum(one["held_out"] for one in wrong)
    assert apart == confusion[0][1] + confusion[1][0]
    assert 0 < apart < len(wrong)
    assert [one["held_out"] for one in wrong] == [n < apart for n in range(len(wrong))]
    told = f"{judge}, calibrated, disagrees with {apart} of the 50 labels kept apart; the surest 5:"
    assert told in out
    assert f"answers of {judge}, calibrated" in out
    profiles = named(Path("done/profile.json"))
    assert profiles.models == (judge,)
    kinds = {path.name.split(".")[-2] for path in Path("done").glob("*.png")}
    assert kinds == {"reliability", "risk"}
    assert len(list(Path("done").glob("*.svg"))) == len(list(Path("done").glob("*.png")))


def test_validate_goes_by_the_profile_that_calibrate_wrote(typed: Typed) -> None:
    """What says yes to all alone says no to dim stories once it is calibrated."""
    judge = script("judge.yaml", YES_SAYER)
    write("labels.jsonl", seeming(160))
    code, _, told = typed("labels.jsonl", "-m", judge, *CHECK, "-o", "done")
    assert code == 0, told
    fresh = [norm(1000, "yes", "bright"), norm(1001, "no", "dim")]
    write("fresh.jsonl", [{k: v for k, v in one.items() if k != "labels"} for one in fresh])
    asked = ("fresh.jsonl", *ASKED)
    verdicts = {}
    for name, words in {
        "alone": ("-m", judge, "--profile", "none"),
        "calibrated": ("--profile", "done/profile.json"),
    }.items():
        code, out, told = typed(*asked, *words, command="validate")
        assert code == 0, told
        verdicts[name] = [line["judge"]["verdict"] for line in lines(out.encode())]
    assert verdicts == {"alone": ["pass", "pass"], "calibrated": ["pass", "fail"]}
    # Another script is another judge, of which the profile does not speak.
    script("judge.yaml", SENSIBLE)
    code, out, told = typed(*asked, "--profile", "done/profile.json", command="validate")
    assert (code, out) == (2, "")
    assert "was made for another judge of plain" in told


def test_a_cascade_that_was_guaranteed_is_used_by_validate(typed: Typed) -> None:
    """The cheap judge is right on bright and dim days and lost on grey ones."""
    rng = random.Random(1)
    rows = seeming(500, wrong=50)
    for number in range(500, 900):
        answer = rng.choice(["yes", "no"])
        rows.append(norm(number, answer, f"grey {answer}"))
    write("labels.jsonl", rows)
    cheap = script("cheap.yaml", {"bright": 0.97, "dim": 0.03, "grey yes": 0.55, "grey no": 0.56})
    strong = script("strong.yaml", {**SENSIBLE, "grey yes": 0.98, "grey no": 0.02})
    models = ("-m", cheap, "-m", strong)
    code, out, told = typed("labels.jsonl", *models, *CHECK, "--agree", "0.85", "-o", "done")
    assert code == 0, told + out
    assert f"{cheap} decides from" in out
    assert f"{strong} decides from" in out
    assert "passed on to people: 0%" in out
    fresh = [norm(1, "", "bright"), norm(2, "", "grey yes"), norm(3, "", "grey no")]
    write("fresh.jsonl", [{k: v for k, v in one.items() if k != "labels"} for one in fresh])
    asked = ("fresh.jsonl", *ASKED, "--profile", "done/profile.json")
    code, out, told = typed(*asked, command="validate")
    assert code == 0, told
    assert [line["judge"]["verdict"] for line in lines(out.encode())] == ["pass", "pass", "fail"]


# ---------------------------------------------------------------- what is printed


def test_disagreements_come_first_with_text_evidence_and_votes(typed: Typed) -> None:
    rows = [norm(n, "yes", "bright") for n in range(6)]
    rows.append(norm(6, {"w1": "no", "w2": "no", "w3": "yes"}, "bright"))
    write("labels.jsonl", rows)
    reply = {"quote": "Ann came in", "reason": "She does.", "answer": "yes"}
    Path("yes.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))
    code, out, told = typed("labels.jsonl", "-m", "scripted:yes.yaml", *CHECK)
    assert (code, told) == (0, "")
    assert "scripted:yes.yaml disagrees with 1 of the 7 labels; the surest 1:" in out
    at = out.index("  n6: says yes, the label is no (2 no, 1 yes)")
    assert at < out.index("accuracy")
    assert "    story: On a bright day Ann came in as number 6." in out
    assert "    evidence: Ann came in — She does." in out
    assert cells(out, "scripted:yes.yaml")[0][1] == "7 of 7"
    code, out, _ = typed("labels.jsonl", "-m", "scripted:yes.yaml", *CHECK, "--show", "0")
    assert "n6" not in out


def test_json_is_all_that_is_on_standard_output(typed: Typed) -> None:
    judge = script("judge.yaml", YES_SAYER)
    write("labels.jsonl", seeming(80), b"not JSON\n")
    words = (*ASKED[:-1], "--draws", "20", "--json", "-o", "done")
    code, out, told = typed("labels.jsonl", "-m", judge, *words)
    assert code == 3
    report = json.loads(out)
    assert report == json.loads(Path("done/report.json").read_text())
    assert report["unreadable_lines"][0]["line"] == 81
    (one,) = report["checks"][0]["judges"]
    assert one["model"] == judge
    for measures in (one["as_it_stands"], one["calibrated"]):
        assert measures["items"] == 40
        assert set(measures["accuracy"]) == {"value", "low", "high", "n", "of"}
    assert one["fingerprint"] == named(Path("done/profile.json")).judges["plain"][0].fingerprint
    assert "NaN" not in out
    assert "judge: labels.jsonl:81: not JSON" in told


def test_tables_fit_80_columns_and_nothing_is_cut(typed: Typed) -> None:
    judge = script("a-judge-of-2026-11.yaml", YES_SAYER)
    write("labels.jsonl", seeming(160))
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK, "--by", "country", "--show", "0")
    assert (code, told) == (0, "")
    assert "…" not in out
    assert f"{judge}, calibrated by country" in " ".join(out.split())
    tables = out[out.index("accuracy") :].splitlines()
    assert max(map(len, tables)) <= 80
    assert [row[1:3] for row in cells(out, "India")] == [["40", "40"]]


# ---------------------------------------------------------------- refusals and exit codes


def test_bad_lines_are_named_and_the_others_are_calibrated_on(typed: Typed) -> None:
    judge = script("judge.yaml", SENSIBLE)
    write("labels.jsonl", seeming(10), b'{"id": "x", "rule_of_thumb": "y"}\n[1]\n')
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK)
    assert code == 3
    assert "10 items about 10 records" in out
    first, second = told.splitlines()
    assert first.startswith("judge: labels.jsonl:11: field 'labels' is missing")
    assert second.startswith("judge: labels.jsonl:12: ")


def test_a_guarantee_that_cannot_be_given_is_exit_code_3(typed: Typed) -> None:
    judge = script("judge.yaml", SENSIBLE)
    write("labels.jsonl", seeming(40))
    Path("done").mkdir()
    Path("done/profile.json").write_text("stale")
    words = ("--agree", "0.9", "-o", "done", "--overwrite")
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK, *words)
    assert code == 3
    assert f"{judge} cannot be guaranteed: " in out
    assert "passed on to people: 100%" in out
    assert told.startswith("judge: no profile: plain: agreement of 90% with 95% confidence")
    assert not Path("done/profile.json").exists()
    assert json.loads(Path("done/report.json").read_text())["refused"]


def test_a_judge_that_answers_nothing_leaves_no_profile(typed: Typed) -> None:
    """It used to end with 0, the reason untold, and a profile made of nothing."""
    write("labels.jsonl", seeming(4))
    judge = script("judge.yaml", {}, replies=[{"when": {"contains": "no such day"}, "text": "x"}])
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK, "-o", "done")
    assert code == 3
    assert "0 of 4" in out
    first, second = told.splitlines()
    assert first.startswith(f"judge: plain, {judge}: answered none of 4 items: bad-request: ")
    assert second == "judge: no profile: no item got an answer"
    assert not Path("done/profile.json").exists()


def test_items_without_a_reply_are_counted_with_the_first_reason(typed: Typed) -> None:
    write("labels.jsonl", seeming(4))
    judge = script("judge.yaml", {"bright": 0.9})
    code, _, told = typed("labels.jsonl", "-m", judge, *CHECK, "-o", "done")
    assert code == 3
    first, second = told.splitlines()
    assert first.startswith(
        f"judge: plain, {judge}: 2 of 4 items got no reply, the first: bad-request: "
    )
    assert second == "judge: report, plots and profile are in done"
    lost = json.loads(Path("done/report.json").read_text())["checks"][0]["judges"][0]["unanswered"]
    assert (lost["items"], lost["answered"], lost["errors"]) == (4, 2, 2)


def test_a_folder_that_is_not_empty_is_refused_before_any_call(typed: Typed) -> None:
    write("labels.jsonl", seeming(10))
    Path("done").mkdir()
    Path("done/mine.txt").write_text("kept")
    judge = script("judge.yaml", {}, replies=[{"error": "unreachable"}])
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK, "-o", "done")
    assert (code, out) == (2, "")
    assert told == "judge: -o done: is not empty; name another folder, or --overwrite\n"
    code, _, told = typed("labels.jsonl", "-m", judge, *CHECK, "-o", "labels.jsonl")
    assert (code, told) == (2, "judge: -o labels.jsonl: is a file; name a folder\n")
    judge = script("judge.yaml", SENSIBLE)
    assert typed("labels.jsonl", "-m", judge, *CHECK, "-o", "done", "--overwrite")[0] == 0
    assert Path("done/mine.txt").read_text() == "kept"


def test_a_full_disk_leaves_the_earlier_report_and_profile_whole(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = script("judge.yaml", YES_SAYER)
    write("labels.jsonl", seeming(80))
    words = ("labels.jsonl", "-m", judge, *CHECK, "-o", "done", "--overwrite")
    assert typed(*words)[0] == 0
    with Path("done/profile.json").open("rb") as earlier:
        text = Path("done/profile.json").read_bytes()
        write("labels.jsonl", seeming(100))
        assert typed(*words)[0] == 0
        assert earlier.read() == text, "it is replaced, and not written over"
    before = {path.name: path.read_bytes() for path in Path("done").iterdir()}
    write("labels.jsonl", seeming(90))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, told = typed(*words, "--no-cache")
    assert code == 4
    assert told == ("judge: -o done: cannot be written: No space left on device; make room there\n")
    assert {path.name: path.read_bytes() for path in Path("done").iterdir()} == before


MORE = ("-m", "scripted:b.yaml", "-m", "scripted:c.yaml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["labels.jsonl", "--check", "humour"], "no labels for humour"),
        (["labels.jsonl", "--by", "planet"], "no item has 'planet' to slice by"),
        (["labels.jsonl", "--agree", "0.9", *MORE], "3 given"),
        (["humour.jsonl"], "humour.jsonl:1: label 'humour': no rubric is called 'humour'"),
        (["table.csv"], "; name the check with --check"),
        (["bare.jsonl"], "bare.jsonl"),
        (["nosuchset:labels.jsonl"], "there is no labelled set 'nosuchset'"),
        (["labels.jsonl", "--votes", "0"], "--votes"),
        (["labels.jsonl", "--reading", "tarot"], "--reading"),
    ],
)
def test_bad_usage_is_exit_code_2(typed: Typed, words: Sequence[str], told: str) -> None:
    for name in "abc":
        script(f"{name}.yaml", SENSIBLE)
    write("labels.jsonl", seeming(4))
    write("humour.jsonl", [{**norm(1, "yes", "bright"), "labels": {"humour": "yes"}}])
    write("bare.jsonl", [{"id": "a", "story": "x"}])
    Path("table.csv").write_text("item,annotator,label\na,ann,yes\n")
    code, out, error = typed(*words, "-m", "scripted:a.yaml", "--rubric", "plain.yaml", "-q")
    assert (code, out) == (2, "")
    assert told in error
    assert "Traceback" not in error


@pytest.mark.parametrize("error", ["unreachable", "denied"])
def test_a_model_that_is_out_of_reach_is_exit_code_4(typed: Typed, error: str) -> None:
    """Also when it goes away in the middle."""
    replies = [{"when": {"contains": "bright"}, "p_yes": 0.9}, {"error": error}]
    judge = script("gone.yaml", {}, replies=replies)
    write("labels.jsonl", seeming(10))
    code, out, told = typed("labels.jsonl", "-m", judge, *CHECK)
    assert (code, out) == (4, "")
    assert told == f"judge: scripted {error}\n"


@pytest.mark.slow
def test_interrupted_is_exit_code_130_and_goes_on_from_the_cache(judge: Shell) -> None:
    judge.write("labels.jsonl", seeming(400))
    (judge.folder / "plain.yaml").write_text(PLAIN)
    judge.script("slow.yaml", [{"p_yes": 0.9, "delay": 0.3}])
    words = ("calibrate", "labels.jsonl", "-m", "scripted:slow.yaml", *CHECK, "--concurrency", "2")
    process = judge.counting(*words)
    until = time.monotonic() + 60
    while not (judge.folder / "calls.log").exists() or judge.calls()[1] < 4:
        assert time.monotonic() < until, "no call is made"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert told == b"judge: interrupted; replies in the cache are not asked again\n"
