"""Labelled passages to teach from: what somebody in a passage does with a value.

    python docs/examples/teaching/passages.py pairs.jsonl > taught.jsonl

Our own passages (fixtures/labelled/passages.jsonl, fixtures/taught/passages.jsonl), whose labels
say what their authors meant, and claims of PERSPECTRUM with statements about them (Chen et al.
2019), labelled by people. A passage stands under its value, under the opposite attitude, and under
the value of another of its group, which it says nothing about.
"""

import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LABELLED = Path("fixtures/labelled/passages.jsonl")
TAUGHT = Path("fixtures/taught/passages.jsonl")
NAMES = ("Amara", "Bento", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas")
CLAIMS = 350
TOGETHER = 5
"""Statements in a group; none of a group's passages or values is in another."""

KINDS = {
    "for": ("for", "against"),
    "against": ("against", "for"),
    "states_for": ("states", "against"),
    "states_against": ("against", "states"),
    "near": ("neither", "neither"),
}
"""What a passage does with the attitude and with its opposite."""

Row = dict[str, Any]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def row(passage: str, statement: str, attitude: str, answer: str, group: str) -> Row:
    value = f"{statement.strip().rstrip('.')}--{attitude}"
    return {"story": passage, "value": value, "group": group, "labels": {"passage": answer}}


def chunks(items: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    for at in range(0, len(items), TOGETHER):
        yield at // TOGETHER, items[at : at + TOGETHER]


def ours(rng: random.Random) -> Iterator[Row]:
    """Passages written for a statement and both attitudes towards it."""
    for number, chunk in chunks(lines(TAUGHT)):
        group = f"ours {number}"
        for one in chunk:
            others = [other for other in chunk if other is not one]
            for kind, answers in KINDS.items():
                for passage in one[kind]:
                    ways = list(zip((one["attitude"], one["opposite"]), answers, strict=True))
                    both = kind != "near" and rng.random() < 0.8
                    for attitude, answer in rng.sample(ways, 2 if both else 1):
                        yield row(passage, one["statement"], attitude, answer, group)
                    if others and rng.random() < 0.5:
                        other = rng.choice(others)
                        attitude = rng.choice((other["attitude"], other["opposite"]))
                        yield row(passage, other["statement"], attitude, "neither", group)


def older(rng: random.Random) -> Iterator[Row]:
    """Passages written for one attitude; one against it need not be for the opposite."""
    given = lines(LABELLED)
    attitudes = defaultdict(set)
    for one in given:
        attitudes[one["statement"]].add(one["attitude"])
    for one in given:
        group, answer = f"topic {one['topic']}", one["labels"]["passage"]
        yield row(one["story"], one["statement"], one["attitude"], answer, group)
        turned = {"for": "against", "states": "against", "neither": "neither"}.get(answer)
        for attitude in sorted(attitudes[one["statement"]] - {one["attitude"]}):
            if turned and (turned == "against" or rng.random() < 0.4):
                yield row(one["story"], one["statement"], attitude, turned, group)
        if rng.random() < 0.5:
            others = [other for other in given if other["topic"] == one["topic"]]
            other = rng.choice([o for o in others if o["statement"] != one["statement"]])
            yield row(one["story"], other["statement"], other["attitude"], "neither", group)


def claims(path: Path, rng: random.Random) -> Iterator[Row]:
    """Claims, each with one statement for it and one against it, on which annotators agreed."""
    by_claim = defaultdict(list)
    for pair in lines(path):
        if pair["stance"] in ("support", "undermine") and max(pair["votes"]) >= 2:
            by_claim[pair["claim_id"]].append(pair)
    order = sorted(by_claim)
    rng.shuffle(order)
    for number, chunk in chunks(order[:CLAIMS]):
        group = f"claims {number}"
        for claim in chunk:
            pairs = rng.sample(by_claim[claim], len(by_claim[claim]))
            for stance in ("support", "undermine"):
                for pair in [pair for pair in pairs if pair["stance"] == stance][:1]:
                    passage = spoken(pair["statements"][0], rng)
                    attitude = rng.choice(("Agree", "Disagree"))
                    answer = "for" if (stance == "support") == (attitude == "Agree") else "against"
                    yield row(passage, pair["claim"], attitude, answer, group)
            if rng.random() < 0.4 and (found := [p for p in pairs if len(p["statements"]) > 1]):
                first, second = found[0]["statements"][:2]
                attitude, answer = rng.choice((("Agree", "states"), ("Disagree", "against")))
                yield row(spoken(second, rng), first, attitude, answer, group)
            other = rng.choice([one for one in chunk if one != claim] or [claim])
            if other != claim and rng.random() < 0.5:
                text = by_claim[other][0]["claim"]
                attitude = rng.choice(("Agree", "Disagree"))
                yield row(spoken(pairs[0]["statements"][0], rng), text, attitude, "neither", group)


def spoken(words: str, rng: random.Random) -> str:
    name, words = rng.choice(NAMES), words.strip().rstrip(".").replace('"', "'")
    return rng.choice((f"{name}: {words}.", f'"{words}," said {name}.'))


def main() -> None:
    rng = random.Random(0)
    rows = [*ours(rng), *older(rng), *claims(Path(sys.argv[1]), rng)]
    rng.shuffle(rows)
    sys.stdout.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)


main()
