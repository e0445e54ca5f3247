"""Profiles for tests; each part can be replaced."""

from __future__ import annotations

from typing import Any

from judge.profile import Binding, Data, JudgeProfile, Profile, Rates

GOOD = Rates(passed=90, passes=100, failed=80, fails=100)
"""A TPR of 0.9 and a TNR of 0.8."""


def binding(**otherwise: Any) -> Binding:
    plain: dict[str, Any] = {
        "check": "relevance",
        "rubric": "0123456789ab",
        "model": "scripted:a.yaml",
        "identity": {"provider": "scripted", "model": "a.yaml", "script": "00ff"},
        "method": "logprobs",
        "temperature": 0.0,
        "votes": 1,
    }
    return Binding(**{**plain, **otherwise})


def data(**otherwise: Any) -> Data:
    plain: dict[str, Any] = {
        "sources": ("labels.jsonl",),
        "digest": "00",
        "items": 400,
        "records": 400,
        "fitted_on": 200,
        "held_out": 200,
    }
    return Data(**{**plain, **otherwise})


def judge_profile(bound: Binding | None = None, **otherwise: Any) -> JudgeProfile:
    plain: dict[str, Any] = {"data": data(), "rates": GOOD}
    return JudgeProfile(binding=bound or binding(), **{**plain, **otherwise})


def profile(*judges: JudgeProfile, **otherwise: Any) -> Profile:
    return Profile(made_by="tests", judges=judges or (judge_profile(),), **otherwise)
