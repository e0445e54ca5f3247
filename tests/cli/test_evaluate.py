"""`judge evaluate` and `judge score` as a user types them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from evaluation.eecc_folder import write_folder

from judge.evaluation.benchmark import benchmark_names

from .typed import Typed

STORIES = {
    "1": ("Egypt", "Ann greeted everyone.", "yes"),
    "2": ("Egypt", "Bo greeted nobody.", "no"),
    "3": ("Japan", "Cy bought bread.", "neutral"),
    "4": ("Japan", "Di bowed.", "yes"),
}
ROWS = [
    {
        "id": id,
        "country": country,
        "value": "Respect",
        "rule_of_thumb": "Greet everyone.",
        "story": story,
        "label": label,
    }
    for id, (country, story, label) in STORIES.items()
]
SCRIPT: list[dict[str, Any]] = [
    {"when": {"contains": "Bo greeted"}, "reply": {"answer": "no"}},
    {"when": {"contains": "Cy bought"}, "text": "No comment.", "finish_reason": "refusal"},
    {"when": {"contains": "Di bowed"}, "reply": {"answer": "maybe"}},
    {"reply": {"answer": "yes"}},
]
ASK = ("evaluate", "normad", "rows.jsonl", "-m", "scripted:model.yaml")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    typed = Typed(tmp_path, monkeypatch, capfd)
    typed.write("rows.jsonl", ROWS)
    typed.script("model.yaml", SCRIPT)
    return typed


def written(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def table(shell: Typed, folder: str, name: str) -> list[dict[str, str]]:
    text = (shell.folder / folder / f"{name}.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


def test_every_answer_is_a_line_with_the_rows_own_fields_and_what_came_of_it(asked: Typed) -> None:
    done = asked(*ASK, "--condition", "rule-of-thumb", "--condition", "none")
    lines = written(done.stdout)
    assert [line["id"] for line in lines[:2]] == ["1/none", "1/rule-of-thumb"]
    by_id = {line["id"]: line["judge"] for line in lines}
    assert len(by_id) == 8
    outcomes = {id: (told["outcome"], told["verdict"], told["score"]) for id, told in by_id.items()}
    assert outcomes["1/rule-of-thumb"] == ("answered", "pass", 1.0)
    assert outcomes["3/none"] == ("refused", "abstain", None)
    assert outcomes["4/none"] == ("unreadable", "unreadable", None)
    assert by_id["2/none"]["answer"] == "no"
    assert done.returncode == 3, done.stderr
    assert b"accuracy" in done.stderr


def test_the_tables_can_be_made_again_from_the_answers(asked: Typed) -> None:
    first = asked(*ASK, "-o", "answers.jsonl", "--json", "-q")
    again = asked("score", "normad", "answers.jsonl", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)[1:] == json.loads(first.stdout)


def test_a_run_that_ends_early_is_gone_on_with(asked: Typed) -> None:
    whole = asked(*ASK, "-o", "whole.jsonl", "-q", "--no-cache")
    asked.script("model.yaml", SCRIPT)
    stopped = asked(*ASK, "-o", "part.jsonl", "--max-calls", "5", "--no-cache")
    assert stopped.returncode == 4
    assert b"there are no tables yet" in stopped.stderr
    assert stopped.stdout == b""
    gone_on = asked(*ASK, "-o", "part.jsonl", "--resume", "-q", "--no-cache")
    assert gone_on.stdout == whole.stdout
    assert (asked.folder / "part.jsonl").read_bytes() == (asked.folder / "whole.jsonl").read_bytes()


def test_a_finished_run_is_not_gone_on_with_under_another_model_or_benchmark(asked: Typed) -> None:
    asked(*ASK, "-o", "answers.jsonl", "-q")
    asked.script("other.yaml", [{"reply": {"answer": "no"}}])
    words = (*ASK[:3], "-m", "scripted:other.yaml", "-o", "answers.jsonl", "--resume")
    done = asked(*words)
    assert done.returncode == 2
    assert b"another fingerprint" in done.stderr
    assert b"other.yaml" in done.stderr
    refused = asked(*ASK, "-o", "answers.jsonl")
    assert refused.returncode == 2
    assert b"--resume" in refused.stderr


def test_a_row_that_cannot_be_read_becomes_a_line_and_keeps_no_other_from_being_asked(
    asked: Typed,
) -> None:
    with (asked.folder / "rows.jsonl").open("a") as file:
        file.write("{torn\n")
        file.write(json.dumps({**ROWS[0], "id": "5", "label": "perhaps"}) + "\n")
    done = asked(*ASK, "--condition", "none")
    lines = written(done.stdout)
    errors = [line["judge"]["error"] for line in lines if line["judge"]["verdict"] == "error"]
    assert [error["line"] for error in errors] == [5, 6]
    assert "perhaps" in errors[1]["message"]
    first = f"first, line {errors[0]['line']}: {errors[0]['message'][:40]}"
    assert f"judge: 2 x {errors[0]['type']}: {first}" in done.stderr.decode()
    assert len(lines) == 6
    assert done.returncode == 3


def test_a_model_without_a_reply_is_an_error_that_counts_in_no_mean(asked: Typed) -> None:
    broken = {"when": {"contains": "Bo greeted"}, "error": "bad-request"}
    asked.script("model.yaml", [broken, *SCRIPT])
    done = asked(*ASK, "-o", "a.jsonl", "--condition", "none", "--tables", "t", "-q")
    assert done.returncode == 3
    (row,) = table(asked, "t", "normad-contexts")
    assert (row["error"], row["accuracy n"], row["accuracy of"]) == ("1", "3", "4")
    assert float(row["accuracy"]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("evaluate", "nothing", "rows.jsonl", "-m", "scripted:model.yaml"), b"no benchmark"),
        (("evaluate", "normad", "rows.jsonl"), b"--model"),
        (("evaluate", "normad", "-m", "scripted:model.yaml"), b"name the files"),
        ((*ASK, "--condition", "mood"), b"country+value"),
        ((*ASK, "--draws", "3"), b"asks each item once"),
        ((*ASK, "--judge-model", "scripted:model.yaml"), b"scored by rules alone"),
        ((*ASK, "-m", "scripted:yes.yaml"), b"the one model that is measured"),
        ((*ASK[:2], "absent.jsonl", *ASK[3:]), b"absent.jsonl"),
        ((*ASK, "--resume"), b"-o"),
        ((*ASK, "--tables", "rows.jsonl"), b"name a folder"),
        ((*ASK, "--option", "rule=paper"), b"--option rule: normad has no options"),
        (("evaluate", "eecc", ".", *ASK[3:], "--option", "rule=mine"), b"--option rule: Input"),
        (("evaluate", "normad", "r", "-m", "baseline:embedding"), b"normad has no baseline"),
        (("evaluate", "cali", "r", *ASK[3:], "--statistics"), b"cali has none"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_asked(
    asked: Typed, words: tuple[str, ...], told: bytes
) -> None:
    done = asked(*words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("name", benchmark_names())
def test_a_benchmark_says_what_it_asks(asked: Typed, name: str) -> None:
    done = asked("evaluate", name, "--list")
    assert done.returncode == 0, done.stderr
    assert b"conditions: " in done.stdout
    assert b"rubrics" not in done.stderr


def test_a_first_token_is_read_where_the_model_is_asked_to(asked: Typed) -> None:
    asked.script("first.yaml", [{"words": {"Yes": 0.5, "No": 0.25, "neutral": 0.25}}])
    words = (*ASK[:3], "-m", "scripted:first.yaml", "--reading", "probability", "--limit", "1")
    line = written(asked(*words, "--condition", "none").stdout)[0]
    assert line["judge"]["answer"] == "yes"
    assert line["judge"]["probabilities"] == {"yes": 0.5, "no": 0.25, "neutral": 0.25}


def test_limit_and_sample_take_rows_with_all_their_conditions(asked: Typed) -> None:
    words = ("--condition", "none", "--condition", "country")
    limited = written(asked(*ASK, *words, "--limit", "2").stdout)
    assert [line["row"] for line in limited] == ["1", "1", "2", "2"]
    sampled = written(asked(*ASK, *words, "--sample", "2", "--seed", "3").stdout)
    assert len(sampled) == 4 and len({line["row"] for line in sampled}) == 2


def test_why_items_fail_is_said_with_the_file_where_there_are_several(asked: Typed) -> None:
    asked.write("more.jsonl", [{"id": "9", "story": "Eve left."}, ROWS[0], ROWS[0]])
    ran = asked(*ASK[:3], "more.jsonl", *ASK[3:], "--condition", "none", "-o", "out.jsonl")
    assert ran.returncode == 3
    told = b"line 3 of more.jsonl: id '1' was already on line 1 of rows.jsonl"
    assert b"judge: 1 x duplicate-id: " + told in ran.stderr
    lines = written((asked.folder / "out.jsonl").read_bytes())
    assert lines[5]["id"] == "more.jsonl:1/none"
    bad = [line["judge"]["error"] for line in (lines[4], lines[6])]
    assert [(one["file"], one["line"]) for one in bad] == [("more.jsonl", n) for n in (1, 3)]


def test_a_temperature_that_is_given_is_sent_and_else_the_papers(
    asked: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.backends.scripted import ScriptedBackend

    sent: list[float | None] = []
    complete = ScriptedBackend.complete

    async def noted(self: Any, call: Any, *more: Any, **named: Any) -> Any:
        sent.append(call.temperature)
        return await complete(self, call, *more, **named)

    monkeypatch.setattr(ScriptedBackend, "complete", noted)
    write_folder(asked.folder / "eecc")
    asked.script("writer.yaml", [{"text": "Once upon a time."}])
    words = ("evaluate", "eecc", "eecc", "-m", "scripted:writer.yaml", "--limit", "1", "-q")
    for flags, temperature in (((), 0.3), (("--temperature", "0.9"), 0.9), (("--draws", "1"), 0.3)):
        sent.clear()
        assert asked(*words, *flags, "--no-cache").returncode == 0
        assert set(sent) == {temperature}, flags
    sent.clear()
    asked(*ASK, "-q", "--no-cache", "--temperature", "0.5")
    assert set(sent) == {0.5}


def test_a_set_of_norms_is_counted_and_nothing_asked(asked: Typed) -> None:
    done = asked("evaluate", "normad", "rows.jsonl", "--statistics", "--json")
    assert done.returncode == 0, done.stderr
    clusters = json.loads(done.stdout)[0]
    assert clusters["name"] == "normad-set-clusters"
    assert clusters["rows"][-1] == {"cluster": "Total", "neutral": 1, "no": 1, "yes": 2, "all": 4}


@pytest.mark.parametrize("flags", [(), ("-o", "out.jsonl")])
def test_how_to_go_on_after_the_model_was_out_of_reach(asked: Typed, flags: Any) -> None:
    asked.script("model.yaml", [{"error": "unreachable"}])
    (asked.folder / "out.jsonl").write_text("")
    ran = asked(*ASK, *flags, "--overwrite")
    assert ran.returncode == 4
    assert ran.stderr.decode().splitlines()[-1].endswith("no tables yet; run it again")


def bounds(shown: bytes) -> tuple[int, int]:
    """(least, most) calls of a printed plan."""
    told = shown.decode().splitlines()
    least, most = (next(one for one in told if one.startswith(end)) for end in ("least", "most:"))
    return int(least.split()[1]), int(most.split()[1])


def test_a_dry_run_tells_what_is_asked_and_asks_nothing(asked: Typed) -> None:
    asked.script("model.yaml", [{"reply": {"answer": "yes"}}])
    with (asked.folder / "rows.jsonl").open("a") as file:
        file.write("{torn\n")
    planned = asked(*ASK, "--dry-run", "-o", "answers.jsonl")
    assert planned.returncode == 0
    assert planned.stderr.startswith(b"judge: 1 x bad-input: line 5: not JSON: ")
    assert b"normad_acceptability" in planned.stdout
    assert b"\n16 items, 1 that cannot be asked about\n" in planned.stdout
    assert not (asked.folder / "cache").exists() and not (asked.folder / "answers.jsonl").exists()
    ran = asked(*ASK, "-o", "answers.jsonl")
    assert bounds(planned.stdout) == (16, 16) and b", 16 calls" in ran.stderr


def test_a_dry_run_counts_steps_draws_and_votes_of_judges(
    asked: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    folder = Path(__file__).parents[2] / "fixtures" / "cqbench"
    words = ("evaluate", "cqbench", str(folder / "stories.jsonl"), str(folder / "values.jsonl"))
    words += ("-m", "openai:m", "--dry-run", "--limit", "1", "--condition", "extraction+steps")
    alone = asked(*words)
    assert alone.returncode == 0, alone.stderr
    told = {
        row[0]: row[1]
        for line in alone.stdout.decode().splitlines()
        if len(row := line.split()) > 1
    }
    summaries, extractions = told["cqbench_summary"], told["cqbench_extraction"]
    asks = int(summaries) + int(extractions)
    assert bounds(alone.stdout) == (asks, asks)
    assert int(summaries) > int(extractions), "a summary for each topic comes before it"
    graded = asked(*words, "--judge-model", "scripted:model.yaml", "--votes", "3")
    least, most = bounds(graded.stdout)
    assert least == asks, "nothing is predicted, and nobody is asked about it"
    assert most == asks + 3 * int(extractions)
