"""`judge evaluate` and `judge score` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import lines
from tests.cli.typed import Typed

from .eecc_folder import write_folder

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


CALI = ("evaluate", "cali", "pair.jsonl", "-m", "scripted:model.yaml")
PAIR = {"premise": "P.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": ["N"]}
CQBENCH = Path(__file__).parents[2] / "fixtures" / "cqbench"


@pytest.fixture
def asked(typed: Typed) -> Typed:
    typed.write("rows.jsonl", ROWS)
    typed.write("pair.jsonl", [PAIR])
    typed.script("model.yaml", SCRIPT)
    return typed


def test_every_answer_is_a_line_with_the_rows_own_fields_and_what_came_of_it(asked: Typed) -> None:
    done = asked(*ASK, "--condition", "rule-of-thumb", "--condition", "none")
    answers = lines(done.stdout)
    assert [line["id"] for line in answers[:2]] == ["1/none", "1/rule-of-thumb"]
    by_id = {line["id"]: line["judge"] for line in answers}
    assert len(by_id) == 8
    outcomes = {id: (told["outcome"], told["verdict"], told["score"]) for id, told in by_id.items()}
    assert outcomes["1/rule-of-thumb"] == ("answered", "pass", 1.0)
    assert outcomes["3/none"] == ("refused", "abstain", None)
    assert outcomes["4/none"] == ("unreadable", "unreadable", None)
    assert by_id["2/none"]["answer"] == "no"
    assert done.returncode == 3, done.stderr
    asked(*ASK, "-o", "o.jsonl")
    (described,) = json.loads(asked.read("o.jsonl.run.json")).values()
    assert (described["benchmark"], described.get("workflow")) == ("normad", None)
    assert b"accuracy" in done.stderr


def test_the_tables_can_be_made_again_from_the_answers(asked: Typed) -> None:
    first = asked(*ASK, "-o", "answers.jsonl", "--json", "-q")
    again = asked("score", "normad", "answers.jsonl", "--json")
    assert again.returncode == first.returncode == 3, again.stderr
    assert json.loads(again.stdout) == json.loads(first.stdout)


def test_a_run_that_ends_early_is_gone_on_with(asked: Typed) -> None:
    whole = asked(*ASK, "-o", "whole.jsonl", "-q", "--no-cache")
    asked.script("model.yaml", SCRIPT)
    stopped = asked(*ASK, "-o", "part.jsonl", "--max-calls", "5", "--no-cache")
    assert stopped.returncode == 4
    assert b"no tables yet" in stopped.stderr
    assert stopped.stdout == b""
    gone_on = asked(*ASK, "-o", "part.jsonl", "--resume", "-q", "--no-cache")
    assert gone_on.stdout == whole.stdout
    assert (asked.folder / "part.jsonl").read_bytes() == (asked.folder / "whole.jsonl").read_bytes()


def test_a_run_of_another_model_is_not_gone_on_with(asked: Typed) -> None:
    asked(*ASK, "-o", "answers.jsonl", "-q")
    asked.script("other.yaml", [{"reply": {"answer": "no"}}])
    done = asked(*ASK[:3], "-m", "scripted:other.yaml", "-o", "answers.jsonl", "--resume")
    assert done.returncode == 2
    assert b"another fingerprint" in done.stderr


def test_a_model_without_a_reply_is_an_error_that_counts_in_no_mean(asked: Typed) -> None:
    broken = {"when": {"contains": "Bo greeted"}, "error": "bad-request"}
    asked.script("model.yaml", [broken, *SCRIPT])
    done = asked(*ASK, "-o", "a.jsonl", "--condition", "none", "--json", "-q")
    assert done.returncode == 3
    (found,) = (one for one in json.loads(done.stdout) if one["name"] == "normad-contexts")
    (row,) = found["rows"]
    assert (row["error"], row["accuracy"]["n"], row["accuracy"]["of"]) == (1, 3, 4)
    assert row["accuracy"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("evaluate", "nothing", "rows.jsonl", "-m", "scripted:model.yaml"), b"no benchmark"),
        (("evaluate", "normad", "rows.jsonl"), b"--model"),
        (("evaluate", "normad", "-m", "scripted:model.yaml"), b"name the files"),
        ((*ASK, "--judge-model", "scripted:model.yaml"), b"scored by rules alone"),
        ((*ASK, "-m", "scripted:yes.yaml"), b"the one model that is measured"),
        ((*ASK[:2], "absent.jsonl", *ASK[3:]), b"absent.jsonl"),
        ((*ASK, "--resume"), b"-o"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_asked(
    asked: Typed, words: tuple[str, ...], told: bytes
) -> None:
    done = asked(*words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert done.stdout == b""


def test_limit_and_sample_take_rows_with_all_their_conditions(asked: Typed) -> None:
    words = ("--condition", "none", "--condition", "country")
    limited = lines(asked(*ASK, *words, "--limit", "2").stdout)
    assert [line["row"] for line in limited] == ["1", "1", "2", "2"]
    sampled = lines(asked(*ASK, *words, "--sample", "2", "--seed", "3").stdout)
    assert len(sampled) == 4 and len({line["row"] for line in sampled}) == 2


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
    for flags, temperature in (((), 0.3), (("--temperature", "0.9"), 0.9)):
        sent.clear()
        assert asked(*words, *flags, "--no-cache").returncode == 0
        assert set(sent) == {temperature}, flags
    sent.clear()
    asked(*ASK, "-q", "--no-cache", "--temperature", "0.5")
    assert set(sent) == {0.5}


def test_judges_credit_the_values_that_a_model_extracts(
    asked: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"reply": {"entries": ["Neighbours help."]}}
    asked.script(
        "reader.yaml", [{"when": {"rubric": "cqbench_extraction"}, **listed}, {"text": "x"}]
    )
    credits = [
        {"value": n, "reason": "so", "predicted": [1] if n < 3 else [], "presence": presence}
        for n, presence in enumerate(("fully", "partially", "absent", "absent"), 1)
    ]
    asked.script("judge.yaml", [{"reply": {"values": credits}}])
    words = ("evaluate", "cqbench", str(CQBENCH / "stories.jsonl"), "--limit", "1", "--json", "-q")
    models = ("-m", "scripted:reader.yaml", "--judge-model", "scripted:judge.yaml", "--no-cache")
    what = ("--condition", "extraction+steps", "-o", "graded.jsonl")
    done = asked(*words, *models, *what)
    assert done.returncode == 0, done.stderr
    (graded,) = lines((asked.folder / "graded.jsonl").read_bytes())
    judged = graded["judge"]
    assert (judged["score"], judged["steps"]["credits"]) == (0.375, [1.0, 0.5, 0.0, 0.0])
    (vote,) = judged["steps"]["checks"][0]["votes"]
    assert vote["model"] == "scripted:judge.yaml" and vote["evidence"][0]["reason"] == "so"
    # They are asked nothing else, whatever other runs ask.
    monkeypatch.setenv("JUDGE_RUBRIC", "relevance")
    assert asked(*words, *models, *what[:2]).stdout == asked.folder.joinpath(what[3]).read_bytes()
    monkeypatch.delenv("JUDGE_RUBRIC")
    told = asked.text(*words, *models, *what[:2], "--rubric", "irony")[2]
    assert "--rubric irony: judges only credit values: leave it out" in told
    (row, _) = (table["rows"][0] for table in json.loads(done.stdout))
    assert row["score"]["value"] == row["over values"]["value"] == 0.375
    # The second story's three values are not extracted: 1.5 of 7, and a mean of 0.375 and 0.
    torn = {"when": {"id": "cq-02/extraction+steps", "rubric": "cqbench_extraction"}, "text": "x"}
    first = {"when": {"rubric": "cqbench_extraction"}, **listed}
    asked.script("reader.yaml", [torn, first, {"text": "x"}])
    two = ["2" if word == "1" else word for word in words]
    both = asked(*two, *models, *what, "--overwrite")
    row = json.loads(both.stdout)[0]["rows"][0]
    assert (row["unreadable"], row["score"]["value"]) == (1, 0.1875)
    assert row["over values"] == {"value": 0.214286, "low": None, "high": None, "n": 7, "of": 7}
    asked.script("judge.yaml", [{"error": "bad-request"}])
    lost = asked(*words, *models, *what, "--overwrite")
    assert lost.returncode == 3 and json.loads(lost.stdout)[0]["rows"][0]["error"] == 1
    asked.script("reader.yaml", [{"text": "x"}])
    unread = asked(*words, *models, *what, "--overwrite")
    row = json.loads(unread.stdout)[0]["rows"][0]
    assert unread.returncode == 3 and (row["unreadable"], row["error"]) == (1, 0)


def test_an_extraction_that_its_judges_leave_open_does_not_pass(asked: Typed) -> None:
    listed = {"reply": {"entries": ["Neighbours help."]}}
    asked.script(
        "reader.yaml", [{"when": {"rubric": "cqbench_extraction"}, **listed}, {"text": "x"}]
    )

    def vote(number: int, first: str) -> dict[str, Any]:
        presences = (first, "fully", "fully", "fully")
        values = [
            {"value": n, "reason": "so", "predicted": [1] if p != "absent" else [], "presence": p}
            for n, p in enumerate(presences, 1)
        ]
        return {"when": {"vote": number}, "reply": {"values": values}}

    words = ("evaluate", "cqbench", str(CQBENCH / "stories.jsonl"), "--limit", "1", "--votes", "3")
    models = ("-m", "scripted:reader.yaml", "--judge-model", "scripted:judge.yaml", "--no-cache")
    what = ("--condition", "extraction+steps", "-o", "graded.jsonl", "-q", "--overwrite")
    answers = [*map(vote, range(3), ("fully", "partially", "absent"))]
    for script, verdict, score, code in (
        (answers, "abstain", 1.0, 0),
        ([{"text": "no idea"}], "unreadable", None, 3),
    ):
        asked.script("judge.yaml", script)
        done = asked(*words, *models, *what)
        (graded,) = lines((asked.folder / "graded.jsonl").read_bytes())
        judged = graded["judge"]
        assert (judged["verdict"], judged["score"]) == (verdict, score), done.stderr
        assert judged["outcome"] == "answered" and done.returncode == code
    # Of two judges one is out of service: what it would have credited is asked again.
    asked.script("judge.yaml", answers[:1])
    asked.script("down.yaml", [{"error": "bad-request"}])
    two = (*words[:-2], *models, "--judge-model", "scripted:down.yaml", *what[:-2])
    for files in ("--overwrite", "--resume"):
        code, _, told = asked.text(*two, files)
        assert code == 3 and ", 0 replies reused" in told and "bad-request" in told


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


@pytest.mark.parametrize(
    ("model", "told"),
    [("gpt-4o", "Price of openai:gpt-4o: 2.5 and 10 USD"), ("mine", "No price known for openai:")],
)
def test_a_dry_run_says_whose_price_it_counts_by(
    asked: Typed, monkeypatch: pytest.MonkeyPatch, model: str, told: str
) -> None:
    """As `judge plan` does."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    planned = asked(*ASK[:3], "-m", f"openai:{model}", "--dry-run")
    assert (planned.returncode, told in planned.stdout.decode()) == (0, True), planned.stdout


def test_a_dry_run_where_the_model_writes_has_its_room_in_the_plan(asked: Typed) -> None:
    """A text is reckoned as long as the task allows, or as a quarter of it at the least."""
    write_folder(asked.folder / "eecc")
    asked.script("writer.yaml", [{"text": "Once upon a time."}])
    words = ("evaluate", "eecc", "eecc", "-m", "scripted:writer.yaml", "--limit", "1")
    planned = asked(*words, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    ran = asked(*words, "-o", "answers.jsonl")
    assert ran.returncode == 0, ran.stderr
    least, most = bounds(planned.stdout)
    assert least == most > 0 and f", {least} calls".encode() in ran.stderr


@pytest.mark.parametrize("method", ["structured", "logprobs"])
def test_a_dry_run_counts_every_step_of_every_question(asked: Typed, method: str) -> None:
    """35 attitudes and nine selections, alone and after two steps; nine extractions after a summary
    for each of 29 topics."""
    sources = (str(CQBENCH / "stories.jsonl"), str(CQBENCH / "values.jsonl"))
    planned = asked("evaluate", "cqbench", *sources, *ASK[3:], "--method", method, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert bounds(planned.stdout) == (35 * 4 + 9 * 4 + 29 + 9,) * 2


OWN = """
name: normad_acceptability
title: In words of my own
source: mine
fields: [story, rule_of_thumb]
question: |
  {% if rule_of_thumb %}By the rule above: {% endif %}MY VERY WORDS? yes, no or neutral.
"""


def test_a_prompt_of_ones_own(asked: Typed) -> None:
    """The file replaces the task of its name: in the prompt, the plan and the fingerprint."""
    (asked.folder / "own.yaml").write_text(OWN)
    own = {"when": {"contains": "MY VERY WORDS?"}, "reply": {"answer": "no"}}
    plain = asked(*ASK, "--condition", "none", "-q")
    model = asked.script("own_words.yaml", [own, {"error": "bad-request"}])
    words = [model if word.startswith("scripted:") else word for word in ASK]
    done = asked(*words, "--condition", "none", "-q", "--task", "own.yaml")
    assert done.returncode == 0, done.stderr
    before, after = lines(plain.stdout), lines(done.stdout)
    assert after and all(line["judge"]["answer"] == "no" for line in after)
    assert before[0]["judge"]["fingerprint"] != after[0]["judge"]["fingerprint"]
    assert asked(*words, "--condition", "none", "--task", "own.yaml", "--dry-run").returncode == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("normad_acceptability", "another"), "name: another is none of normad_acceptability"),
        (
            ("[story, rule_of_thumb]", "[story, rule_of_thumb, explanation]"),
            "has no field explanation",
        ),
        (("MY VERY", "{{ unknown }}"), "unknown"),
        (("question:", "questoin:"), "questoin"),
    ],
)
def test_a_prompt_of_ones_own_that_does_not_fit(
    asked: Typed, change: tuple[str, str], told: str
) -> None:
    (asked.folder / "own.yaml").write_text(OWN.replace(*change))
    done = asked(*ASK, "--task", "own.yaml")
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in " ".join(done.stderr.decode().split())
    assert asked(*ASK, "--task", "absent.yaml").returncode == 2


def test_a_rubric_or_a_benchmark_that_would_not_be_asked_is_refused(
    asked: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, told = asked.text(*ASK, "--rubric", "relevance")
    assert (code, out) == (2, "")
    assert "--rubric relevance is for benchmarks of judges; normad asks by its tasks" in told
    code, out, told = asked.text(*ASK, "--profile", "p.json")
    assert (code, out) == (2, "") and "--profile p.json is for judges" in told
    for words in (("--votes", "3"), ("--abstain-margin", "0.1"), ("--cheap-model", ASK[-1])):
        code, out, told = asked.text(*ASK, *words)
        assert (code, out) == (2, "") and f"{' '.join(words)} is for judges" in told, told
    # Variables and files serve many runs.
    plain = asked.text(*ASK)[:2]
    monkeypatch.setenv("JUDGE_RUBRIC", "relevance")
    (asked.folder / "own.toml").write_text('profile = "p.json"\n')
    assert asked.text(*ASK, "--config", "own.toml")[:2] == plain and plain[0] != 2
    code, _, told = asked.text("evaluate", "normda", "rows.jsonl", "-m", "scripted:model.yaml")
    assert code == 2 and "no benchmark is called 'normda'; did you mean normad?" in told


def test_the_papers_way_of_asking(asked: Typed) -> None:
    """`--setting`: another question, in the answer, the plan and the fingerprint."""
    percent = {"when": {"rubric": "cali_percent"}, "reply": {"answer": 62}}
    asked.script("model.yaml", [percent, {"reply": "A"}])
    run = (*CALI, "--condition", "entailment+us")
    done = asked(*run, "--setting", "paper", "-q")
    assert done.returncode == 0, done.stderr
    (line,) = lines(done.stdout)
    assert line["judge"]["answer"] == "entail"
    assert line["judge"]["probabilities"] == {"entail": 0.62, "not entail": 0.38}
    assert line["judge"]["fingerprint"] not in asked(*run, "-q").stdout.decode()
    assert asked(*run, "--setting", "paper", "--dry-run").returncode == 0
    assert b"--setting other: cali has paper" in asked(*run, "--setting", "other").stderr
