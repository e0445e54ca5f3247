"""How long EECC's pairwise distances take, compared with plain Python.

    python bench/variance.py [--quick | --full]

Texts of about 150 words are made from a fixed seed: each concept has one text, each nationality
changes two words in ten of it and each output two more. Word edit distance and symmetric BLEU of
all pairs of some hundred texts are timed, then a plain-Python dynamic program and a sentence BLEU
from counters on a few of the same pairs; their values must agree. The seconds that the paper's
stories would take are extrapolated: 35 concepts, 195 nationalities, 5 outputs, so 475,000 pairs for
each concept. `--full` measures them: the whole analysis, from texts to tables.

Wall time depends on the load of the machine; CPU time, over all threads, does not.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from pathlib import Path
from typing import TypeVar

from judge.papers.eecc_tables import FILES, tables
from judge.papers.tasks import MeasuredAnswer
from judge.stats.text import symmetric_bleu, word_edit_distances
from judge.verdict import AnswerOutcome

SEED = 20261122
CONCEPTS, NATIONALITIES, OUTPUTS = 35, 195, 5
PAIRS = CONCEPTS * math.comb(NATIONALITIES * OUTPUTS, 2)
WORDS, VOCABULARY, CHANGED = 150, 5000, 0.2
HOFSTEDE, WVS = (94, 6), (58, 259)

A = TypeVar("A")
R = TypeVar("R")
Words = list[str]
_CUMULATED = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))


def plain_word_edit_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """The textbook dynamic program, one row at a time."""
    row = list(range(len(second) + 1))
    for place, word in enumerate(first, start=1):
        diagonal, row[0] = row[0], place
        for column, other in enumerate(second, start=1):
            kept = diagonal + (word != other)
            diagonal = row[column]
            row[column] = min(kept, row[column] + 1, row[column - 1] + 1)
    return row[-1] / max(len(first), len(second))


def plain_symmetric_bleu(first: Sequence[str], second: Sequence[str]) -> float:
    """Sentence BLEU from counters of n-grams, in both directions."""
    return (_plain_bleu(first, second) + _plain_bleu(second, first)) / 2


def _plain_bleu(candidate: Sequence[str], reference: Sequence[str]) -> float:
    logs = 0.0
    for order in range(1, 5):
        ours, theirs = (
            Counter(tuple(text[at : at + order]) for at in range(len(text) - order + 1))
            for text in (candidate, reference)
        )
        shared = (ours & theirs).total()
        if not shared:
            return 0.0
        logs += math.log(shared / ours.total())
    return min(1.0, math.exp(1 - len(reference) / len(candidate))) * math.exp(logs / 4)


def outputs(concept: int, nationalities: int) -> Iterator[tuple[int, Words]]:
    """Nationality and output, `OUTPUTS` times for each."""
    random_source = random.Random(f"{SEED}/{concept}")
    start = _drawn(random_source, random_source.randint(WORDS - 30, WORDS + 30))
    for nationality in range(nationalities):
        own = _changed(random_source, start)
        for _ in range(OUTPUTS):
            yield nationality, _changed(random_source, own)


def _drawn(random_source: random.Random, count: int) -> Words:
    numbers = random_source.choices(range(VOCABULARY), cum_weights=_CUMULATED, k=count)
    return [f"w{number}" for number in numbers]


def _changed(random_source: random.Random, text: Words) -> Words:
    """Some words replaced, and up to ten dropped or added at the end."""
    new = _drawn(random_source, len(text))
    kept = [
        other if random_source.random() < CHANGED else word
        for word, other in zip(text, new, strict=True)
    ]
    length = len(text) + random_source.randint(-10, 10)
    return (kept + new)[:length]


@dataclass(frozen=True)
class Took:
    """Seconds of wall time and of CPU time."""

    wall: float
    cpu: float


def timed(work: Callable[[A], R], material: A) -> tuple[R, Took]:
    """What the work returns, and what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(material)
    return result, Took(time.perf_counter() - wall, time.process_time() - cpu)


def compared(quick: bool) -> Iterator[str]:
    """A line for each measure and way: pairs per second, and the paper's stories extrapolated."""
    nationalities, few = (12, 60) if quick else (NATIONALITIES, 600)
    texts = [text for _, text in outputs(0, nationalities)]
    all_pairs = list(combinations(range(len(texts)), 2))
    chosen = random.Random(SEED).sample(all_pairs, few)
    for name, ours, plain in (
        ("word edit distance", word_edit_distances, plain_word_edit_distance),
        ("symmetric BLEU", symmetric_bleu, plain_symmetric_bleu),
    ):
        ours(texts[:10])
        found, took = timed(ours, texts)
        yield line(name, "compiled", len(all_pairs), took)
        peers, took = timed(lambda plain: [plain(texts[a], texts[b]) for a, b in chosen], plain)
        yield line(name, "plain Python", len(chosen), took)
        apart = max(abs(found[a, b] - peer) for (a, b), peer in zip(chosen, peers, strict=True))
        if apart > 1e-9:
            raise SystemExit(f"{name}: the two ways differ by {apart}")


def line(name: str, way: str, pairs: int, took: Took) -> str:
    return (
        f"{name:20} {way:14} {pairs:8,d} {pairs / took.wall:14,.0f} {pairs / took.cpu:14,.0f} "
        f"{PAIRS * took.wall / pairs:14,.0f} {PAIRS * took.cpu / pairs:14,.0f}"
    )


def written(folder: Path, values: tuple[int, int], name: str) -> None:
    """A file of cultural values for the first nationalities, some of them missing."""
    random_source = random.Random(f"{SEED}/{name}")
    countries, dimensions = values
    lines = [",".join(["ctr", "country", "Demonym", *(f"Q{one}" for one in range(dimensions))])]
    for country in range(countries):
        cells = [
            "#NULL!" if random_source.random() < 0.1 else str(random_source.randint(0, 100))
            for _ in range(dimensions)
        ]
        lines.append(",".join([str(country), str(country), f"n{country}", *cells]))
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


def full() -> Iterator[str]:
    """The whole analysis of the paper's stories, measured."""
    with tempfile.TemporaryDirectory() as folder:
        for values, name in zip((HOFSTEDE, WVS), FILES.values(), strict=True):
            written(Path(folder), values, name)
        results = [
            MeasuredAnswer(
                {
                    "id": f"{concept}/{number}",
                    "condition": "stories",
                    "kind": "country",
                    "topic": f"t{concept % 3}",
                    "concept": f"c{concept}",
                    "identity": f"n{nationality}",
                    "data": folder,
                },
                AnswerOutcome.ANSWERED,
                answer=" ".join(text),
            )
            for concept in range(CONCEPTS)
            for number, (nationality, text) in enumerate(outputs(concept, NATIONALITIES))
        ]
        _, took = timed(tables, results)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield (
        f"{len(results):,} outputs, {PAIRS:,} pairs under two metrics, all tables: "
        f"{took.wall:,.0f} s, {took.cpu:,.0f} s of CPU time, {peak:,.0f} MiB at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--quick", action="store_true", help="few texts, roughly")
    chosen.add_argument("--full", action="store_true", help="measure the paper's stories, too")
    options = parser.parse_args()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} processors, load before the start {load}")
    print(
        f"{'measure':20} {'way':14} {'pairs':>8} {'pairs/s':>14} {'pairs/CPU s':>14} "
        f"{'paper, s':>14} {'paper, CPU s':>14}"
    )
    for row in compared(options.quick):
        print(row, flush=True)
    if options.full:
        print()
        print(*full(), sep="\n")


if __name__ == "__main__":
    main()
