"""Own workflow: only a situation that is about its rule of thumb is asked for politeness.

judge validate situations.jsonl --workflow ../workflow.py:workflow --rubric polite.yaml
"""

from langgraph.graph import END, START, StateGraph

from judge.workflows import State, Workflow


async def relevance(state: State) -> None:
    """Is the situation about the rule of thumb?"""
    await state["work"].check("relevance")


async def politeness(state: State) -> None:
    """Does anybody speak politely? `polite` is a rubric of our own (check/polite.yaml)."""
    await state["work"].check("polite", by="final")


def after_relevance(state: State) -> str:
    return END if state["work"].failed("relevance") else "politeness"


builder = StateGraph(State)
builder.add_node("relevance", relevance)
builder.add_node("politeness", politeness)
builder.add_edge(START, "relevance")
builder.add_conditional_edges("relevance", after_relevance, ["politeness", END])
builder.add_edge("politeness", END)

workflow = Workflow(
    name="polite_norms",
    kind="norm",
    title="Situations in which somebody is polite",
    graph=builder.compile(),
    checks=("relevance", "polite"),
    accepted=("polite",),
)
