"""Tasks: rubrics without `pass`, put to the model that a benchmark measures (rubrics/tasks/).

The model is not told that it judges; it answers out of what it knows. As with a judge's rubric the
material comes first, fenced, and the question last.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path

from judge.backends.base import Message, Prompt
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.prompts import fence
from judge.records.base import fence_mark
from judge.rubric import Rubric
from judge.templates import template
from judge.yamlfile import read_mapping


def load_task(task: str | Rubric) -> Rubric:
    """The task of this name that comes with the package; a task as it is.

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
    if others := [key for key in ("pass", "reply") if key in source.data]:
        raise source.refused([((key,), "a measured model's task has none") for key in others])
    return source.validated(Rubric)


def replaced(names: Sequence[str | Rubric], files: Sequence[Path]) -> dict[str, Rubric]:
    """A benchmark's tasks by name, those of the user's files in the place of the benchmark's own.

    Raises:
        UsageError: a file that cannot be read or is no task; one whose name is no task of the
            benchmark, or which shows what the benchmark does not give to the task of its name.
    """
    tasks = {task.name: task for task in map(load_task, names)}
    for file in files:
        own = parse_task(read_text(file, f"--task {file}"), str(file))
        if own.name not in tasks:
            choices = ", ".join(tasks)
            raise UsageError(f"--task {file}: name: {own.name} is none of {choices}")
        ours = tasks[own.name]
        fields = {*ours.fields, *ours.inserts}
        if unknown := sorted({*own.fields, *own.inserts} - fields):
            choices = ", ".join(sorted(fields))
            raise UsageError(
                f"--task {file}: {own.name} is not given {unknown[0]}; it is {choices}"
            )
        tasks[own.name] = own
    return tasks


def option_marks(task: Rubric, options: Sequence[str]) -> tuple[str, ...]:
    """What each option is answered with: a letter, or its own words."""
    return tuple(string.ascii_uppercase[: len(options)]) if task.lettered else tuple(options)


def task_messages(task: Rubric, texts: Mapping[str, str], options: Sequence[str] = ()) -> Prompt:
    """The chat messages: system (unless `bare`), then the fields that are there, then the question.

    Raises:
        KeyError: an insert that `texts` does not have.
    """
    parts = [*texts.values(), *options]
    mark = fence_mark(digest(parts), parts)
    blocks = [fence(name, texts[name], mark) for name in task.fields if texts.get(name)]
    numbers = [str(number) for number in range(1, len(options) + 1)]
    signs = option_marks(task, options) if task.lettered else numbers
    listed = "\n".join(f"{a}. {option}" for a, option in zip(signs, options, strict=True))
    variables = {
        **{name: texts.get(name, "") for name in task.fields},
        **{name: texts[name] for name in task.inserts},
        "options": fence("options", listed, mark) if options else "",
    }
    question = template(task.prompt).render(variables)
    user: Message = {"role": "user", "content": "\n\n".join((*blocks, question.strip()))}
    system = task.system
    return Prompt([user] if system is None else [{"role": "system", "content": system}, user])
