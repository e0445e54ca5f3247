"""For tests of what language models write: an assertion that a judge makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.api import Judgement, validate
from judge.errors import JudgeError, Undecided
from judge.verdict import Verdict


def assert_judged(
    text: str | Mapping[str, Any], ask: str | None = None, **settings: Any
) -> Judgement:
    """Assert that a text, or a record, passes.

    An error's traceback ends at the caller's line: pytest shows no line of judge.

    Args:
        text: the text, as a record's field `text`; or the record's fields.
        ask: the question, yes passes; None where `rubric` or `workflow` says what is asked.
        settings: as `judge.validate` takes them: `model`, `rubric`, `on`, ...

    Raises:
        AssertionError: it fails; with the judge's quote and reason.
        Undecided: the judge abstained, or its reply could not be read: neither pass nor fail.
        JudgeError: nothing was judged.
    """
    __tracebackhide__ = True
    try:
        (judgement,) = validate([text], ask=ask, **settings)
    except JudgeError as error:
        raise error.with_traceback(None) from None
    if judgement.verdict is Verdict.PASS:
        return judgement
    message = f"{ask or 'judged'}: {judgement.verdict}: {judgement.reason}"
    if judgement.verdict is Verdict.FAIL:
        raise AssertionError(message)
    why = judgement.error.message if judgement.error else judgement.reason
    raise Undecided(f"{ask or 'judged'}: not decided ({judgement.verdict}): {why}")
