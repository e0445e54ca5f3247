"""How different the records of a set are: near-duplicates, distinct n-grams, capitalised words,
balance."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any
from unicodedata import normalize
from zlib import crc32

from judge.records.base import LabelError, at
from judge.records.lines import Line
from judge.records.words import words_of

SKETCH = 128
"""How many hashes a text's sketch has; the error of a similarity is about 1 / sqrt(SKETCH)."""

SHINGLE = 3
"""How many words the runs have by which texts are compared."""

NEAR = 0.8
"""Similarity from which two records count as near-duplicates."""

COMMON = 500
"""How many records a hash is indexed for, at most: a more common one distinguishes none."""

CANDIDATES = 5
"""How many earlier records a record is compared with: those most likely to be similar."""

_INSIDE = re.compile(r"(?:(?<=[^\W\d_] )|(?<=[,;] ))[^\W\d_]{2,}")
"""Words inside a sentence."""

_MOST_NAMES = 0.15
"""Largest share of words inside sentences that are capitalised for being names of people and
places; German also capitalises nouns, about one word in four."""


class Diversity:
    """Counts over the records of a set.

    Similarity is the share of three-word runs of two texts that both have (Jaccard), estimated by
    MinHash from the smallest hashes of each text (Broder 1997, "On the resemblance and containment
    of documents", section 4). It is in [0, 1].

    Args:
        text: the field that is compared.
        counted: fields whose values are counted.
        crossed: two of these fields, counted against each other.
    """

    def __init__(
        self, text: str, counted: Sequence[str], crossed: tuple[str, str] | None = None
    ) -> None:
        self.text, self.cross = text, crossed
        self.records = self.near = 0
        self.values: dict[str, Counter[str]] = {name: Counter() for name in counted}
        self.crossed: Counter[tuple[str, str]] = Counter()
        self._capitalised: Counter[str] = Counter()
        self._inside = self._capitals = 0
        self._sketches: list[tuple[str, frozenset[int]]] = []
        self._first: dict[frozenset[int], str] = {}
        self._with: dict[int, list[int]] = defaultdict(list)
        self._grams: dict[int, tuple[int, set[int]]] = {n: (0, set()) for n in (1, 2, 3)}

    def add(self, line: Line, most: float = 1.0) -> tuple[str, float] | None:
        """Count a record, unless it is more similar than `most` to an earlier one: that one's name,
        and the similarity, are then returned."""
        text = str(_content(line, self.text) or "")
        words = words_of(text)
        sketch = frozenset(sorted(_hashes(words, SHINGLE))[:SKETCH])
        nearest = self._nearest(sketch)
        if nearest is not None and nearest[1] > most:
            return nearest
        for mark in sketch:
            if len(self._with[mark]) < COMMON:
                self._with[mark].append(len(self._sketches))
        self.records += 1
        self.near += nearest is not None and nearest[1] >= NEAR
        self._sketches.append((line.name, sketch))
        self._first.setdefault(sketch, line.name)
        found = {name: list(_texts(_content(line, name))) for name in self.values}
        for name, values in found.items():
            self.values[name].update(values)
        if self.cross is not None:
            self.crossed.update(product(found[self.cross[0]], found[self.cross[1]]))
        inside = _INSIDE.findall(normalize("NFC", text))
        capitals = [word for word in inside if word[0].isupper()]
        self._capitalised.update(dict.fromkeys(capitals, 1))
        self._inside, self._capitals = self._inside + len(inside), self._capitals + len(capitals)
        for size, (total, grams) in self._grams.items():
            grams.update(_hashes(words, size))
            self._grams[size] = total + max(1, len(words) - size + 1), grams
        return None

    def _nearest(self, sketch: frozenset[int]) -> tuple[str, float] | None:
        """The name of the most similar earlier record, and the similarity: one with the same
        sketch, else the most similar of the `CANDIDATES` that share the most and rarest hashes;
        None if none shares any."""
        if sketch in self._first:
            return self._first[sketch], 1.0
        # What few records have tells more than a passage that all of a set have in common.
        likely: Counter[int] = Counter()
        for mark in sketch:
            with_mark = self._with.get(mark, ())
            for number in with_mark:
                likely[number] += COMMON // len(with_mark)
        best: tuple[str, float] | None = None
        for number, _ in likely.most_common(CANDIDATES):
            name, earlier = self._sketches[number]
            smallest = sorted(sketch | earlier)[:SKETCH]
            share = len(sketch & earlier & {*smallest}) / len(smallest)
            if best is None or share > best[1]:
                best = name, share
        return best

    @property
    def distinct(self) -> dict[int, float | None]:
        """The share of distinct runs among all runs of one, two and three words, over all texts
        (distinct-n; Li et al. 2016)."""
        return {n: len(grams) / of if of else None for n, (of, grams) in self._grams.items()}

    @property
    def capitalised(self) -> Counter[str] | None:
        """In how many texts each capitalised word is inside a sentence: mostly names of people and
        places. None if so many words are capitalised that these are no names."""
        meaningless = self._capitals > _MOST_NAMES * self._inside
        return None if meaningless else self._capitalised

    def as_json(self) -> dict[str, Any]:
        words = self.capitalised
        return {
            "records": self.records,
            "near_duplicates": self.near,
            "distinct": {n: None if d is None else round(d, 4) for n, d in self.distinct.items()},
            "capitalised": None if words is None else dict(words.most_common(20)),
            "counts": {name: dict(counts.most_common()) for name, counts in self.values.items()},
            "crossed": {" / ".join(pair): count for pair, count in sorted(self.crossed.items())},
        }


def _hashes(words: Sequence[str], size: int) -> set[int]:
    """Hashes of the runs of `size` words; of all words together if there are fewer."""
    runs = range(max(1, len(words) - size + 1))
    return {crc32(" ".join(words[n : n + size]).encode("utf-8", "surrogatepass")) for n in runs}


def _content(line: Line, name: str) -> Any:
    """The content of a field, or at a path; None if there is none."""
    with suppress(KeyError, LabelError):
        return line.fields[name] if name in line.fields else at(line.fields, name)
    return None


def _texts(content: Any) -> Iterator[str]:
    if content is not None:
        yield from map(str, content if isinstance(content, list) else [content])
