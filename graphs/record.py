"""record: questions of the user's own about records of any form (`--ask`, `--rubric`)."""

from __future__ import annotations

from judge.workflows import Workflow

workflow = Workflow(
    name="record",
    kind="record",
    title="Questions of your own about any record",
    graph=None,
    checks=(),
)
