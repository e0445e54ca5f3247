"""The rubrics of a run: the built-in ones, those of NormAd's corrected release, the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from judge.errors import UsageError
from judge.rubric import Rubric, builtin, load


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


def collect(sources: Sequence[str | Rubric]) -> tuple[dict[str, Rubric], tuple[str, ...]]:
    """The built-in rubrics with the user's on top, and the names that the user added.

    `sources` are rubrics, built-in names, rubric files, or folders of them. One that bears a
    built-in name replaces that rubric; any other is an additional check.

    Raises UsageError, see `load`; or for a rubric that cannot do the work of the one it replaces.
    """
    rubrics = dict(builtin())
    added: list[str] = []
    for source in sources:
        for rubric in [source] if isinstance(source, Rubric) else _named(source):
            if problem := _misfit(rubric, builtin().get(rubric.name)):
                place = "rubric" if isinstance(source, Rubric) else source
                raise UsageError(f"{place}: {rubric.name}: {problem}")
            added.append(rubric.name)
            rubrics[rubric.name] = rubric
    return rubrics, tuple(dict.fromkeys(added))


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


def _named(source: str) -> list[Rubric]:
    path = Path(source)
    if path.is_dir():
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not files:
            raise UsageError(f"{source}: no .yaml file in this folder")
        return [rubric for file in files for rubric in load(file)]
    if path.exists():
        return load(path)
    if source not in builtin():
        names = ", ".join(builtin())
        raise UsageError(f"{source}: neither a file, a folder nor a built-in rubric ({names})")
    return [builtin()[source]]
