"""Records with known faults, for benchmarks that need a truth without people.

Stories and norms of fixtures/ with the faults that their sidecars name, and generated stories and
situations with seeded faults. The simulated judge (bench/simulated.py) reads no meaning: a fault is
there as long as its words are in the text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
Fields = dict[str, Any]
Speeches = Mapping[int, tuple[str, str]]
RIGHT, WRONG = "just as it had been asked for.", "in quite another way."
"""The end of a situation that was written anew: as wanted, or not."""

FAULTS = ("missing", "contradiction", "explicit", "short")
SHARE = 0.12
"""Share of each fault among generated records; the rest is sound."""


@dataclass(frozen=True, slots=True)
class StoryTruth:
    """What a careful reader would say of a story, by value number (from 1).

    `shown` is where a value shows, `contradictions` and `explicit` who says what; `missing` values
    are nowhere until dialogue that carries them is put in.
    """

    shown: Speeches
    missing: frozenset[int] = frozenset()
    contradictions: Speeches = field(default_factory=dict)
    explicit: Speeches = field(default_factory=dict)

    def speech(self, rubric: str, number: int, story: str) -> tuple[str, str] | None:
        """(character, words) of the fault that this rubric looks for, if it is still there."""
        planted = self.contradictions if rubric == "consistency" else self.explicit
        found = planted.get(number)
        return found if found and found[1] in story else None

    def says_yes(self, rubric: str, number: int, texts: Mapping[str, Any]) -> bool:
        story = texts["story"]
        if rubric == "incorporation":
            return number not in self.missing or carrying(number) in story
        return self.speech(rubric, number, story) is not None

    def sound(self, texts: Mapping[str, Any], least: int) -> bool:
        """Whether the story in its present form should pass."""
        numbers = range(1, len(texts["values"]) + 1)
        return len(texts["story"].split()) >= least and all(
            self.says_yes("incorporation", n, texts)
            and not self.says_yes("consistency", n, texts)
            and not self.says_yes("implicitness", n, texts)
            for n in numbers
        )


@dataclass(frozen=True, slots=True)
class NormTruth:
    """What a careful reader would say of a situation; `relevance` holds until it is rewritten."""

    relevance: bool
    derivation: bool
    abstraction: bool

    def says_yes(self, rubric: str, number: int, texts: Mapping[str, Any]) -> bool:
        if rubric != "relevance":
            return bool(getattr(self, rubric))
        wanted = texts["label"] != "neutral"
        if texts["story"].endswith((RIGHT, WRONG)):
            return wanted == texts["story"].endswith(RIGHT)
        return self.relevance

    def sound(self, texts: Mapping[str, Any], least: int) -> bool:
        wanted = texts["label"] != "neutral"
        fits = self.says_yes("relevance", 0, texts) == wanted
        return fits and self.derivation == wanted and self.abstraction


Truth = StoryTruth | NormTruth


@dataclass(frozen=True, slots=True)
class Planted:
    """A record's fields, and the truth about it."""

    fields: Fields
    truth: Truth


def carrying(number: int) -> str:
    """Words that carry this value wherever they are put in."""
    return f"My aunt settled case number {number} like that, and nobody in our street forgot it"


# ---------------------------------------------------------------- fixtures


def fixture_stories() -> list[Planted]:
    return [Planted(record, _story_truth(label)) for record, label in _rows("stories")]


def fixture_norms() -> list[Planted]:
    return [
        Planted(record, NormTruth(label["relevance"], label["derivation"], label["abstraction"]))
        for record, label in _rows("norms")
    ]


def _rows(name: str) -> list[tuple[Fields, Fields]]:
    def load(file: str) -> list[Fields]:
        return [json.loads(line) for line in (FIXTURES / file).read_text("utf-8").splitlines()]

    return list(zip(load(f"{name}.jsonl"), load(f"{name}.labels.jsonl"), strict=True))


def _story_truth(label: Fields) -> StoryTruth:
    def speeches(key: str) -> Speeches:
        return {part["value"]: (part["character"], part["speech"]) for part in label[key]}

    values = label["values"]
    return StoryTruth(
        shown={v["value"]: (v["character"], v["quote"]) for v in values if v["reflected"]},
        missing=frozenset(v["value"] for v in values if not v["reflected"]),
        contradictions=speeches("contradictions"),
        explicit=speeches("explicit"),
    )


# ---------------------------------------------------------------- generated

_NAMES = ("Ada", "Bram", "Chidi", "Dora", "Elif", "Farid", "Grete", "Hugo", "Ines", "Jun")
_TOPICS = (
    "Neighbours should help one another--Agree",
    "Work comes before spare time--Disagree",
    "How important is thrift at home--Very important",
    "How often do you follow politics in the news--Several times a week",
    "Old parents should be cared for by their children--Agree",
    "Most people can be trusted--Disagree",
    "New machines make daily life better--Agree",
    "How proud are you of your town--Quite proud",
    "Children need strict rules--Disagree",
    "It is right to cheat on taxes if one can--Disagree",
)
_THINGS = ("the kettle", "a wet umbrella", "the ladder", "two baskets of plums", "the old radio")
_PLACES = ("by the window", "under the awning", "on the stairs", "beside the stove", "at the gate")
_DEEDS = ("waited for the rain to stop", "counted the cups again", "looked up the road for the bus")


def story(number: int, seed: int) -> Planted:
    """One generated story with five values; about half of them carry one fault."""
    draw = random.Random(f"{seed} story {number}")
    names, values = draw.sample(_NAMES, 4), draw.sample(_TOPICS, 5)
    drawn = draw.random()
    fault = FAULTS[int(drawn / SHARE)] if drawn < SHARE * len(FAULTS) else None
    hit = draw.randint(1, 5)
    shown: dict[int, tuple[str, str]] = {}
    paragraphs = [_scene(draw, names, 2 if fault == "short" else 8)]
    for value in range(1, 6):
        who = draw.choice(names)
        if not (fault == "missing" and value == hit):
            said = f"What we did about number {value} I would do again, and I told {names[0]} so"
            shown[value] = (who, said)
            paragraphs.append(f'"{said}," said {who}.')
        paragraphs.append(_scene(draw, names, 2 if fault == "short" else 8))
    planted = {}
    if fault in ("contradiction", "explicit"):
        said = f"For my part I hold with {values[hit - 1].split('--')[0].lower()}, {fault} or not"
        planted = {hit: (names[1], said)}
        paragraphs.insert(draw.randint(1, len(paragraphs)), f'"{said}," said {names[1]}.')
    fields = {
        "id": f"made-story-{number}",
        "setting": "random",
        "characters": names,
        "values": values,
        "story": "\n\n".join(paragraphs),
    }
    truth = StoryTruth(
        shown,
        missing=frozenset({hit} if fault == "missing" else ()),
        contradictions=planted if fault == "contradiction" else {},
        explicit=planted if fault == "explicit" else {},
    )
    return Planted(fields, truth)


def _scene(draw: random.Random, names: list[str], sentences: int) -> str:
    return " ".join(
        f"{draw.choice(names)} put down {draw.choice(_THINGS)} {draw.choice(_PLACES)} "
        f"and {draw.choice(_DEEDS)}."
        for _ in range(sentences)
    )


def norm(number: int, seed: int) -> Planted:
    """One generated situation; most are sound, some irrelevant, underived or badly abstracted."""
    draw = random.Random(f"{seed} norm {number}")
    name, thing, place = draw.choice(_NAMES), draw.choice(_THINGS), draw.choice(_PLACES)
    rule = f"A visitor hands over {thing} {place} before sitting down."
    lines = [f"- {draw.choice(_NAMES)} {draw.choice(_DEEDS)} {p}." for p in _PLACES]
    fields = {
        "id": f"made-norm-{number}",
        "country": "nowhere",
        "background": "\n".join([*lines, f"- {rule}"]),
        "value": "Care for the house that one visits",
        "rule_of_thumb": rule,
        "story": f"{name} came in, left {thing} {place} and {draw.choice(_DEEDS)}. Was it right?",
        "label": draw.choice(("yes", "no", "neutral")),
    }
    return Planted(fields, planted_norm(fields["label"], draw.random()))


def planted_norm(label: str, drawn: float) -> NormTruth:
    """A truth for a situation with this label; `drawn` (0 to 1) says which fault, if any."""
    wanted, fault = label != "neutral", int(drawn / SHARE)
    return NormTruth(wanted ^ (fault == 0), wanted ^ (fault == 1), fault != 2)
