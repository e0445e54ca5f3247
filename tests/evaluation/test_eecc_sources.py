"""EECC's folder and files of outputs: items, prompts, what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.evaluation.benchmark import Choices
from judge.evaluation.eecc import benchmark
from judge.evaluation.eecc_sources import article, items, read_outputs, read_setting
from judge.records import Item

from .eecc_folder import ANSWER, STORY, output_line, put, write_folder

RELEASED = Path(__file__).parents[3] / "shared" / "data" / "eecc"


def found(folder: Path, *conditions: str, draws: int = 1) -> list[Item]:
    return list(items([str(folder)], Choices(conditions or ("stories",), draws=draws)))


def problems(read: list[Item]) -> list[tuple[int, str]]:
    return [(one.line, one.problem.message) for one in read if one.problem is not None]


def test_items_are_every_concept_identity_and_draw(tmp_path: Path) -> None:
    read = found(write_folder(tmp_path), "stories", "qa", draws=5)
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


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Indian", "an"),
        ("Uzbek", "an"),
        ("I-Kiribati", "an"),
        ("German", "a"),
        ("Ugandan", "a"),
        ("Ukrainian", "a"),
        ("Uruguayan", "a"),
        ("European", "a"),
        ("São Toméan", "a"),
    ],
)
def test_article(word: str, expected: str) -> None:
    assert article(word) == expected


def test_what_is_filled_in_is_not_looked_into_again(tmp_path: Path) -> None:
    setting = read_setting(write_folder(tmp_path), "qa")
    prompt = setting.prompt("the {identity} of {braces", "Thai")
    assert prompt == "Explain the {identity} of {braces to a Thai person in English."


def test_a_concept_listed_twice_is_asked_about_once(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    put(folder / "qa/concepts.tsv", ["biology\tcells", "biology\tcells", "maths\tsets"])
    read = found(folder, "qa")
    assert not problems(read) and len(read) == 2 * 4


def test_lines_that_cannot_be_read_come_first(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    put(folder / "qa/concepts.tsv", ["biology\tcells", "no tab", "law\tcells", "\tnone"])
    put(folder / "identities.tsv", ["country\tIndian", "a\tb\tc"])
    read = found(folder, "qa")
    assert problems(read) == [
        (2, "not two cells, kind and identity"),
        (2, "not two cells, topic and concept"),
        (3, "concept 'cells' is of topic 'law' here and of 'biology' on line 1"),
        (4, "not two cells, topic and concept"),
    ]
    assert [one.fields["id"] for one in read if one.fields] == ["qa/cells/Indian/0"]
    assert read[1].source.endswith("concepts.tsv") and read[1].raw == "no tab"


def test_sources_that_cannot_be_used(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a")
    with pytest.raises(UsageError, match="one folder"):
        list(items([str(folder), str(folder)], Choices(("qa",))))
    with pytest.raises(UsageError, match="not a folder"):
        found(folder / "identities.tsv")
    for lines, message in (
        ([], "0 templates"),
        ([f"_\t_\t{ANSWER}"] * 2, "2 templates"),
        (["_\t_\tExplain {concept}."], r"templates.tsv:1: .*\{identity\}"),
    ):
        put(folder / "qa/templates.tsv", lines)
        with pytest.raises(UsageError, match=message):
            found(folder, "qa")
    (folder / "identities.tsv").write_bytes(b"country\tS\xe3o")
    with pytest.raises(UsageError, match=r"identities.tsv: not UTF-8"):
        found(folder)
    (folder / "identities.tsv").unlink()
    with pytest.raises(UsageError, match=r"identities.tsv: No such file"):
        found(folder)


def test_outputs_as_they_were_released(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    quoted = '"He said ""Hi"".~| The end."'
    path = put(
        folder / "outputs.tsv",
        [
            output_line(STORY, "forest", "Indian", "One.~| ~| Two.", quoted, "", '"Hi', "Five\r."),
            output_line(ANSWER, "elections", "Thai", "Once."),
            output_line(STORY, "forest", "Indian", "Again."),
        ],
    )
    read = read_outputs(path, folder)
    assert not read.problems
    results = {result.id: result for result in read.results}
    texts = [results[f"stories/forest/Indian/{draw}"].answer for draw in range(6)]
    assert texts == ["One.\n\nTwo.", 'He said "Hi".\nThe end.', None, '"Hi', "Five\r.", "Again."]
    assert results["stories/forest/Indian/2"].outcome == "error"
    first = results["stories/forest/Indian/0"].fields
    assert first["topic"] == "specific_settings" and first["prompt"] == "the prompt"
    assert first["data"] == str(folder) and first["draw"] == 0
    assert results["qa/elections/Thai/0"].fields["topic"] == "politics"


def test_lines_of_outputs_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    header = "_\t_\ttemplate\ttopic\tconcept\tgranularity\tidentity\tprompt\tresponse"
    path = put(
        folder / "outputs.tsv",
        [
            header,
            output_line("Sing of {concept}", "forest", "Indian", "One."),
            output_line(STORY, "forest", "Indian"),
            output_line(STORY, "forest", "", "One."),
            output_line(STORY, "forest", "Indian", "One."),
        ],
    )
    read = read_outputs(path, folder)
    assert problems(list(read.problems)) == [
        (2, "the template is none of the folder's"),
        (3, "8 cells, a line of outputs has 9 or more"),
        (4, "field 'identity' is empty"),
    ]
    assert [result.id for result in read.results] == ["stories/forest/Indian/0"]
    put(path, ["some text"])
    with pytest.raises(UsageError, match=r"no line .*outputs.tsv:1: 1 cells"):
        read_outputs(path, folder)


def test_the_released_folder() -> None:
    """345 topics as in the paper; 193 nationalities, of which the paper says that they are 195."""
    if not RELEASED.is_dir():
        pytest.skip("the public data are not here")
    read = found(RELEASED, "stories", "qa")
    assert not problems(read)
    counts = {
        condition: len(
            {
                one.fields["concept"]
                for one in read
                if one.fields and one.fields["condition"] == condition
            }
        )
        for condition in benchmark.conditions
    }
    assert counts == {"stories": 35, "qa": 345}
    assert len(read) == (35 + 345) * 193
    prompts = [one.fields["prompt"] for one in read if one.fields]
    assert "Explain elections to an Indian person in English." in prompts
