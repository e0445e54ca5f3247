"""A workflow run on one record with a scripted model, and every call that it made."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from judge.backends.base import Call, Completion, Mode
from judge.backends.scripted import ScriptedBackend
from judge.configuration import resolve
from judge.judgement import Judgement
from judge.records import Record
from judge.run.panels import Resources
from judge.verdict import Check, last_of_each, worst

Entry = dict[str, Any]


@dataclass(slots=True)
class Taken:
    """A workflow's result for a record, and the calls to the model."""

    judgement: Judgement
    changes: dict[str, Any]
    line: dict[str, Any]
    calls: list[Call] = field(default_factory=list)

    def asked(self, rubric: str, role: str | None = None) -> list[Call]:
        return [c for c in self.calls if c.origin.rubric == rubric and role in (None, c.role)]

    def checks(self, name: str) -> list[Check]:
        return [check for check in self.judgement.checks if check.name == name]


Take = Callable[..., Awaitable[Taken]]


@pytest.fixture(autouse=True)
def _every_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests count calls here; that equal questions are asked once is tests/judging's matter."""
    numbers = count()
    monkeypatch.setattr(ScriptedBackend, "key_parts", lambda self, call: next(numbers))


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Run a record's workflow: `await take(fields, script_entries, setting=...)`."""
    monkeypatch.chdir(tmp_path)
    calls: list[Call] = []
    answer = ScriptedBackend.complete

    async def complete(self: ScriptedBackend, call: Call, mode: Mode) -> Completion:
        calls.append(call)
        return await answer(self, call, mode)

    monkeypatch.setattr(ScriptedBackend, "complete", complete)

    async def run(
        fields: dict[str, Any], script: Sequence[Entry], *, rounds: int = 3, **settings: Any
    ) -> Taken:
        calls.clear()
        method = settings.get("method", "structured")
        path = tmp_path / "judge.yaml"
        path.write_text(json.dumps({"replies": list(script), "method": method}), "utf-8")
        given = {"model": (f"scripted:{path}",), "cache": False, **settings}
        given |= {"repair": True, "rounds": rounds} if rounds else {}
        resources = Resources.of(resolve(given))
        record = Record("a.jsonl", 1, fields).of_kind().usable()
        bound = resources.bound(record.kind)
        try:
            outcome = await bound.workflow.run(record, bound.context)
        finally:
            await resources.models.aclose()
        # Tables, gates and people's decisions go by the last check of each name.
        last = last_of_each((judgement := outcome.judgement).checks)
        assert judgement.verdict is worst(check.verdict for check in last)
        line = record.with_changes(outcome.changes)
        return Taken(outcome.judgement, dict(outcome.changes), line, list(calls))

    return run


def entry(rubric: str | None = None, reply: Any = None, **more: Any) -> Entry:
    """A script entry; `role`, `vote`, `round`, `contains` and `lacks` are its conditions."""
    names = ("role", "vote", "round", "contains", "lacks")
    when = {name: more.pop(name) for name in names if name in more}
    if rubric is not None:
        when["rubric"] = rubric
    made: Entry = {"when": when, **more}
    return made if reply is None else {**made, "reply": reply}
