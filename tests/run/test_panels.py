"""Profiles in a run: which judges they apply to, how replies are read, the known error rates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, chances
from made_profiles import GOOD, binding, judge_profile, profile

from judge.configuration import resolve
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Logistic
from judge.local.default import DEFAULT
from judge.profile import Guarantee, JudgeProfile, Profile
from judge.records import Record
from judge.run.corrected import Errors
from judge.run.panels import Resources
from judge.run.profiles import Profiles, profile_key, profiled_models
from judge.run.rubrics import RubricSet
from judge.settings import Settings
from judge.verdict import Verdict

CHEAP, STRONG, WARM = "scripted:cheap.yaml", "scripted:strong.yaml", "scripted:warm.yaml"
PLATT = Logistic(
    questions=(0,), answers=("yes", "no"), weights=((1.5,), (-1.5,)), intercepts=(0.1, -0.1)
)
SURE = Guarantee(agreement=0.9, level=0.95, labels=100, decided=0.6)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("cheap", "strong"):
        Path(f"{name}.yaml").write_text(f"method: logprobs\nreplies: [] # {name}")
    Path("warm.yaml").write_text("replies: []")
    return tmp_path


def settings(**more: Any) -> Settings:
    return resolve({"cache": False, **more})


def known(
    check: str,
    spec: str,
    *,
    votes: int = 1,
    warm: float = 0.0,
    rubric: tuple[str, ...] = (),
    **more: Any,
) -> JudgeProfile:
    """A profile of the judge as it is here."""
    judge = Resources.of(settings(model=(spec,), rubric=rubric)).judge(check, spec)
    return judge_profile(profile_key(judge, votes, warm), **more)


def saved(*judges: JudgeProfile, **more: Any) -> str:
    Path("p.json").write_text(profile(*judges, **more).model_dump_json())
    return "p.json"


def resources(**more: Any) -> Resources:
    return Resources.of(settings(**more))


# ---------------------------------------------------------------- which profiles, which models


def of(made: Profile) -> Profiles:
    return Profiles.of(made, "p.json")


OWN = of(profile(judge_profile(binding(model=DEFAULT.spec))))
ONE = of(profile(judge_profile(binding(model="a:1"))))
BOTH = of(profile(judge_profile(binding(model="a:1")), judge_profile(binding(model="b:1"))))
CASCADE = of(
    profile(
        judge_profile(binding(model="a:1")),
        judge_profile(binding(model="b:1")),
        cascades={"relevance": GOOD},
    )
)


TAUGHT = of(
    profile(
        judge_profile(binding(model=f"{DEFAULT.spec}+passages", identity={"adapter": "00ff"})),
        judge_profile(binding(model=DEFAULT.spec, check="adherence")),
    )
)
LEFT = of(
    profile(
        judge_profile(binding(model=DEFAULT.spec)),
        judge_profile(binding(model="b:1")),
        cascades={"relevance": GOOD},
    )
)


@pytest.mark.parametrize(
    ("profiles", "given", "models", "cheap"),
    [
        (OWN, {}, (DEFAULT.spec,), None),
        (ONE, {"model": ("x:1", "y:1")}, ("x:1", "y:1"), None),
        (ONE, {"cheap_model": "x:1"}, (), "x:1"),
        (BOTH, {"model": ("b:1",)}, ("b:1",), None),
        (LEFT, {"model": ("b:1",)}, ("b:1",), DEFAULT.spec),
        (CASCADE, {"model": ("b:1",), "cheap_model": "a:1"}, ("b:1",), "a:1"),
        (TAUGHT, {}, (DEFAULT.spec,), None),
        # Those that come with the package name no model.
        (Profiles.of(profile(), None), {}, (), None),
    ],
)
def test_the_models_of_a_profile(
    profiles: Profiles, given: dict[str, Any], models: tuple[str, ...], cheap: str | None
) -> None:
    found = profiled_models(settings(**given), profiles)
    assert (found.model, found.cheap_model) == (models, cheap)
    assert profiled_models(found, profiles) == found, "looked at again, it is the same"


@pytest.mark.parametrize(
    ("profiles", "given", "missing"),
    [
        (ONE, {}, "--model a:1"),
        (CASCADE, {}, "--cheap-model a:1 --model b:1"),
        (CASCADE, {"model": ("b:1",)}, "--cheap-model a:1"),
        (LEFT, {}, "--model b:1"),
        # Of the embedded model, too, only what comes with the package.
        *(
            (of(profile(judge_profile(binding(model=model)))), {}, f"--model {model}")
            for model in (f"{DEFAULT.spec}+mine.gguf", f"{DEFAULT.spec}+./passages", "local:q")
        ),
        (
            of(profile(judge_profile(binding(model="scripted:a b;rm")))),
            {},
            "--model 'scripted:a b;rm'",
        ),
    ],
)
def test_a_profile_chooses_no_model(
    profiles: Profiles, given: dict[str, Any], missing: str
) -> None:
    with pytest.raises(UsageError) as refused:
        profiled_models(settings(**given), profiles)
    told = "--profile p.json was made for a model that you did not name: add "
    assert str(refused.value) == told + missing


# ---------------------------------------------------------------- readers


def reader(**more: Any) -> AnswerReader:
    made = resources(check=("relevance",), **more)
    return made.bound("norm").context.panel("relevance", "loop").judges[0].reader


@pytest.mark.parametrize(
    ("found", "given", "expected"),
    [
        ({"combination": PLATT}, {}, AnswerReader(classifier=PLATT)),
        ({"combination": PLATT, "sure_at": 0.8}, {}, AnswerReader(classifier=PLATT, sure_at=0.8)),
        ({"sure_at": 0.8}, {}, AnswerReader(sure_at=0.8)),
        # A margin is a distance from an even chance, and never makes a judge surer of itself.
        (
            {"combination": PLATT},
            {"abstain_margin": 0.2},
            AnswerReader(classifier=PLATT, sure_at=0.7),
        ),
        (
            {"combination": PLATT, "sure_at": 0.8},
            {"abstain_margin": 0.2},
            AnswerReader(classifier=PLATT, sure_at=0.8),
        ),
        ({}, {"abstain_margin": 0.2}, AnswerReader(margin=0.2)),
    ],
)
def test_how_a_judge_reads(
    found: dict[str, Any], given: dict[str, Any], expected: AnswerReader
) -> None:
    name = saved(known("relevance", CHEAP, **found))
    assert reader(profile=name, model=(CHEAP,), **given) == expected


# ---------------------------------------------------------------- known errors


def errors(**more: Any) -> Any:
    return resources(**more).bound("norm").errors.get(("relevance", "loop"))


def test_a_cascades_errors_are_those_of_the_whole() -> None:
    whole = GOOD.model_copy(update={"passed": 99})
    judges = [
        known("relevance", spec, combination=PLATT, sure_at=0.75, guarantee=SURE)
        for spec in (CHEAP, STRONG)
    ]
    name = saved(*judges, cascades={"relevance": whole})
    both = {"model": (STRONG,), "cheap_model": CHEAP}
    assert errors(profile=name, **both) == Errors(whole)
    # A cheap judge that needs a margin, for want of a guarantee, is not the one that was measured.
    modest = [judge.model_copy(update={"guarantee": None}) for judge in judges]
    assert errors(profile=saved(*modest, cascades={"relevance": whole}), **both) is None
    saved(*judges, cascades={"relevance": whole})
    # Switched off, the cheap judge leaves the strong one's own errors.
    assert errors(profile=name, cheap_margin=0.5, **both) == Errors(GOOD)
    assert errors(profile=name, abstain_margin=0.3, **both) is None


# ---------------------------------------------------------------- refusals


def test_another_judge_is_refused_before_anything_is_asked() -> None:
    name = saved(known("relevance", CHEAP))
    for otherwise in (
        {"model": (STRONG,)},
        {"model": (CHEAP,), "method": "structured"},
        {"model": (CHEAP,), "final_model": (STRONG,)},
        {"model": (CHEAP,), "cheap_model": STRONG},
    ):
        with pytest.raises(UsageError, match=r"--profile p\.json was made for another"):
            resources(profile=name, **otherwise)


@pytest.mark.parametrize(
    ("usual", "method"), [("structured", "logprobs"), ("logprobs", "structured")]
)
def test_a_profile_chooses_its_method(usual: str, method: str) -> None:
    """What --method was when it was made, whatever the model is asked by without one."""
    Path("either.yaml").write_text(f"method: {usual}\nreplies: []")
    spec = "scripted:either.yaml"
    judge = Resources.of(settings(model=(spec,), method=method)).judge("relevance", spec)
    name = saved(judge_profile(profile_key(judge, 1, 0.0)))
    given = {"check": ("relevance",), "model": (spec,), "profile": name}
    (found,) = resources(**given).bound("norm").context.panel("relevance", "loop").judges
    assert found.method == method
    with pytest.raises(UsageError, match=f"method {method} in the profile, {usual} here"):
        resources(**given, method=usual)


def test_a_cheap_judge_reads_whatever_its_profile_says() -> None:
    resources_of = Resources.of(settings(model=(CHEAP,), method="structured"))
    key = profile_key(resources_of.judge("relevance", CHEAP), 1, 0.0)
    name = saved(known("relevance", STRONG), judge_profile(key))
    with pytest.raises(UsageError, match="method structured in the profile, logprobs here"):
        resources(profile=name, model=(STRONG,), cheap_model=CHEAP)


# ---------------------------------------------------------------- judges that guess


@pytest.mark.parametrize(
    ("low", "looks", "shipped", "declines"),
    [
        (-0.1, True, True, True),
        (None, True, True, True),
        (0.1, False, True, True),
        (0.1, None, True, True),  # No control was run.
        (0.1, True, True, False),
        (-0.1, True, False, False),  # The user's own: the user has read its report.
    ],
)
async def test_a_judge_known_to_guess_is_not_asked_and_the_check_abstains(
    low: float | None, looks: bool | None, shipped: bool, declines: bool
) -> None:
    measures = {"kappa": {"low": low}}
    controls = {} if looks is None else {"field": "story", "looks": looks}
    one = known("relevance", CHEAP, measures=measures, elsewhere=measures, controls=controls)
    made = resources(model=(CHEAP,), check=("relevance",))
    made.profiles = Profiles.of(profile(one), None if shipped else "p.json")
    bound = made.bound("norm")
    assert (("relevance", "loop") in bound.errors) is not declines
    texts = {"story": "A bow.", "rule_of_thumb": "Bow."}
    if shipped:
        cascade = resources(model=(STRONG,), cheap_model=CHEAP, check=("relevance",))
        cascade.profiles = made.profiles
        (panel,) = cascade.bound("norm").context.loop_panels.values()
        assert (panel.cheap is None, panel.declined) == (declines, None)
    record = Record("n.jsonl", 1, {**texts, "label": "yes"}).of_kind("norm")
    check = await bound.context.loop_panels["relevance"].check(record, by="loop")
    if declines:
        told = f"not asked: {CHEAP} is not shown to be better than a guess at this"
        assert (check.verdict, check.reason, check.votes) == (Verdict.ABSTAIN, told, ())
    else:
        assert len(check.votes) == 1


# ---------------------------------------------------------------- reaching the models


@pytest.mark.parametrize(
    ("methods", "flags", "asked"),
    [
        (("logprobs",), {}, "logprobs"),
        (("structured",), {}, "json_schema"),
        (("probe",), {}, None),
        # Judges that were learnt in two ways, or none: as the model is asked without a profile.
        (("logprobs", "structured"), {}, "json_schema"),
        ((), {}, "json_schema"),
        (("logprobs",), {"method": "structured"}, "json_schema"),
        (("structured",), {"method": "logprobs"}, "logprobs"),
        # Whoever rewrites needs JSON.
        (("logprobs",), {"repair": True}, "json_schema"),
    ],
)
async def test_a_model_is_reached_the_way_its_judges_were_learnt(
    methods: tuple[str, ...],
    flags: dict[str, Any],
    asked: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Loopback(lambda asked: chances(Yes=-0.1, No=-2.4)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        made = resources(model=("openai:m",), **flags)
        others = (("b:1", "probe"), *(("openai:m", method) for method in methods))
        judges = (
            judge_profile(binding(model=model, method=method, check=f"c{n}"))
            for n, (model, method) in enumerate(others)
        )
        made.profiles = of(profile(*judges))
        await made.prepare()
        await made.models.aclose()
        ways = ["logprobs" if one.body.get("logprobs") else one.mode for one in server.calls]
        assert ways == ([] if asked is None else [asked])


def test_a_model_that_a_profile_chose_has_no_source_of_the_users() -> None:
    chosen = resolve({}).model_copy(update={"model": ("local:chosen",)})
    assert RubricSet.of(chosen).settings.model == ("local:chosen",)


def test_sampled_votes_of_the_final_judge_are_other_draws_than_the_loop_judges() -> None:
    def seeds(**more: Any) -> list[int]:
        context = Resources.of(settings(model=(WARM,), seed=5, **more)).bound("story").context
        panels = (context.loop_panels["incorporation"], context.final_panels["incorporation"])
        record = Record("s.jsonl", 1, {"id": "a", "story": "S", "values": ["v--for"]})
        calls = (p.calls(record.of_kind("story"), most=True) for p in panels)
        return [call.seed or 0 for drawn in calls for _, call in drawn]

    assert seeds(temperature=1.0, vote_temperature=1.0) == [5, 6, 7, 8]
    assert seeds(temperature=0.5, vote_temperature=1.0) == [5, 5, 6, 7], "no reply is the same"
    assert seeds() == [5, 5, 6, 7]


def test_a_run_is_described_with_the_words_of_its_questions() -> None:
    Path("p.yaml").write_text("name: polite\ntitle: Manners\nquestion: Is it polite?\n")
    described = Resources.of(settings(model=(WARM,), rubric=("p.yaml",))).bound("record").described
    assert described["questions"] == {"polite": "Is it polite?"}
