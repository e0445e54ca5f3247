"""The rubrics of a run, and its workflows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from judge.configuration import user_file
from judge.errors import UsageError, meant, nearest
from judge.questions.from_flags import rubrics_from_flags, test_from_flag
from judge.questions.keys import TAKEN
from judge.questions.ready_made import builtin, ready, ready_made
from judge.questions.rubric import ASKED, Rubric, load
from judge.run.slices import Slices
from judge.run.summary import Summary
from judge.settings import Settings, flag, option
from judge.workflows import Workflow
from judge.workflows.load import load_workflow, workflow_names

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class RubricSet:
    """The rubrics that a run may ask; `added` names those of the user's own."""

    settings: Settings
    by_name: Mapping[str, Rubric]
    added: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, rubrics: Sequence[Rubric] = ()) -> Self:
        """Read the rubrics that the settings name, and add `rubrics`.

        Raises:
            UsageError: a rubric, workflow, check or step cannot be used as named, or a setting
                lacks the setting that it needs.
        """
        own = settings.questions or settings.rubric or rubrics
        alone = bool(settings.questions) or bool(settings.test and not (own or _asks(settings)))
        question_only = alone and settings.workflow in (None, "record")
        base = () if question_only else settings.package_rubrics
        sources: tuple[str | Rubric, ...] = (*settings.rubric, *rubrics)
        by_name: dict[str, Rubric] = {}
        additional: tuple[str, ...] = ()
        # Reading the built-in rubrics takes a tenth of a second, and a question needs none of them.
        if not question_only or sources or base or settings.check or settings.model_for:
            by_name, additional = collect(sources, base)
        asked: dict[str, Rubric] = {}
        for rubric in _asked(settings):
            if rubric.name in {*asked, *additional} - {own.name for own in base}:
                raise UsageError(f"two rubrics are called {rubric.name}: rename one (--name)")
            asked[rubric.name] = rubric
        if chosen := {*additional}.intersection(settings.check):
            chosen |= {rubric.name for rubric in base}
            additional = tuple(name for name in additional if name in chosen)
        by_name, additional = by_name | asked, (*additional, *asked)
        tests = bool(additional) and all(by_name[name].tested for name in additional)
        if alone or (tests and not _asks(settings)):
            settings = settings.model_copy(update={"workflow": settings.workflow or "record"})
        for name in {*additional} - {rubric.name for rubric in rubrics}:
            origin = "test" if name in asked else "rubric"
            _refuse_unnamed_code(settings, origin, by_name[name])
        rubrics_of_run = cls(settings, by_name, additional)._without_idle_steps()
        rubrics_of_run = rubrics_of_run._without_idle_repair()
        rubrics_of_run._refuse_unknown()
        rubrics_of_run._refuse_idle()
        return rubrics_of_run

    @property
    def own(self) -> tuple[str, ...]:
        """The judging rubrics that every workflow asks besides its checks.

        These are the user's own, and those of --check that no workflow of the run asks.
        """
        checks = self.settings.check
        in_workflows = {name for workflow in self.workflows() for name in workflow.checks if checks}
        names = dict.fromkeys((*self.added, *(name for name in checks if name not in in_workflows)))
        rubrics = [r for name in names if (r := self.by_name.get(name)) and r.role == "judge"]
        # Tests cost nothing, and a failed one that is marked `first` saves all other questions.
        rubrics.sort(key=lambda rubric: (not rubric.first, not rubric.tested))
        return tuple(rubric.name for rubric in rubrics)

    @property
    def model_free(self) -> bool:
        """Whether the run has only tests, which ask no model."""
        graphs = any(workflow.graph for workflow in self.workflows())
        return not graphs and all(self.by_name[name].tested for name in self.checks())

    def summary(self, by: Sequence[str] = ()) -> Summary:
        """A summary of no lines yet, by the values of the fields `by`."""
        workflows = self.workflows()
        alone = workflows if len(workflows) == 1 else ()
        return Summary(
            slices=Slices(by),
            scales=scales_of(self.by_name),
            # Where each check judges only what passed the one before.
            stages=next((workflow.checks for workflow in alone if workflow.successive), ()),
            rankings=rankings_of(self.by_name[name] for name in self.own),
            counting=counting_of(self.by_name),
            pairs=pairs_of(self.by_name),
        )

    def judging(self, name: str) -> Rubric:
        """The judging rubric with this name; raises UsageError if there is none."""
        rubric = self.by_name.get(name)
        if rubric is None or rubric.role != "judge":
            names = [name for name, r in self.by_name.items() if r.role == "judge"]
            hint = f"--rubric {name} asks it" if name in ready_made() else meant(name, names)
            if self.own == (ASKED,):
                hint = f"if it is the question of --ask, add --name {name}"
            raise UsageError(f"no rubric of this run is called {name!r}; {hint}")
        return rubric

    def asking(self, name: str) -> Rubric:
        """As `judging`; raises UsageError also for a test, which asks no question."""
        rubric = self.judging(name)
        if rubric.tested:
            raise UsageError(f"{name} is a test: there is no judge, and no question for people")
        return rubric

    def wanted(self, workflow: Workflow) -> frozenset[str]:
        """The checks of this run in a workflow; empty if it has none of the chosen checks."""
        checks, selection = self._known(workflow), self.settings.check
        return frozenset(
            (*(n for n in selection if n in checks), *self.own) if selection else checks
        )

    def misfit(self, kind: str) -> str | None:
        """Why no chosen check applies to records of this kind; None if one does."""
        workflow = load_workflow(self.settings.workflow or kind)
        if self.wanted(workflow):
            return None
        if not self.settings.check:
            return f"the {workflow.name} workflow asks your own questions: add --ask or --rubric"
        checks, selection = ", ".join(self._known(workflow)), ", ".join(self.settings.check)
        message = f"--check {selection}: the {workflow.name} workflow has {checks}"
        return f"{message}; --workflow record asks it of any record"

    def workflows(self) -> list[Workflow]:
        """The workflows that records of this run may go through."""
        selection = self.settings.workflow
        return [load_workflow(name) for name in ((selection,) if selection else workflow_names())]

    def _known(self, workflow: Workflow) -> tuple[str, ...]:
        return (*workflow.checks, *workflow.counted, *self.own)

    def checks(self) -> set[str]:
        """The checks that records of this run may have."""
        return {name for workflow in self.workflows() for name in self.wanted(workflow)}

    @property
    def counting(self) -> bool:
        """Whether all answers of the run are only counted, and neither pass nor fail."""
        asked = [self.by_name.get(name) for name in self.checks()]
        return bool(asked) and all(rubric and rubric.rule.counts for rubric in asked)

    def _steps(self) -> set[str]:
        """The checks and rewriters that may have a model of their own in this run."""
        steps = (name for w in self.workflows() for name in (*w.checks, *w.rewrites))
        return {*steps, *self.own}

    def _without_idle_steps(self) -> Self:
        """These without what a variable or file, which serve several runs, says about other runs'
        steps; a name that is nearly one of this run's stays, and is refused."""
        models = self.settings.model_for
        if not models or self.settings.typed("model_for"):
            return self
        steps = self._steps()
        by_step = {n: model for n, model in models.items() if n in steps or nearest(n, steps)}
        return replace(self, settings=self.settings.model_copy(update={"model_for": by_step}))

    def _refuse_unknown(self) -> None:
        """Refuse names in --check and --model-for that no workflow of the run has."""
        checks = {name for workflow in self.workflows() for name in self._known(workflow)}
        for name in self.settings.check:
            _refuse_strange(f"--check {name}", "check", name, checks)
        for name in self.settings.model_for:
            _refuse_strange(f"{flag('model_for')} {name}", "step", name, self._steps())

    def _refuse_idle(self) -> None:
        """Refuse typed options that would have no effect."""
        settings = self.settings
        for name in Settings.model_fields:
            needed = option(name).needs
            idle = needed and settings.typed(name) and not getattr(settings, needed)
            value = getattr(settings, name)
            if idle and value is not None and value is not False:
                raise UsageError(f"{flag(name)} needs {flag(needed)}")

    def _without_idle_repair(self) -> Self:
        """These without a variable's or file's `repair` if no workflow rewrites; a typed one is
        refused."""
        settings, workflows = self.settings, self.workflows()
        if not settings.repair or any(workflow.rewrites for workflow in workflows):
            return self
        if settings.typed("repair"):
            raise UsageError(f"--repair: the {workflows[0].name} workflow rewrites nothing")
        return replace(self, settings=settings.model_copy(update={"repair": False}))


def rankings_of(rubrics: Iterable[Rubric]) -> dict[str, dict[str, list[str]]]:
    """The checks of each ranking, by its name, with the two fields that each compares."""
    rankings: dict[str, dict[str, list[str]]] = {}
    for rubric in rubrics:
        if rubric.ranking and rubric.compare:
            rankings.setdefault(rubric.ranking, {})[rubric.name] = [*rubric.compare]
    return rankings


def scales_of(rubrics: Mapping[str, Rubric]) -> dict[str, tuple[float, float]]:
    """The lowest and the highest answer of each rubric whose answers are scores."""
    pairs = ((name, rubric.scale) for name, rubric in rubrics.items())
    return {name: (scale[0], scale[-1]) for name, scale in pairs if scale}


def counting_of(rubrics: Mapping[str, Rubric]) -> frozenset[str]:
    """The rubrics whose answers are only counted, so that none passes or fails."""
    return frozenset(name for name, rubric in rubrics.items() if rubric.rule.counts)


def pairs_of(rubrics: Mapping[str, Rubric]) -> dict[str, Sequence[str]]:
    """The two fields that each rubric compares."""
    return {name: rubric.compare for name, rubric in rubrics.items() if rubric.compare}


def _asks(settings: Settings) -> bool:
    """Whether a run with tests names a check, or a model or profile was typed: either asks one."""
    return bool(settings.typed("model") or settings.check or settings.typed("profile"))


def _refuse_unnamed_code(settings: Settings, setting: str, rubric: Rubric) -> None:
    """Refuse Python code that `setting` names only in a judge.toml beside the data, which the
    data's author may have written."""
    trusted = {str(user_file()), str(settings.config)}
    files = (file for file, names in settings.from_files.items() if setting in names)
    foreign = next((file for file in files if file not in trusted), None)
    if foreign and rubric.python:
        raise UsageError(
            f"{foreign} names {rubric.name}, which runs {rubric.python.path}: if you trust that "
            f"file, name it on the command line ({flag(setting)})"
        )


def _tests(settings: Settings) -> list[Rubric]:
    """The rubrics of `--test`, named after the field and the test, or after the function; a
    repeated name gets a number."""
    rubrics: dict[str, Rubric] = {}
    for text in settings.test:
        rubric = test_from_flag(text)
        name, number = rubric.name, 1
        while name in rubrics:
            name, number = f"{rubric.name}_{number + 1}", number + 1
        rubrics[name] = rubric.model_copy(update={"name": name})
    return [*rubrics.values()]


def _asked(settings: Settings) -> list[Rubric]:
    """The rubrics of the questions and tests on the command line.

    Raises:
        UsageError: a flag does not fit the others.
    """
    questions, names = settings.questions, settings.name
    if not questions:
        if settings.typed("on"):
            raise UsageError("--on needs --ask: it names the fields shown")
        if any(map(settings.typed, ("answers", "pass_", "name"))):
            raise UsageError("--answers, --pass and --name need --ask")
        names = ()
    if settings.typed("tie") and settings.tie and not settings.compare:
        raise UsageError("--tie needs --compare: two fields, such as --compare a,b")
    if len(settings.compare) == 1:
        raise UsageError(f"--compare {settings.compare[0]}: name two fields or more, as in a,b")
    if names and len(names) != len(questions):
        raise UsageError(
            f"--name: {len(names)} for {len(questions)} questions; name each --ask, in its order"
        )
    usual = [f"{ASKED}_{number}" for number in range(1, len(questions) + 1)]
    names = names or ((ASKED,) if len(questions) == 1 else tuple(usual))
    for name in names:
        if why := TAKEN.get(name) or (names.count(name) > 1 and "it is named twice"):
            raise UsageError(f"--name {name}: {why}; choose another name")
    return _tests(settings) + [
        rubric
        for question, name in zip(questions, names, strict=True)
        for rubric in rubrics_from_flags(
            question,
            settings.on,
            settings.answers,
            settings.pass_,
            name=name,
            compare=settings.compare,
            tie=settings.tie and bool(settings.compare),
        )
    ]


def _refuse_strange(flag: str, noun: str, name: str, names: Collection[str]) -> None:
    """Raises UsageError if there is no such check or step; suggests the nearest."""
    if name not in names:
        if name in ready_made():
            raise UsageError(f"{flag}: no {noun} of this run; --rubric {name} asks it")
        near = nearest(name, names)
        hint = f"; did you mean {near}?" if near else "."
        raise UsageError(
            f"{flag}: there is no such {noun}{hint} There are {', '.join(sorted(names))}. "
            "`judge rubrics list` shows more, --rubric adds your own"
        )


# ---------------------------------------------------------------- the sources of rubrics


def collect(
    sources: Sequence[str | Rubric], base: Sequence[Rubric] = ()
) -> tuple[dict[str, Rubric], tuple[str, ...]]:
    """The built-in rubrics with the user's on top, and the added names.

    `sources` are rubrics, built-in names, or paths of rubric files or of folders of them. A rubric
    with the name of a workflow's rubric replaces it; any other is an additional check. `base` are
    rubrics of a workflow's settings, which the user's may replace.

    Raises:
        UsageError: as `load`; a rubric does not fit the one that it replaces; or two sources have a
            rubric of the same name.
    """
    rubrics = {**builtin(), **{rubric.name: rubric for rubric in base}}
    places: dict[str, str] = {}
    for source in sources:
        for place, rubric in [("Python", source)] if isinstance(source, Rubric) else _read(source):
            if rubric.role == "task":
                raise UsageError(f"{place}: {rubric.name}: a judge's rubric needs `pass`")
            if problem := _misfit(rubric, builtin().get(rubric.name)):
                raise UsageError(f"{place}: {rubric.name}: {problem}")
            if rubric.name in places:
                origins = f"one from {places[rubric.name]} and one from {place}"
                raise UsageError(f"two rubrics are called {rubric.name}, {origins}: leave one out")
            places[rubric.name] = place
            rubrics[rubric.name] = rubric
    return rubrics, tuple(dict.fromkeys((*(rubric.name for rubric in base), *places)))


def replacements(sources: Sequence[str]) -> Iterator[str]:
    """One sentence for each built-in rubric that the files of `sources` replace.

    Raises UsageError as `collect`.
    """
    for source in filter(_is_path, sources):
        for place, rubric in _read(source):
            if rubric.name in builtin():
                yield f"{place} replaces the built-in rubric {rubric.name}"


def _misfit(rubric: Rubric, replaced: Rubric | None) -> str | None:
    if replaced is not None and rubric.tested:
        return "a workflow's question has this name, and a test cannot replace it"
    if replaced is None:
        if rubric.role == "rewrite":
            names = ", ".join(name for name, r in builtin().items() if r.role == "rewrite")
            return f"no workflow uses this rewriting rubric; those that can be replaced are {names}"
        return None
    if (rubric.role, rubric.each) != (replaced.role, replaced.each):
        about = f"each of {replaced.each}" if replaced.each else "the record"
        return f"it replaces a built-in rubric with role {replaced.role} about {about}"
    if (rubric.role == "rewrite" or replaced.graded) and rubric.reply != replaced.reply:
        return f"it replaces a built-in rubric whose reply is {replaced.reply}"
    return None


def _is_path(source: str) -> bool:
    """Whether the source is a file or folder, by its form alone: the working directory's content
    never changes what a name means."""
    return os.sep in source or "/" in source or source.endswith(_SUFFIXES)


def _read(source: str) -> list[tuple[str, Rubric]]:
    """The rubrics of a source, each with its file, or its built-in name."""
    path = Path(source)
    if not _is_path(source):
        if rubric := ready(source) or builtin().get(source):
            return [(source, rubric)]
        if path.exists():
            raise UsageError(f"{source}: not a built-in rubric; a file needs a path: ./{source}")
        near = nearest(source, (*ready_made(), *builtin()))
        hint = f"did you mean {near}?" if near else "`judge rubrics list` shows them"
        raise UsageError(f"{source}: neither a path nor a built-in rubric; {hint}")
    files = [path]
    if path.is_dir():
        files = sorted(file for suffix in _SUFFIXES for file in path.glob(f"[!.]*{suffix}"))
        if not files:
            raise UsageError(f"{source}: no .yaml file in this folder")
    return [(str(file), rubric) for file in files for rubric in load(file)]
