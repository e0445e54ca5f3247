"""CQ-Bench's table 3: speech that stated a value outright, before and after it was rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from judge.papers.cqbench_stories import category_of, story_of
from judge.papers.rows import asked
from judge.papers.tables import grouped
from judge.papers.tasks import MeasuredAnswer
from judge.records import Record
from judge.records.words import counted_words
from judge.report.table import Cell, Table, TableRow

SPEECH = "speech"
"""The setting, and the condition, of table 3: speech that `judge validate --repair` rewrote."""

VERSIONS = ("original", "refined")
"""A speech that stated a value outright, before and after it was rewritten."""


def speeches(row: Record) -> Iterator[Record]:
    """An item for each speech that was made implicit, with the value that it stated outright."""
    category = category_of(story := story_of(row), None) or "(not said)"
    edits = story.judged.edits if story.judged else ()
    implicit = (edit for edit in edits if edit.check == "implicitness")
    for number, edit in enumerate(implicit, 1):
        speech = dict(zip(VERSIONS, (edit.before, edit.after), strict=True))
        about = {"category": category, "value": "\n".join(edit.values), **speech}
        yield asked(row, SPEECH, {**about, "gold": "refined"}, key=f"{row.id}/{number}")


def speech_table(results: Sequence[MeasuredAnswer]) -> Table:
    """Table 3: the speech that was made implicit, before and after."""
    rows = [
        TableRow((category, version), _statistics(group, version))
        for category, group in grouped(results, lambda result: result.fields["category"]).items()
        for version in VERSIONS
    ]
    title = "CQ-Bench: explicit speech before and after it was rewritten (table 3)"
    return Table("cqbench-speech", title, ("category", "speech"), rows, (_DISTINCT,))


_DISTINCT = (
    "Means over speeches. Distinct-n: different runs of n words of a speech, over its words, as "
    "in the paper; in scripts without spaces each letter is a word. Similarity: cosine of the "
    "embeddings of speech and value."
)


def _statistics(results: Sequence[MeasuredAnswer], version: str) -> dict[str, Cell]:
    def distinct(words: Sequence[str], size: int) -> float:
        return len({*zip(*(words[start:] for start in range(size)), strict=False)}) / len(words)

    spoken = [counted_words(result.fields[version]) for result in results]
    texts = [words for words in spoken if words]
    lists = {"words": [*map(float, map(len, texts))]}
    lists |= {f"distinct-{n}": [distinct(words, n) for words in texts] for n in (3, 4, 5)}
    lists["similarity"] = [
        found[version] for result in results if (found := result.steps.get("similarities"))
    ]
    means = {name: f"{fmean(values):.3f}" for name, values in lists.items() if values}
    return {"speeches": len(texts), **means}
