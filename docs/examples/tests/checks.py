"""Checks of e-mails, for `python` in a rubric's file and for --test."""


def greets(record: dict) -> dict:
    """Whether it begins with a greeting and a name."""
    first = record["email"].split(",")[0]
    return {"pass": first.startswith(("Dear ", "Hello ")), "reason": f"it begins: {first[:30]}"}
