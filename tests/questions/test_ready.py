"""The ready-made rubrics and their fixtures."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.calibration.observe import record_for
from judge.questions.ready_made import GROUPS, builtin, ready, ready_made
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem, read_labels
from tests.cli.typed import Typed

READY = sorted(ready_made())
FIXTURES = Path(__file__).parents[2] / "fixtures" / "ready"


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Typed:
    return Typed(tmp_path, monkeypatch, capfd)


def rubric_called(name: str) -> Rubric:
    rubric = ready(name)
    assert rubric is not None
    return rubric


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines()]


def test_each_has_a_name_of_its_own_a_group_and_a_fixture() -> None:
    assert not {*READY} & {*builtin()}
    assert {*ready_made().values()} == {*GROUPS}
    assert {path.stem for path in FIXTURES.iterdir()} == {*READY}


@pytest.mark.parametrize("name", READY)
def test_its_fixture_can_be_judged_and_has_both_answers(name: str) -> None:
    rubric = rubric_called(name)
    assert rubric.name == name and rubric.title.endswith("?") and rubric.question
    assert rubric.control and rubric.role == "judge"
    found = [*read_labels(str(FIXTURES / f"{name}.jsonl"))]
    items = [item for item in found if isinstance(item, LabelledItem)]
    assert not [item for item in found if isinstance(item, Record)]
    assert {item.check for item in items} == {name}
    assert [p for item in items if (p := record_for(item, rubric).problem)] == []
    counts = Counter(item.reference for item in items)
    assert {*counts} == {*rubric.answers} and min(counts.values()) >= 0.3 * counts.total()
    records = rows(name)
    assert len({record["id"] for record in records}) == len(records) >= 20
    # Neither the label nor the planted fault is shown, and the one says what the other does.
    assert not {"labels", "fault"} & {*rubric.required}
    for record in records:
        labels = record["labels"][name]
        sound = {*([labels] if isinstance(labels, str) else labels)} <= {*rubric.passes}
        assert (record["fault"] is None) == sound, record["id"]


@pytest.mark.parametrize("name", READY)
def test_its_plan_asks_each_record_of_the_fixture(name: str, typed: Typed) -> None:
    judge = typed.script("yes.json", [{"p_yes": 0.9}])
    path = str(FIXTURES / f"{name}.jsonl")
    code, out, told = typed.text("plan", path, "--rubric", name, "-m", judge)
    assert code == 0, told
    labels = [row["labels"][name] for row in rows(name)]
    items = sum(1 if isinstance(label, str) else len(label) for label in labels)
    assert f"{name} (final) {items} {items} {len(labels)} records" in " ".join(out.split())


# Of each rubric a judge that never looks at the deciding field: it knows every label by the other
# field, or by the record's id.
IGNORING = {
    "faithful": "contexts",
    "answers_question": "answer",
    "correct": "reference",
    "summary_good": "summary",
    "translation_adequate": "translation",
}


@pytest.mark.parametrize(("name", "field"), IGNORING.items())
def test_a_judge_that_ignores_the_text_is_exposed(name: str, field: str, typed: Typed) -> None:
    knowing: list[dict[str, Any]] = []
    for row in rows(name):
        labels = row["labels"][name]
        for n, label in enumerate([labels] if isinstance(labels, str) else labels):
            about = {"id": row["id"]} if isinstance(labels, str) else {"contains": row["claims"][n]}
            knowing.append({"when": about, "p_yes": 0.9 if label == "yes" else 0.1})
    scripts = {"knowing": knowing, "yes": [{"p_yes": 0.9}]}
    said = {}
    for judge, replies in scripts.items():
        model = typed.script(f"{judge}.json", replies, method="logprobs")
        path = str(FIXTURES / f"{name}.jsonl")
        code, out, told = typed.text("calibrate", path, "--rubric", name, "-m", model)
        assert code == 0, told
        said[judge] = " ".join(out.split())
    assert f"kappa 1.00; without {field} 1.00; difference 0.00" in said["knowing"]
    unread = f"agreement does not fall without {field}: it is not shown that the judge reads it"
    assert unread in said["knowing"]
    assert f"no agreement, with {field} or without it" in said["yes"]


# ---------------------------------------------------------------- as typed


def test_list_groups_them_and_show_prints_a_file(typed: Typed) -> None:
    code, out, _ = typed.text("rubrics", "list")
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    heads = [line.split()[0] for line in out.splitlines() if " needs " in line]
    assert heads == [*GROUPS, "workflows"]
    first = [line.split()[0] for line in out.split("text  ")[0].splitlines() if line[:1].isalpha()]
    assert first[1:] == [name for name, group in ready_made().items() if group == "answers"]
    code, out, _ = typed.text("rubrics", "show", "polite")
    (typed.folder / "mine.yaml").write_text(out)
    assert code == 0 and Rubric.from_file("mine.yaml") == ready("polite")
    assert "did you mean polite?" in typed.text("rubrics", "show", "polit")[2]


def test_a_field_that_is_missing_is_named_and_mapped(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"id": 1, "mail": "Thank you."}, {"id": 2, "mail": "Go away."}])
    ignored = typed.script("no.json", [{"reply": {"quote": None, "reason": "", "answer": "yes"}}])
    asked = ("validate", "mails.jsonl", "--rubric", "polite", "-m", ignored, "-q")
    said = typed.text(*asked)[2]
    told = "judge: rubric polite: text: no record has this field; the first has ['mail'] (--map "
    assert f"{told}text=COLUMN names yours)" in said
    code, out, said = typed.text(*asked, "--map", "text=mail")
    assert (code, said) == (0, "")
    assert [json.loads(line)["judge"]["verdict"] for line in out.splitlines()] == ["pass", "pass"]


def test_a_name_without_its_flag_is_answered_with_what_to_type(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"text": "Thank you.", "labels": {"polite": "yes"}}])
    judge = typed.script("yes.json", [{"p_yes": 0.9}])
    for command, flags in (("validate", ("--check", "polite")), ("calibrate", ())):
        code, _, said = typed.text(command, "mails.jsonl", *flags, "-m", judge)
        assert code == 2 and "--rubric polite asks it" in said


def test_a_file_of_the_same_name_is_the_users_own(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"mail": "Thank you."}])
    (typed.folder / "polite.yaml").write_text("name: polite\nquestion: Kind?\nfields: [mail]\n")
    judge = typed.script("yes.json", [{"when": {"contains": "Kind?"}, "p_yes": 0.9}])
    words = ("validate", "mails.jsonl", "--rubric", "polite.yaml", "-m", judge, "-q")
    code, out, said = typed.text(*words, "--method", "logprobs")
    assert (code, said) == (0, "") and json.loads(out)["judge"]["verdict"] == "pass"
    said = typed.text(*words, "--rubric", "polite")[2]
    assert "two rubrics are called polite, one from polite.yaml and one from polite" in said


def test_a_question_reads_no_rubric_file_and_a_name_reads_its_own_alone(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"text": "Thank you."}])
    judge = typed.script("yes.json", [{"p_yes": 0.9}], method="logprobs")
    builtin.cache_clear(), ready.cache_clear()
    assert typed("validate", "mails.jsonl", "--ask", "Kind?", "-m", judge, "-q").returncode == 0
    assert (builtin.cache_info().misses, ready.cache_info().misses) == (0, 0)
    assert typed("validate", "mails.jsonl", "--rubric", "polite", "-m", judge).returncode == 0
    assert ready.cache_info().misses == 1
