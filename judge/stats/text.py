"""Measures of texts: telling words, word edit distance, lexical variance."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def top_words(
    documents: Mapping[str, Iterable[str] | Mapping[str, int]], count: int = 15
) -> dict[str, list[tuple[str, float]]]:
    """The `count` best words of each document with their scores, best first.

    Words of equal score stand in the order of the alphabet; a word that all documents hold is not
    among them.

    `documents` maps each one's name to its words, or to how often it has each word.
    """
    counts = {name: Counter(words) for name, words in documents.items()}
    held = Counter(word for words in counts.values() for word in words)
    rarity = {
        word: math.log(len(counts) / many) for word, many in held.items() if many < len(counts)
    }
    return {
        name: heapq.nsmallest(
            count,
            ((word, often * rarity[word]) for word, often in words.items() if word in rarity),
            key=lambda scored: (-scored[1], scored[0]),
        )
        for name, words in counts.items()
    }


def distinct_share(words: Sequence[Hashable], n: int) -> float | None:
    """Distinct-n: how many different runs of n words, by the number of words, in [0, 1].

    Li et al. (2016), "A Diversity-Promoting Objective Function for Neural Conversation Models",
    divide by words and not by runs, and so does CQ-Bench (table 3). None without a word.
    """
    runs = set(zip(*(words[start:] for start in range(n)), strict=False))
    return len(runs) / len(words) if words else None


# Each distinct word becomes one character beyond the surrogates, which no string may hold alone.
_FIRST = 0x10000


def word_edit_distances(texts: Sequence[Sequence[Hashable]]) -> NDArray[np.float64]:
    """The distance of every text to every other, (texts, texts), on all processors.

    Each text is its words, or whatever else is compared by equality. The matrix is symmetric, 0 on
    its diagonal; nan where neither of two texts has a word.
    """
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    numbers: dict[Hashable, int] = {}
    coded = [
        "".join(chr(_FIRST + numbers.setdefault(word, len(numbers))) for word in text)
        for text in texts
    ]
    found: NDArray[np.float64] = cdist(
        coded, coded, scorer=Levenshtein.normalized_distance, dtype=np.float64, workers=-1
    )
    empty = np.array([not text for text in coded], dtype=bool)
    found[np.ix_(empty, empty)] = np.nan
    return found


def lexical_variance(distances: NDArray[np.float64]) -> float | None:
    """The variance of texts from the matrix of their distances, (texts, texts), none of them nan
    but on the diagonal.

    Half the mean of the squared distances over all pairs, a text with itself included. The diagonal
    counts as 0, whatever stands there. None for fewer than two texts.
    """
    import numpy as np

    squares: NDArray[np.float64] = distances**2
    np.fill_diagonal(squares, 0.0)
    return float(squares.mean()) / 2 if len(squares) > 1 else None
