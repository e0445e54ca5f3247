"""A run of a cascade in two stages: the cheap model's readings, then the strong models on the rest.

The cheap stage finishes every record that needs no strong model, and leaves the others open, with
the cheap replies in their lines. The strong stage lets finished lines through and judges the open
ones as a run in one go would, with the cheap replies that they carry. A workflow is deterministic
given its replies, so its lines are those of one go (docs/decisions/0023-stages.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from judge.cache import ReplyCache
from judge.errors import Exit, JudgeError, UsageError
from judge.judging.capabilities import prove_logprobs
from judge.judging.carried import Brought, Recorder, carrying
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.records import RESERVED, Item, Record, SeenIds
from judge.run import lines
from judge.run.absent import AbsentClient, AbsentModel
from judge.run.calibrated import profiled_models, profiles_of
from judge.run.clients import ClientBuilder, build_client, price_of
from judge.run.job import Job, select
from judge.run.lines import FINISHED, Line, made_by
from judge.run.openline import carried, first_line, left_open
from judge.run.resume import refuse_other
from judge.run.running import Report, Watcher, run
from judge.run.setup import DEFAULT_MODEL, Bound, Setup
from judge.run.validate import Validation, new_summary
from judge.run.waiting import StrongModelNeeded, noting, waiting
from judge.settings import Settings
from judge.verdict import OPEN, Verdict

_log = logging.getLogger(__name__)


def refuse_misfit(settings: Settings, *, gated: bool = False, dry_run: bool = False) -> None:
    """See that a stage makes sense with the other settings.

    Args:
        gated: there is a `--fail-under`.
        dry_run: only a plan is wanted.

    Raises:
        UsageError: it does not; says why, and what to do.
    """
    if settings.stage is None:
        return
    named = f"--stage {settings.stage}"
    if dry_run:
        raise UsageError(f"--dry-run plans a run in one go: leave out {named}")
    if profiled_models(settings, profiles_of(settings)).cheap_model is None:
        raise UsageError(f"{named} needs a cascade: name its cheap model with --cheap-model")
    if settings.cheap_margin >= 0.5:
        raise UsageError(f"{named}: a --cheap-margin of 0.5 leaves the cheap model out altogether")
    if settings.engine == "ray":
        raise UsageError(f"{named} does not run on Ray: leave out --engine ray, or the stage")
    if gated and settings.stage == "cheap":
        raise UsageError("--fail-under is for the strong stage: open records pass only there")


def validate_stage(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run one stage of a job to its end, or to where it was stopped.

    Raises:
        UsageError: nothing was judged: an input, output, model or setting that cannot be used, or
            an input that another cheap stage wrote.
    """
    refuse_misfit(settings)
    settings = profiled_models(settings, profiles_of(settings))
    stage = cheap_stage if settings.stage == "cheap" else strong_stage
    with SeenIds() as ids:
        return run(job, stage(settings, ids, select(job)), new_summary(), watcher)


def _unheard(line: Line) -> None:
    """Nobody else is told of the lines."""


# ---------------------------------------------------------------- cheap


def cheap_stage(settings: Settings, ids: SeenIds, items: Iterator[Item]) -> Validation:
    """The work of the cheap stage on these items.

    Raises:
        UsageError: a model, rubric, workflow, check or profile that cannot be used as named.
    """
    setup = Setup.of(settings, build=_known)
    setup.idle = frozenset(setup.strong) - {settings.cheap_model or ""}
    return CheapStage(setup, ids, items, _unheard)


def _known(spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget) -> Client:
    """The client of a model that need not be reached, but has to be known."""
    try:
        return build_client(spec, settings, cache, budget)
    except UsageError as error:
        if spec == settings.cheap_model:
            raise
        raise UsageError(
            f"{error} (--stage cheap asks {spec} nothing, but its lines say which model it is)"
        ) from error


class CheapStage(Validation):
    """Validation that asks the cheap model alone."""

    def __init__(
        self, setup: Setup, ids: SeenIds, items: Iterator[Item], seen: Callable[[Line], None]
    ) -> None:
        super().__init__(setup, ids, items, seen)
        self._waiting: dict[str, Bound] = {}

    async def prepare(self) -> None:
        cheap = self._cheap
        await prove_logprobs(f"--cheap-model {cheap.spec}", cheap)

    async def through_workflow(self, record: Record, bound: Bound) -> Line:
        """The record's line as it is in one go, or left open."""
        recorder = Recorder()
        with carrying(recorder), noting() as asked:
            line: Line | None = None
            try:
                line = await super().through_workflow(record, self._waiting_for(bound))
            except StrongModelNeeded:
                pass
            except JudgeError:
                raise
            except Exception:
                # Somebody's workflow may stumble over an answer that was only assumed; if it is a
                # fault, the strong stage meets it again, and tells it in the record's line.
                if not asked:
                    raise
                _log.debug("record %s is left open", record.id, exc_info=True)
        if line is not None and not asked:
            return line
        return left_open(record, asked, recorder.heard, bound, self._cheap)

    @property
    def _cheap(self) -> Client:
        return self.setup.client(self.setup.settings.cheap_model or "")

    def _waiting_for(self, bound: Bound) -> Bound:
        name = bound.workflow.name
        if name not in self._waiting:
            self._waiting[name] = replace(bound, context=waiting(bound.context))
        return self._waiting[name]


# ---------------------------------------------------------------- strong

_REMEDY = "Use the settings and models of --stage cheap, or make that file anew"


@dataclass(frozen=True, slots=True)
class StagedItem(Item):
    """A line that a cheap stage wrote. `fields` and `line` are the record's as it was read there.

    `place` is where the line stands now, `own` are its own fields, `judgement` is what stands
    behind them.
    """

    place: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)
    judgement: Mapping[str, Any] = field(default_factory=dict)

    @property
    def marked(self) -> bool:
        """Whether it says what it was made with; a line that is no record has nothing to say."""
        return isinstance(self.judgement.get("fingerprint"), str)

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to judge."""
        return not self.marked or self.judgement["verdict"] in FINISHED


def _staged(item: Item) -> Item:
    """The item as one that a cheap stage wrote, if it looks like one."""
    judgement = (item.fields or {}).get(RESERVED)
    if item.fields is None or not isinstance(judgement, dict):
        return item
    verdict, original = judgement.get("verdict"), judgement.get("original") or {}
    unreadable = verdict == Verdict.ERROR and "fingerprint" not in judgement
    marked = isinstance(judgement.get("fingerprint"), str) and isinstance(made_by(judgement), str)
    told = isinstance(verdict, str) and isinstance(original, dict)
    if not (told and (unreadable or marked)):
        return item
    own = {key: value for key, value in item.fields.items() if key != RESERVED}
    line, place = first_line(judgement) or item.line, f"{item.source} line {item.line}"
    read = {**own, **original}
    return StagedItem(item.source, line, read, place=place, own=own, judgement=judgement)


def strong_stage(settings: Settings, ids: SeenIds, items: Iterator[Item]) -> Validation:
    """The work of the strong stage on these items; reads them up to the first that was staged.

    Raises:
        UsageError: as `cheap_stage`; or another cheap stage wrote that item.
        JudgeError: interrupted while it waited for the input.
    """
    try:
        ahead, first = _read_ahead(map(_staged, items))
    except KeyboardInterrupt:
        interrupted = JudgeError("interrupted before the first line of the input was there")
        interrupted.exit_code = Exit.INTERRUPTED
        raise interrupted from None
    if first is not None:
        _refuse_other_cheap(first, settings)
    setup = Setup.of(settings, build=_maybe_absent(first))
    setup.idle = frozenset({settings.cheap_model or ""} - set(setup.strong))
    work = StrongStage(setup, ids, ahead, _unheard)
    if first is not None:
        work.refuse_other(first)
    return work


def _read_ahead(items: Iterator[Item]) -> tuple[Iterator[Item], StagedItem | None]:
    """The items, and the first that says what it was made with, if that comes before any other."""
    seen: list[Item] = []
    for item in items:
        seen.append(item)
        if isinstance(item, StagedItem) and item.marked:
            return chain(seen, items), item
        if not isinstance(item, StagedItem) and item.problem is None:
            break
    return chain(seen, items), None


def _refuse_other_cheap(first: StagedItem, settings: Settings) -> None:
    models = first.judgement.get("models")
    cheap = models.get("cheap") if isinstance(models, dict) else None
    if cheap != settings.cheap_model:
        said = f"with --cheap-model {cheap}" if cheap else "without a --cheap-model"
        raise UsageError(f"{first.place} was made {said}, not {settings.cheap_model}. {_REMEDY}")


def _maybe_absent(first: StagedItem | None) -> ClientBuilder:
    """Builds clients; the cheap model's also where it is not here but the input says what it is."""

    def build(spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget) -> Client:
        try:
            return build_client(spec, settings, cache, budget)
        except UsageError as error:
            if spec != settings.cheap_model or _is_strong(spec, settings):
                raise
            identity = first.judgement["models"].get("cheap_identity") if first else None
            if not isinstance(identity, dict):
                raise UsageError(
                    f"{error}. Nor does the input say what it is: its first record was not written "
                    "by --stage cheap"
                ) from error
            return AbsentClient(
                spec,
                AbsentModel(spec, identity, str(error)),
                cache=cache,
                budget=budget,
                limit=settings.concurrency,
                price=price_of(spec, settings),
            )

    return build


def _is_strong(spec: str, settings: Settings) -> bool:
    judges = settings.model or (DEFAULT_MODEL,)
    return spec in (*judges, *settings.accept_model, settings.rewrite_model)


class StrongStage(Validation):
    """Validation of what a cheap stage wrote: settled lines go through, open ones are judged.

    An item that no cheap stage wrote is judged as in one go.
    """

    async def prepare(self) -> None:
        for spec in self.setup.strong:
            await self.setup.client(spec).prepare()

    def readable(self, item: Item) -> bool:
        if isinstance(item, StagedItem) and item.settled:
            return item.marked
        return super().readable(item)

    async def line(self, item: Item, kept: Callable[[Item], Line | None]) -> Line:
        """The output line for one item.

        Raises:
            BackendError: as `Validation.line`.
            UsageError: another cheap stage wrote it.
        """
        if not isinstance(item, StagedItem):
            return await super().line(item, kept)
        if item.marked:
            self.refuse_other(item)
        if item.settled:
            return replace(lines.written(item.own, item.judgement), kept=True)
        with self._carrying(item):
            return await super().line(item, kept)

    def refuse_other(self, item: StagedItem) -> None:
        """See that this run's models and settings are those of the cheap stage.

        Raises:
            UsageError: they are not; names what differs.
        """
        refuse_other(item.place, item.judgement, self.mark(made_by(item.judgement)), _REMEDY)

    def _carrying(self, item: StagedItem) -> AbstractContextManager[None]:
        if item.judgement["verdict"] != OPEN:
            return nullcontext()
        heard, seeded = carried(item.judgement, item.place)
        backend = self.setup.client(self.setup.settings.cheap_model or "").backend
        if isinstance(backend, AbsentModel):
            backend.seeded = seeded
        return carrying(Brought(heard))
