"""Loads workflows: installed ones by name, others from a file."""

from __future__ import annotations

import runpy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from judge import plugins
from judge.digest import digest
from judge.errors import UsageError, meant, why_unread
from judge.questions.ready_made import builtin
from judge.records.kinds import RECORD, kind_named, kind_names
from judge.workflows.work import Workflow

WORKFLOWS = "judge.workflows"
"""The entry points of workflows."""


def workflow_names() -> tuple[str, ...]:
    """The workflows installed, sorted by name."""
    return plugins.names(WORKFLOWS)


def load_workflow(name: str) -> Workflow:
    """The workflow with this name, or `path.py:variable`, whose file is executed.

    The variable is a `Workflow`, or a LangGraph `StateGraph` over `State`, compiled or not.

    Raises:
        UsageError: there is no such workflow, or its file cannot be used.
    """
    path, _, variable = name.rpartition(":")
    if path.endswith(".py"):
        file = Path(path).absolute()
        try:
            code = file.read_bytes()
        except OSError as error:
            raise UsageError(f"--workflow {file}: cannot be read: {why_unread(error)}") from error
        return _from_file(file, variable, digest(code, 4))
    workflow: Workflow | None = plugins.load(WORKFLOWS, name, Workflow)
    if workflow is None:
        raise UsageError(f"no workflow is called {name!r}; {meant(name, workflow_names())}")
    return workflow


@lru_cache(maxsize=8)
def _from_file(path: Path, variable: str, digest: str) -> Workflow:
    """The workflow of a file; the code's digest is part of its name, and so of the fingerprint."""
    try:
        with plugins.prints_aside():
            workflow = runpy.run_path(str(path)).get(variable)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--workflow {path}: {type(error).__name__}: {error}") from error
    if not isinstance(workflow, Workflow):
        workflow = _of_graph(workflow, path, variable)
    return replace(workflow, name=f"{workflow.name}@{digest}")


def _of_graph(graph: object, path: Path, variable: str) -> Workflow:
    """The workflow of a bare graph. Nodes named after built-in rubrics are its checks and rewrites;
    these rubrics determine the kind of record."""
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    builder = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    if not isinstance(builder, StateGraph):
        message = "is neither a judge.workflows.Workflow nor a LangGraph StateGraph"
        raise UsageError(f"--workflow {path}: {variable!r} {message}")
    if "work" not in builder.channels:
        raise UsageError(f"--workflow {path}:{variable}: its state must be judge.workflows.State")
    try:
        compiled = graph.compile() if graph is builder else graph
    except ValueError as error:
        raise UsageError(f"--workflow {path}:{variable}: {error}") from error
    rubrics = builtin()
    members = [rubrics[name] for name in builder.nodes if name in rubrics]
    kinds = [
        kind
        for kind in kind_names()
        if kind_named(kind).needed and all(kind in rubric.kinds for rubric in members)
    ]
    checks = tuple(rubric.name for rubric in members if rubric.role == "judge")
    return Workflow(
        name=path.stem,
        kind=kinds[0] if len(kinds) == 1 else RECORD,
        title=f"{variable} of {path.name}",
        graph=compiled,
        checks=checks,
        accepted=checks,
        rewrites=tuple(rubric.name for rubric in members if rubric.role == "rewrite"),
    )
