"""One output line as data that a page's script draws."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judge.judgement import Judgement
from judge.questions.evidence import Span, locate
from judge.records.kinds import normalise
from judge.records.lines import Line
from judge.records.text import shown
from judge.report.text import changes
from judge.verdict import Answer, Check, Verdict
from judge.voting import Opinion

LARGEST = 400_000
"""Most characters of JSON of a record that is shown whole; of a larger one only a summary is."""

_PROSE = 80
"""A text of more characters, or of several lines, is set as prose."""

MOST_WORK = 10_000_000
"""Most characters of one record that are searched word by word for quotes: a few seconds."""

TextKey = tuple[str, str]
"""A text of the record: `now` or `before` (it was rewritten), and the name of its field."""

Piece = tuple[str, str, list[int]]
"""A piece of a text, its tone (`against` what was wanted, or `for`; `against` where both overlap,
empty without a quote), and the numbers of the quotes that end with it."""


@dataclass(slots=True)
class Mark:
    """A quote found in a text (half-open offsets), its number and its tone."""

    place: TextKey
    start: int
    end: int
    number: int
    tone: str = "for"


class Quotes:
    """Finds quotes in texts, in order, and numbers their places from 1; equal places share a
    number."""

    def __init__(self, texts: Mapping[TextKey, str]) -> None:
        self._texts = texts
        self._by_quote: dict[str, Mark | str] = {}
        self._marks: dict[tuple[TextKey, int, int], Mark] = {}
        self._work = 0

    def note(self, finding: Answer) -> tuple[int | None, str | None]:
        """The number of the finding's quote, or why there is none; both None without a quote."""
        quote = finding.quote
        if quote is None or not quote.strip():
            return None, None
        if quote not in self._by_quote:
            self._by_quote[quote] = self._find(quote)
        mark = self._by_quote[quote]
        if isinstance(mark, str):
            return None, mark
        if finding.verdict not in (Verdict.PASS, Verdict.ANSWERED):
            mark.tone = "against"
        return mark.number, None

    @property
    def places(self) -> dict[str, int | str]:
        """The number of each quote noted so far, or why it has none."""
        marks = self._by_quote.items()
        return {quote: mark if isinstance(mark, str) else mark.number for quote, mark in marks}

    def marked(self, place: TextKey) -> str | list[Piece]:
        """The text at a place in pieces, with all quotes noted so far; whole, where it has none."""
        text = self._texts[place]
        marks = [mark for mark in self._marks.values() if mark.place == place]
        if not marks:
            return text
        cuts = sorted({0, len(text), *(m.start for m in marks), *(m.end for m in marks)})
        pieces = []
        for start, end in pairwise(cuts):
            tones = {mark.tone for mark in marks if mark.start <= start and end <= mark.end}
            ends = [mark.number for mark in marks if mark.end == end]
            pieces.append((text[start:end], min(tones, default=""), ends))
        return pieces

    def _find(self, quote: str) -> Mark | str:
        """The quote's place, or why it has none: in the first text that holds it letter for letter,
        else in the first that holds it nearly."""
        for place, text in sorted(self._texts.items(), key=lambda pair: quote not in pair[1]):
            if (span := self._located(quote, text)) is not None:
                mark = Mark(place, span.start, span.end, len(self._marks) + 1)
                return self._marks.setdefault((place, span.start, span.end), mark)
        if self._work > MOST_WORK:
            return "is not in the text word for word; judge searched no further"
        return "is not in the text, neither now nor as it came in"

    def _located(self, quote: str, text: str) -> Span | None:
        if (at := text.find(quote)) >= 0:  # Quotes of hostile text may be parts of words.
            return Span(at, at + len(quote))
        if self._work > MOST_WORK:  # A line may ask for thousands of searches.
            return None
        self._work += len(text) + len(quote)
        return locate(quote, text)


def drawn(line: Line, judgement: Judgement, asked: Collection[str] = ()) -> dict[str, Any]:
    """The JSON that a script draws of an output line. `asked` has the (normalised) names of the
    fields that judges were shown, as far as they are known.

    `judge` is the judgement as in its line, but each edit as its `changes`, and each check with
    what it `said` and whether its votes are `split`. `texts` are the record's, each as (name, text
    or its marked pieces, whether it is prose): fields of `asked` first, then prose, then texts with
    quotes. `before` are the texts that were rewritten, `quotes` the number of each quote or why it
    has none. A line larger than `LARGEST` has only a summary.
    """
    about = {"id": line.name, "source": line.source, "line": line.number}
    size = len(json.dumps([line.fields, line.content], ensure_ascii=False))
    if size > LARGEST:
        brief = {"verdict": judgement.verdict, "reason": judgement.reason}
        return {**about, "size": size, "judge": brief}
    values = {("now", key): c for key, c in line.fields.items() if normalise(key) != "id"}
    values |= {("before", key): content for key, content in judgement.original.items()}
    texts = {place: _text(content) for place, content in values.items()}
    quotes = Quotes(texts)
    # All quotes are noted first, so that every text is marked with all of them.
    for check in judgement.checks:
        for finding in (*check.evidence, *(f for vote in check.votes for f in vote.evidence)):
            quotes.note(finding)
    for finding in judgement.contradictions:
        quotes.note(finding)
    fields: dict[str, list[tuple[str, str | list[Piece], bool]]] = {"now": [], "before": []}
    for place, text in texts.items():
        prose = not _is_texts(values[place]) and (len(text) > _PROSE or "\n" in text)
        fields[place[0]].append((place[1], quotes.marked(place), prose))
    told = judgement.as_json()
    for name in ("fingerprint", "usage", "original"):
        told.pop(name, None)
    for check, content in zip(judgement.checks, told.get("checks", ()), strict=True):
        content |= {"said": check.to_dict()["answer"], "split": differ(check)}
    for edit in told.get("edits", ()):
        edit["changes"] = changes(edit.pop("before"), edit.pop("after"))
    ordered = sorted(
        fields["now"],
        key=lambda field: (
            normalise(field[0]) not in asked,
            not field[2],
            isinstance(field[1], str),
        ),
    )
    parts = {"texts": ordered, "before": fields["before"], "quotes": [*quotes.places.items()]}
    return {**about, "judge": told, **parts}


def _is_texts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(entry, str) for entry in content)


def _text(content: Any) -> str:
    """The content as judges see it, a list of texts by line; as JSON if judges see nothing of
    it."""
    if content and _is_texts(content):
        return "\n".join(content)
    return shown(content).text or json.dumps(content, ensure_ascii=False)


def differ(check: Check) -> bool:
    """Whether a check's votes, without an explanation, say different things about the record or an
    entry: another verdict, answer or score."""
    opinions_of: dict[str | None, set[Opinion]] = defaultdict(set)
    for vote in check.votes:
        if vote.part != "explanation":
            for value, opinion in vote.counted_as(graded=True).items():
                opinions_of[value].add(opinion)
    return any(len(opinions) > 1 for opinions in opinions_of.values())


def probability(value: float | None) -> str:
    """To three places, but never rounded to 0 or 1; a dash where there is none."""
    if value is None:
        return "–"
    if 0 < value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"
