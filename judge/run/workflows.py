"""The workflows that are installed, and which of their checks a run asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge import plugins
from judge.errors import UsageError
from judge.workflow import Workflow

_WORKFLOWS = "judge.workflows"


def workflow_names() -> tuple[str, ...]:
    """The workflows installed, sorted by name."""
    return plugins.names(_WORKFLOWS)


def load_workflow(name: str) -> Workflow:
    """The workflow with this name.

    Raises:
        UsageError: there is none.
    """
    found: Workflow | None = plugins.load(_WORKFLOWS, name)
    if found is None:
        raise UsageError(f"no workflow is called {name!r}; there are {', '.join(workflow_names())}")
    return found


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
