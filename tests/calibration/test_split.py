"""Clusters of near-equal texts, against all pairs, and the weight of a text under many ids."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.backends.base import Call
from judge.calibration.calibrate import acalibrate
from judge.calibration.guarantee import policy_of
from judge.calibration.labels import CalibrationJob
from judge.calibration.observe import LabelledAnswer
from judge.calibration.split import Split, clustered
from judge.configuration import resolve
from judge.local import store, teaching
from judge.local.adapter import TrainingExample
from judge.questions.from_flags import rubrics_from_flags
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.verdict import AnswerOutcome

from .asking import client, resources_of

SMALL = "smollm2-135m"
ANY = rubrics_from_flags("Is it polite?", [])[0]
MAIL = "Dear Ann, the parcel of May 3 has not come; please be so kind and look where it is, Bo"


def mail(record: str, text: str = MAIL, group: str = "", **more: str) -> LabelledItem:
    return LabelledItem(
        Record("", 0, {"mail": text, **more}, name=record), "question", gold="yes", group=group
    )


def parts_of(items: list[LabelledItem], rubric: Rubric = ANY) -> list[list[str]]:
    """The records of each cluster."""
    ((found,), _) = clustered([items], rubric)
    parts: dict[str, list[str]] = {}
    for item in found:
        parts.setdefault(item.cluster, []).append(item.record.id)
    return list(parts.values())


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (MAIL, True),
        (f"  {MAIL.upper()}!\n", True),
        (MAIL.replace("May", "\uff2d\uff41\uff59").replace(";", " -"), True),
        (MAIL.replace("kind", "good"), True),  # 18 of 20 words are in both
        (MAIL.replace("kind and look", "good and find"), False),  # 17 of 21
        (f"{MAIL} Smith", True),
        (f"{MAIL} Smith of 3 Long Lane", False),
    ],
)
def test_nine_tenths_of_the_words(other: str, same: bool) -> None:
    assert (parts_of([mail("a"), mail("b", other)]) == [["a", "b"]]) is same


def test_texts_without_blanks_between_words_count_by_their_signs() -> None:
    text = "晨光中她把信放进了旧木盒里面去到天黑才回"
    near, far = f"{text[:-1]}呀", f"{text[:-4]}呀哦呢吧"
    assert parts_of([mail("a", text), mail("b", near), mail("c", far)]) == [["a", "b"], ["c"]]


def test_texts_that_differ_in_their_vowel_marks_are_no_copies() -> None:
    boys, girls = "\u0932\u0921\u093c\u0915\u093e", "\u0932\u0921\u093c\u0915\u0940"  # Hindi
    assert parts_of([mail("a", boys), mail("b", girls)]) == [["a"], ["b"]]


def test_a_number_or_name_beside_a_text_makes_no_other_item_and_another_text_does() -> None:
    numbered = [mail(name, row=str(n), by=f"Ann {n}") for n, name in enumerate("ab")]
    asked = [mail(name, question=f"Who is the {name} here?") for name in "cd"]
    assert parts_of([*numbered, *asked]) == [["a", "b"], ["c"], ["d"]]
    # What the judge is not shown plays no part; where all is short, all is read.
    shown = rubrics_from_flags("Is it polite?", ["mail"])[0]
    assert parts_of(asked, shown) == [["c", "d"]]
    short = [mail(name, text) for name, text in zip("abc", ("Go!", "go", "no"), strict=True)]
    assert parts_of(short) == [["a", "b"], ["c"]]


def test_records_groups_and_texts_are_joined_throughout_and_in_all_sets() -> None:
    first = [mail("a", "one two three", "g=1"), mail("b", "four five six", "g=1"), mail("c", "x")]
    again = [mail("d", "Four, five, six."), mail("c", "seven eight nine"), mail("e", "y")]
    (one, other), joined = clustered([first, again], ANY)
    assert [item.cluster for item in one] == ["d", "d", "c"]
    assert [item.cluster for item in other] == ["d", "c", "e"]
    assert joined == 0  # Of the first set nothing was joined by its texts.
    assert clustered([first[:2], []], ANY)[1] == 0
    assert clustered([[*first, mail("f", "four five six")]], ANY)[1] == 1


Words = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30)


@given(st.lists(st.tuples(Words, st.lists(st.integers(0, 40), max_size=2)), max_size=8))
def test_against_all_pairs(made: list[tuple[list[str], list[int]]]) -> None:
    """Each text and copies of it that lack a word."""
    texts = [words for words, _ in made]
    texts += [[*words[:n], *words[n + 1 :]] or words for words, places in made for n in places]
    parts = [{n} for n in range(len(texts))]
    for one, other in combinations(range(len(texts)), 2):
        pair = [
            {(w, n) for w in set(t) for n in range(t.count(w))} for t in (texts[one], texts[other])
        ]
        short = [len(bag) < 3 for bag in pair]
        if 10 * len(pair[0] & pair[1]) >= 9 * len(pair[0] | pair[1]) or (
            all(short) and pair[0] == pair[1]
        ):
            both = [part for part in parts if part & {one, other}]
            parts = [part for part in parts if part not in both] + [set().union(*both)]
    found = parts_of([mail(str(n), " ".join(words)) for n, words in enumerate(texts)])
    assert sorted(map(sorted, found)) == sorted(sorted(map(str, part)) for part in parts)


def test_a_text_under_many_ids_is_neither_learnt_nor_guaranteed(tmp_path: Path) -> None:
    """40 texts, each under 10 ids in other spelling, with labels drawn by lot. What the judge reads
    off a text settles the label of its copies; that is no agreement."""
    rng = random.Random(3)
    words = [f"word{n}" for n in range(400)]
    rows, chance = [], {}
    for n in range(40):
        text, label = " ".join(rng.sample(words, 12)), rng.choice(["yes", "no"])
        chance[n] = (rng.uniform(0.6, 0.9), rng.uniform(0.1, 0.4))[label == "no"]
        for k in range(10):
            shown = {0: text, 1: text.upper(), 2: f"{text}.", 3: text.replace(" ", "\n")}[k % 4]
            rows.append({"id": f"r{n}-{k}", "mail": shown, "labels": {"polite": label}})
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(call: Call) -> float:
        return chance[int(call.origin.record[1:].partition("-")[0])]

    job = CalibrationJob([str(labels)], agreement=0.9, controls=False, draws=50)
    resources = resources_of(client("one", answer))
    resources.rubrics.by_name["polite"] = ANY.model_copy(update={"name": "polite"})
    found = asyncio.run(acalibrate(job, resources))
    (check,) = found.checks
    assert (check.records, check.clusters, check.joined) == (400, 40, 360)
    assert found.profile is None and "of 40 went into" in str(found.refused)


class Taught:
    """A trainer that learns nothing, and notes how often each of 30 mails is among its prompts."""

    counts: ClassVar[Counter[int]]

    def __init__(self, weights: Path, seed: int) -> None:
        assert weights.name and seed == 7

    def read(self, examples: Sequence[TrainingExample], words: Sequence[str]) -> Iterator[int]:
        text = [str(one.messages) for one in examples]
        type(self).counts = Counter(
            {n: sum(f"mail {n} of" in one for one in text) for n in range(30)}
        )
        yield len(examples)

    def teach(self, *_: object) -> Iterator[tuple[int, int, float]]:
        yield 1, 1, 0.5

    def write(self, path: Path, notes: Mapping[str, str]) -> None:
        path.write_text(str(notes))


@pytest.mark.skipif(
    store.entry(SMALL).here is None, reason=f"judge models pull {SMALL} has not been run"
)
def test_copies_of_a_text_are_all_taught_or_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 mails, each under four ids: what was taught by one would know the labels of the others."""
    monkeypatch.setattr(teaching, "Trainer", Taught)
    rows = [
        {"id": f"m{n}-{k}", "mail": f"This is mail {n} of all{'!' * k}", "labels": {"question": a}}
        for n in range(30)
        for k in range(4)
        for a in [("yes", "no")[n % 2]]
    ]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = {"ask": "Is it polite?", "on": ("mail",), "seed": 7}
    settings = resolve({"model": (f"local:{SMALL}",), **asked})
    found = teaching.teach(CalibrationJob([str(labels)]), settings, tmp_path / "a.gguf")
    assert (found.items, found.kept) == (84, 36)
    assert Counter(Taught.counts.values()) == {4: 21, 0: 9}


@pytest.mark.slow
@pytest.mark.parametrize("same", ["group", "text"])
def test_a_guarantee_holds_where_items_come_in_groups_or_copies(same: str) -> None:
    """Of 30 groups of 10 the judge agrees with 70 % throughout and with the others in half: 85 %.
    A promise of 90 % is wrong, and may be given in 5 % of 40 sets (6 at most with chance 0.997)."""
    rng, given = random.Random(5), 0
    for seed in range(40):
        items = []
        for number in range(30):
            right = rng.choices((1.0, 0.5), (0.7, 0.3))[0]
            for n in range(10):
                text = f"text {number} of it" if same == "text" else f"text {number} {n} here"
                group = f"by={number}" if same == "group" else ""
                gold = "yes" if rng.random() < right else "no"
                items.append(replace(mail(f"{number}-{n}", text, group), gold=gold))
        ((items,), _) = clustered([items], ANY)
        parts = Split.of(CalibrationJob(["x"], agreement=0.9, seed=seed), items, 1)
        kept, tested = (
            [LabelledAnswer(items[n], AnswerOutcome.ANSWERED, "yes") for n in part]
            for part in (parts.held_out, *parts.stages)
        )
        stage = policy_of([kept], [[tested]], 0.9, seed=seed).stages[0]
        given += stage.threshold is not None
        assert stage.coverage.of == len({one.item.cluster for one in tested})
    assert given <= 6
