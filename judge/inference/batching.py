"""The calls that wait for a model, and which of them go through it together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from judge.inference.jobs import Job
from judge.inference.prefix import common

MOST_WRITING = 64
"""Replies written at once."""

_REMEMBERED = 100_000
"""Records whose place in the line is known; those seen first are forgotten first."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a batch may hold.

    `tokens` to evaluate, `prompts`, `rows` of keys that are looked at, and, where replies are
    written, `kept`: the tokens of prompts and replies together.
    """

    tokens: int
    prompts: int
    rows: int
    kept: int


class Line:
    """Jobs in the order in which their records first came.

    A record's later questions go before the first ones of records that came after it, so records
    are finished one after another, and what is held of them is used before it must go.
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._records: OrderedDict[str, int] = OrderedDict()
        self._came = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: Job) -> None:
        self._came += 1
        place = self._came
        if job.record:
            place = self._records.setdefault(job.record, place)
            if len(self._records) > _REMEMBERED:
                self._records.popitem(last=False)
        job.order = (place, self._came)
        self._jobs.append(job)

    def take(self, room: Room, covered: Callable[[Job], int]) -> list[Job]:
        """Remove and give the next batch: all read, or all write, as the first in line does.

        A job that alone is larger than the room is a batch by itself.

        Args:
            covered: how many of a job's tokens need not be evaluated.
        """
        self._jobs = [job for job in self._jobs if not job.cancelled]
        self._jobs.sort(key=lambda job: job.order)
        taken: list[Job] = []
        tokens = rows = kept = 0
        for job in self._jobs:
            if taken and job.writes != taken[0].writes:
                continue
            tokens += _cost(job, taken, covered)
            rows += len(job.tokens)
            kept += len(job.tokens) + job.max_tokens if job.writes else 0
            most = MOST_WRITING if job.writes else room.prompts
            full = tokens > room.tokens or rows > room.rows or kept > room.kept
            if taken and (full or len(taken) >= most):
                break
            taken.append(job)
        chosen = {id(job) for job in taken}
        self._jobs = [job for job in self._jobs if id(job) not in chosen]
        return taken

    def tokens(self) -> int:
        """About how many tokens wait to be evaluated: each record's longest prompt, once."""
        longest: dict[str, int] = {}
        alone = 0
        for job in self._jobs:
            if job.record:
                longest[job.record] = max(longest.get(job.record, 0), len(job.tokens))
            else:
                alone += len(job.tokens)
        return alone + sum(longest.values())

    def drain(self) -> list[Job]:
        """Remove and give all."""
        jobs, self._jobs = self._jobs, []
        return jobs


def _cost(job: Job, taken: list[Job], covered: Callable[[Job], int]) -> int:
    """Tokens that the job adds to a batch; a record's jobs stand next to one another."""
    known = covered(job)
    if taken and job.record and taken[-1].record == job.record:
        known = max(known, common(job.tokens, taken[-1].tokens))
    return len(job.tokens) - known
