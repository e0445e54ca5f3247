"""The description beside OUT (`OUT.run.json`): by fingerprint, how its lines were made."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, Field, TypeAdapter

from judge.errors import UsageError, unwritable
from judge.questions.ready_made import builtin, ready
from judge.questions.rubric import Rubric
from judge.records.read import InMemory
from judge.run.gates import Gate
from judge.run.output import write_whole

T = TypeVar("T")

UNFINISHED = "unfinished"
"""The key of a run that has not reached the end of its input."""

OBSERVED = ("adaptations", "answered_by", "error_rates", "gates", "own_rubrics", UNFINISHED)
"""Keys that do not belong to the question: how a server is asked, and which model answers
(docs/decisions/0039-adaptations.md, 0040-...), gates, and what the digests stand for, also those of
profiles."""

_log = logging.getLogger(__name__)


class _Settings(BaseModel):
    map: list[Annotated[str, Field(pattern="=")]] = []


class _Content(BaseModel):
    """The forms of the keys that judge reads. Each gate is checked by itself (`Gate.from_json`)."""

    questions: dict[str, str] = {}
    rubrics: dict[str, str] = {}
    own_rubrics: dict[str, dict[str, Any]] = {}
    identities: dict[str, dict[str, Any]] = {}
    rankings: dict[str, dict[str, tuple[str, str]]] = {}
    settings: _Settings = _Settings()


_DESCRIPTION = TypeAdapter(dict[Annotated[str, Field(pattern="^[0-9a-f]{16}$")], _Content])


def description_file(out: Path) -> Path:
    """The file beside OUT that describes, by fingerprint, how its lines were made; for a gzipped
    OUT, that of the plain one."""
    return out.parent / f"{out.name.removesuffix('.gz')}.run.json"


def read_description(*outs: str | Path) -> dict[str, Any]:
    """How the lines of files, or judgements in memory, were made, by fingerprint; empty if judge
    wrote no description."""
    parts = (out.runs if isinstance(out, InMemory) else _known(Path(out)) for out in outs)
    runs: dict[str, Any] = {}
    for mark, run in chain.from_iterable((part or {}).items() for part in parts):
        # A run of which one file is unfinished is so.
        if not runs.get(mark, {}).get(UNFINISHED):
            runs[mark] = run
    return runs


def described(out: Path) -> bool:
    """Whether OUT has a description, which a run writes before its first line."""
    return _description(out) is not None


def _known(out: Path) -> dict[str, Any]:
    content = _description(out)
    if content is None and description_file(out).is_file():
        _log.warning(
            "judge: %s is damaged, or was not written by judge: the questions, gates and settings "
            "of the run are not known",
            description_file(out),
        )
    return content or {}


def _description(out: Path) -> dict[str, Any] | None:
    """The content of OUT's description; None if there is none, or not in the form of judge's."""
    try:
        content: dict[str, Any] = json.loads(description_file(out).read_bytes())
        _DESCRIPTION.validate_python(content)
    except (OSError, ValueError, RecursionError):
        return None
    return content


def write_description(out: Path, runs: Mapping[str, Any]) -> None:
    """Write how the lines of OUT were made.

    Raises:
        JudgeError: the description cannot be written.
    """
    path = description_file(out)
    try:
        write_whole(path, json.dumps(runs, ensure_ascii=True, indent=1).encode() + b"\n")
    except OSError as error:
        raise unwritable(f"{path} cannot be written", error) from error


def refuse_foreign_description(out: Path) -> None:
    """Raises UsageError if the file with the name of OUT's description was not written by judge."""
    path = description_file(out)
    if path.is_dir() or (path.is_file() and path.stat().st_size and not described(out)):
        raise UsageError(
            f"{path} was not written by judge, and judge describes {out} in a file of "
            "that name: rename it, or name another file with -o"
        )


@dataclass(frozen=True)
class RunDescription:
    """How the lines of one fingerprint were made; `content` is the JSON object, {} if not known."""

    content: Mapping[str, Any]

    @property
    def questions(self) -> Mapping[str, str]:
        """The questions in words, by check."""
        questions: Mapping[str, str] = self.content.get("questions", {})
        return questions

    @cached_property
    def own_rubrics(self) -> Mapping[str, Rubric]:
        """The user's own rubrics by name; raises UsageError if one cannot be read."""
        contents = self.content.get("own_rubrics", {})
        return {name: Rubric.from_dict(keys) for name, keys in contents.items()}

    @cached_property
    def rubrics(self) -> Mapping[str, Rubric]:
        """All rubrics by name, except shipped ones that have changed since; raises as
        `own_rubrics`."""
        digests = self.content.get("rubrics", {})
        shipped = {n: builtin().get(n) or ready(n) for n in digests if n not in self.own_rubrics}
        same = {name: r for name, r in shipped.items() if r and r.digest == digests[name]}
        return {**self.own_rubrics, **same}

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The columns that were read as fields, by the field's name."""
        return dict(pair.split("=", 1) for pair in self.content.get("settings", {}).get("map", ()))

    @property
    def gates(self) -> list[Gate]:
        gates = self.content.get("gates")
        contents = map(Gate.from_json, gates if isinstance(gates, list) else ())
        return [gate for gate in contents if gate is not None]

    @property
    def rankings(self) -> Mapping[str, Mapping[str, Any]]:
        """By ranking, the fields that each of its pairs compares."""
        rankings: Mapping[str, Mapping[str, Any]] = self.content.get("rankings", {})
        return rankings

    @property
    def unfinished(self) -> bool:
        """Whether the run was stopped before the end of its input, or is still going."""
        return self.content.get(UNFINISHED) is True


@dataclass(frozen=True)
class RunDescriptions:
    """The descriptions of runs, by fingerprint, and what they say together; of two that say
    something about one name, the later counts."""

    by_fingerprint: Mapping[str, RunDescription] = field(default_factory=dict)

    @classmethod
    def beside(cls, *outs: str | Path) -> Self:
        """Those beside files of output lines, or of judgements in memory."""
        return cls.from_json(read_description(*outs))

    @classmethod
    def from_json(cls, runs: Mapping[str, Mapping[str, Any]]) -> Self:
        """Those of a description's content."""
        return cls({mark: RunDescription(content) for mark, content in runs.items()})

    def of(self, fingerprint: str | None) -> RunDescription:
        return self.by_fingerprint.get(fingerprint or "", RunDescription({}))

    def among(self, fingerprints: Iterable[str | None]) -> Self:
        """Those of these fingerprints, in their order."""
        marks = [mark for mark in fingerprints if mark in self.by_fingerprint]
        return type(self)({mark: self.by_fingerprint[mark] for mark in marks if mark is not None})

    @property
    def _runs(self) -> Collection[RunDescription]:
        return self.by_fingerprint.values()

    @property
    def questions(self) -> Mapping[str, str]:
        return _joined(run.questions for run in self._runs)

    @property
    def own_rubrics(self) -> Mapping[str, Rubric]:
        """Raises UsageError if one cannot be read."""
        return _joined(run.own_rubrics for run in self._runs)

    @property
    def rubrics(self) -> Mapping[str, Rubric]:
        """Raises UsageError if one cannot be read."""
        return _joined(run.rubrics for run in self._runs)

    @property
    def columns(self) -> Mapping[str, str]:
        return _joined(run.columns for run in self._runs)

    @property
    def gates(self) -> list[Gate]:
        """The gates, each once."""
        return [*dict.fromkeys(chain.from_iterable(run.gates for run in self._runs))]

    @property
    def rankings(self) -> Mapping[str, Mapping[str, Any]]:
        names = dict.fromkeys(name for run in self._runs for name in run.rankings)
        return {n: _joined(run.rankings.get(n, {}) for run in self._runs) for n in names}

    @property
    def unfinished(self) -> bool:
        return any(run.unfinished for run in self._runs)


def _joined(parts: Iterable[Mapping[str, T]]) -> Mapping[str, T]:
    return {name: content for part in parts for name, content in part.items()}
