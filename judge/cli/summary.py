"""What a run prints on standard error: who judges, the closing summary, what to type next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from judge.cli.printing import counted, nothing, print_lines, print_message, print_table, shortened
from judge.errors import ContextExceeded, Exit
from judge.reasons import LOOKS_HOSTILE, MAX_LENGTH
from judge.verdict import LOST, UNDECIDED, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from judge.api import Job, Report, Summary
    from judge.settings import Settings

_MAX_MESSAGE = 160
"""Characters of an error's message in the summary."""


_PAIRS = 3
"""Most pairs of judges printed for each check without --all."""


def announce(
    settings: Settings,
    *,
    profiled: bool = True,
    quiet: bool,
    before_fetch: Callable[[], None] = lambda: None,
) -> None:
    """Print what the user's profile adds and, if no model is named, that the embedded one judges;
    it is downloaded if need be.

    Args:
        profiled: whether the command uses the user's profile.
        before_fetch: called before the download, which takes minutes; raises what makes it useless.

    Raises:
        UsageError: no model is named, and no local engine is installed.
        JudgeError: the model cannot be fetched.
    """
    if profiled:
        from judge.arguments import with_profile

        settings, lines = with_profile(settings)
        for line in () if quiet else lines:
            print_message(shortened(line, MAX_LENGTH))
    if settings.model:
        return
    from judge.backends import default_judge

    model = default_judge()
    if model.is_missing():
        before_fetch()
        from judge.cli.progress import steps

        name = model.spec.partition(":")[2]
        print_message(f"no --model named; fetching the default judge {name} once")
        with steps("MB") as show:
            model.fetch(lambda size, of, detail: show(name, size / 1e6, of / 1e6, detail))
    if quiet:
        return
    trust = " where it is shown to be better than a guess, on texts by others too"
    if not profiled:
        trust = ""
    elif settings.questions or settings.rubric:
        trust = "; it has not learnt this question: judge calibrate LABELS teaches it"
    print_message(f"no --model named; {model.spec}, {model.about}, judges{trust}")


def print_summary(report: Report, job: Job, settings: Settings, *, all_tables: bool) -> None:
    """Print verdicts by check, rates, the first failures, effort, the output and what to do next.

    Args:
        settings: settings of the run; if they name a model or a profile, no advice on labels is
            given.
        all_tables: show all values of the field --by, not only the most frequent ones.
    """
    summary, repair = report.summary, settings.repair
    _print_counts(summary, repair=repair, all_tables=all_tables)
    lines = [*_rates(summary, repair), *_answered(summary)]
    for name, panel in sorted(summary.votes.items()):
        findings = panel.findings(
            None if all_tables else _PAIRS, repeated=settings.votes is not None
        )
        lines += [f"{name}: {text}" for text in findings]
    if report.finished:
        lines += map(str, report.outcomes)
    else:
        lines += [gate.open for gate in report.gates]
    lines += [str(summary.people)] if summary.people else []
    lines += [*_named(summary, (Verdict.FAIL, Verdict.ABSTAIN, *LOST)), *_repeated(summary)]
    for check, reason, count, of in summary.abstentions():
        lines.append(f"{check}: {count} of {of} abstain, {reason}")
    if any(LOOKS_HOSTILE in reason for _, reason in summary.unasked):
        lines.append("if that text is harmless: --resume --rejudge abstain --on-injection ask")
    lines += [rate.told(settings.profile) for _, rate in sorted(report.rates.items())]
    lines += _effort(report)
    lines += _what_next(report, job) if summary.records else ()
    if report.traffic and not (settings.model or settings.profile):
        lines.append(
            "to make it judge as you do: judge label about 100 records, then judge calibrate "
            "(docs/howto/teach.md)"
        )
    print_lines(lines, err=True)


def _what_next(report: Report, job: Job) -> Iterator[str]:
    """Where the output is, how many records people must decide, and the command that shows more."""
    out = job.out
    if job.review is not None:
        count = counted(report.reviewed, "record") if report.reviewed else "no record"
        how = f"; answer under labels, then --resume --decisions {shlex.quote(str(job.review))}"
        yield f"for people: {count} in {job.review}{how if report.reviewed else ''}"
    if out is not None:
        made = report.finished
        yield from _another_model(report.summary) if made else ()
        yield f"output: {out if job.table is None else _table(job.table, out, made=made)}"
        yield next_report(out)
    elif job.silent:
        yield "next: -o judged.jsonl (.csv, .xlsx, .parquet) keeps records and verdicts"


def next_report(out: Path) -> str:
    """The command that shows the lines of a file as a page."""
    # A name that begins with - would be read as an option.
    lines = f"./{out}" if str(out).startswith("-") else str(out)
    page = shlex.quote(str(out.with_suffix(".html")))
    return f"next: judge report {shlex.quote(lines)} -o {page}"


def _table(table: Path, out: Path, *, made: bool) -> str:
    """Where the table is, which a run makes of its lines when it ends."""
    if made:
        return f"{table}, made of the lines in {out}"
    state = "of an earlier run" if table.exists() else "not made yet"
    return f"{table}, {state}: --resume finishes it; the lines so far are in {out}"


def _print_counts(summary: Summary, *, repair: bool, all_tables: bool) -> None:
    """Print the verdicts of each check, and those of each value of the field --by."""
    if not summary.records:
        return
    checks = [*summary.rows.items(), ("record", summary.verdicts)]
    _print_verdicts("check", checks)
    for name, ranking in summary.ranked().items():
        ranked = ((r.field, r.strength, r.wins, r.losses, r.ties) for r in ranking.fields)
        heads = [name, "strength", "wins", "losses", "ties"]
        print_table(heads, [[*map(str, row)] for row in ranked], err=True)
    if summary.funnel:
        print_table(["stage", "in", "out"], [[*map(str, row)] for row in summary.funnel], err=True)
    if panels := summary.panels:
        rows = [
            [check, judge, panel.says(judge)]
            for check, panel in panels.items()
            for judge in panel.asked
        ]
        print_table(["check", "judge", "votes"], rows, labels=2, err=True)
    if not summary.slices:
        return
    slices, head = summary.slices.largest(all_values=all_tables), summary.slices.head
    verdicts = [(value, part.before_repair) for value, part in slices]
    _print_verdicts(f"{head} as it came in" if repair else head, verdicts, total=True)
    for name, answers, rows in summary.slices.answers(slices):
        print_table([f"{name} by {head}", *answers, "of"], rows, err=True)
    for name, rows in summary.slices.means(slices, summary.scales):
        heads = [f"{name} by {head}", "mean score", "95% interval", "scored", "of"]
        print_table(heads, rows, err=True)
    if len(slices) < len(summary.slices):
        print_lines([f"--all shows more: all {len(summary.slices)} values"], err=True)


def _print_verdicts(
    head: str, counted_by: Sequence[tuple[str, Counter[str]]], *, total: bool = False
) -> None:
    """Print how often each verdict occurs, a row for each name; with `total` their sum, too."""
    columns = [str(v) for v in Verdict if any(counts.get(v) for _, counts in counted_by)]
    rows = [
        [name, *(str(counts[c] or "") for c in columns), *([str(counts.total())] if total else [])]
        for name, counts in counted_by
    ]
    print_table([head, *columns, *(["of"] if total else [])], rows, err=True)


def print_short(report: Report, noun: str, named: Iterable[Verdict] = LOST) -> None:
    """Print the first items of each of the verdicts `named`, why others have none, and the effort;
    their tables have the rest."""
    summary = report.summary
    lines = [*_named(summary, named), *_repeated(summary), *_effort(report, noun)]
    print_lines(lines, err=True)


def end(report: Report, job: Job, settings: Settings, *, quiet: bool) -> NoReturn:
    """Print what ended a run early and what to type next; exit with its code."""
    if report.fatal is not None:
        print_message(report.fatal)
    if report.finished and not report.summary.records and not quiet:
        print_message(nothing(job.inputs, job.limit))
    if quiet and report.finished:
        # Nothing else says why the exit code is 1.
        for outcome in report.outcomes:
            if not outcome.holds:
                print_message(str(outcome))
    advice = None if report.broken_pipe else _advice(report, job, settings)
    silent = quiet and report.finished and report.exit_code == Exit.OK
    if advice and not silent:
        print_message(advice)
    elif quiet and report.finished and report.exit_code == Exit.INCOMPLETE:
        print_message(_undecided(report.summary))
    raise typer.Exit(report.exit_code)


def _undecided(summary: Summary) -> str:
    """How many records have no verdict, and why."""
    reasons = troubles(summary) or [
        f"{check}: {count} of {of} abstain, {reason}"
        for check, reason, count, of in summary.abstentions()
    ]
    return f"{counted(summary.incomplete, 'record')} undecided: {'; '.join(reasons)}"


def _advice(report: Report, job: Job, settings: Settings) -> str | None:
    """What to type after a run that left records without a verdict; None after other runs."""
    count, out = report.summary.records, job.out
    again = f"the same command {'run again' if out is None else 'with --resume'}"
    if report.finished:
        counts = {
            "the server failed": report.summary.transient_errors,
            "no reply could be read": report.summary.misread,
        }
        if not any(counts.values()):
            return None
        why = " or ".join(reason for reason, number in counts.items() if number)
        records = f"{counted(sum(counts.values()), 'record')} undecided because {why}"
        return f"{records}; {again} asks once more"
    if report.exit_code == Exit.USAGE and not count:
        return None  # The same command would end in the same way.
    if not (report.begun or count or report.batches):
        unchanged = f" and {out} is unchanged" if out is not None and out.exists() else ""
        return f"nothing was written{unchanged}; the same command can be run again"
    verb = "was" if count == 1 else "were"
    written = "judged" if job.silent else f"written to {out or 'the output'}"
    progress = f"{counted(count, 'record')} {verb} {written}"
    if report.batches:
        batches = counted(report.batches, "batch", "batches")
        return f"{progress}; {batches} still at the provider; {again} picks up the results"
    if out is not None:
        return f"{progress}; {again} continues from there"
    cached = ": replies in the cache are not asked again" if settings.cache else ""
    return f"{progress}; run it again{cached}"


def _rates(summary: Summary, repair: bool) -> Iterator[str]:
    from judge.stats.intervals import percent

    rate, repaired = summary.pass_rate, summary.repaired_rate
    if rate is None or repaired is None:
        if of := summary.records:
            answered = summary.verdicts[Verdict.ANSWERED]
            yield f"{answered} of {counted(of, 'record')} answered ({percent(answered / of)})"
        return
    single = summary.records == 1
    text = f"{summary.before_repair[Verdict.PASS]} of {counted(summary.records, 'record')} "
    text += "passes" if single else "pass"
    if not (repair or summary.edits or summary.dropped):
        yield f"{text} ({percent(rate)})"
        return
    yield f"{text} as {'it' if single else 'they'} came in ({percent(rate)})"
    yield (
        f"{summary.verdicts[Verdict.PASS]} after repair ({percent(repaired)}; "
        f"{counted(summary.edits, 'edit')}, {counted(summary.dropped, 'value')} dropped)"
    )


def _answered(summary: Summary) -> Iterator[str]:
    """The mean score of each check that has scores, the mean recall of extractions, rankings, how
    often each label was the answer, the verdicts on entries, and how many quotes do not stand."""
    for name in summary.scores:
        yield f"{name}: {summary.mean_words(name)}"
    if recalls := summary.mean_recalls():
        records, values = recalls["records"], recalls["values"]
        yield (
            f"mean recall {records} ({records.n} of {records.of} records); "
            f"over values {values} ({values.n} of {values.of})"
        )
    for name, count in summary.torn.items():
        if name not in summary.answers:
            yield f"{name}: the orders disagreed in {count} of {summary.voted(name)}"
    for name, ranking in summary.ranked().items():
        yield f"{name}: {ranking}"
    for name in summary.answers:
        yield f"{name}: {summary.answer_words(name)}"
    for name in summary.entries:
        yield f"{name}: {summary.entry_words(name)}"
    if votes := summary.cheap.votes:
        yield f"cheap model: decides {summary.cheap.alone} of {counted(votes, 'check')} alone"
    for name, count in summary.quotes_lost.items():
        shares = f"{count} of {counted(summary.asked(name), 'record')}"
        yield f"{name}: quotes of {shares} are not in the text, and are left out"


_WORDS = {Verdict.FAIL: "failed", Verdict.ABSTAIN: "abstained"}
"""What a summary calls the records of a verdict, if not by the verdict."""


def _named(summary: Summary, verdicts: Iterable[Verdict]) -> Iterator[str]:
    """The first records of each of these verdicts, with their reasons."""
    for verdict in verdicts:
        if examples := summary.named.get(verdict):
            count, shown = summary.verdicts[verdict], len(examples)
            word = _WORDS.get(verdict, verdict)
            yield f"{word}: {count}" + (f", the first {shown}:" if count > shown else "")
            for name, reason in examples:
                yield f"  {shortened(name, 40)}  {shortened(reason, MAX_LENGTH)}"


def _repeated(summary: Summary) -> list[str]:
    """How many records are short of a vote, and the `troubles` that the named records do not tell:
    those of several, or of one not named."""
    named = all(summary.verdicts[verdict] == len(summary.named[verdict]) for verdict in LOST)
    if not (short := summary.short_of_votes):
        return troubles(summary, least=2 if named else 1)
    verb = "abstains" if short == 1 else "abstain"
    text = f"{counted(short, 'record')} {verb} for want of a vote; --resume asks for it"
    return [text, *troubles(summary)]


def troubles(summary: Summary, *, least: int = 1) -> list[str]:
    """For each reason of at least so many records without a verdict, their number, and the first
    message."""
    lines = []
    for kind, count in summary.errors.most_common():
        if count < least:
            break
        example = shortened(summary.examples.get(kind, ""), _MAX_MESSAGE)
        first = ", the first" if kind in summary.varied else ""
        lines.append(f"{count} x {kind}{first}: {example}" if example else f"{count} x {kind}")
    return lines


def _another_model(summary: Summary) -> Iterator[str]:
    """The command by which another model judges the records without a verdict."""
    if lost := ",".join(verdict for verdict in UNDECIDED if summary.lost[verdict]):
        longer = summary.errors[ContextExceeded.kind] > 0
        model = "a model with a longer context" if longer else "another model"
        yield f"to ask {model}: --resume --rejudge {lost} -m MODEL"


def _effort(report: Report, noun: str = "record") -> Iterator[str]:
    """The duration, the calls and replies, their tokens and cost."""

    def total(name: str) -> int:
        return sum(counters[name] for counters in report.traffic.values())

    if not (report.summary.records or total("calls")):
        return
    fresh = report.summary.records - report.summary.resumed
    pace = fresh / report.seconds if report.seconds else 0.0
    rate = f" ({pace:.{2 if pace < 10 else 0}f}/s)" if pace else ""
    resumed = f", {report.summary.resumed} kept" if report.summary.resumed else ""
    replies = counted(total("cache_hits"), "reply", "replies")
    effort = f"{counted(fresh, noun)} in {report.seconds:.1f} s{rate}"
    yield f"{effort}{resumed}, {counted(total('calls'), 'call')}, {replies} reused"
    cost = f", {report.cost:.4f} USD" if report.cost else ""
    if total("input_tokens") or cost:
        yield f"  {total('input_tokens')} tokens read, {total('output_tokens')} written{cost}"
    for spec in report.unpriced:
        yield f"  no price known for {spec}: add [prices] to judge.toml"
