"""EECC from items to tables: asking, distances, tau-c, what the tables hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judge.evaluation.benchmark import Choices, Given, Result
from judge.evaluation.eecc import analyse, answer, benchmark
from judge.evaluation.eecc_analysis import distances, listed_tau, taus
from judge.evaluation.eecc_culture import FILES, Culture
from judge.evaluation.eecc_tables import tables
from judge.evaluation.tables import Cell, Table
from judge.stats.bleu import symmetric_bleu
from judge.stats.intervals import Estimate
from judge.stats.text import Rule, lexical_variance
from judge.task import load_task
from judge.verdict import Usage

from .eecc_folder import HOFSTEDE, STORY, output_line, put, write_folder
from .examinee import Unasked


class Writer(Unasked):
    """Writes what a function of the prompt and the draw says."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.asked: list[tuple[str, Mapping[str, str], int]] = []

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        self.asked.append((task, texts, draw))
        return self.given


FIELDS = {"condition": "qa", "prompt": "Explain sets to a Thai person in English.", "draw": 3}
ONE = Usage(replies=1)


async def test_the_prompt_is_what_the_model_is_asked() -> None:
    model = Writer(Given(ONE, text="Sets hold things."))
    found = await answer(FIELDS, model)
    assert (found.outcome, found.answer, found.score) == ("answered", "Sets hold things.", None)
    assert model.asked == [("eecc_qa", {"prompt": FIELDS["prompt"]}, 3)]
    (_, message) = load_task("eecc_qa").prompt({"prompt": str(FIELDS["prompt"])})
    assert message["content"] == FIELDS["prompt"]


async def test_a_prompt_is_no_template() -> None:
    (_, message) = load_task("eecc_stories").prompt({"prompt": "About {{ 7 * 7 }}."})
    assert message["content"] == "About {{ 7 * 7 }}."


@pytest.mark.parametrize(
    ("given", "outcome", "reason"),
    [
        (Given(ONE, trouble="refused", detail="I cannot."), "refused", "I cannot."),
        (Given(ONE, text=" \n"), "unreadable", "the text is empty"),
        (Given(ONE, text="Once", detail="cut off at 100 tokens"), "answered", "cut off"),
    ],
)
async def test_what_may_come_back(given: Given, outcome: str, reason: str) -> None:
    found = await answer(FIELDS, Writer(given))
    assert found.outcome == outcome and (found.reason or "").startswith(reason)


def test_as_long_as_in_the_paper() -> None:
    assert [load_task(task).max_tokens for task in benchmark.tasks] == [1000, 100]
    assert benchmark.draws == 5


A, B, C = ["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "x"], ["p", "q", "r", "s", "t"]


def test_distances_of_identities_are_means_over_pairs_of_outputs() -> None:
    across, within = distances([A, B, C], [0, 0, 1], "WED")
    assert across == pytest.approx(np.array([[0, 1], [1, 0]]))
    assert within[0] == pytest.approx(np.array([[0, 0.2], [0.2, 0]]))
    assert within[1].shape == (1, 1)
    across, _ = distances([A, C, B, B], [0, 0, 1, 1], "WED")
    assert across[0, 1] == pytest.approx((0.2 + 0.2 + 1 + 1) / 4) and across[0, 0] == 0


def test_bleu_becomes_a_distance() -> None:
    across, within = distances([A, B, C], [0, 0, 1], "BLEU")
    expected = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert within[0][0, 1] == pytest.approx(1 - expected) == 1 - symmetric_bleu([A, B])[0, 1]
    assert across[0, 1] == 1


def test_the_scripts_take_one_direction_of_bleu() -> None:
    long, short = [*A, "f"], A
    back = math.exp(1 - 6 / 5)
    across, _ = distances([short, long], [0, 1], "BLEU", rule="released")
    assert across[0, 1] == across[1, 0] == pytest.approx(1 - back)
    # All outputs of an identity are references at once.
    across, _ = distances([A, C, B, C], [0, 0, 1, 1], "BLEU", rule="released")
    matched = (9 / 10) * (7 / 8) * (5 / 6) * (3 / 4)
    assert across[0, 1] == pytest.approx(1 - matched**0.25)


def test_tau_of_the_papers_example() -> None:
    """Appendix C.2: by text B, D, C; by values, once turned as the text's, D, C, B."""
    text = {"B": 0.1, "D": 0.2, "C": 0.3}
    values = {"D": 10.0, "C": 20.0, "B": 30.0}
    found = taus(list("ABCD"), _from_a(text), Culture(tuple("ABCD"), _from_a(values)), "WED")
    assert found["A"] == pytest.approx(-1 / 3)


def _from_a(distances: Mapping[str, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    found = np.ones((4, 4))
    found[0, 1:] = [distances[name] for name in "BCD"]
    found[:, 0] = found[0]
    return found


def test_tau_is_over_the_countries_that_both_know() -> None:
    text = np.array([[0, 1, 2, 3], [1, 0, 1, 1], [2, 1, 0, 1], [3, 1, 1, 0]], dtype=np.float64)
    values = np.array([[0, 5, np.nan], [5, 0, 7], [np.nan, 7, 0]])
    found = taus(["a", "b", "c", "d"], text, Culture(("d", "a", "z"), values), "WED")
    assert found == {"a": None, "d": None}
    far = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]], dtype=np.float64)
    assert taus(["a", "b", "c", "x"], text, Culture(("c", "b", "a"), far), "WED")["a"] == -1


def test_the_scripts_correlate_names_and_drop_the_first() -> None:
    # Nearest first. By values: a b c d -> b c d; by text: d c b a -> c b a; as places in the
    # alphabet 1 2 3 and 2 1 0.
    found = listed_tau("abcd", np.array([4.0, 3, 2, 1]), np.array([1.0, 2, 3, 4]), "WED")
    assert found == -1
    # By text d a b c: less its first it is a b c, in one order with b c d; with it tau-c is 0.
    text, values = np.array([2.0, 3, 4, 1]), np.array([1.0, 2, 3, 4])
    assert listed_tau("abcd", text, values, "WED") == 1
    # BLEU has the farthest first: c b a d and d c b a, less their first.
    assert listed_tau("abcd", text, values, "BLEU") == pytest.approx(-1 / 3)


RULES: tuple[Rule, ...] = ("paper", "released", "distinct")

# ---------------------------------------------------------------- tables

NEAR = ("raj went home by the old road", "raj went home by the new road")
TEXTS = {
    "Indian": NEAR,
    "German": ("hans went home by the old road", "hans went home by the new road"),
    "Nigerian": ("tunde sat down under a tall green tree", "tunde sat down under a tree"),
    "Ugandan": ("", "okello saw a green tree there"),
}


def results_in(folder: Path) -> list[Result]:
    read = [item.fields for item in benchmark.items([str(folder)], Choices(("stories",), draws=2))]
    results = []
    for fields in read:
        assert fields is not None
        text = TEXTS[fields["identity"]][fields["draw"]]
        end = " in the forest" if fields["concept"] == "forest" else ""
        result = Result(fields, "answered", answer=text + end)
        results.append(result if text else Result(fields, "refused"))
    return results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / FILES["Hofstede"], HOFSTEDE.splitlines())
    return write_folder(tmp_path)


def named(found: Sequence[Table]) -> dict[str, Table]:
    assert len({table.name for table in found}) == len(found)
    for table in found:
        for row in table.rows:
            assert len(row.labels) == len(table.heads) and set(row.cells) <= set(table.columns)
        assert set(table.drawn) <= set(table.columns)
        table.as_json()
    return {table.name: table for table in found}


def estimate(cell: Cell) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


def cells(table: Table, *labels: str) -> Mapping[str, Cell]:
    (row,) = [row for row in table.rows if row.labels[-len(labels) :] == labels]
    return row.cells


def test_tables(folder: Path) -> None:
    found = named(tables(results_in(folder)))
    assert found["eecc-replies"].rows[0].cells == {
        "asked": 16,
        "answered": 14,
        "refused": 2,
        "unreadable": 0,
        "error": 0,
        "nationalities": 4,
        "concepts": 2,
    }
    words = cells(found["eecc-words"], "all", "Indian")["words"]
    assert isinstance(words, str) and words.split(", ")[0] == "raj"
    assert found["eecc-variance"].figure == "boxes"
    assert found["eecc-tau-countries"].figure == "bars"


def test_variance_across_and_within(folder: Path) -> None:
    found = named(tables(results_in(folder)))
    row = cells(found["eecc-variance-concepts"], "moral_values", "honesty")
    outputs = [text.split() for texts in TEXTS.values() for text in texts if text]
    across, within = distances(outputs, [0, 0, 1, 1, 2, 2, 3], "WED")
    assert estimate(row["across WED"]).value == pytest.approx(lexical_variance(across))
    one = [lexical_variance(block) for block in within[:3]]
    mean = sum(value for value in one if value is not None) / 3
    assert estimate(row["within WED"]).value == pytest.approx(mean)
    # The Ugandan has one output: something across, nothing within.
    assert (estimate(row["across WED"]).n, estimate(row["within WED"]).n) == (4, 3)
    assert estimate(row["within WED"]).of == 4
    whole = found["eecc-variance"].rows[0]
    assert whole.labels == ("stories", "country", "WED", "across")
    assert len(whole.spread) == 2
    assert estimate(whole.cells["mean"]).value == pytest.approx(sum(whole.spread) / 2)
    assert estimate(whole.cells["median"]).value == pytest.approx(sum(whole.spread) / 2)
    topic = cells(found["eecc-variance-topics"], "moral_values")
    assert estimate(topic["across WED"]).value == estimate(row["across WED"]).value


def test_anova_is_of_the_concepts_variances(folder: Path) -> None:
    found = named(tables(results_in(folder)))
    row = cells(found["eecc-anova"], "WED")
    across, within = (
        np.array(spread.spread)
        for spread in found["eecc-variance"].rows
        if spread.labels[2] == "WED"
    )
    between = (across.mean() - within.mean()) ** 2  # 2 * 2 * (half the difference)^2
    left = ((across - across.mean()) ** 2).sum() + ((within - within.mean()) ** 2).sum()
    assert estimate(row["F"]).value == pytest.approx(between / (left / 2))
    assert row["degrees of freedom"] == "1, 2" and estimate(row["F"]).of == 4


def test_rules(folder: Path) -> None:
    results = results_in(folder)
    paper, released, distinct = (named(tables(results, rule=rule)) for rule in RULES)
    name, place = "eecc-variance-concepts", ("moral_values", "honesty")
    column = "within WED"
    here = estimate(cells(paper[name], *place)[column]).value
    assert here is not None and here > 0
    assert estimate(cells(released[name], *place)[column]).value == pytest.approx(2 * here)
    # Two outputs: 1/4 of the pairs' sum, or half of it.
    assert estimate(cells(distinct[name], *place)[column]).value == pytest.approx(2 * here)
    assert paper[name].notes[0].startswith("Rule `paper`")
    assert released[name].notes[0].startswith("Rule `released`")


def test_tau_by_country(folder: Path) -> None:
    found = named(tables(results_in(folder)))
    countries = found["eecc-tau-countries"]
    # The Indian's outputs are nearest to the German's, and so are the values.
    assert estimate(cells(countries, "Indian")["Hofstede WED"]).value == 1
    assert [row.labels[-1] for row in countries.rows] == ["Indian", "German", "Nigerian"]
    # The Nigerian's share no word with either.
    assert estimate(cells(countries, "Nigerian")["Hofstede WED"]).value is None
    assert any("Hofstede values for 3 of 4" in note for note in countries.notes)
    assert any("no WVS values" in note for note in countries.notes)
    row = cells(found["eecc-tau-concepts"], "moral_values", "honesty")["Hofstede WED"]
    assert (estimate(row).n, estimate(row).of) == (2, 3)


def test_without_the_folder_everything_but_tau_is_there(folder: Path) -> None:
    moved = [
        replace(result, fields={**result.fields, "data": "elsewhere"})
        for result in results_in(folder)
    ]
    found = named(tables(moved))
    assert not found["eecc-tau"].rows and not found["eecc-tau-countries"].rows
    assert any("elsewhere" in note for note in found["eecc-tau"].notes)
    assert estimate(found["eecc-variance"].rows[0].cells["mean"]).value is not None


def test_conditions_stand_apart_and_nothing_answered_is_nothing_measured(folder: Path) -> None:
    read = list(benchmark.items([str(folder)], Choices(("stories", "qa"), draws=2)))
    results = [Result(item.fields, "error") for item in read if item.fields is not None]
    found = named(tables(results))
    assert [row.labels[0] for row in found["eecc-replies"].rows] == ["stories", "qa"]
    assert estimate(found["eecc-variance"].rows[0].cells["mean"]).value is None
    assert found["eecc-anova"].rows[0].cells["p"] is None
    assert not found["eecc-words"].rows
    assert tables([])


def test_words_of_qa_are_by_topic(folder: Path) -> None:
    read = list(benchmark.items([str(folder)], Choices(("qa",), draws=1)))
    results = [
        Result(item.fields, "answered", answer=f"they vote in {item.fields['identity']}land")
        for item in read
        if item.fields is not None
    ]
    found = named(tables(results))["eecc-words"]
    assert cells(found, "politics", "German")["words"] == "germanland"


def test_outputs_of_others_are_analysed_without_a_model(folder: Path) -> None:
    lines = [output_line(STORY, "honesty", name, *texts) for name, texts in TEXTS.items()]
    path = put(folder / "outputs.tsv", [*lines, "nothing", "of", "any", "use"])
    made = analyse(str(path), str(folder))
    assert made.at_fault == 4
    first, *others = made.tables
    assert (first.rows[0].cells["answered"], first.rows[0].cells["error"]) == (7, 1)
    assert "outputs.tsv:5: 1 cells" in first.notes[-1] and "and 1 more" in first.notes[-1]
    alone = named([first, *others])["eecc-variance-concepts"]
    ours = named(tables(results_in(folder)))["eecc-variance-concepts"]
    assert cells(alone, "honesty") == cells(ours, "honesty")
