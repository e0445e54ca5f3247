"""A GGUF that says it is a decision model, asked through llama.cpp's own System One."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed

from judge.local.store import decision_type
from local.made_gguf import decision_model

pytestmark = pytest.mark.slow

RUBRIC = """
name: tone
question: What is the tone?
fields: [mail]
answers: [warm, cold, curt]
pass: warm
none: true
"""


def test_a_decision_gguf_judges_and_says_what_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    judge = Typed(tmp_path, monkeypatch, capfd)
    model = f"local:{decision_model(tmp_path / 'd1.gguf')}"
    assert decision_type(tmp_path / "d1.gguf") == "lfm2-d1"
    judge.write("in.jsonl", [{"id": f"m{n}", "mail": f"Send {n} forms."} for n in range(4)])
    (tmp_path / "tone.yaml").write_text(RUBRIC)
    for words in (("--ask", "Is it polite?"), ("--rubric", "tone.yaml", "--check", "tone")):
        run = ("validate", "in.jsonl", "-m", model, *words)
        code, out, told = judge.text(*run)
        assert code == 0, told
        votes = [json.loads(line)["judge"]["checks"][0]["votes"][0] for line in out.splitlines()]
        assert {vote["method"] for vote in votes} == {"logprobs"}
        assert {*map(tuple, (vote["answered_by"] for vote in votes))} == {("d1.gguf",)}
        assert len({vote["evidence"][0]["probability"] for vote in votes}) == 4
        assert judge.text(*run)[1] == out, "from the cache"
    for words in (("--method", "structured"), ("--method", "probe")):
        code, _, told = judge.text(
            "validate", "in.jsonl", "-m", model, "--ask", "Is it so?", *words
        )
        assert code == 2 and "is a decision model" in " ".join(told.split()), told
