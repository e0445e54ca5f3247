"""The arrows between the rooms, and what a start of the command line may load."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*(ROOT / "judge").rglob("*.py"), *(ROOT / "graphs").glob("*.py")])

WORDS = {
    "plugins",
    "errors",
    "digest",
    "evidence",
    "locking",
    "masking",
    "subject",
    "verdict",
    "rubric",
    "prompts",
    "rubricparts",
    "task",
    "printable",
    "templates",
    "yamlplaces",
}
"""Modules that rooms share; they may use one another, and of the rooms only what ALSO grants."""

DOWN = {
    "cli": {
        "audit",
        "calibration",
        "evaluation",
        "run",
        "profiles",
        "graphs",
        "judging",
        "backends",
        "cache",
        "replies",
        "records",
        "report",
        "serving",
        "stats",
    },
    "audit": {"evaluation", "run", "judging", "records", "stats"},
    "calibration": {"run", "profiles", "judging", "records", "stats"},
    "evaluation": {"run", "judging", "backends", "replies", "records", "stats"},
    "run": {
        "profiles",
        "graphs",
        "workflow",
        "judging",
        "backends",
        "cache",
        "replies",
        "records",
        "stats",
    },
    "profiles": {"judging", "backends"},
    "graphs": {"workflow", "stepping", "judging", "replies", "rewrites"},
    "workflow": {"stepping", "judging"},
    "stepping": set(),
    "judging": {"backends", "cache", "replies", "rewrites"},
    "backends": {"inference", "serving"},
    "inference": set(),
    "serving": set(),
    "cache": set(),
    "replies": set(),
    "rewrites": {"replies"},
    "records": set(),
    "stats": set(),
    "report": {"run", "records", "stats"},
    "weights": set(),
    "settings": set(),
}
"""cli -> run -> graphs -> judging -> backends, cache -> replies, records."""

ALSO = {
    ("cli", "settings"): "flags become settings",
    ("cli", "weights"): "`judge models` pulls them",
    ("run", "settings"): "a run is set up from them",
    ("run", "weights"): "the default judge is named in the catalog",
    ("backends", "weights"): "the local engine loads a file",
    ("serving", "weights"): "llama.cpp's server loads a file",
    ("stats", "weights"): "the sentence encoder loads a file",
    ("audit", "settings"): "an audit is set up from them",
    ("evaluation", "settings"): "an evaluation is set up from them",
    ("task", "backends"): "as prompts",
    ("prompts", "backends"): "messages are made in the form that backends take (base.py)",
}
"""Arrows beyond the chain, each with its reason."""


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0] if parts[0] == "graphs" else parts[1]


def imports(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in it; not those for type checking only."""
    own = path.relative_to(ROOT).with_suffix("").parts
    package = ("judge", *own[:-1]) if own[0] == "graphs" else own[:-1]
    for node in _executed(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "judge")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "judge":
                yield from (f"judge.{alias.name}" for alias in node.names)
            elif module.split(".")[0] == "judge":
                yield module


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from _executed(ast.Module(child.orelse, []))
        else:
            yield child
            yield from _executed(child)


def arrows() -> set[tuple[str, str]]:
    found = set()
    for path in SOURCES:
        for module in imports(path):
            names = module.split(".")
            if len(names) > 1 and not names[1].startswith("__"):
                found.add((room(path), names[1]))
    return {(a, b) for a, b in found if a != b}


def test_imports_go_along_the_arrows_only() -> None:
    entrances = {"__main__", "__init__"}
    wrong = {
        (a, b)
        for a, b in arrows()
        if a not in entrances
        and b not in WORDS
        and b not in DOWN.get(a, set())
        and (a, b) not in ALSO
    }
    assert not wrong


def test_shared_words_rest_on_words_only() -> None:
    wrong = {(a, b) for a, b in arrows() if a in WORDS and b not in WORDS and (a, b) not in ALSO}
    assert not wrong


def test_statistics_stand_by_themselves() -> None:
    assert {b for a, b in arrows() if a == "stats"} <= {"errors", "weights"}


def test_an_arrow_that_is_granted_is_there() -> None:
    assert set(ALSO) <= arrows()


def test_the_check_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    text = (
        "import typing\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from judge.cli import app\nelse:\n    import judge.cache\n"
        "def f():\n    from . import pipeline\n    from judge import errors\n"
    )
    path = ROOT / "judge" / "run" / "made_up.py"
    original = Path.read_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Path, "read_text", lambda self, *a: text if self == path else original(self, *a)
        )
        assert sorted(imports(path)) == ["judge.cache", "judge.errors", "judge.run"]


def test_every_room_that_the_architecture_names_is_there() -> None:
    page = ROOT / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("ARCHITECTURE.md is not there")
    text = page.read_text("utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)(?::\w+)?`", text))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    rooms = {f"judge/{path.name}/" for path in (ROOT / "judge").iterdir() if _is_room(path)}
    assert rooms <= named


def _is_room(path: Path) -> bool:
    return path.is_dir() and (path / "__init__.py").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


HEAVY = (
    "openai",
    "langgraph",
    "langchain",
    "langchain_core",
    "langchain_openai",
    "langchain_community",
    "instructor",
    "pydantic",
    "xllamacpp",
    "torch",
    "transformers",
    "ray",
    "matplotlib",
    "scipy",
    "pyarrow",
    "numpy",
)


def test_the_command_line_starts_without_heavy_libraries() -> None:
    program = "import judge.cli, sys; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert "typer" in loaded
    assert sorted(set(HEAVY) & set(loaded)) == []


def test_a_run_whose_replies_are_valid_starts_without_instructor_and_openai(
    tmp_path: Path,
) -> None:
    (tmp_path / "n.jsonl").write_text('{"rule_of_thumb": "Greet.", "story": "He greets."}\n')
    reply = {"quote": "He greets.", "reason": "He does.", "answer": "yes"}
    (tmp_path / "yes.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))
    program = (
        "import sys\nfrom judge.cli import main\n"
        "sys.argv = 'judge validate n.jsonl -m scripted:yes.yaml --no-cache -q'.split()\n"
        "sys.argv += ['--check', 'relevance']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout)["judge"]["verdict"] == "pass", done
    loaded = done.stderr.split()
    assert "langgraph" in loaded
    unwanted = {
        "instructor",
        "openai",
        "langchain_openai",
        "aiohttp",
        "pyarrow",
        "numpy",
        "ray",
        "torch",
    }
    assert sorted(unwanted & set(loaded)) == []


def test_help_needs_no_heavy_library_either() -> None:
    program = (
        "import sys\nfrom judge.cli import main\nsys.argv = ['judge', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stderr.split()
    assert sorted(set(HEAVY) & set(loaded)) == []
