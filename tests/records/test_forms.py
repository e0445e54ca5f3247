"""Published forms of label files, written here, and how each is read."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.records.labels import LabelledItem, read_labels

from .conftest import Written
from .found import answers, faults, item, read_back, sound


def given(found: list[Any]) -> list[tuple[str, str, str | None, dict[str, str]]]:
    """Of each item its record, its check, gold and the annotators' answers."""
    return [(one.record.id, one.check, one.gold, answers(one)) for one in sound(found)]


def prodigy(task: int, answer: str, **more: object) -> dict[str, object]:
    own = {"text": f"Text {task}", "_input_hash": task + 100, "_task_hash": task, "label": "RUDE"}
    return {**own, "_session_id": None, "_view_id": "classification", "answer": answer, **more}


def test_prodigy(write: Written) -> None:
    rows = [prodigy(1, "accept"), prodigy(2, "reject"), prodigy(3, "ignore"), prodigy(1, "accept")]
    found = read_back(write, *rows)
    assert given(found) == [
        ("1", "label", "yes", {}),
        ("2", "label", "no", {}),
        ("3", "label", "null", {}),
    ]
    assert [one.answered().left_out for one in sound(found)] == [0, 0, 1]
    assert sound(found)[0].record.visible == {"text": "Text 1", "category": "RUDE"}
    people = [
        prodigy(1, a, _annotator_id=f"db-{who}") for who, a in (("ann", "accept"), ("bo", "reject"))
    ]
    assert given(read_back(write, *people)) == [
        ("1", "label", None, {"db-ann": "yes", "db-bo": "no"})
    ]
    options = {"options": [{"id": "A"}, {"id": "B"}], "_annotator_id": "ann"}
    rows = [prodigy(1, "accept", accept=["B", "A"], **options)]
    rows += [prodigy(2, "ignore", accept=["A"], **options)]
    found = read_back(write, *rows)
    named = [("1", "label", None, {"ann": "b|a"}), ("2", "label", None, {"ann": "null"})]
    assert given(found) == named
    assert sound(found)[0].record.visible == {"text": "Text 1"}


def task(id: int, *answers: tuple[object, dict[str, object]], **more: object) -> dict[str, object]:
    """A task of Label Studio's full export."""
    annotations = [
        {
            "id": n,
            "completed_by": who,
            "was_cancelled": False,
            "result": [
                {"from_name": name, "to_name": "t", "type": "choices", "value": value}
                for name, value in results.items()
            ],
            **more,
        }
        for n, (who, results) in enumerate(answers)
    ]
    data = {"mail": f"Mail {id}", "meta": {"to": "Bo"}}
    return {"id": id, "data": data, "annotations": annotations, "predictions": [{"score": 1}]}


def test_label_studio(write: Written) -> None:
    yes, no = {"polite": {"choices": ["yes"]}}, {"polite": {"choices": ["no"]}}
    path = write(
        "a.json", json.dumps([task(1, (7, yes), (8, no)), task(2, ({"email": "a@b"}, no))])
    )
    found = list(read_labels(str(path)))
    assert given(found) == [
        ("1", "label", None, {"7": "yes", "8": "no"}),
        ("2", "label", None, {"a@b": "no"}),
    ]
    assert sound(found)[0].record.visible == {"mail": "Mail 1", "meta": {"to": "Bo"}}
    assert given(list(read_labels(str(path), "polite")))[0][1] == "polite"
    both: dict[str, object] = {**yes, "clear": {"rating": 4}, "why": {"text": ["Too long."]}}
    path = write("b.json", json.dumps([task(1, (7, both)), task(2, (7, yes), was_cancelled=True)]))
    assert {(check, *one.values()) for _, check, _, one in given(list(read_labels(str(path))))} == {
        ("polite", "yes"),
        ("clear", "4"),
        ("why", "too long"),
    }
    (one,) = given(list(read_labels(str(path), columns={"label": "clear"})))
    assert one == ("1", "label", None, {"7": "4"})
    gold = write("c.json", json.dumps([task(1, (7, yes), ground_truth=True)]))
    assert given(list(read_labels(str(gold)))) == [("1", "label", "yes", {})]
    twice = write("d.json", json.dumps([task(1, (7, yes), (8, yes), (7, no)), task(2, (7, no))]))
    first, second = read_labels(str(twice))
    assert faults([first]) == [(1, "annotator '7' answers polite twice: 'yes', 'no'")]
    assert given([second]) == [("2", "label", None, {"7": "no"})]


def test_label_studio_min(write: Written) -> None:
    about = {
        "annotator": 1,
        "annotation_id": 5,
        "created_at": "x",
        "updated_at": "y",
        "lead_time": 2,
    }
    path = write("a.json", json.dumps([{"id": 3, "mail": "Hi", "polite": "yes", **about}]))
    (one,) = list(read_labels(str(path), columns={"label": "polite"}))
    assert given([one]) == [("3", "label", None, {"1": "yes"})]
    assert isinstance(one, LabelledItem) and one.record.visible == {"mail": "Hi"}
    with pytest.raises(UsageError, match=r"--map label=COLUMN.*'polite'"):
        list(read_labels(str(path)))


ARGILLA: dict[str, dict[str, Any]] = {
    "columns": {
        "polite.responses": ["yes", "no", "no"],
        "polite.responses.users": ["u1", "u2", "u3"],
        "polite.responses.status": ["submitted", "discarded", "submitted"],
        "polite.suggestion": "yes",
        "polite.suggestion.score": 0.9,
        "mail": "Hi",
    },
    "records": {
        "fields": {"mail": "Hi"},
        "suggestions": {"polite": {"value": "yes"}},
        "responses": {
            "polite": [
                {"value": "yes", "user_id": "u1"},
                {"value": "no", "user_id": "u2", "status": "draft"},
                {"value": "no", "user_id": "u3", "status": "submitted"},
            ]
        },
    },
    "records of version 1": {
        "fields": {"mail": "Hi"},
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"polite": {"value": "yes"}}},
            {"user_id": "u2", "status": "discarded", "values": None},
            {"user_id": "u3", "status": "submitted", "values": {"polite": {"value": "no"}}},
        ],
    },
}


@pytest.mark.parametrize("form", ARGILLA)
def test_argilla(write: Written, form: str) -> None:
    found = read_back(write, {"id": "r1", "status": "completed", **ARGILLA[form]})
    assert given(found) == [("r1", "label", None, {"u1": "yes", "u3": "no"})]
    assert sound(found)[0].record.visible == {"mail": "Hi"}


PAIR = {"instruction": "Say hi.", "output_1": "Hi!", "output_2": "No."}


def test_alpaca_eval(write: Written) -> None:
    about = {"generator_1": "a", "generator_2": "b", "dataset": "x", "raw_completion": "m"}
    rows = [
        {**PAIR, **about, "annotator": who, "preference": preference}
        for who, preference in (("w", 1.0), ("x", 2.0), ("y", 1.5), ("z", 1.98), ("n", None))
    ]
    found = list(read_labels(str(write("annotations.json", json.dumps(rows)))))
    assert answers(item(found)) == {"w": "output_1", "x": "output_2", "y": "tie", "z": "output_2"}
    assert item(found).record.visible == PAIR
    table = [",".join(rows[0])] + [",".join(str(c or "") for c in row.values()) for row in rows]
    found = list(read_labels(str(write("annotations.csv", "\n".join(table)))))
    assert answers(item(found)) == {"w": "output_1", "x": "output_2", "y": "tie", "z": "output_2"}


def battle(winner: str, judge: object, turn: int = 1, **more: object) -> dict[str, object]:
    talks = {
        f"conversation_{side}": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": side},
        ]
        for side in "ab"
    }
    own = {"question_id": 81, "model_a": "m1", "model_b": "m2", "winner": winner, "judge": judge}
    return {**own, **talks, "turn": turn, **more}


def test_judgments_of_mt_bench_and_of_the_arena(write: Written) -> None:
    rows = [
        battle("model_b", "expert_1"),
        battle("tie", "expert_2"),
        battle("model_a", ["gpt-4", "pair-v2"]),
        battle("tie (bothbad)", "arena_user_9", turn=2, language="English", anony=True),
    ]
    found = read_back(write, *rows)
    first = {"expert_1": "conversation_b", "expert_2": "tie", "gpt-4+pair-v2": "conversation_a"}
    assert given(found) == [
        ("81+m1+m2+1", "label", None, first),
        ("81+m1+m2+2", "label", None, {"arena_user_9": "tie"}),
    ]
    assert sound(found)[0].record.visible.keys() == {"conversation_a", "conversation_b"}
    (bad,) = read_back(write, battle("model_c", "x"))
    assert "must be one of conversation_a, conversation_b, tie" in faults([bad])[0][1]


def test_both_orders_of_two_models_are_one_question(write: Written) -> None:
    """MT-Bench's people beside FastChat's judge, as FastChat counts their agreement."""
    human = battle("model_b", "expert_1", model_a="m2", model_b="m1")
    human["conversation_a"], human["conversation_b"] = (
        human["conversation_b"],
        human["conversation_a"],
    )
    pair = {"question_id": 81, "turn": 1, "judge": ["gpt-4", "pair-v2"]}
    orders = [
        pair | {"model_1": "m1", "model_2": "m2", "g1_winner": "model_1", "g2_winner": "model_1"},
        pair | {"model_1": "m2", "model_2": "m1", "g1_winner": "model_2", "g2_winner": "model_2"},
        pair | {"model_1": "m2", "model_2": "m1", "g1_winner": "model_2", "g2_winner": "tie"},
    ]
    same = item(read_back(write, battle("model_a", "expert_1")))
    turned = item(read_back(write, human))
    assert (turned.record, turned.annotations) == (same.record, same.annotations)
    names = [("81+m1+m2+1", "label", None, {"gpt-4+pair-v2": "conversation_a"})] * 2
    names += [("81+m1+m2+1", "label", None, {"gpt-4+pair-v2": "tie"})]
    assert [given(read_back(write, one))[0] for one in orders] == names


def test_judgebench(write: Written) -> None:
    row = {
        "question": "Q",
        "response_A": "a",
        "response_B": "b",
        "response_model": "m",
        "source": "s",
    }
    rows = [{**row, "pair_id": f"p{n}", "label": label} for n, label in enumerate(("A>B", "B>A"))]
    found = read_back(write, *rows)
    assert [one.gold for one in sound(found)] == ["response_A", "response_B"]
    assert sound(found)[0].record.visible == {"question": "Q", "response_A": "a", "response_B": "b"}


def test_pandalm(write: Written) -> None:
    row = {"instruction": "I", "input": "", "response1": "x", "response2": "y", "cmp_key": "a_b"}
    votes = {"annotator1": 1, "annotator2": 2, "annotator3": 0}
    path = write("a.json", json.dumps([{"idx": 7, **row, **votes}]))
    (one,) = list(read_labels(str(path)))
    named = {"annotator1": "response1", "annotator2": "response2", "annotator3": "tie"}
    assert given([one]) == [("7", "label", None, named)]
    assert isinstance(one, LabelledItem) and one.record.visible.keys() == {*row} - {"cmp_key"}
    (one,) = list(read_labels(str(path), columns={"item": "idx", "label": "annotator1"}))
    assert given([one]) == [("7", "label", "1", {})]
    assert isinstance(one, LabelledItem) and not one.record.visible.keys() & votes.keys()


def test_safe_rlhf(write: Written) -> None:
    row = {"prompt": "P", "response_0": "x", "response_1": "y", "safer_response_id": 1}
    found = item(read_back(write, {**row, "better_response_id": 0, "is_response_0_safe": True}))
    assert (found.gold, {*found.record.visible}) == (
        "response_0",
        {"prompt", "response_0", "response_1"},
    )


@pytest.mark.parametrize("messages", [False, True])
def test_the_place_of_the_better_text_tells_nothing(write: Written, messages: bool) -> None:
    def said(text: str) -> object:
        return [{"role": "assistant", "content": text}] if messages else f"\n\nHuman: {text}"

    rows = [
        {"chosen": said(f"good {n}"), "rejected": said(f"bad {n}"), "score_chosen": 9}
        for n in range(200)
    ]
    found = sound(read_back(write, *rows))
    places = Counter(one.gold for one in found)
    assert 70 < places["response_1"] < 130 and len(places) == 2
    assert all("good" in str(one.record.visible[str(one.gold)]) for one in found)
    assert {frozenset(one.record.visible) for one in found} == {
        frozenset({"response_1", "response_2"})
    }
    assert [one.gold for one in sound(read_back(write, *rows[50:]))] == [
        one.gold for one in found[50:]
    ]


SURVEY = [["mail", "Is it polite, yes or no?", "ann", "bo", "n"], ["Hi", "yes", "1", "2", "4"]]


def survey(write: Written, *rows: list[str]) -> Path:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([*SURVEY, *rows])
    return write("a.csv", out.getvalue())


def test_columns_of_annotators(write: Written) -> None:
    path = survey(write, ["Ho", "no", "", "2", "4"])
    found = list(read_labels(str(path), columns={"annotators": "ann+bo"}))
    assert [answers(one) for one in sound(found)] == [{"ann": "1", "bo": "2"}, {"bo": "2"}]
    assert sound(found)[0].record.visible.keys() == {"mail", SURVEY[0][1], "n"}
    (bad, _) = read_labels(str(path), columns={"annotators": "ann+cy"})
    assert "has no field 'cy', its fields are" in faults([bad])[0][1]


@pytest.mark.parametrize("columns", ["ann+bo", "bo+ann"])
def test_of_a_row_that_cannot_be_used_no_label_counts(write: Written, columns: str) -> None:
    path = write("survey.csv", "id,ann,bo\n1,yes,\n1,no,no\n")
    found = list(read_labels(str(path), columns={"annotators": columns}))
    assert answers(item([one for one in found if isinstance(one, LabelledItem)])) == {"ann": "yes"}
    rows = [one for one in found if not isinstance(one, LabelledItem)]
    assert faults(rows) == [(3, "annotator 'ann' labelled item '1' on an earlier line already")]


def test_a_label_column_alone_and_an_item_of_several_columns(write: Written) -> None:
    path = survey(write, ["Hi", "no", "1", "2", "5"])
    column = SURVEY[0][1]
    found = list(read_labels(str(path), columns={"label": column}))
    assert given(found) == [("a.csv#2", "label", "yes", {}), ("a.csv#3", "label", "no", {})]
    assert sound(found)[0].record.visible.keys() == {"mail", "ann", "bo", "n"}
    named = {"label": column, "item": "mail+n", "annotator": "ann"}
    found = list(read_labels(str(path), columns=named))
    assert given(found) == [
        ("Hi+4", "label", None, {"1": "yes"}),
        ("Hi+5", "label", None, {"1": "no"}),
    ]
    with pytest.raises(UsageError, match=r"--map item=A\+B"):
        list(read_labels(str(path), columns={"label": column, "annotator": "ann"}))


def test_a_path_and_another_field_under_a_new_name(write: Written) -> None:
    row = {"id": 1, "body": {"text": "Hi"}, "meta": {"votes": {"final": "no"}}}
    found = read_back(write, row, columns={"label": "meta.votes.final", "mail": "body.text"})
    assert given(found) == [("1", "label", "no", {})]
    shown = {"id": 1, "mail": "Hi", "body": {"text": "Hi"}, "meta": {"votes": {}}}
    assert item(found).record.visible == shown
