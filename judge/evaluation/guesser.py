"""A baseline that knows nothing: it guesses by how alike an option and a country's name are.

Chiu et al., "CulturalBench", section 5.1: the option whose embedding has the highest cosine with
the embedding of the country's name, the question unseen, is right in 40.42 % of Easy questions with
OpenAI's text-embedding-3-small, where chance is 25 %. With all-MiniLM-L6-v2, which runs here, it is
right in 33.4 % of the released rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.errors import UsageError
from judge.evaluation.benchmark import Given
from judge.evaluation.culturalbench import EASY_TASK, HARD_TASK, TRUTHS
from judge.stats.similarity import SentenceEncoder
from judge.verdict import Usage

WEIGHTS = "all-minilm-l6-v2"
"""The weights it runs on, by their name in the catalog, which pins their hashes."""

Similarity = Callable[[str, str], float | None]


class EmbeddingGuesser:
    """Answers CulturalBench by the likeness of options and the country's name.

    Easy: the option with the highest cosine, the first shown of equal ones. Hard: an answer is true
    where no other answer of its question has a higher cosine, else false. The paper has no guesser
    there; this one sees the four answers side by side and calls one of them true, so it knows of
    Hard what a measured model is not told. It has no probabilities and takes no tokens.

    Args:
        similarity: how alike two texts are, None where that is undefined; the cosine of
            all-MiniLM-L6-v2 if not given.
        fields: the item that is asked about.

    Raises:
        UsageError: the weights or the packages that run them are not here; the message says how to
            get them.
    """

    def __init__(
        self, similarity: Similarity | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        self._similarity = similarity or SentenceEncoder().similarity
        self._fields = fields or {}

    def about(self, fields: Mapping[str, Any]) -> EmbeddingGuesser:
        """The same guesser, asked about this item."""
        return EmbeddingGuesser(self._similarity, fields)

    def identity(self) -> dict[str, Any]:
        """What tells its answers from those of another guesser."""
        return {"weights": WEIGHTS}

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        """One of the options; unreadable where the item names no country.

        Raises:
            UsageError: another task than CulturalBench's.
        """
        country = self._fields.get("country")
        if task not in (EASY_TASK, HARD_TASK):
            raise _cannot(task)
        if not country:
            return Given(Usage(), "unreadable", "the row names no country to compare options with")
        if task == EASY_TASK:
            alike = [self._alike(country, option) for option in options]
            return Given(Usage(), place=alike.index(max(alike)))
        best = max(self._alike(country, option) for option in self._fields["options"])
        said = "True" if self._alike(country, texts["answer"]) == best else "False"
        return Given(Usage(), place=TRUTHS.index(said))

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        """Raises UsageError: no task of CulturalBench asks for several options."""
        raise _cannot(task)

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """Raises UsageError: no task of CulturalBench asks for a list."""
        raise _cannot(task)

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """Raises UsageError: no task of CulturalBench asks for text."""
        raise _cannot(task)

    def _alike(self, country: str, option: str) -> float:
        cosine = self._similarity(country, option)
        # Below any cosine: what cannot be compared is never the most alike.
        return -2.0 if cosine is None else cosine


def _cannot(task: str) -> UsageError:
    return UsageError(f"the embedding baseline answers culturalbench only, not the task {task}")
