"""From settings to everything a run works with: clients, panels, contexts, fingerprints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, get_args

from judge import __version__
from judge.backends.base import Method
from judge.cache import ReplyCache, cache_dir
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.judge import Judge, Sampling
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.judging.rewriter import Rewriter
from judge.local import store
from judge.profiles import JudgeProfile, Profiles
from judge.rubric import Rubric
from judge.run.calibrated import (
    Errors,
    binding_of,
    errors_of,
    profiled_models,
    profiles_of,
    reading_by,
)
from judge.run.checks import Checks, load_workflow
from judge.run.clients import (
    ClientBuilder,
    build_client,
    records_at_once,
    refuse_unbatched,
    refuse_unfit,
)
from judge.run.lines import Mark, fingerprint
from judge.settings import Settings, StepModel
from judge.workflow import By, Context, Workflow

DEFAULT_MODEL = f"local:{store.DEFAULT}"
"""The judge when no model is named."""


@dataclass(frozen=True, slots=True)
class Bound(Mark):
    """A workflow bound to this run's models, with its context and fingerprint.

    `errors` tells how verdicts err, by check and who gives them, where a profile knows it.
    """

    workflow: Workflow
    context: Context
    errors: Mapping[tuple[str, By], Errors] = field(default_factory=dict)


@dataclass(slots=True)
class Setup:
    """A run's clients, built once and shared, and its workflows, bound when first needed.

    `build` makes a client.
    """

    checks: Checks
    budget: Budget
    cache: ReplyCache | None
    profiles: Profiles = field(default_factory=Profiles)
    build: ClientBuilder = build_client
    clients: dict[str, Client] = field(default_factory=dict)
    _profiled: dict[str, dict[str, JudgeProfile]] = field(default_factory=dict)
    _bound: dict[str, Bound] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: Settings,
        models: Sequence[str] | None = None,
        *,
        budget: Budget | None = None,
        build: ClientBuilder = build_client,
        rubrics: Sequence[Rubric] = (),
    ) -> Self:
        """Build the clients of these models, else of all that the settings name; read the rubrics.

        `budget` is one that others spend from, too; None makes one from the settings. `rubrics` are
        asked besides those that the settings name.

        Raises:
            UsageError: a model, rubric, workflow, check or profile that cannot be used as named.
        """
        profiles = profiles_of(settings)
        settings = profiled_models(settings, profiles)
        asked = settings.ask is not None or settings.rubric or rubrics
        brought = () if asked else profiles.rubrics
        if brought and profiles.judges.keys() <= {rubric.name for rubric in brought}:
            # As with --ask: any record is asked these, and nothing else, with their votes.
            settings = settings.model_copy(update={"workflow": settings.workflow or "record"})
        checks = Checks.of(settings, (*rubrics, *brought))
        budget = budget or Budget(settings.max_calls, settings.max_cost)
        setup = cls(checks, budget, None, profiles, build)
        if settings.cache:
            setup.cache = ReplyCache(cache_dir(settings.cache_dir))
        specs = setup.models if models is None else models
        refuse_unbatched(settings, specs)
        for spec in specs:
            setup.client(spec)
        refuse_unfit(settings, setup.clients.values())
        setup._refuse_other_profile()
        return setup

    @property
    def settings(self) -> Settings:
        return self.checks.settings

    @property
    def judges(self) -> tuple[str, ...]:
        return self.settings.model or (DEFAULT_MODEL,)

    @property
    def final_models(self) -> tuple[str, ...]:
        return self.settings.final_model or self.judges

    @property
    def rewriter(self) -> str:
        return self.settings.rewrite_model or self.judges[0]

    @property
    def models(self) -> tuple[str, ...]:
        """Every model of the run, once, the cheap one of a cascade last."""
        return self._models_of(self.settings.steps)

    def _models_of(self, steps: Iterable[str]) -> tuple[str, ...]:
        """The models that judge, accept and rewrite, these steps' own, and the cheap one."""
        own = (self.settings.steps[name].model for name in steps)
        cheap = self.settings.cheap_model
        named = (*self.judges, *self.final_models, self.rewriter, *own, cheap)
        return tuple(dict.fromkeys(spec for spec in named if spec))

    @property
    def slots(self) -> int:
        """Records worked on at once, by one process or several."""
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
        judge = self._bare(self.checks.judging(check), spec, "loop")
        return reading_by(judge, None, self.settings.margin)

    def panel(self, check: str) -> Panel:
        """The run's judges on one rubric, with their profiles, outside of any workflow.

        Raises:
            UsageError: no judging rubric has this name.
        """
        return self._panel(
            self.checks.judging(check), self.judges, "final", self.settings.votes or 1
        )

    def bound(self, kind: str) -> Bound:
        """The run's workflow, or the one for records of this kind, bound to the run's models."""
        name = self.settings.workflow or kind
        if name not in self._bound:
            self._bound[name] = self._bind(load_workflow(name))
        return self._bound[name]

    def _refuse_other_profile(self) -> None:
        """Refuse a profile of other judges than the run's, before anything is asked or written."""
        if self.profiles.source is None:
            return
        judged, checks = self.profiles.judges.keys(), self.checks
        found = [one for one in checks.workflows() if checks.wanted(one) & judged]
        if not found:
            told = f"{self.profiles.told} speaks of {', '.join(sorted(judged))}"
            raise UsageError(f"{told}; nothing of that is asked here")
        for workflow in found:
            self.bound(workflow.name)

    async def prepare(self) -> None:
        """Reach every model before the first record, as it will be asked.

        Raises:
            BackendError: unreachable, or the key is refused.
            UsageError: no way of asking brought valid JSON, or there are no log-probabilities.
        """
        for spec in self.models:
            method = self._method_of(spec)
            if spec == self.settings.cheap_model:
                await self.client(spec).prove_logprobs(f"--cheap-model {spec}")
            elif method == "structured" or self.settings.repair:
                await self.client(spec).prepare()
            elif method == "logprobs":
                await self.client(spec).prove_logprobs(f"--model {spec}")

    def _method_of(self, spec: str) -> Method:
        known = (one.binding for judges in self.profiles.judges.values() for one in judges)
        learnt = {binding.method for binding in known if binding.model == spec}
        usual = learnt.pop() if len(learnt) == 1 else self.client(spec).backend.method
        return self.settings.method or usual

    async def aclose(self) -> None:
        for client in self.clients.values():
            await client.aclose()
        if self.cache is not None:
            self.cache.close()

    # ------------------------------------------------------------ binding

    def _bind(self, workflow: Workflow) -> Bound:
        wanted, settings = self.checks.wanted(workflow), self.settings
        own = tuple(n for n in self.checks.own if n not in workflow.checks)
        asked = (*(n for n in workflow.checks if n in wanted), *own)
        accepted = (*(n for n in workflow.accepted if n in wanted), *own)
        context = Context(
            loop_panels={n: self._panel_of(n, "loop", workflow) for n in asked},
            final_panels={n: self._panel_of(n, "final", workflow) for n in accepted},
            rewriters={n: self._rewriter(n) for n in workflow.rewrites},
            wanted=wanted,
            additional=own,
            rounds=settings.rounds if settings.repair else 0,
            min_words=settings.min_words,
            neutral=settings.neutral,
            keep_dropped=settings.keep_dropped,
        )
        described = self._described(context)
        specs = {judge.client.spec for panel in context.panels for judge in panel.judges}
        specs.update(self._models_of(described.get("steps", ())))
        identities = {spec: self._identity(spec) for spec in sorted(specs)}
        mark = fingerprint({"workflow": workflow.name, **described}, identities)
        return Bound(workflow.name, described, mark, workflow, context, self._errors(context))

    def _described(self, context: Context) -> dict[str, Any]:
        """Models, rubrics and all settings that can change a verdict: the same for all records."""
        cheap, settings = self.settings.cheap_model, self.settings
        rubrics = [panel.rubric for panel in context.loop_panels.values()]
        rubrics += [rewriter.rubric for rewriter in context.rewriters.values()]
        asked = {*context.loop_panels, *context.final_panels, *context.rewriters}
        declined = sorted({panel.rubric.name for panel in context.panels if panel.declined})
        steps = {n: one.model_dump() for n, one in sorted(settings.steps.items()) if n in asked}
        return {
            "judge": list(self.judges),
            "final": list(self.final_models),
            "rewrite": self.rewriter,
            "cheap": cheap,
            **({"steps": steps} if steps else {}),
            **({"cheap_identity": self._identity(cheap)} if cheap else {}),
            "settings": {
                "version": __version__,
                **settings.deciding(),
                "rounds": context.rounds,
                "votes": max((len(panel.asks) for panel in context.panels), default=0),
                "cheap_margin": settings.cheap_margin if cheap else None,
                "profiles": {
                    check: {spec: found.fingerprint for spec, found in sorted(known.items())}
                    for check, known in sorted(self._profiled.items())
                    if check in context.wanted
                },
                "checks": sorted(context.wanted),
                **({"declined": declined} if declined else {}),
            },
            "rubrics": {rubric.name: rubric.digest for rubric in rubrics},
        }

    def _identity(self, spec: str) -> dict[str, Any]:
        return dict(self.client(spec).backend.identity())

    def _errors(self, context: Context) -> dict[tuple[str, By], Errors]:
        found: dict[tuple[str, By], Errors] = {}
        for by in get_args(By):
            panels = context.loop_panels if by == "loop" else context.final_panels
            for name, panel in panels.items():
                errors = errors_of(panel, self._profiled.get(name, {}), self.profiles)
                if errors is not None and not panel.declined:
                    found[name, by] = errors
        return found

    def _panel_of(self, name: str, by: By, workflow: Workflow) -> Panel:
        """The panel on a rubric in a workflow; the final judge decides where it is asked."""
        votes = workflow.final_votes if by == "final" else 1
        if self.settings.votes is not None and by in workflow.voted:
            votes = self.settings.votes
        own = self.settings.steps.get(name, StepModel())
        specs = self.judges if by == "loop" else self.final_models
        specs = (own.model,) if own.model else specs
        decides = by == "final" or name not in workflow.accepted
        return self._panel(self.checks.rubrics[name], specs, by, votes, decides, own.temperature)

    def _rewriter(self, name: str) -> Rewriter:
        settings, own = self.settings, self.settings.steps.get(name, StepModel())
        warm = settings.rewrite_temperature if own.temperature is None else own.temperature
        client = self.client(own.model or self.rewriter)
        return Rewriter(self.checks.rubrics[name], client, Sampling(warm, settings.seed))

    def _panel(
        self,
        rubric: Rubric,
        specs: Sequence[str],
        by: By,
        votes: int,
        decides: bool = True,
        temperature: float | None = None,
    ) -> Panel:
        settings, warm = self.settings, temperature
        if warm is None:
            warm = settings.vote_temperature if votes > 1 else settings.temperature
        if settings.method in (None, "logprobs"):
            specs = [self.profiles.with_adapter(spec, rubric) for spec in specs]
        bare = (self._bare(rubric, spec, by) for spec in specs)
        judges = tuple(self._reading(j, votes, warm, decides) for j in bare)
        cheap = self._cheap_judge(rubric, by)
        return Panel(
            judges=judges,
            votes=votes,
            all_votes=settings.all_votes,
            sampling=Sampling(warm, settings.seed),
            cheap=cheap,
            injected=settings.injected,
            declined=None if cheap else self._declined(rubric.name, specs),
        )

    def _declined(self, check: str, specs: Sequence[str]) -> str | None:
        """Why judges are not asked for a check; None unless profiles show all of them to guess.

        Only by the profiles that come with the package: who names a profile has read its report.
        """
        known = self._profiled.get(check, {})
        if self.profiles.source is not None or not all(
            spec in known and known[spec].guesses for spec in specs
        ):
            return None
        return f"not asked: {specs[0]} is not shown to be better than a guess at this"

    def _bare(self, rubric: Rubric, spec: str, by: By) -> Judge:
        client = self.client(spec)
        method = self.settings.method or client.backend.method
        return Judge(rubric, client, method, by, per_value=self.settings.per_value)

    def _reading(
        self, judge: Judge, votes: int, temperature: float, decides: bool, *, cheap: bool = False
    ) -> Judge:
        """The judge by the method and with the reader of its profile, if there is one.

        Raises:
            UsageError: the profile is of another judge; or there is none, and a probe is wanted.
        """
        found, settings = None, self.settings
        # The votes of the structured method are counted otherwise while a rewrite loop runs.
        speaks = judge.probabilistic or decides
        if speaks and judge.rubric.name in self.profiles.judges:
            ways = [judge]
            if settings.method is None and judge.rubric.methods.logprobs is not None:
                ways.append(replace(judge, method="probe"))
            found = self.profiles.find(*(binding_of(way, votes, temperature) for way in ways))
        if found is not None:
            judge = replace(judge, method=found.binding.method)
            judge.client.fitted_to(found.answered_by, self.profiles.told)
            self._profiled.setdefault(judge.rubric.name, {})[judge.client.spec] = found
        elif judge.method == "probe" and judge.probabilistic:
            raise UsageError(
                f"--method probe: no profile has a probe for {judge.rubric.name} by "
                f"{judge.client.spec}; judge calibrate LABELS fits one"
            )
        guaranteed = cheap and found and found.guarantee
        margin = settings.cheap_margin if cheap else settings.margin
        return reading_by(judge, found, 0.0 if guaranteed else margin)

    def _cheap_judge(self, rubric: Rubric, by: By) -> Judge | None:
        """The cheap judge of the cascade, if it has anything to decide: with a margin of 0.5, or
        where it is known to guess, it has not."""
        spec, margin = self.settings.cheap_model, self.settings.cheap_margin
        if spec is None or rubric.methods.logprobs is None or margin >= 0.5:
            return None
        judge = Judge(rubric, self.client(spec), "logprobs", by)
        judge = self._reading(judge, 1, 0.0, decides=True, cheap=True)
        return None if self._declined(rubric.name, (spec,)) else judge
