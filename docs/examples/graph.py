"""Own graph: a situation that is not about its rule is written anew, then asked for adherence.

judge validate situations.jsonl --workflow graph.py:graph --repair
"""

from judge.graphs.replies import Regeneration
from langgraph.graph import END, START, StateGraph

from judge.workflows import State


async def relevance(state: State) -> None:
    await state["work"].check("relevance")


async def story_regeneration(state: State) -> None:
    work = state["work"]
    told = ["it is not about the rule of thumb"]
    reply = await work.ask_rewriter("story_regeneration", Regeneration, findings=told)
    if reply is not None:
        edit, before = work.edit("relevance", "story_regeneration"), work.record.texts["story"]
        work.rewrite("story", reply.story, [edit(before=before, after=reply.story)])


async def adherence(state: State) -> None:
    await state["work"].check("adherence", by="final")


def after_relevance(state: State) -> str:
    work = state["work"]
    # No rounds are left before a repair; a note says that the rewriter gave up.
    again = work.failed("relevance") and work.round <= work.rounds and not work.notes
    return "story_regeneration" if again else "adherence"


graph = StateGraph(State).add_node(relevance).add_node(story_regeneration).add_node(adherence)
graph.add_edge(START, "relevance").add_edge("story_regeneration", "relevance")
graph.add_conditional_edges("relevance", after_relevance, ["story_regeneration", "adherence"])
graph.add_edge("adherence", END)
