"""`judge models` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.cli.models import app
from judge.errors import Exit, UsageError
from judge.weights.catalog import CATALOG

from .conftest import NAME, Publisher

runner = CliRunner()


def test_list_as_json(models: Path) -> None:
    result = runner.invoke(app, ["list", "--json"])
    listed = {row["name"]: row for row in json.loads(result.stdout)}
    assert set(listed) == set(CATALOG)
    assert listed[NAME] == {
        "name": NAME,
        "kind": "chat",
        "about": "tests",
        "licence": "Apache-2.0",
        "bytes": 600_000,
        "path": None,
    }


def test_list_as_table(models: Path) -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "smollm2-135m" in result.stdout
    assert "Apache-2.0" in result.stdout


def test_pull_prints_the_path_alone_on_stdout(models: Path, publisher: Publisher) -> None:
    result = runner.invoke(app, ["pull", NAME])
    assert result.exit_code == 0
    assert result.stdout == f"{models / NAME / 'tiny.bin'}\n"
    assert runner.invoke(app, ["path", NAME]).stdout == result.stdout


def test_path_of_missing_weights(models: Path) -> None:
    result = runner.invoke(app, ["path", NAME])
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code is Exit.USAGE
    assert f"judge models pull {NAME}" in str(result.exception)


@pytest.mark.parametrize("command", ["pull", "path"])
def test_unknown_name(models: Path, command: str) -> None:
    result = runner.invoke(app, [command, "nope"])
    assert isinstance(result.exception, UsageError)
