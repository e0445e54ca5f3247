"""stories: conversation stories that carry drawn values (CQ-Bench, sections 2.1, A.1 and A.2).

Five statements of a value file with an attitude to each, a location and characters are drawn. A
writer makes a story of them, which the story workflow (graphs/story.py) checks and repairs. Values
that it does not carry are dropped, contradicted ones documented. A story is lost if it is too
short, still states a value outright at the end, or carries none of its values.

Where the paper is silent: characters are drawn from a list of names; no two stories have the same
values in the same location. In the multiple setting the four attitudes to a statement differ as far
as it has options. A rewritten story is checked again, except with `--roles paper` or `--one-pass`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from langgraph.graph import END, START, StateGraph

from judge.errors import UsageError
from judge.generate.generator import (
    DraftOptions,
    Generator,
    Lost,
    Roles,
    compose,
    draft_of,
    first_failure,
)
from judge.graphs.replies import NewStory
from judge.graphs.story import add_steps
from judge.graphs.story import workflow as story
from judge.judgement import Judgement
from judge.papers.cqbench_stories import Statement, ValueList, tidy_topic, value_list
from judge.records import Record
from judge.verdict import SOUND, Verdict, last_of_each
from judge.workflows import State, Work

WRITING = "story_writing"
VALUES = 5
"""Statements of a story (section 2.1)."""

CHARACTERS = {"multiple": (4, 4)}
USUAL_CHARACTERS = (4, 5)
"""Least and most characters (section 2.1, A.2)."""

USUAL = {"random": 500, "category": 400, "multiple": 100}
"""Stories of each setting (section 3.1; the four categories have 100 each)."""

LOCATIONS = (
    *("company", "school", "neighborhood", "national park", "restaurant", "amusement park"),
    "airplane",
)
"""Where stories happen (A.2)."""

NAMES = (
    *("Abel", "Aiko", "Alma", "Amir", "Anouk", "Bao", "Bruna", "Carlos", "Chidi", "Dalia", "Elif"),
    *("Emeka", "Farah", "Goran", "Hana", "Ines", "Ivan", "Jamal", "Kofi", "Lena", "Lin", "Luz"),
    *("Mateo", "Nadia", "Nils", "Noor", "Omar", "Paola", "Priya", "Rafa", "Sami", "Sefa", "Soo"),
    *("Tariq", "Tomo", "Uma", "Vera", "Wen", "Yara", "Yusuf", "Zoe"),
)
"""First names of many places, written for this project."""

_TRIES = 1000


def drafts(sources: Sequence[str], options: DraftOptions) -> Iterator[Record]:
    """A draft for each drawn set of values in its location.

    Raises:
        UsageError: no value file, or one with too few statements; an unknown setting.
    """
    setting = options.own.get("setting", "random")
    if setting not in USUAL:
        raise UsageError(f"--option setting={setting}: there are {', '.join(USUAL)}")
    if len(sources) != 1 or options.each is not None:
        raise UsageError("stories are drawn from one value file; --limit says how many")
    # A statement has no name of its own.
    columns = {name: path for name, path in options.columns.items() if name != "id"}
    groups = _groups(value_list(sources[0], columns), setting, options.listed("category"))
    locations = options.listed("locations", LOCATIONS)
    names = options.listed("names", NAMES)
    count = USUAL[setting] if options.limit is None else options.limit
    if len(names) < USUAL_CHARACTERS[1]:
        raise UsageError(f"--option names=...: name at least {USUAL_CHARACTERS[1]}")
    chance = random.Random(f"{options.seed}/{setting}")
    row = Record(sources[0], 1, {"id": Path(sources[0]).name})
    seen: set[tuple[object, ...]] = set()
    for index, (topic, statements) in enumerate(islice(cycle(groups), count), 1):
        for _ in range(_TRIES):
            location = chance.choice(locations)
            cast = chance.sample(names, chance.randint(*CHARACTERS.get(setting, USUAL_CHARACTERS)))
            values = _values(chance, statements, cast if setting == "multiple" else ())
            key = (location, *sorted(value for _, value in values))
            if key not in seen:
                break
        else:
            raise UsageError(f"{sources[0]}: no more than {index - 1} different stories in {topic}")
        seen.add(key)
        texts = [f"{name}:{value}" if name else value for name, value in values]
        fields = {"setting": topic, "location": location, "characters": cast, "values": texts}
        yield draft_of(row, "stories", options.seed, index, fields)


def _groups(
    values: ValueList, setting: str, categories: Sequence[str]
) -> list[tuple[str, list[Statement]]]:
    """The statements to draw from, each group with the setting of its stories."""
    everything = [*values.statements.values()]
    groups = [(setting, everything)]
    if setting == "category":
        topics = [tidy_topic(name) or name for name in categories] or values.topics
        groups = [(topic, [s for s in everything if s.topic == topic]) for topic in topics]
        if not groups:
            raise UsageError(f"{values.name}: no statement has a topic")
    for topic, statements in groups:
        if len(statements) < VALUES:
            message = f"{topic} has {len(statements)} statements; a story takes {VALUES}"
            raise UsageError(f"{values.name}: {message}")
    return groups


def _values(
    chance: random.Random, statements: Sequence[Statement], cast: Sequence[str]
) -> list[tuple[str, str]]:
    """Drawn values, each after the name of who holds it: with a cast, an attitude of each character
    to each statement; else one attitude to each, and no name."""
    values = []
    for statement in chance.sample(statements, VALUES):
        if not cast:
            values.append(("", f"{statement.text}--{chance.choice(statement.options)}"))
            continue
        attitudes = chance.sample(statement.options, len(statement.options))
        values += [
            (name, f"{statement.text}--{attitude}")
            for name, attitude in zip(cast, cycle(attitudes), strict=False)
        ]
    return values


# ---------------------------------------------------------------- written and checked


async def story_writing(state: State) -> None:
    """Write a story that carries the values."""
    await compose(state["work"], WRITING, NewStory, "story")


def lost(work: Work, judgement: Judgement) -> Lost | None:
    """Why the story is lost, if it is: another check failed, or it carries none of its values.
    Single values that fail are only dropped or documented."""
    failure = first_failure(work, judgement)
    if failure is None or failure[0] not in ("incorporation", "consistency"):
        return failure
    checks = {check.name: check for check in last_of_each(work.checks)}
    others = [c for name, c in checks.items() if name not in ("incorporation", "consistency")]
    if bad := next((check for check in others if check.verdict not in SOUND), None):
        return bad.name, str(bad.verdict)
    carried = [v for v in checks["incorporation"].verdicts().values() if v is Verdict.PASS]
    return None if carried else ("incorporation", str(checks["incorporation"].verdict))


def _after_writing(state: State) -> str:
    return "length" if state["work"].written else END


_builder = StateGraph(State)
_builder.add_node(WRITING, story_writing)
_builder.add_edge(START, WRITING)
_builder.add_conditional_edges(WRITING, _after_writing, ["length", END])
add_steps(_builder)

generator = Generator(
    text="story",
    name="stories",
    title="Stories that carry five drawn values (CQ-Bench)",
    source=story.title,
    workflow=replace(
        story,
        name="stories",
        title="Stories written for their values (CQ-Bench)",
        graph=_builder.compile(name="stories"),
        rewrites=(WRITING, *story.rewrites),
    ),
    drafts=drafts,
    stages=(WRITING, "length", "implicitness", "incorporation"),
    lost=lost,
    options={
        "setting": "random (the default: 500 stories), category (400) or multiple (100)",
        "category": "topics of the value file, one for each story in turn; without it all",
        "locations": "where stories happen; without it the paper's seven",
        "names": "of characters, in any script",
    },
    roles={
        "paper": Roles(
            writer="openai:gpt-4o-mini",
            judge="openai:gpt-4o",
            steps={"implicitness": "writer", "contradiction_rewriting": "judge"},
            # Temperatures are those of the released scripts, which take the provider's.
            settings={
                "rounds": 1,
                "one_pass": True,
                **dict.fromkeys(("temperature", "vote_temperature", "rewrite_temperature"), 1.0),
            },
        )
    },
    counted=("setting", "location", "characters"),
)
