"""The records that people decided, counted by the judges' verdict and the final one."""

from __future__ import annotations

from collections import Counter

from judge.records.lines import Line
from judge.verdict import SETTLED, Verdict


class ByPeople(Counter[tuple[Verdict, Verdict]]):
    """Counts of records of which people decided a check, by the verdict of the judges' checks and
    that of the record."""

    def add(self, line: Line) -> None:
        """Count a line, if people decided it."""
        if line.decided and (was := line.judgement().judges_verdict):
            self[was, Verdict(line.verdict)] += 1

    @property
    def changed(self) -> dict[tuple[Verdict, Verdict], int]:
        """The counts of records whose verdict people changed, most frequent first."""
        return {(was, now): n for (was, now), n in self.most_common() if was != now}

    @property
    def overturned(self) -> int:
        """Records that judges had decided and people decided otherwise."""
        return sum(n for (was, _), n in self.changed.items() if was in SETTLED)

    @property
    def left_open(self) -> int:
        """Records that people decided because judges had not."""
        return sum(n for (was, _), n in self.items() if was not in SETTLED)

    def __str__(self) -> str:
        changes = [f"{n} from {was} to {now}" for (was, now), n in self.changed.items()]
        records = f"{self.total()} record{'s' * (self.total() != 1)}"
        return f"people decided {records}; verdicts changed: {', '.join(changes) or 'none'}"

    def as_json(self) -> dict[str, int]:
        return {"records": self.total(), "changed": sum(self.changed.values())}
