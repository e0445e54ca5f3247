"""`judge teach`: trains an adapter of a local model on labelled items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from judge.calibration.labels import CalibrationJob, JobLabels, gather, labels_taken
from judge.calibration.observe import key_of, record_for, shown_names
from judge.calibration.split import clustered, split
from judge.errors import UsageError, missing_extra, unwritable
from judge.judging.judge import Judge
from judge.local.adapter import Trainer, TrainingExample
from judge.local.llama import RUBRIC, TAUGHT, LocalBackend
from judge.local.store import BASE, part_of
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.records.labels.matching import other_question
from judge.run.output import refuse_same
from judge.run.panels import Resources
from judge.run.profiles import NO_PROFILE
from judge.settings import Settings

KEPT = 0.3
"""Share of the records kept out of training, so that `judge calibrate` can report on them."""

EPOCHS = 2.0

_KEEP_EVERY = 25
"""Steps after which the unfinished adapter is written to OUT.part, which survives a kill."""

_LIBRARIES = ("accelerate", "gguf", "torch", "transformers")

TeachingProgress = Callable[[str, int, int, str], None]
"""Called with the step's name, how many are done, of how many, and a detail."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """An adapter that was made.

    `model`: the model's name with it. `shown`: the fields shown if the rubric names none.
    `withheld`: fields withheld as people's answers. `items`, `kept`: how many items were used for
    training, and kept out. `problems`: lines that could not be used; `blank`: how many have no
    label. `loss`: the mean at the end, in nats. `no_label`: how many answers are no label. `taken`:
    other checks whose labels were taken as answers to this one. `other_question`: the note that
    people were asked in other words.
    """

    model: str
    check: str
    shown: Sequence[str]
    withheld: Sequence[str]
    items: int
    kept: int
    problems: Sequence[Record]
    loss: float
    no_label: int
    blank: int
    taken: tuple[str, ...]
    other_question: str | None


def teach(
    job: CalibrationJob,
    settings: Settings,
    out: Path,
    *,
    epochs: float = EPOCHS,
    progress: TeachingProgress = lambda *_: None,
) -> Teaching:
    """Teach a local model a check by labels, and write the adapter.

    Args:
        job: its `sources`, `records` and `group` give the labels; a share `KEPT` is left out.
        epochs: passes over the items.
        out: a file whose name ends in .gguf.

    Raises:
        UsageError: a library or the folder is missing, the model is not local, the check cannot be
            taught, or there are no labels for it; see `gather`.
        JudgeError: the file cannot be written (exit code 4).
    """
    if absent := [name for name in _LIBRARIES if find_spec(name) is None]:
        raise missing_extra(f"judge teach needs {', '.join(absent)}", "teach")
    if not out.parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder {out.parent}")
    job = replace(job, checks=settings.check, seed=settings.seed)
    resources = Resources.of(
        settings.model_copy(update={"profile": NO_PROFILE, "check": (), "cache": False})
    )
    judge, items, labels = _labelled(job, resources)
    backend = judge.client.backend
    if not isinstance(backend, LocalBackend) or backend.adapter is not None:
        raise UsageError(f"{judge.client.spec} cannot be taught: name a model as local:NAME")
    refuse_same("-o", out, backend.weights, "the model")
    places, test_places = split(items, [1 - KEPT, KEPT], job.seed)
    lessons = examples(judge, [items[place] for place in places])
    trainer = Trainer(backend.weights, job.seed)
    for number in trainer.read(lessons, judge.rubric.deciding_questions[0].words):
        progress("reading", number, len(lessons), "")
    notes = {
        "judge.check": judge.rubric.name,
        RUBRIC: judge.rubric.digest,
        BASE: backend.identity()["sha256"],
        TAUGHT: " ".join(sorted({lesson.key for lesson in lessons})),
    }
    partly, loss = part_of(out), float("nan")
    try:
        partly.unlink(missing_ok=True)
        for number, steps, loss in trainer.teach(lessons, epochs, job.seed):
            progress("teaching", number, steps, f"loss {loss:.3f}")
            if number % _KEEP_EVERY == 0 or number == steps:
                trainer.write(partly, notes)
        partly.replace(out)
    except OSError as error:
        raise unwritable(f"-o {out}: cannot be written", error) from error
    model = f"{judge.client.spec}+{out}"
    return Teaching(
        model,
        judge.rubric.name,
        shown=shown_names(items, judge.rubric),
        withheld=tuple(dict.fromkeys(name for item in items for name in item.withheld)),
        items=len(lessons),
        kept=len(test_places),
        problems=labels.problems,
        loss=loss,
        no_label=sum(item.left_out for item in items),
        blank=labels.blank,
        taken=labels_taken(items),
        other_question=other_question(items, judge.rubric.question),
    )


def _labelled(
    job: CalibrationJob, resources: Resources
) -> tuple[Judge, list[LabelledItem], JobLabels]:
    """The one check's judge and items, and the job's labels as they were read."""
    if len(resources.models.judges) > 1:
        raise UsageError("judge teach takes one --model")

    if not job.checks and len(resources.rubrics.own) == 1:
        job = replace(job, checks=resources.rubrics.own)
    labels = gather(job, resources.rubrics.asking, resources.settings.columns)
    if len(labels.items) > 1:
        checks = " or ".join(sorted(labels.items))
        raise UsageError(f"one check is taught at a time: --check {checks}")
    ((check, items),) = labels.items.items()
    judge = resources.judge(check, resources.models.judges[0])
    ((items,), _) = clustered([items], judge.rubric)
    return judge, items, labels


def examples(judge: Judge, items: Sequence[LabelledItem]) -> list[TrainingExample]:
    """The prompts and answers to learn, from items with a reference among the rubric's answers.

    Raises:
        UsageError: the rubric's first question does not settle the answer, no item can be used, or
            all have one answer.
    """
    word = answered_with(judge.rubric)
    lessons = []
    for item in items:
        record = record_for(item, judge.rubric)
        answer = word.get(item.reference or "")
        if record.problem is not None or answer is None:
            continue
        prompt = judge.observer.prompt(record, item.number)
        key = key_of(item, judge.rubric)
        lessons.append(TrainingExample(prompt, answer, key, item.record.id))
    if not lessons:
        raise UsageError(f"no label of {judge.rubric.name} can be used for teaching")
    if len({lesson.word for lesson in lessons}) == 1:
        (only,) = {item.reference for item in items if item.reference in word}
        raise UsageError(
            f"{judge.rubric.name}: the answer of all {len(lessons)} items to teach by is {only!r}, "
            "which an adapter would then always give: add labels with other answers"
        )
    return lessons


def answered_with(rubric: Rubric) -> Mapping[str, int]:
    """The number of the first question's word for each answer.

    Raises:
        UsageError: it does not settle every answer, or there is no question for first tokens.
    """
    if not rubric.first_token or rubric.comparing:
        raise UsageError(f"{rubric.name} has no question that one first token answers")
    first = rubric.first_token[0]
    if first.passages or not first.settles:
        raise UsageError(
            f"{rubric.name}: its first question does not settle the answer; teach a rubric whose "
            "one question has all answers"
        )
    return {first.means[word]: number for number, word in enumerate(first.words)}
