"""Templates of questions in rubrics and tasks: their validation and rendering.

A rubric may come from anyone, so templates are limited to a small part of Jinja: text, variables,
conditions, and filters that never lengthen a text. Without loops, calls, attributes, arithmetic and
assignments, no template can run code, run forever, or grow beyond its own length and that of its
variables. Templates are still rendered in Jinja's sandbox.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template, nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_LENGTH = 50_000
"""Most characters of a question's template."""

FILTERS = frozenset({"capitalize", "lower", "title", "trim", "upper"})
"""Jinja filters that a question may use."""

MAX_DEPTH = 50
"""Deepest nesting of a template's syntax tree."""


def _is_plain(source: str) -> bool:
    """Whether it needs no rendering, as most of --ask. Loading Jinja takes 40 ms."""
    return "{" not in source and "\r" not in source


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )


def render(source: str, variables: Mapping[str, str]) -> str:
    """Renders a question's text.

    Raises:
        TemplateError: bad syntax, or an unknown variable. `fault` finds these beforehand, and more.
    """
    if _is_plain(source):
        return source.removesuffix("\n")
    return _template(source).render(variables)


@lru_cache(maxsize=512)
def _template(source: str) -> Template:
    return _environment().from_string(source)


@lru_cache(maxsize=512)
def variables_of(source: str) -> frozenset[str]:
    """The variables in a template that has no `fault`."""
    if _is_plain(source):
        return frozenset()
    from jinja2 import meta

    return frozenset(meta.find_undeclared_variables(_environment().parse(source)))


def fault(
    source: str, names: Collection[str], trials: Iterable[Mapping[str, str]] = ({},)
) -> str | None:
    """Why `source` cannot be a question's template, or None.

    Args:
        names: the variables that will be passed.
        trials: example values. The template must render with each; other variables are `x`.
    """
    if not source.strip():
        return "the question is empty"
    if len(source) > MAX_LENGTH:
        return f"template: it has {len(source)} characters, more than {MAX_LENGTH}"
    return None if _is_plain(source) else _syntax_fault(source, names, trials)


def _syntax_fault(
    source: str, names: Collection[str], trials: Iterable[Mapping[str, str]]
) -> str | None:
    from jinja2 import TemplateError

    try:
        if problem := _forbidden(_environment().parse(source)):
            return f"template: {problem}"
        if unknown := sorted(variables_of(source) - set(names)):
            known = f"known are {', '.join(sorted(names))}; name a field of the record in needs"
            return f"unknown variable {unknown[0]!r}; {known if names else 'none is known here'}"
        for trial in trials:
            render(source, {**dict.fromkeys(names, "x"), **trial})
    except RecursionError:
        return "template: nested too deep"
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return f"template: {error}"
    return None


@cache
def _allowed() -> tuple[type[nodes.Node], ...]:
    from jinja2 import nodes

    texts = nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const
    lists = nodes.List, nodes.Tuple, nodes.Concat, nodes.Filter
    logic = nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not
    return (*texts, *lists, *logic)


def _forbidden(node: nodes.Node, depth: int = 0) -> str | None:
    """The first thing in the node that a question must not contain, or None."""
    from jinja2 import nodes

    if depth > MAX_DEPTH:
        return "nested too deep"
    if not isinstance(node, _allowed()):
        problem = f"line {node.lineno}: {type(node).__name__} is not allowed in a question"
        return f"{problem}; use variables and conditions"
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        return f"unknown filter {node.name!r}; known are {', '.join(sorted(FILTERS))}"
    problems = (_forbidden(child, depth + 1) for child in node.iter_child_nodes())
    return next((problem for problem in problems if problem), None)
