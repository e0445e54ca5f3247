"""The settings that CQ-Bench's tasks are asked in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from judge.evaluation.cqbench_distractors import Rule

TaskName = Literal["attitude", "selection", "extraction"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One setting: the task, and how it is put.

    `steps`: the model first summarises, then analyses (CQ-Bench, section 3.1). `binary`: questions
    whose right answer is not neutral, asked without the neutral option (appendix B.1). `rule`: how
    the other options of a selection are drawn.
    """

    name: str
    task: TaskName
    steps: bool
    rule: Rule = "paper"
    binary: bool = False


CONDITIONS: dict[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition("attitude", "attitude", steps=False),
        Condition("attitude+steps", "attitude", steps=True),
        Condition("attitude:binary", "attitude", steps=False, binary=True),
        Condition("attitude:binary+steps", "attitude", steps=True, binary=True),
        Condition("selection", "selection", steps=False),
        Condition("selection+steps", "selection", steps=True),
        Condition("selection:released", "selection", steps=False, rule="released"),
        Condition("selection:released+steps", "selection", steps=True, rule="released"),
        Condition("extraction+steps", "extraction", steps=True),
    )
}
"""All conditions by name, in the order in which they are run."""

USUAL = ("attitude", "attitude+steps", "selection", "selection+steps", "extraction+steps")
"""What the paper's table 1 shows."""
