"""Stories for benchmarks, and a faultless judge's replies about them.

Every story differs from the others in its first sentence, has about 900 tokens, and carries five
values by five speeches that all stories share, so that one canned reply has right quotes for every
story. One story in ten lacks the last speech: the loop judge reports it, and dialogue is put in.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SPEECHES = (
    ("It is important to help others", "Ann", "I carried her shopping up four floors again today"),
    ("Work is a duty towards society", "Bela", "I have not missed a shift since the bridge opened"),
    (
        "Most people can be trusted",
        "Chidi",
        "I left my bicycle unlocked all week and never thought",
    ),
    ("Children should learn thrift", "Dunja", "My girl keeps every coin in the jar by the window"),
    ("Elders should be heard first", "Ann", "Nobody lifts a spoon until grandmother has told hers"),
)
VALUES = tuple(f"{statement}--Agree" for statement, _, _ in SPEECHES)
UNSHOWN = "and then the talk moved on to the weather"
"""Replaces the last speech in stories that lack it."""

_WHO = ("the baker", "the old ferryman", "a cousin from the coast", "the teacher", "the nurse")
_DID = ("came by with", "asked about", "laughed over", "kept looking at", "had brought along")
_WHAT = ("a basket of plums", "the new timetable", "two letters", "a borrowed ladder", "the lamp")
_WHEN = (
    "before the rain",
    "while the soup cooked",
    "after the last bus",
    "as it grew dark",
    "early",
)


def story(number: int) -> dict[str, Any]:
    """A story record of about 5,000 characters; the same number gives the same story."""
    chance = random.Random(number)
    lacking = number % 10 == 9
    paragraphs = [f"On day {number} of that year the four met at the harbour kitchen."]
    for place, (_, who, speech) in enumerate(SPEECHES):
        paragraphs.append(" ".join(_sentence(chance) for _ in range(11)))
        if lacking and place == len(SPEECHES) - 1:
            paragraphs.append(f"{who} nodded, {UNSHOWN}.")
        else:
            paragraphs.append(f'"{speech}," said {who}, and poured another cup.')
    return {"id": f"s{number:07}", "story": "\n\n".join(paragraphs), "values": list(VALUES)}


def _sentence(chance: random.Random) -> str:
    told = f"{chance.choice(_WHO)} {chance.choice(_DID)} {chance.choice(_WHAT)}"
    return f"At {chance.randrange(24)}:{chance.randrange(60):02} {told} {chance.choice(_WHEN)}."


def write_stories(path: Path, count: int, first: int = 0) -> None:
    """`count` stories as JSON lines, from number `first` on."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(first, first + count):
            file.write(json.dumps(story(number), ensure_ascii=False) + "\n")


def reflected(missing: int | None = None) -> dict[str, Any]:
    """The incorporation reply; `missing` is the number of the value that is not shown."""
    return {"values": list(_answers(missing))}


def _answers(missing: int | None) -> Iterator[Mapping[str, Any]]:
    for number, (statement, who, speech) in enumerate(SPEECHES, 1):
        shown = number != missing
        yield {
            "value": number,
            "quote": speech if shown else None,
            "character": who if shown else None,
            "reason": f"{who} lives by it: {statement.lower()} is behind what is told here."
            if shown
            else "Neither its topic nor its attitude comes up anywhere in the story.",
            "reflected": "yes" if shown else "no",
        }


def no_speeches() -> dict[str, Any]:
    """The consistency and implicitness reply of a judge that finds nothing wrong."""
    reason = "Nothing that anybody says or does in the story speaks of that."
    return {"values": [{"value": n, "reason": reason, "speeches": []} for n in range(1, 6)]}


INSERTED = SPEECHES[-1][2]
"""A text in every story that passes."""


def inserted() -> dict[str, Any]:
    """The insertion reply for the last value."""
    _, who, speech = SPEECHES[-1]
    new = {
        "value": 5,
        "after": f"{who} nodded",
        "character": who,
        "dialogue": f'"{speech}," said {who}.',
    }
    return {"insertions": [new]}


def judge_route() -> list[tuple[str, dict[str, str]]]:
    """A canned server's answers to `judge validate` over these stories."""
    replies = (
        ('"Ready"', {"ready": "yes"}),
        ('"SpeechesFound"', no_speeches()),
        ('"Insertions"', inserted()),
        (INSERTED, reflected()),
        (UNSHOWN, reflected(missing=5)),
    )
    return [(n, {"role": "assistant", "content": json.dumps(reply)}) for n, reply in replies]
