"""Stepping gives what LangGraph's own runtime gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judge.graphs import extraction, norm, story
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph

from judge.configuration import resolve
from judge.run.job import Job
from judge.run.task import Watcher
from judge.run.validate import validate
from judge.workflows import State, stepping
from judge.workflows.stepping import OWN_RUNTIME, Stepper

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize("name", ["stories", "norms", "extractions"])
def test_a_run_is_the_same_stepped_and_by_langgraph(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, repair = f"scripted:{FIXTURES}/judge.yaml", name != "extractions"
    settings = resolve({"model": (model,), "cache": False, "repair": repair})

    def run(out: str) -> bytes:
        job = Job([str(FIXTURES / f"{name}.jsonl")], Path(out), limit=8)
        assert validate(job, settings, Watcher()).finished
        return Path(out).read_bytes()

    stepped = run("stepped")
    monkeypatch.setenv(OWN_RUNTIME, "1")
    # What is stepped through is remembered by graph.
    monkeypatch.setattr("judge.workflows.work._stepper", Stepper)
    assert run("invoked") == stepped


@pytest.mark.parametrize("module", [extraction, norm, story])
def test_our_own_graphs_are_plain(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = module.workflow  # type: ignore[attr-defined]
    stepper, builder = Stepper(workflow.compiled, workflow.plain), workflow.compiled.builder
    assert stepper.steps
    # LangGraph's own tools find the graph by this name, or a function without parameters.
    entry = json.loads((FIXTURES.parent / "langgraph.json").read_text())["graphs"][workflow.name]
    assert getattr(module, entry.rpartition(":")[2])() is workflow.compiled
    for name in (START, *builder.nodes):
        ways = [start for start, _ in builder.edges if start == name]
        assert len(ways) + len(builder.branches.get(name, {})) == 1, name
    monkeypatch.setenv(OWN_RUNTIME, "1")
    assert not Stepper(workflow.compiled, workflow.plain).steps


async def test_a_graph_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def again(state: State) -> None:
        pass

    builder = StateGraph(State)
    builder.add_node("again", again)
    builder.add_edge(START, "again")
    builder.add_conditional_edges("again", lambda state: "again", {"again": "again", "end": END})
    monkeypatch.setattr(stepping, "STEP_LIMIT", 30)
    for plain in (True, False):
        with pytest.raises(GraphRecursionError):
            await Stepper(builder.compile(), plain).run({"work": None})
