"""Output lines: written, read back, and the fingerprint of what made them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judge import plugins
from judge.digest import digest
from judge.records import (
    RESERVED,
    Item,
    Problem,
    Record,
    content_hash,
    dump_judged,
    is_verdict,
    shortened,
)
from judge.verdict import Failure, Judgement, Unfinished, Verdict

if TYPE_CHECKING:
    from judge.run.panels import BoundWorkflow
    from judge.workflow import Outcome

FINISHED = frozenset(map(str, Verdict)) - {str(Verdict.ERROR), str(Verdict.SKIPPED)}
"""Verdicts that `--resume` keeps."""


@dataclass(frozen=True, slots=True)
class Line:
    """An output line, what it says under `"judge"`, and whether it stands from an earlier run.

    `key` leads from a line that was read back to its record: the content hash of that, or for input
    that could not be judged `key_of` the line itself.
    """

    text: bytes
    judgement: Mapping[str, Any]
    kept: bool = False
    key: str = ""

    @property
    def verdict(self) -> str:
        return str(self.judgement["verdict"])

    @property
    def fingerprint(self) -> str | None:
        return self.judgement.get("fingerprint")

    @property
    def made_by(self) -> str:
        """The name of the workflow or benchmark that it comes from."""
        return str(self.judgement.get("workflow") or self.judgement.get("benchmark"))

    @property
    def finished(self) -> bool:
        """Whether `--resume` keeps it."""
        return self.verdict in FINISHED and isinstance(self.fingerprint, str)


def judged(record: Record, outcome: Outcome, bound: BoundWorkflow) -> Line:
    """The record's own fields, repaired ones with their new text, then `"judge"`."""
    original = record.originals(outcome.changes)
    told = {"original": original, "fingerprint": bound.fingerprint}
    judgement = outcome.judgement.model_copy(update=told)
    return written(record.with_changes(outcome.changes), judgement.as_json(), record.item)


def failed(
    record: Record,
    kind: str,
    message: str,
    bound: BoundWorkflow,
    unfinished: Unfinished | None = None,
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
        fingerprint=bound.fingerprint,
        error=Failure(type=kind, message=message, **record.item.found_at),
    )
    return written(record.with_changes({}), judgement.as_json(), record.item)


def bad_input(item: Item, problem: Problem) -> Line:
    """The line of input that cannot be judged: its fields, or its raw text, and what is wrong."""
    told: dict[str, Any] = {"type": problem.type, **item.found_at, "message": problem.message}
    if problem.field is not None:
        told["field"] = problem.field
    fields = {"raw": item.raw or ""} if item.fields is None else shortened(item.fields)
    fields.pop(RESERVED, None)
    return written(fields, {"verdict": str(Verdict.ERROR), "error": told}, item)


def written(
    fields: Mapping[str, Any], judgement: Mapping[str, Any], item: Item | None = None
) -> Line:
    """A line of these fields, with the judgement behind them; as in `item` where unchanged."""
    return Line(dump_judged(fields, judgement, item), judgement)


def key_of(text: bytes) -> str:
    """What the line of input that cannot be judged is known by."""
    return digest(text, 16)


def earlier(text: bytes) -> Line | None:
    """Read an output line back; None if judge did not write it.

    The record that it was made from is its own fields with the original ones in their place.
    """
    line = parsed(text)
    if line is None or not is_verdict(line.get(RESERVED)):
        return None
    judgement = line.pop(RESERVED)
    original = judgement.get("original") or {}
    if not isinstance(judgement["verdict"], str) or not isinstance(original, dict):
        return None
    unasked = judgement.get("fingerprint") is None
    key = key_of(text) if unasked else content_hash({**line, **original})
    return Line(text, judgement, kept=True, key=key)


def as_it_came(line: Line) -> dict[str, Any]:
    """The fields of a line's record, the original ones in the place of repaired ones."""
    fields = parsed(line.text) or {}
    fields.pop(RESERVED, None)
    return {**fields, **(line.judgement.get("original") or {})}


def parsed(text: bytes) -> dict[str, Any] | None:
    """The JSON object that a whole line holds; None for anything else."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


# ---------------------------------------------------------------- what lines are made with


@dataclass(frozen=True, slots=True)
class Mark:
    """What lines of one workflow or benchmark are made with: its name, models and fingerprint."""

    name: str
    models: Mapping[str, Any]
    fingerprint: str

    @property
    def described(self) -> dict[str, Any]:
        """As the description beside OUT and the summary file have it."""
        return {"workflow": self.name, **self.models}


def fingerprint(described: Mapping[str, Any], identities: Mapping[str, Any]) -> str:
    """16 hex digits over rubrics, models, parameters and workflow: same digits, same question.

    Args:
        described: what output says of the run; `workflow` or `benchmark` names its entry point.
        identities: of the models, by `provider:model`.
    """
    body = {"run": described, "models": identities}
    foreign = {
        **plugins.packages("judge.backends", (spec.partition(":")[0] for spec in identities)),
        **plugins.packages("judge.workflows", (str(described.get("workflow")),)),
        **plugins.packages("judge.benchmarks", (str(described.get("benchmark")),)),
    }
    if foreign:
        body["plugins"] = foreign
    return digest(json.dumps(body, sort_keys=True).encode(), 8)


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """The leaves of nested objects by their path: `settings.votes`."""
    if not isinstance(tree, Mapping):
        return {path: tree}
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{path}.{key}" if path else str(key))
    return found
