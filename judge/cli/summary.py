"""What stands around a run on standard error: who judges, and the closing summary."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.cli.printing import counted, folded, print_table, say, shortened, tell, width
from judge.errors import UsageError, install_hint
from judge.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from judge.run.corrected import CorrectedRate
    from judge.run.summary import Summary
    from judge.run.task import Report
    from judge.settings import Settings
    from judge.stats.intervals import Estimate

_AGAIN = {"reasks": "asked again", "retries": "retried"}
_MOST_SHOWN = 160
"""Characters that are shown of an error's message."""


def announce(settings: Settings, *, quiet: bool) -> None:
    """Say who judges where no model is named, and fetch that model where it is missing.

    Raises:
        UsageError: the local engine is not installed.
        JudgeError: the model cannot be fetched.
    """
    from importlib.util import find_spec

    from judge.profiles import shipped
    from judge.run.setup import DEFAULT_MODEL
    from judge.weights.store import path

    if settings.model:
        return
    if find_spec("xllamacpp") is None:
        raise UsageError(
            "no --model named, and the embedded engine is not installed. Either "
            f"{install_hint('local')}, or name a model: --model openai:gpt-4o "
            "(with OPENAI_API_KEY, or OPENAI_BASE_URL for your own server)"
        )
    name = DEFAULT_MODEL.partition(":")[2]
    if path(name) is None:
        from judge.cli.models import fetch

        tell(f"no --model named; fetching the default judge {name} once")
        fetch(name)
    if quiet:
        return
    kappas = {check: j[0].measures["kappa"]["value"] for check, j in shipped().judges.items()}
    told = [f"{c} {'–' if k is None else format(k, '.2f')}" for c, k in sorted(kappas.items())]
    tell(
        f"no --model named; {DEFAULT_MODEL} judges, a 1.5B model; kappa with labels "
        f"(docs/calibration.md): {', '.join(told)}"
    )


def print_summary(
    report: Report, fail_under: float | None, held: bool | None, out: Path | None = None
) -> None:
    """Verdicts by check, the pass rate, the first failures, where the output is, what it took."""
    summary = report.summary
    counts = [*sorted(summary.checks.items()), ("record", summary.verdicts)]
    columns = [str(v) for v in Verdict if any(row.get(v) for _, row in counts)]
    if summary.records:
        rows = [[name, *(str(row.get(c) or "") for c in columns)] for name, row in counts]
        print_table(["check", *columns], rows, err=True)
    told = [*_rates(summary)]
    if held is not None:
        empty = "" if summary.records else " (there is no record)"
        told.append(f"gate {fail_under}: {'holds' if held else 'does not hold'}{empty}")
    told += [*_failures(summary), *troubles(summary)]
    told += [_corrected(rate) for rate in report.corrections.rates()]
    told += _effort(report)
    if out is not None and summary.records:
        page = shlex.quote(str(out.with_suffix(".html")))
        told += [f"output: {out}", f"next: judge report {shlex.quote(str(out))} -o {page}"]
    for line in told:
        indent = " " * (2 + len(line) - len(line.lstrip()))
        say("\n".join(folded(line, width(err=True), indent)), err=True)


def _rates(summary: Summary) -> Iterator[str]:
    rate = summary.pass_rate
    if rate is None:
        return
    passed, all_records = summary.verdicts[Verdict.PASS], counted(summary.records, "record")
    yield f"{passed} of {all_records} {'passes' if summary.records == 1 else 'pass'} ({rate:.1%})"
    if summary.edits or summary.dropped:
        yield (
            f"  {summary.passed_at_once} at once, {summary.passed_after_edits} after edits "
            f"({counted(summary.edits, 'edit')}, {counted(summary.dropped, 'value')} dropped)"
        )


def _failures(summary: Summary) -> Iterator[str]:
    """The first records that failed: id, check, quote and the judge's reason."""
    if summary.failures:
        count, shown = summary.verdicts[Verdict.FAIL], len(summary.failures)
        yield f"failed: {count}" + (f", the first {shown}:" if count > shown else "")
    for name, judgement in summary.failures:
        yield f"  {shortened(name, 40)}  {shortened(_why(judgement), _MOST_SHOWN)}"


def _why(judgement: Mapping[str, Any]) -> str:
    """The check that a record failed, with the quote and the reason that stand against it."""
    read = Judgement.model_validate(judgement)
    for check in read.checks:
        for finding in check.bearing() if check.verdict is Verdict.FAIL else ():
            if finding.verdict is Verdict.FAIL and (finding.quote or finding.reason):
                quote = f"“{finding.quote}”" if finding.quote else None
                return f"{check.name}: " + " – ".join(filter(None, (quote, finding.reason)))
    return read.reason or ""


def troubles(summary: Summary) -> list[str]:
    """How many records have no verdict for each reason, with the first of its messages."""
    told = []
    for kind, count in summary.errors.most_common():
        example = shortened(summary.examples.get(kind, ""), _MOST_SHOWN)
        first = "first, " if count > 1 and example.startswith("line ") else ""
        told.append(f"{count} x {kind}: {first}{example}" if example else f"{count} x {kind}")
    return told


def _corrected(rate: CorrectedRate) -> str:
    """One check's pass rate as the judge has it, and with its errors taken out."""
    raw, estimate = rate.corrected.raw, rate.corrected.estimate
    told = f"{rate.check}: the judge passes {_share(raw)} of {raw.n}"
    if rate.undecided:
        told += f" ({rate.undecided} undecided)"
    if estimate.value is None:
        told += f"; not corrected: {rate.corrected.reason}"
    else:
        told += f"; corrected for its errors {_share(estimate)}, by {estimate.n} labels"
    if rate.powered is not None and rate.powered.estimate.value is not None:
        powered = rate.powered.estimate
        told += f"; from {powered.n} labels on these records {_share(powered)}"
    return told


def _share(estimate: Estimate) -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def exchanged(report: Report) -> str:
    """How many calls were made, and how many replies came from the cache."""
    calls = sum(counters["calls"] for counters in report.traffic.values())
    hits = sum(counters["cache_hits"] for counters in report.traffic.values())
    return f"{counted(calls, 'call')}, {counted(hits, 'reply', 'replies')} from cache"


def _effort(report: Report) -> Iterator[str]:
    fresh = report.summary.records - report.summary.kept
    pace = fresh / report.seconds if report.seconds else 0.0
    kept = f", {report.summary.kept} kept" if report.summary.kept else ""
    took = f"{counted(fresh, 'record')} in {report.seconds:.1f} s ({pace:.2f}/s)"
    yield f"{took}{kept}, {exchanged(report)}"
    total: Counter[str] = Counter()
    for counters in report.traffic.values():
        total.update(counters)
    parts = []
    if total["input_tokens"]:
        parts.append(f"{total['input_tokens']} + {total['output_tokens']} tokens")
    parts += [f"{total[name]} {told}" for name, told in _AGAIN.items() if total[name]]
    if report.cost:
        parts.append(f"{report.cost:.4f} USD")
    if parts:
        yield "  " + ", ".join(parts)
