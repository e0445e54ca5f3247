"""The small faults that bench/mutants.py puts into a function, each one change of its syntax tree.

A comparison, an operator, an operand, a number, a condition, a returned value, a raise.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: its place, the line of the innermost function around it, its description, and the
    changed source."""

    path: Path
    line: int
    function: int
    change: str
    source: str


def places(path: Path) -> int:
    """The number of mutants of a file."""
    return len(_places(ast.parse(path.read_text("utf-8"))))


def mutant(path: Path, number: int) -> Mutant:
    """One mutant of a file, numbered from 0."""
    tree = ast.parse(path.read_text("utf-8"))
    node, function, change = _places(tree)[number]
    said = change(node)
    return Mutant(path, node.lineno, function.lineno, said, ast.unparse(tree))


def functions(tree: ast.Module) -> list[Function]:
    """All functions of a file, inner ones after those that contain them."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _places(tree: ast.Module) -> list[tuple[Any, Function, Callable[[Any], str]]]:
    """The nodes of all functions that can be changed, each once, in the order of the file."""
    changes: dict[tuple[int, int], tuple[Any, Function, Callable[[Any], str]]] = {}
    for function in functions(tree):
        for node in (n for statement in function.body for n in ast.walk(statement)):
            for place, change in enumerate(_changes(node)):
                changes[id(node), place] = (node, function, change)
    return sorted(changes.values(), key=lambda found: (found[0].lineno, found[0].col_offset))


def _changes(node: ast.AST) -> list[Callable[[Any], str]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        return [_compare]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATED:
        return [_operate]
    if isinstance(node, ast.BoolOp):
        return [_connect, *(partial(_drop, place=place) for place in range(len(node.values)))]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [_negate]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [_number]
    if isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        return [_nothing]
    return [_silence] if isinstance(node, ast.Raise) else []


def _compare(node: ast.Compare) -> str:
    before = type(node.ops[0])
    node.ops[0] = _COMPARED[before]()
    return f"{before.__name__} -> {_COMPARED[before].__name__}"


def _operate(node: ast.BinOp) -> str:
    before = type(node.op)
    node.op = _OPERATED[before]()
    return f"{before.__name__} -> {_OPERATED[before].__name__}"


def _connect(node: ast.BoolOp) -> str:
    before = type(node.op).__name__
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return f"{before} -> {type(node.op).__name__}"


def _drop(node: ast.BoolOp, place: int) -> str:
    return f"operand dropped: {ast.unparse(node.values.pop(place))}"


def _negate(node: ast.If) -> str:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return "condition negated"


def _number(node: ast.Constant) -> str:
    before = node.value
    node.value = before + 1
    return f"{before} -> {node.value}"


def _nothing(node: ast.Return) -> str:
    other = None
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        other = not node.value.value  # None instead of False would be no fault.
    node.value = ast.Constant(other)
    return f"returns {other}"


def _silence(node: Any) -> str:
    node.__class__ = ast.Pass
    return "raise deleted"
