"""`judge agreement` as a user types it: tables, JSON, notes, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

import pytest

from judge.records import read
from judge.records.labels import joined

from .conftest import cells
from .typed import Typed


def norm(id: str, labels: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": id, "rule_of_thumb": "Greet.", "story": f"{id} greets.", "labels": labels}


def given(answers: str) -> dict[str, str]:
    named = {"y": "Yes", "n": "No", "?": "Unsure"}
    return {f"w{n}": named.get(answer, answer) for n, answer in enumerate(answers, 1)}


@pytest.fixture
def norms(typed: Typed) -> None:
    """Three norms with votes on two checks, and their gold in a second file."""
    votes = {
        "a": ("yyy", "yyn"),
        "b": ("yyn", "nny"),
        "c": ("nn?", "n?y"),
    }
    typed.write(
        "votes.jsonl",
        [
            norm(id, {"relevance": given(one), "derivation": given(two)})
            for id, (one, two) in votes.items()
        ],
    )
    answers = {"a": "yes", "b": "no", "c": "no"}
    gold = [norm(id, {"relevance": one, "derivation": one}) for id, one in answers.items()]
    typed.write("gold.jsonl", gold)


@pytest.mark.usefixtures("norms")
def test_normads_columns(typed: Typed) -> None:
    code, out, told = typed.text("agreement", "votes.jsonl", "gold.jsonl")
    assert (code, told) == (0, "")
    relevance = cells(out, "relevance", "all")[0]
    assert relevance[2] == "9" and relevance[4].startswith("0.56 (")
    everything = typed.text("agreement", "votes.jsonl", "gold.jsonl", "--all")[1]
    assert cells(everything, "relevance", "all", "3")[0][2:] == ["3", "3", "0", "66.7% (2 of 3)"]
    by_gold = "Accuracy of the majority by gold label"
    without_gold = typed.text("agreement", "votes.jsonl", "--all")[1]
    assert by_gold in everything and by_gold not in without_gold
    # Of derivation both majorities are right, and c has none.
    assert "mean of checks" in everything and "mean of" not in out
    assert cells(everything, "mean of checks")[-1][-1] == f"{(2 / 3 + 2 / 2) / 2:.1%}"


@pytest.mark.usefixtures("norms")
def test_one_check_as_json(typed: Typed) -> None:
    words = ("agreement", "votes.jsonl", "--check", "relevance")
    code, out, _ = typed.text(*words, "--json", "--seed", "4")
    (check,) = json.loads(out)["checks"]
    assert (code, check["check"]) == (0, "relevance")
    assert check["overall"]["measures"]["pairwise"]["value"] == pytest.approx(5 / 9, abs=1e-6)
    assert typed.text(*words, "--json", "--seed", "4")[1] == out


@pytest.mark.usefixtures("norms")
def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_measured(typed: Typed) -> None:
    votes = typed.read("votes.jsonl").decode()
    typed.write("torn.jsonl", [], '{"id": "x", "labels": {"relev\n' + votes)
    code, out, told = typed.text("agreement", "torn.jsonl")
    assert code == 3
    assert "torn.jsonl, line 1: " in told and "1 line" in told
    assert out == typed.text("agreement", "votes.jsonl")[1]
    found = json.loads(typed.text("agreement", "torn.jsonl", "--json")[1])
    (line,) = found["unreadable_lines"]
    assert (found["unreadable"], line["source"], line["line"]) == (1, "torn.jsonl", 1)
    assert f"torn.jsonl, line 1: {line['message']}" in " ".join(told.split())


@pytest.mark.usefixtures("norms")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["votes.jsonl", "--majority", "most"], "majority 'most'"),
        (["gold.jsonl"], "do not say who gave which answer"),
        (["torn.jsonl"], "no labels at all; 1 line could not be read"),
        (
            ["none.csv"],
            "no labels at all; no label (none, NULL, NA, - and the like): 2 answers; --answers",
        ),
        (["nowhere.jsonl"], "nowhere.jsonl"),
        (["votes.jsonl", "--least", "0.6"], "--least needs --controls"),
        (["votes.jsonl", "--controls", "keys.jsonl"], "of these questions; if a column other than"),
        (
            ["votes.jsonl", "--people", "p.jsonl"],
            "--people names ['W1'], the labels are by ['w1', ",
        ),
        (
            ["votes.jsonl", "--people", "p.jsonl", "-o", "p.jsonl", "--overwrite"],
            "-o p.jsonl is the input: name another file",
        ),
    ],
)
def test_bad_usage(typed: Typed, words: list[str], says: str) -> None:
    typed.write("torn.jsonl", [], "not JSON\n")
    typed.write("p.jsonl", [{"annotator": "W1", "age": 30}])
    typed.write("none.csv", [], "item,annotator,label\na,ann,NA\nb,bo,none\n")
    typed.write("keys.jsonl", [norm("k", {"relevance": "yes"})])
    code, out, told = typed.text("agreement", *words)
    assert (code, out) == (2, "")
    assert says in told


TABLE = """item,annotator,label
0,ann,1
1,ann,1
2,ann,2
3,ann,2
0,bo,1.0
1,bo, 1
2,bo,{0}
3,bo,2.
"""


@pytest.mark.parametrize("none", ["None", "NA", "-", "#N/A", "\uff2e\uff35\uff2c\uff2c"])
def test_what_stands_for_no_label_is_none_and_counted(typed: Typed, none: str) -> None:
    (typed.folder / "t.csv").write_text(TABLE.format(none))
    code, out, told = typed.text("agreement", "t.csv")
    assert code == 0
    noted = "judge: no label (none, NULL, NA, - and the like): 1 answer, left out"
    assert told == f"{noted}; --answers counts such a word as an answer\n"
    (typed.folder / "empty.csv").write_text(TABLE.format(""))
    assert typed.text("agreement", "empty.csv") == (0, out, "")
    # Classes with their counts.
    assert cells(out, "label", "all", "1")[0][3:] == ["4", "57.1%", "2"]
    assert cells(out, "label", "all", "2")[0][3:] == ["3", "42.9%", "2"]
    row = cells(out, "label", "all")[0]
    assert set(row[3:-1]) == {"1.00"}


SHEET = "item,check,annotator,group,mail,question,answers,label,why\n"


def test_a_sheet_takes_the_answers_that_it_offers_and_counts_the_blank_ones(typed: Typed) -> None:
    labels = ["Y", "NO", "maybe", "", " ", "NA"]
    lines = [f"m{n},q,ann,,Hi,Ok?,yes / no / unsure,{x},\n" for n, x in enumerate(labels)]
    (typed.folder / "s.csv").write_text(SHEET + "".join(lines))
    code, out, told = typed.text("agreement", "s.csv", "--json")
    (check,) = json.loads(out)["checks"]
    assert (code, check["classes"], check["overall"]["labels"]) == (3, ["no", "yes"], 2)
    assert "s.csv, line 4: label 'maybe' is none of the answers yes / no / unsure" in told
    assert "2 rows have no label" in told and "and the like): 1 answer" in told
    (typed.folder / "s.csv").write_text(SHEET + "".join(lines[:2] + lines[3:4]))
    code, _, told = typed.text("agreement", "s.csv")
    assert (code, told) == (0, "judge: 1 row has no label\n")
    (typed.folder / "s.csv").write_text(SHEET + "".join(lines[3:5]))
    code, _, told = typed.text("agreement", "s.csv")
    assert code == 2 and "no labels at all; 2 rows have no label" in told


@pytest.mark.parametrize("words", [("--scale", "4=Yes"), ("--answers", "4")])
def test_a_sheet_takes_answers_named_on_the_command_line(
    typed: Typed, words: tuple[str, ...]
) -> None:
    (typed.folder / "s.csv").write_text(f"{SHEET}m,q,ann,,Hi,Ok?,yes / no,4,\n")
    assert typed.text("agreement", "s.csv", *words)[0] == 0


def test_one_spelling_in_csv_and_json(typed: Typed) -> None:
    (typed.folder / "t.csv").write_text(
        "item,annotator,label\n"
        + "".join(f"{n},ann,{x}\n" for n, x in enumerate(["TRUE", "False"]))
    )
    typed.write(
        "t.jsonl",
        [{"id": str(n), "labels": {"label": {"bo": x}}} for n, x in enumerate([True, "No."])],
    )
    code, out, _ = typed.text("agreement", "t.csv", "t.jsonl", "--json")
    (check,) = json.loads(out)["checks"]
    assert (code, check["classes"]) == (0, ["no", "yes"])
    assert check["overall"]["measures"]["cohen"]["value"] == 1.0


def test_an_opt_out_of_ones_own(typed: Typed) -> None:
    rows = [{"id": "a", "labels": {"q": dict.fromkeys("abcd", "skip")}}]
    rows += [{"id": "b", "labels": {"q": dict.fromkeys("abcd", "I don\u2019t know.")}}]
    typed.write("v.jsonl", rows)

    def majorities(*words: str) -> Any:
        out = typed.text("agreement", "v.jsonl", "--json", *words)[1]
        overall = json.loads(out)["checks"][0]["overall"]
        return overall["majorities"], overall["diverge"]

    assert majorities() == ({"skip": 1}, 1)
    assert majorities("--opt-out", "Skip") == ({"i don't know": 1}, 1)


def test_answers_keep_the_letters_of_their_language(typed: Typed) -> None:
    """German, Greek and Turkish words as people wrote them first, however the others did."""
    rows = [
        *("0,ann,gro\u00df", "0,bo,GROSS.", "1,ann,\u03c3\u03c9\u03c3\u03c4\u03cc\u03c2"),
        *("1,bo,\u03a3\u03a9\u03a3\u03a4\u038c\u03a3", "2,ann,hay\u0131r", "2,bo,HAYIR"),
    ]
    (typed.folder / "t.csv").write_text("\n".join(["item,annotator,label", *rows, ""]))
    typed.write("r.jsonl", [{"id": str(n), "text": "one two three"} for n in range(3)])
    code, out, _ = typed.text("agreement", "t.csv", "--records", "r.jsonl", "-o", "m.jsonl")
    answers = ["gro\u00df", "\u03c3\u03c9\u03c3\u03c4\u03cc\u03c2", "hay\u0131r"]
    assert code == 0 and all(cells(out, "label", "all", answer)[0][3] == "2" for answer in answers)
    lines = (typed.folder / "m.jsonl").read_text().splitlines()
    assert [json.loads(line)["labels"]["label"] for line in lines] == answers
    told = typed.text("agreement", "t.csv", "--answers", "GROSS")[1]
    assert cells(told, "label", "all", "GROSS")[0][3] == "2"
    rated = "item,annotator,label,gold\n0,ann,5,\n0,bo,5,\n1,ann,5,gro\u00df\n"
    (typed.folder / "rated.csv").write_text(rated)
    told = typed.text("agreement", "rated.csv", "--scale", "5=gro\u00df")[1]
    assert cells(told, "label", "all", "gross")[0][3] == "3", "a label of the scale is one answer"


def test_an_accent_of_two_characters_is_one_in_ids_and_texts(typed: Typed) -> None:
    """As macOS writes it, in names of files too, after which records are named."""
    mails = [{"id": f"\u00e9{n}", "mail": f"Le caf\u00e9 num\u00e9ro {n}"} for n in range(3)]
    rows = [
        f"{mail['id']},polite,{who},,{mail['mail']},Poli ?,yes / no,yes,\n"
        for mail in mails
        for who in ("ann", "bo")
    ]
    rows[::2] = [normalize("NFD", row) for row in rows[::2]]
    (typed.folder / "s.csv").write_text(SHEET + "".join(rows))
    typed.write("r.jsonl", mails)
    words = ("agreement", "s.csv", "--records", "r.jsonl", "-o", "m.jsonl")
    code, out, told = typed.text(*words)
    assert code == 0, told
    assert cells(out, "polite", "all", "yes")[0][3:] == ["6", "100.0%", "3"]
    labels = normalize("NFD", "id,label\n\u00e90,yes\n\u00e91,no\n\u00e92,yes\n")
    (typed.folder / "l.csv").write_text(labels)
    records = joined.with_labels(
        [str(typed.folder / "r.jsonl")], str(typed.folder / "l.csv"), ["label"]
    )
    assert records[1] == []
    typed.write("x.jsonl", [{"mail": "a", "land": name} for name in ("C\u00f4te", "Co\u0302te")])
    told = typed.text("validate", "x.jsonl", "--test", "mail: {contains: a}", "--by", "land")[2]
    assert cells(told, "C\u00f4te") == [["C\u00f4te", "2", "2"]], told
    (typed.folder / "ne\u0301.jsonl").write_text('{"mail": "a"}\n')
    assert [item.at_line for item in read(typed.folder / "ne\u0301.jsonl")] == ["n\u00e9.jsonl:1"]


def test_gold_that_one_row_does_not_tell_is_anothers(typed: Typed) -> None:
    rows = "0,ann,yes,NULL\n0,bo,TRUE,Yes.\n1,ann,no,No\n1,bo,no,-\n"
    (typed.folder / "t.csv").write_text(f"item,annotator,label,gold\n{rows}")
    code, out, told = typed.text("agreement", "t.csv", "--json")
    (check,) = json.loads(out)["checks"]
    accuracy = check["overall"]["measures"]["accuracy"]
    assert (code, told, accuracy["value"], accuracy["n"]) == (0, "", 1.0, 2)


def test_lines_that_are_not_named_are_counted_behind_those_that_are(typed: Typed) -> None:
    lines = [f"m{n},q,ann,,Hi,Ok?,yes / no,maybe,\n" for n in range(23)]
    lines += [f"n{n},q,ann,,Hi,Ok?,yes / no,{label},\n" for n, label in enumerate(["yes", ""])]
    (typed.folder / "s.csv").write_text(SHEET + "".join(lines))
    code, _, told = typed.text("agreement", "s.csv")
    more = told.splitlines().index("judge: and 3 more such lines")
    assert code == 3 and "'maybe'" in " ".join(told.splitlines()[more - 3 : more])
    assert "1 row has no label" in told.splitlines()[more + 1]


def test_many_lines_without_a_column_are_named_once(typed: Typed) -> None:
    for count, lines in ((1, "1 line"), (2, "2 lines"), (300, "300 lines")):
        rows = "".join(f"i{n},yes\n" for n in range(count))
        (typed.folder / "t.csv").write_text(f"item,ann\n{rows}")
        _, _, told = typed.text("agreement", "t.csv", "--label-column", "ann,boo")
        assert f"{lines} could not be read, the first: line 2" in told and told.count("boo") == 1


def test_forty_answers_are_shown_and_all_of_them_where_they_are_asked_for(typed: Typed) -> None:
    """Free answers, such as topics, are many; 45 of them make a page."""
    rows = [{"id": f"r{n}", "text": "x", "labels": {"topic": {"a": f"t{n}"}}} for n in range(45)]
    typed.write("topics.jsonl", rows)
    short = typed.text("agreement", "topics.jsonl")[1]
    assert "--all shows 5 more answers" in short and len(re.findall(r"\bt\d+ ", short)) == 40
    long = typed.text("agreement", "topics.jsonl", "--all")[1]
    assert "more answers" not in long and {f"t{n}" for n in range(45)} <= {*long.split()}


def test_a_control_that_has_other_answers_needs_no_record(typed: Typed) -> None:
    """The control is about one check; the answers to the other one count, and are written."""
    votes = {"relevance": {"ann": "yes", "bo": "no"}, "derivation": {"ann": "no", "bo": "no"}}
    typed.write("votes.jsonl", [norm(id, votes) for id in ("k", "b", "a")])
    typed.write("controls.jsonl", [norm("k", {"relevance": "yes"})])
    typed.write("records.jsonl", [{**norm(id, {}), "story": f"Whole {id}."} for id in ("a", "b")])
    words = ("agreement", "votes.jsonl", "--least", "0.5", "--controls", "controls.jsonl")
    code, out, told = typed.text(*words, "--records", "records.jsonl", "-o", "m.jsonl")
    assert code == 0 and cells(out, "derivation", "all", "3"), told
    assert "1 of 2 annotators dropped" in told and "wrote m.jsonl: 3 records" in told
    lines = [json.loads(line) for line in typed.read("m.jsonl").splitlines()]
    assert [(line["id"], line["story"], line["labels"]) for line in lines] == [
        ("a", "Whole a.", {"relevance": "yes", "derivation": "no"}),
        ("b", "Whole b.", {"relevance": "yes", "derivation": "no"}),
        ("k", "k greets.", {"derivation": "no"}),
    ]
    typed.write("records.jsonl", [norm("a", {})])
    words += ("--records", "records.jsonl", "-o", "n.jsonl")
    assert "records.jsonl: there is no record 'b', which has labels" in typed.text(*words)[2]


@pytest.mark.parametrize(
    ("answers", "gold", "least", "expected"),
    [
        (["yes"] * 14 + ["no"] * 11, "yes", "0.56", (25, 14, False)),
        (["yes"] * 14 + ["no"] * 11, "yes", "0.57", (25, 14, True)),
        (["yes"] * 3 + ["N/A"] * 2, "yes", "0.9", (3, 3, False)),
        (["b|a", "a|b"], "a|b", "1", (2, 2, False)),
    ],
)
def test_least_is_the_share_of_control_questions_with_the_right_answer(
    typed: Typed, answers: list[str], gold: str, least: str, expected: tuple[int, int, bool]
) -> None:
    golds = [norm(f"k{n}", {"relevance": gold}) for n, _ in enumerate(answers)]
    votes = [norm(f"k{n}", {"relevance": {"ann": a, "bo": gold}}) for n, a in enumerate(answers)]
    typed.write("gold.jsonl", golds)
    typed.write("votes.jsonl", [*votes, norm("a", {"relevance": {"ann": "no", "bo": "no"}})])
    words = ("agreement", "votes.jsonl", "--controls", "gold.jsonl", "--least", least, "--json")
    ann = json.loads(typed.text(*words)[1])["annotators"]["ann"]
    assert (ann["controls"], ann["right"], ann["dropped"]) == expected


def test_different_questions_under_one_name_are_noted(typed: Typed) -> None:
    def line(id: str, name: str, question: str) -> dict[str, Any]:
        asked = {name: {"asked": {"relevance": question}}}
        return norm(id, {"relevance": {name: "yes"}}) | {"annotators": asked}

    template, shown = "Is {{ story }} relevant?", "Is a greets. relevant?"
    lines = [line("a", "ann", template), line("b", "ann", template), line("a", "bo", shown)]
    typed.write("same.jsonl", lines)
    assert typed.text("agreement", "same.jsonl")[2] == ""
    typed.write("other.jsonl", [*lines, line("b", "cy", "Is it rude?")])
    told = " ".join(typed.text("agreement", "other.jsonl")[2].split())
    assert told == (
        "judge: relevance: people were asked 'Is {{ story }} relevant?' and 'Is it rude?' about "
        "the same text (1 time)"
    )


def test_other_texts_under_one_id_are_noted(typed: Typed) -> None:
    """Files of one month each count from 1; a note that an annotator added is no other text."""
    ann = [{**norm(n, {"polite": {"ann": "yes"}}), "note": "fine"} for n in "123"]
    bo = [{**norm(n, {"polite": {"bo": "yes"}}), "note": "so so"} for n in "123"]
    typed.write("ann.jsonl", ann)
    typed.write("bo.jsonl", bo)
    assert typed.text("agreement", "ann.jsonl", "bo.jsonl")[2] == ""
    bo = [{**line, "rule_of_thumb": "Wave.", "story": f"May {line['id']}"} for line in bo]
    typed.write("bo.jsonl", [{**line, "note": "late"} for line in bo])
    told = " ".join(typed.text("agreement", "ann.jsonl", "bo.jsonl")[2].split())
    assert told == (
        "judge: 3 records with other texts under one id, the first '1' in ann.jsonl and bo.jsonl: "
        "give different records different ids"
    )


def test_majorities_keep_the_weight_of_a_sampled_record(typed: Typed) -> None:
    """By hand: the judge says yes of both; the one that stands for three is a no: 1 / (1 + 3)."""
    weights = {"a": ("yes", 1.0), "b": ("no", 3.0)}
    lines = [
        {**norm(id, {"relevance": {"w1": said, "w2": said}}), "annotators": {"w1": {"weight": w}}}
        for id, (said, w) in weights.items()
    ]
    typed.write("votes.jsonl", lines)
    assert typed("agreement", "votes.jsonl", "-o", "majority.jsonl").returncode == 0
    judge = typed.script("judge.yaml", [{"p_yes": 0.9}], method="logprobs")
    words = ("calibrate", "majority.jsonl", "--check", "relevance", "-m", judge, "--no-controls")
    out = typed.text(*words)[1]
    assert "agrees with the labels in 1 of 2, 0.25 by weight" in " ".join(out.split())


def test_records_without_an_id_are_the_same_by_content_in_each_annotators_file(
    typed: Typed,
) -> None:
    """The two label the four records in another order, in files of one name; they differ on p2."""
    records = [{"nr": f"p{n}", "story": f"Story {n}."} for n in range(4)]
    for name, said, order in (("ann", "ynyy", 1), ("bob", "ynny", -1)):
        labels = [{"polite": {name: {"y": "yes", "n": "no"}[s]}} for s in said]
        rows = [r | {"labels": one} for r, one in zip(records, labels, strict=True)]
        (typed.folder / name).mkdir()
        typed.write(f"{name}/labels.jsonl", rows[::order])
    both = ("ann/labels.jsonl", "bob/labels.jsonl")
    report = json.loads(typed.text("agreement", *both, "--json", "-o", "m.jsonl")[1])
    (check,) = report["checks"]
    assert check["overall"]["measures"]["pairwise"]["value"] == 0.75
    lines = [json.loads(line) for line in typed.read("m.jsonl").splitlines()]
    assert [(line["nr"], line["labels"]["polite"]) for line in lines] == [
        ("p0", "yes"),
        ("p1", "no"),
        ("p2", None),
        ("p3", "yes"),
    ]
    assert all("id" not in line and len(line["annotators"]) == 2 for line in lines)
    judge = typed.script("judge.yaml", [{"p_yes": 0.9}], method="logprobs")
    words = ("calibrate", *both, "--ask", "Polite?", "--name", "polite", "-m", judge)
    out = " ".join(typed.text(*words, "--no-controls")[1].split())
    assert "4 items about 4 records, 3 with a reference" in out, out


def test_whole_records_are_found_by_the_column_that_named_them(typed: Typed) -> None:
    typed.write("r.csv", [], "nr,story,more\np0,Ann greets.,x\np1,Bo leaves.,\n")
    head = "item,check,annotator,story,label\n"
    rows = ("p0,polite,ann,Ann greets.,yes", "p1,polite,ann,Bo leaves.,no")
    typed.write("s.csv", [], head + "\n".join(rows))
    words = ("agreement", "s.csv", "-o", "m.jsonl", "--records", "r.csv")
    assert "there is no record 'p0'" in typed.text(*words)[2]
    assert typed(*words, "--id", "nr").returncode == 0
    first = json.loads(typed.read("m.jsonl").splitlines()[0])
    assert first["labels"] == {"polite": "yes"}
    assert (first["nr"], first["more"], "id" in first) == ("p0", "x", False)


def test_entries_of_records_without_an_id_are_found_in_whole_records(typed: Typed) -> None:
    record = {"nr": "p0", "claims": ["One two.", "Three."]}
    for name, answers in (("ann", ["yes", "no"]), ("bob", ["yes", "yes"])):
        typed.write(f"{name}.jsonl", [record | {"labels": {"says": {name: answers}}}])
    typed.write("r.jsonl", [record])
    words = ("agreement", "ann.jsonl", "bob.jsonl", "--records", "r.jsonl", "-o", "m.jsonl")
    assert typed(*words).returncode == 0
    (line,) = map(json.loads, typed.read("m.jsonl").splitlines())
    assert (line["claims"], line["labels"]) == (record["claims"], {"says": ["yes", None]})
    assert line["annotators"]["ann"] == {"labels": {"says": ["yes", "no"]}}


@pytest.mark.parametrize("whole", [(), ("--records", "r.jsonl")])
def test_majorities_have_a_place_for_a_last_entry_that_nobody_answered(
    typed: Typed, whole: tuple[str, ...]
) -> None:
    """Else the lines that `judge agreement -o` writes could not be read."""
    story = {"id": "s", "story": "Ann gives and Bo keeps.", "values": ["To give.", "To keep."]}
    typed.write("ann.jsonl", [story | {"labels": {"incorporation": {"ann": ["yes", None]}}}])
    typed.write("r.jsonl", [story])
    assert typed("agreement", "ann.jsonl", *whole, "-o", "m.jsonl").returncode == 0
    (line,) = map(json.loads, typed.read("m.jsonl").splitlines())
    assert line["labels"] == {"incorporation": ["yes", None]}
    assert typed("agreement", "m.jsonl").returncode == 0
    rows = [
        f"s,about,ann,{entry},To {label}?,yes / no,{label},"
        for entry, label in ((1, "no"), (2, ""))
    ]
    head = "item,check,annotator,entry,question,answers,label,why"
    (typed.folder / "sheet.csv").write_text("\n".join((head, *rows)))
    assert typed("agreement", "sheet.csv", *whole, "-o", "m.jsonl", "--overwrite").returncode == 0
    (line,) = map(json.loads, typed.read("m.jsonl").splitlines())
    assert line["labels"] == {"about": ["no", None]}, "of a list of the user's own, too"


def test_a_group_named_all_is_not_everyone(typed: Typed) -> None:
    """Two of three people are in it: 4 of 6 labels, and 2 of 3 annotators."""
    rows = [f"r{n},{who},yes,{'all' if who != 'cy' else 'x'}" for n in (1, 2) for who in PEOPLE]
    (typed.folder / "sheet.csv").write_text("\n".join(("item,annotator,label,group", *rows)))
    (typed.folder / "people.csv").write_text("annotator,age\nann,30\nbo,30\ncy,30\n")
    words = ("agreement", "sheet.csv", "--people", "people.csv")
    found = json.loads(typed.text(*words, "--json")[1])
    (check,) = found["checks"]
    labels = {name: figures["labels"] for name, figures in check["groups"].items()}
    assert check["overall"]["labels"] == 6 and labels["all (group)"] == 4
    assert found["demographics"]["age"]["all"] == {"30": 3}
    shown = [line.split()[:3] for line in typed.text(*words)[1].splitlines()]
    assert ["label", "all", "6"] in shown and ["label", "all", "(group)"] in shown


def test_the_answers_of_each_group_are_shown_with_all(typed: Typed) -> None:
    rows = [f"r{n},{who},{'no' if who == 'cy' else 'yes'}" for n in (1, 2) for who in PEOPLE]
    (typed.folder / "sheet.csv").write_text("\n".join(("item,annotator,label", *rows)))
    (typed.folder / "people.csv").write_text("annotator,age\nann,30\nbo,30\ncy,50\n")
    words = ("agreement", "sheet.csv", "--people", "people.csv")
    few, everything = (typed.text(*words, *more)[1] for more in ((), ("--all",)))
    answers = [cells(everything, "label", f"age: {age}", answer) for age, answer in GROUPS]
    assert [row[0][3:] for row in answers] == [["4", "100.0%", "2"], ["2", "100.0%", "2"]]
    assert not any(cells(few, "label", f"age: {age}", answer) for age, answer in GROUPS)


GROUPS = (("30", "yes"), ("50", "no"))
PEOPLE = ("ann", "bo", "cy")


@pytest.mark.parametrize("answers", ["1,2,3,4,5", "1-5"])
def test_an_answer_that_is_not_listed_is_told(typed: Typed, answers: str) -> None:
    """It is counted, and so the others are no scale."""
    rows = [*("1,ann,1", "1,bo,four", "2,ann,4", "2,bo,unsure", "3,ann,four", "3,bo,5")]
    (typed.folder / "t.csv").write_text("\n".join(["item,annotator,label", *rows]))
    code, _, told = typed.text("agreement", "t.csv", "--answers", answers)
    assert code == 0 and told == (
        "judge: label: not among --answers, but counted: 'four' (2 labels; the first is by bo, "
        "item '1')\n"
    )


def test_people_who_share_no_item_are_told_so(typed: Typed) -> None:
    """An id may have another spelling in another file."""
    for name, who, ids in (("a.csv", "ann", "12"), ("b.csv", "bo", (" 1", "2 "))):
        rows = [f"{id},{who},yes" for id in ids]
        (typed.folder / name).write_text("\n".join(["item,annotator,label", *rows]))
    assert "about one item" not in typed.text("agreement", "a.csv", "b.csv")[2]
    (typed.folder / "b.csv").write_text("item,annotator,label\n1.0,bo,yes\n2.0,bo,yes\n")
    told = typed.text("agreement", "a.csv", "b.csv")[2]
    assert "no two people answered about one item" in told and "bo about '1.0'" in told
