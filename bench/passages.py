"""Stories passage by passage: how far a model that reads passages agrees with the stories' labels.

    python bench/passages.py MODEL [--swapped]

MODEL is one that gives first tokens, such as local:qwen2.5-coder-1.5b+ADAPTER.gguf. Each passage of
the labelled stories is asked what somebody in it does with each value; the likeliest passage
decides, at a threshold fitted to the other stories. --swapped puts the values of the next story to
each, which must all be answered no. About ten minutes each way on two cores; extra `calibrate`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from judge.configuration import resolve
from judge.judging.judge import Judge
from judge.records.values import Value
from judge.rubric import Rubric, builtin
from judge.run.setup import Setup
from judge.stats.bootstrap import Resamples
from judge.stats.classification import aucs, kappas
from judge.subject import Subject

STORIES = Path("fixtures/labelled/stories.jsonl")
TAUGHT = Path("docs/examples/teaching/passage.yaml")
CHECKS = {
    "incorporation": ["for", "states"],
    "consistency": ["against"],
    "implicitness": ["states"],
}
"""What a passage has to do with a value for the answer to be yes."""


def rubric() -> Rubric:
    """The incorporation rubric, with the question that the adapter was taught for each check."""
    method = Rubric.from_file(TAUGHT).methods.logprobs
    assert method is not None
    base = builtin()["incorporation"].model_dump(mode="json", exclude_none=True)
    base["verdict"] = {"pass": "yes"}
    asked = method.choices[0].model_dump(mode="json")
    base["methods"]["logprobs"]["also"] = [{**asked, "passages": one} for one in CHECKS.values()]
    return Rubric.from_dict(base)


async def read(model: str, stories: list[dict[str, Any]], shift: int) -> list[list[float]]:
    """How likely each check's yes is, story by story and value by value."""
    setup = Setup.of(resolve({"model": (model,), "profile": "none"}))
    judge = Judge(rubric(), setup.client(model), "logprobs")
    found: list[list[float]] = []
    try:
        for place, one in enumerate(stories):
            values = stories[(place + shift) % len(stories)]["values"]
            about = Subject.of_texts(one["id"], "story", {"story": one["story"]}, None)
            about = replace(about, values=tuple(map(Value.parse, values)))
            asked = (judge.reading(about, n, (1, 2, 3)) for n in about.numbers)
            for reading, _ in await asyncio.gather(*asked):
                assert reading is not None, "a passage could not be read"
                found.append([reading.chances[place][0] for place in (1, 2, 3)])
            print(f"{place + 1} of {len(stories)} stories", flush=True)
    finally:
        await setup.aclose()
    return found


def threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """The score from which on yes agrees best with labels, beyond chance."""
    return float(max({*scores}, key=lambda cut: cohen_kappa_score(labels, scores >= cut)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--swapped", action="store_true")
    options = parser.parse_args()
    stories = [json.loads(line) for line in STORIES.read_text("utf-8").splitlines()]
    own = np.array(asyncio.run(read(options.model, stories, 0)))
    other = asyncio.run(read(options.model, stories, 1)) if options.swapped else None
    groups = np.array([n for n, one in enumerate(stories) for _ in one["values"]])
    resamples = Resamples([str(group) for group in groups])
    for column, check in enumerate(CHECKS):
        scores = own[:, column]
        labels = np.array([one == "yes" for story in stories for one in story["labels"][check]])
        cuts = [threshold(scores[groups != g], labels[groups != g]) for g in range(len(stories))]
        said = scores >= np.array(cuts)[groups]
        counted = resamples.confusions([*map(str, labels)], [*map(str, said)], ["True", "False"])
        size = {"n": len(labels), "of": len(labels)}
        kappa = resamples.estimate(kappas(counted), **size)
        auc = resamples.estimate(aucs(labels, scores, resamples.weights()), **size)
        print(f"{check}: kappa {kappa}, AUC {auc}")
        if other is not None:
            no = sum(row[column] < cuts[n // 4] for n, row in enumerate(other))
            print(f"  with another story's values {no} of {len(other)} answers are no")


if __name__ == "__main__":
    main()
