"""Texts of several sentences that `each` takes for one entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.questions.evidence import SENTENCE_END
from judge.questions.rubric import Rubric
from judge.records import Record


class UnsplitTexts:
    """Which fields of `each` are one plain text of one line in every record, and of several
    sentences in one: a list with one entry, or a short text, may be meant as one."""

    def __init__(self, rubrics: Iterable[Rubric]) -> None:
        self._rubrics = {r.each: r.name for r in rubrics if r.each and not r.tested}
        self._several: set[str] = set()

    def add(self, record: Record) -> None:
        for name in [*self._rubrics]:
            if not (entries := record.entries(name)):
                continue
            text = record.visible.get(name)
            if not isinstance(text, str) or entries != (text.strip(),):
                del self._rubrics[name]
            elif name not in self._several and len(SENTENCE_END.findall(text)) > 1:
                self._several.add(name)

    def notes(self) -> Iterator[str]:
        """A message for each such field."""
        for name, rubric in self._rubrics.items():
            if name in self._several:
                yield (
                    f"{rubric}: {name} is one entry in each record, also where it has several "
                    "sentences: to judge each, make it a list, or write each on a line "
                    "(docs/howto/rag.md)"
                )
