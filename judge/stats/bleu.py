"""BLEU between many texts at once: how far n-grams of one are found in another.

With p_n the share of a candidate's n-grams that the reference holds too, each as often as it stands
in both at most, BLEU = BP (p_1 p_2 p_3 p_4)^(1/4), where BP = min(1, exp(1 - r / c)) for lengths r
of the reference and c of the candidate (Papineni et al. 2002, "BLEU: a Method for Automatic
Evaluation of Machine Translation", section 2.3). It lies in [0, 1] and is not smoothed: without a
common run of four words it is 0, even between two equal texts of three words.

Texts are compared all with all through matrix products. A feature is an n-gram's t-th occurrence in
a text; the features that two texts share number the sum over n-grams of the smaller count, which is
the numerator of p_n in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


ORDERS = 4
# A feature that this share of the texts holds is cheaper in a dense product than in a sparse one.
_DENSE_FROM = 1 / 32
_COLUMNS_AT_ONCE = 4096


def symmetric_bleu(texts: Sequence[Sequence[Hashable]]) -> NDArray[np.float64]:
    """The mean of the two BLEU scores of every two texts, each once the candidate, once the other.

    So Bhatt and Diaz (2024, section 4.3.1) make a similarity of it.

    Args:
        texts: each as its words.

    Returns:
        A symmetric matrix, (texts, texts), in [0, 1]; nan where one of two texts has no word.
    """
    import numpy as np

    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    candidate, reference = lengths[:, None], lengths[None, :]
    logs = np.zeros((len(texts), len(texts)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for features in _features(texts):
            grams = np.asarray(features.sum(axis=1), np.float64)[:, None]
            logs += np.log(np.where(grams > 0, _shared(features) / grams, 0.0))
        score = np.minimum(1.0, np.exp(1 - reference / candidate)) * np.exp(logs / ORDERS)
    score[~(candidate * reference > 0)] = np.nan
    both: NDArray[np.float64] = (score + score.T) / 2
    return both


def _features(texts: Sequence[Sequence[Hashable]]) -> Iterator[csr_array]:
    """For each order ones, (texts, features); a feature is an n-gram's t-th occurrence."""
    import numpy as np
    from scipy.sparse import csr_array

    for order in range(1, ORDERS + 1):
        columns: dict[Hashable, int] = {}
        places, ends = [], [0]
        for text in texts:
            seen: Counter[Hashable] = Counter()
            for gram in zip(*(text[start:] for start in range(order)), strict=False):
                seen[gram] += 1
                places.append(columns.setdefault((gram, seen[gram]), len(columns)))
            ends.append(len(places))
        ones = np.ones(len(places), dtype=np.float32)
        yield csr_array((ones, places, ends), shape=(len(texts), len(columns)))


def _shared(held: csr_array) -> NDArray[np.float32]:
    """How many features each row shares with each other row."""
    import numpy as np

    often = np.bincount(held.indices, minlength=held.shape[1])
    dense = often > _DENSE_FROM * held.shape[0]
    # A feature of one text alone adds to the diagonal only, which is the row's own count.
    rare = held[:, ~dense & (often > 1)]
    found = np.asarray((rare @ rare.T).toarray(), dtype=np.float32)
    columns = np.flatnonzero(dense)
    for start in range(0, len(columns), _COLUMNS_AT_ONCE):
        block = held[:, columns[start : start + _COLUMNS_AT_ONCE]].toarray()
        found += block @ block.T
    np.fill_diagonal(found, np.diff(held.indptr))
    return found
