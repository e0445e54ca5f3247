"""The licences of what judge needs, and the extras that it names."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


supply = _loaded("supply")


def test_what_judge_needs_is_under_licences_that_are_allowed() -> None:
    rules = supply.tomllib.loads((ROOT / ".ci" / "supply.toml").read_text())["licences"]
    packages = supply.closure("judge-text")
    assert {"judge-text", "jinja2", "aiohttp", "pydantic-core"} <= set(packages)
    assert supply.licences(packages, {**rules, "accepted": {}}) == ([], [])
    narrow = {"allow": ["Apache-2.0"], "known": {}, "accepted": {"jinja2": "so"}}
    findings, warnings = supply.licences(packages, narrow)
    assert any(line.startswith("pydantic ") for line in findings)
    assert len(warnings) == 1 and warnings[0].endswith("accepted: so")


@pytest.mark.slow
def test_every_extra_that_a_message_names_can_be_installed() -> None:
    calls = (
        node
        for path in (ROOT / "judge").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    named = {
        ast.literal_eval(call.args[-1])
        for call in calls
        if ast.unparse(call.func).endswith(("missing_extra", "install_hint"))
        and isinstance(call.args[-1], ast.Constant)
    }
    project = supply.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    assert {"calibrate", "gpu", "local", "ray"} <= named <= extras
    assert project["name"] == "judge-text", "judge on PyPI is a package of somebody else"
