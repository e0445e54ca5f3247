"""The panels of a run: rubrics with the clients that answer them, and calibration profiles."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, get_args

from judge.backends.base import Method
from judge.errors import UsageError, writes_nothing
from judge.judging.judge import Judge, Sampling
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.model_tables import StepModel
from judge.profile import JudgeProfile
from judge.questions.rubric import Rubric
from judge.run.models import ClientBuilder, Models
from judge.run.profiles import Profiles, Questions, profile_key, questions_of, with_profile
from judge.run.rubrics import RubricSet, rankings_of
from judge.run.task import RunInfo, fingerprint
from judge.settings import Settings
from judge.version import __version__
from judge.workflows import By, Context, Workflow
from judge.workflows.load import load_workflow

if TYPE_CHECKING:
    from judge.judging.rewriter import Rewriter
    from judge.run.corrected import Errors

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BoundWorkflow(RunInfo):
    """A workflow bound to this run's models, with its context and fingerprint.

    `errors` has the error rates that profiles know, by check and who makes it; `own` names the
    rubrics that the user added.
    """

    workflow: Workflow
    context: Context
    errors: Mapping[tuple[str, By], Errors] = field(default_factory=dict)
    own: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """The description beside OUT, with each question in words and the user's own rubrics in
        full. The fingerprint has only their digests."""
        rubrics = [panel.rubric for panel in self.context.panels]
        rubrics += [rewriter.rubric for rewriter in self.context.rewriters.values()]
        questions = {rubric.name: rubric.question.strip() or rubric.title for rubric in rubrics}
        own = {r.name: r.keys for r in rubrics if r.name in self.own and not r.tested}
        rankings = rankings_of(rubrics)
        described = {"workflow": self.name, **self.models, "questions": questions}
        described["identities"] = self.identities
        described |= {"own_rubrics": own} if own else {}
        if self.errors:
            from judge.run.corrected import described_errors

            described["error_rates"] = described_errors(self.errors)
        return described | ({"rankings": rankings} if rankings else {})


@dataclass(slots=True)
class Resources:
    """What a run uses: its rubrics, its models, the profiles of its judges, and its workflows, each
    bound on first use."""

    rubrics: RubricSet
    models: Models
    profiles: Profiles = field(default_factory=Profiles)
    _in_force: dict[str, dict[str, JudgeProfile]] = field(default_factory=dict)
    _foreign: set[tuple[str, str]] = field(default_factory=set)
    _bound: dict[str, BoundWorkflow] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: Settings,
        models: Sequence[str] | None = None,
        *,
        budget: Budget | None = None,
        build: ClientBuilder | None = None,
        rubrics: Sequence[Rubric] = (),
    ) -> Self:
        """Read the rubrics; build the clients of `models`, else of all that the settings name.

        Args:
            budget: a budget shared with others; None makes one from the settings.
            build: makes a client.
            rubrics: asked besides those that the settings name.

        Raises:
            UsageError: as `questions_of`; or a model cannot be used as named.
        """
        questions = questions_of(settings, rubrics, models or ())
        return cls.answering(questions, models, budget=budget, build=build)

    @classmethod
    def answering(
        cls,
        questions: Questions,
        models: Sequence[str] | None = None,
        *,
        budget: Budget | None = None,
        build: ClientBuilder | None = None,
    ) -> Self:
        """As `of`, for what `questions_of` returned.

        Raises:
            UsageError: a model cannot be used as named.
        """
        rubric_set, profiles = questions
        idle = models is None and rubric_set.model_free
        clients = Models.of(rubric_set.settings, models, budget=budget, build=build, idle=idle)
        resources = cls(rubric_set, clients, profiles)
        resources._refuse_other_profile()
        return resources

    @property
    def settings(self) -> Settings:
        return self.rubrics.settings

    def judge(self, check: str, spec: str) -> Judge:
        """One judge alone, without any profile, for calibration.

        Raises:
            UsageError: no judging rubric has this name.
        """
        judge = self._bare(self.rubrics.asking(check), spec, "loop")
        return with_profile(judge, None, self.settings.abstain_margin)

    def panel(self, check: str) -> Panel:
        """The run's judges on one rubric, with their profiles, outside any workflow.

        Raises:
            UsageError: no judging rubric has this name.
        """
        rubric, votes = self.rubrics.asking(check), self.settings.votes or 1
        return self._panel(rubric, self.models.judges, "final", votes)

    def bound(self, kind: str) -> BoundWorkflow:
        """The run's workflow, or the one for records of this kind, bound to the run's models."""
        name = self.rubrics.settings.workflow or kind
        if name not in self._bound:
            self._bound[name] = self.bind(load_workflow(name))
        return self._bound[name]

    def _refuse_other_profile(self) -> None:
        """Refuse a profile of judges other than the run's, before anything is asked or written."""
        if self.profiles.source is None:
            return
        checks = self.profiles.judges.keys()
        workflows = [w for w in self.rubrics.workflows() if self.rubrics.wanted(w) & checks]
        if not workflows:
            message = f"{self.profiles.told} is for {', '.join(sorted(checks))}"
            raise UsageError(f"{message}; this run asks none of them")
        # Each workflow asks a user's rubric with its own number of votes; the profile need fit one.
        faults: list[UsageError] = []
        for workflow in workflows:
            try:
                self.bound(workflow.name)
            except UsageError as error:
                faults.append(error)
        if len(faults) == len(workflows):
            raise faults[0]

    async def prepare(self) -> None:
        """Reach every model before the first record, by the method that it will be asked by.

        Raises:
            BackendError: a model is unreachable, or refuses the key.
            UsageError: no way of asking a model gives valid JSON, or it has no log-probabilities.
        """
        await self.models.prepare(self._method_of)

    def _method_of(self, spec: str) -> Method:
        bindings = (
            profile.binding for judges in self.profiles.judges.values() for profile in judges
        )
        identity = self.models.identity(spec)
        methods = {binding.method for binding in bindings if binding.is_of(spec, identity)}
        usual = methods.pop() if len(methods) == 1 else self.models.client(spec).backend.method
        return self.settings.method or usual

    # ------------------------------------------------------------ binding

    def bind(self, workflow: Workflow) -> BoundWorkflow:
        """A workflow bound to the run's models; UsageError if one of its rubrics is missing."""
        checks, settings = self.rubrics.wanted(workflow), self.settings
        for name in (*(n for n in workflow.checks if n in checks), *workflow.rewrites):
            if name not in self.rubrics.by_name:
                message = f"no rubric is called {name}, which the workflow {workflow.name} needs"
                raise UsageError(f"{message}: name its file with --rubric")
        additional = tuple(n for n in self.rubrics.own if n not in workflow.checks)
        names = (*(n for n in workflow.checks if n in checks), *additional)
        accepted = (*(n for n in workflow.accepted if n in checks), *additional)
        loop = {n: self._panel_of(n, "loop", workflow) for n in names}
        final = {n: self._panel_of(n, "final", workflow) for n in accepted}
        final |= {n: _drawn_after(final[n], loop[n]) for n in workflow.accepted if n in final}
        context = Context(
            loop_panels=loop,
            final_panels=final,
            rewriters={n: self._rewriter(n) for n in workflow.rewrites},
            selected=checks,
            additional=additional,
            own=names if workflow.own else additional,
            rounds=settings.rounds if settings.repair else 0,
            settings=settings,
        )
        described = self._described(context)
        specs = {judge.client.spec for panel in context.panels for judge in panel.judges}
        specs.update(self.models.of_steps(described.get("steps", ())))
        specs.update(filter(None, [self.models.rewriter]))
        specs.update(judge.client.spec for panel in context.panels if (judge := panel.explainer))
        identities = {spec: self.models.identity(spec) for spec in sorted(specs)}
        mark = fingerprint({"workflow": workflow.name, **described}, identities)
        errors, own = self._errors(context), self.rubrics.added
        return BoundWorkflow(
            workflow.name, described, mark, identities, workflow, context, errors, own
        )

    def _described(self, context: Context) -> dict[str, Any]:
        """Models, rubrics and all settings that can change a verdict: the same for all records."""
        cheap, settings = self.settings.cheap_model, self.settings
        rubrics = [panel.rubric for panel in context.loop_panels.values()]
        rubrics += [rewriter.rubric for rewriter in context.rewriters.values()]
        names = {*context.loop_panels, *context.final_panels, *context.rewriters}
        declined = sorted({panel.rubric.name for panel in context.panels if panel.declined})
        steps = {
            n: step.model_dump() for n, step in sorted(settings.model_for.items()) if n in names
        }
        return {
            "judge": list(self.models.judges),
            "final": list(self.models.final),
            "rewrite": self.models.rewriter,
            "cheap": cheap,
            **({"explain": settings.explain_with} if settings.explain_with else {}),
            **({"steps": steps} if steps else {}),
            **({"cheap_identity": self.models.identity(cheap)} if cheap else {}),
            "settings": {
                "version": __version__,
                **settings.deciding(),
                "rounds": context.rounds,
                "votes": max((len(panel.asks) for panel in context.panels), default=0),
                "cheap_margin": settings.cheap_margin if cheap else None,
                "profiles": {
                    check: {spec: profile.fingerprint for spec, profile in sorted(profiles.items())}
                    for check, profiles in sorted(self._in_force.items())
                    if check in context.selected
                },
                "checks": sorted(context.selected),
                **({"declined": declined} if declined else {}),
            },
            "rubrics": {rubric.name: rubric.digest for rubric in rubrics},
        }

    def _errors(self, context: Context) -> dict[tuple[str, By], Errors]:
        if not self._in_force:
            return {}
        from judge.run.corrected import error_rates

        rates: dict[tuple[str, By], Errors] = {}
        for by in get_args(By):
            panels = context.loop_panels if by == "loop" else context.final_panels
            for name, panel in panels.items():
                if panel.rubric.rule.counts or panel.rubric.tested:
                    continue
                errors = error_rates(panel, self._in_force.get(name, {}), self.profiles)
                if errors is not None and not panel.declined:
                    rates[name, by] = errors
        return rates

    def _panel_of(self, name: str, by: By, workflow: Workflow) -> Panel:
        """The panel on a rubric in a workflow; where the final judge is asked, it decides."""
        votes = workflow.final_votes if by == "final" else 1
        if self.settings.votes is not None and by in workflow.voted:
            votes = self.settings.votes
        step = self.settings.model_for.get(name, StepModel())
        specs = self.models.judges if by == "loop" else self.models.final
        specs = (step.model,) if step.model else specs
        decides = by == "final" or name not in workflow.accepted
        return self._panel(self.rubrics.by_name[name], specs, by, votes, decides, step.temperature)

    def _rewriter(self, name: str) -> Rewriter:
        from judge.judging.rewriter import Rewriter

        settings, step = self.settings, self.settings.model_for.get(name, StepModel())
        warm = settings.rewrite_temperature if step.temperature is None else step.temperature
        client = self.models.client(step.model or self.models.rewriter)
        if client.decides and settings.repair:
            raise UsageError(f"--repair: {writes_nothing(client.spec, '--rewrite-model MODEL')}")
        return Rewriter(self.rubrics.by_name[name], client, Sampling(warm, settings.seed))

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
        if rubric.tested:
            from judge.judging.function import FunctionPanel

            return FunctionPanel(rubric, ())
        if warm is None:
            warm = settings.vote_temperature if votes > 1 else settings.temperature
        if settings.method in (None, "logprobs"):
            specs = [self.profiles.with_adapter(spec, rubric) for spec in specs]
        bare = (self._bare(rubric, spec, by) for spec in specs)
        judges = tuple(self._reading(j, votes, warm, decides) for j in bare)
        cheap = self._cheap_judge(rubric, by)
        return Panel(
            rubric,
            judges,
            votes=votes,
            all_votes=settings.all_votes,
            sampling=Sampling(warm, settings.seed),
            cheap=cheap,
            explainer=self._explainer(rubric, by),
            on_injection=settings.on_injection,
            declined=None if cheap else self._declined(rubric.name, specs),
        )

    def _declined(self, check: str, specs: Sequence[str]) -> str | None:
        """Why judges are not asked for a check; None unless profiles show that all of them guess.

        Only the package's own profiles count: a user who names a profile has read its report.
        """
        profiles = self._in_force.get(check, {})
        if self.profiles.source is not None or not all(
            spec in profiles and profiles[spec].why_guess(unmeasured=True) for spec in specs
        ):
            return None
        return f"not asked: {specs[0]} is not shown to be better than a guess at this"

    def _bare(self, rubric: Rubric, spec: str, by: By) -> Judge:
        client = self.models.client(spec)
        method = self.settings.method or client.backend.method
        judge = Judge(rubric, client, method, by, per_entry=self.settings.per_entry)
        if client.decides and (judge.method != "logprobs" or not judge.probabilistic):
            remedy = f"a model that writes (--model-for {rubric.name}=MODEL)"
            what = rubric.name if judge.method == "logprobs" else f"--method {judge.method}"
            raise UsageError(f"{what}: {writes_nothing(spec, remedy)}")
        return judge

    def _warn_of_another_question(self, judge: Judge) -> None:
        """Warn, once, of an adapter taught another question, if no profile has this one."""
        rubric, key = judge.rubric, (judge.client.spec, judge.rubric.name)
        taught = judge.client.backend.taught_rubric()
        if taught not in (None, rubric.digest) and key not in self._foreign:
            self._foreign.add(key)
            _log.warning(
                "judge: %s was taught another question than %s, or another wording of it: its "
                "answers may be to that one",
                *key,
            )

    def _reading(
        self, judge: Judge, votes: int, temperature: float, decides: bool, *, cheap: bool = False
    ) -> Judge:
        """The judge with the method and the reader of its profile, if there is one.

        Raises:
            UsageError: the profile is for another judge; or a probe is wanted without a profile.
        """
        profile, settings = None, self.settings
        ways = [judge]
        if settings.method is None:
            client = judge.client
            identity = self.models.identity(client.spec)
            methods = self.profiles.methods(judge.rubric, client.spec, identity)
            usable = (method for method in methods if not (cheap and method == "structured"))
            ways = [replace(judge, method=method) for method in usable] or ways
        # A rewrite loop counts the votes of the structured method in another way.
        known = [way for way in ways if way.probabilistic or decides]
        if not known:
            judge = ways[0]
        elif judge.rubric.name in self.profiles.judges:
            bindings = [profile_key(way, votes, temperature) for way in known]
            profile = self.profiles.find(judge.rubric, bindings)
        if profile is not None:
            judge = replace(judge, method=profile.binding.method)
            judge.client.served.fitted_to(profile.answered_by, self.profiles.told)
            self._in_force.setdefault(judge.rubric.name, {})[judge.client.spec] = profile
        elif judge.method == "probe" and judge.probabilistic:
            raise UsageError(
                f"--method probe: no profile has a probe for {judge.rubric.name} by "
                f"{judge.client.spec}; judge calibrate LABELS fits one"
            )
        else:
            self._warn_of_another_question(judge)
        guaranteed = cheap and profile and profile.guarantee
        margin = settings.cheap_margin if cheap else settings.abstain_margin
        return with_profile(judge, profile, 0.0 if guaranteed else margin)

    def _explainer(self, rubric: Rubric, by: By) -> Judge | None:
        """The judge that explains why a check fails, if the check's judges give no reason."""
        if (spec := self.settings.explain_with) is None:
            return None
        client = self.models.client(spec)
        if client.decides:
            raise UsageError(f"--explain-with: {writes_nothing(spec, 'a model that writes')}")
        return Judge(rubric, client, "structured", by)

    def _cheap_judge(self, rubric: Rubric, by: By) -> Judge | None:
        """The cheap judge of the cascade; None if it would decide nothing, because the margin is
        0.5 or it is known to guess."""
        spec, margin = self.settings.cheap_model, self.settings.cheap_margin
        if spec is None or not rubric.first_token or margin >= 0.5:
            return None
        judge = Judge(rubric, self.models.client(spec), "logprobs", by)
        judge = self._reading(judge, 1, 0.0, decides=True, cheap=True)
        return None if self._declined(rubric.name, (spec,)) else judge


def _drawn_after(final: Panel, loop: Panel) -> Panel:
    """The final judge's panel with other draws than the loop judge's: what these said ended the
    loop, so counted again they would pass too often. Replies at temperature 0 are the same."""
    if final.sampling != loop.sampling or final.sampling.temperature == 0:
        return final
    return replace(final, sampling=replace(final.sampling, first=loop.votes))
