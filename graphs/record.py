"""record: the user's own questions about records of any form (`--ask`, `--rubric`)."""

from __future__ import annotations

from judge.workflows import Workflow

workflow = Workflow(
    name="record",
    kind="record",
    title="Questions of your own about any record",
    graph=None,
    checks=(),
)
