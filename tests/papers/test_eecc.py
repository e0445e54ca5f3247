"""EECC from the released folder to tables: prompts, words, culture, distances, tau-c, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judge.errors import UsageError
from judge.papers.eecc import benchmark
from judge.papers.eecc_tables import (
    FILES,
    culture_distances,
    distances,
    read_vectors,
    taus,
    words_of,
)
from judge.papers.tables import tables_of
from judge.papers.tasks import MeasuredAnswer, load_task, task_messages
from judge.records import Record
from judge.stats.intervals import Estimate, Quartiles
from judge.stats.text import lexical_variance
from judge.verdict import AnswerOutcome
from tests.cli.typed import Typed

from .eecc_folder import ANSWER, HOFSTEDE, STORY, put, write_folder
from .examinee import Examined, ask, items, problems, public, table, value

NAN = float("nan")


async def test_the_prompt_is_what_the_model_is_asked() -> None:
    fields = {"condition": "qa", "prompt": "Explain {{ 7 * 7 }} sets to a Thai.", "draw": 3}
    model = Examined(lambda *_: "Sets hold things.")
    found = await ask(benchmark, fields, model)
    assert (found.outcome, found.answer, found.score) == ("answered", "Sets hold things.", None)
    # A prompt is no template.
    assert (model.asked, model.draws) == ([("eecc_qa", fields["prompt"])], [3])


def test_nothing_but_the_prompt_is_sent() -> None:
    for condition in ("qa", "stories"):
        prompt = task_messages(
            load_task(f"eecc_{condition}"), {"prompt": "Explain sets to a Thai."}
        )
        assert prompt == ({"role": "user", "content": "Explain sets to a Thai."},)


def listed(folder: Path, *conditions: str) -> list[Record]:
    return items(benchmark, str(folder), conditions=conditions or ["stories"])


def test_items_are_every_concept_identity_and_draw(tmp_path: Path) -> None:
    read = listed(write_folder(tmp_path), "stories", "qa")
    assert len(read) == 2 * 4 * 5 + 1 * 4 * 5
    fields = read[1].fields
    assert fields == {
        "id": "stories/honesty/Indian/1",
        "row": "stories/honesty/Indian",
        "condition": "stories",
        "topic": "moral_values",
        "concept": "honesty",
        "identity": "Indian",
        "kind": "country",
        "draw": 1,
        "prompt": "Write a children's story about honesty for an Indian kid in English.",
        "data": str(tmp_path),
    }
    assert len({one.fields["id"] for one in read if one.fields}) == len(read)
    assert [one.fields["id"] for one in read if one.fields][-1] == "qa/elections/Ugandan/4"


def test_a_concept_is_asked_about_once_and_not_looked_into(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    put(
        folder / "qa/concepts.tsv",
        ["biology\tcells", "biology\tcells", "maths\tsets of {identity}"],
    )
    read = listed(folder, "qa")
    assert not problems(read) and len(read) == 2 * 4 * 5
    expected = "Explain sets of {identity} to a Ugandan person in English."
    assert read[-1].fields["prompt"] == expected


def test_a_file_of_values_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / FILES["Hofstede"]
    path.write_text(HOFSTEDE.replace("50,0", "#NULL!,0"), "utf-8")
    assert np.isnan(read_vectors(path)["Arab"][0])
    for old, new, says in (
        (",German,20", ",German,20,1", "csv, line 3: .* the row has 6 cells, the header"),
        ("Demonym", "People", "csv, line 2: .* Demonym '' is missing"),
        ("20,0", "many,0", "csv, line 3: .*'many'"),
        (",German,20", ",Indian,20", "csv, line 3: .* 'Indian' is missing, or was there"),
    ):
        path.write_text(HOFSTEDE.replace(old, new, 1), "utf-8")
        with pytest.raises(UsageError, match=says):
            read_vectors(path)


def test_sources_that_cannot_be_used(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a")
    with pytest.raises(UsageError, match="one folder"):
        items(benchmark, str(folder), str(folder))
    with pytest.raises(UsageError, match="not a folder"):
        listed(folder / "identities.tsv")
    for name, lines, message in (
        ("qa/templates.tsv", [f"_\t_\t{ANSWER}"] * 2, "templates.tsv:2: an earlier line has"),
        ("qa/templates.tsv", [""], "templates.tsv: no template"),
        ("qa/templates.tsv", ["_\t_\tExplain {concept}."], r"templates.tsv:1: .*\{identity\}"),
        ("stories/concepts.tsv", ["no tab"], ":1: not two cells"),
        ("stories/concepts.tsv", ["a\tx", "b\tx"], ":2: concept 'x'"),
    ):
        put(folder / name, lines)
        with pytest.raises(UsageError, match=message):
            listed(folder, name.split("/")[0])
    (folder / "identities.tsv").write_bytes(b"country\tS\xe3o")
    with pytest.raises(UsageError, match=r"identities.tsv: not UTF-8"):
        listed(folder)
    (folder / "identities.tsv").unlink()
    with pytest.raises(UsageError, match=r"identities.tsv: No such file"):
        listed(folder)


@pytest.mark.slow
def test_the_released_folder() -> None:
    """345 topics as in the paper; 193 nationalities, of which the paper says that they are 195."""
    read = listed(public("eecc"), "stories", "qa")
    assert not problems(read)
    concepts = {(one.fields["condition"], one.fields["concept"]) for one in read if one.fields}
    assert Counter(condition for condition, _ in concepts) == {"stories": 35, "qa": 345}
    assert len(read) == (35 + 345) * 193 * 5
    prompts = [one.fields["prompt"] for one in read if one.fields]
    assert "Explain elections to an Indian person in English." in prompts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know; we’ll see.", "i do n't know ; we 'll see ."),
        ("Raj's self-governing friend, João", "raj 's self-governing friend , joão"),
        ('"Hi!" he said...', '" hi ! " he said ...'),
        ("3.5 of 1,000 at 7:30 o'clock", "3.5 of 1,000 at 7:30 o'clock"),
        ("can't 'no' n't", "ca n't ' no ' n't"),
        # Scripts without spaces by letter: Chinese, Japanese, Thai with its marks; then Korean.
        ("\u4f60\u597d\uff0cAnn's 3.5\u3002", "\u4f60 \u597d \uff0c ann 's 3.5 \u3002"),
        ("\u30bf\u30ef\u30fc\u3078", "\u30bf \u30ef \u30fc \u3078"),
        ("\u0e17\u0e35\u0e48\u0e14\u0e35", "\u0e17\u0e35\u0e48 \u0e14\u0e35"),
        ("\uc548\ub155 \uc138\uacc4", "\uc548\ub155 \uc138\uacc4"),
        # Marks and joiners inside words: Hindi, Yoruba, Persian.
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u0939\u0948\u0964",
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u0939\u0948 \u0964",
        ),
        ("Ol\u1ecd\u0301run", "ol\u1ecd\u0301run"),
        ("\u0645\u06cc\u200c\u0631\u0648\u0645", "\u0645\u06cc\u200c\u0631\u0648\u0645"),
        # Other invisible characters: a soft hyphen, marks of direction, Khmer's break of words.
        ("ad\u00admin\u200f\u2066\u2069\u202c, \u1794\u200b\u1784", "admin , \u1794 \u1784"),
    ],
)
def test_by_hand(text: str, expected: str) -> None:
    assert words_of(text) == expected.split()


def test_distances_by_hand() -> None:
    vectors = {"a": [0, 0, 0], "b": [3, 4, 0], "c": [1, NAN, NAN], "d": [NAN, 1, 1]}
    found = culture_distances(vectors, ["a", "b", "c", "x", "d"])
    assert found[0, 1] == 5
    # One of three dimensions: as if the other two differed as much.
    assert found[0, 2] == pytest.approx(3**0.5)
    assert found[1, 2] == pytest.approx((4 * 3) ** 0.5)
    assert np.isnan(found[2, 4]) and np.isnan(np.delete(found[3], 3)).all()


def test_the_released_files() -> None:
    """94 countries with Hofstede's dimensions and 249 questions of the WVS, as in section 4.3.2."""
    folder = public("eecc")
    lines = (folder / "identities.tsv").read_text("utf-8").splitlines()
    identities = {line.split("\t")[1] for line in lines}
    assert len(identities & read_vectors(folder / FILES["Hofstede"]).keys()) == 94
    vectors = read_vectors(folder / FILES["WVS"])
    assert len(identities & vectors.keys()) == 58
    assert {len(values) for values in vectors.values()} == {249}
    # The party question alone goes beyond ten.
    assert np.nanmax(np.array(list(vectors.values()))) < 10


A, B, C = ["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "x"], ["p", "q", "r", "s", "t"]


def test_distances_of_identities_are_means_over_pairs_of_outputs() -> None:
    across, within = distances([A, B, C], [0, 0, 1], "WED")
    assert across == pytest.approx(np.array([[0, 1], [1, 0]]))
    assert within[0] == pytest.approx(np.array([[0, 0.2], [0.2, 0]]))
    assert within[1].shape == (1, 1)
    across, _ = distances([A, C, B, B], [0, 0, 1, 1], "WED")
    assert across[0, 1] == pytest.approx((0.2 + 0.2 + 1 + 1) / 4) and across[0, 0] == 0


def test_tau_of_the_papers_example() -> None:
    """Appendix C.2: by text B, D, C; by values, once turned as the text's, D, C, B."""
    text = {"B": 0.1, "D": 0.2, "C": 0.3}
    values = {"D": 10.0, "C": 20.0, "B": 30.0}
    found, *_ = taus(_from_a(text), _from_a(values))
    assert found == pytest.approx(-1 / 3)


def test_countries_with_the_same_outputs_in_another_order_are_tied() -> None:
    """By text B and C are as far from A, and D farther; by values B, C, D: two of the three pairs
    agree and one is a tie, 2 (2 - 0) / (3^2 (2 - 1) / 2)."""
    text = {"B": 0.1 + 0.2 + 0.3, "C": 0.3 + 0.2 + 0.1, "D": 0.7}
    assert text["B"] > text["C"]
    found, *_ = taus(_from_a(text), _from_a({"B": 1.0, "C": 2.0, "D": 3.0}))
    assert found == pytest.approx(8 / 9)


def _from_a(distances: Mapping[str, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    found = np.ones((4, 4))
    found[0, 1:] = [distances[name] for name in "BCD"]
    found[:, 0] = found[0]
    return found


NEAR = ("raj went home by the old road", "raj went home by the new road")
TEXTS = {
    "Indian": NEAR,
    "German": ("hans went home by the old road", "hans went home by the new road"),
    "Nigerian": ("tunde sat down under a tall green tree", "tunde sat down under a tree"),
    "Ugandan": ("", "okello saw a green tree there"),
}


def results_in(folder: Path) -> list[MeasuredAnswer]:
    read = [item.fields for item in listed(folder)]
    results = []
    for fields in read:
        assert fields is not None
        if fields["draw"] > 1:
            continue
        text = TEXTS[fields["identity"]][fields["draw"]]
        end = " in the forest" if fields["concept"] == "forest" else ""
        result = MeasuredAnswer(fields, AnswerOutcome.ANSWERED, answer=text + end)
        results.append(result if text else MeasuredAnswer(fields, AnswerOutcome.REFUSED))
    return results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / FILES["Hofstede"], HOFSTEDE.splitlines())
    return write_folder(tmp_path)


def test_variance_across_and_within_words_and_tau(folder: Path) -> None:
    results = results_in(folder)
    replies = table(benchmark, results, "eecc-replies")["stories", "country"]
    assert (replies["asked"], replies["answered"], replies["refused"]) == (16, 14, 2)
    honesty = [one for one in results if one.fields["concept"] == "honesty"]
    found = {
        name: {labels[2:]: row for labels, row in table(benchmark, honesty, name).items()}
        for name in ("eecc-variance", "eecc-anova", "eecc-words", "eecc-tau")
    }
    outputs = [text.split() for texts in TEXTS.values() for text in texts if text]
    across, within = distances(outputs, [0, 0, 1, 1, 2, 2, 3], "WED")
    variance = found["eecc-variance"]
    assert value(variance["WED", "across"]["mean"]) == pytest.approx(lexical_variance(across))
    # The Ugandan has one output: something across, nothing within.
    one = [lexical_variance(block) or 0.0 for block in within[:3]]
    assert value(variance["WED", "within"]["mean"]) == pytest.approx(sum(one) / 3)
    # One concept: one value in each group.
    assert found["eecc-anova"]["WED",]["degrees of freedom"] == "1, 0"
    # Twice in one document of four: 2 ln 4; twice in one of two: 2 ln 2; once: ln 2.
    words = found["eecc-words"]["all", "Indian"]["words"]
    assert words == "raj, by, home, road, the, went, new, old"
    # The Indian's outputs are nearest to the German's, and so are the values, either way; the
    # Nigerian's share no word with either.
    assert value(found["eecc-tau"]["Hofstede", "WED"]["mean"]) == 1
    assert found["eecc-tau"]["Hofstede", "WED"]["median (quartiles)"] == Quartiles.of([1.0])
    assert benchmark.tables is not None
    (tau,) = (one for one in benchmark.tables(honesty) if one.name == "eecc-tau")
    notes = " ".join(tau.notes)
    assert "Hofstede values for 3 of 4" in notes and "no WVS values" in notes


def test_medians_quartiles_and_tau_by_country(folder: Path) -> None:
    """Figures 1 to 3, by hand: two concepts, and tau of each country."""
    results = results_in(folder)
    key = ("stories", "country", "WED", "across")
    variance = table(benchmark, results, "eecc-variance")[key]
    parts = [
        value(table(benchmark, part, "eecc-variance")[key]["mean"])
        for concept in ("honesty", "forest")
        if (part := [one for one in results if one.fields["concept"] == concept])
    ]
    low, high = sorted(parts)
    median, lower, upper = (low + (high - low) * share for share in (0.5, 0.25, 0.75))
    box = variance["median (quartiles)"]
    assert str(box) == f"{median:.3f} ({lower:.3f} to {upper:.3f})"
    for copies in (4, 5):  # of two concepts; the mean of fewer than ten has no interval
        many = [
            replace(one, fields={**one.fields, "concept": f"{one.fields['concept']} {number}"})
            for number in range(copies)
            for one in results
        ]
        mean = table(benchmark, many, "eecc-variance")[key]["mean"]
        assert isinstance(mean, Estimate) and (mean.low is not None) == (copies == 5)
    assert Quartiles.of([]) is None
    # Quartiles 3 and 7: what is 6 from them and nearer is within the box's whiskers.
    assert Quartiles.of([*range(1, 9), 100]) == Quartiles(5, 3, 7, 1, 8)
    # 0 is too far from the quartile 15, and nothing is between: the whisker ends at the box.
    assert Quartiles.of([0, 20, 20, 20]) == Quartiles(20, 15, 20, 15, 20)
    countries = table(benchmark, results, "eecc-tau-countries")
    names = {labels[-1] for labels in countries}
    # The Nigerian's outputs are as far from either, the Ugandan has no values.
    assert names == {"Indian", "German"}
    row = countries["stories", "country", "Hofstede", "WED", "Indian"]
    assert value(row["mean"]) == 1
    assert row["p < 0.05"] is None, "two others have no test"


def test_a_country_differs_from_0_where_kendalls_test_says_so(folder: Path) -> None:
    """Others in reversed order, tau -1: 2 of the 120 orders of five are as far from 0, p 0.017; 2
    of the 24 of four, p 0.083."""
    for others, count in ((5, 1), (4, 0)):
        names = ["A", *map(str, range(others))]
        put(folder / FILES["Hofstede"], ["Demonym,x", *(f"{n},{i}" for i, n in enumerate(names))])
        results = [
            MeasuredAnswer(
                {
                    "id": f"{name}/0",
                    "condition": "stories",
                    "kind": "country",
                    "draw": 0,
                    "topic": "t",
                    "concept": "c",
                    "identity": name,
                    "data": str(folder),
                },
                AnswerOutcome.ANSWERED,
                answer="a " * (9 if name == "A" else 1 + 8 * int(name) // 5) + "b",
            )
            for name in names
        ]
        row = table(benchmark, results, "eecc-tau-countries")[
            "stories", "country", "Hofstede", "WED", "A"
        ]
        assert value(row["mean"]) == -1 and row["p < 0.05"] == f"{count} of 1"


def test_outputs_of_one_template_are_compared_with_one_another_alone(folder: Path) -> None:
    """Of two templates a concept's value is the mean; ids of a folder with one stay as they are."""
    plain = results_in(folder)
    before = table(benchmark, plain, "eecc-variance")["stories", "country", "WED", "across"]
    put(folder / "stories/templates.tsv", [f"_\t_\t{STORY}", f"_\t_\tIn short: {STORY}"])
    both = [item.fields for item in listed(folder)]
    assert len(both) == 2 * 2 * 4 * 5
    assert both[0] is not None and both[-1] is not None
    assert (plain[0].id, both[0]["id"]) == (
        "stories/honesty/Indian/0",
        "stories/1/honesty/Indian/0",
    )
    assert both[-1]["prompt"].startswith("In short: Write")
    # The second template's outputs are all alike: no variance, and half of it in the mean.
    alike = [replace(one, fields={**one.fields, "template": 2}, answer="a tale") for one in plain]
    results = [replace(one, fields={**one.fields, "template": 1}) for one in plain] + alike
    after = table(benchmark, results, "eecc-variance")["stories", "country", "WED", "across"]
    whole = value(before["mean"])
    assert whole and value(after["mean"]) == pytest.approx(whole / 2)


def test_values_of_ones_own_are_a_file_beside_the_papers(folder: Path) -> None:
    put(folder / "trust.csv", ["Demonym,trust", "Indian,1", "German,5", "Nigerian,1.5", "Thai,2"])
    put(folder / "notes.csv", ["name,text", "a,b"])
    put(folder / "title.csv", ["Our figures", "a,b", "1,2"])
    rows = table(benchmark, results_in(folder), "eecc-tau")
    assert {labels[2] for labels in rows} == {"Hofstede", "trust"}
    # The Indian and the German write alike, and are farthest apart here.
    here, there = (
        value(rows["stories", "country", name, "WED"]["mean"]) for name in ("trust", "Hofstede")
    )
    assert here is not None and there is not None and here < 0 < there


def test_without_values_of_countries_the_first_table_says_that_there_is_no_tau(
    folder: Path,
) -> None:
    results = results_in(folder)
    (folder / FILES["Hofstede"]).unlink()
    variance, *others = tables_of(benchmark, results)
    assert variance.name == "eecc-variance" and "eecc-tau" not in {one.name for one in others}
    lacking = [f"stories: no {name} values, {folder / FILES[name]} is not there." for name in FILES]
    assert variance.notes[-2:] == tuple(lacking)


def test_released_outputs_are_scored_as_our_own_answers_are(typed: Typed) -> None:
    """Tab-separated, five outputs a line, `~| ` for a line's end, cells quoted as pandas does."""
    concepts = {"forest": "1984", "honesty": "moral_values"}
    folder = write_folder(typed.folder / "f", ("Indian", "Ugandan"), concepts)
    lines, ours = ["_\t_\ttemplate\ttopic\tconcept\tgranularity\tidentity\tprompt\t0"], []
    texts = {"Indian": 'Raj said: "No."\n\nHe went.', "Ugandan": "Okello went home."}
    for concept, topic in concepts.items():
        for identity, text in texts.items():
            outputs = [f"{text} {draw}" for draw in range(5)]
            ours += [
                {"id": f"stories/{concept}/{identity}/{draw}", "answer": output}
                for draw, output in enumerate(outputs)
            ]
            cells = [output.replace("\n", "~| ") for output in outputs]
            cells = ['"' + c.replace('"', '""') + '"' if '"' in c else c for c in cells]
            start = ["_", "_", STORY, topic, concept, "country", identity, "an Ugandan prompt"]
            lines.append("\t".join(start + cells))
    ours[-1]["answer"] = None
    lines[-1] = lines[-1].removesuffix("Okello went home. 4")
    lines.append(
        "\t".join(["_", "_", STORY, "moral_values", "honesty", "country", "Thai", "p", "x"])
    )
    put(typed.folder / "released.tsv", lines)
    typed.write("ours.jsonl", ours)
    words = ("score", "eecc", "released.tsv", str(folder), "--json")
    code, shown, told = typed.text(*words, "-o", "a")
    assert code == 0, told
    assert "1 answer without a gold item, left out: line 6/0\n" in told
    code, expected, told = typed.text(*words[:2], "ours.jsonl", *words[3:], "-o", "b")
    assert (code, shown) == (0, expected), told
    lines_written = typed.read("a")
    assert lines_written == typed.read("b")
    assert b'Raj said: \\"No.\\"\\n\\nHe went. 3' in lines_written
    put(typed.folder / "released.tsv", lines[1:])
    assert typed.text(*words)[:2] == (0, shown)
    lines[-2] += '""'
    put(typed.folder / "released.tsv", lines)
    assert typed.text(*words)[:2] == (0, shown), "nothing between quotes is no output, too"
    code, _, told = typed.text("score", "eecc", "released.tsv")
    assert code == 2 and "name the folder as well" in told
    put(typed.folder / "released.tsv", [lines[1], "_\t_\tcut"])
    code, _, told = typed.text("score", "eecc", "released.tsv", str(folder))
    assert code == 2 and "released.tsv, line 2: 3 cells, and no output" in told


def test_the_words_that_tell_chinese_outputs_apart_are_letters(folder: Path) -> None:
    """Not none, as if each output were one word."""
    results = results_in(folder)
    chinese = {"Indian": "\u6cb3\u6d41", "German": "\u68ee\u6797"}
    told = [
        replace(one, answer=chinese[one.fields["identity"]] + "\u7684\u6545\u4e8b\u3002")
        for one in results
        if one.fields["identity"] in chinese and one.fields["concept"] == "honesty"
    ]
    words = table(benchmark, told, "eecc-words")
    found = {labels[-1]: row["words"] for labels, row in words.items()}
    assert found == {"Indian": "\u6cb3, \u6d41", "German": "\u6797, \u68ee"}
    # Two letters of five differ, and the full stop: 2 / 6.
    across = table(benchmark, told, "eecc-variance")["stories", "country", "WED", "across"]
    assert value(across["mean"]) == pytest.approx((2 / 6) ** 2 / 4)
