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
from judge.evaluation.benchmark import Benchmark, Choices, Given, Graded
from judge.evaluation.choosing import MOST_ENTRIES
from judge.evaluation.evaluating import GUESSER, items_of, problem_of, setup_of
from judge.evaluation.grading import extraction_record
from judge.judging.client import Client
from judge.records import SeenIds
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


@dataclass(frozen=True, slots=True)
class _Rehearsed:
    """A measured model that is asked nothing and replies at once; fulfils `MeasuredModel`."""

    client: Client
    reading: Reading
    made: _Made

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        """The first option."""
        found = load_task(task)
        if self.reading == "probability":
            self._cost(found, found.prompt(texts, options), 1)
        else:
            self._cost(found, found.prompt(texts, options), self.made.tokens(found.max_tokens))
        return Given(Usage(), place=0)

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        """The first options."""
        found = load_task(task)
        self._cost(found, found.prompt(texts, options), self.made.tokens(found.max_tokens))
        return Given(Usage(), places=tuple(range(count)))

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """As many entries as a list may have, or none."""
        found = load_task(task)
        self._cost(found, found.prompt(texts), self.made.tokens(found.max_tokens))
        return Given(Usage(), entries=(_ENTRY,) * MOST_ENTRIES if self.made.full else ())

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """As many words as fit."""
        found = load_task(task)
        tokens = self.made.tokens(found.max_tokens)
        self._cost(found, found.prompt(texts), tokens)
        return Given(Usage(), text="word" * round(tokens * CHARACTERS_PER_TOKEN / len("word")))

    def _cost(self, task: Task, prompt: Prompt, tokens: int) -> None:
        self.made.add(task.name, prompt_usage(self.client, prompt, tokens))


@dataclass(frozen=True, slots=True)
class _RehearsedGrader:
    """Judges that are asked nothing; fulfils `Grader`."""

    setup: Setup
    made: _Made

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Every gold value is found in the first predicted one, or in none."""
        if predicted and gold:
            subject = extraction_record(id, predicted, gold)
            for name, _, most in costs(subject, self.setup.bound_workflow("extraction")):
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
            answer = await benchmark.answer(fields, _Rehearsed(client, reading, made))
            if judges and benchmark.grade is not None:
                await benchmark.grade(fields, answer, _RehearsedGrader(setup, made))

    async def all_items() -> None:
        with SeenIds() as ids:
            for item in items_of(job, benchmark, choices):
                if (problem := problem_of(item, ids)) is not None:
                    found.bad.add(bad_input(item, problem).judgement)
                    continue
                found.records += 1
                if settings.model[0] != GUESSER:
                    await rehearse(item.fields or {})

    asyncio.run(all_items())
    for name in high.costs:
        found.add(name, low.costs.get(name, Usage()), high.costs[name])
    return found
