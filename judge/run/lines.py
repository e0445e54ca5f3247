"""Output lines: what is written for a record, and what an earlier output line tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from judge.errors import BackendError
from judge.records import RESERVED, Item, Problem, Record, content_hash
from judge.run.setup import Bound
from judge.verdict import Judgement, Usage, Verdict
from judge.workflow import Outcome

REDONE = frozenset({Verdict.ERROR})
"""Verdicts that `--resume` does not keep."""


def judged(record: Record, outcome: Outcome, bound: Bound) -> dict[str, Any]:
    """The record's own fields, repaired ones with their new text, then `"judge"`."""
    keys = [record.names[name] for name in outcome.changes]
    original = {key: record.fields[key] for key in keys}
    judgement = replace(outcome.judgement, original=original)
    line = record.with_changes(outcome.changes)
    return {**line, RESERVED: judgement.as_json(bound.models, bound.fingerprint)}


def failed(record: Record, error: BackendError, bound: Bound) -> dict[str, Any]:
    """The line of a record that got no verdict because a call brought no reply."""
    judgement = Judgement(
        verdict=Verdict.ERROR,
        workflow=bound.workflow.name,
        reason=str(error),
        usage=Usage(),
        error={"type": error.kind, "line": record.item.line, "message": str(error)},
    )
    line = record.with_changes({})
    return {**line, RESERVED: judgement.as_json(bound.models, bound.fingerprint)}


def bad_input(item: Item, problem: Problem) -> dict[str, Any]:
    """The line of input that cannot be judged: its fields, or its raw text, and what is wrong."""
    told: dict[str, Any] = {"type": problem.type, "line": item.line, "message": problem.message}
    if problem.field is not None:
        told["field"] = problem.field
    fields: dict[str, Any] = {"raw": item.raw or ""}
    if item.fields is not None:
        fields = {k: v for k, v in item.fields.items() if k != RESERVED or not _is_ours(v)}
    if RESERVED in fields:
        fields = {"raw": json.dumps(item.fields)}
    return {**fields, RESERVED: {"verdict": str(Verdict.ERROR), "error": told}}


def _is_ours(value: object) -> bool:
    return isinstance(value, dict) and "verdict" in value


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an output line of an earlier run tells: which record, and whether it stands."""

    key: str
    finished: bool
    judgement: Mapping[str, Any]


def earlier(text: bytes) -> Earlier | None:
    """Read an output line back; None if it is none of ours.

    The record that it was made from is its own fields with the original ones in their place.
    """
    try:
        line = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    if not isinstance(line, dict) or not _is_ours(line.get(RESERVED)):
        return None
    judgement = line[RESERVED]
    original = judgement.get("original") or {}
    fields = {key: value for key, value in line.items() if key != RESERVED}
    return Earlier(
        key=content_hash({**fields, **original}),
        finished=judgement["verdict"] not in REDONE,
        judgement=judgement,
    )
