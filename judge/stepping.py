"""Runs a LangGraph graph, node by node.

LangGraph's own runtime costs as much as the calls of a record (docs/decisions/0010-stepping.md). A
graph whose nodes are plain `async (state) -> None` functions with one way out each is stepped
through here, by its own nodes, edges and branches. LangGraph runs any other graph, and every graph
while LangSmith's tracing or JUDGE_LANGGRAPH_RUNTIME is on.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
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
_Way = str | tuple[Callable[[Any], str], Mapping[Any, str] | None]
"""What comes after a node: another one, or a branch with its ends."""


class Stepper:
    """A compiled LangGraph graph, made ready to be stepped through where that is possible.

    `steps` tells whether it is; else LangGraph's runtime runs it.
    """

    def __init__(self, graph: Any) -> None:
        self._graph, builder = graph, graph.builder
        self._nodes = {name: _node(spec) for name, spec in builder.nodes.items()}
        self._ways = {name: _way(builder, name) for name in (START, *builder.nodes)}
        plain = all(isinstance(channel, LastValue) for channel in builder.channels.values())
        parts = (builder.waiting_edges, graph.checkpointer, graph.store)
        known = all(self._nodes.values()) and all(self._ways.values())
        left = os.environ.get(OWN_RUNTIME) or guard_tracing()
        self.steps = plain and known and not any(parts) and not left

    async def run(self, state: Any) -> None:
        """Take a state, whose content the nodes change in place, to the graph's end.

        Raises:
            GraphRecursionError: no end within `STEP_LIMIT` nodes.
        """
        if not self.steps:
            await self._graph.ainvoke(state, config={"recursion_limit": STEP_LIMIT})
            return
        name = self._next(START, state)
        for _ in range(STEP_LIMIT):
            if name == END:
                return
            node = self._nodes[name]
            assert node is not None
            await node(state)
            name = self._next(name, state)
        raise GraphRecursionError(f"no end within {STEP_LIMIT} steps")

    def _next(self, name: str, state: Any) -> str:
        way = self._ways[name]
        assert way is not None
        if isinstance(way, str):
            return way
        branch, ends = way
        chosen = branch(state)
        if not isinstance(chosen, str):
            what = type(chosen).__name__
            raise TypeError(f"a branch after {name} gave {what}, not a node: set {OWN_RUNTIME}=1")
        return chosen if ends is None else ends[chosen]


def _node(spec: Any) -> _Node | None:
    """The function of a node; None where there is more to it."""
    function = getattr(spec.runnable, "afunc", None)
    more = (spec.retry_policy, spec.cache_policy, spec.timeout, spec.ends, spec.defer)
    if any(more) or not inspect.iscoroutinefunction(function) or not _alone(function):
        return None
    # What a node returns are writes for LangGraph's channels; stepping knows none.
    silent = inspect.signature(function).return_annotation in (None, "None")
    return function if silent else None


def _way(builder: Any, name: str) -> _Way | None:
    """The one way out of a node; None where it has none, or several."""
    edges = [end for start, end in builder.edges if start == name]
    branches = list(builder.branches.get(name, {}).values())
    if len(edges) + len(branches) != 1:
        return None
    if edges:
        return str(edges[0])
    function = getattr(branches[0].path, "func", None)
    return (function, branches[0].ends) if function and _alone(function) else None


def _alone(function: Any) -> bool:
    """Whether it takes the state and nothing besides."""
    return len(inspect.signature(function).parameters) == 1
