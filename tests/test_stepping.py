"""Stepping gives what LangGraph's own runtime gives; what it cannot step, it leaves to it."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.graphs import norm, story
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy, Send, StreamWriter

from judge import stepping
from judge.stepping import OWN_RUNTIME, Stepper


class State(TypedDict, total=False):
    total: int
    seen: Annotated[list[str], operator.add]


def built(build: Callable[[Any], None], **compiled: Any) -> Any:
    builder = StateGraph(State, context_schema=int)
    build(builder)
    return builder.compile(**compiled)


def loop(builder: Any) -> None:
    """double -> plain -> double ... until the total reaches the context, then last."""

    async def double(state: State, runtime: Runtime[int]) -> State:
        await asyncio.sleep(0)
        return {"total": state["total"] * 2, "seen": [f"double {state['total']}"]}

    def plain(state: State) -> State | None:
        return {"seen": ["plain"]} if state["total"] % 3 else None

    def last(state: State, runtime: Runtime[int]) -> State:
        return {"seen": [f"last of {runtime.context}"]}

    def route(state: State, runtime: Runtime[int]) -> Literal["double", "enough"]:
        return "enough" if state["total"] >= runtime.context else "double"

    builder.add_node("double", double)
    builder.add_node("plain", plain)
    builder.add_node("last", last)
    builder.add_edge(START, "double")
    builder.add_edge("double", "plain")
    builder.add_conditional_edges("plain", route, {"double": "double", "enough": "last"})
    builder.add_edge("last", END)


@settings(max_examples=30, deadline=None)
@given(start=st.integers(1, 50), bound=st.integers(1, 500))
def test_stepping_ends_where_langgraph_ends(start: int, bound: int) -> None:
    graph = built(loop)
    begun: State = {"total": start, "seen": ["begun"]}

    async def both() -> tuple[Any, Any]:
        return await Stepper(graph).run(dict(begun), bound), await graph.ainvoke(
            begun, context=bound
        )

    stepped, invoked = asyncio.run(both())
    assert stepped == invoked
    assert begun == {"total": start, "seen": ["begun"]}, "the state given is left as it was"


@pytest.mark.parametrize("module", [norm, story])
def test_our_own_graphs_are_stepped_through(module: Any) -> None:
    assert Stepper(module.graph).steps


def side_by_side(builder: Any) -> None:
    loop(builder)
    builder.add_node("other", lambda state: {"seen": ["other"]})
    builder.add_edge("double", "other")


def with_retries(builder: Any) -> None:
    builder.add_node("only", lambda state: {}, retry_policy=RetryPolicy())
    builder.add_edge(START, "only")
    builder.add_edge("only", END)


def with_writer(builder: Any) -> None:
    def node(state: State, writer: StreamWriter) -> State:
        return {}

    builder.add_node("only", node)
    builder.add_edge(START, "only")
    builder.add_edge("only", END)


@pytest.mark.parametrize("build", [side_by_side, with_retries, with_writer])
async def test_other_graphs_are_left_to_langgraph(build: Callable[[Any], None]) -> None:
    graph = built(build)
    stepper = Stepper(graph)
    assert not stepper.steps
    begun: State = {"total": 5, "seen": []}
    assert await stepper.run(dict(begun), 8) == await graph.ainvoke(begun, context=8)


def test_a_graph_with_a_memory_is_left_to_langgraph() -> None:
    assert not Stepper(built(loop, checkpointer=InMemorySaver())).steps


@pytest.mark.parametrize("variable", [OWN_RUNTIME, "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_langgraph_runs_what_is_to_be_traced(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    graph = built(loop)
    assert Stepper(graph).steps
    monkeypatch.setenv(variable, "true")
    assert not Stepper(graph).steps


async def test_a_graph_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "STEP_LIMIT", 30)
    with pytest.raises(GraphRecursionError, match="30 steps"):
        await Stepper(built(loop)).run({"total": 0, "seen": []}, 1)


@pytest.mark.parametrize("made", [Command(goto=END), [Send("last", {})]])
async def test_what_only_langgraph_knows_is_said_and_not_guessed(made: Any) -> None:
    def odd(builder: Any) -> None:
        builder.add_node("only", lambda state: made if isinstance(made, Command) else {})
        builder.add_edge(START, "only")
        builder.add_node("last", lambda state: {})
        builder.add_edge("last", END)
        builder.add_conditional_edges("only", lambda state: made, ["last", END])

    with pytest.raises(TypeError, match=OWN_RUNTIME):
        await Stepper(built(odd)).run({"total": 0, "seen": []}, 1)
