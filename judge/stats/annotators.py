"""How well single annotators did, and whose labels a cut-off drops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Annotator:
    """One annotator's record.

    `labels` is the number of labels given; `right` of `controls` control questions were answered
    as known; `contradictory` of `pairs` pairs of statements that cannot both hold were both
    affirmed.
    """

    name: str
    labels: int = 0
    controls: int = 0
    right: int = 0
    pairs: int = 0
    contradictory: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share of control questions answered right; None without any."""
        return self.right / self.controls if self.controls else None

    @property
    def contradiction_rate(self) -> float | None:
        """The share of such pairs that were both affirmed; None without any."""
        return self.contradictory / self.pairs if self.pairs else None

    def as_json(self) -> dict[str, Any]:
        """The counts and both shares."""
        shares = {"accuracy": self.accuracy, "contradiction_rate": self.contradiction_rate}
        return asdict(self) | {
            name: None if share is None else round(share, 6) for name, share in shares.items()
        }


def assess(
    labels: Iterable[tuple[str, str]],
    controls: Iterable[tuple[str, str, str]] = (),
    pairs: Iterable[tuple[str, bool, bool]] = (),
) -> dict[str, Annotator]:
    """Every annotator's record, in the order in which they first appear.

    CALI (B.3) plants 15 % control questions with a known answer, and shows three hypotheses at once
    so that ratings which cannot both be meant (two contradictory ones "very likely true") give an
    annotator away.

    Args:
        labels: (annotator, answer) of every label.
        controls: (annotator, answer, known answer) of control questions.
        pairs: (annotator, affirmed the one, affirmed the other) of statements that exclude each
            other.
    """
    found: dict[str, Annotator] = {}

    def record(name: str) -> Annotator:
        return found.setdefault(name, Annotator(name))

    for name, _ in labels:
        record(name).labels += 1
    for name, answer, known in controls:
        record(name).controls += 1
        record(name).right += answer == known
    for name, one, other in pairs:
        record(name).pairs += 1
        record(name).contradictory += one and other
    return found


def below(
    annotators: Iterable[Annotator],
    accuracy: float | None = None,
    *,
    contradictions: float | None = None,
) -> list[Annotator]:
    """The annotators to drop, worst accuracy first; each says how many labels go with it.

    One is dropped whose accuracy on control questions is below `accuracy` (CALI, B.3: 60 %, which
    took 16 % of its labels), or whose contradiction rate is above `contradictions`. Who answered
    no control question, or no such pair, is not judged by it. A limit of None judges nobody.
    """
    dropped = [
        one
        for one in annotators
        if (accuracy is not None and one.accuracy is not None and one.accuracy < accuracy)
        or (
            contradictions is not None
            and one.contradiction_rate is not None
            and one.contradiction_rate > contradictions
        )
    ]
    return sorted(
        dropped, key=lambda one: (1.0 if one.accuracy is None else one.accuracy, one.name)
    )
