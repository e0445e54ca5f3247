"""Output lines: what is written for a record, and what an earlier output line tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.records import RESERVED, Item, Problem, Record, content_hash, dump_judged
from judge.run.setup import Bound
from judge.verdict import Failure, Judgement, Unfinished, Verdict
from judge.workflow import Outcome

FINISHED = frozenset(map(str, Verdict)) - {str(Verdict.ERROR), str(Verdict.SKIPPED)}
"""Verdicts that `--resume` keeps."""


@dataclass(frozen=True, slots=True)
class Line:
    """An output line, what it says under `"judge"`, and whether it stands from an earlier run."""

    text: bytes
    judgement: Mapping[str, Any]
    kept: bool = False


def judged(record: Record, outcome: Outcome, bound: Bound) -> Line:
    """The record's own fields, repaired ones with their new text, then `"judge"`."""
    keys = [record.names[name] for name in outcome.changes]
    original = {key: record.fields[key] for key in keys}
    judgement = outcome.judgement.model_copy(update={"original": original})
    changed = record.with_changes(outcome.changes)
    return written(changed, _told(judgement, bound), record.item)


def failed(
    record: Record, kind: str, message: str, bound: Bound, unfinished: Unfinished | None = None
) -> Line:
    """The line of a record that got no verdict; `kind` is the error's type.

    `unfinished`: what was asked before. The record is as it was read, so rewrites are not told.
    """
    until_then = unfinished or Unfinished()
    judgement = Judgement(
        verdict=Verdict.ERROR,
        workflow=bound.workflow.name,
        reason=message,
        checks=until_then.checks,
        usage=until_then.usage,
        error=Failure(type=kind, message=message, **record.item.found_at),
    )
    return written(record.with_changes({}), _told(judgement, bound), record.item)


def _told(judgement: Judgement, bound: Bound) -> dict[str, Any]:
    marked = judgement.model_copy(update={"fingerprint": bound.fingerprint})
    return marked.as_json()


def bad_input(item: Item, problem: Problem) -> Line:
    """The line of input that cannot be judged: its fields, or its raw text, and what is wrong."""
    told: dict[str, Any] = {"type": problem.type, **item.found_at, "message": problem.message}
    if problem.field is not None:
        told["field"] = problem.field
    if item.fields is None:
        fields: dict[str, Any] = {"raw": item.raw or ""}
    elif RESERVED in item.fields and not _is_ours(item.fields[RESERVED]):
        fields = {"raw": json.dumps(item.fields, ensure_ascii=False)}
    else:
        fields = {key: value for key, value in item.fields.items() if key != RESERVED}
    return written(fields, {"verdict": str(Verdict.ERROR), "error": told}, item)


def written(
    fields: Mapping[str, Any], judgement: Mapping[str, Any], item: Item | None = None
) -> Line:
    """A line of these fields, with the judgement behind them; as in `item` where unchanged."""
    return Line(dump_judged(fields, judgement, item), judgement)


def _is_ours(value: object) -> bool:
    return isinstance(value, dict) and "verdict" in value


def reread(text: bytes, *, kept: bool) -> Line:
    """A line of this run, from its text."""
    return Line(text, json.loads(text)[RESERVED], kept)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an output line of an earlier run tells: which record, and whether it stands."""

    key: str
    finished: bool
    judgement: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.judgement["verdict"])

    @property
    def fingerprint(self) -> str:
        return str(self.judgement.get("fingerprint"))

    @property
    def made_by(self) -> str:
        """The name of the workflow or benchmark that it comes from."""
        return str(made_by(self.judgement))


def made_by(judgement: Mapping[str, Any]) -> Any:
    """The name of the workflow or benchmark that a judgement comes from."""
    return judgement.get("workflow") or judgement.get("benchmark")


def earlier(text: bytes) -> Earlier | None:
    """Read an output line back; None if it is none of ours.

    The record that it was made from is its own fields with the original ones in their place.
    """
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not _is_ours(line.get(RESERVED)):
        return None
    judgement = line[RESERVED]
    original = judgement.get("original") or {}
    if not isinstance(judgement["verdict"], str) or not isinstance(original, dict):
        return None
    fields = {key: value for key, value in line.items() if key != RESERVED}
    whole = isinstance(judgement.get("fingerprint"), str) and isinstance(made_by(judgement), str)
    finished = judgement["verdict"] in FINISHED and whole
    return Earlier(content_hash({**fields, **original}), finished, judgement)
