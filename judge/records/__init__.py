"""Typed records, and their readers and writers."""

from judge.records.base import RESERVED, Item, Problem, content_hash
from judge.records.ids import SeenIds
from judge.records.kinds import (
    AnyRecord,
    ExtractionRecord,
    Kind,
    NormRecord,
    Record,
    StoryRecord,
    build,
    recognise,
)
from judge.records.read import FORMATS, MAX_LINE, read
from judge.records.values import BadValueError, Value
from judge.records.write import dump, dump_judged

__all__ = [
    "FORMATS",
    "MAX_LINE",
    "RESERVED",
    "AnyRecord",
    "BadValueError",
    "ExtractionRecord",
    "Item",
    "Kind",
    "NormRecord",
    "Problem",
    "Record",
    "SeenIds",
    "StoryRecord",
    "Value",
    "build",
    "content_hash",
    "dump",
    "dump_judged",
    "read",
    "recognise",
]
