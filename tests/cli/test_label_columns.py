"""Labels in users' own forms: any column name, words for pass and fail, a sheet beside the records,
a column for each person."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

import judge
from judge.records.answers import words_for
from judge.records.labels import LabelledItem, read_labels
from judge.records.labels.joined import with_labels

from .typed import Typed

ASK = ("--ask", "Is it polite?", "--on", "mail", "-m", "scripted:j.yaml", "--no-controls")


@pytest.fixture(autouse=True)
def judged(typed: Typed) -> None:
    """Forty mails, of which the judge passes the even ones."""
    replies = [{"when": {"id": f"m{n}"}, "reply": said("yes")} for n in range(0, 40, 2)]
    typed.script("j.yaml", [*replies, {"reply": said("no")}])


def said(answer: str) -> dict[str, Any]:
    return {"quote": None, "reason": "So.", "answer": answer}


def table(typed: Typed, name: str, *heads: str, **words: tuple[str, str]) -> None:
    """A CSV with these columns; of a column of labels the even rows have the first word, but the
    last row the second."""
    rows = [",".join((*heads, *words))]
    for n in range(40):
        cells = {"id": f"m{n}", "mail": f"Mail number {n}", "key": f"m{n}"}
        labels = [pair[n % 2 or n == 38] for pair in words.values()]
        rows.append(",".join([*(cells[head] for head in heads), *labels]))
    (typed.folder / name).write_text("\n".join(rows) + "\n")


def agreed(typed: Typed, *words: str, code: int = 0) -> tuple[str, str]:
    """What is printed, by a calibration in which the judge agrees with 39 labels of 40."""
    done, out, told = typed.text("calibrate", *words, *ASK)
    assert done == code, told
    text = " ".join(out.split())
    assert "scripted:j.yaml: agrees with the labels in 39 of 40, kappa 0.95 (" in text
    assert text.index("agrees with the labels") < text.index("accuracy") < text.index("disagrees")
    assert all(len(line) <= 80 for line in out.splitlines())
    return text, " ".join(told.split())


def test_a_column_of_any_name_in_words_for_pass_and_fail(typed: Typed) -> None:
    table(typed, "a.csv", "id", "mail", human=("yes", "no"))
    text, told = agreed(typed, "a.csv", "--label-column", "human")
    assert "about 120 more labels would halve the interval" in text
    assert told == (
        "judge: question, scripted:j.yaml: the profile corrects no pass rates, 40 labels: an "
        "interval that holds takes 60 at least; label about 20 more"
    )
    for words, read in ((("Pass", "Fail"), "pass as yes, fail as no"), (("1", "0"), "1 as yes")):
        table(typed, "b.csv", "id", "mail", human=words)
        _, told = agreed(typed, "b.csv", "--label-column", "human")
        assert f"labels read as answers: {read}" in told
    assert words_for(("polite", "rude"), ["rude"])["good"] == "rude"
    assert words_for(("a", "b", "c"), ["a"]) == words_for(("yes", "no"), ["yes", "no"]) == {}


def test_y_and_n_are_read_as_yes_and_no_also_of_another_person(typed: Typed) -> None:
    table(typed, "a.csv", "id", "mail", human=("Y", "N"), bob=("y", "n"))
    _, told = agreed(typed, "a.csv", "--label-column", "human,bob")
    assert "--answers" not in told
    words = ("calibrate", "a.csv", "--label-column", "human", "--ask", "Is it polite?", *ASK[4:])
    code, _, told = typed.text(*words)
    assert code == 0 and "not shown: bob (people's answers)" in " ".join(told.split()), told


def test_labels_that_answer_nothing_are_named_before_a_repeated_id(typed: Typed) -> None:
    rows = ["id,mail,human", "m0,Mail 0,OK", "m0,Mail 1,OK", "m2,Mail 2,Bad mail"]
    (typed.folder / "a.csv").write_text("\n".join(rows) + "\n")
    code, _, told = typed.text("calibrate", "a.csv", "--label-column", "human", *ASK)
    told = " ".join(told.split())
    assert code == 2 and "a.csv:2: 'human' must be one of yes, no, not 'OK'" in told
    assert "was already" not in told


def test_a_column_is_the_one_typed_however_its_accents_are_written(typed: Typed) -> None:
    """A header as macOS writes it: the labels are not shown to the judge."""
    rows = [f"k{n},text {n},{('non', 'oui')[n % 2]},{'abc'[n % 3]}" for n in range(8)]
    text = "\n".join(["cle\u0301,mail,e\u0301tiquette,re\u0301gion", *rows, ""])
    (typed.folder / "a.csv").write_text(text)
    leak = {"when": {"contains": "tiquette"}, "reply": said("oui")}
    typed.script("leak.yaml", [leak, {"reply": said("non")}])
    asked = ("--ask", "Poli ?", "--answers", "oui,non", "--pass", "oui", "--no-controls")
    words = ("calibrate", "a.csv", "--label-column", "\u00e9tiquette", "--id", "cl\u00e9", *asked)
    words += ("-m", "scripted:leak.yaml", "--overwrite")
    code, out, told = typed.text(*words, "--group", "r\u00e9gion")
    assert code == 0 and "fields shown: mail, " in told and "tiquette" not in told, told
    assert "says non" in out and "says oui" not in out
    code, out, told = typed.text(*words, "--labels", "a.csv", "--on", "mail")
    assert code == 0 and "k1: says non" in out, told


def test_words_that_might_mean_either_are_refused_with_what_to_type(typed: Typed) -> None:
    """Where no passes, 1 may be a yes or a pass; good is a pass there, too."""
    table(typed, "a.csv", "id", "mail", human=("0", "1"))
    words = ("--label-column", "human", "--answers", "yes,no", "--pass", "no")
    code, _, told = typed.text("calibrate", "a.csv", *words, *ASK)
    assert code == 2 and "type --answers '0,1' --pass and the one that passes" in told
    table(typed, "b.csv", "id", "mail", human=("bad", "good"))
    _, told = agreed(typed, "b.csv", *words)
    assert "bad as yes, good as no" in told
    table(typed, "c.csv", "id", "mail", human=("nice", "rude"))
    code, _, told = typed.text("calibrate", "c.csv", "--label-column", "human", *ASK)
    assert code == 2 and "type --answers 'nice,rude' --pass and the one that passes" in told


def named(typed: Typed, file: str, check: str) -> None:
    """Labels for a check in JSON lines, as `table` gives them."""
    rows = [(f"m{n}", "no" if n % 2 or n == 38 else "yes") for n in range(40)]
    typed.write(
        file,
        [{"id": i, "mail": f"Mail {i[1:]} of {file}", "labels": {check: a}} for i, a in rows],
    )


@pytest.mark.slow
def test_labels_for_another_check_are_named_in_note_and_report(typed: Typed) -> None:
    named(typed, "tone.jsonl", "tone")
    _, told = agreed(typed, "tone.jsonl", "-o", "done")
    assert "question: its labels are the answers to 'tone'" in told
    (check,) = json.loads(typed.read("done/report.json"))["checks"]
    assert check["taken"] == ["tone"] and b"<bdi>tone</bdi>, taken as" in typed.read(
        "done/report.html"
    )
    assert "answers to" not in agreed(typed, "tone.jsonl", "--name", "tone")[1]

    for name in ("haste", "question"):
        named(typed, f"{name}.jsonl", name)
    for files in permutations(("tone.jsonl", "haste.jsonl", "question.jsonl"), 2):
        for between in ((), ("--test-set",)):
            code, _, told = typed.text("calibrate", files[0], *between, files[1], *ASK)
            says = "{1} has labels for {3}, and {0} for {2}: choose one, --name {3}"
            told = " ".join(told.split())
            assert code == 2 and says.format(*files, *(f[:-6] for f in files)) in told
    code, _, told = typed.text("calibrate", "tone.jsonl", *ASK, "--name", "polite")
    assert code == 2 and "no labels for polite; there are labels for tone" in told


def test_of_several_questions_those_with_labels_are_measured(typed: Typed) -> None:
    named(typed, "polite.jsonl", "polite")
    asked = ("--ask", "Polite?", "--ask", "Hasty?", "--name", "polite,haste", *ASK[2:])
    code, _, told = typed.text("calibrate", "polite.jsonl", *asked, "-o", "done")
    assert code == 0, told
    (check,) = json.loads(typed.read("done/report.json"))["checks"]
    assert check["check"] == "polite"


def test_the_only_question_of_an_export_is_named(typed: Typed) -> None:
    rows = []
    for n in range(40):
        choice = "no" if n % 2 or n == 38 else "yes"
        result = [{"from_name": "tone", "type": "choices", "value": {"choices": [choice]}}]
        texts = {"id": f"m{n}", "mail": f"Mail number {n}"}
        rows.append({"id": f"m{n}", "data": texts, "annotations": [{"result": result}]})
    typed.write("export.jsonl", rows)
    assert (
        "polite: its labels are the answers to 'tone'"
        in agreed(typed, "export.jsonl", "--name", "polite")[1]
    )


@pytest.mark.slow
def test_a_sheet_is_joined_by_the_ids(typed: Typed) -> None:
    table(typed, "mails.csv", "id", "mail")
    table(typed, "sheet.csv", "id", label=("yes", "no"))
    agreed(typed, "mails.csv", "--labels", "sheet.csv")
    agreed(typed, "mail?.csv", "--labels", "sheet.csv")
    table(typed, "keyed.csv", "key", "mail", note=("a", "b"))
    table(typed, "named.csv", "id", human=("good", "bad"))
    whole = ("keyed.csv", "--labels", "named.csv", "--label-column", "human")
    code, _, told = typed.text("calibrate", *whole, *ASK)
    assert code == 2 and "no record has an id of the sheet" in told and "--id" in told
    # The script knows records by their ids.
    _, told = agreed(typed, *whole, "--id", "key")
    assert "good as yes" in told
    found = judge.calibrate(
        "mails.csv", sheet="sheet.csv", ask="Is it polite?", on="mail", model="scripted:j.yaml"
    )
    assert found.checks[0].judges[0].final.accuracy.value == pytest.approx(39 / 40)
    records = [{"id": f"m{n}", "mail": f"Mail number {n}"} for n in range(40)]
    options: dict[str, Any] = {"ask": "Polite?", "on": "mail", "model": "scripted:j.yaml"}
    again = judge.calibrate(records, sheet="sheet.csv", controls=False, **options)
    assert again.checks[0].with_reference == 40


def test_ids_that_match_nothing_are_named_and_twice_the_same_is_refused(typed: Typed) -> None:
    table(typed, "mails.csv", "id", "mail")
    table(typed, "sheet.csv", "id", label=("yes", "no"))
    sheet = typed.folder / "sheet.csv"
    sheet.write_text(sheet.read_text() + "m40,yes\n")
    _, told = agreed(typed, "mails.csv", "--labels", "sheet.csv", code=3)
    assert "sheet.csv:42: no record has the id 'm40'" in told
    sheet.write_text(sheet.read_text() + "m7,yes\n")
    code, _, told = typed.text("calibrate", "mails.csv", "--labels", "sheet.csv", *ASK)
    assert code == 2 and "line 43: id 'm7' was already on line 9" in told
    sheet.write_text("item,annotator,label\nm1,ann,no\nm1,bob,yes\n")
    code, _, told = typed.text("calibrate", "mails.csv", "--labels", "sheet.csv", *ASK)
    typed_instead = "judge calibrate sheet.csv, in the place of mails.csv --labels sheet.csv, and"
    assert code == 2 and typed_instead in told
    for rows, heads in (("m1,no\nm2,yes\n", "m1, no; the first"), ("m1,no\n", "no rows below the")):
        sheet.write_text(rows)
        code, _, told = typed.text("calibrate", "mails.csv", "--labels", "sheet.csv", *ASK)
        assert code == 2 and heads in told and "must name" in told and "(id,label)" in told
    sheet.write_text("id,human\nm1,no\n")
    code, _, told = typed.text("calibrate", "mails.csv", "--labels", "sheet.csv", *ASK)
    assert code == 2 and "no column 'label'" in told and "--label-column" in told


def test_a_column_a_person_is_a_majority_and_people_come_first(typed: Typed) -> None:
    people = {"ann": ("yes", "no"), "bob": ("good", "bad"), "cy": ("no", "no")}
    table(typed, "p.csv", "id", "mail", **people)
    text, told = agreed(typed, "p.csv", "--label-column", "ann,bob,cy")
    # Of the three, all agree on odd records and the last, else two of three pairs differ.
    assert "beside 3 people on 40 items: people agree with one another 0.68" in text
    assert text.index("people agree with one another") < text.index("agrees with the labels")
    assert "good as yes" in told
    table(typed, "mails.csv", "id", "mail")
    table(typed, "sheet.csv", "id", **people)
    words = ("mails.csv", "--labels", "sheet.csv", "--label-column", "ann,bob,cy")
    assert "beside 3 people on 40 items" in agreed(typed, *words)[0]


def test_the_folder_has_the_page_beside_the_report(typed: Typed) -> None:
    table(typed, "a.csv", "id", "mail", human=("yes", "no"))
    agreed(typed, "a.csv", "--label-column", "human", "-o", "done")
    (check,) = json.loads(typed.read("done/report.json"))["checks"]
    sentence = check["judges"][0]["finding"]
    assert sentence.startswith("agrees with the labels in 39 of 40")
    assert sentence in typed.read("done/report.html").decode()


def test_rows_that_do_not_fit_their_header_are_named(typed: Typed) -> None:
    (typed.folder / "t.csv").write_text("id,mail,human\nm1,JP,Thanks,yes\n")
    done, _, told = typed.text("calibrate", "t.csv", "--label-column", "human", *ASK)
    assert (done, "t.csv:2: the row has 4 cells, the header 3" in " ".join(told.split())) == (
        2,
        True,
    )


def test_rows_without_a_label_are_counted(typed: Typed) -> None:
    table(typed, "a.csv", "id", "mail", human=("yes", "no"))
    with (typed.folder / "a.csv").open("a") as file:
        file.write("m40,Mail 40,\nm41,Mail 41,  \nm42,Mail 42\n")
    _, told = agreed(typed, "a.csv", "--label-column", "human", "-o", "cal", code=3)
    assert "2 rows without a label, left out" in told and "a.csv:44: the row has 2 cells" in told
    assert json.loads(typed.read("cal/report.json"))["blank"] == 2


def test_records_without_a_label_are_counted_in_json_and_beside_a_sheet(typed: Typed) -> None:
    mails = [{"id": f"m{n}", "mail": f"Mail {n}"} for n in range(44)]
    words = ["no" if n % 2 or n == 38 else "yes" for n in range(40)]
    labels = [*({"question": word} for word in words), {}, {"question": None}, {"question": " "}]
    lines = [{**mail, "labels": label} for mail, label in zip(mails, labels, strict=False)]
    lines.append({**mails[-1], "labels": {"question": []}})
    typed.write("own.jsonl", lines)
    typed.write("mails.jsonl", mails)
    rows = [f"m{n},{word}" for n, word in enumerate([*words, "", " "])]
    (typed.folder / "sheet.csv").write_text("\n".join(["id,label", *rows, ""]))
    for n, source in enumerate((["own.jsonl"], ["mails.jsonl", "--labels", "sheet.csv"])):
        _, told = agreed(typed, *source, "-o", f"cal{n}")
        assert "4 rows without a label, left out" in told
        assert json.loads(typed.read(f"cal{n}/report.json"))["blank"] == 4


def test_lines_of_a_test_set_that_cannot_be_used_are_named(typed: Typed) -> None:
    for name, rest in (("a", ""), ("b", "m40,Mail 40,\nm42,Mail 42\n")):
        table(typed, f"{name}.csv", "id", "mail", human=("yes", "no"))
        with (typed.folder / f"{name}.csv").open("a") as file:
            file.write(rest)
    words = ("a.csv", "--test-set", "b.csv", "--label-column", "human")
    _, told = agreed(typed, *words, code=3)
    assert "1 row without a label, left out" in told and "b.csv:43: the row has 2 cells" in told


def test_labels_of_which_none_answers_are_refused_in_the_users_words(typed: Typed) -> None:
    """`unsure` is an answer that decides nothing: it makes no calibration."""
    words = ("--label-column", "polite? (Kim)", *ASK, "-o", "cal")
    rows = ["id,mail,polite? (Kim)", "m0,Mail 0,unsure"]
    rows += [f"m{n},Mail {n},{'OK' if n % 2 else 'Not OK'}" for n in range(1, 40)]
    (typed.folder / "a.csv").write_text("\n".join(rows) + "\n")
    code, out, told = typed.text("calibrate", "a.csv", *words)
    assert code == 2 and not out and not (typed.folder / "cal").exists()
    assert " ".join(told.split()) == (
        "judge: a.csv: no label answers the question (unsure: decides nothing); a line "
        "that cannot be used is a.csv:3: 'polite? (Kim)' must be one of yes, no, not 'OK'; to ask "
        "for these words, type --answers 'OK,Not OK' --pass and the one that passes"
    )
    (typed.folder / "none.csv").write_text("id,mail,polite? (Kim)\nm0,Mail 0,NA\nm1,Mail 1,none\n")
    _, _, told = typed.text("calibrate", "none.csv", *words)
    said_of_all = "no label (none, NULL, NA, - and the like): 2 answers"
    assert f"no label answers the question; {said_of_all}" in " ".join(told.split())
    typed.script("ok.yaml", [{"reply": said("OK")}])
    words = tuple(word.replace("j.yaml", "ok.yaml") for word in words)
    flags = ("--answers", "OK,Not OK", "--pass", "OK")
    code, out, told = typed.text("calibrate", "a.csv", *words, *flags)
    assert code == 0 and "in 20 of 39" in " ".join(out.split()), told

    # A few such labels among others are named; a sheet's by its line, a person's by the column.
    rows = ["id,label", *(f"m{n},{('No', 'Yes')[n % 2]}" for n in range(40) if n != 3), "m3,Meh"]
    (typed.folder / "sheet.csv").write_text("\n".join(rows) + "\n")
    code, _, told = typed.text("calibrate", "a.csv", "--labels", "sheet.csv", *ASK)
    assert code == 3 and "sheet.csv:41: 'label' must be one of yes, no, not 'Meh'" in told
    keyed = (typed.folder / "a.csv").read_text().replace("id,", "key,", 1)
    (typed.folder / "keyed.csv").write_text(keyed)
    words = ("calibrate", "keyed.csv", "--labels", "sheet.csv", "--id", "key")
    code, _, told = typed.text(*words, *ASK)
    assert code == 3 and "sheet.csv:41: 'label' must be one of" in told
    rows = ["id,mail,Kim?,Bo"] + [f"m{n},M {n},{'Meh' if n == 3 else 'Yes'},Yes" for n in range(9)]
    (typed.folder / "b.csv").write_text("\n".join(rows) + "\n")
    code, _, told = typed.text("calibrate", "b.csv", "--label-column", "Kim?,Bo", *ASK)
    assert code == 3 and "b.csv:5: 'Kim?', item 'm3', must be one of yes, no, not 'Meh'" in told


def test_of_a_comparison_no_other_answers_are_proposed(typed: Typed) -> None:
    """Its answers are the names of its fields; `--answers` beside `--compare` is refused."""
    rows = "id,old,new,winner\n1,Go.,Please go.,2\n2,Thanks!,Fine.,1\n"
    (typed.folder / "a.csv").write_text(rows)
    compare = ("--compare", "old,new", "--ask", "Which is kinder?", "-m", "scripted:j.yaml")
    code, _, told = typed.text("calibrate", "a.csv", "--label-column", "winner", *compare)
    assert code == 2 and "'winner' must be one of old, new, not '2'" in told
    assert "--answers" not in told


@pytest.mark.parametrize(
    "rows",
    [
        "\ufeffid,label\r\n 1 ,yes\r\n2,no \r\n",  # as Windows writes it
        "id,label\n1.0,yes\n2.0,no\n",  # as pandas writes a column with a gap
    ],
)
def test_an_id_is_known_as_a_number_and_as_a_text(typed: Typed, rows: str) -> None:
    (typed.folder / "sheet.csv").write_text(rows, newline="")
    for one, two in ((1, 2), (1.0, 2.0), ("1", " 2 ")):
        typed.write("r.jsonl", [{"id": one, "mail": "a"}, {"id": two, "mail": "b"}])
        sources, problems, _ = with_labels(["r.jsonl"], "sheet.csv", ["label"])
        items = [item for item in read_labels(sources[0]) if isinstance(item, LabelledItem)]
        found = [item.reference for item in items]
        assert (found, problems) == (["yes", "no"], [])
