"""`judge compare` as a user types it: the table, JSON, notes, exit codes."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from judge import compare
from tests.papers.eecc_folder import write_folder

from .conftest import cells, norm
from .typed import Typed


def answers(told: str, condition: str = "country", benchmark: str = "normad") -> list[dict]:  # type: ignore[type-arg]
    """Answers in a file of `judge evaluate`: 1 right, 0 wrong, e no reply."""
    return [
        {
            "id": f"n{number}/{condition}",
            "row": f"n{number}",
            "condition": condition,
            "gold": "yes",
            "judge": {
                "verdict": {"1": "pass", "0": "fail", "e": "error"}[one],
                "benchmark": benchmark,
                "condition": condition,
                "outcome": "error" if one == "e" else "answered",
                "score": None if one == "e" else float(one),
            },
        }
        for number, one in enumerate(told)
    ]


@pytest.fixture(autouse=True)
def runs(typed: Typed) -> None:
    typed.write("a.jsonl", [*answers("0000001e"), *answers("0101", "value")])
    typed.write("b.jsonl", [*answers("11111101"), *answers("010", "value")])


def row(out: str, *beginning: str) -> list[str]:
    """The cells of the row that begins with these, from all pieces of the table."""
    pieces = cells(out, *beginning)
    return [*beginning, *(cell for piece in pieces for cell in piece[len(beginning) :])]


def test_the_table_in_pieces_of_80_columns(typed: Typed) -> None:
    headline = typed.text("compare", "a.jsonl", "b.jsonl")[1]
    assert row(headline, "country")[1:5] == ["7", "8", "0.14", "0.86"]
    assert "the intervals of A, B\n" in headline
    by = " ".join(typed.text("compare", "a.jsonl", "b.jsonl", "--by", "condition")[1].split())
    assert by.count("the intervals of A, B") == 1, "of both tables"
    code, out, told = typed.text("compare", "a.jsonl", "b.jsonl", "--all")
    assert code == 0 and "…" not in out and "\x1b[" not in out
    assert "11 items in all runs; 12 in A, 11 in B" in out
    found = row(out, "country")
    assert found[1:3] == ["7", "8"]
    assert found[3:5] == ["0.14", "0.86"], "of seven rows no bootstrapped interval"
    # Six to one: 2 * (1 + 7) / 128, one of two tests.
    assert found[5].startswith("0.71 (") and found[6:] == ["0.125", "0.25", "1", "6"]
    assert row(out, "overall")[-3] == "–"
    assert "judge: country: 1 of 8 pairs are left out: 1 error in A\n" in told


def test_lines_of_a_table_that_was_judged_before_are_compared(typed: Typed) -> None:
    told = {"verdict": "pass", "workflow": "record", "checks": []}
    typed.write("again.jsonl", [{"id": "n0", "judge.verdict": "fail", "judge": told}])
    code, out, said = typed.text("compare", "again.jsonl", "again.jsonl")
    assert code == 0 and "1 item in all runs" in out, said


def test_small_p_values_are_written_alike_wherever_they_stand(typed: Typed) -> None:
    """Of 18 differences in one direction: p = 2 / 2**18 = 7.62939453125e-06."""
    for name, verdict in (("a", "pass"), ("b", "fail")):
        told = {"verdict": verdict, "workflow": "record", "checks": []}
        typed.write(f"{name}.jsonl", [{"id": f"r{n}", "judge": told} for n in range(18)])
    typed.text("report", "a.jsonl", "b.jsonl", "-o", "page.html")
    printed = typed.text("compare", "a.jsonl", "b.jsonl", "--all")[1]
    runs = [str(typed.folder / name) for name in ("a.jsonl", "b.jsonl")]
    for shown in (printed, typed.read("page.html").decode(), str(compare(runs))):
        assert "7.63e-06" in shown and "7.629" not in shown


def test_the_message_and_the_page_of_two_runs_count_the_same_records(typed: Typed) -> None:
    told = {"verdict": "pass", "workflow": "record", "checks": []}
    for name, count in (("a", 4), ("b", 3)):
        typed.write(f"{name}.jsonl", [{"id": f"r{n}", "judge": told} for n in range(count)])
    message = typed.text("report", "a.jsonl", "b.jsonl", "-o", "page.html")[2]
    page = typed.read("page.html").decode()
    assert "2 runs on the 3 records that they share, 7 verdicts; shown: 7 of 7 pass" in message
    assert "2 runs on the 3 records that they share." in page


NO_INTERVAL = "A difference without an interval is over fewer than 10 rows, or the same"


def test_what_few_pairs_or_none_do_not_say(typed: Typed) -> None:
    """Of (A, B): the cells of the row, and whether the table says why a difference has no
    interval, as of items of one row of the source. Of two that never differ, the interval ends at
    z^2 / (2 + z^2)."""
    for a, b, found, together in (
        ("eee", "111", ["0", "3", "–", "–", "–"], False),
        ("1ee", "011", ["1", "3", "1.00", "0.00", "-1.00 (-1.00 to 0.59)", "1", "1", "1"], False),
        ("11e", "111", ["2", "3", "1.00", "1.00", "0.00 (-0.66 to 0.66)", "1", "1"], False),
        ("11e", "111", ["2", "3", "1.00", "1.00", "0.00", "1", "1"], True),
    ):
        source = {"row": "n0"} if together else {}
        typed.write("a.jsonl", [line | source for line in answers(a)])
        typed.write("b.jsonl", [line | source for line in answers(b)])
        code, out, _ = typed.text("compare", "a.jsonl", "b.jsonl")
        assert (code, row(out, "country")[1:]) == (0, found)
        assert (NO_INTERVAL in " ".join(out.split())) == together
    typed.write("a.jsonl", [*answers("0110"), *(a | {"row": "n0"} for a in answers("11", "value"))])
    typed.write("b.jsonl", [*answers("1010"), *(a | {"row": "n0"} for a in answers("11", "value"))])
    slices = ("compare", "a.jsonl", "b.jsonl", "--by", "condition", "--json")
    whole, by = json.loads(typed.text(*slices)[1])["tables"]
    assert any(NO_INTERVAL in note for note in whole["notes"])
    assert any(NO_INTERVAL in note for note in by["notes"]), "the second slice lacks one"


def test_runs_that_asked_different_questions_are_told(typed: Typed) -> None:
    typed.write("r.jsonl", [{"id": "a", "text": "Roses."}])
    judge = typed.script("judge.yaml", [{"p_yes": 0.9}], method="logprobs")
    for out, question in (("a", "Polite?"), ("b", "A poem?"), ("c", "Polite?")):
        words = ("validate", "r.jsonl", "--ask", question, "--on", "text", "-m", judge, "-q")
        assert typed(*words, "-o", f"{out}.jsonl", "--overwrite").returncode == 0
    told = typed.text("compare", "a.jsonl", "b.jsonl", "c.jsonl")[2]
    said = (
        "check question: the runs asked different questions: A 'Polite?', B 'A poem?', C 'Polite?'"
    )
    assert said in " ".join(told.split())
    assert "different questions" not in typed.text("compare", "a.jsonl", "c.jsonl")[2]


def test_runs_with_other_answers_or_another_bound_are_told_also_on_the_page(typed: Typed) -> None:
    typed.write("r.jsonl", [{"id": "a", "text": "Roses."}])
    said = {"quote": None, "reason": "So.", "answer": "4"}
    judge = typed.script("judge.yaml", [{"reply": said}])
    (typed.folder / "runs").mkdir()
    for out, answers, bound in (("a", "1-5", ">= 3"), ("b", "1-10", ">= 5")):
        words = ("validate", "r.jsonl", "--ask", "Clear?", "--on", "text", "--answers", answers)
        assert (
            typed(*words, "--pass", bound, "-m", judge, "-o", f"runs/{out}.jsonl").returncode == 0
        )
    files = ("runs/a.jsonl", "runs/b.jsonl")
    notes = " ".join(typed.text("compare", *files)[2].split())
    assert "check question: the runs have different answers: A '1, 2, 3, 4, 5', B '1, 2," in notes
    assert "check question: the runs let different answers pass: A '>= 3', B '>= 5'" in notes
    assert typed("report", *files, "-o", "page.html").returncode == 0
    assert "let different answers pass" in typed.read("page.html").decode()


def test_bad_usage(typed: Typed) -> None:
    typed.write("other.jsonl", answers("11", benchmark="cali"))
    typed.write("plain.jsonl", [{"id": "n0", "story": "Ann greets."}])
    typed.write("table.jsonl", [{"id": "n0", "judge.verdict": "pass"}])
    for name, check in {
        "nameless": {"verdict": "pass"},
        "open": {"check": "c"},
        "word": "c",
    }.items():
        line = {"id": "n0", "judge": {"verdict": "pass", "workflow": "norm", "checks": [check]}}
        typed.write(f"{name}.jsonl", [line])
    for words, says in (
        (("a.jsonl", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        *(
            (("a.jsonl", f"{name}.jsonl"), f"{name}.jsonl, line 1: field 'judge' holds no verdict")
            for name in ("plain", "nameless", "open", "word")
        ),
        (
            ("a.jsonl", "other.jsonl"),
            "a.jsonl is of benchmark normad, other.jsonl of benchmark cali",
        ),
        (("a.jsonl", "table.jsonl"), "table.jsonl is a table of verdicts: name the JSON lines"),
        (("-", "-"), "standard input can be one run, not both"),
        (("a.jsonl",), "RUN_B"),
    ):
        code, out, told = typed.text("compare", *words)
        assert (code, out) == (2, ""), words
        assert says in told.replace("\n", " "), told


def test_two_runs_of_validate_as_json(typed: Typed) -> None:
    typed.write("norms.jsonl", [norm(number) for number in range(4)])
    typed.script("no.yaml", [{"p_yes": 0.1}], method="logprobs")
    words = ("validate", "norms.jsonl", "--check", "relevance", "-q", "-m")
    for name in ("yes", "no"):
        assert typed(*words, f"scripted:{name}.yaml", "-o", f"{name}.jsonl").returncode == 0
    code, out, _ = typed.text("compare", "no.jsonl", "yes.jsonl", "--json")
    found = json.loads(out)
    assert (code, found["made_by"]) == (0, "workflow norm")
    assert [one["verdict of"] for one in found["tables"][0]["rows"]] == [
        "record",
        "check relevance",
    ]
    for one in found["tables"][0]["rows"]:
        assert (one["A"]["value"], one["B"]["value"], one["pairs"]) == (0.0, 1.0, 4)
        assert one["McNemar p B"] == 0.125


@pytest.mark.slow
def test_several_runs_in_the_papers_table_and_in_a_figure(typed: Typed) -> None:
    """People beside a model."""
    pairs = [
        {"premise": f"P{n}.", "hypothesis": "H.", "us_ratings": ["E"], "in_ratings": [rating]}
        for n, rating in enumerate("EN" * 6)
    ]
    typed.write("pairs.jsonl", pairs)
    model = typed.script("m.yaml", [{"reply": {"answer": "Yes"}}])
    run = ("evaluate", "cali", "pairs.jsonl", "-m", model, "--condition", "entailment+in")
    assert typed(*run, "-o", "m.jsonl").returncode == 0
    people = [
        {"id": f"pairs.jsonl#{n}/entailment+in", "answer": "entail" if n % 2 else "not entail"}
        for n in range(1, 13)
    ]
    typed.write("people.jsonl", people)
    scored = ("score", "cali", "people.jsonl", "pairs.jsonl", "--condition", "entailment+in")
    assert typed(*scored, "-o", "p.jsonl").returncode == 0
    code, out, told = typed.text(
        "compare", "m.jsonl", "p.jsonl", "--paper", "--json", "--figure", "f.svg"
    )
    assert code == 0, told
    # No line tells judge score's from judge evaluate's, so no command is named.
    assert json.loads(out)["made_by"] == "benchmark cali"
    rows = {row["run"]: row for row in json.loads(out)["tables"][1]["rows"]}
    # Of six entailed and six not, all called entailed: F1 2/3 and 0.
    assert round(rows["A"]["IN"]["value"], 3) == 0.333 and rows["B"]["IN"]["value"] == 1
    drawn = typed.read("f.svg").decode()
    assert "B: p.jsonl" in drawn and "entailment+in" in drawn
    for words, fault in (
        (("--figure", "f.svg"), "--figure f.svg exists"),
        (("--figure", "f.txt"), "name a file that ends in .svg, .png"),
    ):
        code, _, told = typed.text("compare", "m.jsonl", "p.jsonl", *words)
        assert code == 2 and fault in told


def svg(text: bytes) -> list[str]:
    nodes = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(node.itertext()).strip() for node in nodes]


@pytest.mark.slow
def test_a_figure_has_a_panel_for_each_slice(typed: Typed) -> None:
    for name in ("a", "b"):
        lines = [*answers("1100"), *answers("0011", "value")]
        for line in lines:
            line["cluster"] = "Confucian" if line["row"] < "n2" else "Orthodox Europe"
        typed.write(f"{name}.jsonl", lines)
    words = ("compare", "a.jsonl", "b.jsonl", "--by", "cluster", "--figure", "f.svg")
    code, _, told = typed.text(*words)
    assert (code, told) == (0, "")
    drawn = svg(typed.read("f.svg"))
    for panel in ("Confucian", "Orthodox Europe"):
        assert drawn.count(panel) == 1
    # In all items, and in each of two clusters; the legend stands once.
    assert drawn.count("country") == 3 and drawn.count("mean score") == 3
    assert drawn.count("A: a.jsonl") == 1
    assert typed.text(*words, "--overwrite", "--form", "bars")[0] == 0
    bars = typed.read("f.svg")
    assert svg(bars).count("mean of the runs") == 1
    # Three rows in each of three panels, and the legend.
    assert bars.count(b"fill: #0072b2") == 10
    assert typed.text(*words[:-2], "--form", "bars")[0] == 2


def test_a_figure_that_cannot_show_a_name_says_so(typed: Typed) -> None:
    """The font of a .png lacks Chinese; text in a .svg is text."""
    for name in ("a", "\u4e59"):
        typed.write(f"{name}.jsonl", answers("1100"))
    words = ("compare", "a.jsonl", "\u4e59.jsonl", "--figure")
    code, _, told = typed.text(*words, "f.png")
    says = "judge: f.png shows boxes for letters that its font lacks: name a .svg file\n"
    assert (code, told) == (0, says)
    assert typed.text(*words, "f.svg")[::2] == (0, "")


@pytest.mark.filterwarnings("error")
def test_runs_without_scores_are_drawn_by_the_papers_measures_or_not_at_all(typed: Typed) -> None:
    folder = write_folder(typed.folder / "eecc")
    typed.script("m.yaml", [{"when": {"contains": "Indian"}, "reply": "a b"}, {"reply": "b c"}])
    for name in ("a", "b"):
        run = ("evaluate", "eecc", str(folder), "-m", "scripted:m.yaml", "--condition", "qa", "-q")
        assert typed(*run, "-o", f"{name}.jsonl", "--overwrite").returncode == 0
    words = ("compare", "a.jsonl", "b.jsonl", "--figure", "f.svg")
    code, out, told = typed.text(*words)
    assert (code, out) == (2, "") and "--paper has other measures" in told
    code, _, told = typed.text(*words, "--paper")
    assert code == 0 and "arning" not in told, told
    drawn = svg(typed.read("f.svg"))
    assert "eecc-variance: mean" in drawn and "mean score" not in drawn
    assert "qa, country, WED, across" in drawn and "B: b.jsonl" in drawn
    code, _, told = typed.text(*words, "--overwrite", "--form", "boxes")
    assert code == 2 and "no measures with boxes" in told
    assert typed.text(*words, "--paper", "--overwrite", "--form", "boxes")[0] == 0
    drawn = svg(typed.read("f.svg"))
    assert "eecc-variance: median (quartiles)" in drawn and "B: b.jsonl" in drawn
