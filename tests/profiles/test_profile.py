"""What a profile is bound to, what its fingerprint covers, what its JSON may hold."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_profiles import GOOD, bond, data, judge_profile, profile
from pydantic import ValidationError

from judge.judging.combining import Isotonic, Logistic
from judge.profiles import Guarantee, JudgeProfile, Profile, Rates, item_key
from judge.records import Value
from judge.subject import Subject

# ---------------------------------------------------------------- bonds


@pytest.mark.parametrize(
    ("otherwise", "told"),
    [
        ({"check": "leakage"}, "check relevance in the profile, leakage here"),
        (
            {"model": "scripted:b.yaml"},
            "model scripted:a.yaml in the profile, scripted:b.yaml here",
        ),
        ({"rubric": "ffff"}, "rubric 0123456789ab in the profile, ffff here"),
        ({"reading": "structured"}, "reading probability in the profile, structured here"),
        ({"votes": 3}, "votes 1 in the profile, 3 here"),
        (
            {"identity": {"provider": "scripted", "model": "a.yaml", "script": "11"}},
            "script 00ff in the profile, 11 here",
        ),
        (
            {"identity": {"provider": "scripted", "model": "a.yaml"}},
            "script 00ff in the profile, None here",
        ),
    ],
)
def test_what_differs_is_named(otherwise: dict[str, Any], told: str) -> None:
    assert bond().differences(bond(**otherwise)) == [told]


def test_every_difference_is_named() -> None:
    other = bond(model="scripted:b.yaml", votes=2, identity={"provider": "openai"})
    told = bond().differences(other)
    assert [one.split()[0] for one in told] == ["model", "votes", "model", "provider", "script"]


def test_nothing_differs_from_itself_nor_by_the_engines_version() -> None:
    assert bond().differences(bond()) == []
    ours = bond(identity={"provider": "local", "engine": "1.0"})
    theirs = bond(identity={"provider": "local", "engine": "1.1"})
    assert ours.differences(theirs) == ours.differences(bond(identity={"provider": "local"})) == []
    assert judge_profile(ours).fingerprint == judge_profile(theirs).fingerprint


def test_temperature_counts_where_replies_are_drawn() -> None:
    assert bond().differences(bond(temperature=0.7)) == []
    cold, warm = (bond(reading="structured", temperature=t) for t in (0.0, 0.7))
    assert cold.differences(warm) == ["temperature 0.0 in the profile, 0.7 here"]


# ---------------------------------------------------------------- fingerprints

PLATT = Logistic(
    questions=(0,), answers=("yes", "no"), weights=((1.5,), (-1.5,)), intercepts=(0.1, -0.1)
)


def test_whatever_changes_a_verdict_or_a_rate_changes_the_fingerprint() -> None:
    guarantee = Guarantee(agreement=0.9, level=0.95, labels=100, decided=0.6)
    every: list[dict[str, Any]] = [
        {},
        {"bound": bond(rubric="ffff")},
        {"bound": bond(temperature=0.7)},
        {"bound": bond(identity={"provider": "scripted", "script": "11"})},
        {"combination": PLATT},
        {"combination": PLATT.model_copy(update={"intercepts": (0.2, -0.2)})},
        {"sure_at": 0.8},
        {"guarantee": guarantee},
        {"rates": GOOD.model_copy(update={"passed": 91})},
        {"edited": GOOD},
        {"labels": {"00": True}},
        {"labels": {"00": False}},
        {"data": data(digest="11")},
    ]
    marks = [judge_profile(**otherwise).fingerprint for otherwise in every]
    assert len(set(marks)) == len(marks)
    assert all(len(mark) == 16 and int(mark, 16) >= 0 for mark in marks)


def test_measures_and_the_order_of_parts_do_not() -> None:
    plain = judge_profile(labels={"00": True, "11": False})
    assert judge_profile(labels={"11": False, "00": True}).fingerprint == plain.fingerprint
    measured = judge_profile(labels=plain.labels, measures={"auc": {"value": 0.9}})
    assert measured.fingerprint == plain.fingerprint


# ---------------------------------------------------------------- JSON

shares = st.floats(0, 1)
counts = st.integers(0, 10**6)


@st.composite
def made_rates(draw: st.DrawFn) -> Rates:
    passes, fails = draw(counts), draw(counts)
    return Rates(
        passed=draw(st.integers(0, passes)),
        passes=passes,
        failed=draw(st.integers(0, fails)),
        fails=fails,
        undecided=draw(counts),
        design_effect=draw(st.floats(1, 50)),
    )


@st.composite
def made_judges(draw: st.DrawFn) -> JudgeProfile:
    corners = draw(st.lists(shares, min_size=1, max_size=5))
    isotonic = Isotonic(
        questions=(0,), answers=("yes", "no"), xs=tuple(sorted(corners)), ys=tuple(sorted(corners))
    )
    text = st.text(max_size=8)
    return judge_profile(
        bond(
            identity=draw(st.dictionaries(text, text, max_size=3)),
            reading=draw(st.sampled_from(("structured", "probability"))),
            temperature=draw(st.floats(0, 2)),
            votes=draw(st.integers(1, 9)),
        ),
        combination=draw(st.sampled_from((None, PLATT, isotonic))),
        sure_at=draw(shares),
        guarantee=draw(
            st.none()
            | st.builds(Guarantee, agreement=shares, level=shares, labels=counts, decided=shares)
        ),
        rates=draw(made_rates()),
        edited=draw(st.none() | made_rates()),
        labels=draw(st.dictionaries(text, st.booleans(), max_size=4)),
    )


@settings(deadline=None)
@given(st.lists(made_judges(), min_size=1, max_size=3))
def test_json_brings_the_very_same_back(judges: list[JudgeProfile]) -> None:
    made = profile(*judges)
    read = Profile.model_validate_json(made.model_dump_json())
    assert read == made
    assert [j.fingerprint for j in read.judges] == [j.fingerprint for j in judges]


WHOLE = json.loads(profile(judge_profile(combination=PLATT)).model_dump_json())


def changed(path: str, to: Any) -> str:
    """The profile as JSON with one value put in, at a path such as judges.0.sure_at."""
    tree = json.loads(json.dumps(WHOLE))
    *inner, last = path.split(".")
    part = tree
    for name in inner:
        part = part[int(name)] if isinstance(part, list) else part[name]
    part[last] = to
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        ("format", 2, "Input should be 1"),
        ("judges", [], "at least 1 item"),
        ("extra", 1, "Extra inputs are not permitted"),
        ("judges.0.extra", 1, "Extra inputs are not permitted"),
        ("judges.0.bond.extra", 1, "Extra inputs are not permitted"),
        ("judges.0.bond.votes", 0, "greater than or equal to 1"),
        ("judges.0.bond.reading", "tea leaves", "'structured' or 'probability'"),
        ("judges.0.bond.temperature", math.nan, "finite number"),
        ("judges.0.sure_at", math.nan, "finite number"),
        ("judges.0.sure_at", 1.1, "less than or equal to 1"),
        ("judges.0.rates.passed", 101, "more verdicts are right than there are labels"),
        ("judges.0.rates.failed", 101, "more verdicts are right than there are labels"),
        ("judges.0.rates.fails", -1, "greater than or equal to 0"),
        ("judges.0.rates.design_effect", 0.5, "greater than or equal to 1"),
        ("judges.0.rates.design_effect", math.inf, "finite number"),
        ("judges.0.labels", {"00": "perhaps"}, "valid boolean"),
        ("judges.0.combination.weights", [[math.nan], [0]], "finite number"),
        ("judges.0.combination.kind", "forest", "expected tags"),
        ("cascades", {"relevance": WHOLE["judges"][0]["rates"]}, "same two models"),
    ],
)
def test_what_is_no_profile(path: str, to: Any, message: str) -> None:
    Profile.model_validate_json(json.dumps(WHOLE))
    with pytest.raises(ValidationError, match=message):
        Profile.model_validate_json(changed(path, to))


def test_a_cascade_is_of_two_models_the_same_for_all_checks() -> None:
    def judges(check: str, *models: str) -> list[JudgeProfile]:
        return [judge_profile(bond(check=check, model=model)) for model in models]

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


# ---------------------------------------------------------------- labelled items


def test_an_item_is_known_by_its_texts_and_its_value() -> None:
    values = (
        Value.parse("Debts--Agree"),
        Value.parse("Jokes--Agree"),
    )

    def story(id: str, text: str, **more: Any) -> Subject:
        return Subject(id, "story", {"story": text, **more}, "abcd1234", values)

    first = story("s1", "An left.")
    known = item_key(first, "Debts--Agree")
    # Neither its name nor its mark nor a field that is blank makes it another item.
    assert item_key(
        Subject("x", "story", {"story": "An left.", "setting": ""}, "ff"), "Debts--Agree"
    )
    assert known == item_key(story("s2", "An left.", setting=""), "Debts--Agree")
    others = [
        item_key(first, "Jokes--Agree"),
        item_key(first, None),
        item_key(story("s1", "An left. "), "Debts--Agree"),
        item_key(story("s1", "An left.", setting="multiple"), "Debts--Agree"),
    ]
    assert len({known, *others}) == 5
