"""NormAd: is a deed acceptable, judged with more and more of its culture told?

Rao et al., "NormAd". A story is asked about in four contexts (section 5.2; none is the baseline of
appendix C): nothing, the country, the country and a value, the rule of thumb. The answer is yes, no
or neutral, right if it is the story's gold label (section 4.1).

Deviation from the paper: its prompt (appendix A.3) offers "Neither" where this one offers neutral.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from judge.evaluation.benchmark import Answer, Benchmark, Choices, MeasuredModel
from judge.evaluation.clusters import cluster_name, cluster_of, country_name
from judge.evaluation.normad_tables import CONDITIONS, LABELS, statistics_of, tables
from judge.evaluation.tables import Table
from judge.records import RESERVED, Item, NormRecord, Problem, build, read
from judge.records.fields import refused

_TASK = "normad_acceptability"
# What stands in an item but is neither asked nor sliced by stays out: it is long.
_LEFT_OUT = {"id", "label", "background", "explanation"}


def records(sources: Sequence[str]) -> Iterator[tuple[str, Item, NormRecord] | Item]:
    """The rows of the sources, each with its name; rows that cannot be used as Items.

    Rows are norm records in any format and form that `judge validate` reads, the released ones
    among them. Of lines that `judge validate` wrote those are left out whose verdict is not `pass`;
    a line without a verdict is taken.

    A row's name is its id, else `SOURCE#LINE`; an id that another source had for another story
    becomes `SOURCE:ID`. A row without a label, or with an id that was there before, is a problem.

    Raises:
        UsageError: a source cannot be read at all.
    """
    seen: dict[str, tuple[Item, NormRecord]] = {}
    for source in sources:
        for item in read(source):
            if _discarded(item):
                continue
            found = _norm(item)
            if isinstance(found, Problem):
                yield refused(item, found)
                continue
            name = _name(item, found, seen)
            if isinstance(name, Problem):
                yield refused(item, name)
                continue
            seen[name] = (item, found)
            yield name, item, found


def items(sources: Sequence[str], choices: Choices) -> Iterator[Item]:
    """An item for each row and condition.

    A row that lacks what a condition shows (a country, a value) is not asked in it. Where the
    conditions are the usual ones nothing is said of it here, and the tables count such rows; where
    they were chosen it is a problem.

    Raises:
        UsageError: as `records`.
    """
    for found in records(sources):
        if isinstance(found, Item):
            yield found
            continue
        name, item, norm = found
        for condition in choices.conditions:
            lacking = next((field for field in CONDITIONS[condition] if not _own(norm, field)), "")
            if not lacking:
                yield _asked(name, item, norm, condition)
            elif choices.conditions != benchmark.usual:
                message = f"field {lacking!r}, which condition {condition!r} shows, is not there"
                yield refused(item, Problem(message, lacking))


async def answer(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """Ask for yes, no or neutral with what the item's condition shows, and score 1 or 0.

    Raises:
        BackendError: the model gives no reply at all.
    """
    texts = {"story": fields["story"]}
    for field in CONDITIONS[fields["condition"]]:
        texts[field] = country_name(fields[field]) if field == "country" else fields[field]
    given = await model.choose(_TASK, texts, LABELS)
    if given.trouble is not None or given.place is None:
        return Answer(given.trouble or "unreadable", given.usage, reason=given.detail)
    label = LABELS[given.place]
    return Answer(
        "answered",
        given.usage,
        label,
        float(label == fields["gold"]),
        dict(zip(LABELS, given.probabilities, strict=True)) if given.probabilities else None,
    )


def statistics(norms: Sequence[NormRecord]) -> list[Table]:
    """Table 2 of the paper for any set of norm records: stories by cluster and label.

    A second table has them by subcategory. Records without a label, without a country or of a
    country outside the 75 have a column or a row of their own, where there are any.
    """
    return statistics_of(
        [(_cluster(norm), norm.axis, norm.subcategory, norm.label) for norm in norms]
    )


def _discarded(item: Item) -> bool:
    verdict = (item.fields or {}).get(RESERVED)
    return isinstance(verdict, dict) and "verdict" in verdict and verdict["verdict"] != "pass"


def _norm(item: Item) -> NormRecord | Problem:
    found = build(item, "norm")
    if isinstance(found, Problem):
        return found
    norm = cast("NormRecord", found.data)
    if norm.label is None:
        key = found.names.get("label", "label")
        return Problem(f"field {key!r} must be yes, no or neutral, not empty", key)
    return norm


def _name(
    item: Item, norm: NormRecord, seen: Mapping[str, tuple[Item, NormRecord]]
) -> str | Problem:
    if norm.id is None:
        return f"{item.source}#{item.line}"
    if norm.id not in seen:
        return norm.id
    first, other = seen[norm.id]
    same = (norm.story, norm.rule_of_thumb) == (other.story, other.rule_of_thumb)
    name = f"{item.source}:{norm.id}"
    if first.source == item.source or same or name in seen:
        message = f"id {norm.id!r} was already on line {first.line} of {first.source}"
        return Problem(message, "id", "duplicate-id")
    return name


def _own(norm: NormRecord, field: str) -> str | None:
    text: str | None = getattr(norm, field)
    return text if text and text.strip() else None


def _cluster(norm: NormRecord) -> str | None:
    if norm.cluster:
        return cluster_name(norm.cluster)
    return cluster_of(norm.country) if norm.country else None


def _asked(name: str, item: Item, norm: NormRecord, condition: str) -> Item:
    fields = {
        "id": f"{name}/{condition}",
        "condition": condition,
        "row": name,
        **norm.model_dump(exclude=_LEFT_OUT, exclude_none=True),
        "cluster": _cluster(norm),
        "gold": norm.label,
    }
    return Item(item.source, item.line, fields)


benchmark = Benchmark(
    name="normad",
    title="NormAd: social acceptability in four contexts",
    source='Rao et al., "NormAd: A Framework for Measuring the Cultural Adaptability of Large '
    'Language Models", sections 4.1 and 5.2, tables 2 and 4, appendix C',
    conditions=tuple(CONDITIONS),
    usual=tuple(CONDITIONS),
    tasks=(_TASK,),
    items=items,
    answer=answer,
    tables=tables,
)
