"""CQ-Bench: which values does a conversation carry without naming them?

Three tasks on validated stories (section 2.2): attitude detection, one of a statement's attitudes;
value selection, exactly X of 15 options; value extraction, at most ten values in the model's own
words, credited by judges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from judge.evaluation.asking import MeasuredModel
from judge.evaluation.benchmark import Benchmark, Fields, Grader, NoAnswer, Result
from judge.evaluation.cqbench_items import CONDITIONS, REWRITTEN, items, task_of
from judge.evaluation.cqbench_values import folded
from judge.evaluation.tables import (
    FEWEST,
    Cell,
    Row,
    Sample,
    Table,
    class_scores,
    results_table,
)
from judge.stats.bootstrap import Resamples, mean_estimate
from judge.stats.classification import ratio

AT_MOST = 10
"""The most values that an extraction may give (CQ-Bench, section 2.2)."""

# ------------------------------------------------------------ asking


async def ask(fields: Fields, model: MeasuredModel) -> str | list[str]:
    """Ask the model about one item, step by step where its condition says so."""
    steps = fields["condition"].endswith("+steps")
    texts: dict[str, str] = {"story": fields["story"]}
    task = task_of(fields["condition"])
    if task == "extraction":
        return await _extraction(fields, model, texts)
    options: Sequence[str] = fields["options"]
    listed = "\n".join(options)
    if task == "attitude":
        texts["statement"] = fields["statement"]
        if character := fields.get("character"):
            texts["character"] = character
        if steps:
            await _step(model, texts, "related_speech", "cqbench_attitude_speech")
            await _step(model, texts, "analysis", "cqbench_attitude_analysis", attitudes=listed)
        return await model.choose("cqbench_attitude", texts, options)
    texts["count"] = str(len(fields["gold"]))
    if steps:
        shown = {"candidate_values": listed}
        await _step(model, texts, "topics", "cqbench_selection_topics", **shown)
        await _step(model, texts, "analysis", "cqbench_selection_analysis", **shown)
    return await model.select("cqbench_selection", texts, options, len(fields["gold"]))


async def _extraction(fields: Fields, model: MeasuredModel, texts: dict[str, str]) -> list[str]:
    summaries: dict[str, str] = {}
    model.steps["summaries"] = summaries
    for topic in fields["topics"]:
        summaries[topic] = await _written(model, "cqbench_summary", {**texts, "topic": topic})
    texts["topics"] = "\n".join(fields["topics"])
    texts["summary"] = "\n\n".join(f"{topic}: {text}" for topic, text in summaries.items())
    entries = await model.list_texts("cqbench_extraction", texts)
    kept = [entry for entry in entries if entry.strip()]
    model.steps |= {"predicted": len(kept), "cut": max(0, len(kept) - AT_MOST)}
    return kept[:AT_MOST]


async def _step(
    model: MeasuredModel, texts: dict[str, str], name: str, task: str, **shown: str
) -> None:
    """Have the model write by a task; what it writes is shown in later tasks under `name`."""
    model.steps[name] = texts[name] = await _written(model, task, {**texts, **shown})


async def _written(model: MeasuredModel, task: str, texts: Mapping[str, str]) -> str:
    try:
        return await model.write(task, texts)
    except NoAnswer as no:
        raise NoAnswer(no.outcome, f"step {task}: {no.detail or no.outcome}") from no


# ------------------------------------------------------------ scoring


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

    `steps` then holds `credits`, one for each gold value, and the `checks` with the judges' votes.
    What the judges took is added to the usage. Answers of the other tasks come back as they are.
    """
    if task_of(result.condition) != "extraction":
        return result
    judgement = await grader(result.id, result.answer, result.fields["gold"])
    assert judgement.extraction is not None, "the workflow extraction credits values"
    credited = {"credits": [*judgement.extraction.credits], "checks": judgement.as_json()["checks"]}
    return replace(
        result,
        score=judgement.extraction.recall,
        steps={**result.steps, **credited},
        usage=result.usage + judgement.usage,
    )


# ------------------------------------------------------------ tables

_MEANING = (
    "score: accuracy (attitude detection), mean F1 of the items (selection), mean recall of the "
    "stories (extraction). pooled: F1 over all options given, recall over the gold values that the "
    "judges settled. stories: how many the questions that got a reply are about."
)


_SPEECHES = (
    "Explicit speeches that judge validate rewrote, before and after; words are what blanks part. "
    "Distinct-n counts different runs of n words by the words. Intervals are 95 %, over stories."
)


def tables(results: Sequence[Result]) -> list[Table]:
    """Tables 1 and 6, by setting and category of the stories, and table 3, of their speeches."""
    condition = ("condition", CONDITIONS)
    whole, by_category = "CQ-Bench by setting (table 1)", "CQ-Bench by category (table 6)"
    by = {"setting": ("setting", ()), "condition": condition}
    by_slice = {"category": ("category", ()), "condition": condition}
    some = [result for result in results if result.fields.get("category")]
    return [
        results_table("cqbench", whole, results, by, _scores, (_MEANING,)),
        results_table("cqbench-categories", by_category, some, by_slice, _scores, (_MEANING,)),
        _rewriting(results),
    ]


def _rewriting(results: Sequence[Result]) -> Table:
    """Speeches before and after they were rewritten, by category; each story counts once."""
    stories = {one.row: one.fields for one in results if "rewritten" in one.fields}
    categories: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row, fields in stories.items():
        categories[str(fields.get("category") or "(not said)")][row] = fields["rewritten"]
    rows = []
    for category, measured in sorted(categories.items()):
        for name in REWRITTEN:
            pairs = [(row, sides) for row, found in measured.items() for sides in found[name]]
            resamples = Resamples([row for row, _ in pairs], fewest=FEWEST)
            before, after = (mean_estimate([s[k] for _, s in pairs], resamples) for k in (0, 1))
            cells: dict[str, Cell] = {"speeches": len(pairs), "original": before, "refined": after}
            rows.append(Row((category, name), cells))
    title = "Explicit speech before and after it was rewritten (table 3)"
    return Table("cqbench-rewriting", title, ("category", "measure"), rows, (_SPEECHES,))


def hits(given: Sequence[str], gold: Sequence[str]) -> tuple[int, int, int]:
    """How many right options were given, of how many given, of how many right ones.

    Case, blanks and repetition do not count. F1, the harmonic mean of precision and recall, is
    2 hits / (given + right).
    """
    found, right = {folded(text) for text in given}, {folded(text) for text in gold}
    return len(found & right), len(found), len(right)


def _scores(results: Sequence[Result]) -> dict[str, Cell]:
    """The cells of a row. A refused or unreadable answer selects nothing and finds no value."""
    sample, task = Sample(results), task_of(results[0].condition)
    cells: dict[str, Cell] = {**sample.counts(), "stories": sample.rows()}
    if task == "attitude":
        found = class_scores([_folded(one) for one in results])
        return {**cells, "score": found["accuracy"], "macro F1": found["F1"]}

    cells["score"] = sample.accuracy()
    if task == "selection":
        return {**cells, "pooled": sample.measure(_hits, lambda hit, *of: ratio(2 * hit, sum(of)))}
    pooled = sample.measure(
        lambda one: (sum(_settled(one)), len(_settled(one))),
        ratio,
        n=sum(len(_settled(one)) for one in sample.there),
        of=sum(len(one.fields["gold"]) for one in sample.there),
    )
    return {**cells, "pooled": pooled}


def _folded(result: Result) -> Result:
    """The result with its right attitude and its answer as attitudes are compared."""
    answer = folded(result.answer) if result.outcome == "answered" else None
    fields = {**result.fields, "gold": folded(result.fields["gold"])}
    return replace(result, fields=fields, answer=answer)


def _hits(result: Result) -> tuple[int, int, int]:
    return hits(result.answer if result.outcome == "answered" else [], result.fields["gold"])


def _settled(result: Result) -> list[float]:
    """The credits that the judges settled; those of an answer that is not there are 0."""
    if result.outcome != "answered":
        return [0.0] * len(result.fields["gold"])
    return [credit for credit in result.steps.get("credits") or () if credit is not None]


benchmark = Benchmark(
    name="cqbench",
    title="Values that conversations carry without naming them (CQ-Bench)",
    source="CQ-Bench, sections 2.2 and 3.1, appendices A.1, A.2 and A.3",
    conditions=CONDITIONS,
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
