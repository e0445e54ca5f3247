"""CQ-Bench's tables, from results: by task and setting, by category, by option, binary, released.

An answer that was refused or cannot be read counts as wholly wrong; an item without a reply (error)
counts not at all. Questions about one story are drawn together in the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Choices, Result
from judge.evaluation.cqbench_values import folded, hits, is_neutral, merged
from judge.evaluation.measuring import NOTE, Sample, class_scores, field, label_scores
from judge.evaluation.tables import Cell, Table, bars, grouped
from judge.stats.classification import ratio

TASKS = {
    "attitude": "attitude detection",
    "selection": "value selection",
    "extraction": "value extraction",
}
CONDITIONS = (
    *("attitude", "attitude+steps", "attitude:binary", "attitude:binary+steps"),
    *("selection", "selection+steps", "extraction+steps"),
)
"""`+steps`: the model first summarises, then analyses (section 3.1). `:binary`: questions whose
right answer is not neutral, asked without the neutral option (appendix B.1)."""

_CONDITION = field("condition")
_MEANING = (
    "score: accuracy (attitude detection), mean F1 of the items (selection), mean recall of the "
    "stories (extraction). pooled: F1 over all options given, recall over all gold values. "
    "stories: how many the questions that got a reply are about."
)
_MERGED = (
    "merged: attitudes that differ only in severity are taken as one when answers are compared; "
    "the questions are the same."
)
_SELECTION = (
    "precision, recall, F1: means over items, 0 for an item without an answer. pooled F1: over all "
    "options given and right ones together."
)
_EXTRACTION = (
    "recall: the mean credit (1, 0.5, 0) over gold values; story recall: the mean of the stories' "
    "own. unsettled: gold values that no judge settled, left out of both. At most ten predictions "
    "a story are graded."
)


def task_of(condition: str) -> str:
    """`attitude`, `selection` or `extraction`."""
    return condition.split("+")[0].split(":")[0]


def tables(results: Sequence[Result], choices: Choices) -> list[Table]:
    """All tables that there are results for."""
    attitude, selection, extraction = (
        [result for result in results if task_of(result.condition) == task] for task in TASKS
    )
    full = [result for result in results if ":binary" not in result.condition]
    plain = [_compared(one, folded) for one in attitude]

    def overview(name: str, slice: str, title: str, some: Sequence[Result]) -> Table:
        groups = grouped(
            _with_merged(some, slice),
            lambda one: TASKS[task_of(one.condition)],
            field(slice),
            _CONDITION,
            known=[tuple(TASKS.values()), (), CONDITIONS],
        )
        heads, notes = ("task", slice, "condition"), (_MEANING, _MERGED, NOTE)
        return bars(name, title, heads, groups, _scores, drawn=("score",), notes=notes)

    return [
        overview("cqbench", "setting", "CQ-Bench by task and setting (table 1)", full),
        overview(
            "cqbench-categories",
            "category",
            "CQ-Bench by category of the stories (table 6)",
            [result for result in full if result.fields.get("category")],
        ),
        _options([result for result in plain if ":binary" not in result.condition]),
        _binary(plain),
        bars(
            "cqbench-selection",
            "Value selection",
            ("condition",),
            grouped(selection, _CONDITION, known=[CONDITIONS]),
            _selection,
            drawn=("F1", "pooled F1"),
            notes=(_SELECTION, NOTE),
        ),
        _extractions(extraction),
    ]


def _options(attitude: Sequence[Result]) -> Table:
    """Attitude detection by the right attitude."""
    groups = [
        ((option, condition), (here, option))
        for (condition,), here in grouped(attitude, _CONDITION, known=[CONDITIONS])
        for option in dict.fromkeys(result.fields["gold"] for result in here)
    ]
    return bars(
        "cqbench-options",
        "Attitude detection by option",
        ("option", "condition"),
        groups,
        lambda part: label_scores(*part),
        drawn=("F1",),
        notes=("Counts and recall are over the questions whose right answer it is.", NOTE),
    )


def _binary(attitude: Sequence[Result]) -> Table:
    """What a neutral stance among the options costs (CQ-Bench, appendix B.1)."""
    groups: list[tuple[tuple[str, str], list[Result]]] = []
    for (condition,), here in grouped(attitude, _CONDITION, known=[CONDITIONS]):
        if ":binary" in condition:
            groups.append((("gold not neutral, asked without it", condition), here))
            continue
        offered = [r for r in here if any(map(is_neutral, r.fields.get("options") or ()))]
        sided = [r for r in offered if not is_neutral(r.fields["gold"])]
        groups.append((("neutral among the options", condition), offered))
        groups.append((("gold not neutral, neutral offered", condition), sided))
    return bars(
        "cqbench-binary",
        "Attitude detection without the neutral stance (appendix B.1)",
        ("questions", "condition"),
        [group for group in groups if group[1]],
        lambda here: {**class_scores(here, _classes(here)), "stories": Sample(here).rows()},
        drawn=("accuracy",),
        notes=("Questions that offer a neutral attitude in the value file.", NOTE),
    )


def _extractions(extraction: Sequence[Result]) -> Table:
    """Value extraction: recall over all values, and by category of the story."""
    groups: list[tuple[tuple[str, str, str], list[Result]]] = []
    for (condition,), own in grouped(extraction, _CONDITION, known=[CONDITIONS]):
        groups.append((("all", "", condition), own))
        known = [result for result in own if result.fields.get("category")]
        for (category,), here in grouped(known, field("category")):
            groups.append((("category", category, condition), here))
    return bars(
        "cqbench-extraction",
        "Value extraction: recall",
        ("by", "group", "condition"),
        groups,
        _extraction,
        drawn=("recall",),
        notes=(_EXTRACTION, NOTE),
    )


# ------------------------------------------------------------ rows


def _scores(results: Sequence[Result]) -> dict[str, Cell]:
    """The cells of the first table, whatever the task."""
    sample, task = Sample(results), task_of(results[0].condition)
    cells: dict[str, Cell] = {**sample.counts(), "stories": sample.rows()}
    if task == "attitude":
        found = class_scores(results, _classes(results))
        return {**cells, "score": found["accuracy"], "macro F1": found["F1"]}
    if task == "selection":
        found = _selection(results)
        return {**cells, "score": found["F1"], "pooled": found["pooled F1"]}
    found = _extraction(results)
    return {**cells, "score": found["story recall"], "pooled": found["recall"]}


def _selection(results: Sequence[Result]) -> dict[str, Cell]:
    """Mean precision, recall and F1 of the items, an item without an answer 0; and pooled F1."""
    sample = Sample(results)
    return {
        **sample.counts(),
        "stories": sample.rows(),
        "precision": sample.share(lambda one: _ratio(_hits(one)[0], _hits(one)[1])),
        "recall": sample.share(lambda one: _ratio(_hits(one)[0], _hits(one)[2])),
        "F1": sample.share(lambda one: _ratio(2 * _hits(one)[0], sum(_hits(one)[1:]))),
        "pooled F1": sample.measure(_hits, lambda hit, given, right: ratio(2 * hit, given + right)),
    }


def _extraction(results: Sequence[Result]) -> dict[str, Cell]:
    """Recall over gold values, and its mean over stories.

    A refused or unreadable answer finds no value; an answer that was not graded is left out.
    """
    sample = Sample(results)

    def settled(result: Result) -> list[float]:
        gold: Sequence[str] = result.fields["gold"]
        if result.outcome != "answered":
            return [0.0] * len(gold)
        return [credit for credit in result.steps.get("credits") or () if credit is not None]

    gold = sum(len(one.fields["gold"]) for one in sample.there)
    n = sum(len(settled(one)) for one in sample.there)
    return {
        **sample.counts(),
        "stories": sample.rows(),
        "gold values": gold,
        "unsettled": gold - n,
        "recall": sample.measure(
            lambda one: (sum(settled(one)), len(settled(one))), ratio, n=n, of=gold
        ),
        "story recall": sample.share(
            lambda one: sum(settled(one)) / len(settled(one)) if settled(one) else None
        ),
    }


def _hits(result: Result) -> tuple[int, int, int]:
    return hits(result.answer if result.outcome == "answered" else [], result.fields["gold"])


def _with_merged(results: Sequence[Result], slice: str) -> Iterator[Result]:
    """The results, and those of attitudes again with severities merged, as a group beside."""
    for result in results:
        if task_of(result.condition) != "attitude":
            yield result
            continue
        yield _compared(result, folded)
        beside = {**result.fields, slice: f"{result.fields.get(slice)}, merged"}
        yield _compared(replace(result, fields=beside), merged)


def _compared(result: Result, reading: Callable[[str], str]) -> Result:
    """The result with right answer and answer as `reading` takes them, and scored so."""
    gold = reading(result.fields["gold"])
    fields = {**result.fields, "gold": gold}
    if result.outcome != "answered":
        return replace(result, fields=fields, score=None)
    answer = reading(result.answer)
    return replace(result, fields=fields, answer=answer, score=float(answer == gold))


def _classes(results: Sequence[Result]) -> list[str]:
    """The attitudes that are right or given in some of the results."""
    given = (result.answer for result in results if result.outcome == "answered")
    return list(dict.fromkeys([*(result.fields["gold"] for result in results), *given]))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
