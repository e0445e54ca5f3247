"""What `judge validate` promises about files, gates, budgets, bad input, and its closing words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cache import ReplyCache
from judge.cli.summary import next_report

from .conftest import lines, norm
from .typed import Typed

IRRELEVANT = {"quote": None, "reason": "Nothing of it.", "answer": "no"}
RELEVANT = {"quote": "and greets Bo", "reason": "It is about that.", "answer": "yes"}
ONE = ("-m", "scripted:yes.yaml", "--check", "relevance", "-q")
RUN = ("validate", "n.jsonl", *ONE)


@pytest.fixture(autouse=True)
def norms(typed: Typed) -> None:
    typed.write("n.jsonl", map(norm, range(6)))


def first_token(typed: Typed, name: str, *replies: dict[str, Any]) -> tuple[str, ...]:
    """A judge that is read by its first token; the words that ask it."""
    judge = typed.script(name, replies, method="logprobs")
    return ("validate", "n.jsonl", "-m", judge, "--check", "relevance", "-q")


def verdicts(text: bytes) -> list[str]:
    return [line["judge"]["verdict"] for line in lines(text)]


# ---------------------------------------------------------------- gate and outputs


def test_the_gate_decides_the_exit_code(typed: Typed) -> None:
    no = {"when": {"contains": "number 1"}, "p_yes": 0.1}
    run = first_token(typed, "half.yaml", no, {"p_yes": 0.9})
    for number, (wanted, code) in enumerate([("0.75", 0), ("0.76", 1)]):
        flags = ("--limit", "4", "--fail-under", wanted, "--summary", "s.json")
        assert typed(*run, *flags, "-o", f"{number}.jsonl").returncode == code
        told = json.loads(typed.read("s.json"))
        assert told["exit_code"] == code
        (gate,) = told["gates"]
        assert gate == {
            "gate": f"record >= {wanted}",
            "holds": code == 0,
            "value": 0.75,
            "passing": 3,
            "of": 4,
        }
        assert told["pass_rate"] == {"value": 0.75, "passed": 3, "of": 4}
    typed.write("none.jsonl", [])
    none = ("validate", "none.jsonl", *ONE)
    assert typed(*none, "-o", "o", "--fail-under", "0").returncode == 1, "a gate over nothing"
    assert typed(*none, "-o", "o").returncode == 0


def test_a_repaired_record_counts_as_what_it_came_as(typed: Typed) -> None:
    new = "Ann waves and greets Bo."
    bad = {"when": {"contains": "number 1", "rubric": "relevance"}, "reply": IRRELEVANT}
    written = {"when": {"rubric": "story_regeneration"}, "reply": {"story": new}}
    fine = {"when": {"rubric": "relevance"}, "reply": RELEVANT}
    judge = typed.script("judge.yaml", [bad, written, fine])
    run = ("validate", "n.jsonl", "--limit", "4", "-m", judge, "--check", "relevance", "-o", "o")
    run = (*run, "--overwrite", "--summary", "s.json")

    def ended(*flags: str) -> tuple[int, str, dict[str, Any]]:
        code, _, told = typed.text(*run, *flags)
        return code, told, json.loads(typed.read("s.json"))

    code, told, sums = ended("--fail-under", "75%")
    assert code == 0 and "3 of 4 records pass (75.0%)" in told and "after repair" not in told
    assert sums["edits"] == 0 and [one["story"] for one in lines(typed.read("o"))] == [
        norm(number)["story"] for number in range(4)
    ]
    bounds = ("--fail-under", "0.76", "--fail-under-repaired", "1")
    code, told, sums = ended("--repair", *bounds, "--by", "label")
    assert code == 1, "what judge rewrote does not make the gate hold"
    assert "label as it came in pass fail of" in " ".join(told.split())
    assert "3 of 4 records pass as they came in (75.0%)" in told
    assert "4 after repair (100.0%; 1 edit, 0 values dropped)" in told
    assert "gate record >= 0.76: does not hold (75.0%, 3 of 4)" in told
    assert "gate record after repair >= 1: holds (100.0%, 4 of 4)" in told
    assert sums["pass_rate"] == {"value": 0.75, "passed": 3, "of": 4}
    assert sums["repaired_pass_rate"] == {"value": 1.0, "passed": 4, "of": 4}
    assert [gate["holds"] for gate in sums["gates"]] == [False, True]
    second = lines(typed.read("o"))[1]
    assert second["story"] == new and second["judge"]["verdict"] == "pass"
    assert second["judge"]["original_verdict"] == "fail"
    assert typed.read("o").count(b"original_verdict") == 1
    assert typed(*run[:-4], "x", "--repair", "--fail-under-repaired", "1").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rounds", "2"), "--rounds needs --repair"),
        (("--keep-dropped",), "--keep-dropped needs --repair"),
        (("--rewrite-model", "openai:m"), "--rewrite-model needs --repair"),
        (("--rewrite-temperature", "0"), "--rewrite-temperature needs --repair"),
        (("--fail-under-repaired", "1"), "--fail-under-repaired needs --repair"),
        (("--cheap-margin", "0.1"), "--cheap-margin needs --cheap-model"),
        (("--worker-gpus", "2"), "--worker-gpus 2 needs --engine ray; the engine is local"),
        (("--fail-under", "90"), "--fail-under: 90: type 0.9"),
        (("--fail-under", "-1"), "--fail-under: -1: a share is from 0 to 1"),
        (("--fail-under", "most"), "'most' is not a share: type 0.9 or 90%"),
        (("--repair", "--rounds", "0"), "--rounds: "),
        (("--repair", "--ask", "Polite?"), "--repair: the record workflow rewrites nothing"),
    ],
)
def test_a_word_that_would_change_nothing_is_refused(
    typed: Typed, words: tuple[str, ...], message: str
) -> None:
    check = () if "--ask" in words else ("--check", "relevance")
    code, _, told = typed.text("validate", "n.jsonl", "-m", "scripted:yes.yaml", *check, *words)
    assert code == 2 and message in told, told


def test_variables_that_do_not_apply_change_nothing(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (typed.folder / "fine.yaml").write_text("name: fine\nquestion: Fine?\n")
    runs = [
        ("validate", "n.jsonl", "-m", "scripted:yes.yaml", *words, "-q")
        for words in (("--check", "relevance"), ("--ask", "Fine?"), ("--rubric", "./fine.yaml"))
    ]
    before = [typed.text(*run) for run in runs]
    for name, value in {
        "REWRITE_MODEL": "openai:without-a-key",
        "CHEAP_MARGIN": "0.1",
        "WORKERS": "2",
        "TIE": "1",
        "REASONING_EFFORT": "low",
    }.items():
        monkeypatch.setenv(f"JUDGE_{name}", value)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    after = [typed.text(*run) for run in runs]
    assert [code for code, *_ in after] == [0, 0, 0], after
    verdicts = [
        [[line["judge"]["verdict"] for line in lines(out.encode())] for _, out, _ in results]
        for results in (before, after)
    ]
    assert verdicts[0] == verdicts[1]
    with monkeypatch.context() as repairing:
        repairing.setenv("JUDGE_REPAIR", "1")
        repairing.setenv("JUDGE_MODEL_FOR", "insertion=openai:without-a-key")
        assert typed.text(*runs[1]) == after[1]
    for name, value in {"ON": "gone", "ANSWERS": "a,b", "PASS": "a", "NAME": "n"}.items():
        monkeypatch.setenv(f"JUDGE_{name}", value)
    assert (typed.text(*runs[0]), typed.text(*runs[2])) == (after[0], after[2])


def test_rounds_in_a_file_wait_for_a_repair(typed: Typed) -> None:
    (typed.folder / "judge.toml").write_text("rounds = 2\n")
    assert typed(*RUN, "--trust-config").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "out.jsonl"), "out.jsonl exists. Continue it (--resume)"),
        (("-o", "out.jsonl", "--resume"), "out.jsonl: line 1 was not written by judge,"),
        (("-o", "out.jsonl", "--resume", "--overwrite"), "exclude each other"),
        (("-o", "n.jsonl", "--overwrite"), "n.jsonl is the input"),
        (("-o", "no/such/out.jsonl"), "no/such/out.jsonl: cannot be written"),
        (("-o", ".", "--overwrite"), "-o .: is a folder: name a file"),
        (("-o", "-"), "-o -: give a file name, or leave -o out to write lines to standard output"),
        (("-o", "x", "--review", "-"), "--review -: give a file name"),
        (("-o", "x", "--summary", "out.jsonl"), "--summary out.jsonl exists and is not a summary"),
        (("-o", "x", "--seed", "1", "--seed", "2"), "--seed is given twice, and takes one value."),
        (("-o", "circle"), "-o circle: the symbolic links form a loop"),
        (("-o", "x", "--summary", "circle"), "--summary circle: the symbolic links form a loop"),
        (("-o", "x", "--review", "out.jsonl"), "out.jsonl exists. Continue it (--resume)"),
        (("-o", "x", "--review", "n.jsonl", "--overwrite"), "--review n.jsonl is the input"),
        (("-o", "x.gz"), "-o x.gz: judge writes plain JSON lines, not .gz"),
        (("-o", "x.json"), "-o x.json: judge writes plain JSON lines, not .json: name a .jsonl"),
        (("-o", "x.txt"), "not .txt: name a .jsonl file (of validate's -o also .jsonl.gz, .csv,"),
        (("-o", "x", "--review", "r.json"), "--review r.json: judge writes plain JSON lines"),
        (("-o", "x", "--summary", "no/such.json"), "--summary no/such.json: cannot be written"),
        (("-o", "x", "--summary", "n.jsonl"), "--summary n.jsonl is the input"),
        (("-o", "x", "--summary", "x"), "--summary x is OUT"),
        (("--review", "./x", "--summary", "x"), "--summary x is the file of --review"),
        (("-o", "x", "--review", "x.run.json"), "where OUT is described"),
        (("-o", "cache/o.jsonl", "--overwrite"), "o.jsonl is in the cache folder in use"),
        (("-o", "x", "--review", "cache/r"), "--review cache/r is in the cache folder in use"),
        (("-o", "x", "--summary", "cache/s"), "--summary cache/s is in the cache folder in use"),
        (("--resume",), "--resume needs -o"),
    ],
)
def test_no_file_is_lost_by_mistake(typed: Typed, words: tuple[str, ...], message: str) -> None:
    ReplyCache(typed.folder / "cache").close()
    typed.write("out.jsonl", [], "mine\n")
    (typed.folder / "circle").symlink_to("circle")
    before = typed.read("n.jsonl")
    code, _, told = typed.text(*RUN, *words)
    assert code == 2 and message in " ".join(told.split()), told
    assert typed.read("out.jsonl") == b"mine\n" and typed.read("n.jsonl") == before
    assert not (typed.folder / "x").exists()


@pytest.mark.parametrize(
    "mine", [b'{"important": "data"}', b'{"important": "da', b"notes\n", b"{\n}"]
)
def test_a_file_that_judge_did_not_write_is_not_continued(typed: Typed, mine: bytes) -> None:
    """Also if it looks like the beginning of a line, which a kill may leave."""
    (typed.folder / "mine.jsonl").write_bytes(mine)
    code, _, told = typed.text(*RUN, "-o", "mine.jsonl", "--resume")
    assert code == 2 and "was not written by judge" in told
    assert typed.read("mine.jsonl") == mine


def test_several_models_behind_one_flag_are_a_panel(typed: Typed) -> None:
    models = [typed.script(f"{name}.yaml", [{"reply": RELEVANT}]) for name in ("a", "b")]
    words = ("--check", "relevance", "-q", "-o", "o")
    assert typed("validate", "n.jsonl", "-m", ", ".join(models), *words).returncode == 0
    (check,) = lines(typed.read("o"))[0]["judge"]["checks"]
    assert [vote["model"] for vote in check["votes"]] == models


@pytest.mark.parametrize("name", ["o.run.json", "o.unmatched.jsonl"])
@pytest.mark.parametrize("how", ["--resume", "--overwrite"])
def test_a_file_of_the_users_beside_out_is_not_changed(typed: Typed, name: str, how: str) -> None:
    assert typed(*RUN, "-q", "-o", "o").returncode == 0
    before = typed.read("o")
    (typed.folder / name).write_text("my own notes\n")
    code, _, told = typed.text(*RUN, "-q", "-o", "o", how)
    foreign = not (name.endswith("unmatched.jsonl") and how == "--overwrite")
    assert code == (2 if foreign else 0) and (name in told or not foreign)
    assert typed.read("o") == before and typed.read(name) == b"my own notes\n"


@pytest.mark.parametrize("how", ["--resume", "--overwrite"])
def test_labels_in_a_review_are_never_written_over(typed: Typed, how: str) -> None:
    run = (*first_token(typed, "half.yaml", {"p_yes": 0.55}), "--abstain-margin", "0.2", "-o", "o")
    words = (*run, "--review", "people.jsonl")
    assert typed(*words).returncode == 0
    rows = lines(typed.read("people.jsonl"))
    typed.write("people.jsonl", [{**rows[0], "labels": {"relevance": "yes"}}, *rows[1:]])
    labelled, out = typed.read("people.jsonl"), typed.read("o")
    code, _, told = typed.text(*words, how)
    assert code == 2 and "--review people.jsonl: line 1 is not in o" in told
    assert (typed.read("people.jsonl"), typed.read("o")) == (labelled, out)
    assert typed(*run, "--review", "more", how).returncode == 0


def test_out_is_replaced_and_described_where_that_is_asked(typed: Typed) -> None:
    typed.write("out.jsonl", [], "mine\n")
    (typed.folder / "circle").symlink_to("circle")
    run = (*RUN, "-o", "out.jsonl", "--overwrite")
    assert typed(*run, "--summary", "s.json").returncode == 0
    known = json.loads(typed.read("out.jsonl.run.json"))
    (found,) = {line["judge"]["fingerprint"] for line in lines(typed.read("out.jsonl"))}
    assert known[found]["workflow"] == "norm" and known[found]["judge"] == ["scripted:yes.yaml"]
    assert json.loads(typed.read("s.json"))["runs"] == known
    typed.write("none.jsonl", [])
    assert typed("validate", "none.jsonl", *run[2:]).returncode == 0
    assert typed.read("out.jsonl") == b"", "an input without a record empties it, on request"


def test_nothing_in_the_output_depends_on_where_it_was_made(typed: Typed) -> None:
    (typed.folder / "elsewhere").mkdir()
    (typed.folder / "elsewhere" / "m.jsonl").write_bytes(typed.read("n.jsonl"))
    here = typed(*RUN).stdout
    moved = ("validate", "elsewhere/m.jsonl", *ONE, "--no-cache", "--concurrency", "1")
    assert typed(*moved).stdout == here
    assert str(typed.folder).encode() not in here


# ---------------------------------------------------------------- what cannot be judged


def test_a_record_that_no_chosen_check_is_asked_of_has_an_error_line(typed: Typed) -> None:
    story = {"id": "s0", "values": ["Thrift--Agree"], "story": "Ann mends her coats."}
    typed.write("mixed.jsonl", [norm(0), story, norm(1)])
    for words in ((), ("--resume",)):
        assert typed("validate", "mixed.jsonl", *ONE, "-o", "out", *words).returncode == 3
        assert verdicts(typed.read("out")) == ["pass", "error", "pass"]
        error = lines(typed.read("out"))[1]["judge"]["error"]
        assert (error["type"], error["line"]) == ("bad-input", 2)
        assert error["message"].startswith("--check relevance: the story workflow has incorpo")
    code, out, told = typed.text("plan", "mixed.jsonl", *ONE[:-1])
    assert code == 0 and "2 records, 1 that cannot be asked about" in out
    assert told.startswith("judge: 1 x bad-input: line 2: --check relevance: ")
    # What suits neither the first record nor any before it was hardly meant so.
    typed.write("story-first.jsonl", [story, norm(0)])
    code, _, told = typed.text("validate", "story-first.jsonl", *ONE, "-o", "none")
    assert code == 2 and "judge: line 1 of story-first.jsonl: --check relevance: " in told
    assert not (typed.folder / "none").exists()


def test_a_fault_of_ours_costs_one_record(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    from judge.judging.judge import Judge

    vote = Judge.vote

    async def faulty(self: Judge, record: Any, **more: Any) -> Any:
        if record.id == "n1":
            raise ZeroDivisionError("oops")
        return await vote(self, record, **more)

    monkeypatch.setattr(Judge, "vote", faulty)
    done = typed(*RUN, "--limit", "3")
    assert (done.returncode, verdicts(done.stdout)) == (3, ["pass", "error", "pass"])
    assert lines(done.stdout)[1]["judge"]["error"]["type"] == "internal"
    assert "n1" in caplog.text and "ZeroDivisionError" in caplog.text


def test_a_small_budget_finishes_some_records(typed: Typed) -> None:
    typed.write("n.jsonl", [{**norm(i), "country": "Egypt", "value": "Respect"} for i in range(6)])
    leaks = {"when": {"rubric": "leakage"}, "p_yes": 0.02}
    run = first_token(typed, "clean.yaml", leaks, {"p_yes": 0.98})
    run = (*run[:4], "--no-cache", "-q", "--method", "logprobs")
    whole = typed(*run).stdout
    code, _, told = typed.text(*run, "-o", "out", "--max-calls", "12")
    assert code == 4 and "--max-calls 12 is reached" in told
    some = typed.read("out")
    assert len(some.splitlines()) >= 2 and whole.startswith(some), "no error lines"
    assert typed(*run, "-o", "out", "--resume").returncode == 0
    assert typed.read("out") == whole


@pytest.mark.slow
def test_a_server_that_refuses_leaves_out_to_the_same_command(typed: Typed) -> None:
    run = first_token(typed, "gone.yaml", {"error": "unreachable"})
    assert typed(*RUN, "-o", "out").returncode == 0
    before = typed.read("out")
    code, _, told = typed.text(*run, "-o", "out", "--overwrite")
    assert code == 4
    assert "nothing was written and out is unchanged; the same command can be" in told
    assert typed.read("out") == before
    assert "nothing was written; the same command can be run" in typed.text(*run, "-o", "x")[2]
    assert not (typed.folder / "x").exists()


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "vllm:m", "transformers:no/model"])
def test_a_plan_needs_neither_key_nor_server_nor_card(
    typed: Typed, caplog: Any, monkeypatch: Any, spec: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VLLM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    run = ("n.jsonl", "-m", spec, "--check", "relevance")
    code, _, refused = typed.text("validate", *run, "-q")
    assert code in (2, 4), "a run that asks needs it"
    code, out, _ = typed.text("plan", *run)
    assert code == 0 and "\nleast:  6 calls, " in out
    told = f"judge: planned with {spec}, which is not set up here: {refused[7:]}"
    assert caplog.messages == [told.rstrip()]


def test_a_plan_needs_no_weights_either(typed: Typed, monkeypatch: Any) -> None:
    """Their hash is known, so their profile counts: it asks three questions about relevance."""
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(typed.folder / "none"))
    for profile, calls in (((), 18), (("--profile", "none"), 6)):
        code, out, _ = typed.text("plan", "n.jsonl", "--check", "relevance", *profile)
        assert code == 0 and f"\nleast:  {calls} calls, " in out and ", 0.0000 USD" in out, out


def test_records_that_cannot_be_judged_are_told_before_the_default_judge_is_fetched(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(typed.folder / "none"))
    fetched: list[str] = []
    monkeypatch.setattr("judge.local.fetch.pull", lambda *_, **__: fetched.append("1.1 GB"))
    (typed.folder / "mails.csv").write_text("id,mail\n1,Hello\n")
    for words, told in (((), "add --ask"), (("--ask", "Polite?", "--on", "body"), "--on body")):
        code, _, message = typed.text("validate", "mails.csv", *words)
        assert (code, fetched) == (2, []) and told in message


def test_equal_calls_share_a_reply_also_without_a_cache(typed: Typed) -> None:
    typed.write("equal.jsonl", [{"text": "Hello."}] * 3)
    ask = ("--ask", "Is it polite?", "-m", "scripted:yes.yaml", "--no-cache")
    told = typed.text("validate", "equal.jsonl", *ask)[2]
    assert "1 call, 2 replies reused" in told and "cache" not in told


def test_a_shown_column_of_answers_is_named(typed: Typed) -> None:
    """It may be what people said: a judge that reads it agrees with them, and shows nothing."""
    typed.write("m.jsonl", [{"text": "Hello.", "human": "Yes ", "note": "yes or no"}])
    ask = ("validate", "m.jsonl", "--ask", "Is it polite?", "-m", "scripted:yes.yaml")
    warning = "human holds an answer to the question: if people's, name the others with --on"
    assert warning in " ".join(typed.text(*ask)[2].split())
    assert warning not in " ".join(typed.text(*ask, "--on", "text", "--on", "human")[2].split())
    typed.write("m.jsonl", [{"text": "Hello.", "human": "Yes", "meta": {"by": {"gold": "no"}}}])
    told = " ".join(typed.text(*ask)[2].split())
    assert "human, meta.by.gold hold answers to the question" in told


def test_what_the_judge_is_not_shown_costs_no_new_call(typed: Typed) -> None:
    """Labels, another id and a new column change no prompt, so the replies are reused."""
    typed.write("m.jsonl", [{"id": "a", "text": "Hello."}, {"id": "b", "text": "Go away."}])
    ask = ("--ask", "Is it polite?", "--on", "text", "-m", "scripted:yes.yaml")
    assert "2 calls" in typed.text("validate", "m.jsonl", *ask)[2]
    further = [{"id": 1, "text": "Hello.", "label": "yes"}, {"text": "Go away.", "note": "rude?"}]
    typed.write("n.jsonl", further)
    assert "0 calls, 2 replies reused" in typed.text("validate", "n.jsonl", *ask)[2]
    typed.write("n.jsonl", [{"id": "a", "text": "Hello!"}])
    assert "1 call" in typed.text("validate", "n.jsonl", *ask)[2]


def test_prices_come_from_judge_toml(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ("n.jsonl", "-m", "openai:judge-1", "--check", "relevance", "--limit", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    code, _, told = typed.text("validate", *run, "--max-cost", "1", "-q")
    assert code == 2 and "--max-cost needs the price of openai:judge-1" in told
    (typed.folder / "r.toml").write_text(f'rewrite_model = "{run[2]}"')
    rewriter = (*run[:1], "-m", "scripted:yes.yaml", *run[3:], "--config", "r.toml")
    assert typed.text("validate", *rewriter, "--max-cost", "1", "-q")[0] == 0, "none is rewritten"
    assert "No price" not in typed.text("plan", *rewriter)[1]
    code, _, told = typed.text("validate", *rewriter, "--max-cost", "1", "-q", "--repair")
    assert code == 2 and "--max-cost needs the price of openai:judge-1" in told
    unknown = typed.text("plan", *run)[1]
    assert "cost unknown" in unknown and "No price known for openai:judge-1: put" in unknown
    # The recipe in the message is one that works.
    (typed.folder / "judge.toml").write_text("\n".join(told.splitlines()[2:]))
    _, shown, _ = typed.text("plan", *run, "--trust-config")
    least = next(line for line in shown.splitlines() if line.startswith("least"))
    words = least.replace(",", "").split()
    inputs, outputs, cost = int(words[3]), int(words[6]), float(words[8])
    assert cost == pytest.approx((inputs * 1.0 + outputs * 2.0) / 1e6, abs=1e-4)


# ---------------------------------------------------------------- closing words


def test_an_input_without_records_is_told(typed: Typed) -> None:
    typed.write("none.jsonl", [])
    code, _, told = typed.text("validate", "none.jsonl", *ONE[:-1])
    assert code == 0 and "judge: no records in none.jsonl\n" in told
    drawn = typed.text("validate", "none.jsonl", *ONE[:-1], "--sample", "2", "--by", "city")
    assert drawn[0] == 0 and "judge: no records in none.jsonl\n" in drawn[2]
    assert "judge: nothing was done: --limit 0\n" in typed.text(*RUN[:-1], "--limit", "0")[2]
    assert typed.text("validate", "none.jsonl", *ONE)[2] == ""


def test_a_summary_has_the_same_keys_over_no_records_and_every_value_of_by(typed: Typed) -> None:
    """The terminal sums the rarer values of 30; a program gets all of them."""
    typed.write("none.jsonl", [])
    typed("validate", "none.jsonl", *ONE, "--summary", "none.json")
    nothing = {"replies": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
    assert json.loads(typed.read("none.json"))["usage"] == nothing
    typed.write("many.jsonl", ({**norm(n), "city": f"c{n}"} for n in range(30)))
    typed("validate", "many.jsonl", *ONE, "--by", "city", "--summary", "many.json")
    cities = json.loads(typed.read("many.json"))["by"]["city"]
    assert cities == {f"c{n}": {"pass": 1} for n in range(30)}


def test_the_first_fault_of_a_kind_is_told_with_its_line(typed: Typed) -> None:
    typed.write("bad.jsonl", [], '{"id": NaN}\n[1]\n')
    code, _, told = typed.text("validate", "bad.jsonl", *ONE[:-1])
    assert code == 3
    assert "2 x bad-input, the first: line 1: NaN is not a JSON number" in told


def test_records_without_a_verdict_are_named_with_the_command_that_asks_again(
    typed: Typed,
) -> None:
    typed.write("r.jsonl", [{"id": f"r{n}", "text": "hm"} for n in range(8)], "[1]\n")
    good = {"quote": None, "reason": "So.", "answer": "yes"}
    lost = [{"when": {"id": "r0"}, "error": "bad-request"}, {"when": {"id": "r1"}, "reply": good}]
    bad = typed.script("bad.yaml", [*lost, {"reply": "no JSON"}])
    words = ("validate", "r.jsonl", "--ask", "Polite?", "--reasks", "0", "-o", "o.jsonl")
    code, _, text = typed.text(*words, "-m", bad)
    told = text.splitlines()
    assert code == 3
    at = told.index("unreadable: 6, the first 5:")
    why = "question: invalid: Invalid JSON: expected"
    for number, line in enumerate(told[at + 1 : at + 6], 2):
        assert line.startswith(f"  r{number}  {why}")
    assert told[at + 6 : at + 9] == [
        "error: 2",
        "  r0  question: bad-request: scripted bad-request",
        "  r.jsonl:9  bad-input: line 9: a record must be an object, not a list",
    ]
    assert "to ask another model: --resume --rejudge unreadable,error -m MODEL" in told
    assert "6 records undecided because no reply could be read; the same" in text
    again = (*words, "--resume", "--rejudge", "unreadable,error", "-m")
    code, _, text = typed.text(*again, typed.script("good.yaml", [{"reply": good}]))
    # No model reads the line that is no record, so none is offered.
    assert code == 3 and "8 of 9 records pass" in text and "error: 1\n" in text
    assert "another model" not in text and "the same command" not in text


def test_the_summary_ends_with_what_a_person_does_next(typed: Typed) -> None:
    reply = {"quote": "greets Bo", "reason": "No rule.", "answer": "no"}
    judge = typed.script("no.yaml", [{"reply": reply}])
    run = ("-m", judge, "--method", "structured", "--no-cache")
    _, _, text = typed.text(
        "validate", "n.jsonl", *run, "--check", "relevance", "-o", "my out.jsonl"
    )
    told = text.splitlines()
    assert told[0].split() == ["check", "fail"], "columns without a record are left out"
    at = told.index("failed: 6, the first 5:")
    assert told[at - 1] == "0 of 6 records pass (0.0%)"
    assert told[at + 1 : at + 6] == [
        f'  n{number}  relevance: fail: "greets Bo" (No rule.)' for number in range(5)
    ]
    assert told[-2:] == [
        "output: my out.jsonl",
        "next: judge report 'my out.jsonl' -o 'my out.html'",
    ]
    assert all(len(line) <= 80 for line in told)
    assert next_report(Path("-o.jsonl")) == "next: judge report ./-o.jsonl -o -o.html"
