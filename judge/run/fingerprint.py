"""What a run says of itself in its output lines, and the hash over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge import __version__, plugins
from judge.profiles import JudgeProfile
from judge.settings import Settings
from judge.workflow import Context

Profiled = Mapping[str, Mapping[str, JudgeProfile]]
"""The profiles in force: by check, then by model."""


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


def parameters(settings: Settings, context: Context, profiled: Profiled) -> dict[str, Any]:
    """Every setting that can change a verdict, with the profiles in force."""
    panels = (*context.steering.values(), *context.accepting.values())
    return {
        "version": __version__,
        **settings.deciding(),
        "votes": max((len(panel.ballots) for panel in panels), default=0),
        "cheap_margin": settings.cheap_margin if settings.cheap_model else None,
        "profiles": {
            check: {spec: found.fingerprint for spec, found in sorted(known.items())}
            for check, known in sorted(profiled.items())
            if check in context.wanted
        },
        "checks": sorted(context.wanted),
    }


def digests(context: Context) -> dict[str, str]:
    """The digest of every rubric that is asked, by name."""
    return {
        **{n: p.rubric.digest for n, p in sorted(context.steering.items())},
        **{n: r.rubric.digest for n, r in sorted(context.rewriters.items())},
    }


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
    text = json.dumps(body, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
