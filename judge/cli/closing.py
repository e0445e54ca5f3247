"""The closing summary on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.cli.printing import counted, plain_console
from judge.verdict import Verdict

if TYPE_CHECKING:
    from judge.run.corrected import CorrectedRate
    from judge.run.summary import Summary
    from judge.run.task import Report
    from judge.stats.interval import Estimate

_MOST_SHOWN = 160
"""Characters that are shown of an error's message."""


def gate(report: Report, fail_under: float | None) -> bool | None:
    """Whether enough of all records pass; None without a gate.

    A gate over no record does not hold: an empty file must not look like a clean one.
    """
    if fail_under is None:
        return None
    rate = report.summary.pass_rate
    return rate is not None and rate >= fail_under


def print_summary(report: Report, fail_under: float | None, held: bool | None) -> None:
    """Verdicts, checks, repairs, rewritten speech, and what it took."""
    from rich.table import Table
    from rich.text import Text

    console = plain_console(stderr=True, soft_wrap=True)
    summary = report.summary
    table = Table(title="records", title_justify="left", box=None, pad_edge=False)
    columns = [str(v) for v in Verdict]
    table.add_column("check")
    for name in columns:
        table.add_column(name, justify="right")
    for name, counts in sorted(summary.checks.items()):
        table.add_row(name, *(str(counts.get(c, 0) or "") for c in columns))
    table.add_row(
        Text("record", style="bold"), *(str(summary.verdicts.get(c, 0) or "") for c in columns)
    )
    if summary.records:
        console.print(table)
    for line in _lines(report, fail_under, held):
        console.print(line, markup=False)


def _lines(report: Report, fail_under: float | None, held: bool | None) -> list[str]:
    summary = report.summary
    rate = summary.pass_rate
    told = []
    if rate is not None:
        passed = summary.verdicts[Verdict.PASS]
        told.append(
            f"{passed} of {counted(summary.records, 'record')} "
            f"{'passes' if summary.records == 1 else 'pass'} ({rate:.1%}): "
            f"{summary.passed_at_once} at once, {summary.passed_after_edits} after edits "
            f"({counted(summary.edits, 'edit')}, {counted(summary.dropped, 'value')} dropped)"
        )
    if held is not None:
        empty = "" if summary.records else " (there is no record)"
        told.append(f"gate {fail_under}: {'holds' if held else 'does not hold'}{empty}")
    told += troubles(summary)
    told += [_corrected(rate) for rate in report.corrections.rates()]
    told += _speech(summary.speech.as_json())
    told.append(_effort(report))
    return told


def troubles(summary: Summary) -> list[str]:
    """How many records have no verdict for each reason, with the first of its messages."""
    told = []
    for kind, count in summary.errors.most_common():
        example = " ".join(summary.examples.get(kind, "").split())
        if len(example) > _MOST_SHOWN:
            example = f"{example[:_MOST_SHOWN]}..."
        first = "first, " if count > 1 and example.startswith("line ") else ""
        told.append(f"{count} x {kind}: {first}{example}" if example else f"{count} x {kind}")
    return told


def exchanged(report: Report) -> str:
    """How many calls were made, and how many replies came from the cache."""
    calls = sum(counters["calls"] for counters in report.traffic.values())
    hits = sum(counters["cache_hits"] for counters in report.traffic.values())
    return f"{counted(calls, 'call')}, {counted(hits, 'reply', 'replies')} from cache"


def _corrected(rate: CorrectedRate) -> str:
    """One check's pass rate as the judge has it, and with its errors taken out."""
    raw = rate.corrected.raw
    edited = " that were edited" if rate.stratum == "after edits" else ""
    told = f"{rate.check}, records{edited}: the judge passes {_share(raw)} of {raw.n}"
    if rate.undecided:
        told += f" ({rate.undecided} undecided)"
    estimate = rate.corrected.estimate
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


def _speech(speech: dict[str, Any]) -> list[str]:
    def mean(side: dict[str, Any]) -> str:
        value = "-" if side["mean"] is None else f"{side['mean']:.3f}"
        return f"{value} ({side['n']} of {side['of']})"

    return [
        f"rewritten speech, {name}: {mean(sides['before'])} before, {mean(sides['after'])} after"
        for name, sides in speech.items()
    ]


def _effort(report: Report) -> str:
    total: dict[str, int] = {}
    for counters in report.traffic.values():
        for name, count in counters.items():
            total[name] = total.get(name, 0) + count
    fresh = report.summary.records - report.summary.kept
    pace = fresh / report.seconds if report.seconds else 0.0
    parts = [
        f"{counted(fresh, 'record')} in {report.seconds:.1f} s ({pace:.2f}/s)",
        counted(total.get("calls", 0), "call"),
        f"{counted(total.get('cache_hits', 0), 'reply', 'replies')} from cache",
        f"{total.get('reasks', 0)} re-asked",
        f"{total.get('retries', 0)} retried",
        f"{total.get('input_tokens', 0)} + {total.get('output_tokens', 0)} tokens",
    ]
    if report.summary.kept:
        parts.insert(1, f"{report.summary.kept} kept")
    if report.cost:
        parts.append(f"{report.cost:.4f} USD")
    return ", ".join(parts)
