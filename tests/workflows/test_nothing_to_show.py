"""Checks of a field that is there but has no text to show."""

from __future__ import annotations

import json
from pathlib import Path

import judge

NORM = {"rule_of_thumb": "Greet the host.", "story": "He greets her.", "background": " "}


def test_a_question_of_ones_own_abstains_and_a_workflows_check_is_skipped(tmp_path: Path) -> None:
    reply = {"quote": "He greets her.", "reason": "He does.", "answer": "yes"}
    (tmp_path / "yes.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))

    def verdicts(**asked: object) -> dict[str, str]:
        settings = {"model": f"scripted:{tmp_path}/yes.yaml", "cache": False, **asked}
        (judgement,) = judge.validate([NORM], **settings)
        return {check.name: str(check.verdict) for check in judgement.checks}

    own = verdicts(ask=["Does he greet?", "Is it long?"], name=["greets", "long"], on="background")
    assert own == {"greets": "abstain", "long": "abstain"}
    assert verdicts(check=["relevance", "derivation"]) == {
        "relevance": "pass",
        "derivation": "skipped",
    }
