"""From settings to everything a run works with: clients, panels, contexts, fingerprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from judge.backends.base import Reading
from judge.cache import ReplyCache, cache_dir
from judge.errors import UsageError
from judge.judging.capabilities import prove_logprobs
from judge.judging.client import Client
from judge.judging.judge import Judge, Sampling
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.judging.rewriter import Rewriter
from judge.profiles import JudgeProfile, Profiles
from judge.rubric import Rubric, collect
from judge.run.calibrated import (
    Errors,
    bond_of,
    errors_of,
    profiled_models,
    profiles_of,
    reading_by,
    refuse_misfit,
    refuse_thresholds,
)
from judge.run.clients import (
    ClientBuilder,
    build_client,
    records_at_once,
    refuse_unbatched,
    refuse_unfit,
)
from judge.run.fingerprint import digests, fingerprint, parameters
from judge.run.workflows import Checks, load_workflow, workflow_names
from judge.settings import Settings
from judge.weights import catalog
from judge.workflow import By, Context, Workflow

DEFAULT_MODEL = f"local:{catalog.DEFAULT}"
"""The judge when no model is named anywhere."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A workflow bound to this run's models: its context, and what its output lines say of it.

    `errors` tells how verdicts err, by check and who gives them, where a profile knows it.
    """

    workflow: Workflow
    context: Context
    models: Mapping[str, Any]
    fingerprint: str
    errors: Mapping[tuple[str, By], Errors] = field(default_factory=dict)


@dataclass(slots=True)
class Setup:
    """A run's clients, built once and shared, and its workflows, bound when first needed.

    `build` makes a client.
    """

    settings: Settings
    budget: Budget
    cache: ReplyCache | None
    profiles: Profiles = field(default_factory=Profiles)
    build: ClientBuilder = build_client
    clients: dict[str, Client] = field(default_factory=dict)
    _profiled: dict[str, dict[str, JudgeProfile]] = field(default_factory=dict)
    _bound: dict[str, Bound] = field(default_factory=dict)
    _rubrics: dict[str, Rubric] = field(default_factory=dict)
    _added: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        settings: Settings,
        models: Sequence[str] | None = None,
        *,
        budget: Budget | None = None,
        build: ClientBuilder = build_client,
    ) -> Self:
        """Build the clients of these models, else of all that the settings name; read the rubrics.

        `budget` is one that others spend from, too; None makes one from the settings.

        Raises:
            UsageError: a model, rubric, workflow, check or profile that cannot be used as named.
        """
        profiles = profiles_of(settings)
        settings = profiled_models(settings, profiles)
        budget = budget or Budget(settings.max_calls, settings.max_cost)
        rubrics, added = collect(settings.rubric)
        setup = cls(settings, budget, None, profiles, build, _rubrics=rubrics, _added=added)
        setup.checks.refuse_unknown(setup._workflows())
        refuse_thresholds(settings, rubrics)
        if settings.cache:
            setup.cache = ReplyCache(cache_dir(settings.cache_dir))
        asked = setup.models if models is None else models
        refuse_unbatched(settings, asked)
        for spec in asked:
            setup.client(spec)
        refuse_unfit(settings, setup.clients.values())
        setup._check_profile()
        return setup

    @property
    def judges(self) -> tuple[str, ...]:
        return self.settings.model or (DEFAULT_MODEL,)

    @property
    def accepting(self) -> tuple[str, ...]:
        return self.settings.accept_model or self.judges

    @property
    def rewriter(self) -> str:
        return self.settings.rewrite_model or self.judges[0]

    @property
    def strong(self) -> tuple[str, ...]:
        """The models that judge, accept and rewrite, once each."""
        return tuple(dict.fromkeys((*self.judges, *self.accepting, self.rewriter)))

    @property
    def models(self) -> tuple[str, ...]:
        """Every model of the run, once, the cheap one of a cascade last."""
        cheap = (self.settings.cheap_model,) if self.settings.cheap_model else ()
        return tuple(dict.fromkeys((*self.strong, *cheap)))

    @property
    def checks(self) -> Checks:
        """What is asked of records, by what the user chose."""
        added = tuple(name for name in self._added if self._rubrics[name].role == "judge")
        return Checks(self.settings.check, added)

    @property
    def slots(self) -> int:
        """Records worked on at once."""
        return self.own_slots

    @property
    def own_slots(self) -> int:
        """Records that one process works on at once."""
        return records_at_once(self.settings, self.clients.values())

    def client(self, spec: str) -> Client:
        if spec not in self.clients:
            self.clients[spec] = self.build(spec, self.settings, self.cache, self.budget)
        return self.clients[spec]

    def judge(self, check: str, spec: str) -> Judge:
        """One judge alone, without any profile: what calibration looks at.

        Raises:
            UsageError: no judging rubric has this name.
        """
        rubric = self._judging(check)
        client = self.client(spec)
        reading: Reading = self.settings.reading or client.backend.reading
        judge = Judge(rubric, client, reading, "steering", apart=self.settings.apart)
        return reading_by(judge, None, self.settings, self.settings.margin)

    def panel(self, check: str) -> Panel:
        """The run's judges on one rubric, with their profiles, outside of any workflow.

        Raises:
            UsageError: no judging rubric has this name.
        """
        rubric, settings = self._judging(check), self.settings
        votes = settings.votes or 1
        warm = settings.vote_temperature if votes > 1 else settings.temperature
        judges = tuple(
            self._judge(rubric, spec, "accepting", votes, warm, True) for spec in self.judges
        )
        return self._seated(judges, votes, warm, "accepting")

    def _judging(self, check: str) -> Rubric:
        rubric = self._rubrics.get(check)
        if rubric is None or rubric.role != "judge":
            known = ", ".join(name for name, r in self._rubrics.items() if r.role == "judge")
            raise UsageError(f"no rubric is called {check!r}; there are {known}")
        return rubric

    def misfit(self, kind: str) -> str | None:
        """Why none of the chosen checks is asked of records of this kind; None where one is."""
        return self.checks.misfit(load_workflow(self.settings.workflow or kind))

    def bound(self, kind: str) -> Bound:
        """The workflow for records of this kind, bound to this run's models."""
        return self.bound_workflow(self.settings.workflow or kind)

    def bound_workflow(self, name: str) -> Bound:
        """The workflow of this name, bound to this run's models.

        Raises:
            UsageError: there is none.
        """
        if name not in self._bound:
            self._bound[name] = self._bind(load_workflow(name))
        return self._bound[name]

    async def prepare(self) -> None:
        """Reach every model that must be probed, before the first record.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no way of asking brought valid JSON, or the cheap model gives no
                log-probabilities.
        """
        for spec in self.strong:
            if spec in self.clients:
                await self.clients[spec].prepare()
        if (cheap := self.settings.cheap_model) is not None:
            await prove_logprobs(f"--cheap-model {cheap}", self.client(cheap))

    async def prepare_judges(self) -> None:
        """Reach the judges alone, each as it will be asked.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no way of asking brought valid JSON, or there are no log-probabilities.
        """
        for spec in self.judges:
            client = self.client(spec)
            if (self.settings.reading or client.backend.reading) == "probability":
                await prove_logprobs(f"--model {spec}", client)
            else:
                await client.prepare()

    async def aclose(self) -> None:
        for client in self.clients.values():
            await client.aclose()
        if self.cache is not None:
            self.cache.close()

    # ------------------------------------------------------------ binding

    def _bind(self, workflow: Workflow) -> Bound:
        wanted = self.checks.wanted(workflow)
        if (misfit := self.checks.misfit(workflow)) is not None:
            raise UsageError(misfit)
        asked = [name for name in workflow.checks if name in wanted]
        added = tuple(n for n in self._added if n not in workflow.checks and n in wanted)
        context = Context(
            steering={n: self._panel(n, "steering", workflow) for n in (*asked, *added)},
            accepting={
                n: self._panel(n, "accepting", workflow)
                for n in (*(n for n in workflow.accepted if n in wanted), *added)
            },
            rewriters={n: self._rewriter(n) for n in workflow.rewrites},
            wanted=wanted,
            additional=added,
            rounds=self.settings.rounds,
            min_words=self.settings.min_words,
            fail_fast=self.settings.fail_fast,
        )
        cheap = self.settings.cheap_model
        models = {
            "judge": list(self.judges),
            "accept": list(self.accepting),
            "rewrite": self.rewriter,
            "cheap": cheap,
            **({"cheap_identity": self._identity(cheap)} if cheap else {}),
            "settings": parameters(self.settings, context, self._profiled),
            "rubrics": digests(context),
        }
        mark = fingerprint({"workflow": workflow.name, **models}, self._identities())
        return Bound(workflow, context, models, mark, self._errors(context))

    def _errors(self, context: Context) -> dict[tuple[str, By], Errors]:
        panels: dict[By, Mapping[str, Panel]] = {
            "steering": context.steering,
            "accepting": context.accepting,
        }
        found = {
            (name, by): errors_of(panel, self._profiled.get(name, {}), self.profiles)
            for by, known in panels.items()
            for name, panel in known.items()
        }
        return {key: errors for key, errors in found.items() if errors is not None}

    def _panel(self, name: str, by: By, workflow: Workflow) -> Panel:
        settings, rubric = self.settings, self._rubrics[name]
        specs = self.judges if by == "steering" else self.accepting
        votes = workflow.steering_votes if by == "steering" else workflow.accepting_votes
        if settings.votes is not None and by in workflow.voted:
            votes = settings.votes
        warm = settings.vote_temperature if votes > 1 else settings.temperature
        decides = by == "accepting" or name not in workflow.accepted
        judges = tuple(self._judge(rubric, spec, by, votes, warm, decides) for spec in specs)
        panel = self._seated(judges, votes, warm, by)
        return replace(panel, locator=self._locator(rubric, judges[0]))

    def _seated(self, judges: tuple[Judge, ...], votes: int, warm: float, by: By) -> Panel:
        settings = self.settings
        return Panel(
            judges=judges,
            votes=votes,
            rule=settings.rule,
            all_votes=settings.all_votes or votes * len(judges) == 1,
            sampling=Sampling(warm, settings.seed),
            screen=self._screen(judges[0].rubric, by),
            injected=settings.injected,
        )

    def _judge(
        self, rubric: Rubric, spec: str, role: str, votes: int, temperature: float, decides: bool
    ) -> Judge:
        client, settings = self.client(spec), self.settings
        reading: Reading = settings.reading or client.backend.reading
        judge = Judge(rubric, client, reading, role, apart=settings.apart)
        # The votes of a structured reading are counted otherwise while a rewrite loop runs.
        speaks = judge.probabilistic or decides
        found = self._profile(judge, votes, temperature) if speaks else None
        return reading_by(judge, found, settings, settings.margin)

    def _profile(self, judge: Judge, votes: int, temperature: float) -> JudgeProfile | None:
        if judge.rubric.name not in self.profiles.judges:
            return None
        found = self.profiles.find(bond_of(judge, votes, temperature))
        if found is not None:
            refuse_misfit(judge, found, self.profiles)
            self._profiled.setdefault(judge.rubric.name, {})[judge.client.spec] = found
        return found

    def _screen(self, rubric: Rubric, role: str) -> Judge | None:
        """The cheap judge of the cascade; a margin of 0.5 leaves it nothing to decide."""
        settings = self.settings
        spec, margin = settings.cheap_model, settings.cheap_margin
        if spec is None or rubric.readings.probability is None or margin >= 0.5:
            return None
        judge = Judge(rubric, self.client(spec), "probability", role)
        found = self._profile(judge, 1, 0.0)
        if found and found.guarantee and not settings.thresholds.get(rubric.name):
            margin = 0.0
        return reading_by(judge, found, settings, margin)

    def _locator(self, rubric: Rubric, judge: Judge) -> Judge | None:
        """Who finds the words where a reading without evidence (also the cheap one) has failed."""
        wordless = judge.probabilistic or self._screen(rubric, judge.role) is not None
        if not wordless or rubric.reply != "SpeechesFound":
            return None
        return Judge(rubric, judge.client, "structured", "locating")

    def _rewriter(self, name: str) -> Rewriter:
        sampling = Sampling(self.settings.rewrite_temperature, self.settings.seed)
        return Rewriter(self._rubrics[name], self.client(self.rewriter), sampling)

    def _identities(self) -> dict[str, Any]:
        return {spec: self._identity(spec) for spec in sorted(self.models)}

    def _identity(self, spec: str) -> dict[str, Any]:
        return dict(self.client(spec).backend.identity())

    def _workflows(self) -> list[Workflow]:
        """Those that records of this run may go through."""
        chosen = self.settings.workflow
        return [load_workflow(name) for name in ((chosen,) if chosen else workflow_names())]

    def _check_profile(self) -> None:
        """Refuse, before anything is asked or written, a profile of other judges than the run's."""
        if self.profiles.source is None:
            return
        spoken_of = False
        for workflow in self._workflows():
            if self.checks.wanted(workflow) & self.profiles.judges.keys():
                self.bound_workflow(self.settings.workflow or workflow.name)
                spoken_of = True
        if not spoken_of:
            raise UsageError(
                f"{self.profiles.told} speaks of {', '.join(sorted(self.profiles.judges))}; "
                "nothing of that is asked here"
            )
