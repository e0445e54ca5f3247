"""Stepping gives what LangGraph's own runtime gives; what it cannot step, it leaves to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.graphs import extraction, norm, story
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

from judge import stepping
from judge.stepping import OWN_RUNTIME, Stepper


class Seen:
    def __init__(self, total: int, bound: int) -> None:
        self.total, self.bound, self.nodes = total, bound, list[str]()


class State(TypedDict):
    seen: Seen


async def double(state: State) -> None:
    await asyncio.sleep(0)
    state["seen"].total *= 2
    state["seen"].nodes.append(f"double {state['seen'].total}")


async def last(state: State) -> None:
    state["seen"].nodes.append("last")


def route(state: State) -> Literal["double", "enough"]:
    return "enough" if state["seen"].total >= state["seen"].bound else "double"


def loop(builder: Any) -> None:
    """double ... until the total reaches the bound, then last."""
    builder.add_node("double", double)
    builder.add_node("last", last)
    builder.add_edge(START, "double")
    builder.add_conditional_edges("double", route, {"double": "double", "enough": "last"})
    builder.add_edge("last", END)


def built(build: Callable[[Any], None], **compiled: Any) -> Any:
    builder = StateGraph(State)
    build(builder)
    return builder.compile(**compiled)


@settings(max_examples=30, deadline=None)
@given(start=st.integers(1, 50), bound=st.integers(1, 500))
def test_stepping_goes_where_langgraph_goes(start: int, bound: int) -> None:
    graph, stepped, invoked = built(loop), Seen(start, bound), Seen(start, bound)

    async def both() -> None:
        await Stepper(graph).run(State(seen=stepped))
        await graph.ainvoke(State(seen=invoked))

    asyncio.run(both())
    assert stepped.nodes == invoked.nodes and stepped.total == invoked.total


@pytest.mark.parametrize("module", [extraction, norm, story])
def test_our_own_graphs_are_stepped_through(module: Any) -> None:
    """An upgrade of LangGraph that keeps them from it shows here."""
    assert Stepper(module.graph).steps


def side_by_side(builder: Any) -> None:
    loop(builder)
    builder.add_node("other", last)
    builder.add_edge("double", "other")


def with_retries(builder: Any) -> None:
    builder.add_node("only", last, retry_policy=RetryPolicy())
    builder.add_edge(START, "only")
    builder.add_edge("only", END)


def with_writes(builder: Any) -> None:
    async def only(state: State) -> State:
        await last(state)
        return state

    builder.add_node("only", only)
    builder.add_edge(START, "only")
    builder.add_edge("only", END)


@pytest.mark.parametrize(
    ("build", "compiled"),
    [
        (side_by_side, {}),
        (with_retries, {}),
        (with_writes, {}),
        (loop, {"checkpointer": InMemorySaver()}),
    ],
)
async def test_other_graphs_are_left_to_langgraph(build: Any, compiled: dict[str, Any]) -> None:
    assert not Stepper(built(build, **compiled)).steps
    seen = Seen(5, 8)
    await Stepper(built(build)).run(State(seen=seen))
    assert seen.nodes[-1] == "last"


def test_langgraph_runs_what_the_user_leaves_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = built(loop)
    assert Stepper(graph).steps
    monkeypatch.setenv(OWN_RUNTIME, "1")
    assert not Stepper(graph).steps


async def test_a_graph_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "STEP_LIMIT", 30)
    with pytest.raises(GraphRecursionError, match="30 steps"):
        await Stepper(built(loop)).run(State(seen=Seen(0, 1)))
