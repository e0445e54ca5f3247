"""Sums over the output lines of a run, kept or new."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from judge.errors import RateLimited, Refused, ServerFault, Trouble
from judge.judging.answer_reader import FAR, ORDERS_DISAGREE
from judge.judging.judge import NOTHING_READ, QUOTE_NOT_FOUND
from judge.judging.prompts import LACKS
from judge.records.lines import Line
from judge.run.slices import ScoreSums, Slice, Slices
from judge.run.votes import ByPeople, CheapVotes, PanelVotes, SupportingVotes, count_votes
from judge.verdict import LOST, PERSON, SOUND, UNDECIDED, Usage, Verdict

if TYPE_CHECKING:
    from judge.stats.intervals import Estimate
    from judge.stats.ranking import Ranking

FAILURES_SHOWN = 5
"""How many records of a verdict are named at the end of a run."""

_TRANSIENT = (RateLimited.kind, ServerFault.kind)

_NAMED = (Verdict.FAIL, *UNDECIDED)
"""Verdicts whose first records are named: a person looks at these."""


@dataclass(slots=True)
class Summary(Slice):
    """Counts over the output lines of a run.

    - `slices`: figures by value of the fields of `--by`.
    - `pairs`: the two fields that a check compares; `scales`: its lowest and highest score; both by
      check.
    - `far`: records that abstain because they are unlike a probe's labelled ones; `torn`: because
      the two orders of a comparison disagree; both by check.
    - `unshown`: records that had nothing to show; `bad_lines`: errors that are the input's.
    - `cheap`: the votes of a cascade's cheap judge; `explanations`: those of `--explain-with`.
    - `recalls`: sums of extractions' credits, over records and over values, `recalls_of` how many.
    - `stages`: checks that each judge what passed the one before; `counting`: those whose
      answers neither pass nor fail.
    - `rankings`: the checks of each ranking with their two fields; `compared`: counts of records by
      the answers of these checks.
    - `checked_errors`: how many of the `error_lines` have a check, by check.
    - `quotes_lost`: on how many records a judge's quote is not in the text, by check.
    - `named`: by verdict the first records that do not pass, with their reasons.
    - `examples`: the first message of each kind of error; `varied`: kinds with other messages.
    - `lost`: records without a verdict that another model may give one, by verdict.
    - `transient_errors`: records that are not decided because the server failed; `misread`: because
      no reply could be read, but not for a refusal. Another call can help both.
    - `short_of_votes`: records that abstain for want of a vote that a judge did not give.
    - `votes`: the votes of each check.
    - `people`: records that people decided, by the judges' verdict and the final one.
    """

    slices: Slices = field(default_factory=Slices)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stages: Sequence[str] = ()
    rankings: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    counting: Collection[str] = ()
    pairs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    compared: dict[str, Counter[tuple[str | None, ...]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    records: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    recalls: dict[str, ScoreSums] = field(default_factory=lambda: defaultdict(ScoreSums))
    recalls_of: Counter[str] = field(default_factory=Counter)
    error_lines: int = 0
    checked_errors: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    varied: set[str] = field(default_factory=set)
    edits: int = 0
    dropped: int = 0
    usage: Usage = field(default_factory=Usage)
    far: Counter[str] = field(default_factory=Counter)
    torn: Counter[str] = field(default_factory=Counter)
    unasked: Counter[tuple[str, str]] = field(default_factory=Counter)
    unshown: int = 0
    bad_lines: int = 0
    cheap: CheapVotes = field(default_factory=CheapVotes)
    explanations: SupportingVotes = field(default_factory=SupportingVotes)
    resumed: int = 0
    quotes_lost: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    lost: Counter[str] = field(default_factory=Counter)
    transient_errors: int = 0
    misread: int = 0
    short_of_votes: int = 0
    votes: dict[str, PanelVotes] = field(default_factory=lambda: defaultdict(PanelVotes))
    people: ByPeople = field(default_factory=ByPeople)

    def add(self, line: Line) -> None:
        """Count one line; keep name and reason of the first of each verdict that do not pass."""
        self.records += 1
        self.resumed += line.kept
        verdict = line.verdict
        self.verdicts[verdict] += 1
        self.count(line)
        if self.slices.by:
            self.slices.add(line)
        cause = _cause(line)
        if cause is not None:
            self._count_cause(line, *cause)
        if verdict in _NAMED and len(self.named[verdict]) < FAILURES_SHOWN:
            self.named[verdict].append((line.name, line.reason or ": ".join(cause or ())))
        if line.decided:
            self.people.add(line)
        count_votes(self.votes, line)
        self.edits += line.edits
        self.dropped += line.dropped
        last = line.last_checks
        if line.error:
            self.error_lines += 1
            self.checked_errors.update(last.keys())
        for name, pairs in self.rankings.items():
            if any(check in last for check in pairs):
                answers = (last.get(check, {}).get("answer") for check in pairs)
                self.compared[name][tuple(answers)] += 1
        for name, check in last.items():
            self._count_check(name, check)
        if extraction := line.content.get("extraction"):
            self._add_recall("records", [extraction.get("recall")])
            self._add_recall("values", extraction["credits"])
        unshown = [(c.get("reason") or "").startswith(LACKS) for c in last.values()]
        self.unshown += verdict == Verdict.ABSTAIN and bool(unshown) and all(unshown)
        self.usage += line.usage

    def _count_cause(self, line: Line, kind: str, message: str) -> None:
        """Count why a record is not decided: its own error, or else its first lost vote's."""
        self.errors[kind] += 1
        self.lost[line.verdict] += line.asked and kind != "test"
        self.short_of_votes += line.verdict == Verdict.ABSTAIN
        self.bad_lines += line.verdict == Verdict.ERROR and _of_input(line)
        self.transient_errors += kind in _TRANSIENT
        unread = line.verdict == Verdict.UNREADABLE or kind in (*get_args(Trouble), NOTHING_READ)
        self.misread += unread and kind != Refused.kind
        if self.examples.setdefault(kind, message) != message:
            self.varied.add(kind)

    def _count_check(self, name: str, check: Mapping[str, Any]) -> None:
        """Count the last check of this name on a record."""
        votes = check.get("votes") or ()
        reasons = {vote.get("reason") for vote in votes if vote.get("part") != "cheap"}
        counters = {QUOTE_NOT_FOUND: self.quotes_lost}
        if check["verdict"] == Verdict.ABSTAIN:
            counters |= {FAR: self.far, ORDERS_DISAGREE: self.torn}
        for reason in counters.keys() & reasons:
            counters[reason][name] += 1
        if votes and votes[0].get("part") == "cheap":
            self.cheap.add(votes[0])
            self.cheap.alone += all("part" in vote for vote in votes)
        if votes and votes[-1].get("part") == "explanation":
            self.explanations.add(votes[-1])
        if not votes and check["verdict"] == Verdict.ABSTAIN and check.get("by") != PERSON:
            self.unasked[name, check.get("reason") or ""] += 1

    def idle_models(self) -> Iterator[str]:
        """A message for each model beside the judges that never answered."""
        messages = (
            self.cheap.idle("cheap model", "the other judges were asked instead"),
            self.explanations.idle("--explain-with", "what fails has no reason from it"),
        )
        yield from filter(None, messages)

    @property
    def panels(self) -> dict[str, PanelVotes]:
        """The votes of the checks that asked several judges, by name."""
        return {name: votes for name, votes in sorted(self.votes.items()) if votes.by_several}

    def abstentions(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield check, reason, how many records abstain for it, and how many were checked, for
        records that no judge was asked about and for those unlike the labelled ones."""
        far = {(name, FAR): count for name, count in self.far.items()}
        for (name, reason), count in (*self.unasked.items(), *far.items()):
            yield name, reason, count, self.asked(name)

    def voted(self, name: str) -> int:
        """On how many records a check has an answer, or one that abstains, not only lost votes."""
        lost = sum(self.checks[name][verdict] for verdict in LOST)
        unasked = sum(n for (of, _), n in self.unasked.items() if of == name)
        return self.asked(name) - unasked - lost

    def unread(self, name: str) -> int:
        """How many error lines lack this check, so that its verdict is unknown."""
        return self.error_lines - self.checked_errors[name]

    def counts_of(self, name: str) -> Counter[str]:
        """The verdicts of a check; error lines that lack it are errors of it."""
        return Counter(self.checks.get(name)) + Counter[str]({Verdict.ERROR: self.unread(name)})

    @property
    def rows(self) -> dict[str, Counter[str]]:
        """The verdicts of each check, by name, as every table and gate counts them."""
        return {name: self.counts_of(name) for name in sorted(self.checks)}

    def mean_score(self, name: str) -> Estimate:
        """The mean score of a check over the records on which it is decided."""
        return self.mean(name, self.scales.get(name))

    def mean_words(self, name: str) -> str:
        """`mean_score` in words."""
        mean = self.mean_score(name)
        between = "" if mean.low is None else f", 95% interval {mean.low:.2f} to {mean.high:.2f}"
        return f"mean score {mean.value:.2f}{between} ({mean.n} of {mean.of} scored)"

    def answer_words(self, name: str) -> str:
        """How often each answer was given to a check; of a comparison that is in no ranking also
        how often the better field won, without ties."""
        counts, entries = self.answers[name], self.entries.get(name)
        text = ", ".join(f"{count} {answer}" for answer, count in sorted(counts.items()))
        of = f"{entries.total()} entries" if entries else str(self.asked(name))
        words = f"{text} ({counts.total()} of {of} answered)"
        fields = sorted(self.pairs.get(name, ()), key=lambda field: -counts[field])
        ranked = any(name in pairs for pairs in self.rankings.values())
        if (won := sum(counts[field] for field in fields)) and not ranked:
            from judge.stats.intervals import percent, wilson

            wins = wilson(counts[fields[0]], won)
            low, high = (percent(end or 0.0) for end in (wins.low, wins.high))
            share = f"{percent(wins.value or 0.0)} of {won}, 95% interval {low} to {high}"
            words += f"; {fields[0]} wins {share}"
        return words + (f"; the orders disagreed in {self.torn[name]}" if self.torn[name] else "")

    def entry_words(self, name: str) -> str:
        """How many entries have each verdict of a check."""
        counts, of = self.entries[name], self.entries[name].total()
        text = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        return f"of {of} {'entry' if of == 1 else 'entries'}: {text}"

    def ranked(self) -> dict[str, Ranking]:
        """The rankings that follow from the comparisons, by name."""
        from judge.stats.ranking import ranking

        rankings: dict[str, Ranking] = {}
        for name, records in self.compared.items():
            pairs = self.rankings[name]
            fields = [*dict.fromkeys(field for pair in pairs.values() for field in pair)]
            numbers = [tuple(map(fields.index, pair)) for pair in pairs.values()]
            decided: Counter[tuple[tuple[int, int, float], ...]] = Counter()
            for answers, count in records.items():
                compared = (
                    (i, j, {fields[i]: 1.0, fields[j]: 0.0}.get(answer, 0.5))
                    for (i, j), answer in zip(numbers, answers, strict=True)
                    if answer is not None
                )
                decided[tuple(compared)] += count
            made = sum(len(compared) * count for compared, count in decided.items())
            undecided = sum(map(self.voted, pairs)) - made
            disagreed = sum(self.torn[check] for check in pairs)
            rankings[name] = ranking(fields, decided, undecided=undecided, disagreed=disagreed)
        return rankings

    def _add_recall(self, name: str, credits: Sequence[float | None]) -> None:
        self.recalls_of[name] += len(credits)
        for credit in credits:
            if credit is not None:
                self.recalls[name].add(credit)

    def mean_recalls(self) -> dict[str, Estimate]:
        """The mean recall of extractions over `records`, with its interval, and the mean credit
        over `values`, without one, since values of the same record are dependent. Empty if no
        record is an extraction."""
        from judge.stats.intervals import Estimate

        estimates: dict[str, Estimate] = {}
        for name, of in self.recalls_of.items():
            mean = self.recalls[name].mean(of, (0.0, 1.0))
            alone = Estimate(mean.value, n=mean.n, of=mean.of)
            estimates[name] = mean if name == "records" else alone
        return estimates

    @property
    def decided(self) -> int:
        """Records that pass or fail."""
        return self.verdicts[Verdict.PASS] + self.verdicts[Verdict.FAIL]

    @property
    def incomplete(self) -> int:
        """Records without a verdict or short of a vote; all if none had anything to show."""
        lost = sum(self.verdicts[verdict] for verdict in LOST) + self.short_of_votes
        return self.records if self.unshown == self.records else lost

    @property
    def pass_rate(self) -> float | None:
        """Share of all records that pass before repair (see `_rate`)."""
        return self._rate(self.before_repair)

    @property
    def repaired_rate(self) -> float | None:
        """Share of all records that pass after repair (see `_rate`)."""
        return self._rate(self.verdicts)

    def _rate(self, counts: Counter[str]) -> float | None:
        """None without records, and where answers are counted, so that nothing passes or fails."""
        only_counted = self.counting and all(name in self.counting for name in self.checks)
        defined = self.decided or not (only_counted or self.verdicts[Verdict.ANSWERED])
        return counts[Verdict.PASS] / self.records if self.records and defined else None

    def __str__(self) -> str:
        counts = [f"{self.verdicts[name]} {name}" for name in Verdict if self.verdicts[name]]
        lines = [f"{self.records} record{'s' * (self.records != 1)}: {', '.join(counts) or 'none'}"]
        lines += [f"{name}: {self.mean_words(name)}" for name in self.scores]
        lines += [f"{name}: {self.answer_words(name)}" for name in self.answers]
        return "\n".join(lines)

    @property
    def funnel(self) -> list[tuple[str, int, int]]:
        """Each stage with how many records reached it, and how many it let through."""
        counts = [(name, self.checks[name]) for name in self.stages if name in self.checks]
        return [(name, of.total(), sum(of[verdict] for verdict in SOUND)) for name, of in counts]

    def as_json(self) -> dict[str, Any]:
        rates = (self.pass_rate, self.before_repair), (self.repaired_rate, self.verdicts)
        came, repaired = (
            {"value": rate and round(rate, 6), "passed": counts[Verdict.PASS], "of": self.records}
            for rate, counts in rates
        )
        scores, head = {name: self.mean_score(name) for name in self.scores}, self.slices.head
        slices = self.slices.largest(all_values=True)
        answers = {n: _counted(part.answers.items()) for n, part in slices if part.answers}
        means = {
            n: _plain({name: part.mean(name, self.scales.get(name)) for name in part.scores})
            for n, part in slices
            if part.scores
        }
        stages = [{"stage": name, "in": of, "out": through} for name, of, through in self.funnel]
        return {
            "records": self.records,
            "resumed": self.resumed,
            "verdicts": {str(v): self.verdicts[v] for v in Verdict if self.verdicts[v]},
            "pass_rate": came,
            "repaired_pass_rate": repaired,
            "edits": self.edits,
            "dropped": self.dropped,
            **({"by_people": self.people.as_json()} if self.people else {}),
            "checks": _counted(self.rows.items()),
            **({"funnel": {"stages": stages}} if self.stages else {}),
            **(
                {"by": {head: _counted((n, part.before_repair) for n, part in slices)}}
                if head
                else {}
            ),
            **({"answers_by": {head: answers}} if answers else {}),
            **({"scores_by": {head: means}} if means else {}),
            **({"scores": _plain(scores)} if scores else {}),
            **({"recall": _plain(self.mean_recalls())} if self.recalls_of else {}),
            **({"answers": _counted(self.answers.items())} if self.answers else {}),
            **({"entries": _counted(self.entries.items())} if self.entries else {}),
            **({"quotes_not_found": dict(self.quotes_lost)} if self.quotes_lost else {}),
            **({"rankings": _plain(self.ranked())} if self.compared else {}),
            **({"cascade": self.cheap.as_json()} if self.cheap.votes else {}),
            **({"orders_disagreed": dict(self.torn)} if self.torn else {}),
            **({"panels": {n: p.as_json() for n, p in self.panels.items()}} if self.panels else {}),
            **({"short_of_votes": self.short_of_votes} if self.short_of_votes else {}),
            "errors": dict(self.errors),
            "usage": self.usage.as_json(),
        }


def _counted(pairs: Iterable[tuple[str, Counter[str]]]) -> dict[str, dict[str, int]]:
    """Counts by name as plain data: verdicts are text."""
    return {name: {str(key): n for key, n in counts.items()} for name, counts in pairs}


def _plain(figures: Mapping[str, Any]) -> dict[str, Any]:
    from judge.stats.intervals import plain

    return {name: plain(figure) for name, figure in figures.items()}


def _lost(vote: Mapping[str, Any]) -> bool:
    return any(part["verdict"] in LOST for part in (vote, *(vote.get("evidence") or ())))


def _of_input(line: Line) -> bool:
    """Whether the input is at fault for a line's error (no model was asked): its line is named."""
    return not line.asked and "line" in (line.error or {})


def _cause(line: Line) -> tuple[str, str] | None:
    """(kind, message) of why a record has no verdict, or abstains for want of a vote; else None."""
    if error := line.error:
        if not _of_input(line):
            return error["type"], error["message"]
        file = f" of {error['file']}" if error.get("file") else ""
        return error["type"], f"line {error['line']}{file}: {error['message']}"
    if line.verdict not in LOST and not line.lacks_votes:
        return None
    checks = [check for check in line.checks if check["verdict"] == line.verdict]
    votes = (vote for check in checks for vote in check.get("votes", ()))
    reason = next((v["reason"] for v in votes if _lost(v) and v.get("reason")), None)
    if reason is None:
        # A benchmark's line, which has no votes of its own.
        return line.verdict, line.reason
    kind, _, message = reason.partition(": ")
    return kind, message
