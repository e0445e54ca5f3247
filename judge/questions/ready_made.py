"""The shipped rubrics: those of workflows, and ready-made ones in groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from judge.questions.rubric import Rubric, parse


@lru_cache(maxsize=1)
def builtin() -> Mapping[str, Rubric]:
    """The shipped rubrics of workflows, by name."""
    folder = resources.files("judge.rubrics")
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".yaml"))
    texts = [((folder / file).read_text("utf-8"), f"rubrics/{file}") for file in files]
    return {rubric.name: rubric for text, name in texts for rubric in parse(text, name)}


GROUPS = ("answers", "text", "safety", "chats")
"""The groups of the ready-made rubrics: their folders in rubrics/."""


@lru_cache(maxsize=1)
def ready_made() -> Mapping[str, str]:
    """The group of each ready-made rubric, by name. No file is read."""
    folder = resources.files("judge.rubrics")
    names = {group: sorted(file.name for file in (folder / group).iterdir()) for group in GROUPS}
    return {name.removesuffix(".yaml"): group for group in GROUPS for name in names[group]}


@lru_cache(maxsize=64)
def ready(name: str) -> Rubric | None:
    """The ready-made rubric with this name; None if there is none. Reads its file only."""
    if name not in ready_made():
        return None
    return Rubric.from_text(shipped_text(name), f"rubrics/{ready_made()[name]}/{name}.yaml")


def shipped_text(name: str) -> str:
    """The text of a shipped rubric's file, ready-made or of a workflow."""
    folder = resources.files("judge.rubrics") / ready_made().get(name, "")
    return (folder / f"{name}.yaml").read_text("utf-8")
