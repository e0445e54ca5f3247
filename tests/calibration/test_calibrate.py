"""`calibrate` in this process, on one and several data sets, with judges whose errors are known.
The judges are functions (tests/calibration/asking.py); everything else is real."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

import pytest

from judge.backends.base import Call
from judge.calibration import calibrate, controls, fit, guarantee, split, trial
from judge.calibration.calibrate import acalibrate
from judge.calibration.finding import further
from judge.calibration.labels import CalibrationJob
from judge.calibration.report import Calibration
from judge.errors import BadRequest, UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Observation
from judge.judging.client import Client
from judge.profile import JudgeProfile
from judge.questions.rubric import Rubric
from judge.run.profiles import Profiles
from judge.stats.intervals import plain

from . import asking
from .asking import PLAIN, client, norm_item, resources_of, yes_no

Row = Mapping[str, Any]


def norm(name: str, answer: Any, **more: Any) -> dict[str, Any]:
    return asking.norm(name, {"plain": answer}, **more)


@pytest.fixture
def labels(tmp_path: Path) -> Callable[[Sequence[Row]], str]:
    def write(rows: Sequence[Row], name: str = "labels.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


Written = Callable[[Sequence[Row]], str]


def run(job: CalibrationJob, *clients: Client, **settings: Any) -> Calibration:
    return asyncio.run(acalibrate(job, resources_of(*clients, **settings)))


def reads(chances: Mapping[str, float], name: str = "one") -> Client:
    """A judge that reads this P(yes) off each record."""
    return client(name, lambda call: chances[call.origin.record])


def says(answers: Mapping[str, str], name: str = "one") -> Client:
    """A judge that answers each record so; `?` is no JSON, `!` an error."""

    def answer(call: Call) -> Any:
        said = answers[call.origin.record]
        return {"?": "no JSON", "!": BadRequest("bad")}.get(said) or yes_no(said)

    return client(name, answer, "structured")


def only(found: Calibration) -> JudgeProfile:
    assert found.profile is not None
    (profile,) = found.profile.judges
    return profile


def test_several_votes_are_asked_at_another_temperature_than_one(labels: Written) -> None:
    gold = [norm(str(number), "yes" if number % 2 else "no") for number in range(4)]
    for votes, warm in ((1, 0.0), (3, 0.7)):
        calls: list[Call] = []

        def answer(call: Call, calls: list[Call] = calls) -> Any:
            calls.append(call)
            return yes_no("yes")

        job = CalibrationJob([labels(gold)], draws=20)
        run(job, client("one", answer, "structured"), votes=votes)
        assert {call.temperature for call in calls} == {warm} and len(calls) >= 4 * votes


# ---------------------------------------------------------------- what is reported


def test_of_two_judges_the_report_says_which_agrees_more_often(labels: Written) -> None:
    """By hand: of 40 items the first is right on 20, the second on all but 4 of these and on the
    other 20; one that it cannot read (first right) leaves 39: (35 - 19) / 39. A third answers like
    the first."""
    rows = [norm(f"n{n}", "yes") for n in range(40)]
    one = {f"n{n}": "yes" if n < 20 else "no" for n in range(40)}
    two = {f"n{n}": "no" if n < 4 else "?" if n == 4 else "yes" for n in range(40)}
    job = CalibrationJob([labels(rows)], draws=200)
    (check,) = run(job, says(one), says(two, "two"), says(one, "three")).checks
    better, same = check.differences
    gain = better.accuracy
    assert (better.model, better.than, gain.n, gain.of) == ("scripted:two", "scripted:one", 39, 40)
    assert gain.value == pytest.approx(16 / 39) and gain.low is not None and gain.low > 0
    # Only the second is right on 20, only the first on 4.
    assert better.p == pytest.approx(2 * sum(comb(24, k) for k in range(5)) / 2**24)
    assert not same.shown and same.p == 1
    said = f"by {gain} on the 39 items that both answered, McNemar's p 0.00154"
    assert check.findings[-2:] == [
        f"scripted:two agrees with the labels more often than scripted:one, {said}",
        "scripted:three is not shown to be better or worse than scripted:one: difference 0.00 "
        "(-0.09 to 0.09) on the 40 items that both answered, McNemar's p 1",
    ]
    (check,) = run(job, says(two, "two"), says(one)).checks
    assert (
        check.findings[-1]
        == f"scripted:two agrees with the labels more often than scripted:one, {said}"
    )
    # Four items more, whose interval is above 0, are no better judge: p is 1/8.
    more = dict.fromkeys(("n30", "n31", "n32", "n33"), "yes")
    (check,) = run(job, says(one), says(one | more, "four")).checks
    told = check.findings[-1]
    assert "scripted:four is not shown to be better or worse than scripted:one" in told
    assert told.endswith("0.125: the interval shows one, the exact test for few items does not")
    assert check.differences[0].accuracy.low > 0
    # Right on all against right on none leaves no interval, and no doubt.
    (check,) = run(
        job, says(dict.fromkeys(one, "no")), says(dict.fromkeys(one, "yes"), "five")
    ).checks
    assert (
        "scripted:five agrees with the labels more often than scripted:one, by 1.00"
        in check.findings[-1]
    )
    assert check.as_json()["differences"][0]["accuracy"]["n"] == 40


@pytest.mark.slow
def test_a_judge_without_anything_to_fit_is_reported_on_all_items(labels: Written) -> None:
    """By hand: 3 of 4 yes and 1 of 2 no right, one unreadable, one error, one without labels."""
    gold = dict(zip("abcdefgh", ["yes"] * 4 + ["no"] * 4, strict=True))
    said = dict(
        zip("abcdefghi", ["yes", "yes", "yes", "no", "no", "yes", "?", "!", "no"], strict=True)
    )
    rows = [norm(name, answer) for name, answer in gold.items()]
    split_votes = norm("i", {"w1": "yes", "w2": "no"})
    found = run(CalibrationJob([labels([*rows, split_votes])], draws=50), says(said))
    (check,) = found.checks
    assert (check.check, check.classes) == ("plain", ("yes", "no"))
    assert (check.items, check.records, check.with_reference) == (9, 9, 8)
    assert (check.fitted_on, check.held_out, check.policy) == (0, 9, None)
    (judge,) = check.judges
    assert (judge.method, judge.calibrated) == ("structured", None)
    assert judge.final is judge.uncalibrated
    counts = [list(row.values()) for row in judge.uncalibrated.confusion.values()]
    assert counts == [[3, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0]]
    assert judge.uncalibrated.accuracy.value == pytest.approx(4 / 6)
    assert [(one.record, one.answer, one.reference) for one in judge.disagreements] == [
        ("d", "no", "yes"),
        ("f", "yes", "no"),
    ]
    profile = only(found)
    rates = profile.rates
    assert (rates.passed, rates.passes, rates.failed, rates.fails) == (3, 4, 1, 2)
    assert (rates.undecided_passes, rates.undecided_fails) == (0, 1)  # an error says nothing
    assert (profile.classifier, profile.guarantee, profile.sure_at) == (None, None, 0.0)
    assert profile.data.items == 9
    # The error is what a person acts on first, although the unreadable reply came before it.
    assert judge.unanswered == "bad-request: bad"

    assert profile.measures["accuracy"] == plain(judge.uncalibrated.accuracy)


def test_readings_that_are_only_ranges_are_why_nothing_is_fitted(labels: Written) -> None:
    """Yes has four tenths of the listed chance, and nothing else is listed."""
    rows = [norm(str(n), "yes" if n % 2 else "no") for n in range(80)]
    judge = client("one", lambda call: [("Yes", 0.4)])
    (check,) = run(CalibrationJob([labels(rows)], draws=20, controls=False), judge).checks
    assert check.judges[0].fit.reason == (
        "0 items to fit to, fewer than 30: 40 readings are only ranges of probabilities, which "
        "cannot be fitted to; --method probe, for a model with hidden states, has none"
    )


def biased(count: int, seed: int = 0) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A judge that says yes too easily: P(yes) is 0.9 for yes, 0.6 for no, 1 in 10 turned round."""
    rng = random.Random(seed)
    rows, chances = [], {}
    for number in range(count):
        answer = rng.choice(["yes", "no"])
        seems = answer if rng.random() < 0.9 else "yes" if answer == "no" else "no"
        chances[f"r{number}"] = {"yes": 0.9, "no": 0.6}[seems] + rng.uniform(-0.05, 0.05)
        rows.append(norm(f"r{number}", answer))
    return rows, chances


def test_no_fold_is_reported_on_by_what_was_fitted_to_it(labels: Written) -> None:
    """P(yes) gives the answer in one fold and its opposite in the other: a fit to either fold is
    wrong on all of the other. A fit that had seen both would be right on half."""
    answers = {f"r{n}": "yes" if n % 2 else "no" for n in range(80)}
    items = [norm_item(name, answer) for name, answer in answers.items()]
    first, _ = split.split(items, [0.5, 0.5])
    chances = {
        name: 0.9 if (answer == "yes") == (n in first) else 0.1
        for n, (name, answer) in enumerate(answers.items())
    }
    source = labels([norm(*row) for row in answers.items()])
    found = run(CalibrationJob([source], folds=2, draws=50), reads(chances))
    (check,) = found.checks
    (judge,) = check.judges
    assert judge.calibrated is not None
    assert (judge.calibrated.accuracy.n, judge.calibrated.accuracy.value) == (80, 0.0)
    assert judge.uncalibrated.accuracy.value == 0.5
    data = only(found).data
    assert (data.fitted_on, data.held_out, data.folds) == (80, 80, 2)


@pytest.mark.parametrize(
    ("more", "told"),
    [({"agreement": 0.9}, "--guarantee"), ({"contrast_set": "labels"}, "--contrast-set")],
)
def test_folds_leave_nothing_that_was_not_fitted_to(
    labels: Written, more: dict[str, Any], told: str
) -> None:
    source = labels([norm("a", "yes")])
    if "contrast_set" in more:
        more = {"contrast_set": source}
    with pytest.raises(UsageError, match=f"{told} needs records"):
        run(CalibrationJob([source], folds=5, **more), reads({"a": 0.5}))


def test_what_was_fitted_is_reported_on_the_held_out_part_beside_the_list(labels: Written) -> None:
    rows, chances = biased(200)
    found = run(CalibrationJob([labels(rows)], held_out=0.4, draws=50), reads(chances))
    (check,) = found.checks
    (judge,) = check.judges
    assert (check.fitted_on, check.held_out) == (120, 80)
    assert judge.calibrated is not None
    assert judge.uncalibrated.items == judge.calibrated.items == 80
    assert judge.uncalibrated.accuracy.value is not None
    assert judge.calibrated.accuracy.value is not None
    assert judge.uncalibrated.accuracy.value < 0.65
    assert judge.calibrated.accuracy.value > 0.8
    assert judge.fit.items == 120
    assert judge.questions == ("Is the rule kept? Answer Yes or No.",)
    assert judge.curve is not None
    assert judge.curve.points[-1].kappa == judge.calibrated.kappa.value
    profile = only(found)
    assert profile.classifier == judge.fit.classifier
    assert (profile.data.fitted_on, profile.data.held_out) == (120, 80)
    assert profile.rates.passes + profile.rates.fails == 80

    # Disagreements are what people should read: those of the fitted part as well, but marked.
    wrong = sum(1 for row in rows if _said(profile, chances[row["id"]]) != row["labels"]["plain"])
    assert len(judge.disagreements) == wrong
    confusion = judge.calibrated.confusion
    wrong = confusion["yes"]["no"] + confusion["no"]["yes"]
    assert sum(one.held_out for one in judge.disagreements) == wrong


def _said(profile: JudgeProfile, chance: float) -> str | None:
    reader = AnswerReader(classifier=profile.classifier, sure_at=profile.sure_at)
    decided = reader.decide(PLAIN, Observation({0: (chance, 1 - chance)}))
    return decided.answer if decided.sure else None


@pytest.mark.slow
def test_the_fit_never_sees_the_held_out_part(
    labels: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels and readings of the held-out records changed altogether: the same classifier."""

    def by_number(items: Sequence[Any], shares: Sequence[float], seed: int) -> list[list[int]]:
        return [[n for n in range(len(items)) if n % 2 == part] for part in range(2)]

    monkeypatch.setattr(split, "split", by_number)
    rows, chances = biased(160)
    before = run(CalibrationJob([labels(rows)], draws=10), reads(chances))
    turned = [
        norm(row["id"], "no" if row["labels"]["plain"] == "yes" else "yes") if n % 2 else row
        for n, row in enumerate(rows)
    ]
    moved = {
        name: 1 - chance if n % 2 else chance for n, (name, chance) in enumerate(chances.items())
    }
    after = run(CalibrationJob([labels(turned)], draws=10), reads(moved))
    assert only(before).classifier is not None
    assert only(before).classifier == only(after).classifier
    assert before.checks[0].judges[0].fit == after.checks[0].judges[0].fit
    assert only(before).rates != only(after).rates


@pytest.mark.slow
def test_a_group_is_fitted_to_tested_on_or_reported_on_and_never_two_of_these(
    labels: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Countries are the groups; each of two judges has a test of its own for the guarantee."""
    fitted, parts = set(), []

    def observed_fit(*args: Any, **more: Any) -> Any:
        fitted.update(one.group for one in args[2])
        return fit.fit(*args, **more)

    def policy_of(apart: Any, stages: Any, *args: Any, **more: Any) -> Any:
        parts.extend([*apart, *(answers for stage in stages for answers in stage)])
        return guarantee.policy_of(apart, stages, *args, **more)

    monkeypatch.setattr(trial, "fit", observed_fit)
    monkeypatch.setattr(calibrate, "policy_of", policy_of)
    rows, chances = biased(400)
    rows = [{**row, "country": f"c{n % 40}"} for n, row in enumerate(rows)]
    job = CalibrationJob([labels(rows)], group="country", by=["country"], agreement=0.6, draws=10)
    (check,) = run(job, reads(chances), reads(chances, "two")).checks
    reported = {f"country={name}" for name in check.judges[0].by["country"]}
    cheap, strong, first, *second = ({one.item.cluster for one in part} for part in parts)
    assert cheap == strong == reported and second == [second[0]] * 2
    apart = [fitted, reported, first, second[0]]
    assert sum(map(len, apart)) == len(set().union(*apart)) == 40


@pytest.mark.slow
def test_a_further_set_is_reported_on_without_what_was_fitted_to(labels: Written) -> None:
    """Half is fitted to, by record or country. The set has all, all under other ids, 15 others, and
    one of each country."""
    rows, chances = biased(200)
    rows = [{**row, "country": f"c{n % 20}"} for n, row in enumerate(rows)]
    new = [norm(f"n{n}", "yes") for n in range(15)]
    new += [{**norm(f"n{n + 15}", "yes"), "country": f"c{n}"} for n in range(20)]
    same = [{**row, "id": f"s{row['id']}"} for row in rows]
    chances |= {f"n{n}": 0.9 for n in range(35)}
    chances |= {f"s{name}": chance for name, chance in chances.items()}
    other = labels([*rows, *same, *new], "other.jsonl")
    job = CalibrationJob([labels(rows)], test_sets=[other], draws=10)
    (check,) = run(job, reads(chances)).checks
    assert check.judges[0].test_sets[other].items == 100 + 100 + 15 + 20
    assert f"{other}: kappa" in (told := next(further(check)))
    assert "; 200 left out, of records used for fitting (the same id or text)" in told
    job = CalibrationJob([labels(rows)], test_sets=[other], group="country", draws=10)
    (check,) = run(job, reads(chances)).checks
    assert check.judges[0].test_sets[other].items == 100 + 100 + 15 + 10
    # A sample is one of each set; a contrast set is made by hand, and small.
    contrast = labels(new, "contrast.jsonl")
    job = CalibrationJob(
        [labels(rows)], test_sets=[other], contrast_set=contrast, records=30, draws=10
    )
    (check,) = run(job, reads(chances)).checks
    items = {name: found.items for name, found in check.judges[0].test_sets.items()}
    assert items == {other: 30, contrast: 35}


@pytest.mark.slow
def test_swapped_pairs_are_fitted_to_and_never_counted_as_labels(
    labels: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    trains: list[Sequence[Any]] = []

    def observed_fit(*args: Any, **more: Any) -> Any:
        trains.append(args[2])
        return fit.fit(*args, **more)

    def swapped_of(items: Sequence[Any], *args: Any) -> Any:
        drawn_from.append({one.record.id for one in items})
        return swapped_fields(items, *args)

    drawn_from: list[set[str]] = []
    swapped_fields = controls.swapped
    monkeypatch.setattr(controls, "swapped", swapped_of)
    monkeypatch.setattr(trial, "fit", observed_fit)
    rows, chances = biased(100)
    rows = [
        asking.norm(row["id"], {"relevance": row["labels"]["plain"]}, rule_of_thumb=f"Rule {n}.")
        for n, row in enumerate(rows)
    ]
    turned = [{**row, "rule_of_thumb": "Not so."} for row in [*rows, *edited_rows(9, "yes")]]
    for row in turned[-9:]:
        row["labels"] = {"relevance": "yes"}
        chances[row["id"]] = 0.5
    contrast = labels(turned, "turned.jsonl")
    (check,) = run(
        CalibrationJob([labels(rows)], contrast_set=contrast, draws=10), reads(chances)
    ).checks
    (judge,) = check.judges
    blind, plain_ = sorted(trains, key=len)
    swapped = [one for one in plain_ if not one.natural]
    assert {one.answer for one in swapped} == {"no"}
    assert len(blind) == len(plain_) - len(swapped) == judge.fit.items == check.fitted_on == 50
    rates = judge.profile.rates
    undecided = rates.undecided_passes + rates.undecided_fails
    assert judge.final.items == rates.passes + rates.fails + undecided == 50
    # Of the contrast set the reported records count, turned round, and neither others nor fitted.
    assert judge.controls is not None and judge.controls.contrast is not None
    assert judge.controls.contrast.of == 50
    # It goes by the record's name alone, and so says the same with another's rule.
    assert judge.controls.as_swapped is not None
    assert (judge.controls.as_swapped.value or 0) < judge.controls.stays.value == 1
    kept, fitted = drawn_from
    assert len(kept) == len(fitted) == 50 and kept.isdisjoint(fitted)


def test_where_only_one_field_is_shown_the_blind_judge_gives_one_of_the_answers(
    labels: Written,
) -> None:
    """The most frequent label, unsure, is no answer; of the answers it is yes, of 6 of 10."""
    golds = ["unsure"] * 8 + ["yes"] * 6 + ["no"] * 4
    rows = [norm(f"r{n}", gold) for n, gold in enumerate(golds)]
    judge = says({f"r{n}": "no" if gold == "no" else "yes" for n, gold in enumerate(golds)})
    resources = resources_of(judge)
    one_field = asking.PLAIN_FILE.replace("rule_of_thumb, ", "")
    resources.rubrics.by_name["plain"] = Rubric.from_text(one_field, "plain.yaml")
    found = asyncio.run(acalibrate(CalibrationJob([labels(rows)], draws=10), resources))
    looks = found.checks[0].judges[0].controls
    assert looks is not None and (looks.blind.value, looks.blind.n) == (0, 10)
    assert looks.kappa.value == 1


def test_a_fitted_blind_judge_is_held_against_items_that_it_was_not_fitted_to(
    labels: Written,
) -> None:
    """Where the judge as it stands is best all items are held out, but not from the blind one."""
    rows, biased_chances = biased(100)
    golds = {row["id"]: row["labels"]["plain"] for row in rows}

    def answer(call: Call) -> float:
        if controls.LEFT_OUT in str(call.messages):
            return biased_chances[call.origin.record]
        return 0.999 if golds[call.origin.record] == "yes" else 0.001

    job = CalibrationJob([labels(rows)], held_out=0.4, draws=10)
    resources = resources_of(client("one", answer))
    deciding = f"{asking.PLAIN_FILE}control: {{field: rule_of_thumb}}\n"
    resources.rubrics.by_name["plain"] = Rubric.from_text(deciding, "plain.yaml")
    (judge,) = asyncio.run(acalibrate(job, resources)).checks[0].judges
    assert judge.fit.classifier is None and judge.final.items == 100
    assert judge.controls is not None and judge.controls.blind.of == 40
    assert judge.controls.above.of == judge.controls.kappa.of == 40


@pytest.mark.parametrize(("said", "beside"), [("!", None), ("yes", 1)])
def test_a_judge_stands_beside_people_on_items_that_it_answered(
    labels: Written, said: str, beside: int | None
) -> None:
    rows = [norm("shared", {"ann": "yes", "bo": "yes"}), norm("own", {"ann": "yes"})]
    found = run(CalibrationJob([labels(rows)], draws=10), says({"shared": said, "own": "yes"}))
    people = found.checks[0].judges[0].people
    assert (people and people.human_judge.n) == beside
    assert ("beside" in str(found)) == (people is not None)


# ---------------------------------------------------------------- edits


def edited_rows(count: int, answer: str) -> list[dict[str, Any]]:
    return [
        norm(f"e{n}", answer, judge={"verdict": "pass", "edits": [{"check": "x"}]})
        for n in range(count)
    ]


def test_edited_records_have_no_part_in_the_rates(labels: Written) -> None:
    rows = [norm(f"r{n}", "yes") for n in range(10)] + edited_rows(6, "no")
    said = {f"r{n}": "yes" for n in range(10)} | {f"e{n}": "yes" for n in range(6)}
    profile = only(run(CalibrationJob([labels(rows)], draws=10), says(said)))
    assert (profile.rates.passed, profile.rates.passes, profile.rates.fails) == (10, 10, 0)


# ---------------------------------------------------------------- policies


def test_a_refusal_says_how_many_labels_are_missing_and_leaves_no_profile(labels: Written) -> None:
    """Nothing is fitted, so two thirds of the labels go into the test, which takes 29."""
    rows = [norm(f"r{n}", "yes") for n in range(42)]
    right = says({row["id"]: "yes" for row in rows})
    found = run(CalibrationJob([labels(rows)], agreement=0.9, draws=10), right)
    assert found.profile is None
    assert found.refused == (
        "plain: agreement of 90% with 95% confidence cannot be shown with 28 labels. Label "
        "about 2 more independent records: 28 of 42 went into this test"
    )
    assert found.as_json()["refused"] == found.refused
    rows = [norm(f"r{n}", "yes") for n in range(60 + 56)]
    right = says({row["id"]: "yes" for row in rows})
    assert run(CalibrationJob([labels(rows)], agreement=0.9, draws=10), right).profile is not None
    # As many that were rewritten until a judge passed them show nothing.
    rows = rows[:10] + edited_rows(106, "yes")
    right = says({row["id"]: "yes" for row in rows})
    found = run(CalibrationJob([labels(rows)], agreement=0.9, draws=10), right)
    assert found.profile is None
    assert found.refused is not None and "of 10 went into" in found.refused


@pytest.mark.parametrize("undecided", ["unsure", None])
def test_labels_that_decide_nothing_test_no_guarantee(
    labels: Written, undecided: str | None
) -> None:
    """The judge agrees with all 60 labels; of the 40 others people said unsure, or differ."""
    none = undecided or {"ann": "yes", "bo": "no"}
    rows = [norm(f"r{n}", "yes" if n < 60 else none) for n in range(100)]
    right = says({row["id"]: "yes" for row in rows})
    found = run(CalibrationJob([labels(rows)], agreement=0.9, draws=10), right)
    assert found.profile is not None, found.refused
    (stage,) = found.checks[0].policy.stages  # type: ignore[union-attr]
    assert (stage.agreement.value, stage.agreement.n) == (1.0, 40)


@pytest.mark.parametrize(("adapters", "model"), [(True, "scripted:one+x"), (False, "scripted:one")])
def test_a_model_takes_the_adapter_that_comes_with_judge(
    labels: Written, monkeypatch: pytest.MonkeyPatch, adapters: bool, model: str
) -> None:
    """As in `judge validate`, so that the fitted judge is the one that it uses."""
    rows, chances = biased(80)
    first = run(CalibrationJob([labels(rows)], draws=50), reads(chances, "one+x"))
    monkeypatch.setattr(calibrate, "shipped", lambda: Profiles.of(first.profile, None))
    resources = resources_of(reads(chances))
    resources.models.clients["scripted:one+x"] = reads(chances, "one+x")
    found = asyncio.run(
        acalibrate(CalibrationJob([labels(rows)], adapters=adapters, draws=50), resources)
    )
    assert only(found).binding.model == model
