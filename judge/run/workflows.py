"""The workflows that are installed."""

from __future__ import annotations

import hashlib
import runpy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

from judge import plugins
from judge.collection import collect
from judge.errors import UsageError, why_unread
from judge.records import Kind
from judge.workflow import Workflow

_WORKFLOWS = "judge.workflows"


def workflow_names() -> tuple[str, ...]:
    """The workflows installed, sorted by name."""
    return plugins.names(_WORKFLOWS)


def load_workflow(name: str) -> Workflow:
    """The workflow with this name, or `path.py:variable`, whose file is run.

    The variable is a `Workflow`, or a LangGraph `StateGraph` over `State`, compiled or not.

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
    try:
        found = runpy.run_path(str(path)).get(variable)
    except Exception as error:
        raise UsageError(f"--workflow {path}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Workflow):
        found = _of_graph(found, path, variable)
    return replace(found, name=f"{found.name}@{hashlib.blake2b(code, digest_size=4).hexdigest()}")


def _of_graph(graph: object, path: Path, variable: str) -> Workflow:
    """The workflow of a bare graph: nodes that are called after built-in rubrics make those checks
    and rewrites, and their kind of record is the workflow's."""
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    builder = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    if not isinstance(builder, StateGraph):
        told = "neither a judge.workflow.Workflow nor a LangGraph StateGraph"
        raise UsageError(f"--workflow {path}: {told} is called {variable!r}")
    if "work" not in builder.channels:
        raise UsageError(f"--workflow {path}:{variable}: build the graph over judge.workflow.State")
    try:
        compiled = graph.compile() if graph is builder else graph
    except ValueError as error:
        raise UsageError(f"--workflow {path}:{variable}: {error}") from error
    rubrics = collect(())[0]
    named = [rubrics[name] for name in builder.nodes if name in rubrics]
    kinds = [kind for kind in get_args(Kind) if all(kind in rubric.kinds for rubric in named)]
    checks = tuple(rubric.name for rubric in named if rubric.role == "judge")
    return Workflow(
        name=path.stem,
        kind=kinds[0] if len(kinds) == 1 else "record",
        title=f"{variable} of {path.name}",
        graph=compiled,
        checks=checks,
        accepted=checks,
        rewrites=tuple(rubric.name for rubric in named if rubric.role == "rewrite"),
    )
