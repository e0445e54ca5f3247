"""First tokens as servers list them: half of the probability, zeros, nothing; as people type it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Asked, Loopback, completion, says

from cli.typed import Typed

READY = '{"ready": "yes"}'
NO = {"quote": None, "reason": "It is curt.", "answer": "no"}
ASK = ("validate", "in.jsonl", "--ask", "Is this e-mail polite?", "--on", "email", "-m")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("in.jsonl", [{"id": f"m{n}", "email": f"Send the {n} parcels."} for n in range(3)])
    return made


def listing(*alternatives: dict[str, Any], sampled: float = -0.1) -> Any:
    """A server that lists these for the first token, and answers no otherwise."""

    def script(asked: Asked) -> Answer:
        if not asked.body.get("logprobs"):
            return says(READY if asked.probe else NO)
        whole = completion(asked, says("Yes"))
        first = {"token": "Yes", "logprob": sampled, "top_logprobs": list(alternatives)}
        whole["choices"][0]["logprobs"] = {"content": [first]}
        return Answer(body=json.dumps(whole).encode())

    return script


def judged(judge: Typed, monkeypatch: pytest.MonkeyPatch, script: Any, *words: str) -> Any:
    """The lines' `"judge"`, which are the same from the cache."""
    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        code, out, told = judge.text(*ASK, *words)
        assert code == 0, told
        count = server.count
        assert judge.text(*ASK, *words)[1] == out and server.count == count
    return [json.loads(line)["judge"] for line in out.splitlines()]


@pytest.mark.parametrize("top", [[{"token": "Yes", "logprob": -0.654}], []])
def test_a_cheap_judge_of_half_the_probability_passes_on(
    judge: Typed, monkeypatch: pytest.MonkeyPatch, top: list[dict[str, Any]]
) -> None:
    script = listing(*top, sampled=-0.654)
    found = judged(judge, monkeypatch, script, "openai:strong", "--cheap-model", "openai:cheap")
    assert [one["verdict"] for one in found] == ["fail"] * 3
    cheap, strong = found[0]["checks"][0]["votes"]
    assert cheap["evidence"][0]["probability_range"] == [pytest.approx(0.52, abs=1e-3), 1.0]
    assert cheap["verdict"] == "abstain" and "probability" not in cheap["evidence"][0]
    assert (strong["model"], strong["verdict"]) == ("openai:strong", "fail")


@pytest.mark.parametrize("text", ["Yes", " yes"])
def test_tokens_of_one_text_add_up(
    judge: Typed, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    shares = (("Yes", 0.6), ("No", 0.3), (text, 0.05), (text, 0.05), (text, 0.0))
    rows = [{"token": token, "logprob": math.log(p) if p else -math.inf} for token, p in shares]
    found = judged(judge, monkeypatch, listing(*rows), "openai:m", "--method", "logprobs")
    assert [one["checks"][0]["probability"] for one in found] == [pytest.approx(0.7)] * 3


@pytest.mark.parametrize("zero", [{"logprob": None}, {"logprob": -math.inf}, {}])
def test_the_log_of_zero_is_no_probability(
    judge: Typed, monkeypatch: pytest.MonkeyPatch, zero: dict[str, Any]
) -> None:
    script = listing({"token": "Yes", "logprob": -0.1}, {"token": "No", **zero})
    found = judged(judge, monkeypatch, script, "openai:m", "--method", "logprobs")
    assert [one["checks"][0]["probability"] for one in found] == [1.0] * 3
