"""The documents say what the code does: every option, setting and rubric is in the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from click import Command, Group

from judge.cli import app
from judge.rubric import builtin
from judge.settings import Settings
from judge.task import task_names

ROOT = Path(__file__).resolve().parents[1]
AGAIN = "run python docs/make_reference.py"


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands(command: Command, path: str = "judge") -> Iterator[tuple[str, Command]]:
    yield path, command
    if isinstance(command, Group) or hasattr(command, "commands"):
        for name, inner in getattr(command, "commands", {}).items():
            yield from commands(inner, f"{path} {name}")


def test_the_reference_names_every_command_and_option() -> None:
    text = read("docs/reference.md")
    for path, command in commands(typer.main.get_command(app)):
        assert f"`{path}" in text, f"{path} is missing: {AGAIN}"
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and not option.endswith("-completion"):
                    assert option in text, f"{path} {option} is missing: {AGAIN}"


def test_the_reference_names_every_setting_rubric_and_task() -> None:
    text = read("docs/reference.md")
    for name in (*Settings.model_fields, *builtin(), *task_names()):
        assert f"`{name}`" in text, f"{name} is missing: {AGAIN}"


def test_options_in_readme_and_guide_exist() -> None:
    known = {
        option
        for _, command in commands(typer.main.get_command(app))
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    elsewhere = {"--limit", "--help", "--update-golden", "--check"}  # pytest, ruff
    for name in ("README.md", "docs/guide.md"):
        text = re.sub(r"(?s)vllm serve.*?\|", "", read(name))
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text):
            assert option in known | elsewhere, f"{name}: {option}"


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/guide.md"]
)
def test_links_and_paths_lead_somewhere(name: str) -> None:
    text, folder = read(name), (ROOT / name).parent
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (folder / target).exists(), f"{name}: {target}"
    for target in re.findall(
        r"`((?:judge|graphs|rubrics|fixtures|bench|docs|tests)/[\w./-]*)", text
    ):
        assert (ROOT / target.rstrip(".")).exists(), f"{name}: {target}"


def test_every_decision_has_a_title_and_fits_a_page() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert pages
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        assert lines[0].startswith("# ") and len(lines) < 60, page.name
