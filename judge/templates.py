"""The templates of questions in rubrics and tasks: what they may hold, and how they render.

A rubric comes from anywhere, so its templates are held to a small part of Jinja: text, variables,
conditions, and filters that make a text no longer. Without loops, calls, attributes, arithmetic and
assignments no template can run code, run on, or grow beyond its own length and that of what it is
given. They are rendered in Jinja's sandbox all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from jinja2 import StrictUndefined, Template, TemplateError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST = 50_000
"""Characters that a question's template may have."""

FILTERS = frozenset({"capitalize", "lower", "title", "trim", "upper"})
"""Jinja's filters that a question may use."""

DEEPEST = 50
"""How deep conditions may be nested in one another."""

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
)
_TEXTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const)
_LISTS = (nodes.List, nodes.Tuple, nodes.Concat, nodes.Filter)
_CONDITIONS = (
    nodes.If,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
)
_ALLOWED = (*_TEXTS, *_LISTS, *_CONDITIONS)


@lru_cache(maxsize=512)
def template(source: str) -> Template:
    """A question's template; an unknown variable is an error when it is rendered.

    Raises:
        TemplateError: bad syntax. `fault` says so beforehand, and says more.
    """
    return _ENVIRONMENT.from_string(source)


@lru_cache(maxsize=512)
def variables_of(source: str) -> frozenset[str]:
    """The variables that a template without a `fault` holds."""
    return frozenset(meta.find_undeclared_variables(_ENVIRONMENT.parse(source)))


def fault(
    source: str, known: Collection[str], trials: Iterable[Mapping[str, str]] = ({},)
) -> str | None:
    """Why `source` cannot be the template of a question, or None.

    Args:
        known: the names of the variables that it will be given.
        trials: some of their values; it must render with each, all others being `x`.
    """
    if not source.strip():
        return "there is no question"
    if len(source) > LONGEST:
        return f"template: it has {len(source)} characters, more than {LONGEST}"
    try:
        parsed = _ENVIRONMENT.parse(source)
        if problem := _forbidden(parsed):
            return f"template: {problem}"
        if unknown := sorted(meta.find_undeclared_variables(parsed) - set(known)):
            return f"unknown variable {unknown[0]!r}; known are {', '.join(sorted(known))}"
        for trial in trials:
            template(source).render({**dict.fromkeys(known, "x"), **trial})
    except RecursionError:
        return "template: nested too deep"
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return f"template: {error}"
    return None


def _forbidden(node: nodes.Node, depth: int = 0) -> str | None:
    """What the node holds that a question may not, or None."""
    if depth > DEEPEST:
        return "nested too deep"
    if not isinstance(node, _ALLOWED):
        what = f"line {node.lineno} of it holds what a question may not ({type(node).__name__})"
        return f"{what}: it may hold variables and conditions"
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        return f"there is no filter {node.name!r}; there are {', '.join(sorted(FILTERS))}"
    found = (_forbidden(child, depth + 1) for child in node.iter_child_nodes())
    return next((problem for problem in found if problem), None)
