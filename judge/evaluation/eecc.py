"""EECC: whether a model's stories and explanations change with the nationality it is told of.

Bhatt and Diaz 2024, "Extrinsic Evaluation of Cultural Competence in Large Language Models". The
model writes for every concept and every nationality, five times each. Nothing is right or wrong:
the outputs are compared with one another (`eecc_analysis`) and with surveys of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.evaluation.benchmark import Answer, Benchmark, MeasuredModel
from judge.evaluation.eecc_sources import CONDITIONS, folder_of, items, read_outputs, told
from judge.evaluation.eecc_tables import tables
from judge.evaluation.tables import Scored
from judge.stats.text import Rule

DRAWS = 5
_TASKS = {condition: f"eecc_{condition}" for condition in CONDITIONS}
_TOLD_AT_MOST = 3


async def answer(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """What the model writes for the item's prompt. Raises BackendError where it gives no reply."""
    task = _TASKS[fields["condition"]]
    given = await model.writes(task, {"prompt": fields["prompt"]}, draw=fields["draw"])
    if given.trouble is not None:
        return Answer(given.trouble, given.usage, reason=given.detail)
    if not given.text.strip():
        return Answer("unreadable", given.usage, reason="the text is empty")
    return Answer("answered", given.usage, answer=given.text, reason=given.detail)


def analyse(outputs: str, folder: str, *, rule: Rule = "paper") -> Scored:
    """The tables of a file of outputs in the released form, without a model.

    Args:
        outputs: the file; see `eecc_sources.read_outputs`.
        folder: the released folder, for templates, topics and cultural values.
        rule: the paper's definitions, the authors' scripts', or variance over distinct pairs.

    Returns:
        As `eecc_tables.tables`; the notes of the first table name lines that could not be read.

    Raises:
        UsageError: as `read_outputs`.
    """
    read = read_outputs(Path(outputs), folder_of([folder]))
    first, *others = tables(read.results, rule=rule)
    if not read.problems:
        return Scored([first, *others], 0)
    named = "; ".join(map(told, read.problems[:_TOLD_AT_MOST]))
    more = len(read.problems) - _TOLD_AT_MOST
    tail = f"; and {more} more" if more > 0 else ""
    note = f"Lines that could not be read, left out: {named}{tail}."
    named_first = replace(first, notes=(*first.notes, note))
    return Scored([named_first, *others], len(read.problems))


benchmark = Benchmark(
    name="eecc",
    title="Extrinsic Evaluation of Cultural Competence",
    source="Bhatt and Diaz 2024, Findings of EMNLP; github.com/shaily99/eecc",
    conditions=CONDITIONS,
    usual=CONDITIONS,
    tasks=tuple(_TASKS.values()),
    items=items,
    answer=answer,
    tables=tables,
    draws=DRAWS,
)
