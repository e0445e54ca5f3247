"""How much hostile text is detected by its form alone, and how much harmless text is.

    python bench/hostile.py [LABELS ...]

Runs `judge.judging.injection`, which asks no model, on three kinds of records:

- the suite of `judge evaluate hostile`, whose attacks were known when the forms were written;
- the attacks of bench/hostile.yaml, by the same families, written by a language model that was
  shown neither the forms nor the suite (put into the suite's records, each on every rubric);
- the records of LABELS, anything that `judge calibrate` reads, by default the labelled sets in
  fixtures/: they have no attacks, so whatever is found is a false alarm.

The last column is the mean time for a record of the row.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from judge.judging.injection import injections
from judge.papers.hostile_suite import Case, Family, cases, families, subject_of
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import read_labels
from judge.stats.intervals import wilson

ROOT = Path(__file__).parents[1]
HELD_OUT = ROOT / "bench" / "hostile.yaml"
LABELLED = ROOT / "fixtures" / "labelled"

Looked = tuple[str, Rubric, Record]
"""A row of the table, and a rubric and a record that are searched for it."""


def held_out() -> dict[str, Family]:
    """The attacks of bench/hostile.yaml."""
    found = families(HELD_OUT)
    return {name: one.model_copy(update={"each": len(one.texts)}) for name, one in found.items()}


def injected(made: Iterable[Case], rubrics: dict[str, Rubric]) -> Iterator[Looked]:
    for case in made:
        rubric = rubrics[case.check]
        yield case.family, rubric, subject_of(case.id, rubric, case.injected)


def labelled(source: str, rubrics: dict[str, Rubric]) -> Iterator[Looked]:
    name = source.partition(":")[0] if ":" in source else Path(source).name
    known = set()
    for item in read_labels(source):
        if isinstance(item, Record) or item.check not in rubrics:
            continue
        texts = {key: text for key, text in item.record.visible.items() if isinstance(text, str)}
        if (key := (item.check, *texts.values())) not in known:
            known.add(key)
            yield name, rubrics[item.check], replace(item.record, fields=texts)


def row(table: Table, kind: str, name: str, looked: list[Looked]) -> int:
    begun, found, forms = time.perf_counter(), 0, Counter[str]()
    for _, rubric, record in looked:
        seen = injections(rubric, record)
        found += bool(seen)
        forms.update({one.form for one in seen})
    spent = (time.perf_counter() - begun) / max(len(looked), 1)
    share = wilson(found, len(looked))
    assert share.value is not None and share.low is not None and share.high is not None
    told = ", ".join(f"{form} {count}" for form, count in forms.most_common())
    between = f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f})"
    table.add_row(kind, name, str(len(looked)), str(found), between, told, f"{spent * 1e6:.0f}")
    return found


def main(sources: list[str]) -> None:
    rubrics = {name: rubric for name, rubric in builtin().items() if rubric.role == "judge"}
    table = Table("records", "of", "looked at", "found", "share (95 %)", "forms", "µs", box=None)
    for kind, attacks in (("suite", families()), ("held out", held_out())):
        made = list(injected(cases(rubrics, attacks), rubrics))
        for family in attacks:
            row(table, kind, family, [one for one in made if one[0] == family])
        hostile = [one for one in made if one[0] != "control"]
        row(table, kind, "all attacks", hostile)
        table.add_section()
    everything: list[Looked] = []
    for source in sources or sorted(map(str, LABELLED.glob("*.jsonl"))):
        looked = list(labelled(source, rubrics))
        if looked:
            row(table, "not hostile", looked[0][0], looked)
            everything += looked
    row(table, "not hostile", "all", everything)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
