"""Where the thresholds of relevance and label_correctness come from.

    python bench/label_thresholds.py --rows 60

Reads the two probability questions of `label_correctness` on NormAd rows drawn from all but the
first 30 (those are left for judging) with the default local model, and prints the pairs of
thresholds that agree best with the gold labels, with the accuracy at them, at the rubric's own and
at 0.5. In-sample: expect less on other rows.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
from collections import Counter
from itertools import product
from pathlib import Path

from judge.backends.base import Call, Origin
from judge.judging.judge import TOP_TOKENS, yes_probability
from judge.records import Item, Problem, build
from judge.rubric import builtin, messages
from judge.run.setup import Setup
from judge.settings import resolve
from judge.subject import Subject

HELD_OUT = 30


async def read(rows: list[dict[str, str]], model: str) -> list[tuple[str, float, float]]:
    """(gold label, P(revolves around the rule), P(follows the rule)) for each row."""
    setup = Setup.of(resolve({"model": (model,)}))
    client, rubric = setup.client(model), builtin()["label_correctness"]
    made = []
    for number, row in enumerate(rows, 1):
        record = build(Item("normad", number, dict(row)))
        assert not isinstance(record, Problem)
        subject = Subject.of(record)
        chances = []
        for step in range(2):
            prompt = messages(rubric, subject, step=step)
            origin = Origin(rubric.name, subject.id)
            call = Call(prompt, max_tokens=1, logprobs=TOP_TOKENS, role="bench", origin=origin)
            tokens, _ = await client.first_token(call)
            chance = yes_probability(tokens)
            assert chance is not None
            chances.append(chance)
        made.append((str(subject.label), chances[0], chances[1]))
    await setup.aclose()
    return made


def accuracy(read_rows: list[tuple[str, float, float]], revolves: float, follows: float) -> float:
    def answer(first: float, second: float) -> str:
        if first < revolves:
            return "neutral"
        return "yes" if second >= follows else "no"

    right = sum(answer(first, second) == gold for gold, first, second in read_rows)
    return right / len(read_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    options = parser.parse_args()
    source = options.data / "normad" / "normad_odd_rows.csv"
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[HELD_OUT:]
    drawn = random.Random(options.seed).sample(rows, options.rows)
    found = asyncio.run(read(drawn, options.model))
    grid = [n / 100 for n in range(30, 80)]
    ranked = sorted(((accuracy(found, a, b), a, b) for a, b in product(grid, grid)), reverse=True)
    print(f"{len(found)} rows, gold labels {dict(Counter(gold for gold, *_ in found))}")
    print(f"accuracy at 0.50, 0.50: {accuracy(found, 0.5, 0.5):.3f}")
    reading = builtin()["label_correctness"].readings.probability
    assert reading is not None
    revolves, follows = (step.threshold for step in reading.steps)
    print(
        f"accuracy at the rubric's {revolves}, {follows}: {accuracy(found, revolves, follows):.3f}"
    )
    print("best pairs (accuracy, revolves, follows):")
    for best in ranked[:5]:
        print("  " + "  ".join(f"{number:.3f}" for number in best))


if __name__ == "__main__":
    main()
