"""Measures of texts: words, distinct-n, telling words, word edit distance, lexical variance."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from judge.stats.bootstrap import Resamples
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BETWEEN_WORDS = re.compile(r"[\s—–]+")


def words(text: str) -> list[str]:
    """The text's words, case-folded, without the punctuation around them.

    Words end at white space and at dashes longer than a hyphen; "don't" and "well-known" are one
    word each. Scripts that put no space between words (Chinese, Thai) give one word a phrase.
    """
    bare = (_bare(piece) for piece in _BETWEEN_WORDS.split(text.casefold()))
    return [word for word in bare if word]


def word_count(text: str) -> int:
    """The number of `words`, 0 for a text without any."""
    return len(words(text))


def distinct_n(text: str, n: int) -> float | None:
    """Distinct-n of Li et al. (2016): distinct n-grams of words over the number of words.

    With L words, of whose L - n + 1 n-grams D are distinct, it is D / L, in (0, 1 - (n - 1) / L]:
    it falls with n and rises with length even where nothing repeats. None where L < n.

    The division is by words, not by n-grams, as in Li et al. and in CQ-Bench (A.3, table 3), which
    reports 0.877, 0.815, 0.755 for n = 3, 4, 5: a share of n-grams could not fall as n grows.

    Raises:
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}, an n-gram has at least one word")
    tokens = words(text)
    distinct = {tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)}
    return len(distinct) / len(tokens) if distinct else None


def _bare(piece: str) -> str:
    """The piece without punctuation, symbols and controls at its ends; marks of letters stay."""
    start, end = 0, len(piece)
    while start < end and _outer(piece[start]):
        start += 1
    while end > start and _outer(piece[end - 1]):
        end -= 1
    return piece[start:end]


def _outer(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSC"


def top_words(
    documents: Mapping[str, Iterable[str] | Mapping[str, int]], count: int = 15
) -> dict[str, list[tuple[str, float]]]:
    """The `count` best words of each document with their scores, best first.

    Words of equal score stand in the order of the alphabet; a word that all documents hold is not
    among them.

    Args:
        documents: each one's words, or how often it has each word, by its name.

    Raises:
        ValueError: count is below 1.
    """
    if count < 1:
        raise ValueError(f"count is {count}, at least one word is wanted")
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


# Each distinct word becomes one character beyond the surrogates, which no string may hold alone.
_FIRST = 0x10000


def word_edit_distances(texts: Sequence[Sequence[Hashable]]) -> NDArray[np.float64]:
    """The distance of every text to every other, (texts, texts), on all processors.

    Args:
        texts: each as its words, or whatever else is compared by equality.

    Returns:
        A symmetric matrix, 0 on its diagonal; nan where neither of two texts has a word.

    Raises:
        ValueError: more than a million different words.
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


Rule = Literal["paper", "distinct"]


def lexical_variance(distances: NDArray[np.float64], *, rule: Rule = "paper") -> float | None:
    """The variance of texts from the matrix of their distances, (texts, texts).

    The diagonal counts as 0, whatever stands there. None for fewer than two texts.

    Raises:
        ValueError: the matrix is not square, or a distance is nan.
    """
    import numpy as np

    value = float(_variances(_squares(distances), np.ones((1, len(distances))), rule)[0])
    return None if np.isnan(value) else value


def lexical_variance_estimate(
    distances: NDArray[np.float64], *, of: int, rule: Rule = "paper", seed: int = 0
) -> Estimate:
    """`lexical_variance` with a 95 % BCa interval, the texts being drawn with their distances.

    Args:
        of: how many texts there should have been; `n` is how many there are.
    """
    import numpy as np

    resamples = Resamples(range(len(distances)), seed=seed)
    variances = _variances(_squares(distances), resamples.weights(), rule)
    return resamples.estimate(np.asarray(variances), n=len(distances), of=of)


def _squares(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise ValueError(f"distances have the shape {distances.shape}, not that of a square")
    squares: NDArray[np.float64] = distances**2
    np.fill_diagonal(squares, 0.0)
    if np.isnan(squares).any():
        raise ValueError("a distance is nan")
    return squares


def _variances(
    squares: NDArray[np.float64], weights: NDArray[np.float64], rule: Rule
) -> NDArray[np.float64]:
    """For each row of weights, which say how often each text is there; nan for fewer than two."""
    import numpy as np

    total = ((weights @ squares) * weights).sum(axis=1)
    count = weights.sum(axis=1)
    pairs = count * (count - 1) if rule == "distinct" else count**2
    return ratio(total / 2, np.where(count > 1, pairs, 0.0))
