"""Error rates by hand, and the digest of the labels."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from judge.calibration.labels import CalibrationJob
from judge.calibration.observe import LabelledAnswer, record_for
from judge.calibration.split import Split
from judge.calibration.trial import CheckData, data_of, rates
from judge.profile import Data
from judge.questions.ready_made import builtin
from judge.records import Record
from judge.records.labels import Annotation, LabelledItem
from judge.run.corrected import CorrectedRate, Errors
from judge.verdict import AnswerOutcome, Verdict

from .asking import PLAIN, norm_item

RELEVANCE = builtin()["relevance"]
SUBJECT = Record("a.jsonl", 1, {"story": "x", "rule_of_thumb": "y"}).of_kind("norm")


def rated(record: str, answer: str | None, gold: str | None) -> LabelledAnswer:
    item = norm_item(record, gold)
    shown = record_for(item, PLAIN).usable()
    return LabelledAnswer(
        item, AnswerOutcome.ANSWERED if answer else AnswerOutcome.ABSTAINED, answer, record=shown
    )


def test_rates_by_hand() -> None:
    found = rates(
        PLAIN,
        [
            rated("a", "yes", "yes"),
            rated("b", "yes", "yes"),
            rated("c", "no", "yes"),
            rated("d", "no", "no"),
            rated("e", "yes", "no"),
            rated("f", None, "yes"),
            rated("g", None, "no"),
            rated("k", None, "no"),
            replace(rated("l", None, "no"), outcome=AnswerOutcome.ERROR),
            rated("h", "yes", None),
            rated("i", None, None),
            rated("j", "no", "unsure"),
        ],
    )
    assert (found.passed, found.passes) == (2, 3)
    assert (found.failed, found.fails) == (1, 2)
    assert (found.undecided_passes, found.undecided_fails, found.design_effect) == (1, 2, 1.0)


def test_a_label_of_weight_three_has_the_rates_of_three_labels() -> None:
    """By hand: of 3 + 1 good ones 3 pass, of 3 + 1 + 1 bad ones 3 + 1 fail, out of 9 in 5 labels.
    Rounded to whole labels they were 2 of 3 and 2 of 3."""
    labels = [
        ("a", "yes", "yes", 3.0),
        ("b", "no", "yes", 1.0),
        ("c", "no", "no", 3.0),
        ("d", "no", "no", 1.0),
        ("e", "yes", "no", 1.0),
    ]
    answers = [
        replace(one, item=replace(one.item, weight=weight))
        for *parts, weight in labels
        for one in [rated(*parts)]
    ]
    found = rates(PLAIN, answers)
    assert found.passed / found.passes == pytest.approx(3 / 4, abs=1e-3)
    assert found.failed / found.fails == pytest.approx(4 / 5, abs=1e-3)
    assert found.passes + found.fails == pytest.approx(5)


def test_a_judge_that_is_lenient_with_whole_clusters_makes_labels_worth_less() -> None:
    """By hand: of each label the judge passes all or none in a cluster, so four items are worth
    one (residuals of +-1/2 add up to 2, squared 4, against 4/4), times 2/1 for the degree of
    freedom; that it is right in half of each cluster must not hide it."""
    found = rates(
        PLAIN,
        [
            replace(one, item=replace(one.item, group=cluster))
            for cluster, says in (("a", "yes"), ("b", "no"))
            for n, gold in enumerate(("yes", "yes", "no", "no"))
            for one in [rated(f"{cluster}{n}", says, gold)]
        ],
    )
    # t with one degree of freedom is 12.706.
    assert found.design_effect == pytest.approx(4 * 2 * (12.706205 / 1.959964) ** 2 / 1, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["groups", "copies", "abstains", "abstains elsewhere"])
def test_the_corrected_rate_holds_where_records_are_alike_or_undecided(world: str) -> None:
    """100 times 300 labels and 300 records, in 30 clusters or each by itself: bad ones come
    together, a cluster is judged mildly or sternly, or the judge abstains more on bad ones, on the
    labels too or not. 95 % of the intervals should have the true rate, 0.8."""
    rng, held, given = random.Random(7), 0, 0
    clustered, abstains = world in ("groups", "copies"), world == "abstains"

    def drawn(shy: bool) -> Iterator[tuple[int, bool, bool | None]]:
        for n in range(300):
            if n % 10 == 0 or not clustered:
                good = rng.betavariate(1.6, 0.4) if clustered else 0.8
                mild = rng.choice((-0.09, 0.09)) if clustered else 0.0
            truth = rng.random() < good
            passed = rng.random() < (0.9 if truth else 0.2) + mild
            quiet = shy and rng.random() < (0.05 if truth else 0.5)
            yield n // 10 if clustered else n, truth, None if quiet else passed

    word = {True: "yes", False: "no", None: None}
    for _ in range(100):
        labels = []
        for cluster, truth, passed in drawn(abstains):
            item = norm_item(f"r{cluster}", word[truth])
            one = LabelledAnswer(item, AnswerOutcome.ABSTAINED, word[passed], record=SUBJECT)
            labels.append(one)
        group = "by" if world == "groups" else None
        rate = CorrectedRate("plain", Errors(rates(PLAIN, labels), group=group))
        for n, (cluster, _, passed) in enumerate(drawn(not clustered)):
            text = f"a text {cluster} {n if world == 'groups' else ''}"
            verdict = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.ABSTAIN}[passed]
            rate.add([verdict], {"id": n, "mail": text, "by": f"author {cluster}"})
        found = rate.corrected.estimate
        if found.low is not None and found.high is not None:
            given += 1
            held += found.low <= 0.8 <= found.high
    assert given > 80
    assert held / given >= 0.91, (held, given)


def test_what_passes_depends_on_the_rule_and_the_records_own_label() -> None:
    """Relevance: a story whose label is neutral should not be about the rule."""
    about = [SUBJECT.with_typed(label=label) for label in ("yes", "neutral", None)]
    item = norm_item("a", "no", check="relevance")
    # Said no, as people do, of a neutral story: a pass that should be one.
    found = rates(RELEVANCE, [LabelledAnswer(item, AnswerOutcome.ANSWERED, "no", record=about[1])])
    assert (found.passed, found.passes, found.fails) == (1, 1, 0)


def test_the_digest_is_of_items_and_answers_in_any_order() -> None:
    def data_from(items: Sequence[LabelledItem]) -> Data:
        unused: Any = None
        parts = Split([0, 1, 2], [], [3])
        return data_of(
            CheckData(
                CalibrationJob(["x.jsonl", "y.csv"]), *[unused] * 3, items, parts, {}, 0, None
            )
        )

    voted = norm_item("b", None, annotations=(Annotation("w1", "yes"), Annotation("w2", "no")))
    items = [norm_item("a", "yes"), voted, norm_item("c", "no", number=2), norm_item("c", "no")]
    data = data_from(items)
    assert (data.sources, data.items, data.records) == (("x.jsonl", "y.csv"), 4, 3)
    assert (data.fitted_on, data.held_out) == (3, 1)
    assert data_from(items[::-1]).digest == data.digest
    changed = [
        replace(items[0], gold="no"),
        replace(items[0], number=1),
        replace(items[0], record=replace(items[0].record, name="other")),
        replace(items[0], annotations=(Annotation("w1", "yes"),)),
    ]
    digests = {data_from([one, *items[1:]]).digest for one in changed}
    assert len(digests | {data.digest}) == len(changed) + 1
