"""Stories value by value, passage by passage: does an adapter learn what a passage does?

    python bench/passages.py ../shared/data/perspectrum/pairs.jsonl [--steps 60] [--rows FILE]

Asked is whether a passage shows a value, opposes it, states it outright, or is about something
else. Taught are passages of fourteen topics (fixtures/labelled/passages.jsonl, our own labels) and
claims of PERSPECTRUM (people's), each also under the opposite attitude and under the values of
others. Reported are six other topics, other claims, and whole stories
(fixtures/labelled/stories.jsonl), whose paragraphs are read one by one: the likeliest one decides,
at a threshold fitted to other stories. About an hour on two cores; extras `calibrate` and `teach`.
--rows keeps what was read, and takes it from there where it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.calibration.adapter import BATCH, RATE, Example, Trainer
from judge.rubric import system_text
from judge.stats.bootstrap import Resamples
from judge.stats.classification import aucs, kappas
from judge.weights import store

LABELLED = Path("fixtures/labelled")
WORDS = ("shows", "opposes", "states", "other")
QUESTION = (
    "In the passage below, does somebody show the value by word or deed, oppose it, state it "
    "outright, or is the passage about something else? Answer Shows, Opposes, States or Other."
)
NAMES = ("Amara", "Bento", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas")
TURNED = {
    "shows": ("opposes",),
    "states": ("opposes",),
    "other": ("other",),
    "opposes": ("shows", "states"),
}
"""What a passage may do with a value under the opposite attitude."""

_SPOKEN = re.compile(r"^([A-Z][\w' .-]{1,24}): (.*)$")


@dataclass(frozen=True)
class Row:
    """A value, a passage, the answers that are right, and what must not be on both sides."""

    value: str
    passage: str
    right: tuple[str, ...]
    group: str


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ---------------------------------------------------------------- what is taught and reported


def as_prose(passage: str, rng: random.Random) -> str:
    """Lines of `Name: words` as a story tells them."""
    parts = []
    for line in passage.splitlines():
        if not (found := _SPOKEN.match(line)):
            return passage
        name, words = found[1], found[2].replace('"', "'")
        sentences = re.split(r"(?<=[.!?]) ", words)
        said, way = rng.choice(("said", "said", "answered", "told them")), rng.randrange(3)
        if way == 2 and len(sentences) > 1:
            parts.append(f'{name} looked up. "{words}"')
            continue
        first = words if way == 0 or len(sentences) == 1 else sentences[0]
        rest = words[len(first) + 1 :]
        first = f"{first[:-1]}," if first.endswith(".") else first
        parts.append(f'"{first}" {said} {name}.' + (f' "{rest}"' if rest else ""))
    return "\n\n".join(parts)


def passages(rng: random.Random) -> tuple[list[Row], dict[str, list[Row]]]:
    """Of our passages what is taught, and what is reported of the topics kept apart."""
    given = lines(LABELLED / "passages.jsonl")
    topics = sorted({one["topic"] for one in given})
    rng.shuffle(topics)
    apart = {*topics[:6]}
    values, attitudes = defaultdict(set), defaultdict(set)
    for one in given:
        values[one["topic"]].add(one["value"])
        attitudes[one["statement"]].add(one["attitude"])
    taught: list[Row] = []
    kept = defaultdict(list)
    for one in given:
        topic, text, label = one["topic"], one["passage"], one["label"]
        near = sorted(v for v in values[topic] if not v.startswith(one["statement"]))
        far = rng.choice([t for t in topics if t != topic and (t in apart) == (topic in apart)])
        rows = [("as they are", one["value"], (label,), 1.0)]
        rows.append(("values of their topic", rng.choice(near), ("other",), 0.55))
        rows.append(("values of other topics", rng.choice(sorted(values[far])), ("other",), 0.2))
        for attitude in sorted(attitudes[one["statement"]] - {one["attitude"]}):
            share = 0.4 if label == "other" else 1.0
            rows.append(("turned round", f"{one['statement']}--{attitude}", TURNED[label], share))
        for name, value, right, share in rows:
            if topic in apart:
                kept[name].append(Row(value, text, right, topic))
            elif rng.random() < share:
                prose = as_prose(text, rng) if rng.random() < 0.5 else text
                taught.append(Row(value, prose, right, topic))
    return taught, dict(kept)


def claims(path: Path, rng: random.Random) -> tuple[list[Row], list[Row]]:
    """Of PERSPECTRUM what is taught, and what is reported of the claims kept apart."""
    by_claim = defaultdict(list)
    for pair in lines(path):
        if pair["stance"] in ("support", "undermine") and max(pair["votes"]) >= 2:
            by_claim[pair["claim_id"]].append(pair)
    order = sorted(by_claim)
    rng.shuffle(order)
    cut = int(0.7 * len(order))

    def value(text: str, attitude: str) -> str:
        return f"{text.strip().rstrip('.')}--{attitude}"

    def row(pair: Any, said: str, text: str, right: Sequence[str]) -> Row:
        line = f"{rng.choice(NAMES)}: {said.strip().rstrip('.')}."
        prose = as_prose(line, rng) if rng.random() < 0.4 else line
        return Row(text, prose, tuple(right), f"claim {pair['claim_id']}")

    def stance(pair: Any) -> Row:
        attitude = rng.choice(("Agree", "Disagree"))
        supports = (pair["stance"] == "support") == (attitude == "Agree")
        right = ("shows", "states") if supports else ("opposes",)
        return row(pair, pair["statements"][0], value(pair["claim"], attitude), right)

    def paraphrase(pair: Any) -> Row:
        attitude = rng.choice(("Agree", "Agree", "Disagree"))
        right = ("states",) if attitude == "Agree" else ("opposes",)
        first, second = pair["statements"][:2]
        return row(pair, second, value(first, attitude), right)

    def another(pair: Any, some: Sequence[int]) -> Row:
        other = rng.choice([claim for claim in some if claim != pair["claim_id"]])
        text = value(by_claim[other][0]["claim"], rng.choice(("Agree", "Disagree")))
        return row(pair, pair["statements"][0], text, ("other",))

    taught, kept = [], []
    for claim in order[:cut]:
        pairs = rng.sample(by_claim[claim], len(by_claim[claim]))
        wanted = rng.choice(("support", "undermine"))
        if (found := [p for p in pairs if p["stance"] == wanted]) and rng.random() < 0.8:
            taught.append(stance(found[0]))
        if (found := [p for p in pairs if len(p["statements"]) > 1]) and rng.random() < 0.45:
            taught.append(paraphrase(found[0]))
        if rng.random() < 0.15:
            taught.append(another(pairs[0], order[:cut]))
    for claim in order[cut:][:60]:
        pairs = rng.sample(by_claim[claim], len(by_claim[claim]))
        for wanted in ("support", "undermine"):
            kept += [stance(pair) for pair in pairs if pair["stance"] == wanted][:1]
        kept.append(another(pairs[0], order[cut:]))
    return taught, kept


def stories(shift: int) -> list[Row]:
    """Every paragraph with every value of its story, or of the story `shift` places further."""
    given = lines(LABELLED / "stories.jsonl")
    return [
        Row(value, text, (), f"{place} {number}")
        for place, one in enumerate(given)
        for number, value in enumerate(given[(place + shift) % len(given)]["values"])
        for text in one["story"].split("\n\n")
        if len(text.split()) >= 4
    ]


# ---------------------------------------------------------------- teaching and reading


def examples(rows: Sequence[Row]) -> list[Example]:
    made = []
    for row in rows:
        mark = hashlib.blake2b(f"{row.value}{row.passage}".encode(), digest_size=4).hexdigest()
        shown = (("passage", row.passage), ("value", row.value))
        parts = (QUESTION, *(f"[{name} {mark}]\n{text}\n[end {mark}]" for name, text in shown))
        system = {"role": "system", "content": system_text()}
        prompt = [system, {"role": "user", "content": "\n\n".join(parts)}]
        made.append(Example(prompt, 0, ""))  # type: ignore[arg-type]
    return made


def teach(trainer: Trainer, taught: Sequence[Row], steps: int) -> None:
    """As `Trainer.teach`, but of a row with several right answers any counts."""
    import torch

    for _ in trainer.read(examples(taught), WORDS):
        pass
    right = torch.tensor([[word in row.right for word in WORDS] for row in taught])
    chosen, waiting = random.Random(0), []
    parameters = [x for made in trainer.added.values() for x in (made.down, made.up)]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01)
    for step in range(steps):
        waiting = waiting or trainer._batches(chosen)
        places = waiting.pop()
        warm = min(1.0, (step + 1) / 12)
        rate = RATE * warm * (0.05 + 0.475 * (1 + math.cos(math.pi * step / steps)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = 0.0
        for part in (places[: BATCH // 2], places[BATCH // 2 :]):  # Half the memory.
            if part:
                shares = torch.log_softmax(trainer._logits(part), 1)
                lost = -shares.masked_fill(~right[part], -math.inf).logsumexp(1).sum()
                (lost / len(places)).backward()
                loss += lost.item() / len(places)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1} of {steps}, {step * BATCH} examples, loss {loss:.3f}", flush=True)


def read(trainer: Trainer, rows: Sequence[Row]) -> list[list[float]]:
    """The probability of each word, row by row."""
    import torch

    for _ in trainer.read(examples(rows), WORDS):
        pass
    order = sorted(range(len(rows)), key=lambda n: len(trainer._low[n]))
    found: dict[int, list[float]] = {}
    for at in range(0, len(order), BATCH):
        places = order[at : at + BATCH]
        with torch.no_grad():
            found.update(zip(places, trainer._logits(places).softmax(1).tolist(), strict=True))
    return [found[n] for n in range(len(rows))]


# ---------------------------------------------------------------- figures

STANCES = {"shows": "for", "states": "for", "opposes": "against", "other": "other"}
SCORES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "incorporation": lambda p: p[0] + p[2],
    "consistency": lambda p: p[1],
    "implicitness": lambda p: p[2],
}
"""What a paragraph's probabilities say for a check's yes; the likeliest paragraph decides."""


def kappa(right: Sequence[str], said: Sequence[str], groups: Sequence[str]) -> str:
    classes = sorted({*right})
    answers = [one if one in classes else None for one in said]
    resamples = Resamples(groups)
    found = kappas(resamples.confusions(right, answers, classes))
    return str(resamples.estimate(found, n=len(right), of=len(right)))


def agreement(rows: Sequence[Row], read: Sequence[Sequence[float]]) -> str:
    said = [WORDS[max(range(4), key=lambda n: p[n])] for p in read]
    groups = [row.group for row in rows]
    stance = kappa([STANCES[row.right[0]] for row in rows], [STANCES[one] for one in said], groups)
    told = f"{len(rows)} passages, stance kappa {stance}"
    if all(len(row.right) == 1 for row in rows):
        told += f", of all four {kappa([row.right[0] for row in rows], said, groups)}"
    return told


def threshold(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The score from which on yes agrees best with labels, beyond chance."""
    from sklearn.metrics import cohen_kappa_score

    return max({*scores}, key=lambda t: cohen_kappa_score(labels, [score >= t for score in scores]))


def by_check(rows: Sequence[Row], own: list[list[float]], other: list[list[float]]) -> None:
    import numpy as np

    given = lines(LABELLED / "stories.jsonl")
    places = list(dict.fromkeys(row.group for row in rows))
    stories = [place.split()[0] for place in places]
    for check, score in SCORES.items():
        best = [{}, {}]
        for found, read in zip(best, (own, other), strict=True):
            for row, p in zip(rows, read, strict=True):
                found[row.group] = max(found.get(row.group, 0.0), score(p))
        scores = [best[0][place] for place in places]
        label = {
            f"{n} {k}": one == "yes"
            for n, s in enumerate(given)
            for k, one in enumerate(s["labels"][check])
        }
        labels = [label[place] for place in places]
        said, stays = [], []
        for place, story in zip(places, stories, strict=True):
            train = [n for n, one in enumerate(stories) if one != story]
            cut = threshold([scores[n] for n in train], [labels[n] for n in train])
            said.append(best[0][place] >= cut)
            stays.append(best[1][place] < cut)
        resamples = Resamples(stories)
        auc = aucs(np.array(labels), np.array(scores), resamples.weights())
        print(
            f"{check}: kappa {kappa([str(x) for x in labels], [str(x) for x in said], stories)}, "
            f"AUC {resamples.estimate(auc, n=len(labels), of=len(labels))}; of another story's "
            f"values {sum(stays)} of {len(stays)} get no"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--rows", type=Path, help="keeps what was read, and takes it from there")
    options = parser.parse_args()
    rng = random.Random(0)
    taught, kept = passages(rng)
    of_claims, kept["claims"] = claims(options.pairs, rng)
    sets = {
        **{name: kept[name] for name in ("as they are", "claims", "turned round")},
        "stories": stories(0),
        "values of other stories": stories(1),
    }
    found: dict[str, list[list[float]]] = {}
    if options.rows and options.rows.exists():
        found = json.loads(options.rows.read_text("utf-8"))
    else:
        taught += of_claims
        rng.shuffle(taught)
        del taught[options.steps * BATCH :]
        trainer = Trainer(store.with_adapter(options.model)[0])
        teach(trainer, taught, options.steps)
        for name, rows in sets.items():
            found[name] = read(trainer, rows)
            if options.rows:
                options.rows.write_text(json.dumps(found), "utf-8")
    for name in list(sets)[:3]:
        print(f"{name}: {agreement(sets[name], found[name])}")
    by_check(sets["stories"], found["stories"], found["values of other stories"])


if __name__ == "__main__":
    main()
