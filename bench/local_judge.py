"""How far the default local model agrees with people: label verdicts against gold labels.

    python bench/local_judge.py --moral 100 --normad 100

Reads public data that lies outside the project (../shared/data or --data): Moral Stories (an action
follows or breaks a norm, by construction of its crowd writers) and NormAd (gold labels, checked by
people in part). On Moral Stories it asks one question (bench/adherence.yaml) and prints confusion
matrix, accuracy, Cohen's kappa at the threshold 0.5, and the AUC of P(follows); on NormAd it makes
the checks relevance and label_correctness on the stories as they are and prints the confusion
matrix of the label. With --fixtures it also asks the three story checks about the fixture stories
(labels by the project's authors) and prints, per check, the AUC of P(at fault) over values.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from judge.run.validate import Job, Watcher, validate
from judge.settings import resolve

LABELS = ("yes", "no", "neutral")
ADHERENCE = Path(__file__).with_name("adherence.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--moral", type=int, default=100, help="Moral Stories items, sampled")
    parser.add_argument("--normad", type=int, default=100, help="NormAd rows")
    parser.add_argument("--first", action="store_true", help="the first NormAd rows, not a sample")
    parser.add_argument(
        "--fixtures", action="store_true", help="the fixture stories too (6 minutes)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if options.moral:
        rows = chance.sample(moral_stories(options.data), options.moral)
        judged = run(rows, options.model, ADHERENCE, "adherence")
        print(f"\nMoral Stories, {len(judged)} items, {options.model}")
        table(judged)
        print(f"AUC of P(follows): {auc(judged):.3f}")
    if options.normad:
        rows = normad(options.data)
        rows = rows[: options.normad] if options.first else chance.sample(rows, options.normad)
        judged = run(rows, options.model, None, "relevance", "label_correctness")
        print(f"\nNormAd, {len(judged)} rows, {options.model}")
        table(judged)
    if options.fixtures:
        fixtures(options.model)


def fixtures(model: str) -> None:
    folder = Path(__file__).parents[1] / "fixtures"
    labels = {
        row["id"]: row
        for row in map(
            json.loads, (folder / "stories.labels.jsonl").read_text("utf-8").splitlines()
        )
    }
    rows = [json.loads(x) for x in (folder / "stories.jsonl").read_text("utf-8").splitlines()]
    story_checks = ("incorporation", "consistency", "implicitness")
    judged = run(rows, model, None, *story_checks)
    print(f"\nFixture stories, {len(judged)}, {model}: AUC of P(at fault) over values")
    for name in story_checks:
        sound, faulty = [], []
        for line in judged:
            values = line["judge"].get("original", {}).get("values", line["values"])
            made = [c for c in line["judge"]["checks"] if c["check"] == name]
            for finding in made[0]["findings"]:
                number = values.index(finding["value"]) + 1
                at_fault = number in faults(labels[line["id"]], name)
                (faulty if at_fault else sound).append(1 - float(finding["probability"]))
        print(
            f"{name:<15} {ranked(faulty, sound):.3f}  ({len(faulty)} at fault, {len(sound)} sound)"
        )


def faults(label: dict[str, Any], name: str) -> set[int]:
    """The numbers of the values that the sidecar says are at fault."""
    if name == "incorporation":
        return {part["value"] for part in label["values"] if not part["reflected"]}
    key = "contradictions" if name == "consistency" else "explicit"
    return {part["value"] for part in label[key]}


def moral_stories(data: Path) -> list[dict[str, Any]]:
    lines = (data / "moral_stories" / "norm_distance_dev.jsonl").read_text("utf-8").splitlines()
    made = []
    for row in map(json.loads, lines):
        follows = row["label"] == "1"
        action = row["moral_action"] if follows else row["immoral_action"]
        made.append(
            {"rule_of_thumb": row["norm"], "story": action, "label": "yes" if follows else "no"}
        )
    return made


def normad(data: Path) -> list[dict[str, Any]]:
    with (data / "normad" / "normad_odd_rows.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(
    rows: list[dict[str, Any]], model: str, rubric: Path | None, *checks: str
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.jsonl", Path(folder) / "out.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        flags = {"model": (model,), "check": checks, "rounds": 0}
        settings = resolve(flags | ({"rubric": (str(rubric),)} if rubric else {}))
        validate(Job([str(source)], out), settings, Watcher())
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def gold(line: dict[str, Any]) -> str:
    return str(line.get("label") or line["Gold Label"]).strip().lower()


def check(line: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = line["judge"]["checks"][-1]
    return found


def answer(line: dict[str, Any]) -> str:
    findings = check(line)["findings"]
    return str(findings[0].get("answer")) if findings else check(line)["verdict"]


def table(judged: list[dict[str, Any]]) -> None:
    cells = Counter((gold(line), answer(line)) for line in judged)
    shown = [a for a in LABELS if any(a in pair for pair in cells)]
    others = sorted({a for _, a in cells} - set(shown))
    print("gold \\ judge " + "".join(f"{a:>12}" for a in (*shown, *others)))
    for label in shown:
        print(f"{label:<13}" + "".join(f"{cells[label, a]:>12}" for a in (*shown, *others)))
    total = len(judged)
    right = sum(cells[a, a] for a in shown)
    print(
        f"accuracy {right}/{total} = {right / total:.3f}, Cohen's kappa {kappa(cells, total):.3f}"
    )


def kappa(cells: Counter[tuple[str, str]], total: int) -> float:
    """(observed - expected agreement) / (1 - expected agreement); Cohen 1960."""
    observed = sum(count for (a, b), count in cells.items() if a == b) / total
    names = {name for pair in cells for name in pair}
    rows = {n: sum(c for (a, _), c in cells.items() if a == n) for n in names}
    columns = {n: sum(c for (_, b), c in cells.items() if b == n) for n in names}
    expected = sum(rows[n] * columns[n] for n in names) / total**2
    return (observed - expected) / (1 - expected)


def auc(judged: list[dict[str, Any]]) -> float:
    """Share of (followed, broken) pairs that P(follows) ranks right; Mann & Whitney 1947."""
    good = [float(check(line)["probability"]) for line in judged if gold(line) == "yes"]
    bad = [float(check(line)["probability"]) for line in judged if gold(line) == "no"]
    return ranked(good, bad)


def ranked(high: list[float], low: list[float]) -> float:
    """Share of pairs in which the first is the higher, ties half."""
    wins = sum((h > x) + 0.5 * (h == x) for h, x in product(high, low))
    return wins / (len(high) * len(low))


if __name__ == "__main__":
    main()
