"""CulturalBench's tables: accuracy by set-up, mode, region, country, topic and option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from judge.evaluation.benchmark import Choices, Result
from judge.evaluation.countries import REGIONS
from judge.evaluation.measuring import NOTE, Sample, field, scores
from judge.evaluation.tables import Cell, Table, bars, grouped
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate

EASY, HARD = "easy", "hard"
CHANCE = {EASY: 1 / 4, HARD: 1 / 2**4}
"""What guessing at random is right in, by set-up (section 5)."""

_MEAN = "mean of countries"
_MODES = ("single", "multi")
_MEAN_NOTE = (
    f"{_MEAN.capitalize()} is the unweighted mean of the countries' accuracies, as the paper's "
    "tables 5 and 6 have it; accuracy is over questions."
)
_PER_OPTION = (
    "A Hard question is right only if all four of its answers are judged rightly; per option is "
    "the share of single answers that are."
)
_SETUP, _COUNTRY = field("condition"), field("country")


def tables(results: Sequence[Result], choices: Choices) -> list[Table]:
    """All tables; set-ups that were not run have no rows, and there is no table without a topic."""
    known = tuple(CHANCE)

    def sliced(name: str, slice: str, title: str, order: Sequence[str] = ()) -> Table:
        groups = grouped(results, _SETUP, field(slice), known=[known, order])
        heads = ("set-up", slice)
        drawn = ("accuracy", "chance")
        return bars(f"culturalbench-{name}", title, heads, groups, _cells, drawn=drawn, notes=notes)

    notes = (NOTE, _PER_OPTION)
    with_topic = [result for result in results if result.fields.get("topic")]
    easy = [result for result in results if result.condition == EASY]
    hard = [result for result in results if result.condition == HARD]
    return [
        bars(
            "culturalbench-setups",
            "Accuracy by set-up",
            ("set-up",),
            grouped(results, _SETUP, known=[known]),
            _cells,
            drawn=("accuracy", "chance"),
            notes=notes,
        ),
        sliced("modes", "mode", "Accuracy by set-up and number of right answers", _MODES),
        bars(
            "culturalbench-regions",
            "Accuracy by set-up and region",
            ("set-up", "region"),
            grouped(results, _SETUP, field("region"), known=[known, REGIONS]),
            lambda here: {**_cells(here), _MEAN: mean_of_countries(here)},
            drawn=("accuracy", _MEAN),
            notes=(*notes, _MEAN_NOTE),
        ),
        sliced("countries", "country", "Accuracy by set-up and country"),
        *([sliced("topics", "topic", "Accuracy by set-up and topic")] if with_topic else []),
        bars(
            "culturalbench-positions",
            "Easy: accuracy by the letter at which the right option was shown",
            ("letter",),
            grouped(easy, lambda result: _shown(result, result.fields["gold"])),
            _with_chosen(easy),
            notes=(NOTE, "Chosen says how often the letter was answered, whatever was right."),
        ),
        bars(
            "culturalbench-options",
            "Hard: single answers, by whether they are true",
            ("mode", "answer is"),
            grouped(
                _single_answers(hard),
                field("mode"),
                lambda one: "true" if one.fields["gold"] else "false",
                known=[_MODES, ("true", "false")],
            ),
            scores,
            notes=("Saying false to everything is right in three of four of the single mode's.",),
        ),
    ]


def mean_of_countries(results: Sequence[Result]) -> Estimate:
    """The unweighted mean of the countries' accuracies, errors left out.

    Undefined where a country that was asked about has errors only.
    """
    countries = list(dict.fromkeys(map(_COUNTRY, results)))

    def sums(result: Result) -> list[float]:
        own = [float(_COUNTRY(result) == country) for country in countries]
        return [*(one * (result.score or 0.0) for one in own), *own]

    def mean(*columns: Any) -> Any:
        shares = zip(columns[: len(countries)], columns[len(countries) :], strict=True)
        return sum(ratio(right, asked) for right, asked in shares) / len(countries)

    return Sample(results).measure(sums, mean)


def _cells(results: Sequence[Result]) -> dict[str, Cell]:
    setup = results[0].condition
    chance = Estimate(CHANCE[setup], n=len(results), of=len(results))
    cells: dict[str, Cell] = {**scores(results), "chance": chance}
    if setup == HARD:
        cells["per option"] = Sample(list(_single_answers(results))).accuracy()
    return cells


def _single_answers(results: Sequence[Result]) -> Iterator[Result]:
    """Each answer of a Hard question by itself."""
    for result in results:
        truths = result.fields["gold"]
        for true, said in zip(truths, result.answer or [None] * len(truths), strict=True):
            fields = {**result.fields, "gold": true}
            alone = replace(result, fields=fields, answer=said, score=None)
            if said is not None:
                alone = replace(alone, outcome="answered", score=float(said is true))
            yield alone


def _with_chosen(easy: Sequence[Result]) -> Callable[[Sequence[Result]], dict[str, Cell]]:
    chosen = Counter(_shown(one, one.answer) for one in easy if one.outcome == "answered")
    return lambda here: {**scores(here), "chosen": chosen[_shown(here[0], here[0].fields["gold"])]}


def _shown(result: Result, letter: str) -> str:
    """The letter at which an option was shown, from its letter in the released file."""
    return "ABCD"[result.fields["order"].index(letter)]
