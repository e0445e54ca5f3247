"""Assertions by a judge, for tests of what language models write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.api import Judgement, avalidate, validate
from judge.errors import JudgeError, Undecided, UsageError
from judge.records.words import is_blank
from judge.verdict import Verdict


def assert_judged(
    text: str | float | Mapping[str, Any], ask: str | None = None, **settings: Any
) -> Judgement:
    """Assert that a text, or a record, passes.

    An error's traceback ends at the caller's line: pytest shows no line of judge.

    Args:
        text: the text, or a number, as a record's field `text`; or the record's fields.
        ask: the question, yes passes; None if `rubric` or `workflow` says what is asked.
        settings: as for `judge.validate`: `model`, `rubric`, `on`, ...

    Raises:
        AssertionError: it fails; with the judge's quote and reason.
        Undecided: the judge abstained, or its reply could not be read: neither pass nor fail.
        JudgeError: nothing was judged; UsageError for an empty text, or if answers are counted.
    """
    __tracebackhide__ = True
    try:
        (judgement,) = validate([_record(text)], ask=ask, **settings)
    except JudgeError as error:
        raise error.with_traceback(None) from None
    return _asserted(judgement, ask)


async def aassert_judged(
    text: str | float | Mapping[str, Any], ask: str | None = None, **settings: Any
) -> Judgement:
    """`assert_judged` without blocking the event loop."""
    __tracebackhide__ = True
    try:
        (judgement,) = [found async for found in avalidate([_record(text)], ask=ask, **settings)]
    except JudgeError as error:
        raise error.with_traceback(None) from None
    return _asserted(judgement, ask)


def _record(text: str | float | Mapping[str, Any]) -> str | Mapping[str, Any]:
    if isinstance(text, Mapping):
        return text
    if not isinstance(text, str | int | float) or text != text:
        raise UsageError(f"text: give a text, a number or a record, not {type(text).__name__}")
    text = str(text)
    if is_blank(text):
        raise UsageError("text: is empty, so there is nothing to judge")
    return text


def _asserted(judgement: Judgement, ask: str | None) -> Judgement:
    __tracebackhide__ = True
    if judgement.verdict is Verdict.PASS:
        return judgement
    message = f"{ask or 'judged'}: {judgement.verdict}: {judgement.reason}"
    if judgement.verdict is Verdict.FAIL:
        raise AssertionError(message)
    if judgement.verdict is Verdict.ANSWERED:
        raise UsageError("answers are only counted: say which pass, as in pass_='>= 4'")
    why = judgement.error.message if judgement.error else judgement.reason
    raise Undecided(f"{ask or 'judged'}: not decided ({judgement.verdict}): {why}")
