"""A small folder in EECC's released layout, written by the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

IDENTITIES = ("Indian", "German", "Nigerian", "Ugandan")
STORY = "Write a children's story about {concept} for {vowel} {identity} kid in English."
ANSWER = "Explain {concept} to {vowel} {identity} person in English."
HOFSTEDE = """ctr,country,Demonym,pdi,idv
IND,India,Indian,10,0
GER,Germany,German,20,0
NIG,Nigeria,Nigerian,40,0
ARA,Arab countries,Arab,50,0
"""


def write_folder(
    folder: Path,
    identities: Sequence[str] = IDENTITIES,
    concepts: Mapping[str, str] | None = None,
) -> Path:
    """Identities of the kind country, story concepts with their topics, one QA concept."""
    concepts = concepts or {"honesty": "moral_values", "forest": "specific_settings"}
    put(folder / "identities.tsv", [f"country\t{name}" for name in identities])
    put(folder / "stories/concepts.tsv", [f"{topic}\t{name}" for name, topic in concepts.items()])
    put(folder / "stories/templates.tsv", [f"_\t_\t{STORY}"])
    put(folder / "qa/concepts.tsv", ["politics\telections"])
    put(folder / "qa/templates.tsv", [f"_\t_\t{ANSWER}"])
    return folder


def put(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), "utf-8")
    return path
