"""How right one answer to a CQ-Bench question is, and what the released script makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from judge.evaluation.cqbench_options import folded

AT_MOST = 10
"""The most values that an extraction may give (CQ-Bench, section 2.2)."""

_ALIKE = 15


@dataclass(frozen=True, slots=True)
class Hits:
    """One selection: how many right options were given, of how many given, of how many right."""

    hits: int
    given: int
    right: int

    @property
    def precision(self) -> float | None:
        """hits / given, in [0, 1]; None where nothing is given."""
        return self.hits / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """hits / right, in [0, 1]; None where nothing is right."""
        return self.hits / self.right if self.right else None

    @property
    def f1(self) -> float | None:
        """2 hits / (given + right), the harmonic mean of the two; None where both are 0."""
        both = self.given + self.right
        return 2 * self.hits / both if both else None


def selection_hits(given: Sequence[str], gold: Sequence[str]) -> Hits:
    """Compare the options given with the right ones; case, blanks and repetition count nothing."""
    found, right = {folded(text) for text in given}, {folded(text) for text in gold}
    return Hits(len(found & right), len(found), len(right))


def as_released(given: Sequence[str], options: Sequence[str]) -> list[str] | None:
    """The entries of a selection as CQ-Bench's released script reads them.

    An entry counts if it has `--`, as the option that shares its longest stretch of more than 15
    characters (the first of equals), else as itself: a wrong one. Repetitions are dropped. None
    where there are entries and none counts: the script leaves such an item out.
    """
    read = [entry for entry in given if entry.strip()]
    counted = [_nearest(entry, options) for entry in read if "--" in entry]
    if read and not counted:
        return None
    return list(dict.fromkeys(counted))


def _nearest(entry: str, options: Sequence[str]) -> str:
    text, longest, found = entry.lower(), _ALIKE, entry
    for option in options:
        other = option.lower()
        match = SequenceMatcher(None, text, other, autojunk=False).find_longest_match()
        if match.size > longest:
            longest, found = match.size, option
    return found


def extraction_recall(credits: Sequence[float | None]) -> float | None:
    """The mean credit (1, 0.5 or 0) over the gold values that are settled; None where none is.

    CQ-Bench, section 3.1: recall, with the score function S.
    """
    settled = [credit for credit in credits if credit is not None]
    return sum(settled) / len(settled) if settled else None
