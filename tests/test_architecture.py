"""The allowed imports between packages, and the modules that a start of the command line loads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from house_sources import PAPER_WORDS, Tree  # noqa: E402

SOURCES = sorted([*(ROOT / "judge").rglob("*.py"), *(ROOT / "graphs").glob("*.py")])

LAYERS = (
    "papers local cluster",
    "generate",
    "cli testing",
    "api",
    "results measuring",
    "web",
    "report",
    "calibration",
    "arguments",
    "run",
    "graphs",
    "workflows profile",
    "judging",
    "backends",
    "questions configuration",
    "reasons cache settings records stats",
    "judgement options",
    "model_tables",
    "verdict",
    "errors redact digest langsmith locking plugins problems traces version voting yamlfile",
)
"""Rooms, and files beside them, from the top: each imports only from layers below its own. Those of
the last layer, which all rooms use, may import one another."""

LAYER = {name: place for place, names in enumerate(LAYERS) for name in names.split()}


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("judge", *parts) if parts[0] == "graphs" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in SOURCES}


@cache
def tree() -> Tree:
    return Tree(ROOT)


@cache
def imports(name: str) -> set[str]:
    """The modules of ours that a module imports, also inside of functions, for other reasons than
    type checking."""
    path = MODULES[name]
    parts = name.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    found: set[str] = set()
    for node in _executed(tree().trees[str(path.relative_to(ROOT))]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return found & MODULES.keys()


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from _executed(ast.Module(child.orelse, []))
        else:
            yield child
            yield from _executed(child)


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_imports_go_down_the_layers_only() -> None:
    last = len(LAYERS) - 1
    wrong = [
        f"{name} imports {other}"
        for name in MODULES
        for other in imports(name)
        if room(name) not in ("", "__main__", room(other)) and room(other)
        if LAYER[room(other)] <= LAYER[room(name)] and LAYER[room(name)] != last
    ]
    assert wrong == []


def test_the_command_line_goes_through_the_api() -> None:
    wrong = [
        f"{name} imports {other}"
        for name in MODULES
        for other in imports(name)
        if room(name) == "cli" and room(other) in ("run", "judging", "calibration")
    ]
    assert wrong == []


def test_the_core_reaches_papers_local_models_and_the_cluster_by_entry_points_only() -> None:
    """Nor does it import graphs/: entry points in pyproject.toml name what is loaded."""
    reached = re.compile(r"\bjudge[./](?:papers|local|cluster|graphs)\b")
    outside = ("papers", "local", "cluster", "graphs")
    core = {name: path.read_text("utf-8") for name, path in MODULES.items()}
    assert [n for n, text in core.items() if room(n) not in outside and reached.search(text)] == []


def test_the_core_names_no_paper() -> None:
    core = {path: text for path, text in tree().texts.items() if tree().part(path) == "core"}
    places = {
        f"{path}: {word}" for path, text in core.items() for word in PAPER_WORDS.findall(text)
    }
    assert sorted(places) == []


def test_a_type_name_stands_once() -> None:
    assert list(tree().type_names()) == []


def test_no_files_import_one_another_in_a_circle() -> None:
    """Imports inside of functions included."""
    assert tree().circles() == []


def test_every_room_is_installed() -> None:
    """An editable install, as of the tests, has rooms that a built package may lack."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    rooms = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert sorted(rooms ^ {*listed}) == ["judge.rubrics"]


def test_one_function_makes_every_digest() -> None:
    users = [
        str(path.relative_to(ROOT)) for path in SOURCES if "blake2b" in path.read_text("utf-8")
    ]
    assert users == ["judge/digest.py"]


def test_the_architecture_names_every_room_and_file_and_what_it_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    rooms = {f"judge/{p.parent.name}/" for p in (ROOT / "judge").glob("*/__init__.py")}
    files = {f"judge/{p.name}" for p in (ROOT / "judge").glob("*.py") if "__" not in p.name}
    assert sorted((rooms | files) - named) == []


def loaded_by(folder: Path, replies: Sequence[object], words: tuple[str, ...]) -> set[str]:
    """The libraries that a run loads, whose record passes."""
    (folder / "n.jsonl").write_text('{"rule_of_thumb": "Greet.", "story": "He greets."}\n')
    (folder / "yes.yaml").write_text(json.dumps({"replies": replies}))
    program = (
        "import sys\nfrom judge.cli import main\n"
        "sys.argv = 'judge validate n.jsonl -m scripted:yes.yaml --no-cache -q'.split()\n"
        f"sys.argv += {words!r}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder
    )
    assert json.loads(done.stdout)["judge"]["verdict"] == "pass", done
    return {*done.stderr.split()}


YES = {"quote": "He greets.", "reason": "He does.", "answer": "yes"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "graphs"),
    [
        (("--check", "relevance"), True),
        (("--ask", "Is this about greeting?"), False),
        (("--rubric", "polite", "--map", "text=story"), False),
    ],
)
def test_a_run_loads_no_library_that_it_does_not_need(
    tmp_path: Path, words: tuple[str, ...], graphs: bool
) -> None:
    loaded = loaded_by(tmp_path, [{"reply": YES}], words)
    assert ("langgraph" in loaded) is graphs
    unwanted = "instructor openai langchain_openai aiohttp pyarrow numpy ray torch"
    # LangGraph's langsmith looks whether it is there.
    unwanted += "" if graphs else " opentelemetry"
    assert sorted({*unwanted.split()} & loaded) == []


@pytest.mark.slow
def test_a_reply_that_is_asked_again_loads_no_other_provider(tmp_path: Path) -> None:
    """instructor loads anthropic for three seconds, unless replies say how long they are."""
    pytest.importorskip("anthropic")
    replies = [{"reply": {**YES, "answer": "perhaps"}, "times": 1}, {"reply": YES}]
    loaded = loaded_by(tmp_path, replies, ("--ask", "Is this about greeting?"))
    assert "instructor" in loaded and "anthropic" not in loaded


HEAVY = """
    openai langgraph langchain langchain_core langchain_openai langchain_community
    xllamacpp torch transformers ray matplotlib scipy pyarrow numpy
"""


def test_help_needs_no_heavy_library() -> None:
    program = (
        "import sys\nfrom judge.cli import main\nsys.argv = ['judge', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stderr.split()
    assert "typer" in loaded
    assert sorted({*HEAVY.split(), "pydantic", "yaml"} & set(loaded)) == []
