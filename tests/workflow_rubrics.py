"""The judging rubrics that workflows and commands ask by name: each has labels and a profile."""

from __future__ import annotations

from judge.questions.ready_made import builtin

# Those of `judge generate` are asked about what its own writer wrote, and have no labels.
JUDGING = {
    name: rubric
    for name, rubric in builtin().items()
    if rubric.role == "judge" and rubric.kinds != ("record",)
}
