"""A recipe: the smallest generator, one YAML file.

    name: reply                      # the writer's task, with the keys of a rubric
    fields: [email]                  # the fields of a source line that it is shown
    question: Write a friendly reply to this e-mail.
    writes: [reply]                  # the fields that it fills
    rubrics: [polite.yaml, ./clear]  # what must pass; paths beside this file, or built-in names

A draft that does not pass is rewritten with the judges' reasons, at most `--rounds` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge import plugins
from judge.digest import digest
from judge.errors import UsageError, read_text
from judge.generate.generator import (
    DraftOptions,
    Generator,
    compose,
    drafts_of,
    objections,
    rows,
)
from judge.problems import problems_of
from judge.questions.keys import NAME
from judge.questions.replies import NewFields, new_fields
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.base import LINEAGE, RESERVED, no_such_field
from judge.records.kinds import normalise, normalised
from judge.run.look_ahead import MAX_LOOK_AHEAD
from judge.run.rubrics import collect
from judge.workflows import State, Work, Workflow
from judge.yamlfile import read_mapping

GENERATORS = "judge.generators"
"""The entry-point group of generators."""


def load_generator(name: str) -> Generator:
    """The generator with this name, or that of a recipe (a YAML file); raises UsageError."""
    if name.endswith((".yaml", ".yml")):
        return load_recipe(name)
    generator: Generator | None = plugins.load(GENERATORS, name, Generator)
    if generator is None:
        names = ", ".join(plugins.names(GENERATORS)) or "none"
        raise UsageError(f"no set is called {name!r}; there are {names}, or name a FILE.yaml")
    return generator


class Recipe(BaseModel):
    """A recipe's own keys; the others are those of a rubric.

    `each` is the number of drafts for a source line; `text` is the field that is compared with
    those of other records (by default the last that is written); values of `counted` fields are
    counted.
    """

    model_config = ConfigDict(extra="forbid")
    writes: Annotated[tuple[Annotated[str, Field(pattern=rf"^{NAME}$")], ...], Field(min_length=1)]
    rubrics: tuple[str, ...] = ()
    each: Annotated[int, Field(ge=1)] = 1
    text: str | None = None
    counted: tuple[str, ...] = ()


_OWN = ("id", RESERVED, LINEAGE, "labels")
_WRITER = ("name", "title", "source", "fields", "needs", "question", "examples", "max_tokens")


def load_recipe(name: str) -> Generator:
    """The generator of a recipe's file.

    Raises:
        UsageError: an unreadable file, bad YAML, an unknown or wrong key (with file, line and key),
            a field that the writer both reads and writes, or an unusable rubric.
    """
    path = Path(name)
    text = read_text(path)
    source = read_mapping(text, name)
    own = {key: content for key, content in source.data.items() if key not in _WRITER}
    keys = {key: source.data[key] for key in _WRITER if key in source.data}
    try:
        recipe = Recipe.model_validate(own)
        writer = Rubric.model_validate({**keys, "reply": NewFields.__name__})
    except ValidationError as error:
        raise source.refused(problems_of(error, (*_WRITER, *Recipe.model_fields))) from error
    if "question" not in keys:
        raise source.refused([(("question",), "say what is to be written")])
    shown = normalised(writer.required)
    problem = "the writer is shown this field of the source: give what it writes another name"
    if both := [n for n, field in enumerate(recipe.writes) if normalise(field) in shown]:
        raise source.refused((("writes", str(number)), problem) for number in both)
    if taken := [n for n, field in enumerate(recipe.writes) if field in _OWN]:
        problem = "judge itself writes this field: give what the model writes another name"
        raise source.refused((("writes", str(number)), problem) for number in taken)
    beside = [
        str(path.parent / rubric) if "/" in rubric or rubric.endswith((".yaml", ".yml")) else rubric
        for rubric in recipe.rubrics
    ]
    for number, rubric in enumerate(beside):
        try:
            collect([rubric])
        except UsageError as error:
            raise source.refused([(("rubrics", str(number)), str(error))]) from error
    by_name, judges = collect(beside)
    if writer.name in by_name:
        raise UsageError(f"{name}: name: there is a rubric {writer.name}: choose another name")
    version = digest([text, *(by_name[judge].digest for judge in judges)], 4)
    return _generator(path, version, recipe, writer, {n: by_name[n] for n in judges})


def _generator(
    path: Path, version: str, recipe: Recipe, writer: Rubric, judges: Mapping[str, Rubric]
) -> Generator:
    stem, checks, title = path.stem, tuple(judges), writer.title.partition("\n")[0]
    workflow = Workflow(
        name=f"{stem}@{version}",
        kind="record",
        title=title,
        graph=_graph(writer.name, new_fields(recipe.writes), checks),
        checks=checks,
        rewrites=(writer.name,),
        own=True,
        plain=True,
    )

    replaced = normalised(recipe.writes)

    def content(row: Record) -> dict[str, Any]:
        return {k: c for k, c in row.visible.items() if normalise(k) not in replaced}

    def drafts(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
        compared = (*recipe.counted, *([recipe.text] if recipe.text else []))
        needed = {*writer.required, *compared} - {*recipe.writes}
        lines = _with_fields(rows(sources, options), needed, content, path.name, recipe.writes)
        each = options.each or recipe.each
        return drafts_of(stem, lines, options, lambda row, place: [content(row.usable())] * each)

    return Generator(
        name=stem,
        title=title,
        source=writer.source,
        workflow=workflow,
        drafts=drafts,
        stages=(writer.name, *checks),
        rubrics={writer.name: writer, **judges},
        text=recipe.text or recipe.writes[-1],
        writes=recipe.writes,
        counted=recipe.counted,
    )


def _with_fields(
    lines: Iterator[Record],
    names: set[str],
    content: Callable[[Record], Mapping[str, Any]],
    origin: str,
    written: Sequence[str],
) -> Iterator[Record]:
    """Yield the source lines, once a draft from them has been seen to have each of these fields;
    a misspelt one may also mean one of those `written`.

    Raises:
        UsageError: a field is in no draft; raised only for fewer than `MAX_LOOK_AHEAD` lines.
    """
    seen: list[Record] = []
    there: list[str] = []
    while names and len(seen) < MAX_LOOK_AHEAD and (line := next(lines, None)) is not None:
        seen.append(line)
        if line.problem is None:
            there = there or [*line.visible]
            made = Record(line.source, line.line, {"id": "", **content(line)}).of_kind("record")
            names = {name for name in names if not made.has(name)}
    if names and there and len(seen) < MAX_LOOK_AHEAD:
        field = min(names)
        raise UsageError(no_such_field(f"{origin}: field {field}", field, [*there, *written]))
    yield from chain(seen, lines)


def _graph(writer: str, reply: type[NewFields], checks: Sequence[str]) -> Any:
    """writing -> judging <-> writing."""

    def findings(work: Work) -> list[str]:
        return objections(work, (*checks, *work.context.additional))

    async def writing(state: State) -> None:
        work = state["work"]
        await compose(work, writer, reply, "record", findings(work))

    async def judging(state: State) -> None:
        work = state["work"]
        if failed := await work.test():
            work.stop(failed)
            return
        for name in checks:
            await work.check(name)
        await work.additional()

    def after_writing(state: State) -> str:
        return END if state["work"].notes else "judging"

    def after_judging(state: State) -> str:
        work = state["work"]
        return "writing" if findings(work) and work.round <= work.rounds else END

    builder = StateGraph(State)
    builder.add_node("writing", writing)
    builder.add_node("judging", judging)
    builder.add_edge(START, "writing")
    builder.add_conditional_edges("writing", after_writing, ["judging", END])
    builder.add_conditional_edges("judging", after_judging, ["writing", END])
    return builder.compile(name=writer)
