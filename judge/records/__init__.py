"""Records, and their readers and writers."""

from judge.records.base import (
    RESERVED,
    Item,
    Problem,
    SeenIds,
    clip,
    content_hash,
    is_verdict,
    mapped,
    renamed,
)
from judge.records.jsonfiles import dump, dump_judged, shortened
from judge.records.kinds import Kind, Record, build, recognise
from judge.records.read import MAX_LINE, read
from judge.records.tables import from_memory
from judge.records.values import Value

__all__ = [
    "MAX_LINE",
    "RESERVED",
    "Item",
    "Kind",
    "Problem",
    "Record",
    "SeenIds",
    "Value",
    "build",
    "clip",
    "content_hash",
    "dump",
    "dump_judged",
    "from_memory",
    "is_verdict",
    "mapped",
    "read",
    "recognise",
    "renamed",
    "shortened",
]
