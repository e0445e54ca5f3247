"""Python functions as checks, named by `python` in a rubric's file."""

from __future__ import annotations

import re
import runpy
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from inspect import getclosurevars, isfunction, ismethod
from pathlib import Path
from traceback import extract_tb
from types import CodeType, ModuleType
from typing import Annotated, Any

from pydantic import Field, model_validator

from judge import plugins
from judge.digest import digest
from judge.errors import UsageError, why_unread
from judge.questions.field_tests import no, yes
from judge.questions.parts import Section
from judge.questions.patterns import shortened
from judge.records.base import clip
from judge.verdict import Answer


class PythonFunction(Section):
    """A function in a file (`file.py:function`) that says whether a record passes.

    It takes the record's fields and returns True or False, or a dict of `pass` and, optionally,
    `reason` and `quote`. In a command its prints go to stderr, because stdout holds the data.

    `digest` is over the file's bytes. Reading the rubric runs nothing; `load` runs the file.
    """

    path: str
    name: str
    digest: str
    function: Annotated[Callable[..., Any] | None, Field(exclude=True)] = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, source: Any) -> Any:
        if isinstance(source, cls):
            return source
        path, _, name = source.rpartition(":") if isinstance(source, str) else ("", "", "")
        if not path.endswith(".py") or not name.isidentifier():
            raise ValueError("write a file and its function, as in checks.py:is_short")
        try:
            return {"path": path, "name": name, "digest": digest(Path(path).read_bytes(), 6)}
        except OSError as error:
            raise ValueError(f"{path}: cannot be read: {why_unread(error)}") from error

    @classmethod
    def of(cls, function: Callable[..., Any]) -> PythonFunction:
        """The check of a function in memory; `digest` is over its code, and over what it uses that
        has a plain form: defaults, variables around it, other functions."""
        if not (isfunction(function) or ismethod(function)):
            raise UsageError(f"rubric: {function!r} is not a Python function: wrap it in a def")
        code: CodeType = function.__code__
        parts: dict[str, Any] = {"path": code.co_filename, "name": code.co_name}
        return cls.model_construct(**parts, function=function, digest=digest(_plain(function), 6))

    def load(self) -> Callable[..., Any]:
        """Runs the file and returns the function.

        Raises:
            UsageError: the file fails, or has no such function.
        """
        if self.function is not None:
            return self.function
        function = _run(self.path, self.digest).get(self.name)
        if not callable(function):
            raise UsageError(f"{self.path}: there is no function {self.name}")
        return function  # type: ignore[no-any-return]

    def answer(self, fields: dict[str, Any]) -> Answer:
        """Calls the function with a record's fields.

        Raises:
            ValueError: the function raised (with file and line), or returned something else.
        """
        function = self.load()
        try:
            with plugins.prints_aside():
                outcome = function(fields)
        except (Exception, SystemExit) as error:
            lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == self.path]
            place = f"{Path(self.path).name}:{lines[-1] if lines else self.name}"
            problem = shortened(f"{place}: {type(error).__name__}: {error}")
            raise ValueError(problem) from error
        said = outcome if isinstance(outcome, Mapping) else {"pass": outcome}
        passes: Any = said.get("pass")
        passes = passes.item() if hasattr(passes, "item") else passes  # NumPy booleans
        words = said.get("reason"), said.get("quote")
        sound = isinstance(passes, bool) and all(isinstance(w, str | None) for w in words)
        if not sound or said.keys() - {"pass", "reason", "quote"}:
            what = "return True, False, or a dict of pass, reason and quote"
            raise ValueError(f"{self.name} returned {clip(outcome)}: {what}")
        return yes(*words) if passes else no(*words)


_PYTHON = re.escape(str(Path(threading.__file__).parent))
_LIBRARIES = re.compile(rf"{_PYTHON}|<frozen |.*-packages\b")
"""Matches the file names of Python's own code and of installed packages."""


def _plain(content: object, around: frozenset[int] = frozenset()) -> object:
    """Plain data that is the same for equal content in every process; of anything that is neither
    data nor a Python function only the type, and of a library's function only the name: some have
    variables that change with each call, such as the patterns that `re` keeps."""
    if isinstance(content, ModuleType):
        return content.__name__
    if isinstance(content, str | bytes | int | float | complex | type | None):
        return repr(content)
    if id(content) in around:
        return "itself"
    plain = partial(_plain, around=around | {id(content)})
    if isinstance(content, CodeType):
        # Neither file nor lines, nor marshal's bytes, which depend on what else is in memory.
        names = content.co_names, content.co_freevars, content.co_varnames
        return [content.co_code.hex(), *names, plain(content.co_consts)]
    if ismethod(content):
        return [plain(content.__func__), plain(getattr(content.__self__, "__dict__", None))]
    if isfunction(content):
        if around and _LIBRARIES.match(content.__code__.co_filename):
            return content.__module__, content.__qualname__
        variables = getclosurevars(content)
        parts = content.__defaults__, content.__kwdefaults__, variables.nonlocals, variables.globals
        return [plain(part) for part in (content.__code__, *parts)]
    if isinstance(content, Mapping):
        return [[plain(key), plain(value)] for key, value in content.items()]
    if isinstance(content, list | tuple):
        return [plain(entry) for entry in content]
    if isinstance(content, set | frozenset):
        return sorted(repr(plain(entry)) for entry in content)
    return type(content).__qualname__


@lru_cache(maxsize=32)
def _run(path: str, digest: str) -> dict[str, Any]:
    """The globals of the file with this digest, after running it."""
    try:
        with plugins.prints_aside():
            return runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error
