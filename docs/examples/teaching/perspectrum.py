"""Labels of people to teach from, out of PERSPECTRUM (Chen et al. 2019).

    python docs/examples/teaching/perspectrum.py stance pairs.jsonl
    python docs/examples/teaching/perspectrum.py health pairs.jsonl

`stance`: a hundred pairs of a claim and a statement, two opposite statements a claim, on which two
of the annotators agreed at least. `health`: a hundred claims, half of them tagged as about health.
"""

import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WANTED = 100
STANCES = ("support", "undermine")


def stance(claims: list[list[Any]], rng: random.Random) -> Iterator[dict[str, Any]]:
    for pairs in claims[: WANTED * 3 // 5]:
        rng.shuffle(pairs)
        for answer in STANCES:
            for pair in [pair for pair in pairs if pair["stance"] == answer][:1]:
                row = {name: pair[name] for name in ("id", "claim_id", "claim")}
                row["statement"] = pair["statements"][0].strip()
                yield {**row, "labels": {"stance": answer}}


def health(claims: list[list[Any]], rng: random.Random) -> Iterator[dict[str, Any]]:
    about: dict[bool, list[Any]] = {True: [], False: []}
    for pairs in claims:
        about["health_and_medicine" in pairs[0]["topics"]].append(pairs[0])
    for yes, no in zip(about[True], about[False], strict=False):
        for pair, answer in ((yes, "yes"), (no, "no")):
            yield {"claim": pair["claim"], "labels": {"question": answer}}


def main() -> None:
    by_claim = defaultdict(list)
    with Path(sys.argv[2]).open(encoding="utf-8") as file:
        for pair in map(json.loads, file):
            if pair["stance"] in STANCES and max(pair["votes"]) >= 2:
                by_claim[pair["claim_id"]].append(pair)
    rng, order = random.Random(1), sorted(by_claim)
    rng.shuffle(order)
    made = {"stance": stance, "health": health}[sys.argv[1]]
    rows = list(made([by_claim[claim] for claim in order], rng))[:WANTED]
    sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)


main()
