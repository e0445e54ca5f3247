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
from judge.errors import Exit

ROOT = Path(__file__).resolve().parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands(command: Any, path: str = "judge") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), f"{path} {name}")


def test_the_reference_is_what_the_code_says() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    for page, text in script["pages"]().items():
        assert read(f"docs/reference/{page}") == text, "run python docs/make_reference.py"


def arguments(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The arguments of a function, or of what makes a class: its fields, if it is a dataclass."""
    if not isinstance(node, ast.ClassDef):
        return {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    targets = (part.target for part in node.body if isinstance(part, ast.AnnAssign))
    fields = {target.id for target in targets if isinstance(target, ast.Name)}
    makers = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return fields.union(*(arguments(part) for part in makers if part.name == "__init__"))


def test_the_table_of_exit_codes_has_each() -> None:
    text = read("docs/reference/output.md").partition("## Exit codes")[2]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.M)] == sorted(Exit)


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
    steps = read("docs/papers/protocols.md").partition("## Step by step")[2].partition("\n## ")[0]
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


PAGES = {page.relative_to(ROOT): page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}
PLAIN = {
    name: re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8")) for name, page in PAGES.items()
}


def anchors(name: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"(?m)^#+ (.*)", PLAIN[name])
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", sorted(PAGES), ids=str)
def test_links_and_paths_lead_somewhere(name: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", PLAIN[name]):
        file = (ROOT / name.parent / target).resolve() if target else ROOT / name
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.relative_to(ROOT)), f"{target}#{anchor}"
    rooms = "judge|graphs|rubrics|fixtures|bench|docs|tests"
    for target in re.findall(rf"`((?:{rooms})/[\w./-]*)(?![\w*])", read(str(name))):
        assert (ROOT / target.rstrip(".")).exists(), target


KNOWN = dict(commands(typer.main.get_command(app)))
TYPED = re.compile(r"(?:^|[`|] ?|[A-Z_]+=\S+ )judge ([a-z][^`\n|]*)", re.M)


@pytest.mark.parametrize("name", sorted(PAGES), ids=str)
def test_commands_and_their_options_exist(name: Path) -> None:
    """Also those that no test runs, for want of a GPU, a network or Docker."""
    if name.stem in ("CHANGELOG", "compare"):
        return  # of what was, and of other tools
    for line in TYPED.findall(read(str(name)).replace("\\\n", " ")):
        words = line.split(" # ")[0].split()
        path = next((p for n in (2, 1) if (p := " ".join(["judge", *words[:n]])) in KNOWN), None)
        if path is not None:
            known = {o for p in KNOWN[path].params for o in (*p.opts, *p.secondary_opts)}
            assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)} <= known | {
                "--help",
                "--help-all",
            }, line


WRAPPED = sorted(name for name in PAGES if name.parts[0] in ("docs", "README.md"))


@pytest.mark.parametrize("name", WRAPPED, ids=str)
def test_lines_fit_120_columns(name: Path) -> None:
    """But for tables, code, headings and pictures, and for pages that a script writes."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", read(str(name)))
    lines = [line for line in text.splitlines() if len(line) > 120]
    long = [line for line in lines if line[0] not in "|#![" and line[:4].strip()]
    assert not long or "Made by docs/make_" in text or name.stem == "calibration"


def test_every_decision_has_a_title_and_fits_a_page() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert pages
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        assert lines[0].startswith("# ") and len(lines) < 60, page.name
