"""The tables of an audit: how often verdicts turn, by what judge does and under the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from judge.audit.outcome import PROMPTINGS, Prompting, Result
from judge.audit.suite import CONTROL
from judge.evaluation.tables import Cell, Row, Table
from judge.stats.bootstrap import Resamples, mean_estimate, paired_difference, share_estimate
from judge.stats.intervals import wilson
from judge.stats.significance import mcnemar

_COUNTS = ("asked", "to turn", "turned", "abstained", "already", "unreadable", "error")

_FLIPS = (
    "Flip rate: of the attacked records whose clean twin does not have the verdict that the attack "
    "wants (to turn), the share that has it. Abstained: of these, the records left to people. "
    "Already: the twin had it, so there was nothing to turn. Shift: how far P(pass) moved towards "
    "the wanted verdict, over all pairs where it was read."
)
_WAYS = (
    "Defended: all that judge does. Prompt-only: judge's own prompt, with records put to the model "
    "from which judge would abstain. Undefended: the baseline's prompt, likewise."
)


def tables(results: Sequence[Result], *, seed: int = 0) -> list[Table]:
    """The overall table, the one of the paired comparison, and those by attack and by rubric."""
    return [
        _overall(results, seed),
        _paired([result for result in results if result.family != CONTROL], seed),
        _by("attack", results, seed),
        _by("rubric", [result for result in results if result.family != CONTROL], seed),
    ]


def turned(result: Result, prompting: Prompting) -> float | None:
    """1 for a verdict that was turned, 0 for one that held, None where nothing could be turned."""
    return {"flipped": 1.0, "held": 0.0, "abstained": 0.0}.get(result.outcome(prompting))


# ------------------------------------------------------------ tables


def _overall(results: Sequence[Result], seed: int) -> Table:
    rows = []
    for told, hostile in (("attacks", True), ("harmless insertions", False)):
        some = [result for result in results if (result.family != CONTROL) == hostile]
        if not some:
            continue
        resamples = _resamples(some, seed)
        for prompting in PROMPTINGS:
            cells = _counted(some, prompting)
            shares = [turned(result, prompting) for result in some]
            cells["flip rate"] = share_estimate(shares, resamples)
            cells["shift"] = mean_estimate([one.shift(prompting) for one in some], resamples)
            rows.append(Row((told, prompting), cells))
    return Table(
        name="flips",
        title="Verdicts turned",
        heads=("what was put in", "prompt"),
        columns=(*_COUNTS, "flip rate", "shift"),
        rows=rows,
        figure="bars",
        drawn=("flip rate",),
        notes=(_WAYS, _FLIPS, "Intervals: 95 %, bootstrapped over clean records."),
    )


def _paired(results: Sequence[Result], seed: int) -> Table:
    """What judge does, and its prompt alone, beside the baseline on the same pairs."""
    *ours, bare = PROMPTINGS
    return Table(
        name="paired",
        title="Beside the undefended prompt, on the same pairs",
        heads=("what was put in", "prompt"),
        columns=(
            "to turn under both",
            "only the baseline turned",
            "only judge's own turned",
            "both turned",
            "p",
            "flip rate, less",
            "shift, less",
        ),
        rows=[
            Row(("attacks", own), _beside(results, own, bare, _resamples(results, seed)))
            for own in ours
            if results
        ],
        notes=(
            "p: McNemar's exact test, which takes pairs to be independent. Less: the baseline's "
            "number minus that of judge's own way; above 0 the defence helps.",
        ),
    )


def _beside(
    results: Sequence[Result], own: Prompting, bare: Prompting, resamples: Resamples
) -> dict[str, Cell]:
    flips = [(turned(result, own), turned(result, bare)) for result in results]
    both = [(a, b) for a, b in flips if a is not None and b is not None]
    tested = mcnemar([b for _, b in both], [a for a, _ in both])
    return {
        "to turn under both": len(both),
        "only the baseline turned": tested.only_first,
        "only judge's own turned": tested.only_second,
        "both turned": sum(a == b == 1 for a, b in both),
        "p": f"{tested.p:.2g}" if both else None,
        "flip rate, less": paired_difference(
            [None if a is None or b is None else a for a, b in flips],
            [None if a is None or b is None else b for a, b in flips],
            resamples,
        ),
        "shift, less": paired_difference(
            [result.shift(own) for result in results],
            [result.shift(bare) for result in results],
            resamples,
        ),
    }


def _by(head: str, results: Sequence[Result], seed: int) -> Table:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.family if head == "attack" else result.check, []).append(result)
    rates = tuple(f"{prompting} flip rate" for prompting in PROMPTINGS)
    return Table(
        name=f"by-{head}",
        title=f"By {head}",
        heads=(head,),
        columns=("asked", rates[0], "abstained", *rates[1:], "unreadable", "error"),
        rows=[Row((name,), _grouped(some)) for name, some in groups.items()],
        figure="bars",
        drawn=rates,
        notes=(
            "Flip rates over the pairs that had something to turn, of all that were asked, with "
            "Wilson's 95 % interval, which takes pairs to be independent"
            + (
                "; those of one rubric share three clean records, so theirs is too narrow."
                if head == "rubric"
                else "."
            ),
            "Abstained: defended. Unreadable, error: in any of the three.",
        ),
    )


def _grouped(some: Sequence[Result]) -> dict[str, Cell]:
    outcomes = [
        {prompting: result.outcome(prompting) for prompting in PROMPTINGS} for result in some
    ]
    cells: dict[str, Cell] = {
        "asked": len(some),
        "abstained": sum(one["defended"] == "abstained" for one in outcomes),
        "unreadable": sum("unreadable" in one.values() for one in outcomes),
        "error": sum("error" in one.values() for one in outcomes),
    }
    for prompting in PROMPTINGS:
        shares = [one for result in some if (one := turned(result, prompting)) is not None]
        rate = wilson(int(sum(shares)), len(shares))
        cells[f"{prompting} flip rate"] = replace(rate, of=len(some))
    return cells


# ------------------------------------------------------------ cells


def _resamples(results: Sequence[Result], seed: int) -> Resamples:
    return Resamples([result.carrier for result in results], seed=seed)


def _counted(results: Sequence[Result], prompting: Prompting) -> dict[str, Cell]:
    counts = Counter(result.outcome(prompting) for result in results)
    return {
        "asked": len(results),
        "to turn": counts["flipped"] + counts["held"] + counts["abstained"],
        "turned": counts["flipped"],
        **{name: counts[name] for name in ("abstained", "already", "unreadable", "error")},
    }
