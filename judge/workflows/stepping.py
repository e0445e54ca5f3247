"""Runs a workflow's LangGraph graph.

LangGraph's own runtime costs as much as the calls of a record (docs/decisions/0010-stepping.md), so
the plain graphs of judge's own workflows are stepped through here, by their nodes, edges and
branches. LangGraph runs all others, and every graph while LangSmith's tracing or
JUDGE_LANGGRAPH_RUNTIME is on.
"""

from __future__ import annotations

import os
from typing import Any

from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START

from judge.langsmith import guarded, tracing

STEP_LIMIT = 1000
"""Nodes that one run may pass before it is stopped."""

OWN_RUNTIME = "JUDGE_LANGGRAPH_RUNTIME"
"""Environment variable that, when set, leaves every graph to LangGraph's runtime."""


class Stepper:
    """A compiled LangGraph graph, stepped through if it is `plain`.

    In a plain graph each node is an `async (state) -> None` function that changes the state's
    content in place, and has one edge or one branch behind it.
    """

    def __init__(self, graph: Any, plain: bool) -> None:
        self._graph = graph
        self.steps = plain and not (os.environ.get(OWN_RUNTIME) or tracing())
        if self.steps:
            builder = graph.builder
            self._nodes = {name: node.runnable.afunc for name, node in builder.nodes.items()}
            self._edges: dict[str, str] = dict(builder.edges)
            self._branches = {
                name: next(iter(behind.values())) for name, behind in builder.branches.items()
            }

    async def run(self, state: Any) -> None:
        """Take a state to the graph's end.

        Raises:
            GraphRecursionError: no end within `STEP_LIMIT` nodes.
        """
        if not self.steps:
            with guarded() as config:
                await self._graph.ainvoke(state, {**config, "recursion_limit": STEP_LIMIT})
            return
        name = self._next(START, state)
        for _ in range(STEP_LIMIT):
            if name == END:
                return
            await self._nodes[name](state)
            name = self._next(name, state)
        raise GraphRecursionError(f"no end within {STEP_LIMIT} steps")

    def _next(self, name: str, state: Any) -> str:
        branch = self._branches.get(name)
        if branch is None:
            return self._edges[name]
        node: str = branch.path.func(state)
        return branch.ends[node] if branch.ends else node
