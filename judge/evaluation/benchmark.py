"""What a benchmark is: the contract between the runner of evaluations and one file a paper."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from judge.evaluation.tables import Table
from judge.records import Item
from judge.verdict import Usage

Trouble = Literal["refused", "unreadable"]
Outcome = Literal["answered", "refused", "unreadable", "error"]


@dataclass(frozen=True, slots=True)
class Given:
    """What the measured model gave for one question; `trouble` says why there is nothing.

    Of the contents the one that was asked for is there: `place` (the option chosen, from 0),
    `places` (several options), `entries` (a list of texts) or `text`. `probabilities` has one for
    each option, where the choice was read from log-probabilities.
    """

    usage: Usage
    trouble: Trouble | None = None
    detail: str | None = None
    place: int | None = None
    places: tuple[int, ...] = ()
    entries: tuple[str, ...] = ()
    text: str = ""
    probabilities: tuple[float, ...] | None = None


class MeasuredModel(Protocol):
    """The model that is measured, asked by tasks (rubrics/tasks/NAME.yaml).

    `texts` are the fields that the task shows or names in its question; those that are not there
    are not shown. Draw `draw` of the same question is another sample of it, with another seed.

    All raise BackendError where the model gives no reply at all.
    """

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        """One of the options; `place` in the order in which they are given here."""
        ...

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        """Exactly `count` different options."""
        ...

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """A list of short texts."""
        ...

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """Free text."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What the measured model made of one item.

    `answer` is plain JSON. `score` (0 to 1) is how right it is; None where nothing is right or
    wrong. `probabilities` are by answer. `steps` holds what was written on the way, by name.
    """

    outcome: Outcome
    usage: Usage
    answer: Any = None
    score: float | None = None
    probabilities: Mapping[str, float] | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Graded:
    """How far each gold value is found among predicted ones (CQ-Bench, section 3.1).

    `credits` has 1, 0.5 or 0 for each gold value, None where the judges did not settle it; `named`
    the predicted values (from 0) that each rests on; `reasons` what was said of each.
    """

    credits: tuple[float | None, ...]
    named: tuple[tuple[int, ...], ...]
    reasons: tuple[str | None, ...]
    usage: Usage


class Grader(Protocol):
    """Judges that grade answers which no rule can."""

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Credit each gold value; without any prediction each is 0 and nobody is asked.

        Raises:
            BackendError: a judge gives no reply at all.
        """
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """One finished line of an evaluation, as tables are made from it: the item and its answer."""

    fields: Mapping[str, Any]
    outcome: Outcome
    answer: Any = None
    score: float | None = None
    probabilities: Mapping[str, float] | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.fields["id"])


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose of a benchmark.

    `conditions` are all of the benchmark's that are run, in its order; `draws` is how many answers
    to each item are wanted; `seed` is for whatever is shuffled or drawn.
    """

    conditions: tuple[str, ...]
    seed: int = 0
    draws: int = 1


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A paper's protocol. Found by name through the entry points `judge.benchmarks`.

    - `conditions`: the settings that an item can be asked in; `usual` those that are run when the
      user names none; `draws` the answers an item unless the user says otherwise
    - `tasks`: the task files it asks by
    - `items`: from sources (paths, as the user named them) to items, each one question: its fields
      hold an `id` that no other item has (the row's id and the condition), `condition`, what is
      needed to ask, `gold` where something is right, and what tables are made by. A row that cannot
      be read becomes an Item with a `problem`. Raises UsageError for a source that cannot be used.
    - `answer`: asks the model about one item's fields
    - `grade`: gives an answer its score, where that takes judges; without judges the score is None
    - `tables`: from all results, in the order of the items, to the paper's tables
    """

    name: str
    title: str
    source: str
    conditions: tuple[str, ...]
    usual: tuple[str, ...]
    tasks: tuple[str, ...]
    items: Callable[[Sequence[str], Choices], Iterator[Item]]
    answer: Callable[[Mapping[str, Any], MeasuredModel], Awaitable[Answer]]
    tables: Callable[[Sequence[Result]], list[Table]]
    draws: int = 1
    grade: Callable[[Mapping[str, Any], Answer, Grader], Awaitable[Answer]] | None = None
