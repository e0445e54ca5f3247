"""Capitals, asked with and without the continent. SOURCE holds lines such as
{"id": "pe", "country": "Peru", "continent": "South America", "options": ["Lima", "Cusco"],
"gold": "Lima"}."""

from collections.abc import Iterator, Sequence

from judge.papers.asking import MeasuredModel
from judge.papers.benchmark import Benchmark, Choices
from judge.papers.rows import asked, each_row
from judge.papers.tasks import Fields
from judge.questions.rubric import Rubric
from judge.records import Record

CAPITAL = Rubric(
    name="capital",
    title="Which city is the capital?",
    source="our own",
    fields=("country", "continent"),
    lettered=True,
    question="Which city is this country's capital?\n\n{{ options }}\n\nAnswer with one letter.",
)


def items(sources: Sequence[str], choices: Choices) -> Iterator[Record]:
    def of_row(row: Record) -> Iterator[Record]:
        return (asked(row, name, row.visible) for name in choices.conditions)

    return each_row(sources, of_row, columns=choices.columns)


async def ask(fields: Fields, model: MeasuredModel) -> str:
    shown = ("country",) if fields["condition"] == "bare" else ("country", "continent")
    return await model.choose(CAPITAL, {name: fields[name] for name in shown}, fields["options"])


benchmark = Benchmark(
    name="capitals", title="Capitals, with and without the continent", source="our own",
    conditions=("bare", "continent"), tasks=(CAPITAL,), items=items, ask=ask,
)  # fmt: skip
