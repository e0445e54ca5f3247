"""The reply models of a model that is measured: one option, several, or a list of texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from judge.replies import About, Reply

MOST_ENTRIES = 20
"""Entries that a list may have, so that constrained decoding comes to an end."""


class Chosen(Reply):
    """One option, by its mark."""

    answer: str


class Selected(Reply):
    """Several options, by their marks, each at most once."""

    answers: list[str]

    def problems(self, record: About) -> Iterator[str]:
        twice = sorted({one for one in self.answers if self.answers.count(one) > 1})
        if twice:
            yield f"{', '.join(twice)} is named twice; name different options"


class Listed(Reply):
    """A list of short texts."""

    entries: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_ENTRIES)]


@lru_cache(maxsize=256)
def chosen_of(marks: tuple[str, ...]) -> type[Chosen]:
    """`Chosen` for these options."""
    one: Any = Literal[marks]
    made: type[Chosen] = create_model(
        "Chosen", __base__=Chosen, __module__=__name__, answer=(one, ...)
    )
    return made


@lru_cache(maxsize=256)
def selected_of(marks: tuple[str, ...], count: int) -> type[Selected]:
    """`Selected` for exactly `count` of these options."""
    each: Any = Literal[marks]
    several: Any = Annotated[list[each], Field(min_length=count, max_length=count)]
    made: type[Selected] = create_model(
        "Selected", __base__=Selected, __module__=__name__, answers=(several, ...)
    )
    return made
