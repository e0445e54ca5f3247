"""The rubrics of a run: the built-in ones, those of NormAd's corrected release, the user's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from judge.errors import UsageError
from judge.rubric import Rubric, builtin, load

_SUFFIXES = (".yaml", ".yml")


def corrected_normad() -> tuple[Rubric, ...]:
    """The rubrics as NormAd's corrected release has it: neutral rules and values, too, are from the
    background, and the background alone does not settle a neutral story."""
    derivation, value = builtin()["derivation"], builtin()["value_derivation"]
    text = (resources.files("judge.rubrics") / "corrected/background_alone.yaml").read_text("utf-8")
    return (
        derivation.model_copy(update={"verdict": value.verdict}),
        value.model_copy(update={"not_for_labels": ()}),
        Rubric.from_text(text, "rubrics/corrected/background_alone.yaml"),
    )


def collect(
    sources: Sequence[str | Rubric], base: Sequence[Rubric] = ()
) -> tuple[dict[str, Rubric], tuple[str, ...]]:
    """The built-in rubrics with the user's on top, and the names that were added.

    `sources` are rubrics, built-in names, or paths of rubric files or of folders of them. One that
    bears a built-in name replaces that rubric; any other is an additional check. `base` are rubrics
    of another release of the paper's, which the user's may replace.

    Raises UsageError, see `load`; for a rubric that cannot do the work of the one it replaces; or
    for two sources with a rubric of one name.
    """
    rubrics = {**builtin(), **{rubric.name: rubric for rubric in base}}
    places: dict[str, str] = {}
    for source in sources:
        for place, rubric in [("Python", source)] if isinstance(source, Rubric) else _read(source):
            if problem := _misfit(rubric, builtin().get(rubric.name)):
                raise UsageError(f"{place}: {rubric.name}: {problem}")
            if rubric.name in places:
                both = f"one from {places[rubric.name]} and one from {place}"
                raise UsageError(f"two rubrics are called {rubric.name}, {both}: leave one out")
            places[rubric.name] = place
            rubrics[rubric.name] = rubric
    return rubrics, tuple(dict.fromkeys((*(rubric.name for rubric in base), *places)))


def replacements(sources: Sequence[str]) -> Iterator[str]:
    """One sentence for each built-in rubric that the files of `sources` replace.

    Raises UsageError as `collect`.
    """
    for source in filter(_is_path, sources):
        for place, rubric in _read(source):
            if rubric.name in builtin():
                yield f"{place} replaces the built-in rubric {rubric.name}"


def _misfit(rubric: Rubric, replaced: Rubric | None) -> str | None:
    if replaced is None:
        if rubric.role == "rewrite":
            names = ", ".join(name for name, r in builtin().items() if r.role == "rewrite")
            return f"no workflow uses this rewriting rubric; those that can be replaced are {names}"
        return None
    if (rubric.role, rubric.about) != (replaced.role, replaced.about):
        return f"it replaces a built-in rubric with role {replaced.role} about {replaced.about}"
    if (rubric.role == "rewrite" or replaced.graded) and rubric.reply != replaced.reply:
        return f"it replaces a built-in rubric whose reply is {replaced.reply}"
    return None


def _is_path(source: str) -> bool:
    """Whether it names a file or folder, by its form alone: what lies in the working directory
    never changes what a name means."""
    return os.sep in source or "/" in source or source.endswith(_SUFFIXES)


def _read(source: str) -> list[tuple[str, Rubric]]:
    """The rubrics of a source, each with the file that it is in, or its built-in name."""
    path = Path(source)
    if not _is_path(source):
        if source in builtin():
            return [(source, builtin()[source])]
        if path.exists():
            raise UsageError(f"{source}: no built-in rubric; a file is named by a path: ./{source}")
        names = ", ".join(builtin())
        raise UsageError(f"{source}: neither a path nor a built-in rubric ({names})")
    files = [path]
    if path.is_dir():
        files = sorted(file for suffix in _SUFFIXES for file in path.glob(f"*{suffix}"))
        if not files:
            raise UsageError(f"{source}: no .yaml file in this folder")
    return [(str(file), rubric) for file in files for rubric in load(file)]
