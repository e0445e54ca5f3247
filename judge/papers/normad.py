"""NormAd: is an action acceptable, asked with more and more of its cultural context?

Rao et al., "NormAd". A story is asked about in four contexts (section 5.2; `none` is the baseline
of appendix C): nothing, the country, the country and a value, the rule of thumb. The answer is yes,
no or neutral, right if it is the story's gold label (section 4.1).

Deviation from the paper: its prompt (appendix A.3) offers "Neither" where this one offers neutral.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judge.errors import UsageError
from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import PAPER, Benchmark, Choices, exact, label_of
from judge.papers.countries import canonical, country_name
from judge.papers.rows import asked, each_row, head_of, own_slices
from judge.papers.tables import MACRO, ResultSample, class_scores, crosstab, results_table
from judge.papers.tasks import MISSING, Fields, MeasuredAnswer
from judge.records import Record
from judge.records.fields import LabelError
from judge.records.lines import Line
from judge.report.runs import refuse_table
from judge.report.table import Cell, Table
from judge.verdict import AnswerOutcome, Verdict

LABELS = ("yes", "no", "neutral")
"""The answers (section 4.1), in the order in which they are offered."""

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "country": ("country",),
    "country+value": ("country", "value"),
    "rule-of-thumb": ("rule_of_thumb",),
}
"""The contexts (section 5.2; `none` is the baseline of appendix C), and what each shows."""

_TASK, _NEITHER_TASK = "normad_acceptability", "normad_neither"
# Released answers: their column, the labels, and the contexts by parts of the files' names.
_PREDICTED = "prediction_label"
_RELEASED_LABELS = {**{label: label for label in LABELS}, "neither": "neutral"}
_CONTEXTS = dict(zip(("_none_", "_country_", "_value_", "_rot_"), CONDITIONS, strict=True))
# Fields of a norm that are neither shown nor used for slices.
_LEFT_OUT = {"id", "label", "background", "explanation"}


# The clusters of the Inglehart-Welzel cultural map, as the authors bin the countries (section 4.1,
# note 5, after Inglehart and Welzel 2012); with their full set these bins give table 2.
_BINS = {
    "African-Islamic": (
        "afghanistan bangladesh egypt ethiopia iran iraq kenya lebanon mauritius pakistan "
        "palestinian_territories saudi_arabia somalia south_africa south_sudan sudan syria "
        "türkiye zimbabwe"
    ),
    "Catholic Europe": "austria croatia hungary italy poland portugal spain",
    "Confucian": "china hong_kong japan south_korea taiwan",
    "English Speaking": (
        "australia canada ireland new_zealand united_kingdom united_states_of_america"
    ),
    "Latin America": "argentina brazil chile colombia mexico peru venezuela",
    "Orthodox Europe": (
        "bosnia_and_herzegovina greece north_macedonia romania russia serbia ukraine"
    ),
    "Protestant Europe": "france germany malta netherlands sweden",
    "West and South Asia": (
        "cambodia cyprus fiji india indonesia israel laos malaysia myanmar nepal "
        "papua_new_guinea philippines samoa singapore sri_lanka thailand timor_leste tonga vietnam"
    ),
}
_CLUSTER_OF = {country: name for name, countries in _BINS.items() for country in countries.split()}
_WORDS = re.compile(r"[a-z]+")

COUNTRIES = tuple(sorted(_CLUSTER_OF))
"""The 75 countries, in lower case with underscores."""

CLUSTERS = tuple(_BINS)
"""The eight clusters, in the order of NormAd's table 2."""


def cluster_of(country: str) -> str | None:
    """The country's cluster, whatever its spelling; None if it is not one of the 75."""
    return _CLUSTER_OF.get(canonical(country))


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    """An item for each row and condition.

    Rows are norm records in any form that `judge validate` reads; lines that it wrote are left out
    unless their verdict is `pass`. A row is not asked in a condition whose fields (a country, a
    value) it lacks; the tables count such rows.

    Raises:
        UsageError: a source cannot be read, or only has lines that are left out.
    """
    left_out, usable = 0, False

    def of_row(row: Record) -> Iterator[Record]:
        nonlocal left_out, usable
        refuse_table(row)
        line = Line.of(row.visible)
        if line is None or line.verdict == Verdict.PASS:
            usable = True
            yield from _of_norm(row, choices.conditions)
        else:
            left_out += 1

    for item in each_row(sources, of_row, columns=choices.columns):
        usable = True
        yield item
    if left_out and not usable:
        raise UsageError(
            f"{', '.join(sources)}: nothing is asked: of {left_out} judged records none passed"
        )


def _of_norm(row: Record, conditions: Sequence[str]) -> Iterator[Record]:
    """The items of a norm record. Raises LabelError for any other row."""
    record = row.of_kind("norm").usable()
    norm = record.typed
    if "label" not in norm:
        raise LabelError("field 'label' must be yes, no or neutral, not empty", "label")
    answers = (name for name in row.visible if name.startswith(_PREDICTED))
    fields = {
        **own_slices(row, (*record.names.values(), *answers)),
        **{name: content for name, content in norm.items() if name not in _LEFT_OUT},
        "cluster": norm.get("cluster") or cluster_of(norm.get("country", "")),
        "gold": norm["label"],
    }
    for condition in conditions:
        if all(name in norm for name in CONDITIONS[condition]):
            yield asked(row, condition, fields)


def released(
    answers: str, gold: Sequence[str], choices: Choices
) -> Mapping[str, MeasuredAnswer] | None:
    """A model's answers as the authors release them: the rows of the set with a column
    `prediction_label_temp0.0` (of some models `..0.001`), a file for each context.

    The context is the one condition chosen, else the one in the file's name. An answer is the one
    label among a cell's words, `neither` for neutral; a cell with none or several is unreadable.

    Raises:
        UsageError: the context is not known, or a row is faulty.
    """
    column = next((name for name in head_of(answers) if name.startswith(_PREDICTED)), None)
    if column is None:
        return None
    contexts = [name for mark, name in _CONTEXTS.items() if mark in Path(answers).name]
    conditions = choices.conditions if len(choices.conditions) == 1 else contexts
    if len(conditions) != 1:
        raise UsageError(f"{answers}: name the condition of these answers: --condition NAME")

    def of_row(row: Record) -> Iterator[MeasuredAnswer]:
        # A cell without one label is kept unchanged, and is unreadable as an answer.
        answer = _label_in(row.visible.get(column)) or row.visible.get(column)
        for item in _of_norm(row, conditions):
            yield MeasuredAnswer(item.fields, AnswerOutcome.ANSWERED, answer)

    results: dict[str, MeasuredAnswer] = {}
    for result in each_row([answers], of_row):
        if isinstance(result, Record):
            raise UsageError(f"{answers}, line {result.line}: {result.fault}")
        results[result.id] = result
    return results


_NEUTRAL = "Setting paper: an answer that is refused or cannot be read counts as neutral."


def _label_in(cell: object) -> str | None:
    """The one label among the words of a cell; None if there are none or several."""
    words = set(_WORDS.findall(cell.casefold())) if isinstance(cell, str) else set()
    labels = {_RELEASED_LABELS[word] for word in words if word in _RELEASED_LABELS}
    return labels.pop() if len(labels) == 1 else None


async def ask(fields: Fields, model: MeasuredModel) -> str:
    """Ask for yes, no or neutral, with the fields that the item's condition shows."""
    texts = {"story": fields["story"]}
    for name in CONDITIONS[fields["condition"]]:
        texts[name] = country_name(fields[name]) if name == "country" else fields[name]
    if model.setting == PAPER:
        return await model.say(_NEITHER_TASK, texts, ("yes", "no", "neither"), LABELS)
    return await model.choose(_TASK, texts, LABELS)


def _measures(results: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
    """Counts and measures; in the paper's setting an answer that cannot be read is neutral."""

    def counted(result: MeasuredAnswer) -> MeasuredAnswer:
        lost = result.outcome in (AnswerOutcome.UNREADABLE, AnswerOutcome.REFUSED)
        if result.setting != PAPER or not lost or result.reason == MISSING:
            return result
        score = exact(result.fields, "neutral")
        answered = AnswerOutcome.ANSWERED
        return replace(result, outcome=answered, answer="neutral", score=score)

    return {**class_scores([*map(counted, results)]), **ResultSample(results).counts()}


def tables(results: Sequence[MeasuredAnswer]) -> list[Table]:
    """By context, label, cluster and subcategory."""
    rows = len({answer.row for answer in results})

    def in_context(here: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
        asked_about = len({result.row for result in here})
        return {**_measures(here), "rows not asked": rows - asked_about}

    def of_label(here: Sequence[MeasuredAnswer]) -> dict[str, Cell]:
        # Within one label F1 and precision mean nothing, and recall is the accuracy.
        return {name: cell for name, cell in _measures(here).items() if name not in MACRO}

    context = {"context": ("condition", tuple(CONDITIONS))}
    contexts = "Accuracy and macro F1 by context"
    note = "A row is not asked in a context that shows what the row does not have."
    labels = "Accuracy over the stories of each label, by context (as figure 6 of the paper)"
    by_label = {**context, "label": ("gold", LABELS)}
    clusters = "Accuracy and macro F1 by context and Inglehart-Welzel cluster"
    by_cluster = {**context, "cluster": ("cluster", CLUSTERS)}
    subcategories = "Accuracy and macro F1 by context and subcategory (section 6.3)"
    by_part = {**context, "subcategory": ("subcategory", ())}
    known = [result for result in results if result.fields.get("subcategory")]
    unread = (_NEUTRAL,) if any(result.setting == PAPER for result in results) else ()
    return [
        results_table("normad-contexts", contexts, results, context, in_context, (note, *unread)),
        results_table("normad-labels", labels, results, by_label, of_label, unread),
        results_table("normad-clusters", clusters, results, by_cluster, _measures, unread),
        results_table("normad-subcategories", subcategories, known, by_part, _measures, unread),
    ]


def described(items: Sequence[MeasuredAnswer], sources: Sequence[str]) -> list[Table]:
    """Table 2, and the same by subcategory, if rows have one."""
    parts = [item for item in items if item.fields.get("subcategory")]
    orders = {"cluster": CLUSTERS, "gold": LABELS[::-1]}
    tables = [("cluster", "NormAd: stories by cluster and label (table 2)", items)]
    tables += [("subcategory", "NormAd: stories by subcategory and label", parts)] if parts else []
    return [crosstab(f"normad-{by}-set", t, of, (by, "gold"), orders) for by, t, of in tables]


benchmark = Benchmark(
    name="normad",
    title="NormAd: social acceptability in four contexts",
    source='Rao et al., "NormAd: A Framework for Measuring the Cultural Adaptability of Large '
    'Language Models", sections 4.1 and 5.2, appendix C',
    conditions=tuple(CONDITIONS),
    tasks=(_TASK, _NEITHER_TASK),
    settings={
        PAPER: "the third option is neither, unexplained (figure 7), read off free text; what "
        "names no option, or several, counts as neutral",
    },
    items=items,
    ask=ask,
    read=lambda fields, answer: label_of(answer, LABELS),
    tables=tables,
    described=described,
    counted_in=("none",),
    without_json=frozenset({PAPER}),
    released=released,
)
