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

from collections.abc import Hashable, Iterable, Iterator, Sequence
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
    matches = (
        (_shared(features, features), np.asarray(features.sum(axis=1), np.float64)[:, None])
        for features in _features(texts)
    )
    one_way = _bleu(matches, lengths[:, None], lengths[None, :])
    both: NDArray[np.float64] = (one_way + one_way.T) / 2
    return both


def _bleu(
    matches: Iterable[tuple[NDArray[np.float32], NDArray[np.float64]]],
    candidate: NDArray[np.float64],
    reference: NDArray[np.float64],
) -> NDArray[np.float64]:
    """BLEU from the matches and the candidates' n-grams of each order, and from both lengths."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.zeros(np.broadcast_shapes(candidate.shape, reference.shape))
        for matched, grams in matches:
            logs += np.log(np.where(grams > 0, matched / grams, 0.0))
        score = np.minimum(1.0, np.exp(1 - reference / candidate)) * np.exp(logs / ORDERS)
    score[~(candidate * reference > 0)] = np.nan
    return score


def _features(texts: Sequence[Sequence[Hashable]]) -> Iterator[csr_array]:
    """For each order ones, (texts, features); a feature is an n-gram's t-th occurrence."""
    import numpy as np
    from scipy.sparse import csr_array

    numbers: dict[Hashable, int] = {}
    words = np.array(
        [numbers.setdefault(word, len(numbers)) for text in texts for word in text], dtype=np.int64
    )
    text = np.repeat(np.arange(len(texts)), [len(one) for one in texts])
    grams = words
    for order in range(1, ORDERS + 1):
        if order > 1:
            grams = grams[:-1] * len(numbers) + words[order - 1 :]
            grams = np.unique(grams, return_inverse=True)[1]
        whole = text[: len(grams)] == text[order - 1 :]
        features, kinds = _numbered(text[: len(grams)][whole], grams[whole])
        ones = np.ones(len(features), dtype=np.float32)
        rows = text[: len(grams)][whole]
        yield csr_array((ones, (rows, features)), shape=(len(texts), kinds))


def _numbered(texts: NDArray[np.int64], grams: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Numbers that tell n-grams apart, and their earlier places in the text; and how many."""
    import numpy as np

    if not len(grams):
        return grams, 0
    pairs = texts * (grams.max() + 1) + grams
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    before = np.empty_like(order)
    before[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    kinds, features = np.unique(grams * (before.max() + 1) + before, return_inverse=True)
    return features, len(kinds)


def _shared(left: csr_array, right: csr_array) -> NDArray[np.float32]:
    """How many features each row of one shares with each row of the other."""
    import numpy as np

    held = np.bincount(left.indices, minlength=left.shape[1])
    often = held > _DENSE_FROM * left.shape[0]
    both = np.bincount(right.indices, minlength=right.shape[1]) > 0
    rare = ~often & both & (held > 0)
    if left is right:
        # A feature of one text alone adds to the diagonal only, which is the row's own count.
        rare &= held > 1
    found = np.asarray((left[:, rare] @ right[:, rare].T).toarray(), dtype=np.float32)
    columns = np.flatnonzero(often & both)
    for start in range(0, len(columns), _COLUMNS_AT_ONCE):
        block = columns[start : start + _COLUMNS_AT_ONCE]
        found += left[:, block].toarray() @ right[:, block].toarray().T
    if left is right:
        np.fill_diagonal(found, np.diff(left.indptr))
    return found
