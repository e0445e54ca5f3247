"""Records that were judged before, under the same fingerprint, by the same code.

Replies are cached one by one, and judging a record again from them gives the same line again; that
takes three milliseconds of rendering, validating and voting. So what a record's line says is cached
as a whole, too (docs/decisions/0013-record-replay.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeGuard

import orjson
from pydantic import BaseModel, ValidationError

from judge.cache import ReplyCache
from judge.digest import digest
from judge.records import Record, content_hash, dump_judged
from judge.run.lines import FINISHED, Line
from judge.run.setup import Bound
from judge.verdict import Verdict


class Replays:
    """The cached lines of whole records.

    Args:
        prices: what calls cost, by model; it is in the lines, and not in the fingerprint.
    """

    def __init__(self, cache: ReplyCache, prices: Mapping[str, Any]) -> None:
        self._cache = cache
        self._prices = prices
        self.count = 0

    def find(self, record: Record, bound: Bound) -> Line | None:
        """The line that this record got before; None if it was never judged like this."""
        found = self._cache.get(self._key(record, bound)) if _ours(bound) else None
        if found is None:
            return None
        judgement, changed = found.get("judgement"), found.get("changed")
        if not (isinstance(changed, dict) and _sound(judgement, bound)):
            return None
        self.count += 1
        judgement["models"] = bound.models
        return Line(dump_judged({**record.with_changes({}), **changed}, judgement), judgement)

    async def keep(self, record: Record, line: Line, bound: Bound) -> None:
        """Remember a line; not one with a vote lost to a fault, which is asked again next time."""
        if not _ours(bound) or line.judgement["verdict"] not in FINISHED or _lost(line.judgement):
            return
        judgement = {**line.judgement, "models": None}
        repaired = line.judgement.get("original")
        written = json.loads(line.text) if repaired else {}
        value = {"judgement": judgement, "changed": {key: written[key] for key in repaired or ()}}
        await self._cache.store(self._key(record, bound), _as_text(value), tag="record")

    def _key(self, record: Record, bound: Bound) -> str:
        return digest(
            {
                "kind": "record",
                "code": code_digest(),
                "fingerprint": bound.fingerprint,
                "prices": self._prices,
                "record": content_hash(record.fields),
            }
        )


class _Check(BaseModel):
    check: str
    verdict: Verdict
    votes: list[dict[str, Any]]


class _Edit(BaseModel):
    check: str
    before: str
    after: str
    values: list[str]


class _Usage(BaseModel):
    replies: int
    input_tokens: int
    output_tokens: int


class _Judgement(BaseModel):
    """What the run itself reads of a judgement."""

    verdict: Literal[tuple(FINISHED)]  # type: ignore[valid-type]
    workflow: str
    fingerprint: str
    checks: list[_Check]
    edits: list[_Edit]
    usage: _Usage
    dropped: list[Any] = []
    error: None = None


def _sound(judgement: object, bound: Bound) -> TypeGuard[dict[str, Any]]:
    """Whether it can be what was kept for this very question: others may write to the folder."""
    try:
        read = _Judgement.model_validate(judgement)
    except ValidationError:
        return False
    return read.workflow == bound.workflow.name and read.fingerprint == bound.fingerprint


def _as_text(value: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value)


def _ours(bound: Bound) -> bool:
    """Whether the workflow is one whose code `code_digest` covers."""
    return bound.workflow.finish.__module__.split(".")[0] == __name__.split(".")[0]


def _lost(judgement: Mapping[str, Any]) -> bool:
    return any(
        vote["verdict"] == Verdict.ERROR for check in judgement["checks"] for vote in check["votes"]
    )


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Over this package's modules: whatever a change of them changes is judged anew."""
    whole = hashlib.blake2b(digest_size=16)
    for package in ("judge", "judge.graphs"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).rglob("*.py")):
                whole.update(path.read_bytes())
    return whole.hexdigest()
