"""Measures of texts: distinctive words, word edit distance, lexical variance, and BLEU.

BLEU is computed between many texts at once.

With p_n the share of a candidate's n-grams that are also in the reference (each counted at most as
often as there), BLEU = BP (p_1 p_2 p_3 p_4)^(1/4), where BP = min(1, exp(1 - r / c)) for lengths r
of the reference and c of the candidate (Papineni et al. 2002, "BLEU: a Method for Automatic
Evaluation of Machine Translation", section 2.3). It is in [0, 1] and not smoothed: without a common
run of four words it is 0, even between two equal texts of three words.

All pairs of texts are compared by matrix products. A feature is an n-gram's t-th occurrence in a
text. The number of features that two texts share is the sum over n-grams of the smaller count,
which is the numerator of p_n in both directions.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


_TOP_WORDS = 15


def top_words(
    documents: Mapping[str, Iterable[str] | Mapping[str, int]],
) -> dict[str, list[tuple[str, float]]]:
    """The 15 most distinctive words of each document with their scores, best first.

    The score is the word's count times log(documents / documents with the word). Words of equal
    score are in alphabetical order; words in all documents are left out.

    `documents` maps a document's name to its words, or to the count of each word.
    """
    counts = {name: Counter(words) for name, words in documents.items()}
    documents_with = Counter(word for words in counts.values() for word in words)
    rarity = {
        word: math.log(len(counts) / many)
        for word, many in documents_with.items()
        if many < len(counts)
    }
    return {
        name: heapq.nsmallest(
            _TOP_WORDS,
            ((word, often * rarity[word]) for word, often in words.items() if word in rarity),
            key=lambda scored: (-scored[1], scored[0]),
        )
        for name, words in counts.items()
    }


# Each distinct word becomes one character beyond the surrogates, which cannot be used alone.
_FIRST = 0x10000


def word_edit_distances(texts: Sequence[Sequence[Hashable]]) -> NDArray[np.float64]:
    """The normalised word edit distance of every two texts, (texts, texts), on all processors.

    A text is a sequence of words, or of anything compared by equality. The matrix is symmetric,
    with 0 on its diagonal; nan for two texts without words.
    """
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    numbers: dict[Hashable, int] = {}
    coded = [
        "".join(chr(_FIRST + numbers.setdefault(word, len(numbers))) for word in text)
        for text in texts
    ]
    distances: NDArray[np.float64] = cdist(
        coded, coded, scorer=Levenshtein.normalized_distance, dtype=np.float64, workers=-1
    )
    empty = np.array([not text for text in coded], dtype=bool)
    distances[np.ix_(empty, empty)] = np.nan
    return distances


def lexical_variance(distances: NDArray[np.float64]) -> float | None:
    """The variance of texts, from the matrix of their distances, (texts, texts).

    It is half the mean of the squared distances over all pairs, including each text with itself.
    The diagonal counts as 0, whatever its content; no other distance may be nan. None for fewer
    than two texts.
    """
    import numpy as np

    squares: NDArray[np.float64] = distances**2
    np.fill_diagonal(squares, 0.0)
    return float(squares.mean()) / 2 if len(squares) > 1 else None


ORDERS = 4


def symmetric_bleu(texts: Sequence[Sequence[Hashable]]) -> NDArray[np.float64]:
    """The mean of the two BLEU scores of every two texts, with each as the candidate once.

    Bhatt and Diaz (2024, section 4.3.1) use it as a similarity.

    Args:
        texts: each as its words.

    Returns:
        A symmetric matrix, (texts, texts), in [0, 1]; nan if one of two texts has no word.
    """
    import numpy as np

    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    candidate, reference = lengths[:, None], lengths[None, :]
    logs = np.zeros((len(texts), len(texts)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for features in _features(texts):
            grams = np.asarray(features.sum(axis=1), np.float64)[:, None]
            overlap = (features @ features.T).toarray()
            logs += np.log(np.where(grams > 0, overlap / grams, 0.0))
        score = np.minimum(1.0, np.exp(1 - reference / candidate)) * np.exp(logs / ORDERS)
    score[~(candidate * reference > 0)] = np.nan
    mean: NDArray[np.float64] = (score + score.T) / 2
    return mean


def _features(texts: Sequence[Sequence[Hashable]]) -> Iterator[csr_array]:
    """For each order, a 0/1 matrix (texts, features); a feature is an n-gram's t-th occurrence."""
    import numpy as np
    from scipy.sparse import csr_array

    for order in range(1, ORDERS + 1):
        columns: dict[Hashable, int] = {}
        places, ends = [], [0]
        for text in texts:
            counts: Counter[Hashable] = Counter()
            for gram in zip(*(text[start:] for start in range(order)), strict=False):
                counts[gram] += 1
                places.append(columns.setdefault((gram, counts[gram]), len(columns)))
            ends.append(len(places))
        ones = np.ones(len(places), dtype=np.float32)
        yield csr_array((ones, places, ends), shape=(len(texts), len(columns)))
