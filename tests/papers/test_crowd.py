"""From people's votes to data sets: NormAd's human accuracy, CALI's crowd, as typed."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.cli.conftest import cells
from tests.cli.typed import Typed

from .examinee import public

SCALE = "1=contradiction,2=neutral|contradiction,3=neutral,4=neutral|entailment,5=entailment"


def table(typed: Typed, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    with (typed.folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def test_peoples_accuracy_with_ties_broken_and_by_label(typed: Typed) -> None:
    """NormAd 4.4: two annotators, ties broken arbitrarily, accuracy by label."""
    golds = {"a": "yes", "b": "yes", "c": "no", "d": "neutral"}
    answers = {"a": ("yes", "yes"), "b": ("no", "no"), "c": ("no", "no"), "d": ("yes", "neutral")}
    norm = {"Country": "egypt", "Rule-of-Thumb": "Greet.", "Story": "Ann greets."}
    rows = [
        {"item": id, "annotator": name, "label": label, "gold": golds[id]}
        for id, pair in answers.items()
        for name, label in zip(("ann", "bo"), pair, strict=True)
    ]
    table(typed, "v.csv", rows)
    table(typed, "n.csv", [{"ID": id, **norm, "Gold Label": g} for id, g in golds.items()])

    def figures(*words: str) -> Any:
        out = typed.text("agreement", "v.csv", "--json", *words)[1]
        return json.loads(out)["checks"][0]["overall"]

    plain, broken = figures(), figures("--break-ties", "-o", "m.jsonl", "--records", "n.csv")
    assert (plain["measures"]["accuracy"]["n"], broken["measures"]["accuracy"]["n"]) == (3, 4)
    by_label = {label: part["value"] for label, part in plain["accuracies"].items()}
    assert by_label == {"neutral": None, "no": 1.0, "yes": 0.5}
    # The seed decides d: both outcomes come, and one seed has one outcome.
    outcomes = {
        seed: figures("--break-ties", "--seed", seed)["accuracies"]["neutral"]["value"]
        for seed in "012345"
    }
    assert {*outcomes.values()} == {0.0, 1.0}
    assert broken["accuracies"]["neutral"]["value"] == outcomes["0"]
    for seed in "0123":
        words = ("--break-ties", "--seed", seed, "--opt-out", "yes", "-o", "o.jsonl", "--overwrite")
        figures(*words)
        lines = map(json.loads, typed.read("o.jsonl").splitlines())
        assert {line["id"]: line["labels"]["label"] for line in lines}["d"] == "neutral"
    condition = ("--condition", "rule-of-thumb", "--json")
    code, out, _ = typed.text("score", "normad", "m.jsonl", "n.csv", *condition)
    (row,) = json.loads(out)[0]["rows"]
    assert code == 0 and row["accuracy"]["value"] == broken["measures"]["accuracy"]["value"]


@pytest.fixture
def crowd(typed: Typed) -> Typed:
    """100 pairs, rated by five of each country and by careless people, and ten controls.

    25 people of whom 4 are careless give 100 x 25 ratings: 16 % are careless. On 70 pairs all say
    the same; on 30 each country has 2, 2 and 1, or nearly.
    """
    people = [
        (f"{group}{n}", group) for group, count in (("us", 13), ("in", 12)) for n in range(count)
    ]
    careless = {"us0", "us1", "in0", "in1"}
    rows = []
    for number in range(110):
        control = number >= 100
        for place, (name, group) in enumerate(people):
            sound = "5" if number % 2 else "1"
            if not control and number >= 70:
                sound = str(1 + 2 * (place % 3))
            # us5 writes 4 where the others write 5.
            sound = "4" if name == "us5" and sound == "5" else sound
            rating = "3" if name in careless else sound
            row = {"item": f"c{number}" if control else f"p{number}", "annotator": name}
            rows.append({**row, "group": group, "check": "entailment", "label": rating})
    table(typed, "votes.csv", rows)
    pairs = [{"id": f"p{n}", "premise": f"P{n}.", "hypothesis": "H."} for n in range(100)]
    typed.write("pairs.jsonl", pairs)
    labels = [{"entailment": "entailment" if n % 2 else "contradiction"} for n in range(100, 110)]
    golds = [{"id": f"c{n}", "labels": label} for n, label in enumerate(labels, 100)]
    typed.write("gold.jsonl", golds)
    return typed


@pytest.mark.slow
def test_calis_crowd(crowd: Typed) -> None:
    """Sections 3.6, B.3 and B.4: 16 % of the annotations and 30 % of the pairs are dropped."""
    words = ("agreement", "votes.csv", "--controls", "gold.jsonl", "--scale", SCALE)
    more = ("--records", "pairs.jsonl", "-o", "majority.jsonl", "--raters", "5", "--json")
    code, out, told = crowd.text(*words, *more)
    report = json.loads(out)
    assert code == 0 and "4 of 25 annotators dropped, 16.0% of the labels" in told
    assert {name for name, about in report["annotators"].items() if about["dropped"]} == {
        "us0", "us1", "in0", "in1",
    }  # fmt: skip
    # Of the controls that us5 gave a 4, all are entailment; nobody else gave one.
    fours = {name: about["scale"]["4"] for name, about in report["annotators"].items()}
    assert fours.pop("us5") == "entailment" and {*fours.values()} == {"neutral"}
    assert "4 of 25 annotators dropped" in crowd.text(*words, "--least", "1")[2], "10 of 10 is all"
    kappas = report["checks"][0]["groups"]["us"]["class_kappas"]
    assert [*kappas] == ["contradiction", "entailment", "neutral", "all classes"]
    assert all(0 < part["value"] < 1 and part["n"] == 100 for part in kappas.values())
    code, _, told = crowd.text("build", "filtered", "majority.jsonl", "-o", "kept.jsonl")
    assert code == 0 and "70 lines; 30 left out" in told
    model = crowd.script("m.yaml", [{"reply": {"answer": "Yes"}}])
    run = ("evaluate", "cali", "kept.jsonl", "-m", model, "--condition", "entailment+us", "--json")
    code, out, _ = crowd.text(*run, "-o", "a.jsonl")
    (row,) = json.loads(out)[0]["rows"]
    assert (code, row["asked"], row["US"]["n"]) == (0, 70, 70)
    # Half of the pairs are entailment: F1 2/3 and 0.
    assert row["US"]["value"] == pytest.approx(1 / 3, abs=1e-6)


# How many pairs have which ratings of five people: planted so that the kappas are the paper's.
PLANTED = {
    "us": {"EEEEE": 9, "NNNNN": 3, "CCCCC": 7, "ENNNN": 7, "NNNNC": 2, "NCCCC": 5, "EEENN": 1}
    | {"EENNN": 4, "NNNCC": 3, "NNCCC": 3, "EEENC": 3, "ENCCC": 3},
    "in": {"EEEEE": 7, "NNNNN": 3, "CCCCC": 5, "EEEEN": 3, "ENNNN": 5, "NNNNC": 2, "NCCCC": 5}
    | {"EENNN": 3, "NNNCC": 2, "NNCCC": 3, "ENNCC": 2, "EEENC": 3, "ENNNC": 1, "ENCCC": 6},
}
PAPERS = {"us": (0.58, 0.37, 0.58), "in": (0.51, 0.29, 0.46)}
LABELS = dict(zip("ENC", ("entailment", "neutral", "contradiction"), strict=True))


def test_six_kappas_of_a_file_of_the_released_form(typed: Typed) -> None:
    """Section 3.6: 50 pairs are kept, 21 on which no group agrees by 75 % are not (30 %)."""
    strong = {group: [*PLANTED[group]][: 6 if group == "us" else 7] for group in PLANTED}
    rows = {
        group: sorted(
            (ratings for ratings, times in PLANTED[group].items() for _ in range(times)),
            key=lambda ratings: (ratings in strong[group]) == (group == "us"),
        )
        for group in PLANTED
    }
    pairs = [*zip(rows["us"], rows["in"], strict=True), *[("EEENN", "NNCCC")] * 21]
    heads = "premise\thypothesis\tus_ratings\tin_ratings\n"
    lines = (f"P{n}.\tH{n}.\t{[*us]}\t{[*others]}\n" for n, (us, others) in enumerate(pairs))
    (typed.folder / "data.tsv").write_text(heads + "".join(lines))
    code, _, told = typed.text("build", "filtered", "data.tsv", "-o", "kept.jsonl")
    assert code == 0 and "50 lines; 21 left out" in told
    kappas = class_kappas(typed)
    for group, values in PAPERS.items():
        for letter, value in zip(LABELS, values, strict=True):
            # Fleiss 1971 of a class against the others: 50 pairs, five raters.
            hits = [ratings.count(letter) for ratings in rows[group]]
            agreed = sum(h * (h - 1) + (5 - h) * (4 - h) for h in hits) / 50 / 20
            share = sum(hits) / 250
            chance = share**2 + (1 - share) ** 2
            by_hand = (agreed - chance) / (1 - chance)
            found = kappas[group][LABELS[letter]]
            assert found == pytest.approx(by_hand, abs=1e-6) == pytest.approx(value, abs=0.005)


def class_kappas(typed: Typed) -> dict[str, dict[str, float]]:
    code, out, _ = typed.text("agreement", "cali:kept.jsonl", "--raters", "5", "--json")
    groups = json.loads(out)["checks"][0]["groups"]
    assert code == 0
    return {
        group: {label: part["value"] for label, part in figures["class_kappas"].items()}
        for group, figures in groups.items()
    }


def test_kappas_of_the_ratings_as_they_were_released(typed: Typed) -> None:
    """Section 3.6: .58 .37 .58 in the US, .51 .29 .46 in India; the released file gives these."""
    source = public("cali/data.tsv")
    typed.text("build", "filtered", str(source), "-o", "kept.jsonl")
    kappas = class_kappas(typed)
    expected = {"us": (0.588, 0.362, 0.605), "in": (0.479, 0.302, 0.547)}
    for group, values in expected.items():
        for label, value in zip(("entailment", "neutral", "contradiction"), values, strict=True):
            assert kappas[group][label] == pytest.approx(value, abs=0.02)


def test_rating_distributions_by_group(crowd: Typed) -> None:
    """Appendix B.4, figure 6: how often each rating was given, before it is read as a label."""
    words = ("agreement", "votes.csv", "--controls", "gold.jsonl", "--scale", SCALE)
    ratings = json.loads(crowd.text(*words, "--json")[1])["ratings"]
    # The US without two careless people: 11 on 110 items. On 35 pairs and 5 controls all are for 5;
    # on 30 pairs 4 people (2, 5, 8, 11 of 0 to 12) are; us5, who writes 4 for it, is one of them.
    assert ratings["us"]["4"] == 35 + 30 + 5 and ratings["us"]["5"] == 10 * (35 + 5) + 3 * 30
    assert sum(ratings["us"].values()) == 11 * 110
    out = crowd.text(*words, "--all")[1]
    assert cells(out, "us", "4") == [["us", "4", "70", "5.8%"]]


def test_ratings_that_contradict_each_other_do_not_count(typed: Typed) -> None:
    """Appendix B.3: two hypotheses that cannot both be very likely true are both rated 5."""
    ratings = {"ann": (5, 1, 3), "bo": (5, 5, 3), "cy": (5, 4, 5)}
    rows = [
        {"item": f"p/{n}", "annotator": name, "check": "entailment", "label": rating}
        for name, given in ratings.items()
        for n, rating in enumerate(given, 1)
    ]
    table(typed, "votes.csv", rows)
    both = [{"item": "p/1", "contrary": "p/2", "answer": "5"}]
    table(typed, "contrary.csv", [*both, {"item": "p/2", "contrary": "p/1", "answer": "5"}])
    words = ("agreement", "votes.csv", "--scale", SCALE, "--contrary", "contrary.csv")
    code, out, told = typed.text(*words, "-o", "m.jsonl", "--json")
    people = json.loads(out)["annotators"]
    assert code == 0 and "1 pair of contradictory labels left out: bo" in told
    assert {name: about["contradictions"] for name, about in people.items()} == {
        "ann": 0, "bo": 1, "cy": 0,
    }  # fmt: skip
    lines = {line["id"]: line for line in map(json.loads, typed.read("m.jsonl").splitlines())}
    assert [*lines["p/1"]["annotators"]] == [*lines["p/2"]["annotators"]] == ["ann", "cy"]
    assert [*lines["p/3"]["annotators"]] == ["ann", "bo", "cy"]
    for pair, says in (
        ({"item": "p/1", "contrary": "q", "answer": "5"}, "no pair of these records"),
        ({"item": "p/1", "answer": "5"}, "line 2: field 'contrary' is missing"),
        ({"item": "p/1", "contrary": "p/1", "answer": "5"}, "line 2: item and contrary are the"),
        ({"item": "p/1", "contrary": "p/2"}, "line 2: field 'answer' is missing"),
        (
            {"item": "p/1", "contrary": "p/2", "answer": "entailment"},
            "answer 'entailment' is none of the ratings of --scale",
        ),
    ):
        table(typed, "contrary.csv", [pair])
        code, _, told = typed.text(*words)
        assert code == 2 and says in told, told


def test_people_and_records_may_be_numbers(typed: Typed) -> None:
    """Label Studio numbers its annotators and tasks."""
    rows = [{"item": n, "annotator": who, "label": "yes"} for n in (1, 2, 3) for who in (7, 8)]
    typed.write("votes.jsonl", rows)
    typed.write("people.jsonl", [{"annotator": 7, "age": 30}, {"annotator": 8, "age": 40}])
    typed.write("contrary.jsonl", [{"item": 1, "contrary": 2, "answer": "yes"}])
    code, out, told = typed.text("agreement", "votes.jsonl", "--people", "people.jsonl", "--json")
    assert code == 0, told
    assert [*json.loads(out)["checks"][0]["groups"]] == ["age: 30", "age: 40"]
    told = typed.text("agreement", "votes.jsonl", "--contrary", "contrary.jsonl")[2]
    assert "2 pairs of contradictory labels left out: 7, 8" in told
    typed.write("votes.jsonl", rows[:4])
    code, _, told = typed.text("agreement", "votes.jsonl", "--contrary", "contrary.jsonl")
    assert code == 2 and "all labels are about controls, or contradict each other" in told


def test_what_is_known_of_people_makes_groups_and_shares(typed: Typed) -> None:
    """CulturalBench's table 7; agreement of each group, by hand."""
    answers = {"ann": "yyn", "bo": "yyn", "cy": "yny", "dee": "nny"}
    rows = [
        {"item": str(n), "annotator": name, "group": "in" if name < "cy" else "us", "label": label}
        for name, labels in answers.items()
        for n, label in enumerate(labels)
    ]
    table(typed, "v.csv", rows)
    known = [("ann", 30), ("bo", 30), ("cy", 40), ("eve", 40)]
    table(typed, "p.csv", [{"annotator": name, "age": age} for name, age in known])
    code, out, told = typed.text("agreement", "v.csv", "--people", "p.csv", "--json")
    assert code == 0, told
    report = json.loads(out)
    groups = report["checks"][0]["groups"]
    assert list(groups) == ["age: 30", "age: 40", "in", "us"]
    assert groups["age: 30"]["measures"]["pairwise"]["value"] == 1
    assert (groups["age: 40"]["annotators"], groups["age: 40"]["labels"]) == (1, 3)
    counts = {"all": {"30": 2, "40": 1, "not said": 1}, "in": {"30": 2}}
    assert report["demographics"] == {"age": {**counts, "us": {"40": 1, "not said": 1}}}
    printed = typed.text("agreement", "v.csv", "--people", "p.csv", "--all")[1]
    assert [row[2:] for row in cells(printed, "age", "us")] == [
        ["40", "1", "50.0%"],
        ["not said", "1", "50.0%"],
    ]
    table(typed, "p.csv", [{"annotator": "ann", "age": 1}] * 2)
    code, _, told = typed.text("agreement", "v.csv", "--people", "p.csv")
    assert code == 2 and "p.csv, line 3: annotator 'ann' is named twice" in told
    table(typed, "p.csv", [{"annotator": "ann"}])
    code, _, told = typed.text("agreement", "v.csv", "--people", "p.csv")
    assert code == 2 and "p.csv: says nothing about annotators" in told


def test_controls_hold_for_the_check_that_they_are_about(typed: Typed) -> None:
    """The right answer to one question is no control of another about the same record."""
    votes = [
        {"item": item, "check": check, "annotator": name, "label": label}
        for item in ("c", "d")
        for check, label in (("polite", "yes"), ("short", "no"))
        for name in ("ann", "bo")
    ]
    table(typed, "v.csv", votes)

    def told(check: str, *words: str) -> tuple[int, str, str]:
        typed.write("gold.jsonl", [{"id": "c", "text": "Hello.", "labels": {check: "yes"}}])
        files = () if words[:1] in (("one.csv",), ("nobody.csv",)) else ("v.csv",)
        return typed.text("agreement", *files, *words, "--controls", "gold.jsonl", "--json")

    code, out, err = told("polite")
    assert code == 0, err
    people = json.loads(out)["annotators"]
    assert {n: (about["controls"], about["right"]) for n, about in people.items()} == {
        "ann": (1, 1),
        "bo": (1, 1),
    }
    code, _, err = told("kind")
    assert code == 2
    assert "gold.jsonl: its answers are about kind, the labels about polite, short" in err
    # A check that the user names is no other's, and an unnamed one is not all.
    for check, words in (("kind", ("--check", "polite")), ("label", ())):
        code, _, err = told(check, *words)
        assert code == 2 and f"its answers are about {check}, the labels about polite" in err
    table(typed, "one.csv", [row | {"check": "rude"} for row in votes if row["check"] == "polite"])
    code, out, err = told("polite", "one.csv")
    assert (code, json.loads(out)["annotators"]["ann"]["controls"]) == (0, 1), err
    table(typed, "nobody.csv", [row | {"annotator": ""} for row in votes])
    code, _, err = told("polite", "nobody.csv")
    assert code == 2
    assert "field 'annotator' is empty" in err
