"""The documents say what the code does: every option, setting and rubric is in the reference."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from judge.cli import app

ROOT = Path(__file__).resolve().parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands(command: Any, path: str = "judge") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), f"{path} {name}")


def test_the_reference_is_what_the_code_says() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    assert read("docs/reference.md") == script["reference"](), "run python docs/make_reference.py"


def arguments(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The arguments of a function, or of what makes a class: its fields, if it is a dataclass."""
    if not isinstance(node, ast.ClassDef):
        return {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    targets = (part.target for part in node.body if isinstance(part, ast.AnnAssign))
    fields = {target.id for target in targets if isinstance(target, ast.Name)}
    makers = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return fields.union(*(arguments(part) for part in makers if part.name == "__init__"))


def test_docstrings_explain_arguments_that_are_there() -> None:
    for file in (*ROOT.glob("judge/**/*.py"), *ROOT.glob("graphs/*.py"), *ROOT.glob("bench/*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            text = (ast.get_docstring(node) or "").partition("Args:\n")[2].partition("\n\n")[0]
            named = ", ".join(re.findall(r"^ {4}(\w[\w, ]*):", text, re.MULTILINE))
            explained = {*filter(None, named.split(", "))}
            assert explained <= arguments(node), f"{file.name}: {node.name}"


def test_the_page_of_the_papers_counts_its_rows() -> None:
    steps = read("docs/papers.md").partition("## Step by step")[2].partition("\n## ")[0]
    first, *tables = re.findall(r"^\| ([^|]+) \|.*\n\|---.*\n((?:\|.*\n)+)", steps, re.M)
    counted = {
        row.split(" | ")[0].strip("| "): row.strip("|").split(" | ")[1:]
        for row in first[1].splitlines()
    }
    states = ("as in the paper", "differs", "missing")
    total = [0] * 4
    for paper, rows in tables:
        found = [row.split(" | ")[1] for row in rows.splitlines()]
        assert {*found} <= {*states}, paper
        counts = [len(found), *map(found.count, states)]
        assert [*map(int, counted[paper])] == counts, paper
        total = [a + b for a, b in zip(total, counts, strict=True)]
        reasons = [row.split(" | ")[2].strip("| ") for row in rows.splitlines()]
        assert all(why for why, state in zip(reasons, found, strict=True) if state != states[0])
    assert [*map(int, counted["all"])] == total and len(tables) == 5
    assert total[0] == 131 and total[3] <= 15


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
        named = re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)
        assert named
        for option in named:
            assert option in known | elsewhere, f"{name}: {option}"


PAGES = sorted(
    str(page.relative_to(ROOT)) for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)


@pytest.mark.parametrize("name", PAGES)
def test_links_and_paths_lead_somewhere(name: str) -> None:
    text, folder = read(name), (ROOT / name).parent
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (folder / target).exists(), f"{name}: {target}"
    rooms = "judge|graphs|rubrics|fixtures|bench|docs|tests"
    for target in re.findall(rf"`((?:{rooms})/[\w./-]*)(?![\w*])", text):
        assert (ROOT / target.rstrip(".")).exists(), f"{name}: {target}"


def test_every_decision_has_a_title_and_fits_a_page() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert pages
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        assert lines[0].startswith("# ") and len(lines) < 60, page.name
