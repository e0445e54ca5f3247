"""Calls and tokens: the papers' fixed protocols against asking less, over the same records.

    python bench/calls.py [--stories 46] [--norms 76] [--seed 0] [--flip 0.05] [--cheap-auc 0.93]
                          [--fixtures N] [--blocks N] [--normad FILE]

No model is asked and nothing goes over a network. The real workflows run over fixtures/ and over
generated records with planted faults (bench/planted.py); the judge is simulated
(bench/simulated.py) and gives every protocol the same answer to the same question. So the figures
say what each protocol asks, not how well any model judges.

Protocols for stories: CQ-Bench's (section 2.1: three loops, then three rounds of incorporation and
consistency, all asked; instruction before story before values as in appendix A.3), and ours. For
norms: NormAd's (section 4.2: relevance of every situation verified in each of three rounds, then
two checks), and ours with the same three checks. What rewriters read and write is left out; how
often they are asked is given.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from judge.graphs.norm import regeneration
from planted import Fields, Planted, fixture_norms, fixture_stories, norm, planted_norm, story
from simulated import (
    Engine,
    Noise,
    Order,
    Simulated,
    as_shipped,
    papers_order,
    questions_first,
    values_behind_record,
    values_last,
)

from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.judging.limits import Budget
from judge.questions.ready_made import builtin
from judge.records import Record, read
from judge.run.models import Models
from judge.run.panels import BoundWorkflow, Resources
from judge.run.rubrics import RubricSet
from judge.settings import Settings
from judge.verdict import Verdict, worst
from judge.workflows import Work

STRONG, CHEAP, WRITER = "sim:strong", "sim:cheap", "sim:writer"
CALLS_BAR, TOKENS_BAR = 0.60, 0.35
"""At most this share of the papers' calls, and of their evaluated prompt tokens."""

NORM_CHECKS = ("relevance", "derivation", "abstraction")
NORM_ROUNDS = 3

Run = Callable[[Record, BoundWorkflow], Awaitable[tuple[Verdict, Mapping[str, Any]]]]


async def ours(record: Record, bound: BoundWorkflow) -> tuple[Verdict, Mapping[str, Any]]:
    """Run the unchanged workflow: (verdict, fields that it changed)."""
    outcome = await bound.workflow.run(record, bound.context)
    return outcome.judgement.verdict, outcome.changes


async def cqbenchs(record: Record, bound: BoundWorkflow) -> tuple[Verdict, Mapping[str, Any]]:
    """CQ-Bench, section 2.1: the loops and then the acceptance, once, for every record."""
    work = Work(record, bound.context)
    work.rounds = bound.context.rounds
    outcome = await bound.workflow.once(work)
    return outcome.judgement.verdict, outcome.changes


async def normads(record: Record, bound: BoundWorkflow) -> tuple[Verdict, Mapping[str, Any]]:
    """NormAd, section 4.2: three rounds of verification and regeneration, then two checks."""
    work = Work(record, bound.context)
    for number in range(1, NORM_ROUNDS + 1):
        work.round = number
        # Each round is a draw of its own: at temperature 0 the same question is asked only once.
        panel = bound.context.panel("relevance", "loop")
        drawn = replace(panel, sampling=Sampling(temperature=1.0, seed=number))
        relevance = await drawn.check(work.record, by="loop", round=number)
        work.checks.append(relevance)
        if work.failed("relevance") and number < NORM_ROUNDS:
            await regeneration({"work": work})
    checks = [relevance, *[await work.check(name) for name in NORM_CHECKS[1:]]]
    verdict = worst(check.verdict for check in checks if check is not None)
    return verdict, {"story": work.record.texts["story"]}


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol: settings, the order of prompts, and the function that runs a record."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    order: Order = as_shipped
    run: Run = ours


CASCADE = {"cheap_model": CHEAP}
OURS = (
    Protocol("without --repair", {"repair": False}),
    Protocol("sequential"),
    Protocol("+ cascade 0.3", CASCADE),
    Protocol("+ cascade 0.45", {**CASCADE, "cheap_margin": 0.45}),
)
STORY_PROTOCOLS = (Protocol("CQ-Bench's", {"all_votes": True}, papers_order, cqbenchs), *OURS)
NORM_PROTOCOLS = (Protocol("NormAd's", {"all_votes": True}, papers_order, normads), *OURS)
STORY_CHECKS = ("incorporation", "consistency", "implicitness")
STORY_ORDERS = (
    ("record, question with values (shipped)", as_shipped),
    ("record, values, question", values_behind_record),
    ("record, question, values", values_last),
    ("question, record, values (the papers')", papers_order),
    ("all questions, record, which, values", questions_first(*STORY_CHECKS)),
    ("all questions, record, values, which", questions_first(*STORY_CHECKS, values_shared=True)),
)
NORM_ORDERS = (
    ("record, question (shipped)", as_shipped),
    ("question, record (the papers')", papers_order),
    ("all questions, record, which", questions_first(*NORM_CHECKS)),
)


@dataclass(slots=True)
class Counted:
    """A protocol's counts over all records, and its verdicts by record id."""

    strong: Engine
    cheap: Engine
    rewrites: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    right: int = 0

    def same(self, other: Counted) -> int:
        return sum(self.verdicts[name] is verdict for name, verdict in other.verdicts.items())


async def count(
    protocol: Protocol,
    records: Sequence[Planted],
    *,
    noise: Noise,
    seed: int = 0,
    blocks: int | None = None,
    **settings: Any,
) -> Counted:
    """Run the records through the protocol in sequence, with new simulated models."""
    truths = {planted.fields["id"]: planted.truth for planted in records}
    backends = {
        STRONG: Simulated("strong", truths, noise, seed, protocol.order, blocks),
        CHEAP: Simulated("cheap", truths, noise, seed, blocks=blocks),
        WRITER: Simulated("writer", truths, noise, seed),
    }
    resources = _resources(backends, {**settings, **protocol.settings})
    counted = Counted(backends[STRONG].engine, backends[CHEAP].engine)
    for number, planted in enumerate(records, 1):
        record = Record("bench", number, planted.fields).of_kind().usable()
        bound = resources.bound(record.kind)
        verdict, changes = await protocol.run(record, bound)
        told = {**record.as_mapping(), **changes, "values": planted.fields.get("values", [])}
        sound = planted.truth.sound(told, bound.context.settings.min_words)
        counted.verdicts[planted.fields["id"]] = verdict
        counted.right += verdict is (Verdict.PASS if sound else Verdict.FAIL)
    counted.rewrites = backends[WRITER].engine.calls
    return counted


def _resources(backends: Mapping[str, Simulated], given: Mapping[str, Any]) -> Resources:
    # Built without validation, so that no variable or judge.toml changes a benchmark.
    settings = Settings.model_construct(
        **{"model": (STRONG,), "rewrite_model": WRITER, "repair": True, "cache": False, **given}
    )
    budget = Budget()
    clients = {
        spec: Client(spec, backend, cache=None, budget=budget, limit=16)
        for spec, backend in backends.items()
    }
    models = Models(settings, budget, clients=clients)
    return Resources(RubricSet(settings, builtin()), models)


def stories(number: int, seed: int, fixtures: int | None = None) -> list[Planted]:
    """The first `fixtures` fixtures (None: all), and `number` generated stories."""
    return [*fixture_stories()[:fixtures], *(story(n, seed) for n in range(number))]


def norms(
    number: int, seed: int, fixtures: int | None = None, normad: Path | None = None
) -> list[Planted]:
    made = [*fixture_norms()[:fixtures], *(norm(n, seed) for n in range(number))]
    return made + (released(normad, number, seed) if normad else [])


def released(path: Path, number: int, seed: int) -> list[Planted]:
    """The first rows of NormAd's own file, with seeded faults known only to the simulated judge."""
    rows = []
    for item in islice(read(str(path)), number):
        record = item.of_kind("norm")
        if record.problem is None:
            told: Fields = record.with_changes({})
            drawn = random.Random(f"{seed} {record.id}").random()
            label = str(record.label)
            rows.append(Planted({**told, "id": record.id}, planted_norm(label, drawn)))
    return rows


# ---------------------------------------------------------------- printing

HEAD = (
    f"{'protocol':<20}{'strong calls':>16}{'cheap':>7}{'prompt tokens':>18}{'evaluated':>18}"
    f"{'of all':>8}"
    f"{'cheap eval.':>12}{'output':>9}{'rewrites':>9}{'same':>9}{'right':>9}"
    f"  {'calls':<14}{'tokens':<15}verdicts"
)


def table(title: str, rows: Sequence[tuple[str, Counted]]) -> None:
    """Print the rows; the first is the baseline of the others."""
    base = rows[0][1]
    print(f"\n{title}\n{HEAD}")
    for place, (name, row) in enumerate(rows):
        strong, whole, total = row.strong, base.strong, len(row.verdicts)
        cells = [
            f"{name:<20}",
            f"{strong.calls:>10}{share(strong.calls, whole.calls):>6}{row.cheap.calls:>7}",
            f"{strong.prompt:>12}{share(strong.prompt, whole.prompt):>6}",
            f"{strong.evaluated:>12}{share(strong.evaluated, whole.evaluated):>6}",
            f"{share(strong.evaluated, whole.prompt):>8}",
            f"{row.cheap.evaluated:>12}{strong.output:>9}{row.rewrites:>9}",
            f"{f'{row.same(base)}/{total}':>9}{f'{row.right}/{total}':>9}",
        ]
        bars = ""
        if place:
            calls = bar(strong.calls, whole.calls, CALLS_BAR)
            tokens = bar(strong.evaluated, whole.evaluated, TOKENS_BAR)
            others = total - row.same(base)
            bars = f"  {calls:<14}{tokens:<15}{f'missed by {others}' if others else 'met'}"
        print("".join(cells) + bars)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%"


def bar(part: int, whole: int, most: float) -> str:
    """Whether a share is at most `most`, or by how many points it is over."""
    over = 100 * (part / whole - most)
    return "met" if over <= 0 else f"missed by {over:.0f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stories", type=int, default=46)
    parser.add_argument("--norms", type=int, default=76)
    parser.add_argument("--fixtures", type=int, help="most fixtures of each kind (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flip", type=float, default=0.05, help="chance of a wrong answer")
    parser.add_argument("--cheap-auc", type=float, default=0.93)
    parser.add_argument("--blocks", type=int, help="most blocks of 16 tokens that an engine keeps")
    parser.add_argument("--normad", type=Path, help="NormAd's own file, as released")
    return parser.parse_args()


async def main() -> None:
    chosen = _arguments()
    noise = Noise(flip=chosen.flip, auc=chosen.cheap_auc)
    common: dict[str, Any] = {"noise": noise, "seed": chosen.seed, "blocks": chosen.blocks}
    told = stories(chosen.stories, chosen.seed, chosen.fixtures)
    situations = norms(chosen.norms, chosen.seed, chosen.fixtures, chosen.normad)
    _explain(len(told), len(situations), noise, chosen.blocks)
    papers: dict[str, tuple[Counted, list[Planted], tuple[tuple[str, Order], ...], Fields]] = {}
    for per_entry, layout in ((False, "values together"), (True, "values apart")):
        rows = [
            (p.name, await count(p, told, per_entry=per_entry, **common)) for p in STORY_PROTOCOLS
        ]
        table(f"stories, {layout}", rows)
        papers[f"stories, {layout}"] = (rows[0][1], told, STORY_ORDERS, {"per_entry": per_entry})
    few = {"check": NORM_CHECKS}
    rows = [(p.name, await count(p, situations, **few, **common)) for p in NORM_PROTOCOLS]
    table("norms, the three checks of the paper", rows)
    papers["norms"] = (rows[0][1], situations, NORM_ORDERS, few)
    for title, (base, records, orders, settings) in papers.items():
        print(f"\n{title}: prompt and evaluated tokens, by the prompt's order")
        for name, order in orders:
            row = await count(Protocol(name, order=order), records, **settings, **common)
            print(_order_row(name, row.strong, base.strong))


def _order_row(name: str, row: Engine, base: Engine) -> str:
    prompt, evaluated = share(row.prompt, base.prompt), share(row.evaluated, base.evaluated)
    told = bar(row.evaluated, base.evaluated, TOKENS_BAR)
    return f"  {name:<42}{row.prompt:>10}{prompt:>6}{row.evaluated:>10}{evaluated:>6}  {told}"


def _explain(stories: int, norms: int, noise: Noise, blocks: int | None) -> None:
    wrong = ", ".join(f"{name} {chance:g}" for name, chance in noise.repairs.items())
    held = "without bound" if blocks is None else f"of {blocks} blocks"
    print(
        f"{stories} stories, {norms} norms; the judge is SIMULATED from planted truth.\n"
        f"A vote is wrong about a value with chance {noise.flip:g}; the cheap reading is "
        f"calibrated, AUC {noise.auc:g};\nrewriters cure with chance: {wrong}.\n"
        "Tokens are words and punctuation marks; evaluated = not found in a prefix cache of "
        f"16-token blocks, {held}.\n"
        f"Bars: at most {CALLS_BAR:.0%} of the papers' calls and {TOKENS_BAR:.0%} of their "
        "evaluated prompt tokens, both of the strong judge,\nwith the same verdicts; missed by so "
        "many points, or records.\n"
        "of all = evaluated, held against all prompt tokens of the papers' protocol, which an "
        "engine without\na prefix cache evaluates.\n"
        "same = records with the verdict of the papers' protocol; right = verdicts that suit the "
        "planted truth of\nthe text as it ended."
    )


if __name__ == "__main__":
    asyncio.run(main())
