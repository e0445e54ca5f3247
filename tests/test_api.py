"""`judge.validate` and its neighbours, in Python: order, pace, ends, errors, real models."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.cache import ReplyCache
from judge.errors import JudgeError, Undecided, UsageError
from judge.testing import aassert_judged, assert_judged

SCRIPT = """
replies:
  - when: {contains: slow}
    delay: 0.3
    reply: {quote: null, reason: Slowly., answer: "yes"}
  - when: {contains: thanks}
    reply: {quote: thanks, reason: Courtesy., answer: "yes"}
  - when: {contains: torn}
    text: "{"
  - reply: {quote: null, reason: No courtesy., answer: "no"}
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Settings of a scripted judge; afterwards no thread of a run is left."""
    monkeypatch.chdir(tmp_path)
    Path("judge.yaml").write_text(SCRIPT)
    yield {"ask": "Polite?", "model": "scripted:judge.yaml", "cache_dir": tmp_path / "cache"}
    until = time.monotonic() + 60
    while [one.name for one in threading.enumerate() if one.name.startswith("judge-")]:
        assert time.monotonic() < until, threading.enumerate()
        time.sleep(0.01)


def mails(*texts: str) -> list[dict[str, str]]:
    return [{"id": f"m{number}", "mail": text} for number, text in enumerate(texts)]


def test_judgements_come_in_the_order_of_the_records(asked: dict[str, Any]) -> None:
    found = list(judge.validate(mails("slow", "thanks", "go"), **asked))
    assert [one.record["id"] for one in found] == ["m0", "m1", "m2"]
    assert [str(one.verdict) for one in found] == ["pass", "pass", "fail"]
    assert isinstance(found[2], judge.Judgement)
    assert found[2].reason == "question: fail: No courtesy."
    assert found[2].checks[0].votes[0].model == "scripted:judge.yaml"


class Frame:
    """A stand-in for a pandas frame, with the methods that are used."""

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [{"mail": "thanks", "score": float("nan"), "on": datetime.date(2026, 11, 2)}]


def test_rows_of_a_frame_and_what_is_no_record(asked: dict[str, Any]) -> None:
    (row,) = judge.validate(Frame(), on="mail", **asked)
    assert row.to_dict() == {
        "mail": "thanks",
        "score": None,
        "on": "2026-11-02",
        "judge.verdict": "pass",
        "judge.reason": None,
        "judge.error": None,
        "judge.models": "scripted:judge.yaml",
        "judge.by_people": None,
        "judge.judges_verdict": None,
        "question.verdict": "pass",
        "question.answer": "yes",
        "question.score": None,
        "question.quote": "thanks",
        "question.reason": "Courtesy.",
        "question.probability": None,
    }
    endless: dict[str, Any] = {}
    endless["self"] = endless
    odd: list[Any] = [3, endless, {"mail": "thanks"}]
    errors = [one.to_dict() for one in judge.validate(odd, **asked)]
    assert [one["judge.verdict"] for one in errors] == ["error", "error", "pass"]
    assert errors[0]["judge.error"] == "a record is a mapping of fields, and this is int"


def test_files_one_after_another(asked: dict[str, Any]) -> None:
    for name in ("a", "b"):
        Path(f"{name}.jsonl").write_text('{"mail": "thanks"}\n{"mail": "go"}\n')
    found = judge.validate([Path("a.jsonl"), Path("b.jsonl")], **asked)
    assert [str(one.verdict) for one in found] == ["pass", "fail"] * 2
    with pytest.raises(UsageError, match="strings in a list are texts"):
        judge.validate(["a.jsonl", "b.jsonl"], **asked)


def test_a_plain_text_is_a_record_with_the_field_text(asked: dict[str, Any]) -> None:
    for texts in (["thanks", "go"], (text for text in ("thanks", "go"))):
        judgements = list(judge.validate(texts, **asked))
        assert [judgement.record for judgement in judgements] == [
            {"text": "thanks"},
            {"text": "go"},
        ]
        assert [str(judgement.verdict) for judgement in judgements] == ["pass", "fail"]


# ---------------------------------------------------------------- files, as on the command line


class Heard(judge.Watcher):
    def __init__(self) -> None:
        self.calls: list[int] = []

    def wrote(self, progress: Any) -> None:
        self.calls.append(progress.calls)


def test_a_run_into_files_is_that_of_the_command_line(asked: dict[str, Any]) -> None:
    from judge.cli import main

    records, heard = mails("thanks", "go", "torn"), Heard()
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    report = judge.validate_to(
        "a.jsonl",
        "in.jsonl",
        review="review.jsonl",
        summary="sums.json",
        fail_under=0.9,
        watcher=heard,
        **asked,
    )
    sums = json.loads(Path("sums.json").read_text())
    assert (report.exit_code, sums["exit_code"], sums["gates"][0]["holds"]) == (1, 1, False)
    assert report.summary.verdicts == {"pass": 1, "fail": 1, "unreadable": 1}
    assert max(heard.calls) == report.traffic["scripted:judge.yaml"]["calls"] > 0
    assert json.loads(Path("review.jsonl").read_text())["id"] == "m2"
    words = "judge validate in.jsonl -o b.jsonl --ask Polite? -m scripted:judge.yaml -q"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("sys.argv", words.split())
        main()
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


async def test_a_run_into_a_file_goes_on_where_it_was_stopped(asked: dict[str, Any]) -> None:
    """Also inside of a running loop."""
    records = mails("thanks", "go", "go on")
    first = judge.validate_to("out.jsonl", records, max_calls=1, concurrency=1, **asked)
    assert (first.exit_code, first.summary.records) == (4, 1)
    with pytest.raises(UsageError, match="exists"):
        judge.validate_to("out.jsonl", records, **asked)
    second = judge.validate_to("out.jsonl", records, resume=True, **asked)
    assert (second.exit_code, second.summary.resumed, second.summary.records) == (0, 1, 3)


def test_judgements_are_judged_again_as_the_records_that_they_are_of(asked: dict[str, Any]) -> None:
    first = judge.validate(mails("thanks", "go"), **asked)
    failed = [one for one in first if one.verdict == "fail"]
    assert [one.record for one in judge.validate(failed, **asked)] == [{"id": "m1", "mail": "go"}]
    judge.validate_to("again.jsonl", judge.validate(mails("thanks"), **asked), **asked)
    judge.validate_to("once.jsonl", mails("thanks"), **asked)
    assert Path("again.jsonl").read_bytes() == Path("once.jsonl").read_bytes()


def test_a_part_of_the_records_and_its_plan(asked: dict[str, Any]) -> None:
    records = mails("thanks", "go", "go on")
    assert len(list(judge.validate(records, limit=2, **asked))) == 2
    estimate = judge.plan(records, limit=2, **asked)
    assert (estimate.records, estimate.most.replies) == (2, 2)
    head, rule, row, *told = str(estimate).splitlines()
    assert head.endswith("  least calls  most calls")
    assert row.split()[-2:] == ["2", "2"]
    assert told[0] == "2 records" and max(map(len, (rule, *told))) <= 80


# ---------------------------------------------------------------- pace and end


def test_a_slow_reader_holds_the_run_up_and_one_that_leaves_ends_it(asked: dict[str, Any]) -> None:
    begun = itertools.count()
    endless = ({"mail": f"thanks {next(begun)}"} for _ in itertools.repeat(None))
    found = judge.validate(endless, concurrency=4, **asked)
    for _ in range(5):
        next(found)
    time.sleep(0.3)
    seen = next(begun)
    assert seen <= 5 + 2 * 4 + 1, "twice the concurrency, beyond what was taken"
    del found
    # The cache can be used at once, and keeps what was paid for.
    ReplyCache(asked["cache_dir"]).close()
    again = [{"mail": "thanks 1"}, {"mail": "thanks 2"}]
    assert len(list(judge.validate(again, max_calls=0, **asked))) == 2


def test_a_program_prints_where_it_did_while_a_function_checks(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    begun, printed = threading.Event(), threading.Event()

    def waits(record: dict[str, Any]) -> bool:
        begun.set()
        return printed.wait(20)

    def printing() -> None:
        begun.wait(20)
        sys.stdout.write("of the program")
        printed.set()

    beside = threading.Thread(target=printing)
    beside.start()
    assert [str(one.verdict) for one in judge.validate(mails("go"), rubric=waits)] == ["pass"]
    beside.join()
    assert capsys.readouterr() == ("of the program", "")


def test_a_run_that_nobody_reads_never_begins(asked: dict[str, Any]) -> None:
    judge.validate(mails("go"), **asked)
    assert not asked["cache_dir"].exists()


def test_what_ends_a_run_is_raised_behind_what_was_judged(asked: dict[str, Any]) -> None:
    found = judge.validate(mails("thanks", "go", "slow"), max_calls=2, concurrency=1, **asked)
    assert [str(next(found).verdict), str(next(found).verdict)] == ["pass", "fail"]
    with pytest.raises(JudgeError, match="max-calls"):
        next(found)


def test_reading_that_fails_is_raised(asked: dict[str, Any]) -> None:
    def broken() -> Iterator[dict[str, str]]:
        yield {"mail": "thanks"}
        raise KeyError("the source is gone")

    found = judge.validate(broken(), **asked)
    assert str(next(found).verdict) == "pass"
    with pytest.raises(KeyError, match="the source is gone"):
        next(found)


# ---------------------------------------------------------------- inside of a running loop


async def test_both_ways_work_inside_a_running_loop(asked: dict[str, Any]) -> None:
    records, turns = mails("slow", "thanks"), 0

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    beside = asyncio.create_task(turning())
    found = [one async for one in judge.avalidate(records, cache=False, **asked)]
    beside.cancel()
    assert [str(one.verdict) for one in found] == ["pass", "pass"]
    assert turns > 2, "the loop goes on meanwhile"
    assert len(list(judge.validate(records, **asked))) == 2


async def test_an_asynchronous_run_takes_a_part_of_the_records_too(asked: dict[str, Any]) -> None:
    for part in ({"limit": 1}, {"sample": 1, "by": "mail"}):
        run = judge.avalidate(mails("thanks", "go"), **part, **asked)
        assert len([one async for one in run]) == 1


async def test_a_run_leaves_the_threads_of_the_callers_loop_to_the_caller(
    asked: dict[str, Any],
) -> None:
    """As a server's handlers need them, for names of hosts or for what blocks."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    given = threading.Event()
    records = iter(lambda: given.wait() and None, None)
    run = asyncio.create_task(anext(judge.avalidate(records, **asked), None))
    await asyncio.sleep(0.3)
    await asyncio.wait_for(asyncio.to_thread(given.set), 20)
    assert await run is None


async def test_a_cancelled_reader_ends_the_run(asked: dict[str, Any]) -> None:
    async def read() -> None:
        endless = ({"mail": "slow"} for _ in itertools.repeat(None))
        async for _ in judge.avalidate(endless, cache=False, **asked):
            pass

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.gather(read(), read()), 0.5)


# ---------------------------------------------------------------- what cannot be used


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"modle": "x:y"}, r"^modle: unknown setting; did you mean model\?"),
        ({"votes": 0}, "^votes: "),
        ({"engine": "ray"}, "^engine: "),
        ({"rubric": 3}, "^rubric: give a Rubric, .* not int"),
        ({"rubric": "no.yaml"}, "^no.yaml: cannot be read"),
        ({"check": "politeness"}, "^--check politeness: there is no such check"),
        ({"workflow": "no.py:graph"}, "no.py: cannot be read"),
        ({"profile": "no.json"}, "^--profile no.json: cannot be read"),
        ({"pass_": "perhaps"}, "^--pass: 'perhaps' is not one of the answers"),
        ({"rubric": {"name": "x"}}, "question|title"),
        ({"records": "no.jsonl"}, "no.jsonl"),
        ({"records": {"mail": "x"}}, "put it into a list"),
    ],
)
def test_what_cannot_be_used_is_told_at_the_call(
    asked: dict[str, Any], wrong: dict[str, Any], told: str
) -> None:
    given: dict[str, Any] = {"records": mails("go"), **asked, **wrong}
    with pytest.raises(UsageError, match=told):
        judge.validate(**given)


def test_a_model_that_is_none_is_told_at_the_first_judgement(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="unknown provider"):
        next(judge.validate(mails("go"), **{**asked, "model": "nobody:x"}))


def test_the_rubric_is_the_same_whatever_it_is_made_of(asked: dict[str, Any]) -> None:
    short = {"name": "kind", "question": "Is it kind?", "fields": ["mail"]}
    text = "name: kind\nquestion: Is it kind?\nfields: [mail]\n"
    Path("kind.yaml").write_text(text)
    made = judge.Rubric.from_dict(short)
    settings = {name: one for name, one in asked.items() if name != "ask"}
    found = [
        next(judge.validate(mails("thanks"), rubric=one, **settings))
        for one in (made, short, text, Path("kind.yaml"), judge.Rubric.from_file("kind.yaml"))
    ]
    assert {one.checks[0].rubric for one in found} == {made.digest}
    assert len({one.fingerprint for one in found}) == 1


def test_a_set_has_an_order_that_is_the_same_in_every_process(asked: dict[str, Any]) -> None:
    """Of strings it differs: the prompt would, and no reply be found again."""
    words = {f"tone {number}" for number in range(20)}
    made = judge.Rubric.from_dict({"name": "a", "question": "b", "answers": words, "pass": words})
    assert list(made.answers) == sorted(words)
    row = {"id": "1", **dict.fromkeys(words, "thanks")}
    (first,) = judge.validate([row], **asked, on=words)
    (second,) = judge.validate([row], **asked, on=sorted(words))
    assert first == second


def test_a_value_of_numpy_or_a_path_in_a_rubrics_dict_is_plain(tmp_path: Path) -> None:
    number = pytest.importorskip("numpy").int64(5)
    (tmp_path / "s.json").write_text("{}")
    for test in {"length": {"most": number}}, {"json_schema": tmp_path / "s.json"}:
        made = judge.Rubric.from_dict({"name": "short", "fields": ["mail"], "test": test})
        assert made.tested


def test_a_rubric_in_memory_replaces_those_of_the_environment_as_a_path_does(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"name": "polite", "question": "Polite?", "fields": ["mail"]}
    Path("polite.yaml").write_text(json.dumps(content))
    Path("other.yaml").write_text(json.dumps({**content, "name": "other"}))
    monkeypatch.setenv("JUDGE_RUBRIC", "other.yaml")
    del asked["ask"]
    for rubric in ("polite.yaml", content, judge.Rubric.from_dict(content)):
        (found,) = judge.validate(mails("thanks"), rubric=rubric, **asked)
        assert [check.name for check in found.checks] == ["polite"], rubric


def test_calibrate_takes_a_rubric_in_every_form_and_one_path_or_word(asked: dict[str, Any]) -> None:
    short = {"name": "kind", "question": "Is it kind?", "fields": ["mail"]}
    text = "name: kind\nquestion: Is it kind?\nfields: [mail]\n"
    Path("kind.yaml").write_text(text)
    mails = [("thanks", "yes"), ("go", "no"), ("thanks again", "yes"), ("go on", "no")]
    for name in ("labels.jsonl", "more.jsonl"):
        rows = [{"mail": f"{mail}, {name}", "labels": {"kind": label}} for mail, label in mails]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"model": asked["model"], "cache_dir": asked["cache_dir"], "controls": False}
    sets = {"test_set": "more.jsonl", "contrast_set": Path("more.jsonl"), "by": "mail"}
    made = judge.Rubric.from_dict(short)
    for rubric in (made, short, text, Path("kind.yaml"), [made]):
        found = judge.calibrate("labels.jsonl", rubric=rubric, **sets, **settings)
        (report,) = found.checks[0].judges
        assert (found.checks[0].check, report.final.accuracy.value) == ("kind", 1.0)
        assert str(found).startswith(f"kind\n{asked['model']}: agrees with the labels in 4 of 4")
        assert (list(report.test_sets), len(report.by["mail"])) == (["more.jsonl"], 4)
    with pytest.raises(UsageError, match="calibrate does not"):
        judge.calibrate("labels.jsonl", rubric=made, engine="ray", **settings)


def test_one_word_is_one_verdict(asked: dict[str, Any]) -> None:
    records = mails("thanks", "go")
    judge.validate_to("out.jsonl", records, **asked)
    again = judge.validate_to("out.jsonl", records, resume=True, rejudge="fail", **asked)
    assert (again.exit_code, again.summary.resumed) == (0, 1)
    with pytest.raises(UsageError, match=r"fail_under: 90: type 0\.9"):
        judge.validate_to("new.jsonl", records, fail_under=90, **asked)


def test_an_assertion_says_why(asked: dict[str, Any]) -> None:
    model = {"model": asked["model"], "cache": False}
    assert str(assert_judged({"mail": "thanks"}, "Polite?", on="mail", **model).verdict) == "pass"
    with pytest.raises(AssertionError, match="No courtesy"):
        assert_judged("go", "Polite?", **model)
    with pytest.raises(Undecided, match=r"not decided \(unreadable\)"):
        assert_judged("torn", "Polite?", **model)
    with pytest.raises(AssertionError, match="No courtesy"):
        assert_judged(42, "Polite?", **model)
    with pytest.raises(UsageError, match="answers are only counted: say which pass"):
        assert_judged("go", "Polite?", answers=["yes", "no", "so-so"], **model)
    with pytest.raises(UsageError, match="unknown provider") as raised:
        assert_judged("go", "Polite?", model="nobody:x")
    files = [Path(frame.filename).name for frame in traceback.extract_tb(raised.tb)]
    assert files == ["test_api.py", "testing.py"], "no line of the run"


async def test_an_assertion_in_a_coroutine(asked: dict[str, Any]) -> None:
    model = {"model": asked["model"], "cache": False}
    assert str((await aassert_judged("thanks", "Polite?", **model)).verdict) == "pass"
    with pytest.raises(AssertionError, match="No courtesy"):
        await aassert_judged("go", "Polite?", **model)


def test_a_gate_on_repaired_records_needs_a_repair(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="needs --repair"):
        judge.validate_to("out.jsonl", mails("go"), fail_under_repaired=0.5, **asked)
    assert not Path("out.jsonl").exists()


# ---------------------------------------------------------------- real parts


def test_import_judge_loads_nothing_heavy() -> None:
    program = (
        "import sys, judge; dir(judge)\n"
        "print(*[name for name in sys.modules if name.startswith(('pydantic', 'judge.'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["judge.version"]
    with pytest.raises(AttributeError):
        judge.nothing  # noqa: B018


def test_a_script_in_the_checkout_takes_the_checkout(tmp_path: Path) -> None:
    """The checkout's `judge` precedes an installed one; rubrics and graphs are next to it."""
    (tmp_path / "yes.yaml").write_text("method: logprobs\nreplies: [{p_yes: 0.9}]\n")
    script = f"""
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in repr(one).lower()]
import judge
(one,) = judge.validate(
    [{{"text": "Thanks!"}}], ask="Polite?", model="scripted:{tmp_path}/yes.yaml", cache=False
)
print(one.verdict)
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "pass\n"), done.stderr


@pytest.mark.parametrize("name", ["gate", "fail_under", "resume", "review_verdicts", "decisions"])
def test_what_needs_a_file_is_refused_in_memory(asked: dict[str, Any], name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: judge.validate_to takes it"):
        judge.validate(mails("thanks"), **asked, **{name: "question >= 0.9"})
