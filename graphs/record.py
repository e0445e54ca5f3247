"""record: questions of the user's own about records of any form (`--ask`, `--rubric`)."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from judge.workflow import State, Workflow


async def questions(state: State) -> None:
    """Every question, in the order in which the user names them."""
    await state["work"].additional()


_builder = StateGraph(State)
_builder.add_node("questions", questions)
_builder.add_edge(START, "questions")
_builder.add_edge("questions", END)
graph = _builder.compile(name="record")

workflow = Workflow(
    name="record",
    kind="record",
    title="Questions of your own about any record",
    graph=graph,
    plain=True,
    checks=(),
)
