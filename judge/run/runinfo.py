"""What lines are made with: the fingerprint, and its description beside OUT."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge import plugins
from judge.digest import digest


@dataclass(frozen=True, slots=True)
class RunInfo:
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
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{path}.{key}" if path else str(key))
    return leaves
