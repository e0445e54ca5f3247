"""What `judge validate` promises about files, gates, budgets and bad input."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main

from .conftest import Shell, lines, norm

ONE = ("-m", "scripted:yes.yaml", "--check", "relevance", "-q")


@pytest.fixture
def typed(judge: Shell, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process, where neither signals nor pipes matter; gives the exit code."""
    monkeypatch.chdir(judge.folder)
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(judge.folder / "cache"))

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["judge", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


def test_the_gate_decides_the_exit_code(judge: Shell, typed: Any) -> None:
    judge.script("half.yaml", [{"when": {"contains": "number 1"}, "p_yes": 0.1}, {"p_yes": 0.9}])
    judge.write("n.jsonl", map(norm, range(4)))
    run = ("validate", "n.jsonl", "-m", "scripted:half.yaml", "--check", "relevance", "-q")
    for number, (wanted, code) in enumerate([("0.75", 0), ("0.76", 1)]):
        flags = ("--rounds", "0", "--fail-under", wanted, "--summary", "s.json")
        assert typed(*run, *flags, "-o", f"{number}.jsonl") == code
        told = json.loads(judge.read("s.json"))
        assert told["exit_code"] == code
        assert told["gate"] == {"fail_under": float(wanted), "holds": code == 0}
        assert told["pass_rate"] == {"value": 0.75, "passed": 3, "of": 4}


def test_a_gate_over_nothing_does_not_hold(judge: Shell, typed: Any) -> None:
    judge.write("none.jsonl", [])
    assert typed("validate", "none.jsonl", *ONE, "-o", "o", "--fail-under", "0") == 1
    assert typed("validate", "none.jsonl", *ONE, "-o", "o") == 0


def test_out_is_never_lost_by_mistake(judge: Shell, typed: Any, capfd: Any) -> None:
    judge.write("n.jsonl", map(norm, range(2)))
    (judge.folder / "out.jsonl").write_text("mine\n")
    run = ("validate", "n.jsonl", *ONE, "-o")
    refused = [
        (("out.jsonl",), "out.jsonl exists. Go on with it (--resume)"),
        (("out.jsonl", "--resume"), "out.jsonl was not written by judge,"),
        (("out.jsonl", "--resume", "--overwrite"), "exclude each other"),
        (("n.jsonl", "--overwrite"), "n.jsonl is the input"),
        (("no/such/out.jsonl",), "no/such/out.jsonl: cannot be written"),
        ((".",), "-o .: is a folder: name a file"),
        ((".", "--overwrite"), "-o .: is a folder: name a file"),
        (("-",), "-o -: is no name for a file; without -o, lines go to standard output"),
        (("-", "--resume"), "-o -: is no name for a file; without -o"),
        (("x.jsonl", "--review", "-"), "--review -: is no name for a file"),
        (("x.jsonl", "--summary", "-"), "--summary -: is no name for a file"),
        (("out.jsonl.gz",), "-o out.jsonl.gz: plain JSON lines are written, not .gz"),
        (("x.jsonl", "--review", "for.CSV"), "--review for.CSV: plain JSON lines are written"),
        (("x.jsonl", "--summary", "no/such.json"), "--summary no/such.json: cannot be written"),
    ]
    for words, message in refused:
        assert typed(*run, *words) == 2, words
        assert message in capfd.readouterr().err
    assert judge.read("out.jsonl") == b"mine\n" and len(lines(judge.read("n.jsonl"))) == 2

    assert typed(*run, "out.jsonl", "--overwrite") == 0
    assert len(lines(judge.read("out.jsonl"))) == 2
    assert typed("validate", "n.jsonl", *ONE, "--resume") == 2
    assert "name it with -o" in capfd.readouterr().err


def test_the_summary_is_written_over_no_other_file_of_the_run(
    judge: Shell, typed: Any, capfd: Any
) -> None:
    judge.write("n.jsonl", [norm(0)])
    for words, message in [
        (("--summary", "n.jsonl", "-o", "x"), "n.jsonl is the input: name another file with"),
        (("--summary", "x", "-o", "x"), "--summary x is OUT"),
        (("--summary", "x", "--review", "./x"), "--summary x is the file of --review"),
    ]:
        assert typed("validate", "n.jsonl", *ONE, *words) == 2, words
        assert message in capfd.readouterr().err
        assert typed("validate", "n.jsonl", *ONE, *words, "--overwrite") == 2, words
    assert lines(judge.read("n.jsonl")) == [norm(0)] and not (judge.folder / "x").exists()
    for _ in range(2):
        assert typed("validate", "n.jsonl", *ONE, "--summary", "s.json") == 0
    assert typed("validate", "n.jsonl", *ONE, "--summary", "/dev/null", "-o", "/dev/null") == 0


def test_the_description_beside_out_is_nothing_else(judge: Shell, typed: Any) -> None:
    judge.write("n.jsonl", map(norm, range(2)))
    run = ("validate", "n.jsonl", *ONE, "-o", "out.jsonl")
    for words in (("--review", "out.jsonl.run.json"), ("--summary", "out.jsonl.run.json")):
        assert typed(*run, *words) == 2, words
    assert typed(*run, "--summary", "s.json") == 0
    known = json.loads(judge.read("out.jsonl.run.json"))
    (found,) = {line["judge"]["fingerprint"] for line in lines(judge.read("out.jsonl"))}
    assert known[found]["workflow"] == "norm" and known[found]["judge"] == ["scripted:yes.yaml"]
    assert json.loads(judge.read("s.json"))["runs"] == known


def test_limit_sample_and_unordered(
    judge: Shell, typed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.write("n.jsonl", map(norm, range(60)))
    judge.script(
        "uneven.yaml", [{"when": {"id": "n0"}, "p_yes": 0.9, "delay": 1.0}, {"p_yes": 0.9}]
    )
    run = ("validate", "n.jsonl", "-m", "scripted:uneven.yaml", "--check", "relevance", "-q")

    def ids(name: str, *flags: str) -> list[str]:
        assert typed(*run, *flags, "-o", name) == 0
        return [line["id"] for line in lines(judge.read(name))]

    everything = ids("all")
    assert everything == [f"n{i}" for i in range(60)]
    assert ids("limit", "--limit", "3") == everything[:3]
    drawn = ids("a", "--sample", "10", "--seed", "7")
    assert len(drawn) == 10 and drawn == sorted(drawn, key=everything.index)
    assert drawn == ids("b", "--sample", "10", "--seed", "7")
    assert drawn != ids("c", "--sample", "10", "--seed", "8")

    from judge.backends.scripted import ScriptedBackend

    answer = ScriptedBackend.complete

    async def late(backend: ScriptedBackend, call: Any, mode: Any) -> Any:
        for _ in range(3000 if call.origin.record == "n0" else 0):
            if judge.read("d"):
                break
            await asyncio.sleep(0.01)
        return await answer(backend, call, mode)

    monkeypatch.setattr(ScriptedBackend, "complete", late)
    assert ids("d", "--unordered", "--no-cache")[0] != "n0"
    assert sorted(judge.read("d").splitlines()) == sorted(judge.read("all").splitlines())


def test_names_that_do_not_exist(judge: Shell, typed: Any, capfd: Any) -> None:
    judge.write("n.jsonl", [norm(0)])
    run = ("validate", "n.jsonl", "-q", "-o", "o")
    yes = ("-m", "scripted:yes.yaml")
    for words, message in [
        (
            (*yes, "--workflow", "tale"),
            "no workflow is called 'tale'; there are extraction, norm, story",
        ),
        ((*yes, "--check", "taste"), "--check taste: there is no such check. There are extraction"),
        ((*yes, "--rubric", "taste"), "taste: neither a file, a folder nor a built-in rubric"),
        (("-m", "yes.yaml"), "is not of the form provider:model"),
        (("-m", "oracle:x"), "unknown provider 'oracle'; known are"),
        (("-m", "scripted:no.yaml"), "no.yaml"),
        ((*yes, "--format", "xml"), "format 'xml' is not known; there are jsonl"),
    ]:
        assert typed(*run, *words) == 2, words
        assert message in capfd.readouterr().err
    assert typed("validate", "no.jsonl", "-q", *yes) == 2
    assert "no.jsonl does not exist" in capfd.readouterr().err
    assert not (judge.folder / "o").exists(), "nothing was judged"


def test_what_the_model_never_answers_is_told_apart(judge: Shell, typed: Any) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    judge.script(
        "some.yaml",
        [{"when": {"id": "n1"}, "error": "bad-request"}, {"p_yes": 0.9}],
    )
    run = ("validate", "n.jsonl", "-q", "-m", "scripted:some.yaml", "--check", "relevance")
    assert typed(*run, "-o", "o") == 3
    assert [x["judge"]["verdict"] for x in lines(judge.read("o"))] == ["pass", "error", "pass"]
    text = json.dumps({"replies": [{"text": "not json"}]})
    (judge.folder / "never.yaml").write_text(text)
    assert typed(*run[:3], "-m", "scripted:never.yaml", "--check", "relevance", "-o", "p") == 3
    assert {x["judge"]["verdict"] for x in lines(judge.read("p"))} == {"unreadable"}


STORY = {"id": "s0", "values": ["Thrift--Agree"], "story": "Ann mends her coats."}


def test_a_record_that_no_chosen_check_is_asked_of_has_an_error_line(
    judge: Shell, typed: Any, capfd: Any
) -> None:
    judge.write("mixed.jsonl", [norm(0), STORY, norm(1)])
    run = ("mixed.jsonl", *ONE)
    for words in ((), ("--resume",)):
        assert typed("validate", *run, "-o", "out", *words) == 3
        out = lines(judge.read("out"))
        assert [line["judge"]["verdict"] for line in out] == ["pass", "error", "pass"]
        error = out[1]["judge"]["error"]
        assert (error["type"], error["line"]) == ("bad-input", 2)
        assert error["message"].startswith("--check relevance: the story workflow has incorpo")
    capfd.readouterr()
    assert typed("plan", *run[:-1]) == 0
    seen = capfd.readouterr()
    assert "2 records, 1 that cannot be asked about" in seen.out
    assert seen.err.startswith("judge: 1 x bad-input: line 2: --check relevance: ")
    # What suits neither the first record nor any before it was hardly meant so.
    judge.write("story-first.jsonl", [STORY, norm(0)])
    assert typed("validate", "story-first.jsonl", *ONE, "-o", "none") == 2
    assert "judge: line 1 of story-first.jsonl: --check relevance: " in capfd.readouterr().err
    assert not (judge.folder / "none").exists()


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "vllm:m", "transformers:no/model"])
def test_a_plan_needs_neither_key_nor_server_nor_card(
    judge: Shell, typed: Any, capfd: Any, caplog: Any, monkeypatch: Any, spec: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VLLM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    judge.write("n.jsonl", [norm(0), norm(1)])
    run = ("n.jsonl", "-m", spec, "--check", "relevance", "--rounds", "0")
    assert typed("validate", *run, "-q") in (2, 4), "a run that asks needs it"
    refused = capfd.readouterr().err
    assert typed("plan", *run) == 0
    assert "\nleast: 2 calls, " in capfd.readouterr().out
    told = f"judge: planned with {spec}, which is not set up here: {refused[7:]}"
    assert caplog.messages == [told.rstrip()]
    assert typed("plan", *run, "-m", "opnai:gpt-4o") == 2
    assert "unknown provider 'opnai'" in capfd.readouterr().err


def test_prices_come_from_judge_toml(judge: Shell, typed: Any, capfd: Any) -> None:
    judge.write("n.jsonl", [norm(0)])
    run = ("n.jsonl", "-m", "openai:judge-1", "--check", "relevance")
    env = pytest.MonkeyPatch()
    env.setenv("OPENAI_API_KEY", "none")
    assert typed("validate", *run, "--max-cost", "1", "-q") == 2
    told = capfd.readouterr().err
    assert "--max-cost needs the price of openai:judge-1" in told
    assert typed("plan", *run) == 0
    assert "cost unknown (no price in judge.toml)" in capfd.readouterr().out
    # The recipe in the message is one that works.
    recipe = "\n".join(told.splitlines()[1:])
    (judge.folder / "judge.toml").write_text(recipe)
    env.setenv("JUDGE_TRUST_CONFIG", "1")
    assert typed("plan", *run, "--rounds", "0") == 0
    shown = capfd.readouterr().out
    env.undo()
    least = next(line for line in shown.splitlines() if line.startswith("least"))
    words = least.replace(",", "").split()
    inputs, outputs, cost = int(words[3]), int(words[5]), float(words[7])
    assert cost == pytest.approx((inputs * 1.0 + outputs * 2.0) / 1e6, abs=1e-4)


def test_a_fault_of_ours_costs_one_record(
    judge: Shell, typed: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    from judge.judging.judge import Judge

    vote = Judge.vote

    async def faulty(self: Judge, subject: Any, **more: Any) -> Any:
        if subject.id == "n1":
            raise ZeroDivisionError("oops")
        return await vote(self, subject, **more)

    monkeypatch.setattr(Judge, "vote", faulty)
    judge.write("n.jsonl", map(norm, range(3)))
    assert typed("validate", "n.jsonl", *ONE, "-o", "o") == 3
    out = lines(judge.read("o"))
    assert [line["judge"]["verdict"] for line in out] == ["pass", "error", "pass"]
    assert out[1]["judge"]["error"]["type"] == "internal"
    assert "n1" in caplog.text and "ZeroDivisionError" in caplog.text


def test_nothing_in_the_output_depends_on_where_it_was_made(judge: Shell, typed: Any) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    assert typed("validate", "n.jsonl", *ONE, "-o", "a") == 0
    (judge.folder / "elsewhere").mkdir()
    moved = judge.folder / "elsewhere" / "m.jsonl"
    moved.write_bytes(judge.read("n.jsonl"))
    assert typed("validate", moved, *ONE, "-o", "b", "--no-cache", "--concurrency", "1") == 0
    assert judge.read("a") == judge.read("b")
    assert str(Path(judge.folder)).encode() not in judge.read("a")
