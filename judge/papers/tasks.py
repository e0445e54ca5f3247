"""Tasks: rubrics without `pass`, put to the model that a benchmark measures (rubrics/tasks/), and
the answers to them.

The prompt does not say that the model judges; the model answers from its own knowledge. As with a
judge's rubric the material comes first, fenced, and the question last.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judge.backends.base import Message, Prompt
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.judging.prompts import fence
from judge.questions.rubric import Rubric
from judge.questions.templates import render
from judge.records import Record
from judge.records.base import fence_mark
from judge.verdict import AnswerOutcome, Usage
from judge.yamlfile import read_mapping

Fields = Mapping[str, Any]
"""The fields of an item: `id`, `condition`, `row`, `gold`, and what is asked about."""


MISSING = "no answer given"
"""The reason of an item that the scored answers lack, which is no answer that cannot be read."""


class NoAnswer(Exception):
    """The measured model refused, or its reply cannot be read; `detail` says why."""

    def __init__(
        self,
        outcome: AnswerOutcome,
        detail: str | None = None,
    ) -> None:
        super().__init__(detail or outcome)
        self.outcome = outcome
        self.detail = detail


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """One item with the answer to it.

    `answer` is plain JSON. `score` (0 to 1) says how right it is, None if it was not scored.
    `reason` says why there is no answer, or remarks on it. `setting` is the benchmark's.
    """

    fields: Fields
    outcome: AnswerOutcome
    answer: Any = None
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    probabilities: Mapping[str, float] | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    setting: str | None = None

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def row(self) -> str:
        """The row of the source, whose items are resampled together for intervals."""
        return str(self.fields.get("row", self.fields["id"]))

    @property
    def condition(self) -> str:
        return str(self.fields["condition"])


def unanswered(items: Iterable[Record]) -> list[MeasuredAnswer]:
    """The items that can be asked about, to be counted without an answer."""
    return [
        MeasuredAnswer(item.visible, AnswerOutcome.UNREADABLE)
        for item in items
        if item.problem is None
    ]


def load_task(task: str | Rubric) -> Rubric:
    """The package's task of this name; a Rubric is returned unchanged.

    Raises UsageError if there is none, or its file is wrong; with file, line and key.
    """
    return task if isinstance(task, Rubric) else _builtin_task(task)


@lru_cache(maxsize=256)
def _builtin_task(task: str) -> Rubric:
    file = resources.files("judge.rubrics") / "tasks" / f"{task}.yaml"
    if not file.is_file():
        raise UsageError(f"no task is called {task!r}")
    return parse_task(file.read_text("utf-8"), f"rubrics/tasks/{task}.yaml")


def parse_task(text: str, name: str) -> Rubric:
    """Read a task from YAML text; `name` stands for the file in messages. See `load_task`."""
    source = read_mapping(text, name)
    if extra := [key for key in ("pass", "reply") if key in source.data]:
        raise source.refused([((key,), "a measured model's task has none") for key in extra])
    return source.validated(Rubric)


def replaced(names: Sequence[str | Rubric], files: Sequence[Path]) -> dict[str, Rubric]:
    """A benchmark's tasks by name, with those of the user's files instead of its own.

    Raises:
        UsageError: a file cannot be read or is no task, its name is no task of the benchmark, or it
            shows fields that the benchmark does not give to that task.
    """
    tasks = {task.name: task for task in map(load_task, names)}
    for file in files:
        replacement = parse_task(read_text(file, f"--task {file}"), str(file))
        if replacement.name not in tasks:
            choices = ", ".join(tasks)
            raise UsageError(f"--task {file}: name: {replacement.name} is none of {choices}")
        ours = tasks[replacement.name]
        fields = {*ours.fields, *ours.inserts}
        if unknown := sorted({*replacement.fields, *replacement.inserts} - fields):
            choices = ", ".join(sorted(fields))
            raise UsageError(
                f"--task {file}: {replacement.name} has no field {unknown[0]}; it has {choices}"
            )
        tasks[replacement.name] = replacement
    return tasks


def option_marks(task: Rubric, options: Sequence[str]) -> tuple[str, ...]:
    """The mark by which each option is answered: a letter, or its own words."""
    return tuple(string.ascii_uppercase[: len(options)]) if task.lettered else tuple(options)


def task_messages(task: Rubric, texts: Mapping[str, str], options: Sequence[str] = ()) -> Prompt:
    """The chat messages: system (unless `bare`), then the fields with texts, then the question.

    Raises:
        KeyError: `texts` lacks an insert.
    """
    parts = [*texts.values(), *options]
    mark = fence_mark(digest(parts), parts)
    blocks = [fence(name, texts[name], mark) for name in task.fields if texts.get(name)]
    numbers = [str(number) for number in range(1, len(options) + 1)]
    signs = option_marks(task, options) if task.lettered else numbers
    option_lines = "\n".join(f"{a}. {option}" for a, option in zip(signs, options, strict=True))
    variables = {
        **{name: texts.get(name, "") for name in task.fields},
        **{name: texts[name] for name in task.inserts},
        "options": fence("options", option_lines, mark) if options else "",
    }
    question = render(task.prompt, variables)
    user: Message = {"role": "user", "content": "\n\n".join((*blocks, question.strip()))}
    system = task.system
    return Prompt([user] if system is None else [{"role": "system", "content": system}, user])
