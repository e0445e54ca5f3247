"""Checks of e-mails, for `python` in a rubric's file and for --test."""

from typing import Any


def greets(record: dict[str, Any]) -> dict[str, Any]:
    """Whether it begins with a greeting and a name."""
    first = record["email"].split(",")[0]
    return {"pass": first.startswith(("Dear ", "Hello ")), "reason": f"it begins: {first[:30]}"}
