"""The sources of a checkout, parsed and counted for bench/house.py."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

_WORDS = """
    told found known asked own made given said wanted left kept shown taken seen done named held
    meant read written heard sent brought spoken chosen drawn lost gone put set_aside judged
    answered called wanting telling bearing saying asking waiting missing going coming being
    having standing listed counted looked used needed added passed refused dropped started ended
    opened closed waited believed learnt taught hidden shared marked picked tried
    one other others another each every both any some none all it its they them this that these
    those what which who whom whose such same rest more
"""
PARTICIPLES = frozenset(_WORDS.split())
"""Participles and pronouns, which stand for a thing without naming it."""

PAPER_WORDS = re.compile(
    r"(?<![a-z])(?:cq-?bench|normad|cali|eecc|culturalbench)(?![a-z])"
    r"|\b(?:stor(?:y|ies)|rules?[_ -]of[_ -]thumb|per_value|per_number|norms?)\b",
    re.IGNORECASE,
)

NO_LINES = frozenset(
    (
        "judge/records/labels/forms.py:_fastchat_pair",  # a column of FastChat's: the model's name
        "judge/records/labels/forms.py:_fastchat_single",
        "judge/options.py:_columns",  # a name that a user gives a column
    )
)
"""Functions that look up the key "judge" in something other than an output line."""

OUTSIDE = {
    "papers": (
        "judge/papers/",
        "judge/evaluation/",
        "judge/audit/",
        "judge/cli/evaluate.py",
        "judge/cli/score.py",
        "judge/cli/build.py",
        "judge/cli/audit.py",
    ),
    "local": (
        "judge/local/",
        "judge/weights/",
        "judge/backends/local.py",
        "judge/backends/transformers.py",
        "judge/backends/torch_model.py",
    ),
    "cluster": ("judge/cluster/", "judge/run/ray"),
    "graphs": ("graphs/",),
}
"""Beginnings of the paths of each part outside the core, also of paths before a move."""


class Tree:
    """The sources of one checkout, parsed."""

    def __init__(self, root: Path) -> None:
        paths = sorted([*(root / "judge").rglob("*.py"), *(root / "graphs").glob("*.py")])
        self.root = root
        self.texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in paths}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def part(self, path: str) -> str:
        """papers, local, cluster, graphs or core."""
        return next((part for part, begins in OUTSIDE.items() if path.startswith(begins)), "core")

    def lines(self, *parts: str) -> tuple[int, int]:
        """Lines and files of these parts."""
        counts = [text.count("\n") for path, text in self.texts.items() if self.part(path) in parts]
        return sum(counts), len(counts)

    def type_names(self) -> list[str]:
        """Names of types that are bound in more than one place, with their files."""
        places: dict[str, list[str]] = defaultdict(list)
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if name := _type_name(node):
                    places[name].append(path)
        return [f"{name}: {', '.join(at)}" for name, at in sorted(places.items()) if len(at) > 1]

    def variables(self) -> tuple[float, Counter[str]]:
        """The share of variables named by a participle or a pronoun, and which."""
        names = [name for tree in self.trees.values() for name in _bindings(tree)]
        bad = Counter(name for name in names if name.lstrip("_") in PARTICIPLES)
        return bad.total() / len(names), bad

    def line_readers(self) -> list[str]:
        """`file:function` of every place that looks up the output line's key."""
        constants = {
            node.targets[0].id
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if isinstance(node.value, ast.Constant) and node.value.value == "judge"
        }
        found = set()
        for path, tree in self.trees.items():
            for name, node in _by_function(tree):
                if any(_is_key(key, constants) for key in _lookups(node)):
                    found.add(f"{path}:{name}")
        return sorted(found - NO_LINES)

    def papers(self) -> Counter[str]:
        """Mentions of the papers in each file of the core."""
        core = {path: text for path, text in self.texts.items() if self.part(path) == "core"}
        found = {path: len(PAPER_WORDS.findall(text)) for path, text in core.items()}
        return Counter({path: count for path, count in found.items() if count})

    def circles(self) -> list[str]:
        """Groups of modules that import one another; imports inside functions count."""
        needs = {_module(path): self._imports(path) for path in self.trees}
        groups, reach = set(), {name: _reachable(name, needs) for name in needs}
        for name in needs:
            group = {other for other in reach[name] if name in reach[other]}
            if group:
                groups.add(" ".join(sorted(group | {name})))
        return sorted(groups)

    def _imports(self, path: str) -> set[str]:
        modules = {_module(other) for other in self.trees}
        package = _module(path).split(".")
        package = package if path.endswith("__init__.py") else package[:-1]
        found: set[str] = set()
        for node in _executed(self.trees[path]):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                names = {f"{source}.{alias.name}" for alias in node.names}
                found |= names & modules or {source}
        return found & modules - {_module(path)}


def _module(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    parts = ("judge", *parts) if parts[0] == "graphs" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without those under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _executed(child)


def _reachable(start: str, needs: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    queue = [start]
    while queue:
        queue += (new := needs[queue.pop()] - seen)
        seen |= new
    return seen


def _type_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.ClassDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id if "TypeAlias" in ast.dump(node.annotation) else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name, value = node.targets[0].id, node.value
        if re.fullmatch(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name) is None:
            return None
        union = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
        generic = isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant)
        return name if union or generic or _called(value) in ("NamedTuple", "namedtuple") else None
    return None


def _called(node: ast.AST) -> str | None:
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else None


def _bindings(tree: ast.AST) -> Iterator[str]:
    """The names that each scope binds, once for each scope."""
    scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    names: set[str] = set()

    def visit(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.arg):
                names.add(child.arg)
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.add(child.id)
            if isinstance(child, scopes):
                yield from _bindings(child)
            else:
                yield from visit(child)

    inner = list(visit(tree))
    yield from names - {"self", "cls"}
    yield from inner


def _by_function(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the name of the function or class that it is in."""
    for child in ast.iter_child_nodes(tree):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inside = f"{name}.{child.name}".lstrip(".") if named else name  # type: ignore[attr-defined]
        yield inside, child
        yield from _by_function(child, inside)


def _lookups(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Subscript):
        yield node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("get", "pop") and node.args:
            yield node.args[0]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield node.left


def _is_key(node: ast.AST, constants: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == "judge"
    return isinstance(node, ast.Name) and node.id in constants
