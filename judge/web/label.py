"""`judge label -o FILE`: a page on which a person answers questions about records."""

from __future__ import annotations

import shlex
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from judge.digest import digest
from judge.errors import UsageError
from judge.questions.rubric import Rubric
from judge.records import RECORD, Record, mapped
from judge.records.base import clip, own_fields, stratum
from judge.records.lines import Line
from judge.report.sheet import Questionnaire, rubrics_asked
from judge.run.description import RunDescriptions
from judge.run.job import Job, drawn_evenly, having
from judge.run.output import input_path, refuse_nameless, refuse_same
from judge.settings import Settings, flag
from judge.web.answers import AnswerFile, Place
from judge.web.page_server import serve
from judge.web.session import PageQuestion, Session

BANDS = (0.1, 0.5, 0.9)
"""Cuts of P(pass) into bands, from which records are drawn evenly."""

_QUESTION = (
    *("ask", "name", "compare", "tie", "on", "answers", "pass_"),
    *("rubric", "check", "map", "id"),
)


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """The result of a page: questions answered, of how many, and the commands to type next, each
    after its purpose; `reasons` and `unread` are those of the `Questionnaire`, `notes` are further
    messages."""

    answered: int
    of: int
    closing: list[tuple[str, str]]
    reasons: Sequence[str] = ()
    notes: Sequence[str] = ()
    unread: int = 0


def label(
    out: Path,
    job: Job,
    settings: Settings,
    *,
    annotator: str,
    ready: Callable[[str], None],
    port: int = 0,
) -> PageOutcome:
    """Ask a person the questions of the settings (`ask`, `rubric`, `check`) about a job's records,
    on a page, and append the answers to `out`, which `judge calibrate` and `agreement` read.

    The seed sets the order of records, the same for every annotator; questions that `annotator` has
    answered are not asked. A sample of judged lines is spread evenly over verdicts and P(pass).

    Args:
        ready: is called with the page's address.
        port: 0 takes a free one.

    Raises:
        UsageError: no question is named, a file cannot be used, or there is nothing to ask about.
    """
    refuse_nameless("-o", out, "")
    if out.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(f"-o {out}: labels are JSON lines: name a .jsonl file")
    for source in job.inputs:
        refuse_same("-o", out, input_path(source), "the input")
    asked = rubrics_asked(job, settings)
    answers = AnswerFile(out, annotator, settings.id)
    questionnaire, units = Questionnaire(asked), []
    judged = _JudgedLines(RunDescriptions.beside(*map(input_path, job.inputs)))
    for item, weight in _drawn(job, [rubric.name for rubric in asked]):
        line = Line.of(item.fields, item.line, item.source)
        record = next(mapped([item], settings.columns)).of_kind(default=RECORD)
        record = replace(record, name=line.name if line else record.called)
        fields = own_fields(record.fields)
        swaps = {rubric.name: _swapped(record, rubric, annotator) for rubric in asked}
        units.append(
            [
                PageQuestion(q, fields, judged.on(q.rubric, line), weight, swaps[q.rubric.name])
                for q in questionnaire.about(record)
            ]
        )
    questionnaire.refuse_unasked(settings.on)
    Random(settings.seed).shuffle(units)
    questions: dict[Place, PageQuestion] = {}
    repeated = 0
    for question in (question for unit in units for question in unit):
        if (first := questions.get(question.place)) is not None:
            repeated += 1
            question = replace(first, weight=_sum(first.weight, question.weight))
        questions[question.place] = question
    for place, question in questions.items():
        answers.refuse_other_text(place.record, question.fields)

    def closing() -> list[tuple[str, str]]:
        command = calibrate_command(shlex.quote(str(out)), settings)
        calibrate = "Compare a judge with these labels:", command
        if sum(map(bool, answers.given.values())) > 1:
            named = ["--id", settings.id] if settings.id else []
            agreement = shlex.join(["judge", "agreement", str(out), *named])
            return [("See how far people agree:", agreement), calibrate]
        again = shlex.join(["judge", "label", *_again(job, settings), "-o", str(out)])
        second = "Have a second person answer the same questions:", f"{again} --annotator NAME"
        return [calibrate, *([] if "-" in job.inputs else [second])]

    session = Session(
        [*questions.values()], answers, "Label records", closing=closing, notes=judged.notes
    )
    serve(session, ready, port)
    notes = [*judged.notes, *questionnaire.notes()]
    if repeated:
        notes.append(f"asked once about records with the same fields; questions saved: {repeated}")
    counts = session.answered, len(questions)
    return PageOutcome(*counts, closing(), questionnaire.reasons, notes, questionnaire.unread)


@dataclass(frozen=True, slots=True)
class _JudgedLines:
    """Which judged lines answer the page's questions, by the descriptions of their runs. `notes`
    name those that answer another question under its name."""

    runs: RunDescriptions
    notes: list[str] = field(default_factory=list)

    def on(self, rubric: Rubric, line: Line | None) -> Line | None:
        """The line, if its judge was asked this question, as far as that is known."""
        words = None if line is None else self.runs.of(line.fingerprint).questions.get(rubric.name)
        if words is None or words.strip() == rubric.question.strip():
            return line
        note = f"{rubric.name}: the judge answered {clip(words)}, and is not compared with people"
        if note not in self.notes:
            self.notes.append(note)
        return None


def _sum(*weights: float | None) -> float | None:
    """The number of records that records with the same fields stand for together."""
    return None if None in weights else sum(filter(None, weights))


def _swapped(record: Record, rubric: Rubric, annotator: str) -> bool:
    """Whether an annotator sees two compared fields in the other order. Each has an order of their
    own: with one for all, a habit of choosing the first would look like agreement."""
    return rubric.comparing and int(digest([record.id, rubric.name, annotator], 1), 16) % 2 == 1


def calibrate_command(labels: str, settings: Settings) -> str:
    """The command that calibrates a judge on the labels (quoted for a shell), with the flags that
    name the questions, and the place of the model unless the settings have one."""
    model = [] if settings.model else ["-m", "PROVIDER:MODEL"]
    words = shlex.join([*question_flags(settings), *model, "-o", "calibrated"])
    return f"judge calibrate {labels} {words}"


def _again(job: Job, settings: Settings) -> list[str]:
    """The inputs, and the flags that ask the same questions about the same records."""
    values = {"format": job.format, "limit": job.limit, "sample": job.sample}
    pairs = [(name, value) for name, value in values.items() if value is not None]
    pairs += [("seed", settings.seed)] if settings.seed else []
    pairs += [("by", field) for field in job.by]
    drawn = [word for name, value in pairs for word in (f"--{name}", str(value))]
    return [*job.inputs, *question_flags(settings), *drawn]


def question_flags(settings: Settings) -> list[str]:
    """The flags that ask the same questions."""
    words = []
    for name in _QUESTION:
        value: Any = getattr(settings, name)
        several = ",".join(value) if name in ("answers", "compare") else value
        if value is True:
            words += [flag(name)]
            continue
        for one in [several] if isinstance(several, str) else several or ():
            words += [flag(name), one] if one else []
    return words


def _drawn(job: Job, checks: Collection[str]) -> Iterable[tuple[Record, float | None]]:
    """The records to ask about, each with the number of records that it stands for if they were
    drawn from several strata, else None."""
    if job.sample is None:
        return [(item, None) for item in job.items()]
    items = having(replace(job, sample=None, limit=None).items(), job.by)
    groups = drawn_evenly(
        items,
        job.sample,
        job.sample_seed,
        lambda item: (_of_judge(item, checks), *stratum(item.fields, job.by)),
    )
    drawn = [
        (place, item, size / len(part) if len(groups) > 1 else None)
        for size, part in groups.values()
        for place, item in part
    ]
    in_order = sorted(drawn, key=lambda one: one[0])
    return islice(((item, weight) for _, item, weight in in_order), job.limit)


def _of_judge(item: Record, checks: Collection[str]) -> tuple[str, int]:
    """The stratum of a record: of a judged line its verdict, and the band of the P(pass) nearest to
    0.5 among these checks; one stratum for all other records."""
    line = Line.of(item.fields)
    if line is None:
        return "", 0
    made = (check for name, check in line.last_checks.items() if name in checks)
    chances = [chance for check in made if (chance := check.get("probability")) is not None]
    nearest = min(chances, key=lambda chance: abs(chance - 0.5), default=None)
    return line.verdict, -1 if nearest is None else bisect(BANDS, nearest)
