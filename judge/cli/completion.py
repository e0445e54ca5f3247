"""Shell completion of values: installed names, and models that servers list."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout, suppress

import typer

from judge import plugins
from judge.errors import JudgeError

_SECONDS = 1.5
"""Time limit for a server's list of models."""


def values(kind: str, incomplete: str) -> list[str]:
    """The values of a kind that begin with what is typed.

    Args:
        kind: `models`, `weights`, `rubrics`, `checks`, `formats`, a group of entry points, words
            such as `a|b`, or `verdicts`, a list with commas whose last name is completed.
    """
    before = incomplete[: incomplete.rfind(",") + 1] if kind == "verdicts" else ""
    logging.disable()
    try:
        names = [f"{before}{name}" for name in _names(kind, incomplete)]
    finally:
        logging.disable(logging.NOTSET)
    return [name for name in names if name.startswith(incomplete)]


def _names(kind: str, incomplete: str) -> Iterable[str]:
    if kind.startswith("judge."):
        return plugins.names(kind)
    if kind == "models":
        return _models(incomplete)
    if kind == "weights":
        return _listed("local")
    if kind in ("rubrics", "checks"):
        from judge.questions.ready_made import builtin, ready_made

        judging = (name for name, rubric in builtin().items() if rubric.role == "judge")
        return (*(ready_made() if kind == "rubrics" else ()), *judging)
    if kind == "verdicts":
        from judge.records.lines import FINISHED, REDONE

        return sorted(FINISHED | REDONE)
    if kind == "formats":
        from judge.records.read import FORMATS

        return FORMATS
    return kind.split("|") if kind.islower() else ()


def _models(incomplete: str) -> list[str]:
    """Providers; the models of the provider if only one fits what is typed."""
    from judge.configuration import resolve

    try:
        servers = tuple(resolve({}).servers)
    except JudgeError:
        servers = ()
    names = [f"{name}:" for name in (*plugins.names("judge.backends"), *servers)]
    if ":" not in incomplete:
        names = [name for name in names if name.startswith(incomplete)]
        if len(names) != 1:
            return names
        incomplete = names[0]
    provider = incomplete.partition(":")[0]
    return [f"{provider}:{name}" for name in _listed(provider)] or names


def _listed(provider: str) -> list[str]:
    from judge.api import model_names
    from judge.configuration import resolve

    try:
        return model_names(provider, resolve({}), _SECONDS)
    except JudgeError:
        return []


def in_bash(app: Callable[[], object]) -> None:
    """Complete for bash, which splits words at colons: they are joined first, and each value is
    printed without the part that bash keeps."""
    words, at = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    words += [""] * (at + 1 - len(words))
    joined: list[str] = []
    for word in words[: at + 1]:
        if word == ":" or (word and joined and joined[-1].endswith(":")):
            joined[-1] += word
        else:
            joined.append(word)
    kept = len(joined[-1]) - len(words[at].removeprefix(":"))
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        app()
    typer.echo("\n".join(value[kept:] for value in out.getvalue().splitlines()))
