"""`--review`: the lines of records that need people, at the end the most informative first.

While a run goes on lines are added as they come, so that an interrupted run loses none. Of each a
number and its place in the file are remembered, not the line.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import unwritable
from judge.run.lines import Line
from judge.run.output import Sink, replacing
from judge.verdict import Verdict

_BEHIND = {str(Verdict.ABSTAIN): 1.0, str(Verdict.UNREADABLE): 2.0, str(Verdict.ERROR): 3.0}
"""Ranks of lines without a probability, behind all that have one."""


def rank(judgement: Mapping[str, Any]) -> float:
    """How much a person's answer tells, least first: of the check nearest to an even chance, how
    far from it P(pass) is (0 to 0.5); without any, or without an answer, see `_BEHIND`."""
    behind = _BEHIND.get(judgement["verdict"], 3.0)
    if behind > 1:
        return behind
    last = {check["check"]: check for check in judgement.get("checks", ())}
    known = (check.get("probability") for check in last.values())
    return min((round(abs(chance - 0.5), 6) for chance in known if chance is not None), default=1.0)


class Review(Sink):
    """The file of `--review`; arguments and errors as for `Sink`."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        super().__init__(path, fresh=fresh, flag="--review")
        self._ranks, self._starts = array("d"), array("q")

    def add(self, line: Line) -> None:
        """Write one line at the end; raises as `write` does."""
        self.start()
        self._ranks.append(rank(line.judgement))
        self._starts.append(self.size)
        self.write(line.text)

    def sort(self) -> None:
        """Put the most informative lines first, others as they came; once, before it is closed.

        Raises:
            JudgeError: the file cannot be written anew, and is as it was.
        """
        order = sorted(range(len(self._ranks)), key=self._ranks.__getitem__)
        in_order = order == list(range(len(order)))
        if in_order or not self.regular or self.path is None or self.fault():
            return
        # A link stays one: it is the file behind it that is written anew.
        path = self.path.resolve()
        try:
            with path.open("rb") as old, replacing(path) as new:
                for place in order:
                    old.seek(self._starts[place])
                    new.write(old.readline())
        except OSError as error:
            raise unwritable(f"{self.path} cannot be put in order", error) from error
