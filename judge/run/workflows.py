"""The workflows that are installed, by name."""

from __future__ import annotations

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
