"""What an evaluation will ask, estimated without asking: items get made-up replies.

Once with replies as short as they come (a quarter of a task's `max_tokens`, lists empty), once with
replies as long as they may be. Re-asking of invalid replies is left out, as in judge/run/plan.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.backends.base import Prompt, Reading
from judge.evaluation.asking import MOST_ENTRIES, Examinee, R
from judge.evaluation.benchmark import Benchmark, Choices, Graded, Result
from judge.evaluation.evaluating import BASELINE, items_of, setup_of
from judge.judging.judge import Sampling
from judge.records import Item, Problem, Record, build
from judge.run.job import Job
from judge.run.lines import bad_input
from judge.run.plan import (
    CHARACTERS_PER_TOKEN,
    REPLY_SHARE,
    Plan,
    costs,
    prompt_usage,
    unasked_client,
)
from judge.run.setup import Setup
from judge.settings import Settings
from judge.subject import Subject
from judge.task import Task, load_task
from judge.verdict import Usage

_ENTRY = "a value in some words that name what is held dear"
"""Stands for an entry of a list."""


@dataclass(slots=True)
class _Made:
    """Costs by task or check, of replies that are all `full` or all short."""

    full: bool
    costs: dict[str, Usage] = field(default_factory=dict)

    def add(self, name: str, cost: Usage) -> None:
        self.costs[name] = self.costs.get(name, Usage()) + cost

    def tokens(self, most: int) -> int:
        return most if self.full else int(most * REPLY_SHARE)


@dataclass
class _Rehearsed(Examinee):
    """A measured model that is asked nothing and replies at once: the first options, full lists."""

    made: _Made = field(default_factory=lambda: _Made(full=True))

    async def write(self, task: str | Task, texts: Mapping[str, str], *, draw: int = 0) -> str:
        """As many words as fit."""
        found = load_task(task)
        tokens = self._cost(found, found.prompt(texts))
        return "word" * round(tokens * CHARACTERS_PER_TOKEN / len("word"))

    async def _chances(self, task: Task, prompt: Prompt, marks: Sequence[str]) -> tuple[float, ...]:
        self._cost(task, prompt, 1)
        return (1.0, *(0.0 for _ in marks[1:]))

    async def _reply(self, task: Task, prompt: Prompt, reply: type[R]) -> R:
        self._cost(task, prompt)
        ((name, told),) = reply.model_json_schema()["properties"].items()
        each = told.get("items", {})
        if told["type"] == "string":
            return reply(**{name: told.get("const") or told["enum"][0]})
        if "minItems" in told:
            return reply(**{name: (each.get("enum") or [each["const"]])[: told["minItems"]]})
        return reply(**{name: [_ENTRY] * MOST_ENTRIES if self.made.full else []})

    def _cost(self, task: Task, prompt: Prompt, tokens: int | None = None) -> int:
        tokens = self.made.tokens(task.max_tokens) if tokens is None else tokens
        self.made.add(task.name, prompt_usage(self.client, prompt, tokens))
        return tokens


@dataclass(frozen=True, slots=True)
class _RehearsedGrader:
    """Judges that are asked nothing; fulfils `Grader`."""

    setup: Setup
    made: _Made

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Every gold value is found in the first predicted one, or in none."""
        if predicted and gold:
            fields = {"id": id, "values": [*gold], "predicted": [*predicted]}
            record = build(Item("<answers>", 1, fields), "extraction")
            if isinstance(record, Record):
                bound = self.setup.bound_workflow("extraction")
                for name, (_, most) in (await costs(Subject.of(record), bound)).items():
                    self.made.add(name, most)
        credit, named = (1.0, (0,)) if predicted else (0.0, ())
        return Graded((credit,) * len(gold), (named,) * len(gold), (None,) * len(gold), Usage())


def plan_evaluation(
    job: Job, settings: Settings, *, benchmark: Benchmark, choices: Choices, judges: Sequence[str]
) -> Plan:
    """Read the items and add up what each would ask, by task and by grading check.

    Args:
        judges: models that grade what no rule can.

    Raises:
        UsageError: a source, model or setting that cannot be used.
    """
    kept = settings.model_copy(update={"cache": False, "max_cost": None})
    setup = setup_of(kept, benchmark, judges, build=unasked_client)
    low, high, found = _Made(full=False), _Made(full=True), Plan()

    async def rehearse(fields: Mapping[str, Any]) -> None:
        client = setup.client(settings.model[0])
        reading: Reading = settings.reading or client.backend.reading
        for made in (low, high):
            model = _Rehearsed(client, reading, Sampling(0.0, 0), fields, made=made)
            answer = await benchmark.ask(fields, model)
            if judges and benchmark.grade is not None:
                result = Result(fields, "answered", answer)
                await benchmark.grade(result, _RehearsedGrader(setup, made))

    async def all_items() -> None:
        for item in items_of(job, benchmark, choices):
            if item.fields is None:
                problem = item.problem or Problem("there is no item")
                found.bad.add(bad_input(item, problem).judgement)
                continue
            found.records += 1
            if not settings.model[0].startswith(BASELINE):
                await rehearse(item.fields)

    asyncio.run(all_items())
    for name in high.costs:
        found.add(name, low.costs.get(name, Usage()), high.costs[name])
    return found
