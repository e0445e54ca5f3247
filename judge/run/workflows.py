"""The workflows that are installed, and which of their checks a run asks."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from judge import plugins
from judge.errors import UsageError, why_unread
from judge.workflow import Workflow

_WORKFLOWS = "judge.workflows"


def workflow_names() -> tuple[str, ...]:
    """The workflows installed, sorted by name."""
    return plugins.names(_WORKFLOWS)


def load_workflow(name: str) -> Workflow:
    """The workflow with this name, or `path.py:variable`, whose file is run.

    Raises:
        UsageError: there is none.
    """
    path, _, variable = name.rpartition(":")
    if path.endswith(".py"):
        return _from_file(Path(path).absolute(), variable)
    found: Workflow | None = plugins.load(_WORKFLOWS, name)
    if found is None:
        raise UsageError(f"no workflow is called {name!r}; there are {', '.join(workflow_names())}")
    return found


@lru_cache(maxsize=8)
def _from_file(path: Path, variable: str) -> Workflow:
    """Its name tells its code's digest, so that changed code has another fingerprint."""
    try:
        code = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--workflow {path}: cannot be read: {why_unread(error)}") from error
    found = runpy.run_path(str(path)).get(variable)
    if not isinstance(found, Workflow):
        raise UsageError(f"--workflow {path}: no judge.workflow.Workflow is called {variable!r}")
    return replace(found, name=f"{found.name}@{hashlib.blake2b(code, digest_size=4).hexdigest()}")


@dataclass(frozen=True, slots=True)
class Checks:
    """The user's choice of checks.

    Attributes:
        chosen: the names given to --check; none means all that a workflow has.
        added: the judging rubrics of the user's own, which every workflow asks besides.
    """

    chosen: tuple[str, ...]
    added: tuple[str, ...]

    def known(self, workflow: Workflow) -> tuple[str, ...]:
        """All checks that can be asked in this workflow."""
        return (*workflow.checks, *workflow.counted, *self.added)

    def wanted(self, workflow: Workflow) -> frozenset[str]:
        """Those that are asked; none where nothing that was chosen suits this workflow."""
        known = self.known(workflow)
        if not self.chosen:
            return frozenset(known)
        return frozenset((*(name for name in self.chosen if name in known), *self.added))

    def misfit(self, workflow: Workflow) -> str | None:
        """Why this workflow has nothing to ask; None where it has."""
        if self.wanted(workflow):
            return None
        known, named = ", ".join(self.known(workflow)), ", ".join(self.chosen)
        return (
            f"--check {named}: the {workflow.name} workflow has {known}; add others with --rubric"
        )

    def refuse_unknown(self, workflows: Sequence[Workflow]) -> None:
        """Raises UsageError, before anything is judged, for a check that no workflow here has."""
        for check in self.chosen:
            if not any(check in self.known(workflow) for workflow in workflows):
                told = "; ".join(f"{w.name}: {', '.join(self.known(w))}" for w in workflows)
                raise UsageError(
                    f"--check {check}: there is no such check. There are {told}. "
                    "Add others with --rubric"
                )
