"""Judges whose replies a function makes, put together without files, for the tests of this folder.

What the function returns for a call becomes the completion: a number is P(yes) of the first token,
a list of (token, probability) the first token's alternatives, a mapping a typed reply, and an
error is raised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from judge.backends.base import Backend, Call, Completion, Method, Mode
from judge.errors import BackendError
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.labels import LabelledItem
from judge.run.models import Models
from judge.run.panels import Resources
from judge.run.rubrics import RubricSet
from judge.settings import Settings

Answer = Callable[[Call], Any]

PLAIN_FILE = """
name: plain
title: Is the rule kept?
source: made up
kinds: [norm]
fields: [rule_of_thumb, story]
question: Is the rule kept?
instructions: Answer yes or no.
"""
"""A rubric with a single question, which is fitted to quickly."""

PLAIN = Rubric.from_text(PLAIN_FILE, "plain.yaml")

MANY = Rubric.from_text(
    """
    name: many
    title: Is the rule kept?
    source: made up
    kinds: [norm]
    fields: [rule_of_thumb, story]
    question: Is the rule kept?
    instructions: Answer yes or no.
    first_token:
      - Question 0? Answer Yes or No.
      - {question: "Question 1? Answer Yes, No or Neutral.", words: ["yes", "no", neutral]}
      - Question 2? Answer Yes or No.
      - Question 3? Answer Yes or No.
      - Question 4? Answer Yes or No.
    """,
    "many.yaml",
)
"""A rubric with five questions, the second one of three words."""


class Answering(Backend):
    """A backend that answers by its function, and notes the prompt of every call."""

    def __init__(self, name: str, answer: Answer, method: Method) -> None:
        self.name = name
        self.answer = answer
        self.method = method
        self.asked: list[Call] = []
        self._numbers = count()

    def key_parts(self, call: Call) -> int:
        """Every call is made, also one in the words of another."""
        return next(self._numbers)

    def identity(self) -> Mapping[str, str]:
        return {"provider": "made up", "model": self.name}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        self.asked.append(call)
        said = self.answer(call)
        if isinstance(said, BackendError):
            raise said
        if isinstance(said, float):
            said = [("Yes", said), ("No", 1 - said)]
        if isinstance(said, list):
            tokens = tuple((token, math.log(chance)) for token, chance in said)
            return Completion("", "length", first_token=tokens)
        return Completion(said if isinstance(said, str) else json.dumps(said))


def client(name: str, answer: Answer, method: Method = "logprobs") -> Client:
    backend: Any = Answering(name, answer, method)
    return Client(
        f"scripted:{name}", backend, cache=None, budget=Budget(), limit=8, reasks=0, backoff=0
    )


def judge_of(rubric: Rubric | str, answer: Answer, method: Method = "logprobs") -> Judge:
    found = builtin()[rubric] if isinstance(rubric, str) else rubric
    return Judge(found, client("one", answer, method), method)


def resources_of(*clients: Client, **settings: Any) -> Resources:
    """Judges in the order of a cascade; the built-in rubrics, PLAIN and MANY."""
    specs = tuple(client.spec for client in clients)
    chosen = Settings(model=specs, cache=False, **settings)
    return Resources(
        RubricSet(chosen, {**builtin(), PLAIN.name: PLAIN, MANY.name: MANY}),
        Models(chosen, Budget(), clients={client.spec: client for client in clients}),
    )


def yes_no(answer: str, quote: str | None = None) -> dict[str, Any]:
    """A typed reply to a question of yes and no."""
    return {"quote": quote, "reason": f"It is {answer}.", "answer": answer}


def norm(name: str, labels: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A record with labels by check."""
    story = f"Ann, number {name}, greets Bo."
    return {"id": name, "rule_of_thumb": "Greet.", "story": story, "labels": labels, **more}


def norm_item(record: str, gold: str | None = "yes", **more: Any) -> LabelledItem:
    fields = {"rule_of_thumb": "Greet.", "story": f"Ann, number {record}, greets Bo."}
    return LabelledItem(
        Record("", 0, fields, name=record), more.pop("check", "plain"), gold=gold, **more
    )
