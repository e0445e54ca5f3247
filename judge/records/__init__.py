"""Records, and their readers and writers."""

from judge.records.base import RESERVED, Problem, SeenIds, clip, content_hash, is_verdict
from judge.records.jsonfiles import dump, dump_judged, shortened
from judge.records.kinds import RECORD, ListEntry, RecordKind, recognise
from judge.records.read import MAX_LINE, mapped, read, renamed
from judge.records.record import Record
from judge.records.values import from_memory

__all__ = [
    "MAX_LINE",
    "RECORD",
    "RESERVED",
    "ListEntry",
    "Problem",
    "Record",
    "RecordKind",
    "SeenIds",
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
