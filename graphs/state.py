"""What a record carries through a workflow of checks and rewrite loops."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from judge.subject import Subject
from judge.verdict import Check, Edit, Usage


class RecordState(TypedDict):
    """The state of the story, norm and extraction graphs.

    `subject` is the record as it now stands; `round` counts the asks of the loop under way;
    `notes` say why a rewrite loop gave up; `usage` is what rewriting and locating took.
    """

    original: Subject
    subject: Subject
    round: int
    checks: Annotated[list[Check], operator.add]
    edits: Annotated[list[Edit], operator.add]
    notes: Annotated[list[str], operator.add]
    usage: Annotated[list[Usage], operator.add]


def begin(subject: Subject) -> RecordState:
    """The state in which a record enters its workflow."""
    return RecordState(
        original=subject, subject=subject, round=1, checks=[], edits=[], notes=[], usage=[]
    )


def total_usage(state: RecordState) -> Usage:
    """What all asks of the record took together."""
    return sum((check.usage for check in state["checks"]), sum(state["usage"], Usage()))
