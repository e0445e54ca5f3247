"""Does a quote stand in a text, and where?"""

from __future__ import annotations

from dataclasses import dataclass

FUZZY_BOUND = 90.0
"""Least rapidfuzz partial ratio (0 to 100) at which an inexact quote counts as standing in the text."""

FUZZY_LENGTH = 20
"""Quotes shorter than this many characters must stand in the text exactly."""

_FOLDS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u0060\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
}


@dataclass(frozen=True, slots=True)
class Span:
    """Where a quote stands: half-open character offsets into the text, and how alike it is (0-100)."""

    start: int
    end: int
    score: float


def fold(text: str) -> tuple[str, list[int]]:
    """Text with white space, quotes and dashes made alike, and each character's place in `text`."""
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                places.append(place)
            continue
        for folded in _FOLDS.get(char, char):
            out.append(folded)
            places.append(place)
    return "".join(out), places


def locate(quote: str, text: str) -> Span | None:
    """The first place where `quote` stands in `text`, or None.

    Exact after folding white space, quotes and dashes, and without quotation marks around it;
    else the best fuzzy match, if the quote has at least `FUZZY_LENGTH` characters and the match
    scores at least `FUZZY_BOUND`.
    """
    wanted = fold(quote)[0].strip().strip('"').strip()
    if not wanted:
        return None
    folded, places = fold(text)
    at = folded.find(wanted)
    if at >= 0:
        return Span(places[at], places[at + len(wanted) - 1] + 1, 100.0)
    if len(wanted) < FUZZY_LENGTH or not folded:
        return None
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(wanted, folded, score_cutoff=FUZZY_BOUND)
    if found is None or found.dest_end <= found.dest_start:
        return None
    return Span(places[found.dest_start], places[found.dest_end - 1] + 1, found.score)
