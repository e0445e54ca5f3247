"""Word edit distance between many texts: how many words must change, over the longer text's words.

The word-level Levenshtein distance divided by the length of the longer text, in [0, 1]: 0 for equal
texts, 1 for texts that share no word in any order (Bhatt and Diaz 2024, "Extrinsic Evaluation of
Cultural Competence in Large Language Models", section 4.3.1, WED).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
