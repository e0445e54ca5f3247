"""Which profile speaks of which judge, and which file is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_profiles import GOOD, bond, judge_profile, profile

from judge.errors import UsageError
from judge.profiles import Profiles, named, shelf, shipped

PAIR = (judge_profile(bond(model="a:1")), judge_profile(bond(model="b:1")))


def test_a_judge_is_found_by_all_it_is_bound_to() -> None:
    found = Profiles.of(profile(*PAIR), "p.json")
    assert found.find(bond(model="b:1")) is PAIR[1]
    assert found.find(bond(check="leakage", model="c:1")) is None, "the profile says nothing of it"
    assert found.models == ("a:1", "b:1")


def test_another_judge_of_the_check_is_refused_by_the_users_own_profile() -> None:
    found = Profiles.of(profile(*PAIR), "p.json")
    with pytest.raises(UsageError) as refused:
        found.find(bond(model="b:1", rubric="ffff", votes=3))
    told = str(refused.value)
    assert told.startswith("--profile p.json was made for another judge of relevance: ")
    # Of two judges the one that is nearer is compared.
    assert "rubric 0123456789ab in the profile, ffff here; votes 1 in the profile, 3 here" in told
    assert "a:1" not in told


def test_the_packages_own_profiles_are_silent_where_they_do_not_fit() -> None:
    assert Profiles.of(profile(*PAIR), None).find(bond(model="c:1")) is None


def test_models_come_once_the_cheap_one_first() -> None:
    more = [judge_profile(bond(check="leakage", model=model)) for model in ("a:1", "b:1")]
    assert Profiles.of(profile(*PAIR, *more), "p").models == ("a:1", "b:1")
    assert Profiles().models == ()


# ---------------------------------------------------------------- files


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(profile(*PAIR, cascades={"relevance": GOOD}).model_dump_json(indent=1))
    found = named(path)
    assert found.source == str(path)
    assert list(found.judges["relevance"]) == list(PAIR)
    assert found.cascades == {"relevance": GOOD}


WHOLE = profile(*PAIR).model_dump_json()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file: Invalid JSON"),
        (WHOLE[:-10].encode(), "the file: Invalid JSON"),
        (b"[]", "the file: Input should be an object"),
        (b"{}", "made_by: Field required"),
        (WHOLE.encode("utf-16"), "cannot be read"),
        (
            WHOLE.replace('"passed":90', '"passed":900').encode(),
            "judges.0.rates: Value error, more",
        ),
        (
            WHOLE.replace('"sure_at":0.0', '"sure_at":NaN').encode(),
            "judges.0.sure_at: Input should",
        ),
        (WHOLE.replace('"votes"', '"ballots"').encode(), "judges.0.bond.votes: Field required"),
        (json.dumps({**json.loads(WHOLE), "mine": 1}).encode(), "mine: Extra inputs are not"),
        (b"[" * 100_000, "the file: Invalid JSON"),
    ],
)
def test_what_is_no_profile_is_refused_with_file_and_key(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        named(path)
    assert str(refused.value).startswith(f"--profile {path}: {message}")


@pytest.mark.parametrize("name", ["no.json", "."])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        named(tmp_path / name)


# ---------------------------------------------------------------- those that come with the package


def test_what_comes_with_the_package_can_be_read() -> None:
    found = shipped()
    assert found.source is None and not found.cascades
    assert all(
        judge.rates.passes + judge.rates.fails for js in found.judges.values() for judge in js
    )


def test_every_json_file_in_the_package_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, judge in zip("ab", PAIR, strict=True):
        (tmp_path / f"{name}.json").write_text(profile(judge).model_dump_json())
    (tmp_path / "notes.txt").write_text("no profile")
    monkeypatch.setattr(shelf.resources, "files", lambda package: tmp_path)
    found = shelf.shipped.__wrapped__()
    assert list(found.judges["relevance"]) == list(PAIR) and found.source is None
