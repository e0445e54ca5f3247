"""The words that tell a document from others: those of the highest TF-IDF.

A word that stands f times in a document, and in m of N documents, scores f ln(N / m): 0 for a word
in all of them, and at most f ln N (Spärck Jones 1972, "A Statistical Interpretation of Term
Specificity", Journal of Documentation 28, with plain counts, as in Bhatt and Diaz 2024, section
3.2). Undefined for a word that the document does not hold.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping


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
