"""CulturalBench: what a model knows of everyday life in 45 countries, asked in two ways.

Chiu et al., "CulturalBench", sections 3.3 and 5 and appendix D. Easy: a question with four options,
one of them right. Hard: the same question's four answers, each asked alone as true or false, right
only if all four are. Hard is made from the Easy file, as section 3.3 says, or read from a Hard one.

Deviation from the paper: Easy's options are shuffled, because A is right in 54 % of the released
rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev
from typing import Any

from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import PAPER, Benchmark, Choices, label_of
from judge.papers.countries import canonical
from judge.papers.culturalbench_questions import (
    HARD_OPTION,
    LETTERS,
    OPTIONS,
    QUESTION,
    REGIONS,
    question_of,
    region_of,
)
from judge.papers.rows import asked, each_row, look_ahead
from judge.papers.tables import ResultSample, crosstab, results_table, scores
from judge.papers.tasks import Fields, MeasuredAnswer
from judge.records import Problem, Record
from judge.records.answers import spelling
from judge.records.base import clip, own_fields
from judge.records.fields import LabelError, id_text, listed, one_of, text_of
from judge.report.table import Cell, Table, TableRow
from judge.stats.classification import ratio
from judge.stats.intervals import Estimate
from judge.stats.significance import kruskal_wallis
from judge.verdict import AnswerOutcome

EASY, HARD = "easy", "hard"
GUESSER = "guesser"

EASY_TASK, HARD_TASK = "culturalbench_easy", "culturalbench_hard"

_ASKED_ABOUT = {
    *(*OPTIONS, HARD_OPTION, QUESTION, "answer", "question_idx", "data_idx"),
    *("question", "options", "order", "gold"),
}
_TRUTHS = {spelling(name): name for name in ("true", "false")}


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """An item for each question and condition, from rows of an Easy file, or of a Hard file, as
    released or built (`judge build culturalbench-hard`), which gives only Hard items. Beside a Hard
    file, an Easy file gives only Easy items: its Hard ones would be the same questions again.

    Easy items have their options as shown, and `order`, the letter of each in the released file,
    which depends only on seed and question. Hard items have the four answers as `options`, and as
    `gold` whether each is true.
    """

    def of_row(row: Record) -> Iterator[Record]:
        question = question_of(row.visible)
        seed = None if choices.setting == PAPER else f"{choices.seed}/{row.id}"
        forms = {EASY: question.easy(seed), HARD: question.hard()}
        slices = _slices(row.visible, multi=question.multi)
        if choices.setting == GUESSER and not slices.get("country", "").strip():
            raise LabelError("field 'country' is missing: the guesser needs it", "country")
        for condition in conditions:
            if condition == HARD and hard:
                continue
            yield asked(row, condition, {**forms[condition], **slices})

    # The guesser chooses among options, of which Hard shows one at a time.
    conditions = [name for name in choices.conditions if (name, choices.setting) != (HARD, GUESSER)]
    ahead = {source: look_ahead(source, choices.columns) for source in sources}
    records = {source: of_source for source, (_, of_source) in ahead.items()}
    hard = [source for source in sources if HARD_OPTION in ahead[source][0]]
    easy = [source for source in sources if source not in hard]
    yield from each_row(easy, of_row, "question_idx", records=records)
    if HARD in conditions:
        yield from _of_hard(hard, records)


def _slices(fields: Fields, *, multi: bool) -> dict[str, str]:
    """Mode, country and region of a row's question, and its other text fields, such as a topic."""
    own = {name: fields[name] for name in own_fields(fields) if name not in _ASKED_ABOUT}
    slices = {name: content for name, content in own.items() if isinstance(content, str)}
    slices["mode"] = "multi" if multi else "single"
    country = fields.get("country")
    if isinstance(country, str) and country.strip():
        slices["country"] = country.strip()
    if region := region_of(slices.get("country", "")):
        slices["region"] = region
    return slices


def _of_hard(sources: Sequence[str], records: Mapping[str, Iterable[Record]]) -> Iterator[Record]:
    """An item for every four rows with the same `question_idx`, wherever they are.

    Only a multi-mode question has several true answers (all 86 of the paper have two or three).
    """
    questions: dict[str, list[Record]] = {}
    # Rows are named by their own id or by their line, because four share a question_idx.
    for row in each_row(sources, lambda row: [_answer_row(row)], records=records):
        if row.problem is not None:
            yield row
            continue
        questions.setdefault(str(row.visible["question_idx"]), []).append(row)
    for index, rows in questions.items():
        if len(rows) != len(LETTERS):
            message = f"question_idx {index} has {len(rows)} readable rows, not {len(LETTERS)}"
            yield replace(rows[-1], problem=Problem(message, "question_idx"))
            continue
        truths = [_is_true(row.visible) for row in rows]
        content = {
            "question": rows[0].visible[QUESTION],
            "options": [row.visible[HARD_OPTION] for row in rows],
            "gold": truths,
        }
        slices = _slices(rows[0].visible, multi=sum(truths) > 1)
        yield asked(rows[0], HARD, {**content, **slices}, row=index)


def _is_true(fields: Fields) -> bool:
    return one_of(fields.get("answer"), _TRUTHS, "answer") == "true"


def _answer_row(row: Record) -> Record:
    """A row of a Hard file, its fields checked. Raises LabelError."""
    fields = row.visible
    for key in (QUESTION, HARD_OPTION):
        text_of(fields, key)
    if id_text(fields.get("question_idx"), "question_idx") is None:
        raise LabelError("field 'question_idx' is missing", "question_idx")
    _is_true(fields)
    return row


async def ask(fields: Fields, model: MeasuredModel) -> str | list[bool]:
    """Ask one question for Easy, four for Hard, up to the first without an answer.

    An Easy answer is the letter of the chosen option in the released file. A Hard answer is a list
    of true and false; its probabilities are those of true, by number. The guesser answers the
    option whose embedding is most like that of the country's name (section 5.1).
    """
    if model.setting == GUESSER:
        options = dict(zip(fields["order"], fields["options"], strict=True))
        by_letter = await model.similarities(fields["country"], options)
        return max(LETTERS, key=lambda letter: by_letter[letter])
    choose = partial(model.say, tokens=2) if model.setting == PAPER else model.choose
    if fields["condition"] == EASY:
        texts = {"question": fields["question"], "mode": fields["mode"]}
        return await choose(EASY_TASK, texts, fields["options"], fields["order"])
    answers: list[bool] = []
    chances: dict[str, float] = {}
    for number, option in enumerate(fields["options"], 1):
        texts = {"question": fields["question"], "answer": option}
        answers.append(await choose(HARD_TASK, texts, ("True", "False")) == "True")
        if model.probabilities is not None:
            chances[str(number)] = model.probabilities["True"]
    model.probabilities = chances or None
    return answers


def _read(fields: Fields, answer: Any) -> str | list[bool]:
    """A letter of Easy; four truth values of Hard."""
    if fields["condition"] == EASY:
        return label_of(answer, LETTERS)
    several = listed(answer, "answer")
    if len(several) != len(LETTERS):
        raise ValueError(f"{clip(answer)} is no list of {len(LETTERS)} of true and false")
    return [label_of(part, ("true", "false")) == "true" for part in several]


def score(fields: Fields, answer: Any) -> float:
    """1 if the answer is right, else 0: the right option's letter for Easy, all four for Hard.

    Two released questions repeat an option's text: either letter is right.
    """
    if fields["condition"] == HARD:
        return float(answer == list(fields["gold"]))
    options = dict(zip(fields["order"], fields["options"], strict=True))
    return float(options[answer] == options[fields["gold"]])


_MEAN = "mean of countries"
_MEAN_NOTE = (
    f"{_MEAN.capitalize()} is the unweighted mean of the countries' accuracies, as the paper's "
    "tables 5 and 6 have it; accuracy is over questions."
)
_CHANCE = (
    "A Hard question is right only if all four of its answers are judged rightly. Chance is 25% "
    "in Easy, 6.25% in Hard."
)


def tables(results: Sequence[MeasuredAnswer]) -> list[Table]:
    """All tables; conditions that were not run have no rows."""

    def in_region(here: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
        return {**scores(here), _MEAN: mean_of_countries(here)}

    setup = {"set-up": ("condition", (EASY, HARD))}
    by_mode = {**setup, "mode": ("mode", ("single", "multi"))}
    by_region = {**setup, "region": ("region", REGIONS)}
    modes = "Accuracy by set-up and number of right answers"
    regions, notes = "Accuracy by set-up and region (tables 5 and 6)", (_MEAN_NOTE,)
    return [
        results_table("culturalbench-setups", "Accuracy", results, setup, scores, (_CHANCE,)),
        results_table("culturalbench-modes", modes, results, by_mode),
        results_table("culturalbench-regions", regions, results, by_region, in_region, notes),
        _guesser_table(results),
    ]


def _guesser_table(results: Sequence[MeasuredAnswer]) -> Table:
    """The mean similarity to the country's name of the right option and of all four, with Kruskal
    and Wallis's test of the two (section 5.1)."""
    guesses = [(found, r.fields["gold"]) for r in results if (found := r.steps.get("similarities"))]
    right = [similarities[gold] for similarities, gold in guesses]
    mean = [fmean(similarities.values()) for similarities, _ in guesses]
    h, p = kruskal_wallis([right, mean])
    groups = {"right option": right, "mean of the four": mean}
    cells: dict[str, Cell] = {
        **{name: Estimate(fmean(g), n=len(g), of=len(g)) for name, g in groups.items() if g},
        "H": h,
        "p": p,
    }
    rows = [TableRow(("all questions",), cells)] if guesses else []
    title = "Cosine similarity of option and country (5.1)"
    return Table("culturalbench-guesser", title, ("of",), rows)


def mean_of_countries(results: Sequence[MeasuredAnswer]) -> Estimate:
    """The unweighted mean of the countries' accuracies, errors, unscored answers and those without
    a country left out.

    It is undefined if a country has nothing else, and without countries.
    """
    import numpy as np

    of_countries = [result for result in results if _country_of(result)]
    if not of_countries:
        return Estimate(None, of=len(results))
    sample = ResultSample(of_countries)
    asked_about = list(dict.fromkeys(map(_country_of, of_countries)))
    right = np.zeros((len(sample.there), len(asked_about)))
    questions = np.zeros_like(right)
    for number, measured in enumerate(sample.there):
        if measured.outcome is not AnswerOutcome.ANSWERED or measured.score is not None:
            place = number, asked_about.index(_country_of(measured))
            right[place], questions[place] = measured.score or 0.0, 1.0
    sums = sample.resamples.sums
    means = ratio(sums(right), sums(questions)).mean(axis=1)
    return sample.resamples.estimate(means, n=len(sample.there), of=len(results))


def _country_of(result: MeasuredAnswer) -> str:
    return canonical(result.fields.get("country") or "")


def described(items: Sequence[MeasuredAnswer], sources: Sequence[str]) -> list[Table]:
    """Table 2, and the number of words in questions and options (section 4.1)."""
    counts: dict[str, list[int]] = defaultdict(list)
    for item in items:
        easy, shown = item.condition == EASY, item.fields
        counts[f"{item.condition}: question"].append(len(shown["question"].split()))
        letters = shown.get("order", LETTERS)
        for letter, option in sorted(zip(letters, shown["options"], strict=True)):
            counts[f"easy: option {letter}" if easy else "hard: answer"].append(len(option.split()))
    words = [
        TableRow((name,), {"texts": len(n), "words": f"{fmean(n):.2f} ({pstdev(n):.2f})"})
        for name, n in counts.items()
    ]
    title = "CulturalBench: words between blanks, mean (standard deviation) (section 4.1)"
    rows = list({item.row: item for item in items}.values())
    orders, by = {"region": REGIONS}, ("region", "country", "mode")
    return [
        crosstab("culturalbench-set", "CulturalBench: questions (table 2)", rows, by, orders),
        Table("culturalbench-words", title, ("of",), words),
    ]


benchmark = Benchmark(
    name="culturalbench",
    title="CulturalBench: questions about everyday life, Easy and Hard",
    source='Chiu et al., "CulturalBench: A Robust, Diverse and Challenging Benchmark on Measuring '
    'the (Lack of) Cultural Knowledge of LLMs", sections 3.3 and 5, appendix D',
    conditions=(EASY, HARD),
    tasks=(EASY_TASK, HARD_TASK),
    settings={
        PAPER: "Easy's options as they were released (D), and a reply of at most two tokens that "
        "holds the label alone (6)",
        GUESSER: "Easy by the embeddings of option and country alone, -m an embedding model (5.1)",
    },
    without_json=frozenset({PAPER, GUESSER}),
    items=items,
    ask=ask,
    read=_read,
    score=score,
    tables=tables,
    described=described,
)
