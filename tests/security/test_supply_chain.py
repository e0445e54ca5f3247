"""`.ci/supply.py`: what is a finding, what is a warning, and what is neither."""

from __future__ import annotations

import importlib.util
import re
from datetime import date
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TODAY = date(2026, 11, 22)


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("supply", ROOT / ".ci" / "supply.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


supply = _loaded()
FOUND = {
    "name": "jinja2",
    "version": "3.1.2",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["3.1.6"]}],
}
FINE = {"name": "rich", "version": "14", "vulns": []}
SKIPPED = {"name": "other", "skip_reason": "Dependency not found on PyPI"}


def test_a_known_vulnerability_is_a_finding() -> None:
    findings, warnings = supply.advisories({"dependencies": [FOUND, FINE]}, [], TODAY)
    assert findings == ["jinja2 3.1.2: CVE-1, PYSEC-1; mended in 3.1.6"] and not warnings


@pytest.mark.parametrize("id", ["PYSEC-1", "CVE-1"])
def test_an_ignored_one_is_none_until_its_day(id: str) -> None:
    rule = {"id": id, "reason": "never called", "until": TODAY}
    assert supply.advisories({"dependencies": [FOUND]}, [rule], TODAY) == ([], [])
    past = {**rule, "until": date(2026, 11, 21)}
    (finding,) = supply.advisories({"dependencies": [FOUND]}, [past], TODAY)[0]
    assert "ignored until 2026-11-21, which is past" in finding
    _, warnings = supply.advisories({"dependencies": [FINE]}, [rule], TODAY)
    assert warnings == [f"{id} is ignored, and nothing has it"]


def test_a_service_that_knows_nothing_is_told_apart_from_no_finding() -> None:
    findings, warnings = supply.advisories({"dependencies": [SKIPPED]}, [], TODAY)
    assert not findings and "NOTHING WAS LOOKED UP" in warnings[0]
    _, warnings = supply.advisories({"dependencies": [SKIPPED, FINE]}, [], TODAY)
    assert warnings == ["1 of 2 were looked up, not other"]


def tool(folder: Path, text: str) -> Path:
    (folder / "bin").mkdir()
    program = folder / "bin" / "pip-audit"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o700)
    return folder


def test_an_unreachable_service_and_a_broken_tool(tmp_path: Path) -> None:
    words = "echo 'Could not connect to PyPI' >&2; exit 1"
    assert supply.audit(tool(tmp_path / "a", words)) == "Could not connect to PyPI"
    with pytest.raises(RuntimeError, match="ended with 2: unrecognized arguments"):
        supply.audit(tool(tmp_path / "b", "echo 'unrecognized arguments: --x' >&2; exit 2"))


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()


@pytest.mark.parametrize(
    ("told", "good"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-2.0-only AND MIT", False),
        ("MPL-2.0 AND (Apache-2.0 OR GPL-3.0-only)", True),
        ("(GPL-3.0-only OR AGPL-3.0-only) AND MIT", False),
        ("Apache-2.0 WITH LLVM-exception", False),
    ],
)
def test_licence_expressions(told: str, good: bool) -> None:
    assert supply.permitted(told, {"MIT", "Apache-2.0", "MPL-2.0"}) is good


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"License-Expression": "MIT AND ISC", "License": "GPL"}, "MIT AND ISC"),
        ({"License": "Apache License, Version 2.0"}, "Apache-2.0"),
        ({"License": "MIT License\n\nCopyright (c) somebody"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, "BSD-3-Clause"),
        ({"License": "All rights reserved, ask us"}, None),
        ({}, None),
    ],
)
def test_licences_of_metadata(headers: dict[str, str], told: str | None) -> None:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    assert supply.expression(message) == told


def test_what_judge_needs_is_under_licences_that_are_allowed() -> None:
    rules = supply.tomllib.loads((ROOT / ".ci" / "supply.toml").read_text())["licences"]
    packages = supply.closure("judge-text")
    assert {"judge-text", "jinja2", "aiohttp", "pydantic-core"} <= set(packages)
    assert supply.licences(packages, {**rules, "accepted": {}}) == ([], [])
    narrow = {"allow": ["Apache-2.0"], "known": {}, "accepted": {"jinja2": "so"}}
    findings, warnings = supply.licences(packages, narrow)
    assert any(line.startswith("pydantic ") for line in findings)
    assert len(warnings) == 1 and warnings[0].endswith("accepted: so")


def test_every_extra_that_a_message_names_can_be_installed() -> None:
    named = {
        found
        for path in (ROOT / "judge").rglob("*.py")
        for found in re.findall(
            r"(?:missing_extra|install_hint)\([^)]*?\"([a-z]+)\"\)", path.read_text("utf-8")
        )
    }
    project = supply.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(named) >= 4 and named <= set(project["optional-dependencies"])
    assert project["name"] == "judge-text", "judge on PyPI is a package of somebody else"
