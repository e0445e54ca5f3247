"""Measures docs/evidence/calibration.md and the profile that comes with the embedded model.

    python docs/make_calibration.py [--data ../shared/data] [--only SET[:CHECK] ...]
    python docs/make_calibration.py --elsewhere [CHECK ...]     # the shipped profile, as it is

Puts the labelled fixtures and, where they are there, public data sets to the embedded local model.
Replies come from the cache where they are in it; the first run takes some hours on two cores. What
is not measured, because of --only or for want of the data, stays as it stands on the page and in
the profile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from calibration_sets import ELSEWHERE, UNITS, DataSet, job, key, resources_for

from judge.calibration.calibrate import acalibrate
from judge.calibration.labels import CalibrationJob, gather
from judge.calibration.measures import Measures, measure
from judge.calibration.observe import observe
from judge.calibration.report import Calibration, CheckReport
from judge.calibration.split import untaught
from judge.configuration import resolve
from judge.errors import UsageError
from judge.local.default import DEFAULT
from judge.profile import JudgeProfile, Profile
from judge.run.panels import Resources
from judge.run.profiles import Profiles
from judge.stats.intervals import plain

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "calibration.md"
SHIPPED = ROOT / "judge" / "local" / "qwen2.5-coder-1.5b.json"


async def measures(
    units: Sequence[DataSet], data: Path, resources: Resources
) -> dict[str, Fragment]:
    """What the page says of each unit."""
    found = {}
    for unit in units:
        print(key(unit), flush=True)
        found[key(unit)] = fragment(
            unit, await acalibrate(job([unit], data), resources_for(unit, resources))
        )
    return found


def fitted_to(check: str) -> list[DataSet]:
    """What a check's profile is fitted to: sets that people labelled, where there are any."""
    units = [unit for unit in UNITS if check in unit.checks and unit.shipped]
    return [unit for unit in units if unit.public] or units


def shipped_profile() -> Profile:
    """The profile as it stands in the package."""
    return Profile.model_validate_json(SHIPPED.read_text("utf-8"))


async def profile(units: Sequence[DataSet], data: Path, resources: Resources) -> Profile:
    """A profile for each check; the one there is, unless all that it is fitted to is measured
    now."""
    shipped = shipped_profile()
    made: dict[str, JudgeProfile] = {one.binding.check: one for one in shipped.judges}
    made_by = shipped.made_by
    for check in dict.fromkeys(check for unit in units for check in unit.checks):
        parts = fitted_to(check)
        if not parts or not all(part in units for part in parts):
            continue
        found = await acalibrate(job(parts, data), resources_for(parts[0], resources))
        assert found.profile is not None, found.refused
        (one,) = found.profile.judges
        made_by, made[check] = found.profile.made_by, one
    return Profile(made_by=made_by, judges=tuple(made[check] for check in sorted(made)))


# ---------------------------------------------------------------- on other hands' texts


async def elsewhere(
    made: Profile, checks: Sequence[str], data: Path, resources: Resources
) -> Profile:
    """The profile with what its judges of these checks measure on texts by others: as they are, on
    a set of ELSEWHERE; or, where a judge was fitted to public sets alone, whose texts many people
    wrote or checked, on the records that were kept apart."""
    known = replace(resources, profiles=Profiles.of(made, None))
    judges = {judge.binding.check: judge for judge in made.judges}
    for check in (check for check in checks if check in judges):
        judge, parts = judges[check], fitted_to(check)
        units = [unit for unit in ELSEWHERE if check in unit.checks]
        found: dict[str, Any] = {}
        if units:
            measures = await _as_it_is(replace(units[0], checks=(check,)), data, known)
            found = {name: plain(getattr(measures, name)) for name in _BOTH}
            found |= {"set": units[0].name, "labels": measures.items}
        elif all("{data}" in source for part in parts for source in part.sources):
            found = {name: judge.measures[name] for name in _BOTH}
            names = ", ".join(part.name for part in parts)
            found |= {"set": f"kept apart: {names}", "labels": judge.data.held_out}
        judges[check] = judge.model_copy(update={"elsewhere": found})
    return made.model_copy(update={"judges": tuple(judges.values())})


async def _as_it_is(unit: DataSet, data: Path, resources: Resources) -> Measures:
    (check,), sources = unit.checks, [source.format(data=data) for source in unit.sources]
    if {*sources} & {s.format(data=data) for one in fitted_to(check) for s in one.sources}:
        raise UsageError(f"{check} was fitted to {unit.name}")
    (judge,) = resources.panel(check).judges
    labels = gather(
        CalibrationJob(sources, (check,), records=unit.records), resources.rubrics.judging
    )
    items = labels.items[check]
    if labels.problems or untaught([items], [judge])[0] != items:
        raise UsageError(f"{unit.name}: some labels cannot be used, or taught the judge of {check}")
    judged = await observe(
        judge, items, at_once=resources.models.slots, budget=resources.models.budget
    )
    return measure(judged, judge.rubric.answers)


# ---------------------------------------------------------------- the page


@dataclass(frozen=True, slots=True)
class Fragment:
    """What the page says of one unit: in the tables, beside people, and of its questions."""

    rows: tuple[str, ...]
    looks: tuple[str, ...]
    beside: tuple[str, ...]
    questions: tuple[str, ...]


def fragment(unit: DataSet, found: Calibration) -> Fragment:
    (report,) = found.checks
    return Fragment(
        tuple(_rows(unit, report)),
        tuple(_looks(unit, report)),
        tuple(_beside_people(unit, report)),
        tuple(_questions(unit, report)),
    )


def kept(text: str) -> dict[str, Fragment]:
    """What a page made earlier says, by unit."""
    found = {}
    for unit in UNITS:
        name, check = re.escape(unit.name), unit.checks[0]
        rows = re.search(rf"^\| {name} \| [^|]+ \| {check} \|.*\n(\| \| .*\n)*", text, re.M)
        looks = re.findall(rf"^\| {name}: {check} \|.*$", text, re.M)
        beside = re.findall(rf"^- {name}, {check}, .*\n(?:  .*\n)*", text, re.M)
        questions = re.search(rf"^\*\*{name}, {check}\*\*.*\n\n(- .*\n)*", text, re.M)
        if rows and questions:
            found[key(unit)] = Fragment(
                tuple(rows[0].splitlines()),
                tuple(looks),
                tuple("".join(beside).splitlines()),
                tuple(f"{questions[0].rstrip()}\n".split("\n")),
            )
    return found


def page(found: Mapping[str, Fragment], made: Profile) -> str:
    """docs/evidence/calibration.md."""
    engine = version("xllamacpp")
    known = [found[key(unit)] for unit in UNITS if key(unit) in found]
    lines = [
        "# How far the embedded judge agrees with labels",
        "",
        f"Made by `python docs/make_calibration.py` on {date.today():%d %B %Y}: `{DEFAULT.spec}`, "
        f"xllamacpp {engine}.",
        "",
        "Each set was cut in two by record: one half was fitted to, the other is reported on.",
        "Where both have all items, it was cut in five, and each fifth is reported on by what was",
        "fitted to the others (`--folds 5`).",
        "*As it stands* is the rubric's own decision list; *calibrated* is what was fitted.",
        "Intervals are 95 %, bootstrapped over records. People gave labels only where the column",
        "says so; those of the project's authors say what the authors meant.",
        "",
        *_HEAD,
        *(line for one in known for line in one.rows),
        "",
        "## Does it look?",
        "",
        "Kappa without the field that decides (blind), how many answers stay when that field is",
        "another record's (swap), and kappa where it is turned round (contrast), each on records",
        "that nothing was fitted to.",
        "",
        *_LOOKS,
        *(line for one in known for line in one.looks),
        "",
        "## Beside people",
        "",
        *(line for one in known for line in one.beside),
        "",
        "## The profile that comes with the model",
        "",
        "Fitted, check by check, to one half of the public sets that have labels for it, or of our",
        "own where there is none; figures are of the other half. A check is not *asked* where the",
        "lower end of kappa is not above 0, here or on texts by others, or where the judge is not",
        "shown to look at the field that decides, for want of a control or because it failed: it",
        "abstains (decision 0032).",
        "",
        *_profile_table(made),
        "",
        "### On texts by others",
        "",
        "A figure on our own texts says little about yours. So where a check was fitted to these,",
        "the same judge, as it is, was put to a set whose author wrote nothing that it was taught",
        "or fitted to. Where it was fitted to public sets, which crowd workers wrote or people",
        "checked, the figure is of the records that were kept apart. A check that does not hold",
        "there, or for which there is no such set, is not asked.",
        "",
        *_elsewhere_table(made),
        "",
        "## What was asked, and how it was combined",
        "",
        *(line for one in known for line in one.questions),
    ]
    return "\n".join(lines).rstrip() + "\n"


_HEAD = (
    "| data | labels by | check | fitted to | held out | | answered | accuracy | kappa | AUC "
    "| calibration error |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)


_LOOKS = (
    "| data: check | without | kappa | blind | difference | answers that stay under a swap "
    "| as they must be | contrast | both sets together |",
    "|---|---|---|---|---|---|---|---|---|",
)


def _looks(one: DataSet, report: CheckReport) -> Iterator[str]:
    found = report.judges[0].controls
    if found is not None:
        told = (
            *(found.kappa, found.blind, found.above, found.stays, found.as_swapped),
            *(found.contrast, found.together),
        )
        cells = " | ".join("–" if one is None else str(one) for one in told)
        yield f"| {one.name}: {report.check} | {found.field} | {cells} |"


def _rows(one: DataSet, report: CheckReport) -> Iterator[str]:
    judge = report.judges[0]
    place = f"| {one.name} | {one.labels} | {report.check} | {report.fitted_on} | {report.held_out}"
    shown = [("as it stands", judge.uncalibrated), ("calibrated", judge.calibrated)]
    for how, measures in shown:
        if measures is None:
            continue
        accuracy = measures.accuracy
        cells = (
            f"{accuracy.n} of {measures.items}",
            *(
                str(estimate)
                for estimate in (accuracy, measures.kappa, measures.auc, measures.calibration_error)
            ),
        )
        yield f"{place} | {how} | {' | '.join(cells)} |"
        place = "| | | | |"


def _beside_people(one: DataSet, report: CheckReport) -> Iterator[str]:
    judge = report.judges[0]
    if judge.people is not None:
        people = judge.people
        yield (
            f"- {one.name}, {report.check}, {people.human_human.n} held-out items that "
            f"several of {people.annotators} people annotated: two of them agree "
            f"{people.human_human} of the time, one of them and the judge "
            f"{people.human_judge}; beyond chance {people.human_kappa} and "
            f"{people.judge_kappa}."
        )
        if people.test is not None:
            yield (
                f"  Alternative annotator test (epsilon {people.test.epsilon}): winning "
                f"rate {people.test.winning_rate:.2f}, so the judge is "
                f"{'as good as' if people.test.passes else 'not shown to be as good as'} "
                "one of them."
            )


def _profile_table(shipped: Profile) -> Iterator[str]:
    yield (
        "| check | asked | fitted to | held out | passes of good ones | fails of bad ones | kappa |"
    )
    yield "|---|---|---|---|---|---|---|"
    for judge in shipped.judges:
        rates = judge.rates
        yield (
            f"| {judge.binding.check} | {'no' if judge.why_guess(unmeasured=True) else 'yes'} "
            f"| {judge.data.fitted_on} | {judge.data.held_out} "
            f"| {rates.passed} of {rates.passes} | {rates.failed} of {rates.fails} "
            f"| {_interval(judge.measures['kappa'])} |"
        )


def _elsewhere_table(shipped: Profile) -> Iterator[str]:
    yield "| check | on | labels | kappa there | AUC there | kappa on ours | AUC on ours |"
    yield "|---|---|---|---|---|---|---|"
    for judge in shipped.judges:
        if there := judge.elsewhere:
            # Of records kept apart there is one figure, which stands in the table above.
            apart = there["kappa"] == judge.measures["kappa"]
            pair = [there] if apart else [there, judge.measures]
            cells = [_interval(found[name]) for found in pair for name in _BOTH]
            cells += ["–"] * (4 - len(cells))
            check = judge.binding.check
            yield f"| {check} | {there['set']} | {there['labels']} | {' | '.join(cells)} |"


_BOTH = ("kappa", "auc")


def _interval(found: Mapping[str, float | None]) -> str:
    """An estimate as the profile has it."""
    if found["value"] is None:
        return "–"
    if found["low"] is None:
        return f"{found['value']:.2f}"
    return f"{found['value']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _questions(one: DataSet, report: CheckReport) -> Iterator[str]:
    judge = report.judges[0]
    tried = len(judge.fit.tried)
    told = judge.fit.reason or f"{judge.fit.how}, the best of {tried} in cross-validation"
    yield f"**{one.name}, {report.check}**: {told}."
    yield ""
    for question in judge.questions:
        yield f"- {question}"
    yield ""


async def run(options: argparse.Namespace) -> None:
    units = [
        unit
        for unit in UNITS
        if (not options.only or {unit.name, f"{unit.name}:{unit.checks[0]}"} & {*options.only})
        and (options.data.is_dir() or not unit.public)
    ]
    resources = Resources.of(resolve({"model": (DEFAULT.spec,), "profile": "none"}))
    checks = options.elsewhere
    try:
        if checks is None:
            found = await measures(units, options.data, resources)
            made = await profile(units, options.data, resources)
            checks = [check for unit in units for check in unit.checks]
        else:
            found, made = {}, shipped_profile()
            checks = checks or [judge.binding.check for judge in made.judges]
        made = await elsewhere(made, checks, options.data, resources)
    finally:
        await resources.models.aclose()
    before = kept(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    PAGE.write_text(page({**before, **found}, made), "utf-8")
    SHIPPED.write_text(
        json.dumps(made.model_dump(mode="json", by_alias=True), indent=1) + "\n", "utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--only", nargs="*", default=[], help="only these sets, or these checks of theirs"
    )
    parser.add_argument(
        "--elsewhere", nargs="*", help="only the shipped judges on texts by others, of these checks"
    )
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
