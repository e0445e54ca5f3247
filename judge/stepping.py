"""Takes a state through a LangGraph graph, one node after the other.

LangGraph's own runtime schedules nodes that run side by side, writes checkpoints, streams and
traces. Our workflows take one record from node to node and need none of that, yet would pay 2 to
3 ms of CPU for it with every judgement (bench/throughput.py). So a graph whose every node has one
way out is stepped through here, by its own nodes, edges, branches and reducers; any other graph,
and every graph while LangSmith's tracing is on, is run by LangGraph
(docs/decisions/0010-stepping.md).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.last_value import LastValue
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START
from langgraph.runtime import Runtime

STEP_LIMIT = 1000
"""Nodes that one run may pass; a graph that goes on longer has lost its way."""

_TRACING = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
OWN_RUNTIME = "JUDGE_LANGGRAPH_RUNTIME"
"""Environment variable that leaves every graph to LangGraph's runtime when it is set."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A node or a branch: its function, whether it is awaited and whether it takes the runtime."""

    function: Callable[..., Any]
    awaited: bool
    informed: bool

    async def make(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> Any:
        made = self.function(state, runtime=runtime) if self.informed else self.function(state)
        return await made if self.awaited else made


class Stepper:
    """A compiled LangGraph graph, made ready to be stepped through where that is possible."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._plan = None if _left_to_langgraph() else _Plan.of(graph)

    @property
    def steps(self) -> bool:
        """Whether the graph is stepped through here; False where LangGraph's runtime runs it."""
        return self._plan is not None

    async def run(self, state: dict[str, Any], context: object) -> Mapping[str, Any]:
        """The state at the graph's end.

        The state that is given is changed from node to node where the graph is stepped through: if
        one fails, it tells how far the others came.

        Raises:
            GraphRecursionError: no end within `STEP_LIMIT` nodes.
        """
        if self._plan is None:
            config = {"recursion_limit": STEP_LIMIT}
            end: Mapping[str, Any] = await self._graph.ainvoke(
                state, context=context, config=config
            )
            return end
        return await self._plan.run(state, Runtime(context=context))


def _left_to_langgraph() -> bool:
    return bool(os.environ.get(OWN_RUNTIME)) or any(
        os.environ.get(name, "").lower() == "true" for name in _TRACING
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a graph says, by node: its move, and the node or the branch that comes after it."""

    moves: Mapping[str, _Move]
    after: Mapping[str, str | tuple[_Move, Mapping[Any, str] | None]]
    reducers: Mapping[str, Callable[[Any, Any], Any] | None]

    @classmethod
    def of(cls, graph: Any) -> _Plan | None:
        """None for a graph with anything in it that stepping does not know."""
        builder = graph.builder
        plain = not builder.waiting_edges and graph.checkpointer is None and graph.store is None
        moves = {name: _node(spec) for name, spec in builder.nodes.items()}
        after = {name: _after(builder, name) for name in (START, *builder.nodes)}
        channels = builder.channels.values()
        known = all(isinstance(c, (LastValue, BinaryOperatorAggregate)) for c in channels)
        if not (plain and known and all(moves.values()) and all(after.values())):
            return None
        return cls(
            {name: move for name, move in moves.items() if move},
            {name: way for name, way in after.items() if way},
            {name: getattr(c, "operator", None) for name, c in builder.channels.items()},
        )

    async def run(self, state: dict[str, Any], runtime: Runtime[Any]) -> Mapping[str, Any]:
        node = await self._next(START, state, runtime)
        for _ in range(STEP_LIMIT):
            if node == END:
                return state
            made = await self.moves[node].make(state, runtime) or {}
            if not isinstance(made, Mapping):
                raise _unknown(f"node {node} gave {type(made).__name__}")
            for name, value in made.items():
                reduce = self.reducers[name]
                state[name] = value if reduce is None else reduce(state[name], value)
            node = await self._next(node, state, runtime)
        raise GraphRecursionError(f"no end within {STEP_LIMIT} steps")

    async def _next(self, node: str, state: Mapping[str, Any], runtime: Runtime[Any]) -> str:
        way = self.after[node]
        if isinstance(way, str):
            return way
        branch, ends = way
        chosen = await branch.make(state, runtime)
        if not isinstance(chosen, str):
            raise _unknown(f"the branch behind {node} gave {type(chosen).__name__}")
        return chosen if ends is None else ends[chosen]


def _unknown(what: str) -> TypeError:
    return TypeError(f"{what}, which only LangGraph's own runtime knows: set {OWN_RUNTIME}=1")


def _node(spec: Any) -> _Move | None:
    bare = spec.retry_policy is None and spec.cache_policy is None and not spec.ends
    return _move(spec.runnable) if bare and not spec.defer and spec.timeout is None else None


def _move(runnable: Any) -> _Move | None:
    """The function behind a node or a branch, if it takes nothing but the state and the runtime."""
    own = getattr(runnable, "afunc", None)
    # LangGraph gives a plain function a second form that runs it in a thread.
    awaited = own is not None and not isinstance(own, partial)
    function = own if awaited else getattr(runnable, "func", None)
    if function is None:
        return None
    names = list(inspect.signature(function).parameters)[1:]
    return _Move(function, awaited, bool(names)) if names in ([], ["runtime"]) else None


def _after(builder: Any, name: str) -> str | tuple[_Move, Mapping[Any, str] | None] | None:
    """The one way out of a node; None where it has none, or several."""
    edges = [end for start, end in builder.edges if start == name]
    branches = list(builder.branches.get(name, {}).values())
    if len(edges) == 1 and not branches:
        return str(edges[0])
    if edges or len(branches) != 1:
        return None
    move = _move(branches[0].path)
    return None if move is None else (move, branches[0].ends)
