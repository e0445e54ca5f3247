"""NormAd: is a deed acceptable, judged with more and more of its culture told?

Rao et al., "NormAd". A story is asked about in four contexts (section 5.2; `none` is the baseline
of appendix C): nothing, the country, the country and a value, the rule of thumb. The answer is yes,
no or neutral, right if it is the story's gold label (section 4.1).

Deviation from the paper: its prompt (appendix A.3) offers "Neither" where this one offers neutral.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from judge.errors import UsageError
from judge.evaluation.benchmark import Benchmark, Choices, Fields, MeasuredModel, exact
from judge.evaluation.countries import cluster_name, cluster_of, country_name
from judge.evaluation.normad_tables import CONDITIONS, LABELS, statistics_of, tables
from judge.evaluation.rows import Row, asked, each_row, read_sources
from judge.evaluation.tables import Table
from judge.records import RESERVED, Item, NormRecord, Problem, build
from judge.records.fields import LabelError

_TASK = "normad_acceptability"
# Long fields of a norm that are neither asked about nor sliced by.
_LEFT_OUT = {"id", "label", "background", "explanation"}


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """An item for each row and condition.

    Rows are norm records in any format and form that `judge validate` reads, the released ones
    among them. Of lines that `judge validate` wrote those are left out whose verdict is not `pass`.

    A row that lacks what a condition shows (a country, a value) is not asked in it. The tables
    count such rows; where the user named the conditions, each is a problem.

    Raises:
        UsageError: a source cannot be read at all.
    """

    def of_row(row: Row) -> Iterator[Item]:
        norm = _norm(row)
        if norm.label is None:
            raise LabelError("field 'label' must be yes, no or neutral, not empty", "label")
        fields = {
            **norm.model_dump(exclude=_LEFT_OUT, exclude_none=True),
            "cluster": _cluster(norm),
            "gold": norm.label,
        }
        for condition in choices.conditions:
            shown = CONDITIONS[condition]
            lacking = [name for name in shown if not str(getattr(norm, name) or "").strip()]
            if not lacking:
                yield asked(row.item, condition, fields, row=row.id)
            elif choices.chosen:
                message = f"field {lacking[0]!r}, which condition {condition!r} shows, is missing"
                raise LabelError(message, lacking[0])

    return each_row(_undiscarded(sources), of_row)


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """Ask for yes, no or neutral with what the item's condition shows."""
    texts = {"story": fields["story"]}
    for name in CONDITIONS[fields["condition"]]:
        texts[name] = country_name(fields[name]) if name == "country" else fields[name]
    return await model.choose(_TASK, texts, LABELS)


def score(fields: Fields, answer: object) -> float | None:
    """1 for the gold label, 0 for another. Raises ValueError for what is no label."""
    if answer not in LABELS:
        raise ValueError(f"{answer!r} is none of {', '.join(LABELS)}")
    return exact(fields, answer)


def statistics(sources: Sequence[str]) -> list[Table]:
    """Table 2 of the paper for a set of norms: stories by cluster and label, and by subcategory.

    Of judged records only those that passed count. Records without a label, a country, or of a
    country outside the 75 have a column or a row of their own, where there are any.

    Raises:
        UsageError: a source or a line that cannot be read, or no norm at all.
    """
    rows = list(each_row(_undiscarded(sources), lambda row: [_norm(row)]))
    for row in rows:
        if isinstance(row, Item):
            problem = row.problem.message if row.problem else "there is no record"
            raise UsageError(f"{row.source}, line {row.line}: {problem}")
    norms = [row for row in rows if not isinstance(row, Item)]
    if not norms:
        raise UsageError(f"{', '.join(sources)}: holds no norm; judged ones count if they passed")
    return statistics_of([(_cluster(one), one.axis, one.subcategory, one.label) for one in norms])


def _undiscarded(sources: Sequence[str]) -> Iterator[Item]:
    """The lines, less those whose verdict is not `pass`; lines without a verdict are kept."""
    for item in read_sources(sources):
        verdict = (item.fields or {}).get(RESERVED)
        if not isinstance(verdict, dict) or verdict.get("verdict", "pass") == "pass":
            yield item


def _norm(row: Row) -> NormRecord:
    found = build(row.item, "norm")
    if isinstance(found, Problem):
        raise LabelError(found.message, found.field, found.type)
    return cast("NormRecord", found.data)


def _cluster(norm: NormRecord) -> str | None:
    if norm.cluster:
        return cluster_name(norm.cluster)
    return cluster_of(norm.country) if norm.country else None


benchmark = Benchmark(
    name="normad",
    title="NormAd: social acceptability in four contexts",
    source='Rao et al., "NormAd: A Framework for Measuring the Cultural Adaptability of Large '
    'Language Models", sections 4.1 and 5.2, tables 2 and 4, appendix C',
    conditions=tuple(CONDITIONS),
    tasks=(_TASK,),
    items=items,
    ask=ask,
    score=score,
    tables=tables,
    statistics=statistics,
)
