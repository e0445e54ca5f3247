"""The report on people: the papers' tables in small, real annotations, and left-out labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from judge.calibration import people
from judge.calibration.majority import Majority
from judge.calibration.people import MAX_PROBLEMS, Agreement, agreement, agreement_of
from judge.configuration import resolve
from judge.records import Record
from judge.records.base import Problem
from judge.records.labels import Annotation, LabelledItem
from judge.stats.agreement import ALL_CLASSES
from judge.stats.intervals import plain
from judge.stats.majority import MajorityRule


def item(
    record: str,
    answers: str | Mapping[str, str] = "",
    gold: str | None = None,
    *,
    check: str = "relevance",
    number: int = 0,
    groups: Mapping[str, str] | None = None,
) -> LabelledItem:
    """Answers as text are those of annotators 1, 2, 3 ..., a dot where one gave none."""
    if isinstance(answers, str):
        named = {"y": "yes", "n": "no", "?": "unsure"}
        answers = {str(n): named.get(a, a) for n, a in enumerate(answers, 1) if a != "."}
    given = tuple(Annotation(who, said, (groups or {}).get(who)) for who, said in answers.items())
    return LabelledItem(Record("", 0, {}, name=record), check, number, gold, given)


def one_check(items: Iterable[LabelledItem], *, draws: int = 2, **options: Any) -> Agreement:
    report = agreement(items, draws=draws, **options)
    assert len(report.checks) == 1
    return report


def test_normad_table_4_a_row_a_country() -> None:
    countries = {**dict.fromkeys("123", "china"), **dict.fromkeys("456", "india")}
    report = one_check(
        [
            item("a", "yyn", "yes", groups=countries),
            item("b", "nnn", "no", groups=countries),
            item("c", "...yyy", "yes", groups=countries),
        ]
    )
    china, india = (report.checks[0].groups[name].measures for name in ("china", "india"))
    assert (china["accuracy"].value, china["accuracy"].of) == (1.0, 2)
    # alpha: D_o = 2/6; of all pairs of six ratings, four of one kind, D_e = 2 * 8 / 30.
    assert china["alpha_nominal"].value == pytest.approx(1 - (1 / 3) / (16 / 30))
    assert india["fleiss"].value is None and india["alpha_nominal"].value is None


def test_culturalbench_step_3() -> None:
    several = {str(n): answer for n, answer in enumerate(["a|b", "b|a", "a|b", "b|a|c", "c"], 1)}
    report = one_check(
        [item("one", "aaaab", "a"), item("two", several, "b|a"), item("none", "aaabb", "a")],
        majority=Majority(MajorityRule.parse("4/5")),
    )
    found = report.checks[0].overall
    assert (found.questions, found.majorities) == (3, {"a": 1, "a|b": 1})
    assert found.outcomes == {"single": 1, "several": 1, "diverge": 1}
    accuracy = found.measures["accuracy"]
    assert (accuracy.value, accuracy.n, accuracy.of) == (1.0, 2, 3)


def test_an_answer_of_the_name_diverge_is_an_answer() -> None:
    answers = dict.fromkeys("abc", "diverge")
    found = one_check([item("one", answers), item("two", "ab")]).checks[0].overall
    assert found.majorities == {"diverge": 1}
    assert found.outcomes == {"single": 1, "several": 0, "diverge": 1}


def test_what_decides_nothing_wins_no_majority() -> None:
    """CulturalBench 3.3: what four of five cannot answer has no majority, and is dropped."""
    out = {"x": "i don't know", "u": "unanswerable", "k": "i don't have knowledge", "s": "skip"}

    def given(answers: str) -> dict[str, str]:
        return {str(n): out.get(answer, answer) for n, answer in enumerate(answers)}

    items = [item(answers, given(answers)) for answers in ("xxxxa", "uuuuu", "kkkkb", "bbbbx")]
    items += [item("several", {str(n): f"a|{out['x']}" for n in range(4)})]
    items += [item("ssss", given("ssss"))]
    four = MajorityRule.parse("4/5")
    figures = one_check(items, majority=Majority(four)).checks[0].overall
    assert (figures.majorities, figures.diverge) == ({"a": 1, "b": 1, "skip": 1}, 3)
    assert figures.answers["i don't know"] == 5, "they are answers all the same"
    own = one_check(items, majority=Majority(four, ["Skip."])).checks[0].overall
    assert own.diverge == 1 and "skip" not in own.majorities
    assert own.majorities["a|i don't know"] == 1
    # Nor where ties are drawn, except that an answer as frequent wins.
    items = [item(answers, given(answers)) for answers in ("xxxxa", "xxaab", "xxbbx")]
    drawn = one_check(items, majority=Majority(four, ties=0)).checks[0].overall
    assert (drawn.majorities, drawn.diverge) == ({"a": 1}, 2)


def test_ties_are_drawn_for_each_question_by_itself() -> None:
    """Of 40 records with three tied entries, all three agree in 10 on average."""
    tied = [item(f"r{n}", "yn", number=number) for n in range(40) for number in (1, 2, 3)]
    ours = Majority(ties=0)
    lines = agreement(tied, majority=ours, records=(), draws=2).majorities
    alike = sum(len({*line["labels"]["relevance"]}) == 1 for line in lines)
    assert 2 <= alike <= 20, alike
    checks = [item(f"r{n}", "yn", check=check) for n in range(40) for check in ("p", "q")]
    report = agreement(checks, majority=ours, records=(), draws=2)
    same = sum(line["labels"]["p"] == line["labels"]["q"] for line in report.majorities)
    assert 8 <= same <= 32, same
    for check in report.checks:
        won = Counter(line["labels"][check.check] for line in report.majorities)
        assert check.overall.majorities == won, "the table counts what is written"


def test_majorities_replace_a_records_labels_of_the_check(tmp_path: Path) -> None:
    """Also if the record has a shorter list, or one text, and never in the record itself."""
    votes = [item(id, "yyy", number=number) for id in "abc" for number in (1, 2)]
    labels = {"a": {"relevance": ["no"], "other": "x"}, "b": {"relevance": "no"}, "c": {}}
    records = tmp_path / "records.jsonl"
    records.write_text(
        "".join(json.dumps({"id": k, "labels": v}) + "\n" for k, v in labels.items())
    )
    lines = agreement(votes, records=[str(records)], draws=2).majorities
    two = {"relevance": ["yes", "yes"]}
    assert [line["labels"] for line in lines] == [two | {"other": "x"}, two, two]


def test_two_annotators_have_cohens_kappa_over_what_both_answered() -> None:
    first, second = "yyynnny", "ynynnyy"
    pairs = [f"{a}{b}" for a, b in zip(first, second, strict=True)]
    items = [item(f"r{n}", pair) for n, pair in enumerate([*pairs, "y.", ".n"])]
    cohen = one_check(items).checks[0].overall.measures["cohen"]
    assert cohen.value == pytest.approx(cohen_kappa_score(list(first), list(second)))
    assert (cohen.n, cohen.of) == (7, 9)
    assert "cohen" not in one_check([item("a", "yyn")]).checks[0].overall.measures


def test_unsure_is_an_answer_of_its_own() -> None:
    items = [item("a", "yy?"), item("b", "n??"), item("c", "nnn")]
    figures = one_check(items).checks[0].overall
    assert figures.answers == {"no": 4, "yes": 2, "unsure": 3}
    assert figures.majorities == {"no": 1, "unsure": 1, "yes": 1}
    table, _ = aggregate_raters([[1, 1, 2], [0, 2, 2], [0, 0, 0]])
    assert figures.measures["fleiss"].value == pytest.approx(statsmodels_kappa(table))


def test_what_several_files_say_goes_together() -> None:
    votes, gold = item("a", "yyn"), item("a", gold="yes")
    report = one_check(
        [votes, gold, item("a", {"1": "no", "2": "yes", "3": "no"}), item("a", gold="no")]
    )
    assert report.checks[0].overall.measures["accuracy"].value == 1.0
    assert report.checks[0].overall.labels == 3
    assert (report.repeated, report.conflicting) == (3, 1)


@pytest.mark.parametrize("scale", [1, 10])
def test_a_record_counts_for_as_many_as_it_stands_for(scale: int) -> None:
    """As much as if it had been drawn as often; however many records all stand for together."""
    votes = [("a", "55", 3), ("b", "12", 1), ("c", "15", 1), ("d", "22", 2)]
    weighted = [replace(item(name, said), weight=scale * n) for name, said, n in votes]
    weighted = [item("a", gold="5"), *weighted]  # A file without weights.
    repeated = [item(f"{name}{k}", said) for name, said, n in votes for k in range(n)]
    figures, same = (one_check(items).checks[0].overall for items in (weighted, repeated))
    assert same.measures["pairwise"].value == pytest.approx(5 / 7)
    for name in ("pairwise", "fleiss", "cohen", "weighted"):
        assert figures.measures[name].value == pytest.approx(same.measures[name].value), name
    alpha = figures.measures["alpha_interval"].value
    # Observed: (1 + 16) / 7. Expected, over the ratings 5 (7), 2 (5), 1 (2), of 14 weighted to 8.
    pairs = 7 * 5 * 9 + 7 * 2 * 16 + 5 * 2 * 1
    assert alpha == pytest.approx(1 - (17 / 7) / (2 * pairs / 14**2 * 8 / 7))
    assert (figures.answers, figures.diverge) == ({"1": 2, "2": 3, "5": 3}, 2)


def test_seeds_and_no_answers() -> None:
    items = [item(f"r{n}", "yny" if n % 3 else "yyy") for n in range(12)]
    one, same, other = (agreement(items, draws=50, seed=seed).as_json() for seed in (1, 1, 2))
    assert one == same != other
    assert json.loads(json.dumps(one)) == one
    assert agreement([item("a", gold="yes")]).checks == []
    fleiss = one_check([item("a", "y")]).checks[0].overall.measures["fleiss"]
    assert (fleiss.value, fleiss.n, fleiss.of) == (None, 0, 1)


def test_a_record_that_is_given_twice_narrows_no_interval() -> None:
    once = [item(f"r{n}", "yyy" if n % 3 else "yyn") for n in range(30)]
    twice = [replace(one, number=number) for one in once for number in (0, 1)]
    single, double = (
        one_check(items, draws=200, seed=3).checks[0].overall.measures["pairwise"]
        for items in (once, twice)
    )
    assert plain(single) | {"n": 60, "of": 60} == plain(double)
    assert single.low is not None and single.low < (single.value or 0) < (single.high or 0)


def test_two_annotators_on_a_scale_have_a_weighted_kappa_as_well() -> None:
    first, second = [1, 2, 3, 5, 4, 1, 2], [1, 3, 3, 4, 2, 2, 2]
    items = [
        item(str(n), {"a": str(ours), "b": str(theirs)})
        for n, (ours, theirs) in enumerate(zip(first, second, strict=True))
    ]
    unsure = item("u", {"a": "unsure", "b": "5"})
    measures = one_check([*items, unsure], draws=200).checks[0].overall.measures
    theirs = cohen_kappa_score(first, second, weights="quadratic")
    assert measures["weighted"].value == pytest.approx(theirs)
    assert (measures["weighted"].n, measures["weighted"].of) == (7, 8)
    assert measures["weighted"].low is not None
    assert "weighted" not in one_check([item("a", "yn")]).checks[0].overall.measures


def test_a_scale_has_ordinal_and_interval_alpha_for_any_number_of_raters() -> None:
    """Krippendorff's (2011) example, section D; an unsure rating is left out, not a point."""
    units = ["11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11"]
    items = [item(str(n), unit) for n, unit in enumerate([*units, ".3.."])]
    measures = one_check(items, draws=50).checks[0].overall.measures
    alphas = {name: measures[f"alpha_{name}"] for name in ("nominal", "ordinal", "interval")}
    told = {name: round(one.value or 0, 3) for name, one in alphas.items()}
    assert told == {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}
    assert all((one.n, one.of) == (11, 12) for one in alphas.values())
    unsure = one_check([*items, item("u", "5?")], draws=50).checks[0].overall.measures
    for name in ("alpha_ordinal", "alpha_interval"):
        assert unsure[name].value == measures[name].value
        assert (unsure[name].n, unsure[name].of) == (11, 13)
    assert "alpha_ordinal" not in one_check([item("a", "yyn"), item("b", "0.")]).checks[0].groups


def test_answers_of_a_scale_stand_in_the_order_of_their_numbers() -> None:
    values = ["10", "-1", ".75", "0.5", "9", "unsure"]
    report = one_check([item("a", dict(zip("abcdef", values, strict=True)))])
    assert report.checks[0].classes == ("-1", "0.5", ".75", "9", "10", "unsure")


@pytest.mark.parametrize("known", ["a", "b"])
def test_an_annotators_group_is_the_one_that_some_row_names(known: str) -> None:
    items = [item(id, "y", groups={"1": "in"} if id == known else None) for id in "ab"]
    report = agreement(items, people={"1": {"age": "30"}}, draws=2)
    assert report.demographics == {"age": {"all": {"30": 1}, "in": {"30": 1}}}


def test_kappas_of_classes_over_three_ratings_leave_out_questions_with_fewer() -> None:
    items = [item("a", "yyn"), item("b", "nny"), item("c", "yyy"), item("d", "yn")]
    found, alone = (
        one_check(part, majority=Majority(raters=3)).checks[0].overall.class_kappas["yes"]
        for part in (items, items[:3])
    )
    assert (found.value, found.n, found.of) == (alone.value, 3, 4)


def test_kappas_of_many_classes_are_those_over_so_many_ratings_alone() -> None:
    items = [item(f"i{n}", dict.fromkeys("abc", f"t{n}")) for n in range(13)]
    assert not one_check(items).checks[0].overall.class_kappas
    over_three = one_check(items, majority=Majority(raters=3)).checks[0].overall.class_kappas
    assert over_three["t0"].value == 1.0


def test_an_answer_may_have_the_name_of_the_kappa_over_all_classes() -> None:
    items = [item("a", {"1": ALL_CLASSES, "2": ALL_CLASSES}), item("b", {"1": "no", "2": "no"})]
    kappas = one_check(items).checks[0].overall.class_kappas
    assert {name: kappa.value for name, kappa in kappas.items()} == {ALL_CLASSES: 1.0, "no": 1.0}


def test_of_lines_that_cannot_be_read_only_the_first_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alive: WeakValueDictionary[int, Record] = WeakValueDictionary()
    most = 0

    def labels(*_: object) -> Iterator[LabelledItem | Record]:
        nonlocal most
        yield item("a", "yy")
        for number in range(3 * MAX_PROBLEMS):
            record = Record.unreadable("a.jsonl", number, Problem("no label"))
            alive[number] = record
            yield record
            most = max(most, len(alive))

    monkeypatch.setattr(people, "read_labels", labels)
    report = agreement_of(["a.jsonl"], resolve({}))
    assert report.unreadable == 3 * MAX_PROBLEMS
    assert [one.line for one in report.problems] == [*range(MAX_PROBLEMS)]
    assert most <= MAX_PROBLEMS + 2
