"""CQ-Bench: which values does a conversation carry without naming them?

Three tasks on validated stories (section 2.2): attitude detection, one of a statement's attitudes;
value selection, exactly X of 15 options; value extraction, at most ten values in the model's own
words, credited by judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judge.evaluation.benchmark import Benchmark, Fields, Grader, MeasuredModel, NoAnswer, Result
from judge.evaluation.cqbench_items import items
from judge.evaluation.cqbench_tables import CONDITIONS, tables, task_of
from judge.evaluation.cqbench_values import folded, hits

AT_MOST = 10
"""The most values that an extraction may give (CQ-Bench, section 2.2)."""


async def ask(fields: Fields, model: MeasuredModel) -> str | list[str]:
    """Ask the model about one item, step by step where its condition says so."""
    steps = fields["condition"].endswith("+steps")
    texts: dict[str, str] = {"story": fields["story"]}
    task = task_of(fields["condition"])
    if task == "attitude":
        return await _attitude(fields, model, texts, steps)
    return await (_selection if task == "selection" else _extraction)(fields, model, texts, steps)


async def _attitude(
    fields: Fields, model: MeasuredModel, texts: dict[str, str], steps: bool
) -> str:
    options: Sequence[str] = fields["options"]
    texts["statement"] = fields["statement"]
    if character := fields.get("character"):
        texts["character"] = character
    if steps:
        await _step(model, texts, "related_speech", "cqbench_attitude_speech")
        shown = {"attitudes": "\n".join(options)}
        await _step(model, texts, "analysis", "cqbench_attitude_analysis", shown)
    return await model.choose("cqbench_attitude", texts, options)


async def _selection(
    fields: Fields, model: MeasuredModel, texts: dict[str, str], steps: bool
) -> list[str]:
    options: Sequence[str] = fields["options"]
    count = len(fields["gold"])
    texts["count"] = str(count)
    if steps:
        shown = {"candidate_values": "\n".join(options)}
        await _step(model, texts, "topics", "cqbench_selection_topics", shown)
        await _step(model, texts, "analysis", "cqbench_selection_analysis", shown)
    return await model.select("cqbench_selection", texts, options, count)


async def _extraction(
    fields: Fields, model: MeasuredModel, texts: dict[str, str], steps: bool
) -> list[str]:
    summaries: dict[str, str] = {}
    model.steps["summaries"] = summaries
    for topic in fields["topics"]:
        summary = dict(texts)
        await _step(model, summary, "summary", "cqbench_summary", {"topic": topic})
        summaries[topic] = summary["summary"]
        del model.steps["summary"]
    texts["topics"] = "\n".join(fields["topics"])
    texts["summary"] = "\n\n".join(f"{topic}: {text}" for topic, text in summaries.items())
    entries = await model.list_texts("cqbench_extraction", texts)
    kept = [entry for entry in entries if entry.strip()]
    model.steps |= {"predicted": len(kept), "cut": max(0, len(kept) - AT_MOST)}
    return kept[:AT_MOST]


async def _step(
    model: MeasuredModel,
    texts: dict[str, str],
    name: str,
    task: str,
    shown: dict[str, str] | None = None,
) -> None:
    """Have the model write by a task; what it writes is shown in later tasks under `name`."""
    try:
        written = await model.write(task, {**texts, **(shown or {})})
    except NoAnswer as no:
        raise NoAnswer(no.outcome, f"step {task}: {no.detail or no.outcome}") from no
    model.steps[name] = texts[name] = written


def score(fields: Fields, answer: Any) -> float | None:
    """1 or 0 for an attitude, F1 of a selection; None for an extraction, which judges grade.

    Entries of a selection that are none of the options are wrong ones.

    Raises:
        ValueError: an attitude that is none of the options, or what is no list of texts.
    """
    task = task_of(fields["condition"])
    if task == "attitude":
        if not isinstance(answer, str) or (
            "options" in fields and folded(answer) not in map(folded, fields["options"])
        ):
            raise ValueError(f"{answer!r} is none of the options")
        return float(folded(answer) == folded(fields["gold"]))
    if not isinstance(answer, list) or not all(isinstance(one, str) for one in answer):
        raise ValueError(f"{answer!r} is no list of texts")
    if task == "extraction":
        return None
    hit, given, right = hits(answer, fields["gold"])
    return 2 * hit / (given + right) if given + right else 0.0


async def grade(result: Result, grader: Grader) -> Result:
    """Credit an extraction: its score is the mean credit over the settled gold values (3.1).

    `steps` then holds `credits`, `named` and `reasons`, one for each gold value. What the judges
    took is added to the usage. Answers of the other tasks come back as they are.
    """
    if task_of(result.condition) != "extraction" or result.outcome != "answered":
        return result
    predicted = [entry for entry in result.answer if entry.strip()]
    graded = await grader.extraction(result.id, predicted[:AT_MOST], result.fields["gold"])
    settled = [credit for credit in graded.credits if credit is not None]
    steps = {
        "cut": max(0, len(predicted) - AT_MOST),
        **result.steps,
        "credits": list(graded.credits),
        "named": [list(places) for places in graded.named],
        "reasons": list(graded.reasons),
    }
    recall = sum(settled) / len(settled) if settled else None
    return replace(result, score=recall, steps=steps, usage=result.usage + graded.usage)


benchmark = Benchmark(
    name="cqbench",
    title="Values that conversations carry without naming them (CQ-Bench)",
    source="CQ-Bench, sections 2.2 and 3.1, appendices A.1, A.2, A.3 and B.1",
    conditions=CONDITIONS,
    usual=tuple(name for name in CONDITIONS if ":" not in name),
    tasks=(
        *("cqbench_attitude", "cqbench_attitude_speech", "cqbench_attitude_analysis"),
        *("cqbench_selection", "cqbench_selection_topics", "cqbench_selection_analysis"),
        *("cqbench_summary", "cqbench_extraction"),
    ),
    items=items,
    ask=ask,
    score=score,
    tables=tables,
    grade=grade,
)
