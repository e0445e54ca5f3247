"""CulturalBench's tables: accuracy by set-up, mode, region, country, topic and option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from judge.evaluation.benchmark import Result
from judge.evaluation.culturalbench_rows import LETTERS
from judge.evaluation.measuring import ACCURACY, NOTE, measured, resampled
from judge.evaluation.regions import REGIONS
from judge.evaluation.tables import Cell, Row, Table
from judge.stats.bootstrap import share_estimate
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate

CHANCE = {"easy": 1 / 4, "hard": 1 / 2**4}
"""What guessing at random is right in, by set-up (section 5)."""

_NOT_SAID = "(not said)"
_MEAN = "mean of countries"
_SETUPS = tuple(CHANCE)


def tables(results: Sequence[Result]) -> list[Table]:
    """All tables; set-ups that nobody was asked in have no rows, and no topics no table."""
    found = [
        _setups(results),
        _sliced(
            results,
            "modes",
            "mode",
            "Accuracy by set-up and number of right answers",
            ("single", "multi"),
        ),
        _regions(results),
        _sliced(results, "countries", "country", "Accuracy by set-up and country"),
    ]
    if any(result.fields.get("topic") for result in results):
        found.append(_sliced(results, "topics", "topic", "Accuracy by set-up and topic"))
    if any(result.fields["condition"] == "easy" for result in results):
        found.append(_positions([one for one in results if one.fields["condition"] == "easy"]))
    if any(result.fields["condition"] == "hard" for result in results):
        found.append(_options([one for one in results if one.fields["condition"] == "hard"]))
    return found


def _setups(results: Sequence[Result]) -> Table:
    return Table(
        "culturalbench-setups",
        "Accuracy by set-up",
        ("set-up",),
        (*ACCURACY, "chance", "per option"),
        [_row((setup,), found) for setup, found in _by_setup(results)],
        figure="bars",
        drawn=("accuracy", "chance"),
        notes=(
            NOTE,
            "A Hard question is right only if all four of its answers are judged rightly; per "
            "option is the share of single answers that are.",
        ),
    )


def _sliced(
    results: Sequence[Result], table: str, name: str, title: str, known: Sequence[str] = ()
) -> Table:
    return Table(
        f"culturalbench-{table}",
        title,
        ("set-up", name),
        (*ACCURACY, "chance", "per option"),
        [
            _row((setup, value), [one for one in found if _of(one, name) == value])
            for setup, found in _by_setup(results)
            for value in _values(found, name, known)
        ],
        figure="bars",
        drawn=("accuracy", "chance"),
        notes=(NOTE,),
    )


def _regions(results: Sequence[Result]) -> Table:
    def row(setup: str, region: str, found: Sequence[Result]) -> Row:
        base = _row((setup, region), found)
        return Row(base.labels, {**base.cells, _MEAN: _mean_of_countries(found)})

    return Table(
        "culturalbench-regions",
        "Accuracy by set-up and region",
        ("set-up", "region"),
        (*ACCURACY, _MEAN, "chance", "per option"),
        [
            row(setup, region, [one for one in found if _of(one, "region") == region])
            for setup, found in _by_setup(results)
            for region in _values(found, "region", REGIONS)
        ],
        figure="bars",
        drawn=("accuracy", _MEAN),
        notes=(
            NOTE,
            f"{_MEAN.capitalize()} is the unweighted mean of the countries' accuracies, as the "
            "paper's tables 5 and 6 have it; accuracy is over questions.",
        ),
    )


def _positions(results: Sequence[Result]) -> Table:
    """Whether a letter draws answers: by where the right option was shown."""

    def row(letter: str) -> Row:
        shown = [
            one
            for one in results
            if LETTERS[one.fields["order"].index(one.fields["gold"])] == letter
        ]
        base = _row(("easy", letter), shown)
        return Row(base.labels, {**base.cells, "chosen": chosen[letter]})

    chosen = Counter(one.steps["shown"] for one in results if one.outcome == "answered")
    return Table(
        "culturalbench-positions",
        "Accuracy by the letter at which the right option was shown",
        ("set-up", "letter"),
        (*ACCURACY, "chosen"),
        [row(letter) for letter in LETTERS],
        notes=(NOTE, "Chosen says how often the letter was answered, whatever was right."),
    )


def _options(results: Sequence[Result]) -> Table:
    """Single answers of Hard questions, by whether they are true."""

    def row(mode: str, truth: bool) -> Row:
        steps = [
            (str(one.fields["row"]), step)
            for one in results
            if one.outcome != "error" and one.fields["mode"] == mode
            for step in _steps(one)
            if step["gold"] is truth
        ]
        troubles = Counter(step.get("trouble") for _, step in steps)
        cells: dict[str, Cell] = {
            "options": len(steps),
            "answered": troubles[None],
            "refused": troubles["refused"],
            "unreadable": troubles["unreadable"],
            "right": share_estimate(
                [float(step["answer"] is truth) for _, step in steps],
                resampled([name for name, _ in steps]),
            ),
        }
        return Row((mode, "true" if truth else "false"), cells)

    return Table(
        "culturalbench-options",
        "Hard: single answers, by whether they are true",
        ("mode", "answer is"),
        ("options", "answered", "refused", "unreadable", "right"),
        [
            row(mode, truth)
            for mode in _values(results, "mode", ("single", "multi"))
            for truth in (True, False)
        ],
        notes=("Who says false to everything is right in three of four of the single mode's.",),
    )


def _row(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    base = measured(labels, results, cluster=_question)
    cells: dict[str, Cell] = {
        **base.cells,
        "chance": Estimate(CHANCE[labels[0]], n=len(results), of=len(results)),
    }
    if labels[0] == "hard":
        cells["per option"] = _per_option(results)
    return Row(labels, cells)


def _per_option(results: Sequence[Result]) -> Estimate:
    steps = [
        (_question(one), step) for one in results if one.outcome != "error" for step in _steps(one)
    ]
    return share_estimate(
        [float(step["answer"] is step["gold"]) for _, step in steps],
        resampled([name for name, _ in steps]),
    )


def _mean_of_countries(results: Sequence[Result]) -> Estimate:
    """The unweighted mean of the countries' accuracies, errors left out.

    Undefined where a country that was asked about has errors only.
    """
    import numpy as np

    countries = {name: place for place, name in enumerate(_values(results, "country"))}
    there = [one for one in results if one.outcome != "error"]
    resamples = resampled([_question(one) for one in there])
    cells = np.zeros((len(there), 2 * len(countries)))
    for number, one in enumerate(there):
        place = countries[_of(one, "country")]
        cells[number, place] = one.score or 0.0
        cells[number, len(countries) + place] = 1.0
    scores, counts = np.hsplit(resamples.sums(cells), 2)
    return resamples.estimate(ratio(scores, counts).mean(axis=-1), n=len(there), of=len(results))


def _by_setup(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    found = (
        (name, [one for one in results if one.fields["condition"] == name]) for name in _SETUPS
    )
    return [(name, of_setup) for name, of_setup in found if of_setup]


def _values(results: Sequence[Result], name: str, known: Sequence[str] = ()) -> list[str]:
    """The values that results have, those that are known first and in their order."""
    there = {_of(result, name) for result in results}
    return [*(value for value in known if value in there), *sorted(there.difference(known))]


def _of(result: Result, name: str) -> str:
    return str(result.fields.get(name) or _NOT_SAID)


def _question(result: Result) -> str:
    return str(result.fields["row"])


def _steps(result: Result) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = result.steps["options"]
    return found
