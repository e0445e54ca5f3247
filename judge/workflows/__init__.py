"""Workflows: LangGraph state machines over checks and edits."""

from judge.workflows.work import By, Context, State, Work, Workflow, WorkflowResult

__all__ = ["By", "Context", "State", "Work", "Workflow", "WorkflowResult"]
