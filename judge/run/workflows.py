"""The workflows that are installed."""

from __future__ import annotations

import hashlib
import runpy
from dataclasses import replace
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
    try:
        found = runpy.run_path(str(path)).get(variable)
    except Exception as error:
        raise UsageError(f"--workflow {path}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Workflow):
        raise UsageError(f"--workflow {path}: no judge.workflow.Workflow is called {variable!r}")
    return replace(found, name=f"{found.name}@{hashlib.blake2b(code, digest_size=4).hexdigest()}")
