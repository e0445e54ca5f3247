"""Labels of people to teach from: does a statement support a claim or undermine it?

    python docs/examples/teaching/stance.py ../shared/data/perspectrum/pairs.jsonl > stance.jsonl

A hundred pairs of PERSPECTRUM (Chen et al. 2019), two opposite statements a claim, on which two of
its annotators agreed at least.
"""

import json
import random
import sys
from collections import defaultdict
from pathlib import Path

WANTED = 100
STANCES = ("support", "undermine")

pairs = defaultdict(list)
with Path(sys.argv[1]).open(encoding="utf-8") as file:
    for pair in map(json.loads, file):
        if pair["stance"] in STANCES and max(pair["votes"]) >= 2:
            pairs[pair["claim_id"]].append(pair)

rng = random.Random(1)
claims = sorted(pairs)
rng.shuffle(claims)
chosen = []
for claim in claims[: WANTED * 3 // 5]:
    rng.shuffle(pairs[claim])
    for stance in STANCES:
        chosen += [pair for pair in pairs[claim] if pair["stance"] == stance][:1]
for pair in chosen[:WANTED]:
    row = {name: pair[name] for name in ("id", "claim_id", "claim")}
    row |= {"statement": pair["statements"][0].strip(), "labels": {"stance": pair["stance"]}}
    print(json.dumps(row))
