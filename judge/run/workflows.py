"""The workflows that are installed."""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from judge import plugins
from judge.errors import UsageError, why_unread
from judge.settings import Settings
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


def refuse_unknown_steps(
    settings: Settings, workflows: Sequence[Workflow], own: Sequence[str]
) -> None:
    """See that every step with a model of its own is one of the run's.

    Args:
        own: the judging rubrics that every workflow asks besides.

    Raises:
        UsageError: a step that no workflow has; with the nearest, and all.
    """
    known = {w.name: (*w.checks, *w.rewrites, *own) for w in workflows}
    steps = sorted({step for names in known.values() for step in names})
    for step in settings.steps:
        if step not in steps:
            near = get_close_matches(step, steps, 1)
            meant = f"; did you mean {near[0]}?" if near else "."
            where = "[models]" if step in settings.models else "--model-for"
            listed = "; ".join(f"{name}: {', '.join(n)}" for name, n in known.items() if n)
            raise UsageError(f"{where} {step}: there is no such step{meant} There are {listed}")


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
        raise UsageError(f"--workflow {path}: no judge.workflow.Workflow is called {variable!r}")
    return replace(found, name=f"{found.name}@{hashlib.blake2b(code, digest_size=4).hexdigest()}")
