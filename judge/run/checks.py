"""Which checks a run makes: the rubrics that are asked, and the workflows that ask them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self

from judge.collection import collect, corrected_normad
from judge.errors import UsageError
from judge.rubric import Rubric, asked_once
from judge.run.workflows import load_workflow, workflow_names
from judge.settings import Settings, flag
from judge.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Checks:
    """A run's settings, and the rubrics that may be asked, by name; the user's own are `added`."""

    settings: Settings
    rubrics: Mapping[str, Rubric]
    added: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, rubrics: Sequence[Rubric] = ()) -> Self:
        """Read the rubrics that the settings name; `rubrics` are asked besides.

        Raises:
            UsageError: a rubric, workflow, check or step that cannot be used as named, or a setting
                without the one that it is about.
        """
        corrected = corrected_normad() if settings.neutral == "corrected" else ()
        known, added = collect((*corrected, *settings.rubric, *rubrics))
        if settings.ask is not None:
            question = asked_once(settings.ask, settings.on, settings.answers, settings.pass_)
            known, added = {**known, question.name: question}, (*added, question.name)
            settings = settings.model_copy(update={"workflow": settings.workflow or "record"})
        elif settings.on:
            raise UsageError("--on names the fields that --ask shows; there is no --ask")
        elif settings.answers or settings.pass_:
            raise UsageError("--answers and --pass are about --ask; there is no --ask")
        checks = cls(settings, known, added)
        checks._refuse_unknown_checks()
        checks._refuse_idle_repair()
        checks._refuse_unknown_steps()
        return checks

    @property
    def own(self) -> tuple[str, ...]:
        """The judging rubrics that every workflow asks besides its checks.

        They are the user's own, and those of --check that none of the run's workflows asks.
        """
        chosen = self.settings.check
        asked = {name for workflow in self.workflows() for name in workflow.checks if chosen}
        names = dict.fromkeys((*self.added, *(name for name in chosen if name not in asked)))
        known = ((name, self.rubrics.get(name)) for name in names)
        return tuple(name for name, rubric in known if rubric and rubric.role == "judge")

    @property
    def scales(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest answer of each rubric whose answers are scores."""
        found = ((name, rubric.scale) for name, rubric in self.rubrics.items())
        return {name: (scale[0], scale[-1]) for name, scale in found if scale}

    def judging(self, name: str) -> Rubric:
        """The judging rubric with this name; raises UsageError: there is none."""
        rubric = self.rubrics.get(name)
        if rubric is None or rubric.role != "judge":
            known = ", ".join(name for name, r in self.rubrics.items() if r.role == "judge")
            raise UsageError(f"no rubric is called {name!r}; there are {known}")
        return rubric

    def wanted(self, workflow: Workflow) -> frozenset[str]:
        """The checks that are made; none where nothing that was chosen suits this workflow."""
        known, chosen = self._known(workflow), self.settings.check
        return frozenset((*(n for n in chosen if n in known), *self.own) if chosen else known)

    def misfit(self, kind: str) -> str | None:
        """Why none of the chosen checks is asked of records of this kind; None where one is."""
        workflow = load_workflow(self.settings.workflow or kind)
        if self.wanted(workflow):
            return None
        if not self.settings.check:
            return f"the {workflow.name} workflow asks your own questions: add --ask or --rubric"
        known, named = ", ".join(self._known(workflow)), ", ".join(self.settings.check)
        told = f"--check {named}: the {workflow.name} workflow has {known}"
        return f"{told}; --workflow record asks it of any record"

    def workflows(self) -> list[Workflow]:
        """Those that records of this run may go through."""
        chosen = self.settings.workflow
        return [load_workflow(name) for name in ((chosen,) if chosen else workflow_names())]

    def _known(self, workflow: Workflow) -> tuple[str, ...]:
        return (*workflow.checks, *workflow.counted, *self.own)

    def _refuse_unknown_checks(self) -> None:
        known = {workflow.name: self._known(workflow) for workflow in self.workflows()}
        names = {name for listed in known.values() for name in listed}
        for check in self.settings.check:
            if check not in names:
                told = f"--check {check}: there is no such check. There are {_listed(known)}"
                raise UsageError(f"{told}. `judge rubrics list` shows more, --rubric adds your own")

    def _refuse_unknown_steps(self) -> None:
        """Every step with a model of its own is one of the run's."""
        known = {w.name: (*w.checks, *w.rewrites, *self.own) for w in self.workflows()}
        names = sorted({name for listed in known.values() for name in listed})
        for step in self.settings.steps:
            if step not in names:
                near = get_close_matches(step, names, 1)
                meant = f"; did you mean {near[0]}?" if near else "."
                where = "[models]" if step in self.settings.models else "--model-for"
                told = f"{where} {step}: there is no such step{meant}"
                raise UsageError(f"{told} There are {_listed(known)}")

    def _refuse_idle_repair(self) -> None:
        """Refuse, as typed, what speaks of repairs without one, and --repair where none can be."""
        settings = self.settings
        for name, does in (("rounds", "bounds"), ("keep_dropped", "speaks of")):
            from_file = any(name in names for names in settings.from_files.values())
            typed = name in settings.model_fields_set and not from_file
            if typed and getattr(settings, name) and not settings.repair:
                raise UsageError(
                    f"{flag(name)} {does} rewriting, and nothing is rewritten: add --repair"
                )
        workflows = self.workflows()
        if settings.repair and not any(workflow.rewrites for workflow in workflows):
            raise UsageError(f"--repair: the {workflows[0].name} workflow rewrites nothing")


def _listed(known: Mapping[str, Sequence[str]]) -> str:
    """`name: this, that; other: ...`, without workflows that have none."""
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in known.items() if names)
