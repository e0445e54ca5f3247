"""Where the quotes of one record's findings stand in its texts, each place with its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judge.evidence import Span as Found
from judge.evidence import fold, locate
from judge.report.text import Piece, Span, Tone, pieces
from judge.verdict import Edit, Finding

MOST = 100
"""Quotes of one record that are looked for."""

_LONGEST = 2_000
"""Characters of a quote that are looked for: an inexact search takes their product with the
text's."""

MOST_WORK = 1_000_000_000
"""Characters of quotes times those of texts, over all inexact searches of one record: about a
second. Beyond it quotes are looked for word for word."""

Place = tuple[str, str]
"""A text of the record: `now` or `before` (it was rewritten), and the name of its field."""


@dataclass(slots=True)
class Quotes:
    """Finds quotes in texts and numbers the places from 1, the same place once.

    Args:
        texts: what is shown of each text, in the order in which they are searched.
        cut: whether some of the texts are shown in part only.
    """

    texts: Mapping[Place, str]
    edits: Sequence[Edit]
    cut: bool
    _seen: dict[str, tuple[Place, int, int] | None] = field(default_factory=dict)
    _numbers: dict[tuple[Place, int, int], int] = field(default_factory=dict)
    _tones: dict[tuple[Place, int, int], Tone] = field(default_factory=dict)
    _work: int = 0

    def note(self, finding: Finding) -> tuple[int | None, str | None]:
        """The number of the finding's quote, or why there is none; both None without a quote."""
        quote = finding.quote
        if quote is None or not quote.strip():
            return None, None
        if quote not in self._seen:
            if len(self._seen) == MOST:
                return None, f"not looked for: the record has more than {MOST} quotes"
            self._seen[quote] = self._find(quote[:_LONGEST])
        found = self._seen[quote]
        if found is None:
            return None, self._why_not(quote)
        if finding.verdict != "pass" or found not in self._tones:
            self._tones[found] = "for" if finding.verdict == "pass" else "against"
        return self._numbers.setdefault(found, len(self._numbers) + 1), None

    def marked(self, place: Place) -> list[Piece]:
        """The text at a place, with all quotes noted so far."""
        spans = [
            Span(start, end, number, self._tones[where, start, end])
            for (where, start, end), number in self._numbers.items()
            if where == place
        ]
        return pieces(self.texts[place], spans)

    def _find(self, quote: str) -> tuple[Place, int, int] | None:
        for time in ("now", "before"):
            best, score = None, 0.0
            for place, text in self.texts.items():
                span = self._located(quote, text) if place[0] == time else None
                if span is not None and span.score > score:
                    best, score = (place, span.start, span.end), span.score
            if best is not None:
                return best
        return None

    def _why_not(self, quote: str) -> str:
        if any(self._located(quote[:_LONGEST], edit.before) for edit in self.edits):
            return "stood in the text before it was rewritten"
        if any(self._located(quote[:_LONGEST], edit.after) for edit in self.edits):
            return "stood in a rewrite that was rewritten again"
        if self.cut:
            return "not in the part of the text that is shown"
        if self._work > MOST_WORK:
            return "does not stand in the text word for word; no more was looked for"
        return "does not stand in the text"

    def _located(self, quote: str, text: str) -> Found | None:
        # Each search has a bound of its own; a line may ask for thousands of them.
        if self._work > MOST_WORK and fold(quote) not in fold(text):
            return None
        self._work += len(quote) * len(text)
        return locate(quote, text)
