"""Makes docs/calibration.md and the profile that comes with the embedded model, by measuring.

    python docs/make_calibration.py [--data ../shared/data] [--only NAME ...]

Puts the labelled fixtures and, where they are there, public data sets to the embedded local model.
Replies come from the cache where they are in it; the first run takes some hours on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from judge.calibration.calibrating import Job, calibrate
from judge.calibration.outcome import Calibration, CheckReport
from judge.cli.calibration_tables import number
from judge.profiles import JudgeProfile, Profile
from judge.run.setup import DEFAULT_MODEL, Setup
from judge.settings import resolve

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "calibration.md"
SHIPPED = ROOT / "judge" / "profiles" / "qwen2.5-coder-1.5b.json"
FIXTURES = "fixtures/labelled"


@dataclass(frozen=True)
class DataSet:
    """A set to measure on; `{data}` in its sources stands for the folder of public data."""

    name: str
    sources: tuple[str, ...]
    checks: tuple[str, ...]
    records: int | None = None
    labels: str = "the project's authors"

    @property
    def public(self) -> bool:
        return any("{data}" in source for source in self.sources)


NORMAD = "normad:{data}/normad/normad_odd_rows.csv"
MORAL = "moral-stories:{data}/moral_stories/norm_distance_dev.jsonl"
AMBIENT, MULTIPICO, LLMBAR = (
    "ambient:{data}/ambient",
    "multipico:{data}/multipico",
    "llmbar:{data}/llmbar",
)

SETS = (
    DataSet(
        "NormAd",
        (NORMAD,),
        ("relevance", "label_correctness"),
        420,
        "the set's gold labels, checked by people in part",
    ),
    DataSet(
        "Moral Stories",
        (MORAL,),
        ("adherence", "relevance"),
        200,
        "crowd writers, by construction",
    ),
    DataSet("AmbiEnt", (AMBIENT,), ("entailment",), 200, "linguists and crowd workers"),
    DataSet("MultiPICo", (MULTIPICO,), ("irony",), 200, "crowd workers of five nationalities"),
    DataSet("LLMBar", (LLMBAR,), ("preference",), 200, "the set's authors"),
    DataSet(
        "labelled/norms",
        (f"{FIXTURES}/norms.jsonl",),
        (
            "relevance",
            "label_correctness",
            "adherence",
            "derivation",
            "abstraction",
            "value_derivation",
        ),
    ),
    DataSet(
        "labelled/stories",
        (f"{FIXTURES}/stories.jsonl",),
        ("incorporation", "consistency", "implicitness"),
    ),
    DataSet("labelled/situations", (f"{FIXTURES}/situations.jsonl",), ("leakage",)),
    DataSet("labelled/pairs", (f"{FIXTURES}/pairs.jsonl",), ("entailment",)),
    DataSet("labelled/replies", (f"{FIXTURES}/replies.jsonl",), ("irony",)),
    DataSet("labelled/outputs", (f"{FIXTURES}/outputs.jsonl",), ("preference",)),
)


async def measure(sets: Sequence[DataSet], data: Path, setup: Setup) -> list[Calibration]:
    """One calibration a set, in their order."""
    found = []
    for one in sets:
        sources = tuple(source.format(data=data) for source in one.sources)
        job = Job(sources, one.checks, records=one.records)
        print(f"{one.name}: {', '.join(one.checks)}", flush=True)
        found.append(await calibrate(job, setup))
    return found


async def profile(sets: Sequence[DataSet], data: Path, setup: Setup) -> Profile:
    """For each check a profile over all sets that have labels for it, without their keys."""
    judges: list[JudgeProfile] = []
    made_by = ""
    for check in sorted({check for one in sets for check in one.checks}):
        parts = [one for one in sets if check in one.checks]
        sources = tuple(s.format(data=data) for one in parts for s in one.sources)
        records = {s.format(data=data): one.records for one in parts for s in one.sources}
        found = await calibrate(Job(sources, (check,), records_of=records), setup)
        assert found.profile is not None, found.refused
        made_by = found.profile.made_by
        judges += [one.model_copy(update={"labels": {}}) for one in found.profile.judges]
    return Profile(made_by=made_by, judges=tuple(judges))


# ---------------------------------------------------------------- the page


def page(sets: Sequence[DataSet], found: Sequence[Calibration], shipped: Profile) -> str:
    """docs/calibration.md."""
    engine = version("xllamacpp")
    lines = [
        "# How far the embedded judge agrees with labels",
        "",
        f"Made by `python docs/make_calibration.py` on {date.today():%d %B %Y}: `{DEFAULT_MODEL}`, "
        f"xllamacpp {engine}.",
        "",
        "Each set was cut in two by record: one half was fitted to, the other is reported on.",
        "*As it stands* is the rubric's own decision list; *calibrated* is what was fitted.",
        "Intervals are 95 %, bootstrapped over records. People gave labels only where the column",
        "says so; those of the project's authors say what the authors meant.",
        "",
        *_table(sets, found),
        "",
        *_beside_people(sets, found),
        "## The profile that comes with the model",
        "",
        "Fitted, check by check, to one half of all these sets together; figures are of the other:",
        "",
        *_profile_table(shipped),
        "",
        "## What was asked, and how it was combined",
        "",
        *_questions(sets, found),
    ]
    return "\n".join(lines) + "\n"


def _table(sets: Sequence[DataSet], found: Sequence[Calibration]) -> Iterator[str]:
    yield (
        "| data | labels by | check | fitted to | held out | | answered | accuracy | kappa | AUC "
        "| calibration error |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for one, calibration in zip(sets, found, strict=True):
        for report in calibration.checks:
            yield from _rows(one, report)


def _rows(one: DataSet, report: CheckReport) -> Iterator[str]:
    judge = report.judges[0]
    place = f"| {one.name} | {one.labels} | {report.check} | {report.fitted_on} | {report.held_out}"
    shown = [("as it stands", judge.stands), ("calibrated", judge.calibrated)]
    for how, measures in shown:
        if measures is None:
            continue
        accuracy = measures.accuracy
        cells = (
            f"{accuracy.n} of {measures.items}",
            *(
                number(estimate)
                for estimate in (accuracy, measures.kappa, measures.auc, measures.calibration_error)
            ),
        )
        yield f"{place} | {how} | {' | '.join(cells)} |"
        place = "| | | | |"


def _beside_people(sets: Sequence[DataSet], found: Sequence[Calibration]) -> Iterator[str]:
    """Sets with several annotators an item, and checks whose alternatives have an order."""
    yield "## Beside people, and in the other order"
    yield ""
    for one, calibration in zip(sets, found, strict=True):
        for report in calibration.checks:
            judge = report.judges[0]
            if judge.people is not None:
                people = judge.people
                yield (
                    f"- {one.name}, {report.check}, {people.human_human.n} held-out items that "
                    f"several of {people.annotators} people annotated: two of them agree "
                    f"{number(people.human_human)} of the time, one of them and the judge "
                    f"{number(people.human_judge)}; beyond chance {number(people.human_kappa)} and "
                    f"{number(people.judge_kappa)}."
                )
                if people.test is not None:
                    yield (
                        f"  Alternative annotator test (epsilon {people.test.epsilon}): winning "
                        f"rate {people.test.winning_rate:.2f}, so the judge is "
                        f"{'as good as' if people.test.passes else 'not shown to be as good as'} "
                        "one of them."
                    )
            if judge.stability is not None and judge.stability.position is not None:
                position = judge.stability.position
                yield (
                    f"- {one.name}, {report.check}, as it stands: another answer when the "
                    f"alternatives change places {number(position.changed)} of the time; the first "
                    f"place in both orders {number(position.first)}, the last "
                    f"{number(position.last)}."
                )
    yield ""


def _profile_table(shipped: Profile) -> Iterator[str]:
    yield "| check | fitted to | held out | passes of good ones | fails of bad ones | kappa |"
    yield "|---|---|---|---|---|---|"
    for judge in shipped.judges:
        rates, kappa = judge.rates, judge.measures["kappa"]
        interval = (
            "–"
            if kappa["value"] is None or kappa["low"] is None
            else f"{kappa['value']:.2f} ({kappa['low']:.2f} to {kappa['high']:.2f})"
        )
        yield (
            f"| {judge.bond.check} | {judge.data.fitted_on} | {judge.data.held_out} "
            f"| {rates.passed} of {rates.passes} | {rates.failed} of {rates.fails} | {interval} |"
        )


def _questions(sets: Sequence[DataSet], found: Sequence[Calibration]) -> Iterator[str]:
    for one, calibration in zip(sets, found, strict=True):
        for report in calibration.checks:
            judge = report.judges[0]
            tried = len(judge.fit.tried)
            told = judge.fit.reason or f"{judge.fit.how}, the best of {tried} in cross-validation"
            yield f"**{one.name}, {report.check}**: {told}."
            yield ""
            for question in judge.questions:
                yield f"- {question}"
            yield ""


async def run(options: argparse.Namespace) -> None:
    sets = [
        one
        for one in SETS
        if (not options.only or one.name in options.only)
        and (options.data.is_dir() or not one.public)
    ]
    setup = Setup.of(resolve({"model": (DEFAULT_MODEL,), "profile": "none"}))
    try:
        found = await measure(sets, options.data, setup)
        shipped = await profile(sets, options.data, setup)
    finally:
        await setup.aclose()
    if options.only:
        print("\n".join(_table(sets, found)))
        return
    PAGE.write_text(page(sets, found, shipped), "utf-8")
    SHIPPED.write_text(json.dumps(shipped.model_dump(mode="json"), indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--only", nargs="*", default=[], help="only these sets; print, write nothing"
    )
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
