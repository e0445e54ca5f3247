"""A task file: one question put to a model that is measured (rubrics/tasks/NAME.yaml).

Rubrics are for judges; a task is for the model that a benchmark measures, which is to answer out of
what it knows. As with a rubric the material comes first, fenced, and the question last.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field

from judge.backends.base import Message, Prompt
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.prompts import fence
from judge.questions import Section, Text
from judge.subject import fence_mark
from judge.templates import fault, template
from judge.yamlfile import read_mapping

LETTERS = string.ascii_uppercase
_FOLDER = resources.files("judge.rubrics") / "tasks"


class Task(Section):
    """One task.

    `fields` are shown before the question, each in a fence, where the item has them. The question
    is a template; it can name those fields in conditions, the short texts in `inserts` as they
    stand, and `options`, the numbered or lettered list. `lettered` options are answered by letter,
    others by their own words. The prompt of a `bare` task is the question and nothing else: no
    system message stands before it.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    source: Text
    fields: tuple[str, ...] = ()
    inserts: tuple[str, ...] = ()
    lettered: bool = False
    bare: bool = False
    question: Text
    max_tokens: Annotated[int, Field(ge=1, le=32000)] = 400

    @cached_property
    def digest(self) -> str:
        """12 hex digits over everything that can change an answer."""
        body = self.model_dump_json(exclude={"title", "source"})
        system = "" if self.bare else system_text()
        return digest(f"{system}\n{body}".encode(), 6)

    def marks(self, options: Sequence[str]) -> tuple[str, ...]:
        """What each option is answered with: a letter, or its own words."""
        return tuple(LETTERS[: len(options)]) if self.lettered else tuple(options)

    def prompt(self, texts: Mapping[str, str], options: Sequence[str] = ()) -> Prompt:
        """The chat messages: system (unless `bare`), then the material, then the question.

        Raises:
            KeyError: an insert that `texts` does not have.
        """
        parts = [*texts.values(), *options]
        mark = fence_mark(digest(parts), parts)
        shown = [fence(name, texts[name], mark) for name in self.fields if texts.get(name)]
        numbers = [str(number) for number in range(1, len(options) + 1)]
        signs = self.marks(options) if self.lettered else numbers
        listed = "\n".join(f"{a}. {option}" for a, option in zip(signs, options, strict=True))
        known = {
            **{name: texts.get(name, "") for name in self.fields},
            **{name: texts[name] for name in self.inserts},
            "options": fence("options", listed, mark) if options else "",
        }
        asked = template(self.question).render(known)
        user: Message = {"role": "user", "content": "\n\n".join((*shown, asked.strip()))}
        return Prompt([user] if self.bare else [{"role": "system", "content": system_text()}, user])


@lru_cache(maxsize=1)
def system_text() -> str:
    """The short system message that all tasks share (rubrics/tasks/_system.txt)."""
    return (_FOLDER / "_system.txt").read_text("utf-8").strip()


@lru_cache(maxsize=256)
def load_task(task: str | Task) -> Task:
    """The task of this name that comes with the package; a task as it is.

    Raises:
        UsageError: there is none, or its file is wrong; with file, line and key.
    """
    if isinstance(task, Task):
        return task
    file = _FOLDER / f"{task}.yaml"
    if not file.is_file():
        raise UsageError(f"no task is called {task!r}")
    return parse_task(file.read_text("utf-8"), f"rubrics/tasks/{task}.yaml")


def parse_task(text: str, name: str) -> Task:
    """Read a task from YAML text; `name` stands for the file in messages. See `load_task`."""
    source = read_mapping(text, name)
    task = source.validated(Task)
    if problem := fault(task.question, {*task.fields, *task.inserts, "options"}):
        raise source.refused([(("question",), problem)])
    return task


def replaced(names: Sequence[str | Task], files: Sequence[Path]) -> dict[str, Task]:
    """A benchmark's tasks by name, those of the user's files in the place of the benchmark's own.

    Raises:
        UsageError: a file that cannot be read or is no task; one whose name is no task of the
            benchmark, or which shows what the benchmark does not give to the task of its name.
    """
    tasks = {task.name: task for task in map(load_task, names)}
    for file in files:
        own = parse_task(read_text(file, f"--task {file}"), str(file))
        if own.name not in tasks:
            told = ", ".join(tasks)
            raise UsageError(f"--task {file}: name: {own.name} is none of {told}")
        ours = tasks[own.name]
        given = {*ours.fields, *ours.inserts}
        if unknown := sorted({*own.fields, *own.inserts} - given):
            told = ", ".join(sorted(given))
            raise UsageError(f"--task {file}: {own.name} is not given {unknown[0]}; it is {told}")
        tasks[own.name] = own
    return tasks
