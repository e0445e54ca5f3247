"""The reason of a judgement: one line that says what decided it, with the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.verdict import Answer, Check, Verdict, worst

MAX_LENGTH = 300
"""Maximum number of characters of a reason."""

NO_REASON = "this kind of model gives no reason"
"""The reason that decision models get."""

LOOKS_HOSTILE = "looks like a message to the judge"
"""Part of the reason of a check that abstains because of its text (docs/decisions/0027-...)."""

_VALUE, _QUOTE, _WHY = 70, 90, 110
_SILENT = (Verdict.PASS, Verdict.ANSWERED, Verdict.SKIPPED)


def reason_of(decided: Sequence[Check], notes: Sequence[str] = ()) -> str | None:
    """Why a record does not pass, the deciding check first; None if it passes.

    The deciding check has the value, the quote and the judge's reason, the others are in short; at
    most `MAX_LENGTH` characters in all.
    """
    against = [c for c in decided if c.verdict not in _SILENT]
    parts: list[str] = []
    if against:
        verdict = worst(check.verdict for check in against)
        first = next(check for check in against if check.verdict is verdict)
        parts = [f"{first.name}: {in_short(first)}{_evidence(first)}"]
        parts += [f"{check.name}: {in_short(check)}" for check in against if check is not first]
    elif decided and all(check.verdict is Verdict.SKIPPED for check in decided):
        parts = ["no check could be made"]
    return _clip("; ".join([*parts, *notes]), MAX_LENGTH) or None


def in_short(check: Check) -> str:
    """A check's verdict in a few words: the answer or score, or why it is undecided."""
    verdicts, undecided = check.verdicts(), check.verdict is Verdict.ABSTAIN
    if None not in verdicts and (undecided or check.verdict is Verdict.FAIL):
        count = sum(verdict is check.verdict for verdict in verdicts.values())
        return f"{count} of {len(verdicts)} {'undecided' if undecided else 'failed'}"
    graded, panel = bool(check.counted), [vote for vote in check.votes if vote.part == "panel"]
    cast = Counter(vote.counted_as(graded=graded).get(None, (vote.verdict, None)) for vote in panel)
    if undecided and len(cast) > 1:
        counts = ", ".join(f"{n} {answer or verdict}" for (verdict, answer), n in cast.items())
        return f"undecided ({'; '.join(filter(None, (counts, check.reason)))})"
    if check.reason:
        return check.reason
    if answer := check.answer if check.score is None else f"score {check.score:.4g}":
        return f"{check.verdict} ({answer})"
    evidence = check.supporting_evidence()
    chance = _chance(check, evidence)
    if chance is None or any(answer.quote or answer.reason for answer in evidence):
        return str(check.verdict)
    # First tokens give neither quote nor reason, so show their answer and P(pass).
    name = next((answer.answer for answer in evidence if answer.answer), check.verdict)
    silent = f"; {NO_REASON}" if any(vote.answered_by for vote in check.votes) else ""
    return f"{'undecided' if undecided else name} (P(pass) {chance}{silent})"


def _chance(check: Check, evidence: Sequence[Answer]) -> str | None:
    """P(pass), or the bounds of the only answer; None if neither is known."""
    if check.probability is not None:
        return f"{check.probability:.2f}"
    bounds = evidence[0].probability_range if len(evidence) == 1 else None
    return f"between {bounds[0]:.2f} and {bounds[1]:.2f}" if bounds else None


def _evidence(check: Check) -> str:
    answer = check.best_evidence if check.votes else None
    if answer is None:
        return ""
    words = f'"{_clip(answer.quote, _QUOTE)}"' if answer.quote else ""
    if answer.character and words:
        words = f"{answer.character} says {words}"
    why = _clip(answer.reason or "", _WHY)
    evidence = f"{words} ({why})" if words and why else words or why
    return "".join(f": {part}" for part in (_clip(answer.value or "", _VALUE), evidence) if part)


def _clip(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
