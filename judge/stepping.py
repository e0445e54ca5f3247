"""Takes a state through a LangGraph graph, one node after the other.

LangGraph's own runtime schedules nodes that run side by side, writes checkpoints, streams and
traces. Our workflows take one record from node to node and need none of that, yet would pay for it
with every judgement (figures: docs/decisions/0010-stepping.md). So a graph whose nodes are plain
`async (state) -> None` functions with one way out each is stepped through here, by its own nodes,
edges and branches. LangGraph runs any other graph, and every graph while LangSmith's tracing or
JUDGE_LANGGRAPH_RUNTIME is on.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.channels.last_value import LastValue
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START

from judge.tracing import guard_tracing

STEP_LIMIT = 1000
"""Nodes that one run may pass before it is stopped."""

OWN_RUNTIME = "JUDGE_LANGGRAPH_RUNTIME"
"""Environment variable that leaves every graph to LangGraph's runtime when it is set."""

_Node = Callable[[Any], Awaitable[None]]
_Branch = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A graph's nodes by name, and what comes after each: a node, or a branch with its ends."""

    nodes: Mapping[str, _Node]
    after: Mapping[str, str | tuple[_Branch, Mapping[Any, str] | None]]

    def next(self, node: str, state: Any) -> str:
        way = self.after[node]
        if isinstance(way, str):
            return way
        branch, ends = way
        chosen = branch(state)
        if not isinstance(chosen, str):
            what = type(chosen).__name__
            raise TypeError(f"a branch after {node} gave {what}, not a node: set {OWN_RUNTIME}=1")
        return chosen if ends is None else ends[chosen]


class Stepper:
    """A compiled LangGraph graph, made ready to be stepped through where that is possible."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        left = os.environ.get(OWN_RUNTIME) or guard_tracing()
        self._plan = None if left else _plan(graph)

    @property
    def steps(self) -> bool:
        """Whether the graph is stepped through here; False where LangGraph's runtime runs it."""
        return self._plan is not None

    async def run(self, state: Any) -> None:
        """Take a state, whose content the nodes change in place, to the graph's end.

        Raises:
            GraphRecursionError: no end within `STEP_LIMIT` nodes.
        """
        plan = self._plan
        if plan is None:
            await self._graph.ainvoke(state, config={"recursion_limit": STEP_LIMIT})
            return
        node = plan.next(START, state)
        for _ in range(STEP_LIMIT):
            if node == END:
                return
            await plan.nodes[node](state)
            node = plan.next(node, state)
        raise GraphRecursionError(f"no end within {STEP_LIMIT} steps")


def _plan(graph: Any) -> _Plan | None:
    """None for a graph with anything in it that stepping does not know."""
    builder = graph.builder
    if builder.waiting_edges or graph.checkpointer is not None or graph.store is not None:
        return None
    if not all(isinstance(channel, LastValue) for channel in builder.channels.values()):
        return None
    nodes = {name: _node(spec) for name, spec in builder.nodes.items()}
    after = {name: _after(builder, name) for name in (START, *builder.nodes)}
    if not all(nodes.values()) or not all(after.values()):
        return None
    return _Plan({n: f for n, f in nodes.items() if f}, {n: way for n, way in after.items() if way})


def _node(spec: Any) -> _Node | None:
    policies = (spec.retry_policy, spec.cache_policy, spec.timeout)
    function = getattr(spec.runnable, "afunc", None)
    plain = all(policy is None for policy in policies) and not spec.ends and not spec.defer
    # What a node returns are writes for LangGraph's channels; stepping knows none.
    silent = inspect.iscoroutinefunction(function) and _returns(function) in (None, "None")
    return function if plain and silent and _alone(function) else None


def _after(builder: Any, name: str) -> str | tuple[_Branch, Mapping[Any, str] | None] | None:
    """The one way out of a node; None where it has none, or several."""
    edges = [end for start, end in builder.edges if start == name]
    branches = list(builder.branches.get(name, {}).values())
    if len(edges) == 1 and not branches:
        return str(edges[0])
    function = getattr(branches[0].path, "func", None) if len(branches) == 1 else None
    if edges or function is None or not _alone(function):
        return None
    return function, branches[0].ends


def _returns(function: Any) -> Any:
    return inspect.signature(function).return_annotation


def _alone(function: Any) -> bool:
    """Whether it takes the state and nothing besides."""
    return len(inspect.signature(function).parameters) == 1
