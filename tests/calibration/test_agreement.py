"""The people's report: the papers' tables in small, real annotations, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from judge.calibration.agreement import Agreement, Options, agreement, means
from judge.errors import UsageError
from judge.records.labels import Annotation, LabelledItem
from judge.stats.votes import Threshold

QUICK = Options(draws=0)


def item(
    record: str,
    answers: str | Mapping[str, str] = "",
    gold: str | None = None,
    *,
    check: str = "relevance",
    number: int = 0,
    groups: Mapping[str, str] | None = None,
    **slices: str,
) -> LabelledItem:
    """Answers as text are those of annotators 1, 2, 3 ..., a dot where one gave none."""
    if isinstance(answers, str):
        named = {"y": "yes", "n": "no", "?": "unsure", "e": "entailment", "c": "contradiction"}
        answers = {str(n): named.get(a, a) for n, a in enumerate(answers, 1) if a != "."}
    given = tuple(Annotation(who, said, (groups or {}).get(who)) for who, said in answers.items())
    return LabelledItem(record, check, {}, number, gold, given, slices)


def one_check(items: Iterable[LabelledItem], options: Options = QUICK) -> Agreement:
    report = agreement(items, options)
    assert len(report.checks) == 1
    return report


def test_normad_table_3_a_row_a_check_and_their_mean() -> None:
    report = agreement(
        [
            item("a", "yyy", "yes"),
            item("b", "yyn", "no"),
            item("a", "yyn", "yes", check="derivation"),
            item("b", "nny", "no", check="derivation"),
        ],
        QUICK,
    )
    relevance, derivation = (check.overall for check in report.checks)
    # relevance: P = (1 + 1/3) / 2, shares 5/6 and 1/6. derivation: P = 1/3, shares 1/2 and 1/2.
    assert relevance.measures["fleiss"].value == pytest.approx((2 / 3 - 26 / 36) / (10 / 36))
    assert relevance.measures["pairwise"].value == pytest.approx(2 / 3)
    assert relevance.measures["accuracy"].value == 0.5
    assert derivation.measures["fleiss"].value == pytest.approx((1 / 3 - 1 / 2) / (1 / 2))
    assert derivation.measures["accuracy"].value == 1.0
    row = means([relevance, derivation])
    assert row["accuracy"].value == 0.75
    assert row["pairwise"].value == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert (row["fleiss"].n, row["fleiss"].of) == (2, 2)


def test_normad_table_4_a_row_a_country() -> None:
    countries = {**dict.fromkeys("123", "china"), **dict.fromkeys("456", "india")}
    report = one_check(
        [
            item("a", "yyn", "yes", groups=countries),
            item("b", "nnn", "no", groups=countries),
            item("c", "...yyy", "yes", groups=countries),
        ]
    )
    china, india = (report.checks[0].groups[name] for name in ("china", "india"))
    golds = ("accuracy of no", "accuracy of yes")
    assert [china.measures[gold].value for gold in golds] == [1, 1]
    assert [gold in india.measures for gold in golds] == [False, True]
    # alpha: D_o = 2/6; of all pairs of six ratings, four of one kind, D_e = 2 * 8 / 30.
    assert china.measures["alpha"].value == pytest.approx(1 - (1 / 3) / (16 / 30))
    assert india.measures["fleiss"].value is None and india.measures["alpha"].value is None
    row = means([china, india])
    assert (row["accuracy of no"].value, row["accuracy of no"].n, row["accuracy of no"].of) == (
        1.0,
        1,
        2,
    )
    assert row["fleiss"].value == china.measures["fleiss"].value
    told = report.as_json()["checks"][0]
    assert told["group_means"]["fleiss"] == {**row["fleiss"].as_json()}


CALI_GROUPS = {**dict.fromkeys("123456", "us"), **dict.fromkeys("789", "in")}


def cali(answers: Mapping[str, tuple[str, str]]) -> list[LabelledItem]:
    return [
        item(name, us.ljust(6, ".") + theirs, check="entailment", groups=CALI_GROUPS)
        for name, (us, theirs) in answers.items()
    ]


def test_cali_majorities_of_two_groups() -> None:
    report = one_check(cali({"a": ("eeec", "eec"), "b": ("cccc", "ccc"), "c": ("eccc", "eee")}))
    (check,) = report.checks
    assert check.classes == ("contradiction", "entailment")
    counts = [[1, 3], [4, 0], [3, 1]]
    # Of two classes, each has the kappa of both.
    us = check.groups["us"].measures
    assert us["fleiss"].value == pytest.approx(statsmodels_kappa(counts))
    assert not any(name.startswith("fleiss of") for name in us)
    (across,) = check.across
    assert (across.first, across.second) == ("in", "us")
    assert across.majorities == {
        "entailment": {"entailment": 1, "contradiction": 1},
        "contradiction": {"contradiction": 1},
    }
    assert across.measures["same"].value == pytest.approx(2 / 3)
    assert across.measures["same"].n == 3
    # Pairs of one from each: a 2/3 * 3/4 + 1/3 * 1/4, b 1, c 1/4.
    assert across.measures["pairwise"].value == pytest.approx((7 / 12 + 1 + 1 / 4) / 3)


def test_culturalbench_step_3() -> None:
    several = {str(n): answer for n, answer in enumerate(["a|b", "b|a", "a|b", "b|a|c", "c"], 1)}
    report = one_check(
        [item("one", "aaaab", "a"), item("two", several, "b|a"), item("none", "aaabb", "a")],
        Options(majority=Threshold.parse("4/5"), draws=0),
    )
    found = report.checks[0].overall
    assert (found.questions, found.majorities) == (3, {"a": 1, "a|b": 1, "diverge": 1})
    assert (
        found.measures["accuracy"].value,
        found.measures["accuracy"].n,
        found.measures["accuracy"].of,
    ) == (1.0, 2, 3)


def test_unsure_is_an_answer_of_its_own() -> None:
    items = [item("a", "yy?"), item("b", "n??"), item("c", "nnn")]
    figures = one_check(items).checks[0].overall
    assert figures.answers == {"no": 4, "yes": 2, "unsure": 3}
    assert (figures.measures["undecided"].n, figures.measures["undecided"].of) == (3, 9)
    assert figures.majorities == {"no": 1, "unsure": 1, "yes": 1}
    table, _ = aggregate_raters([[1, 1, 2], [0, 2, 2], [0, 0, 0]])
    assert figures.measures["fleiss"].value == pytest.approx(statsmodels_kappa(table))


def test_a_field_that_no_record_has_is_refused() -> None:
    items = [item("a", "yy", country="Peru"), item("b", "yn", story="x")]
    (check,) = one_check(items, Options(by="country", draws=0)).checks
    assert list(check.parts) == ["(none)", "Peru"]
    with pytest.raises(UsageError, match=r"'contry' to .*; records have: country, story"):
        one_check(items, Options(by="contry", draws=0))


def test_cohen_is_for_two_annotators() -> None:
    two = one_check([item("a", "yy"), item("b", "yn"), item("c", "nn"), item("d", "y.")])
    assert two.checks[0].overall.measures["cohen"].value == pytest.approx(0.4)
    assert (
        two.checks[0].overall.measures["cohen"].n,
        two.checks[0].overall.measures["cohen"].of,
    ) == (3, 4)
    three = one_check([item("a", "yyn"), item("b", "ynn"), item("c", ".nn")])
    assert "cohen" not in three.checks[0].overall.measures


def test_what_several_files_say_goes_together() -> None:
    votes, gold = item("a", "yyn"), item("a", gold="yes")
    report = one_check(
        [votes, gold, item("a", {"1": "no", "2": "yes", "3": "no"}), item("a", gold="no")]
    )
    assert report.checks[0].overall.measures["accuracy"].value == 1.0
    assert report.checks[0].overall.labels == 3
    assert (report.repeated, report.changed, report.conflicting) == (3, 1, 1)


def test_seeds_and_no_answers() -> None:
    items = [item(f"r{n}", "yny" if n % 3 else "yyy") for n in range(12)]
    one, same, other = (
        agreement(items, Options(draws=50, seed=seed)).as_json() for seed in (1, 1, 2)
    )
    assert one == same != other
    assert json.loads(json.dumps(one)) == one
    assert agreement([item("a", gold="yes")], QUICK).checks == []
    lone = one_check([item("a", "y")]).checks[0].overall
    assert (
        lone.measures["fleiss"].value,
        lone.measures["fleiss"].n,
        lone.measures["fleiss"].of,
    ) == (None, 0, 1)


def test_a_record_that_is_given_twice_narrows_no_interval() -> None:
    once = [item(f"r{n}", "yyy" if n % 3 else "yyn") for n in range(30)]
    twice = [replace(one, number=number) for one in once for number in (0, 1)]
    single, double = (
        one_check(items, Options(draws=200, seed=3)).checks[0].overall.measures["pairwise"]
        for items in (once, twice)
    )
    assert (single.value, single.low, single.high) == (double.value, double.low, double.high)
    assert single.low is not None and single.low < (single.value or 0) < (single.high or 0)
