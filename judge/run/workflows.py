"""The workflows that are installed, by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from judge import plugins
from judge.errors import UsageError
from judge.judging.panel import Panel
from judge.subject import Subject
from judge.verdict import Check
from judge.workflow import Workflow

_WORKFLOWS = "judge.workflows"
_VOTING = "majority"
"""The graph by which panels vote: it can be drawn, and is no workflow of records."""


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


def load_graph(name: str) -> Any:
    """The LangGraph graph of a workflow, or the `majority` graph that all of them vote with.

    Raises:
        UsageError: there is none of this name.
    """
    if name == _VOTING:
        return import_module("judge.graphs.majority").graph
    if name not in workflow_names():
        known = ", ".join((*workflow_names(), _VOTING))
        raise UsageError(f"no graph is called {name!r}; there are {known}")
    return load_workflow(name).graph


async def put_to(panel: Panel, subject: Subject) -> Check:
    """What a panel says of a subject, its votes taken as every workflow takes them.

    Raises:
        BackendError: the model cannot be reached, refuses the key, or the budget is used up.
    """
    take_votes = import_module("judge.graphs.majority").take_votes
    check: Check = await take_votes(panel, subject, by="accepting")
    return check
