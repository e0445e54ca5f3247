"""What stands around a run on standard error: who judges, and the closing summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.cli.printing import counted, print_table, say, shortened, tell
from judge.errors import UsageError, install_hint
from judge.verdict import Verdict

if TYPE_CHECKING:
    from judge.run.corrected import CorrectedRate
    from judge.run.running import Report
    from judge.run.summary import Summary
    from judge.settings import Settings
    from judge.stats.intervals import Estimate

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


def announce(settings: Settings, *, quiet: bool) -> None:
    """Say who judges where no model is named, and fetch that model where it is missing.

    Raises:
        UsageError: the local engine is not installed.
        JudgeError: the model cannot be fetched.
    """
    from judge.run.setup import DEFAULT_MODEL
    from judge.weights.store import path

    if settings.model:
        return
    _need_engine()
    name = DEFAULT_MODEL.partition(":")[2]
    if path(name) is None:
        from judge.cli.models import fetch

        tell(f"no --model named; fetching the default judge {name} once")
        fetch(name)
    if not quiet:
        tell(f"no --model named; {DEFAULT_MODEL} judges, {_known_for()}")


def _known_for() -> str:
    """What the profile that comes with the default model says of its agreement with labels."""
    from judge.profiles import shipped

    told = []
    for check, judges in sorted(shipped().judges.items()):
        kappa = judges[0].measures["kappa"]["value"]
        told.append(f"{check} {'–' if kappa is None else format(kappa, '.2f')}")
    return f"a 1.5B model; kappa with labels (docs/calibration.md): {', '.join(told)}"


def _need_engine() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise UsageError(
            "no --model named, and the embedded engine is not installed. Either "
            f"{install_hint('local')}, or name a model: --model openai:gpt-4o "
            "(with OPENAI_API_KEY, or OPENAI_BASE_URL for your own server)"
        )


def print_summary(report: Report, fail_under: float | None, held: bool | None) -> None:
    """Verdicts, checks, repairs, rewritten speech, and what it took."""
    summary = report.summary
    counts = [*sorted(summary.checks.items()), ("record", summary.verdicts)]
    columns = [str(v) for v in Verdict if any(row.get(v) for _, row in counts)]
    if summary.records:
        rows = [[name, *(str(row.get(c) or "") for c in columns)] for name, row in counts]
        print_table(["check", *columns], rows, err=True)
    for line in _lines(report, fail_under, held):
        say(line, err=True)


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
        example = shortened(summary.examples.get(kind, ""), _MOST_SHOWN)
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
