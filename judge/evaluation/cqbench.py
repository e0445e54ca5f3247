"""CQ-Bench: which values does a conversation carry without naming them?

Three tasks on validated stories (section 2.2): attitude detection, one of a statement's attitudes;
value selection, exactly X of 15 options; value extraction, at most ten values in the model's own
words, credited by judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge.evaluation.benchmark import Answer, Benchmark, Given, Grader, MeasuredModel
from judge.evaluation.cqbench_conditions import CONDITIONS, USUAL
from judge.evaluation.cqbench_items import items
from judge.evaluation.cqbench_options import folded
from judge.evaluation.cqbench_scores import AT_MOST, extraction_recall, selection_hits
from judge.evaluation.cqbench_tables import tables
from judge.verdict import Usage


class _Stopped(Exception):
    """A step brought no text, so that the question is not put."""

    def __init__(self, given: Given) -> None:
        super().__init__(given.trouble)
        self.given = given


@dataclass(slots=True)
class _Asking:
    """One item on its way to its answer: the texts so far, what was written, what it took."""

    model: MeasuredModel
    texts: dict[str, str]
    written: dict[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    async def write(self, task: str, **texts: str) -> str:
        """Have the model write by a task; `texts` are shown beside those that every ask shows.

        Raises:
            _Stopped: it refused, or its reply cannot be read.
        """
        given = self.took(await self.model.writes(task, {**self.texts, **texts}), f"step {task}: ")
        return given.text

    def took(self, given: Given, where: str = "") -> Given:
        """Count what a reply took. Raises _Stopped where it brought nothing."""
        self.usage += given.usage
        if given.trouble is not None:
            raise _Stopped(replace(given, detail=f"{where}{given.detail or given.trouble}"))
        return given

    def answered(self, answer: Any, score: float | None) -> Answer:
        return Answer("answered", self.usage, answer, score, steps=self.written)

    def stopped(self, given: Given) -> Answer:
        assert given.trouble is not None, "only troubles stop an item"
        return Answer(given.trouble, self.usage, steps=self.written, reason=given.detail)


async def answer(fields: Mapping[str, Any], model: MeasuredModel) -> Answer:
    """Ask the model about one item, step by step where its condition says so.

    Raises:
        BackendError: the model gives no reply.
    """
    condition = CONDITIONS[fields["condition"]]
    asking = _Asking(model, {"story": fields["story"]})
    ask = {"attitude": _attitude, "selection": _selection, "extraction": _extraction}
    try:
        return await ask[condition.task](fields, asking, condition.steps)
    except _Stopped as stop:
        return asking.stopped(stop.given)


async def _attitude(fields: Mapping[str, Any], asking: _Asking, steps: bool) -> Answer:
    options: Sequence[str] = fields["options"]
    asking.texts["statement"] = fields["statement"]
    if character := fields.get("character"):
        asking.texts["character"] = character
    if steps:
        speech = await asking.write("cqbench_attitude_speech")
        asking.written["related_speech"] = asking.texts["related_speech"] = speech
        analysis = await asking.write("cqbench_attitude_analysis", attitudes="\n".join(options))
        asking.written["analysis"] = asking.texts["analysis"] = analysis
    given = asking.took(await asking.model.choose("cqbench_attitude", asking.texts, options))
    assert given.place is not None, "a choice without trouble has a place"
    chosen = options[given.place]
    answer = asking.answered(chosen, float(folded(chosen) == folded(fields["gold"])))
    if given.probabilities is None:
        return answer
    return replace(answer, probabilities=dict(zip(options, given.probabilities, strict=True)))


async def _selection(fields: Mapping[str, Any], asking: _Asking, steps: bool) -> Answer:
    options: Sequence[str] = fields["options"]
    gold: Sequence[str] = fields["gold"]
    asking.texts["count"] = str(len(gold))
    if steps:
        listed = "\n".join(options)
        topics = await asking.write("cqbench_selection_topics", candidate_values=listed)
        asking.written["topics"] = asking.texts["topics"] = topics
        analysis = await asking.write("cqbench_selection_analysis", candidate_values=listed)
        asking.written["analysis"] = asking.texts["analysis"] = analysis
    given = asking.took(
        await asking.model.select("cqbench_selection", asking.texts, options, len(gold))
    )
    chosen = [options[place] for place in given.places]
    return asking.answered(chosen, selection_hits(chosen, gold).f1)


async def _extraction(fields: Mapping[str, Any], asking: _Asking, steps: bool) -> Answer:
    assert steps, "extraction is asked in steps alone"
    summaries: dict[str, str] = {}
    asking.written["summaries"] = summaries
    for topic in fields["topics"]:
        summaries[topic] = await asking.write("cqbench_summary", topic=topic)
    asking.texts["topics"] = "\n".join(fields["topics"])
    asking.texts["summary"] = "\n\n".join(f"{topic}: {text}" for topic, text in summaries.items())
    given = asking.took(await asking.model.lists("cqbench_extraction", asking.texts))
    kept = [entry for entry in given.entries if entry.strip()]
    asking.written |= {"predicted": len(kept), "cut": max(0, len(kept) - AT_MOST)}
    return asking.answered(kept[:AT_MOST], None)


async def grade(fields: Mapping[str, Any], answer: Answer, grader: Grader) -> Answer:
    """Credit an extraction: its score is the mean credit over the settled gold values.

    `steps` then holds `credits`, `named` and `reasons`, one for each gold value. What the judges
    took is added to the usage. Answers of the other tasks come back as they are.

    Raises:
        BackendError: a judge gives no reply.
    """
    if CONDITIONS[fields["condition"]].task != "extraction" or answer.outcome != "answered":
        return answer
    graded = await grader.extraction(str(fields["id"]), answer.answer, fields["gold"])
    steps = {
        **answer.steps,
        "credits": list(graded.credits),
        "named": [list(places) for places in graded.named],
        "reasons": list(graded.reasons),
    }
    score = extraction_recall(graded.credits)
    return replace(answer, score=score, steps=steps, usage=answer.usage + graded.usage)


benchmark = Benchmark(
    name="cqbench",
    title="Values that conversations carry without naming them (CQ-Bench)",
    source="CQ-Bench, sections 2.2 and 3.1, appendices A.1, A.2, A.3 and B.1",
    conditions=tuple(CONDITIONS),
    usual=USUAL,
    tasks=(
        "cqbench_attitude",
        "cqbench_attitude_speech",
        "cqbench_attitude_analysis",
        "cqbench_selection",
        "cqbench_selection_topics",
        "cqbench_selection_analysis",
        "cqbench_summary",
        "cqbench_extraction",
    ),
    items=items,
    answer=answer,
    tables=tables,
    grade=grade,
)
