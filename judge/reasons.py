"""The reason of a judgement: one line that says what decided it, with the words behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.verdict import Check, Verdict, worst

LONGEST = 300
"""Characters of a reason at most."""

_VALUE, _QUOTE, _WHY = 70, 90, 110


def reason_of(decided: Sequence[Check], notes: Sequence[str] = ()) -> str | None:
    """Why a record does not pass, the deciding check first; None where it does.

    That check comes with the value, the quote and the judge's reason, the others in short; at most
    `LONGEST` characters in all.
    """
    against = [c for c in decided if c.verdict not in (Verdict.PASS, Verdict.SKIPPED)]
    parts: list[str] = []
    if against:
        verdict = worst(check.verdict for check in against)
        first = next(check for check in against if check.verdict is verdict)
        parts = [f"{first.name}: {_short(first)}{_evidence(first)}"]
        parts += [f"{check.name}: {_short(check)}" for check in against if check is not first]
    elif decided and all(check.verdict is Verdict.SKIPPED for check in decided):
        parts = ["no check could be made"]
    return _clip("; ".join([*parts, *notes]), LONGEST) or None


def _short(check: Check) -> str:
    verdicts = check.verdicts()
    if None not in verdicts and check.verdict in (Verdict.FAIL, Verdict.ABSTAIN):
        count = sum(verdict is check.verdict for verdict in verdicts.values())
        said = "undecided" if check.verdict is Verdict.ABSTAIN else "failed"
        return f"{count} of {len(verdicts)} values {said}"
    if check.reason:
        return check.reason
    cast = Counter(vote.verdict for vote in check.votes if vote.part == "panel")
    if check.verdict is Verdict.ABSTAIN and len(cast) > 1:
        return f"undecided ({', '.join(f'{n} {verdict}' for verdict, n in cast.items())})"
    answer = check.answer if check.score is None else f"score {check.score:.4g}"
    if answer:
        return f"{check.verdict} ({answer})"
    found = check.supporting_evidence()
    if check.probability is None or any(one.quote or one.reason for one in found):
        return str(check.verdict)
    # First tokens give neither quote nor reason: their answer and P(pass) tell what was read.
    said = next((one.answer for one in found if one.answer), None) or check.verdict
    undecided = check.verdict is Verdict.ABSTAIN
    return f"{'undecided' if undecided else said} (P(pass) {check.probability:.2f})"


def _evidence(check: Check) -> str:
    finding = check.best_evidence if check.votes else None
    if finding is None:
        return ""
    quote = f'"{_clip(finding.quote, _QUOTE)}"' if finding.quote else ""
    said = f"{finding.character} says {quote}" if finding.character and quote else quote
    why = _clip(finding.reason or "", _WHY)
    told = f"{said} ({why})" if said and why else said or why
    value = _clip(finding.value or "", _VALUE)
    return "".join(f": {part}" for part in (value, told) if part)


def _clip(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
