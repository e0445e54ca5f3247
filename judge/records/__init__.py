"""Records, and their readers and writers."""

from judge.records.base import RESERVED, Problem, SeenIds, clip, content_hash, is_verdict
from judge.records.jsonfiles import dump, dump_judged, shortened
from judge.records.kinds import Kind, recognise
from judge.records.read import MAX_LINE, mapped, read, renamed
from judge.records.record import Record
from judge.records.tables import from_memory
from judge.records.values import Value

__all__ = [
    "MAX_LINE",
    "RESERVED",
    "Kind",
    "Problem",
    "Record",
    "SeenIds",
    "Value",
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
