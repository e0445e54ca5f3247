"""The judges a profile applies to, the coverage of its fingerprint, and the limits of its JSON."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from made_profiles import GOOD, binding, data, judge_profile, profile
from pydantic import ValidationError
from workflow_rubrics import JUDGING

import judge
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Logistic, Observation, Probe
from judge.local import DEFAULT_NAME, store
from judge.local.default import DEFAULT
from judge.profile import Binding, Guarantee, JudgeProfile
from judge.questions.ready_made import builtin
from judge.run.profiles import Profiles, named, shipped

# ---------------------------------------------------------------- bindings


def test_what_differs_is_named() -> None:
    identity = {"provider": "scripted", "model": "a.yaml"}
    for otherwise, told in (
        ({"check": "leakage"}, "check relevance in the profile, leakage here"),
        ({"model": "b:1"}, "model scripted:a.yaml in the profile, b:1 here"),
        ({"rubric": "ffff"}, "rubric 0123456789ab in the profile, ffff here"),
        ({"method": "structured"}, "method logprobs in the profile, structured here"),
        ({"votes": 3}, "votes 1 in the profile, 3 here"),
        ({"identity": identity}, "script 00ff in the profile, None here"),
    ):
        assert binding().differences(binding(**otherwise)) == [told]


def test_nothing_differs_from_itself_nor_by_the_engines_version() -> None:
    assert binding().differences(binding()) == []
    ours = binding(identity={"provider": "local", "engine": "1.0"})
    theirs = binding(identity={"provider": "local", "engine": "1.1"})
    assert (
        ours.differences(theirs) == ours.differences(binding(identity={"provider": "local"})) == []
    )
    assert judge_profile(ours).fingerprint == judge_profile(theirs).fingerprint
    # Temperature counts where replies are drawn.
    assert binding().differences(binding(temperature=0.7)) == []
    cold, warm = (binding(method="structured", temperature=t) for t in (0.0, 0.7))
    assert cold.differences(warm) == ["temperature 0.0 in the profile, 0.7 here"]


def test_an_adapter_is_known_by_its_hash_wherever_it_lies() -> None:
    def taught(model: str, sha256: str) -> Binding:
        return binding(model=model, identity={"provider": "local", "adapter": sha256})

    ours = taught("local:q+mine.gguf", "ab")
    assert ours.differences(taught("local:q+/elsewhere/mine.gguf", "ab")) == []
    told = ["adapter ab in the profile, cd here"]
    assert ours.differences(taught("local:q+mine.gguf", "cd")) == told
    (model,) = ours.differences(taught("local:p+mine.gguf", "ab"))
    assert model == "model local:q in the profile, local:p here"


def test_weights_are_known_by_their_hash_wherever_they_lie() -> None:
    def of(model: str, sha256: str, provider: str = "local") -> Binding:
        identity = {"provider": provider, "model": Path(model).name, "sha256": sha256}
        return binding(model=f"{provider}:{model}", identity=identity, method="probe")

    ours, rubric = of("/a/q.gguf", "ab"), builtin()["relevance"]
    for model in ("q.gguf", "/b/another.gguf"):
        theirs = of(model, "ab")
        assert ours.differences(theirs) == []
        bound = ours.model_copy(update={"rubric": rubric.digest})
        known = Profiles.of(profile(judge_profile(bound)), "p.json")
        assert known.methods(rubric, theirs.model, theirs.identity) == ("probe",)
    model, sha256 = ours.differences(of("/b/q.gguf", "cd"))
    assert model == "model local:/a/q.gguf in the profile, local:/b/q.gguf here"
    assert sha256 == "sha256 ab in the profile, cd here"
    assert ours.differences(of("/a/q.gguf", "ab", "transformers"))


@pytest.mark.parametrize(
    ("check", "adapter"), [("adherence", "adherence"), ("incorporation", "passages")]
)
def test_the_adapter_that_ships_is_the_one_that_was_measured(
    check: str, adapter: str, tmp_path: Path
) -> None:
    """It is used for the question that it was taught, and for no other."""
    rubric = builtin()[check]
    model = shipped().with_adapter(DEFAULT.spec, rubric)
    assert model == f"{DEFAULT.spec}+{adapter}"
    (known,) = shipped().judges[check]
    file = Path(str(resources.files("judge.local") / f"{adapter}.gguf"))
    assert known.binding.identity["adapter"] == store.hashed(file)
    assert known.data.held_out > 50
    reworded = rubric.model_copy(update={"examples": ()})
    assert shipped().with_adapter(DEFAULT.spec, reworded) == DEFAULT.spec
    assert shipped().with_adapter("openai:gpt-4o", rubric) == "openai:gpt-4o"
    own = Profiles.of(profile(known), str(tmp_path / "mine.json"))
    assert own.with_adapter(DEFAULT.spec, rubric) == model
    bound = known.binding.model_copy(update={"model": DEFAULT.spec})
    both = profile(known, known.model_copy(update={"binding": bound}))
    assert Profiles.of(both, "p.json").with_adapter(DEFAULT.spec, rubric) == DEFAULT.spec


# ---------------------------------------------------------------- fingerprints

PLATT = Logistic(
    questions=(0,), answers=("yes", "no"), weights=((1.5,), (-1.5,)), intercepts=(0.1, -0.1)
)


def test_whatever_changes_a_verdict_or_a_rate_changes_the_fingerprint() -> None:
    guarantee = Guarantee(agreement=0.9, level=0.95, labels=100, decided=0.6)
    every: list[dict[str, Any]] = [
        {},
        {"bound": binding(rubric="ffff")},
        {"bound": binding(temperature=0.7)},
        {"bound": binding(identity={"provider": "scripted", "script": "11"})},
        {"combination": PLATT},
        {"combination": PLATT.model_copy(update={"intercepts": (0.2, -0.2)})},
        {"sure_at": 0.8},
        {"guarantee": guarantee},
        {"rates": GOOD.model_copy(update={"passed": 91})},
        {"data": data(digest="11")},
    ]
    marks = [judge_profile(**otherwise).fingerprint for otherwise in every]
    assert len(set(marks)) == len(marks)
    assert all(len(mark) == 16 and int(mark, 16) >= 0 for mark in marks)


# ---------------------------------------------------------------- JSON


def test_a_cascade_is_of_two_models_the_same_for_all_checks() -> None:
    def judges(check: str, *models: str) -> list[JudgeProfile]:
        return [judge_profile(binding(check=check, model=model)) for model in models]

    pair, turned = judges("relevance", "a:1", "b:1"), judges("leakage", "b:1", "a:1")
    alone = judges("leakage", "b:1")
    profile(*pair, *alone, cascades={"relevance": GOOD})
    for others, cascades in [
        (judges("leakage", "c:1"), {"relevance": GOOD}),
        (turned, {"relevance": GOOD, "leakage": GOOD}),
        (alone, {"leakage": GOOD}),
        ([], {"derivation": GOOD}),
    ]:
        with pytest.raises(ValidationError, match="same two models"):
            profile(*pair, *others, cascades=cascades)


# ---------------------------------------------------------------- finding one

PAIR = (judge_profile(binding(model="a:1")), judge_profile(binding(model="b:1")))


def test_a_judge_is_found_by_all_it_is_bound_to() -> None:
    found = Profiles.of(profile(*PAIR), "p.json")
    rubrics = builtin()
    assert found.find(rubrics["relevance"], [binding(model="b:1")]) is PAIR[1]
    strange = binding(check="leakage", model="c:1")
    assert found.find(rubrics["leakage"], [strange]) is None, "the profile says nothing of it"
    assert found.models == ("a:1", "b:1")


def test_a_profile_chooses_no_adapter_that_the_user_did_not_name() -> None:
    """But for those of the package, and of the embedded default."""
    rubric = builtin()["relevance"]
    taught = judge_profile(binding(model="local:w.gguf+mine.gguf", rubric=rubric.digest))
    of_the_user = Profiles.of(profile(taught), "p.json")
    assert of_the_user.with_adapter("local:w.gguf", rubric) == "local:w.gguf"
    of_the_package = Profiles.of(profile(taught), None)
    assert of_the_package.with_adapter("local:w.gguf", rubric) == "local:w.gguf+mine.gguf"
    assert of_the_package.with_adapter("local:v.gguf", rubric) == "local:v.gguf"


# ---------------------------------------------------------------- files


TEXT = profile(*PAIR).model_dump_json()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file: Invalid JSON"),
        (b"{}", "made_by: missing key"),
        (TEXT.encode("utf-16"), "cannot be read"),
        (
            TEXT.replace('"passed":90', '"passed":900').encode(),
            "judges.0.rates: more verdicts",
        ),
        (
            TEXT.replace('"sure_at":0.0', '"sure_at":NaN').encode(),
            "judges.0.sure_at: must be",
        ),
        (TEXT.replace('"votes"', '"ballots"').encode(), "judges.0.binding.votes: missing key"),
        (json.dumps({**json.loads(TEXT), "mine": 1}).encode(), "mine: unknown key"),
    ],
)
def test_what_is_no_profile_is_refused_with_file_and_key(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content)
    for read, told in ((judge.load_profile, f"{path}: "), (named, f"--profile {path}: ")):
        with pytest.raises(UsageError) as refused:
            read(path)
        assert str(refused.value).startswith(f"{told}{message}")
    path.with_name("profile.json").write_text(TEXT)
    assert judge.load_profile(tmp_path).made_by, "calibrate's folder"


# ---------------------------------------------------------------- those that come with the package


def test_every_judging_rubric_has_one_bound_to_it_and_to_the_default_weights() -> None:
    assert sorted(shipped().judges) == sorted(JUDGING)
    told = "run `python docs/make_calibration.py`: the rubric has changed since it was calibrated"
    for check in JUDGING:
        (found,), rubric = shipped().judges[check], builtin()[check]
        assert found.binding.rubric == rubric.digest, told
        probed = isinstance(found.classifier, Probe)
        assert found.binding.method == ("probe" if probed else "logprobs")
        adapters = {"", "+adherence"} if check == "adherence" else {"", "+passages"}
        assert found.binding.model.removeprefix(DEFAULT.spec) in adapters
        assert found.binding.identity["sha256"] == store.entry(DEFAULT_NAME).sha256
        # It carries no text, and no place on a disk.
        assert found.data.held_out >= 20
        for source in found.data.sources:
            assert not source.startswith("/") and ":/" not in source
        # It can be read by.
        reader = AnswerReader(classifier=found.classifier)
        words = [len(question.outcomes) for question in rubric.first_token or ()]
        read = {n: [1 / words[n]] * words[n] for n in reader.questions(rubric)}
        state = reader.probe.center if reader.probe else None
        decided = reader.decide(rubric, Observation(read, state))
        assert set(decided.probabilities) == set(rubric.answers)
        assert sum(decided.probabilities.values()) == pytest.approx(1)
