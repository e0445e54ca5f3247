"""`judge review`: a page on which a person decides the records that judges left open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.errors import Unavailable, UsageError
from judge.judgement import Judgement
from judge.questions.rubric import Rubric
from judge.records import RECORD, Record, mapped
from judge.records.base import RESERVED
from judge.records.lines import Line, Lines
from judge.report.files import make_table
from judge.report.sheet import questions_about
from judge.run.decisions import Decisions, decide
from judge.run.description import RunDescriptions
from judge.run.job import files_of
from judge.run.output import decisions_file, rank
from judge.run.rubrics import RubricSet
from judge.run.task import FOR_PEOPLE
from judge.settings import Settings
from judge.verdict import PERSON, Check, Verdict, last_of_each
from judge.web.answers import AnswerFile, Place
from judge.web.label import PageOutcome
from judge.web.page_server import serve
from judge.web.session import PageQuestion, Session


def review(
    out: Path,
    settings: Settings,
    *,
    failed: bool = False,
    annotator: str,
    ready: Callable[[str], None],
    port: int = 0,
) -> PageOutcome:
    """Ask a person about the open checks of judged lines, the least certain first, and write the
    answers into the lines, as a person's checks, which decide.

    Each answer is kept at once in `OUT.decisions.jsonl`, and written into OUT at the end, or when
    the next review begins. `judge validate --decisions` reads that file, too.

    Args:
        out: what `judge validate -o` wrote.
        settings: `rubric` or `ask`, if the run's description does not have its questions.
        failed: also ask about records that failed.
        ready: is called with the page's address.

    Raises:
        UsageError: a file, or a rubric of a line, cannot be used.
    """
    files = files_of(out)
    lines, table = files["out"], files["table"]
    if not lines.is_file():
        raise UsageError(f"{lines} does not exist: name what judge validate -o wrote")
    settings, rubric_of = _of_run(lines, settings)
    people = decisions_file(lines)
    answers = AnswerFile(people, annotator)
    notes = [
        f"{people}: {note}; they count all the same: if they should not, remove the file, and "
        "judge again with --overwrite"
        for note in _decide(lines, people, rubric_of, settings)
    ]
    wanted = {*FOR_PEOPLE, *([Verdict.FAIL] if failed else [])}
    open_lines, decided = list[tuple[Line, Judgement]](), 0
    for line, judgement in Lines.read([str(lines)]):
        decided += line.decided
        open_lines += [(line, judgement)] if judgement.verdict in wanted else []
    open_lines.sort(key=lambda pair: rank(pair[0]))
    questions: dict[Place, PageQuestion] = {}
    reasons: list[str] = []
    for line, judgement in open_lines:
        asked, why = _open(line, judgement, wanted, rubric_of, settings)
        questions |= {question.place: question for question in asked}
        reasons += [] if asked or why is None else [why]
    if decided and not questions:
        notes.append(
            f"records that people have decided: {decided}; what is decided is not asked again; "
            "several people answer the same questions on pages that are open at the same time"
        )
    commands = [
        ("See what people decided:", f"judge report {shlex.quote(str(lines))} -o report.html")
    ]
    if not all(question.rubric.rule.counts for question in questions.values()):
        gates = "Gates count these decisions: if the run has one, repeat its command with:"
        commands.append((gates, "--resume"))
    session = Session(
        [*questions.values()], answers, "Review records", False, lambda: commands, notes
    )
    if questions:
        serve(session, ready, port)
        try:
            _decide(lines, people, rubric_of, settings)
        except (UsageError, Unavailable) as error:
            kept = f"the answers are in {people}, and the same command writes them into {lines}"
            raise type(error)(f"{error}; {kept}") from error
    if table is not None:
        make_table(lines, table)
    return PageOutcome(session.answered, len(questions), commands, reasons, notes)


def _of_run(lines: Path, settings: Settings) -> tuple[Settings, Callable[[str], Rubric]]:
    """The settings with the columns of the run that wrote the lines, and its rubrics by name."""
    runs = RunDescriptions.beside(lines)
    if runs.columns and not settings.map:
        columns = tuple(f"{name}={column}" for name, column in runs.columns.items())
        settings = settings.model_copy(update={"map": columns})
    rubrics = RubricSet.of(settings, [*runs.own_rubrics.values()])

    def rubric_of(name: str) -> Rubric:
        if name not in rubrics.by_name:
            raise UsageError(f"{lines}: question {name!r} is not known: add --ask or --rubric")
        return rubrics.judging(name)

    return settings, rubric_of


def _decide(
    lines: Path, people: Path, rubric_of: Callable[[str], Rubric], settings: Settings
) -> Sequence[str]:
    """Write people's answers into the lines; the notes that they were asked another question."""
    if not people.is_file():
        return ()
    decisions = Decisions(people, rubric_of)
    decide(lines, decisions, settings.columns)
    return [*decisions.other_questions()]


def _open(
    line: Line,
    judgement: Judgement,
    wanted: set[Verdict],
    rubric_of: Callable[[str], Rubric],
    settings: Settings,
) -> tuple[list[PageQuestion], str | None]:
    """The questions that the judges' checks of a line leave open (of a check on entries, only the
    open entries); and why one cannot be asked, if so."""
    item = Record(line.source, line.number, dict(line.fields), name=line.name)
    record = next(mapped([item], settings.columns)).of_kind(default=RECORD)
    fields = {**line.fields, RESERVED: dict(line.content)}
    pages: list[PageQuestion] = []
    left_out: str | None = None
    judged = {check.name: check for check in judgement.by_judges}
    for check in last_of_each(judgement.checks):
        by_test = any(vote.method == "test" for vote in check.votes)
        if by_test or check.verdict not in wanted:
            continue
        verdicts: dict[str | None, Verdict] = check.verdicts()
        default: Verdict | None = check.verdict
        if check.by == PERSON:
            verdicts, default = _undecided(check, judged.get(check.name)), None
        questions, lacks = questions_about(record, [rubric_of(check.name)])
        left_out = left_out or lacks.get(check.name)
        for question in questions:
            entry = record.entry(question.rubric.each, question.number)
            if verdicts.get(entry, default) in wanted:
                pages.append(PageQuestion(question, fields, line))
    return pages, left_out


def _undecided(check: Check, judged: Check | None) -> dict[str | None, Verdict]:
    """The verdicts on the entries that no person answered in a person's check: these have the
    evidence of the judges' check, or a verdict alone."""
    of_judges = () if judged is None else judged.supporting_evidence()
    parts = (part for part in check.evidence if part.value is not None)
    return {p.value: p.verdict for p in parts if p.answer is None or p in of_judges}
