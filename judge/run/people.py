"""The records that people decided, counted by the judges' verdict and the final one."""

from __future__ import annotations

from collections import Counter

from judge.records.lines import Line
from judge.verdict import PERSON, SETTLED, Verdict, last_of_each


class ByPeople(Counter[tuple[Verdict, Verdict]]):
    """Counts of records of which people decided a check, by the verdict of the judges' checks and
    that of the record. `overturned` counts the checks that judges had decided and people decided
    otherwise, `left_open` those that judges had not decided."""

    overturned = left_open = 0

    def add(self, line: Line) -> None:
        """Count a line, if people decided it."""
        if not line.decided or (was := (judgement := line.judgement()).judges_verdict) is None:
            return
        self[was, Verdict(line.verdict)] += 1
        for check in last_of_each(judgement.checks):
            if check.by == PERSON and (judged := judgement.by_people[check.name]) is not None:
                settled = judged.verdict in SETTLED
                self.overturned += settled and judged.verdict != check.verdict
                self.left_open += not settled

    @property
    def changed(self) -> dict[tuple[Verdict, Verdict], int]:
        """The counts of records whose verdict people changed, most frequent first."""
        return {(was, now): n for (was, now), n in self.most_common() if was != now}

    def __str__(self) -> str:
        changes = [f"{n} from {was} to {now}" for (was, now), n in self.changed.items()]
        records = f"{self.total()} record{'s' * (self.total() != 1)}"
        return f"people decided {records}; verdicts changed: {', '.join(changes) or 'none'}"

    def as_json(self) -> dict[str, int]:
        return {"records": self.total(), "changed": sum(self.changed.values())}
