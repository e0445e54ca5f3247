"""Scoring answers that are at hand: attitude detection and value selection.

PRED and GOLD are files of any form that records come in, joined by id.

GOLD, a line each:
- `{"id", "gold"}`: the right attitude, or the list of right options. `options` (what could be
  answered), `row` (the story's own id), `setting`, `category` are read where they are there
- CQ-Bench's released questions: `{story, questions: [{name, value, options, "gold label"}]}`, known
  as ROW/NUMBER, or `{story, options, values}`, known as ROW, which is the line's id or FILE#LINE
- output lines of `judge evaluate cqbench`, which carry their gold

PRED, a line each:
- `{"id", "answer"}`: an attitude, or a list of options (or one text with an option on each line);
  null where there is no readable answer. `outcome` may say which: answered, refused, unreadable or
  error (no reply)
- output lines of `judge evaluate cqbench`; one that GOLD does not know by its id is looked for by
  its `item`, the id without the condition

A gold item without a prediction counts as unreadable. A line of PRED at fault is named in the first
table; where its id is readable, its item counts as unreadable.
"""

from __future__ import annotations

from judge.evaluation.cqbench_distractors import Rule
from judge.evaluation.cqbench_joining import joined
from judge.evaluation.cqbench_tables import (
    binary,
    categories,
    options,
    overview,
    selections,
)
from judge.evaluation.tables import Scored


def score_attitude(pred: str, gold: str) -> Scored:
    """Accuracy and macro F1 of attitude detection; merged, by option, and without the neutral one.

    An answer that is none of its question's options is unreadable, and counts as not right.

    Args:
        pred: the file of predictions.
        gold: the file of right answers. The module says what both hold.

    Raises:
        UsageError: a file cannot be read, or a line of GOLD is at fault, with file, line and field;
            or no prediction is of a gold item.
    """
    results, join = joined(pred, gold, "attitude")
    made = (overview(results), categories(results), options(results), binary(results))
    return Scored([join.table(), *(table for table in made if table.rows)], len(join.bad))


def score_selection(pred: str, gold: str, rule: Rule = "paper") -> Scored:
    """Per-item and pooled F1 of value selection, or the figures of CQ-Bench's released script.

    By rule `paper` a missing or unreadable answer is an item with F1 0, and an entry that is none
    of the options a wrong one. By rule `released` entries are matched to the nearest option, and
    items without a readable answer are left out; the table says how many.

    Raises:
        UsageError: as `score_attitude`.
    """
    results, join = joined(pred, gold, "selection")
    made = [selections(results, rule)]
    if rule == "paper":
        made.append(categories(results))
    return Scored([join.table(), *(table for table in made if table.rows)], len(join.bad))
