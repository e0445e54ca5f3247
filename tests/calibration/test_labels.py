"""Labels: which count, which are left out and named, how they are split, what a judge is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.calibration.labels import CalibrationJob, gather
from judge.calibration.observe import key_of, record_for
from judge.calibration.split import split
from judge.errors import UsageError
from judge.questions.ready_made import builtin, ready
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem

from .asking import MANY, PLAIN, norm

Written = Callable[..., str]
TEACHING = Path(__file__).parents[2] / "docs" / "examples" / "teaching" / "passage.yaml"
RUBRICS = {**builtin(), PLAIN.name: PLAIN, MANY.name: MANY}


def rubric_of(check: str) -> Rubric:
    if check not in RUBRICS:
        raise UsageError(f"no rubric is called {check!r}")
    return RUBRICS[check]


def gathered(*sources: str, **more: Any) -> tuple[dict[str, list[LabelledItem]], list[Record]]:
    return gather(CalibrationJob(sources, **more), rubric_of)[:2]


def told(problems: Sequence[Record]) -> list[tuple[str, int, str]]:
    return [(one.source, one.line, one.problem.message if one.problem else "") for one in problems]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    monkeypatch.chdir(tmp_path)

    def lines(name: str, rows: Sequence[Mapping[str, Any]], more: str = "") -> str:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows) + more)
        return name

    return lines


def test_lines_that_cannot_be_read_come_apart(write: Written) -> None:
    rows = [norm(f"r{n}", {"plain": "yes"}) for n in range(6)]
    source = write("labels.jsonl", rows, "not JSON\n")
    found, problems = gathered(source)
    assert [item.record.id for item in found["plain"]] == [f"r{n}" for n in range(6)]
    assert [(item.source, item.line) for item in problems] == [("labels.jsonl", 7)]
    first = r"no labels for many; there are labels for plain; a line that cannot be used "
    with pytest.raises(UsageError, match=first):
        gathered(source, checks=["many"])
    with pytest.raises(UsageError, match="no labels at all; a line"):
        gathered(write("nothing.jsonl", [], "not JSON\n"))


def test_a_sample_is_of_records_of_each_source(write: Written) -> None:
    one = write("one.jsonl", [norm(f"r{n}", {"plain": "yes"}) for n in range(20)])
    two = write("two.jsonl", [norm(f"s{n}", {"plain": "no"}) for n in range(20)])
    found, _ = gathered(one, two, records=5)
    assert len(found["plain"]) == 10
    assert len({item.record.id for item in found["plain"]}) == 10
    again, _ = gathered(one, two, records=5)
    assert found == again
    other, _ = gathered(one, two, records=5, seed=1)
    assert found != other
    single, _ = gathered(one, two, records={one: 5, two: None})
    assert len(single["plain"]) == 25


def test_what_is_no_answer_to_the_rubric_is_left_out_and_named(write: Written) -> None:
    rows = [
        norm("a", {"plain": "yes", "many": "perhaps"}),
        norm("b", {"plain": "sometimes"}),
        norm("c", {"plain": {"ann": "yes", "bo": "maybe", "cy": "yes"}}),
        norm("d", {"plain": True}),
    ]
    source = write("labels.jsonl", rows)
    found, problems = gathered(source)
    assert [item.record.id for item in found["plain"]] == ["a", "d"]
    assert told(problems) == [
        ("labels.jsonl", 1, "label 'many' must be one of yes, no, not 'perhaps'"),
        ("labels.jsonl", 2, "label 'plain' must be one of yes, no, not 'sometimes'"),
        ("labels.jsonl", 3, "label 'plain' of 'bo', item 'c', must be one of yes, no, not 'maybe'"),
    ]
    # What is not asked for is not looked at, and a sample is drawn from what can be used.
    assert len(gathered(source, checks=["plain"])[1]) == 2
    assert len(gathered(source, checks=["plain"], records=2)[0]["plain"]) == 2
    with pytest.raises(UsageError, match=r"no labels for many; .* labels.jsonl:1: label 'many' mu"):
        gathered(source, checks=["many"])


def test_an_unknown_check_is_told_with_its_line(write: Written) -> None:
    source = write("labels.jsonl", [norm("a", {"plain": "yes"}), norm("b", {"plane": "yes"})])
    with pytest.raises(UsageError) as refused:
        gathered(source)
    assert str(refused.value) == (
        "labels.jsonl:2: label 'plane': no rubric is called 'plane'; name the checks that are "
        "meant with --check, or the rubric's file with --rubric"
    )
    assert gathered(source, checks=["plain"])[1] == []
    with pytest.raises(UsageError, match=r"labels.jsonl:2: label 'plane': no .* 'plane'$"):
        gathered(source, checks=["plane"])


def test_a_table_is_about_the_check_that_is_named(write: Written, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "item,annotator,label,rule_of_thumb,story\n"
        "a,ann,yes,Greet.,Ann greets.\na,bo,maybe,Greet.,Ann greets.\nb,ann,no,Greet.,Bo leaves.\n"
    )
    with pytest.raises(UsageError, match=r"^t.csv:2: label 'label': .*; name the check with --ch"):
        gathered("t.csv")
    found, problems = gathered("t.csv", checks=["plain"])
    assert [(item.record.id, item.check) for item in found["plain"]] == [("b", "plain")]
    assert told(problems) == [
        ("t.csv", 2, "label 'plain' of 'bo', item 'a', must be one of yes, no, not 'maybe'")
    ]
    # A source that says what its labels are about is taken at its word.
    own = write("own.jsonl", [norm("c", {"plain": "yes", "label": "other"})])
    assert [item.record.id for item in gathered(own, checks=["plain"])[0]["plain"]] == ["c"]


def test_an_item_that_an_earlier_source_had_counts_once(write: Written) -> None:
    rows = [norm("a", {"plain": "yes"}), norm("b", {"plain": "no"})]
    one = write("one.jsonl", rows)
    found, problems = gathered(one, f"./{one}")
    assert [item.record.id for item in found["plain"]] == ["a", "b"]
    assert [(source, line) for source, line, _ in told(problems)] == [(one, 1), (one, 2)]
    # Another story under the same id is another item; another check about the same story as well.
    changed = {**rows[1], "story": "Bo walks on."}
    two = write("two.jsonl", [rows[0], changed])
    three = write("three.jsonl", [norm("b", {"many": "yes"})])
    found, problems = gathered(one, two, three)
    assert [len(found["plain"]), len(found["many"])] == [3, 1]
    assert told(problems) == [
        (
            "two.jsonl",
            1,
            "label 'plain': item 'a' was already on one.jsonl:1; give each item once, with all of "
            "its answers",
        )
    ]
    # The same records are drawn from both, so that a sample would be doubled unseen.
    assert len(gathered(one, f"./{one}", records=1)[0]["plain"]) == 1


def test_answers_of_other_people_in_another_file_join(write: Written) -> None:
    """As one file with all of them; a sheet has the fields that people were shown alone."""
    whole = write("ann.jsonl", [norm("a", {"plain": {"ann": "yes"}})])
    shown = {"item": "a", "check": "plain", **norm("a", {})}
    del shown["labels"], shown["id"]
    rows = [{**shown, "annotator": name, "label": "no"} for name in ("bo", "cy")]
    rows[1]["comment"] = "a column of her own"
    bo, cy = (write(f"{row['annotator']}.jsonl", [row]) for row in rows)
    dan = write("dan.jsonl", [{**rows[1], "annotator": "dan", "comment": "another"}])
    ((item,),) = gathered(cy, dan)[0].values()
    assert [one.annotator for one in item.annotations] == ["cy", "dan"]
    found, problems = gathered(whole, bo, cy)
    (item,) = found["plain"]
    assert [(one.annotator, one.answer) for one in item.annotations] == [
        *(("ann", "yes"), ("bo", "no"), ("cy", "no"))
    ]
    assert item.reference == "no" and not problems
    drawn = {**norm("a", {"plain": {"eve": "no"}}), "annotators": {"eve": {"weight": 9}}}
    eve = write("eve.jsonl", [drawn])
    for files in ((eve, bo), (bo, eve)):
        ((item,),) = gathered(*files)[0].values()
        assert item.weight == 9, "whichever file comes first"
    again = write("again.jsonl", [{**rows[0], "annotator": "ann"}])
    found, problems = gathered(whole, again)
    assert len(found["plain"]) == 1 and "already on ann.jsonl:1" in told(problems)[0][2]


# ---------------------------------------------------------------- splitting


def about(record: str, reference: str | None = "yes") -> LabelledItem:
    return LabelledItem(Record("", 0, {}, name=record), "plain", gold=reference)


Items = st.lists(
    st.builds(
        about,
        st.integers(0, 12).map(lambda number: f"r{number}"),
        st.sampled_from(["yes", "no", None]),
    ),
    max_size=40,
)
Shares = st.sampled_from([[0.5, 0.5], [0.9, 0.1], [0.5, 0.25, 0.25], [0.5, 0.2, 0.15, 0.15]])


@given(Items, Shares, st.integers(0, 5))
def test_every_item_is_in_one_part_and_every_record_whole(
    items: list[LabelledItem], shares: list[float], seed: int
) -> None:
    parts = split(items, shares, seed)
    assert len(parts) == len(shares)
    assert sorted(place for part in parts for place in part) == list(range(len(items)))
    assert all(part == sorted(part) for part in parts)
    records = [{items[place].record.id for place in part} for part in parts]
    assert sum(map(len, records)) == len(set.union(*records))


# ---------------------------------------------------------------- what a judge is shown

STORY = {
    "story": "An shook her head. Bo left.",
    "values": ["Pears are good--Agree", "Plums are good--Disagree"],
}


@pytest.mark.parametrize(
    ("check", "fields", "number", "told"),
    [
        ("incorporation", STORY, 3, "the record has no value 3"),
        ("incorporation", STORY, 0, "the label is about the record, the check about its values"),
        ("relevance", {"rule_of_thumb": "Greet.", "story": "x"}, 1, "the label is about an entry"),
        ("irony", {"post": "a"}, 0, "the record has no reply"),
        ("incorporation", {"values": ["one--Agree"]}, 1, "field 'story' is missing"),
    ],
)
def test_why_an_item_cannot_be_put_to_a_judge(
    check: str, fields: dict[str, Any], number: int, told: str
) -> None:
    item = LabelledItem(Record("", 0, fields, name="a"), check, number=number, gold="yes")
    problem = record_for(item, builtin()[check]).problem
    assert problem is not None and problem.message.startswith(told)


def test_answers_in_a_list_are_held_against_no_other_entries(tmp_path: Path) -> None:
    """An empty claim is no entry, so that the second of three answers is not about claim two."""
    claims = ["", "It is red.", "It is round."]
    # That a record has values, as a story has, does not matter: they are not asked about.
    record = {"contexts": ["x"], "story": "s", "values": ["v--Agree"]}
    lines = [
        {**record, "id": "a", "claims": claims, "labels": {"faithful": [None, "yes", "no"]}},
        {**record, "id": "b", "claims": claims[1:], "labels": {"faithful": ["yes", "no"]}},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    rubric = ready("faithful")
    assert rubric is not None
    found = gather(CalibrationJob((str(path),)), {"faithful": rubric}.__getitem__)
    assert [(item.record.id, item.number) for item in found.items["faithful"]] == [
        ("b", 1),
        ("b", 2),
    ]
    told = "label 'faithful' needs an answer for each entry of claims that is not empty: 2, not 3"
    assert [(one.line, one.fault) for one in found.problems] == [(1, told)]


def test_the_reference_stands_in_for_a_label_that_the_record_lacks() -> None:
    rubric = builtin()["entailment"]
    texts = {"premise": "It rains.", "hypothesis": "It is wet."}
    for label, expected in (({}, "neutral"), ({"label": "entailment"}, "entailment")):
        item = LabelledItem(Record("", 1, {**texts, **label}), "entailment", gold="neutral")
        assert record_for(item, rubric).usable().label == expected
    # Where people do not agree there is no reference, and yet something to compare them with.
    for nobody in (None, "entailment|neutral"):
        item = LabelledItem(Record("", 0, texts, name="a"), "entailment", gold=nobody)
        assert record_for(item, rubric).problem is None


def test_a_taught_item_is_known_by_all_that_its_judge_sees_and_by_nothing_else() -> None:
    rubric = Rubric.from_file(TEACHING)
    seen = {"story": "Ann waited.", "value": "Waiting is good--Agree"}
    item = LabelledItem(Record("", 1, seen), rubric.name, gold="neither")

    def key(**changes: str) -> str:
        return key_of(replace(item, record=item.record.with_fields(changes)), rubric)

    assert key(group="a") == key_of(item, rubric) != ""
    assert len({key_of(item, rubric), key(story="Bo left."), key(value="Bo--Agree")}) == 3
    # Without the value there is nothing to ask.
    assert key_of(replace(item, record=Record("", 1, {"story": "Ann waited."})), rubric) == ""


def test_records_of_two_sources_with_one_id_are_two_unless_their_fields_agree(
    write: Written,
) -> None:
    one = write("one.jsonl", [{"id": "a", "text": "Hi.", "labels": {"plain": "yes"}}])
    for other in ({"mail": "Hi."}, {"mail": "Hi.", "text": "Bye."}, {"mail": "Hi.", "from": "Bo"}):
        two = write("two.jsonl", [{"id": "a", **other, "labels": {"plain": "yes"}}])
        found, problems = gathered(one, two)
        assert [item.record.source for item in found["plain"]] == ["one.jsonl", "two.jsonl"]
        assert problems == [], other
