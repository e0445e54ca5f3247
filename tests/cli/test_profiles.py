"""`judge validate` by a profile, and what it leaves to people, as a user types it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from made_profiles import GOOD, judge_profile, profile

from judge.backends.base import Call, Completion, Mode
from judge.backends.scripted import ScriptedBackend
from judge.cli import main
from judge.judging.reading import Isotonic
from judge.profiles import Guarantee, JudgeProfile, Rates
from judge.run.calibrated import bond_of
from judge.run.setup import Setup
from judge.settings import resolve

from .conftest import Shell, lines, norm

CHEAP, STRONG, YES = "scripted:cheap.yaml", "scripted:strong.yaml", "scripted:yes.yaml"
CHECK = ("--check", "relevance", "--rounds", "0")
SAME = Isotonic(questions=(0,), answers=("yes", "no"), xs=(0, 1), ys=(0, 1))
"""P(yes) as it is read."""
SURE = Guarantee(agreement=0.9, level=0.95, labels=100, decided=0.5)


def number(n: int, p: float, **more: Any) -> dict[str, Any]:
    return {"when": {"contains": f"as number {n} and"}, "p_yes": p, **more}


class Typed:
    """The command in this process; gives the exit code, and keeps what was asked of models."""

    def __init__(self, judge: Shell, patch: pytest.MonkeyPatch, capfd: Any) -> None:
        self.folder, self.patch, self.capfd = judge.folder, patch, capfd
        self.shell = judge
        self.asked: list[Call] = []
        patch.chdir(judge.folder)
        patch.setenv("JUDGE_CACHE_DIR", str(judge.folder / "cache"))
        answer = ScriptedBackend.complete

        async def complete(backend: ScriptedBackend, call: Call, mode: Mode) -> Completion:
            self.asked.append(call)
            return await answer(backend, call, mode)

        patch.setattr(ScriptedBackend, "complete", complete)

    def __call__(self, *words: str) -> int:
        self.patch.setattr("sys.argv", ["judge", *words])
        self.asked.clear()
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    def told(self) -> str:
        """What was written to standard error since the last look."""
        return str(self.capfd.readouterr().err)

    def summary(self, *words: str) -> Any:
        assert self(*words, "--summary", "s.json", "-q") == 0, self.told()
        return json.loads(self.shell.read("s.json"))

    def known(self, spec: str, check: str = "relevance", **found: Any) -> JudgeProfile:
        """A profile of the judge as it is here."""
        given = resolve({"model": (spec,), "cache": False, "profile": "none"})
        return judge_profile(bond_of(Setup.of(given).judge(check, spec), 1, 0.0), **found)

    def saved(self, *judges: JudgeProfile, **more: Any) -> str:
        (self.folder / "p.json").write_text(profile(*judges, **more).model_dump_json())
        return "p.json"


@pytest.fixture
def typed(judge: Shell, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    return Typed(judge, monkeypatch, capfd)


def verdicts(text: bytes) -> dict[str, str]:
    return {line["id"]: line["judge"]["verdict"] for line in lines(text)}


# ---------------------------------------------------------------- thresholds and models


def test_a_profile_names_the_judge_and_says_how_it_is_read(judge: Shell, typed: Typed) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    judge.script("yes.yaml", [number(0, 0.9), number(1, 0.7), number(2, 0.2)])
    stricter = Isotonic(questions=(0,), answers=("yes", "no"), xs=(0.5, 0.9), ys=(0, 1))
    name = typed.saved(typed.known(YES, combination=stricter, sure_at=0.6))
    assert typed("validate", "n.jsonl", "--profile", name, *CHECK, "-o", "o") == 0
    assert "no --model named" not in typed.told()
    # 0.7 lies half way between the corners.
    assert verdicts(judge.read("o")) == {"n0": "pass", "n1": "abstain", "n2": "fail"}
    first, half, _ = lines(judge.read("o"))
    assert [vote["model"] for vote in first["judge"]["checks"][0]["votes"]] == [YES]
    assert first["judge"]["checks"][0]["probability"] == 1.0
    assert half["judge"]["checks"][0]["probability"] == pytest.approx(0.5)

    plain = ("validate", "n.jsonl", "-m", YES, *CHECK, "-q", "-o")
    assert typed(*plain, "p", "--profile", "none") == 0
    assert verdicts(judge.read("p")) == {"n0": "pass", "n1": "pass", "n2": "fail"}


# ---------------------------------------------------------------- refusals


def test_another_judge_is_refused_before_anything_is_judged(judge: Shell, typed: Typed) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    judge.script("other.yaml", [{"p_yes": 0.8}])
    (judge.folder / "o").write_text("mine\n")
    good = json.loads(profile(typed.known(YES)).model_dump_json())
    bound = good["judges"][0]["bond"]
    told = "--profile p.json was made for another judge of relevance: "
    for change, flags, message in [
        ({"rubric": "ffff"}, (), told + "rubric ffff in the profile, "),
        ({"model": "scripted:x.yaml"}, ("-m", YES), told + "model scripted:x.yaml in the profile"),
        ({"reading": "structured"}, (), told + "reading structured in the profile, probability"),
        ({}, ("--reading", "structured"), told + "reading probability in the profile, structured"),
        ({}, ("-m", "scripted:other.yaml"), told + f"model {YES} in the profile, scripted:other"),
        (
            {"identity": {**bound["identity"], "script": "00"}},
            (),
            told + "script 00 in the profile",
        ),
        ({"check": "leakage"}, (), "--profile p.json speaks of leakage; nothing of that is asked"),
        ({"votes": 0}, (), "--profile p.json: judges.0.bond.votes: Input should be greater"),
        ({"temperature": float("nan")}, (), "judges.0.bond.temperature: Input should be a finite"),
        ({"mine": 1}, (), "--profile p.json: judges.0.bond.mine: Extra inputs are not permitted"),
    ]:
        changed = {**good, "judges": [{**good["judges"][0], "bond": {**bound, **change}}]}
        (judge.folder / "p.json").write_text(json.dumps(changed))
        run = ("validate", "n.jsonl", "--profile", "p.json", *CHECK, "-o", "o", "--overwrite")
        assert typed(*run, *flags, "-q") == 2, change
        assert message in typed.told()
        assert not typed.asked
        assert judge.read("o") == b"mine\n"


def test_resuming_under_another_profile_is_refused(judge: Shell, typed: Typed) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    name = typed.saved(typed.known(YES))
    run = ("validate", "n.jsonl", "-m", YES, *CHECK, "-q", "-o", "o")
    assert typed(*run, "--profile", name, "--limit", "2") == 0
    before = judge.read("o")
    typed.saved(typed.known(YES, sure_at=0.6))
    for profiled in ("p.json", "none"):
        assert typed(*run, "--resume", "--profile", profiled) == 2
        told = typed.told()
        assert "o was made under another fingerprint" in told
        assert f"settings.profiles.relevance.{YES} was" in told
        assert judge.read("o") == before and not typed.asked
    typed.saved(typed.known(YES))
    assert typed(*run, "--resume", "--profile", name) == 0
    assert len(lines(judge.read("o"))) == 3


# ---------------------------------------------------------------- cascade and review

WHO = {
    "n0": ("pass", [CHEAP]),
    "n1": ("fail", [CHEAP]),
    "n2": ("pass", [CHEAP, STRONG]),
    "n3": ("fail", [CHEAP, STRONG]),
    "n4": ("abstain", [CHEAP, STRONG]),
    "n5": ("abstain", [CHEAP, STRONG]),
}
"""Each record's verdict, and who was asked about it."""


def cascaded(typed: Typed) -> str:
    typed.shell.write("n.jsonl", map(norm, range(6)))
    typed.shell.script("cheap.yaml", [number(0, 0.95), number(1, 0.05), {"p_yes": 0.6}])
    typed.shell.script("strong.yaml", [number(2, 0.9), number(3, 0.1), {"p_yes": 0.55}])
    judges = [
        typed.known(spec, combination=SAME, sure_at=0.8, guarantee=SURE) for spec in (CHEAP, STRONG)
    ]
    return typed.saved(*judges, cascades={"relevance": GOOD})


CASCADE = ("validate", "n.jsonl", "--profile", "p.json", *CHECK)


def test_cheap_then_strong_then_people(judge: Shell, typed: Typed) -> None:
    cascaded(typed)
    told = typed.summary(*CASCADE, "-o", "o", "--review", "people.jsonl")
    found = {
        line["id"]: (
            line["judge"]["verdict"],
            [v["model"] for v in line["judge"]["checks"][0]["votes"]],
        )
        for line in lines(judge.read("o"))
    }
    assert found == WHO
    assert told["models"][CHEAP]["calls"] == 6 and told["models"][STRONG]["calls"] == 4
    whole = judge.read("o").splitlines(keepends=True)
    assert judge.read("people.jsonl") == b"".join(whole[4:]), "the very lines, in their order"
    (rate,) = told["corrected_pass_rates"]
    assert (rate["raw"]["value"], rate["raw"]["n"], rate["undecided"]) == (0.5, 4, 2)
    # The cascade errs as a whole: (0.5 + 0.8 - 1) / 0.7
    assert rate["corrected"]["value"] == pytest.approx(3 / 7, abs=1e-6)


@pytest.mark.parametrize(("left", "cache"), [(0, False), (3.5, True), (5.5, False)])
def test_after_an_interruption_the_review_file_is_complete(
    judge: Shell, typed: Typed, left: float, cache: bool
) -> None:
    cascaded(typed)
    flags = ("-q",) if cache else ("-q", "--no-cache")
    assert typed(*CASCADE, *flags, "-o", "whole", "--review", "all.jsonl") == 0
    out, people = judge.read("whole"), judge.read("all.jsonl")
    # As a run that was killed leaves them: OUT with so many lines, the last perhaps torn.
    rows = out.splitlines(keepends=True)
    kept = b"".join(rows[: int(left)]) + (rows[int(left)][:40] if left % 1 else b"")
    (judge.folder / "o").write_bytes(kept)
    (judge.folder / "p").write_bytes(people[: len(people) // 3])
    assert typed(*CASCADE, *flags, "-o", "o", "--review", "p", "--resume") == 0
    assert judge.read("o") == out
    assert judge.read("p") == people
    # Nothing is left to do, and the file is written all the same.
    assert typed(*CASCADE, *flags, "-o", "o", "--review", "new", "--resume") == 0
    assert judge.read("new") == people


def test_a_review_file_is_never_lost_by_mistake(judge: Shell, typed: Typed) -> None:
    cascaded(typed)
    (judge.folder / "notes").write_text("mine\n")
    run = (*CASCADE, "-q", "-o", "o")
    for review, flags, message in [
        (
            "notes",
            (),
            "notes exists. Go on with it (--resume), replace it (--overwrite), or name "
            "another file with --review",
        ),
        ("notes", ("--resume",), "--review notes was not written by judge validate"),
        ("n.jsonl", ("--overwrite",), "n.jsonl is the input: name another file with --review"),
        ("o", (), "--review o is OUT: name another file"),
        ("./o", (), "--review o is OUT: name another file"),
        ("no/such", (), "no/such: cannot be written"),
    ]:
        assert typed(*run, "--review", review, *flags) == 2, review
        assert message in typed.told()
        assert not typed.asked
    assert judge.read("notes") == b"mine\n" and len(lines(judge.read("n.jsonl"))) == 6
    assert typed(*run, "--review", "notes", "--overwrite") == 0
    assert list(verdicts(judge.read("notes"))) == ["n4", "n5"]


def test_what_cannot_be_read_goes_to_people_and_what_failed_does_not(
    judge: Shell, typed: Typed
) -> None:
    judge.write("n.jsonl", map(norm, range(2)))
    (judge.folder / "never.yaml").write_text(
        json.dumps({"replies": [{"when": {"id": "n0"}, "text": "?"}, {"error": "bad-request"}]})
    )
    run = ("validate", "n.jsonl", "-m", "scripted:never.yaml", *CHECK, "-q", "--review", "p")
    assert typed(*run, "-o", "o") == 3
    assert verdicts(judge.read("o")) == {"n0": "unreadable", "n1": "error"}
    assert verdicts(judge.read("p")) == {"n0": "unreadable"}, "an error is for --resume"


# ---------------------------------------------------------------- corrected rates


def twenty(typed: Typed, passed: int, **found: Any) -> str:
    """20 records of which the judge passes so many, and its profile."""
    typed.shell.write("n.jsonl", map(norm, range(20)))
    typed.shell.script("yes.yaml", [*(number(n, 0.1) for n in range(passed, 20)), {"p_yes": 0.9}])
    return typed.saved(typed.known(YES, **found))


RUN = ("validate", "n.jsonl", "--profile", "p.json", *CHECK)


def test_the_corrected_rate_beside_the_raw_one(judge: Shell, typed: Typed) -> None:
    twenty(typed, 11)
    assert typed(*RUN, "-o", "o", "--summary", "s.json") == 0
    (rate,) = json.loads(judge.read("s.json"))["corrected_pass_rates"]
    # TPR 0.9, TNR 0.8: (0.55 + 0.8 - 1) / 0.7
    assert rate["check"] == "relevance"
    assert (rate["raw"]["value"], rate["raw"]["n"]) == (0.55, 20)
    assert rate["corrected"]["value"] == pytest.approx(0.5)
    assert rate["corrected"]["low"] < 0.3 and rate["corrected"]["high"] > 0.7
    assert rate["corrected"]["n"] == 200 and rate["corrected"]["reason"] is None
    assert rate["prediction_powered"] is None
    told = " ".join(typed.told().split())
    assert "relevance: the judge passes 55.0% (34.2% to 74.2%) of 20" in told, told
    assert "; corrected for its errors 50.0% (" in told and "), by 200 labels" in told


def test_own_margins_and_a_judge_like_a_coin_are_not_corrected(judge: Shell, typed: Typed) -> None:
    twenty(typed, 11, rates=Rates(passed=33, passes=60, failed=33, fails=60))
    assert typed(*RUN, "-o", "o", "--summary", "s.json") == 0
    (rate,) = json.loads(judge.read("s.json"))["corrected_pass_rates"]
    assert rate["raw"]["value"] == 0.55 and rate["corrected"]["value"] is None
    assert "not clearly above 0" in rate["corrected"]["reason"]
    assert "; not corrected: TPR + TNR - 1 is 0.10" in " ".join(typed.told().split())
    assert typed.summary(*RUN, "-o", "p", "--margin", "0.2")["corrected_pass_rates"] == []
