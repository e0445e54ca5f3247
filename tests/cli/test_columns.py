"""Columns under other names, and samples spread over a field, as typed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from .conftest import cells, lines
from .typed import Typed

ROW = {"id": 1, "Labeled_Dialogue": "Ann waited.", "American_Norm": "One waits.", "n": 0.5}
MAP = ("--map", "story=Labeled_Dialogue,rule_of_thumb=American_Norm")
NORM = ("-m", "scripted:yes.yaml", "--check", "relevance")


def test_judges_see_the_new_names_and_the_line_keeps_its_own(typed: Typed) -> None:
    source = json.dumps(ROW).replace("0.5", "0.50") + "\n"
    (typed.folder / "a.jsonl").write_text(source)
    done = typed("validate", "a.jsonl", *NORM, *MAP, "--no-cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(source.encode()[:-2] + b',"judge":')
    (line,) = lines(done.stdout)
    assert (line["judge"]["verdict"], line["judge"]["workflow"]) == ("pass", "norm")
    planned = typed("plan", "a.jsonl", *NORM, *MAP)
    assert b"1 record" in planned.stdout and b"cannot be asked" not in planned.stdout


def test_the_text_of_the_column_is_what_is_asked_about(typed: Typed) -> None:
    # The stand-in says yes only to a prompt that shows this text.
    shown = {"contains": "]\nDear Ann\n[end "}
    replies = [{"when": shown, "p_yes": 0.9}, {"p_yes": 0.1}]
    typed.script("shown.yaml", replies, method="logprobs")
    record = {"id": 1, "meta": {"parts": {"body": "Dear Ann"}}, "mail.to": "Bo"}
    typed.write("a.jsonl", [record])
    asked = ("--ask", "Is it polite?", "--on", "mail", "--on", "to", "-m", "scripted:shown.yaml")
    done = typed(
        "validate", "a.jsonl", *asked, "--map", "mail=meta.parts.body", "--map", "to=mail.to"
    )
    (line,) = lines(done.stdout)
    assert {key: line[key] for key in record} == record
    assert line["judge"]["verdict"] == "pass", line
    without = typed("validate", "a.jsonl", *asked, "--map", "mail=meta.parts.body")
    assert (without.returncode, without.stdout) == (2, b"")


@pytest.mark.parametrize(
    "words", [("--on", "café"), ("--map", "mail=café"), ("--on", "mail", "--map", "mail=café.né")]
)
def test_a_name_of_combining_characters_is_the_composed_one(
    typed: Typed, words: tuple[str, ...]
) -> None:
    """As macOS and PDF write é; without --on, the field is shown once, under its new name."""
    replies = [{"when": {"contains": "Thanks.", "lacks": "cafe"}, "p_yes": 0.9}, {"p_yes": 0.1}]
    typed.script("once.yaml", replies, method="logprobs")
    content: Any = {"ne\u0301": "Thanks."} if "mail=café.né" in words else "Thanks."
    typed.write("a.jsonl", [{"cafe\u0301": content}])
    asked = ("--ask", "Is it polite?", "-m", "scripted:once.yaml")
    (line,) = lines(typed("validate", "a.jsonl", *asked, *words).stdout)
    assert line["judge"]["verdict"] == "pass" and line["cafe\u0301"] == content, line
    assert b"\n1 record\n" in typed("plan", "a.jsonl", *asked, *words).stdout
    typed.write("a.jsonl", [{"cafe\u0301": content, "café": content}])
    (line,) = lines(typed("validate", "a.jsonl", *asked, *words).stdout)
    assert "have the same name: rename one" in line["judge"]["error"]["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("--ask", "Polite?", "--on", "café"),
        ("--ask", "Polite?", "--on", "mail", "--map", "mail=café"),
        ("--test", "café: {contains: Thanks}"),
    ],
)
def test_a_run_goes_on_whichever_way_its_field_is_typed(
    typed: Typed, words: tuple[str, ...]
) -> None:
    typed.script("yes.yaml", [{"p_yes": 0.9}], method="logprobs")
    typed.write("a.jsonl", [{"café": "Thanks."}])
    told = ("validate", "a.jsonl", "-m", "scripted:yes.yaml", "-o", "out.jsonl", "--resume")
    for spelt in (words, [word.replace("é", "e\u0301") for word in words]):
        done = typed(*told, *spelt)
        assert done.returncode == 0, done.stderr


BAD = {
    "--map story=Labeled_Dialogue: the record has no field 'Labeled_Dialogue', "
    "its fields are ['Labeled_Dialog', 'American_Norm']": (
        {"Labeled_Dialog": "x", "American_Norm": "y"},
        "Labeled_Dialogue",
    ),
    "--map story=Labeled_Dialogue: the record has a field 'story' already: choose another name": (
        {**ROW, "story": "Another."},
        "story",
    ),
    "fields 'story' and 'Situation' both stand for story and differ": (
        {**ROW, "id": 2, "Situation": "Another."},
        "Situation",
    ),
}


def test_a_record_that_does_not_fit_is_an_error_line(typed: Typed) -> None:
    typed.write("a.jsonl", [*(record for record, _ in BAD.values()), {**ROW, "id": 3}])
    done = typed("validate", "a.jsonl", *NORM, *MAP)
    assert done.returncode == 3
    *bad, good = lines(done.stdout)
    for number, (line, (told, (record, field))) in enumerate(zip(bad, BAD.items(), strict=True), 1):
        assert {key: line[key] for key in record} == record
        error = {"type": "bad-input", "line": number, "message": told, "field": field}
        assert line["judge"]["error"] == error
    assert good["judge"]["verdict"] == "pass"


def test_a_column_that_no_record_has_is_refused(typed: Typed) -> None:
    typed.write("a.jsonl", [{"email": "Thanks."}, {"email": "Go."}])
    ask = ("-m", "scripted:yes.yaml", "--ask", "Polite?", "--map", "text=emial")
    for command in ("validate", "plan"):
        code, out, told = typed.text(command, "a.jsonl", *ask)
        assert (code, out) == (2, ""), told
        assert "--map text=emial: no record has this field; did you mean email?" in told


@pytest.mark.parametrize(
    ("flag", "new"), [(("--id", "text"), "id"), (("--map", "body=text"), "body")]
)
@pytest.mark.parametrize("asked", ["--on", "--rubric"])
def test_a_field_that_was_renamed_is_not_called_missing(
    typed: Typed, flag: tuple[str, str], new: str, asked: str
) -> None:
    typed.write("m.jsonl", [{"text": "Hello."}, {"text": "Bye."}])
    typed.script("yes.yaml", [{"reply": {"quote": None, "reason": "So.", "answer": "yes"}}])
    (typed.folder / "r.yaml").write_text("name: polite\nquestion: Is it?\nfields: [text]\n")
    question = ("--on", "text", "--ask", "Polite?") if asked == "--on" else ("--rubric", "r.yaml")
    words = ("validate", "m.jsonl", "-m", "scripted:yes.yaml", *question, *flag)
    code, _, told = typed.text(*words)
    hint = f"with {' '.join(flag)} the field is {new}: name that, or leave {' '.join(flag)} out"
    assert code == 2 and hint in " ".join(told.split()), told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("story", "--map: 'story' is not NAME=COLUMN"),
        ("story=", "--map: 'story=' is not NAME=COLUMN"),
        ("story=a,story=b", "--map: story is named twice: a and b"),
        ("judge=a", "--map: judge=a: judge is reserved for the verdict"),
    ],
)
def test_a_map_that_is_none_is_refused(typed: Typed, given: str, told: str) -> None:
    typed.write("a.jsonl", [ROW])
    done = typed("validate", "a.jsonl", *NORM, "--map", given)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()


def test_the_map_is_part_of_the_fingerprint_and_may_stand_in_a_file(typed: Typed) -> None:
    typed.write("a.jsonl", [{**ROW, "Other": "Ann left."}])
    prints = []
    for named in ("Labeled_Dialogue", "Other"):
        text = f'[map]\nstory = "{named}"\nrule_of_thumb = "American_Norm"\n'
        (typed.folder / "judge.toml").write_text(text)
        done = typed("validate", "a.jsonl", *NORM, "--trust-config")
        prints.append(lines(done.stdout)[0]["judge"]["fingerprint"])
        assert b"from judge.toml: map" in done.stderr
    assert None not in prints and prints[0] != prints[1]
    assert typed("validate", "a.jsonl", *NORM).returncode == 2, "not without --trust-config"


def test_benchmarks_and_people_are_read_under_the_new_names(typed: Typed) -> None:
    model = ("-m", typed.script("yes.yaml", [{"p_yes": 0.9}], method="logprobs"), "--no-cache")
    pair = {"Text": "p", "hypothesis": "h", "peru_ratings": ["E"], "Chad": ["N"]}
    typed.write("pairs.jsonl", [pair])
    run = ("evaluate", "cali", "pairs.jsonl", *model, "--condition", "entailment+chad", "-o", "o")
    code, _, told = typed.text(*run, "--map", "premise=Text,chad_ratings=Chad")
    assert code == 0, told
    (line,) = lines(typed.read("o"))
    assert (line["premise"], line["golds"]["chad"]) == ("p", "not entail")

    rows = [{"thing": n, "who": who, "said": "yes"} for n in range(2) for who in "ab"]
    typed.write("people.jsonl", rows)
    named = ("--map", "item=thing,annotator=who", "--map", "label=said")
    code, shown, told = typed.text("agreement", "people.jsonl", "--check", "polite", *named)
    assert code == 0 and cells(shown, "polite")[0][:3] == ["polite", "all", "4"], told

    (typed.folder / "relevance.yaml").write_text(
        "name: relevance\nquestion: Does the talk turn on the norm?\nfields: [Talk, Norm]\n"
    )
    hostile = (
        "evaluate",
        "hostile",
        "--rubric",
        "relevance.yaml",
        *model,
        "--limit",
        "1",
        "-o",
        "a",
    )
    code, _, told = typed.text(*hostile)
    assert code == 2 and "asks about 'Talk'; the suite's records for it have" in told


# ---------------------------------------------------------------- samples


def countries(typed: Typed, *more: str) -> list[dict[str, Any]]:
    done = typed("validate", "many.jsonl", *NORM, "-q", *more)
    assert done.returncode == 0, done.stderr
    return lines(done.stdout)


def test_a_sample_is_spread_over_a_field(typed: Typed) -> None:
    sizes = {"egypt": 60, "iran": 30, "peru": 2, "japan": 8}
    rows = [
        {"id": f"{name}{n}", "at": {"country": name}, "story": "x", "rule_of_thumb": "y"}
        for name, size in sizes.items()
        for n in range(size)
    ]
    typed.write("many.jsonl", rows)
    drawn = countries(typed, "--sample", "12", "--by", "at.country")
    found = Counter(line["at"]["country"] for line in drawn)
    assert found["peru"] == 2 and sum(found.values()) == 12
    assert sorted(found.values()) == [2, 3, 3, 4]
    order = [row["id"] for row in rows]
    assert sorted(drawn, key=lambda line: order.index(line["id"])) == drawn, "in input order"
    assert countries(typed, "--sample", "12", "--by", "at.country") == drawn
    other = countries(typed, "--sample", "12", "--by", "at.country", "--seed", "1")
    assert [line["id"] for line in other] != [line["id"] for line in drawn]
    assert len(countries(typed, "--sample", "3", "--by", "id")) == 3
    planned = typed("plan", "many.jsonl", *NORM, "--sample", "12", "--by", "at.country")
    assert b"12 records" in planned.stdout


def test_a_sample_by_two_fields_is_spread_over_the_first_and_in_each_over_the_second(
    typed: Typed,
) -> None:
    sizes = {("DE", "A"): 40, ("DE", "B"): 40, ("DE", "C"): 1, ("FR", "A"): 40, ("JP", "B"): 2}
    rows = [
        {"id": f"{land}{team}{n}", "land": land, "team": team, "story": "x", "rule_of_thumb": "y"}
        for n in range(40)
        for (land, team), size in sizes.items()
        if n < size
    ]
    typed.write("many.jsonl", [*rows, {"id": "bare", "story": "x", "rule_of_thumb": "y"}])
    for seed in ("0", "1", "2"):
        drawn = countries(typed, "--sample", "13", "--by", "land", "--by", "team", "--seed", seed)
        by = Counter((line.get("land"), line.get("team")) for line in drawn)
        assert by["JP", "B"] == 2 and by[None, None] == 1 and by["DE", "C"] == 1
        assert by["FR", "A"] == 5 and sorted([by["DE", "A"], by["DE", "B"]]) == [2, 2]


@pytest.mark.parametrize("by", [(), ("--by", "id")])
def test_a_sample_is_of_records_that_can_be_read(typed: Typed, by: tuple[str, ...]) -> None:
    """As long as there are enough; what it leaves out is told."""
    typed.write("many.jsonl", [{**ROW, "id": n} for n in range(4)], "{torn\n" * 9)
    words = ("validate", "many.jsonl", *NORM, *MAP, *by, "--sample")
    code, out, told = typed.text(*words, "4")
    assert code == 0 and {line["judge"]["verdict"] for line in lines(out.encode())} == {"pass"}
    assert "the sample leaves out 9 lines that cannot be read (many.jsonl:5: not JSON" in told
    code, out, told = typed.text(*words, "6")
    assert code == 3 and out.count("{torn") == 2 and "leaves out 7 lines" in told


def test_a_field_that_spreads_nothing_is_refused(typed: Typed) -> None:
    typed.write("a.jsonl", [ROW, ROW])
    done = typed("validate", "a.jsonl", *NORM, *MAP, "--sample", "1", "--by", "land")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--by land: no record has this field" in done.stderr
    done = typed("validate", "a.jsonl", *NORM, *MAP, "--by", "land")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--by land: no record has this field" in done.stderr


def test_the_first_record_may_lack_the_field(typed: Typed) -> None:
    typed.write("many.jsonl", [ROW, {**ROW, "id": 2}, {**ROW, "id": 3, "land": "Peru"}])
    assert len(countries(typed, *MAP, "--by", "land")) == 3
    # Also if no drawn record has it. A part of the records tells nothing of the others.
    for seed in "012":
        assert len(countries(typed, *MAP, "--sample", "1", "--by", "land", "--seed", seed)) == 1
    done = typed("validate", "many.jsonl", *NORM, *MAP, "--limit", "1", "--by", "land")
    assert b"--by land: none of the records of --limit 1 has this field" in done.stderr


def test_two_fields_of_one_name_are_no_value(typed: Typed) -> None:
    typed.write("a.jsonl", [{**ROW, "land": "x", "Land": "y"}, {**ROW, "id": 2, "land": "x"}])
    words = ("validate", "a.jsonl", *NORM, *MAP, "--by", "land", "-o", "o.jsonl")
    code, _, told = typed.text(*words)
    assert code == 0 and cells(told, "(several)") == [["(several)", "1", "1"]], told
    code, _, told = typed.text(*words, "--overwrite", "--sample", "2")
    assert code == 0 and len(lines(typed.read("o.jsonl"))) == 2, told
    assert typed.text("report", "o.jsonl", "-o", "o.html", "--by", "land")[0] == 0


def test_verdicts_are_counted_by_the_values_of_a_field(typed: Typed) -> None:
    model = typed.script(
        "model.yaml",
        [{"when": {"contains": "rude"}, "p_yes": 0.1}, {"p_yes": 0.9}],
        method="logprobs",
    )
    countries = ["peru"] * 3 + ["chad"] * 2 + [f"c{n}" for n in range(20)]
    rows = [{"at": {"country": one}, "email": "Thanks."} for one in countries]
    rows[0]["email"] = "rude"
    typed.write("in.jsonl", [*rows, {"email": "rude"}])
    ask = ("--ask", "Polite?", "--on", "email", "-m", model, "-o", "o.jsonl")
    words = ("validate", "in.jsonl", *ask, "--by", "at.country", "--summary", "s.json")
    code, _, told = typed.text(*words)
    assert code == 0
    assert cells(told, "peru") == [["peru", "2", "1", "3"]]
    assert cells(told, "chad") == [["chad", "2", "2"]]
    # 20 values by their size, and what is left of 23 together.
    assert cells(told, "(others)") == [["(others)", "2", "1", "3"]]
    found = json.loads(typed.read("s.json"))["by"]["at.country"]
    assert found["peru"] == {"fail": 1, "pass": 2} and len(found) == 23, "all of them"
    again = typed.text(*words, "--resume", "--all")[2]
    assert cells(again, "(others)") == [] and cells(again, "c19") == [["c19", "1", "1"]]
    again = typed.text(*words, "--resume")[2]
    assert cells(again, "(others)") == [["(others)", "2", "1", "3"]]
