"""docs/reference/json.md lists the keys of the JSON that judge writes, and no others."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.verdict import AnswerOutcome, Verdict
from tests.calibration.asking import PLAIN_FILE

from .conftest import FIXTURES
from .test_calibrate import SENSIBLE, YES_SAYER, script, seeming
from .typed import Typed

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "reference" / "json.md"
EXAMPLES = DOCS / "examples"
OUT = ("-o", "o.jsonl", "--summary", "s.json", "--overwrite")

ESTIMATE = {"value", "low", "high", "n", "of"}

DATA = {
    *("plain", "clear", "tone", "polite", "helps", "helps_a_b", "helps_a_c", "helps_b_c"),
    *("relevance", "derivation", "abstraction", "value_extraction", "friendly", "region"),
    *("North", "South", "India", "Peru", "country", "a", "b", "c", "warm", "rude", "red", "all"),
    *("yes", "no", "unsure", "1", "2", "3", "4", "5", "ann", "bo", "cy", "r0", "label", ""),
    *("fully", "partially", "absent", "JP", "PE", "refused", "rule_of_thumb", "story", "colour"),
    *Verdict,
    *AnswerOutcome,
}
"""Keys of the scenarios' data: names of checks, fields, people, answers and verdicts."""

WHOLE = (
    *("settings", "settings_from", "runs", "own_rubrics", "rubrics", "rubric", "tasks"),
    *("questions", "errors", "cheap_identity", "identities"),
)
"""Parts whose keys other pages list, or that are described by themselves."""


def listed(section: str) -> Iterator[tuple[set[str], set[str]]]:
    """Of each row of a section's table: the keys, and the keys inside them."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| `.*$", text, re.MULTILINE):
        keys, inside = (set(re.findall(r"`([a-z]\w*)`", cell)) for cell in row.split("|")[1:3])
        yield keys, inside


def keys_in(content: Any) -> set[str]:
    """The keys inside `content`, without those of estimates and of the scenarios' data."""
    if isinstance(content, list):
        return {key for part in content for key in keys_in(part)}
    if not isinstance(content, dict):
        return set()
    own = content.keys() - ESTIMATE if content.keys() >= ESTIMATE else content.keys()
    found = {key for key in own if key not in DATA and re.fullmatch(r"[a-z]\w*", key)}
    return found.union(*(keys_in(content[key]) for key in own if key not in WHOLE))


def compared(section: str, *written: Mapping[str, Any]) -> None:
    """The section's table has exactly the keys that were written, each with those inside it."""
    inside: dict[str, set[str]] = {}
    for content in written:
        for key, part in content.items():
            inside.setdefault(key, set()).update(keys_in(part) if key not in WHOLE else ())
    rows = [*listed(section)]
    assert {key for keys, _ in rows for key in keys} == inside.keys(), section
    for keys, found in rows:
        assert found == set().union(*(inside[key] for key in keys)), (section, keys)


pytestmark = pytest.mark.slow


@pytest.fixture
def written(typed: Typed) -> Typed:
    texts = [{"id": "r1", "text": "One.", "region": "North"}, {"id": "r2", "text": "Two."}]
    typed.write("in.jsonl", texts, "no record\n")
    (typed.folder / "plain.yaml").write_text(PLAIN_FILE)
    return typed


def loaded(typed: Typed, name: str) -> Any:
    return json.loads(typed.read(name))


TONE = ("--ask", "What is its tone?", "--name", "tone", "--answers", "warm,rude")
CLEAR = ("--ask", "How clear is it?", "--name", "clear", "--answers", "1,2,3,4,5")
POLITE = ("--ask", "Is it polite?", "--name", "polite")


def runs(typed: Typed) -> Iterator[tuple[str, ...]]:
    """The words of runs that write every key of a summary and of a description."""

    def says(name: str, *answers: str, quote: str | None = None) -> tuple[str, str]:
        """A judge's answers by record; the flag that names it."""
        replies = [
            {"when": {"id": f"r{n}"}, "reply": {"reason": "", "quote": quote, "answer": said}}
            for n, said in enumerate(answers, 1)
        ]
        return "-m", typed.script(name, replies)

    yield ("in.jsonl", *TONE, *says("a.yaml", "warm", "rude"), "--by", "region")
    scores = (*says("b.yaml", "1", "4"), *says("c.yaml", "2", "4"))
    yield (
        "in.jsonl",
        *CLEAR,
        "--pass",
        ">= 3",
        *scores,
        "--gate",
        "mean clear >= 2",
        "--by",
        "region",
    )
    polite = ("in.jsonl", *POLITE, *says("d.yaml", "yes", "no", quote="Absent."))
    yield (*polite, "--fail-under", "0.6", "--review", "review.jsonl", "--review-verdicts", "fail")
    failed = json.loads(typed.read("review.jsonl").splitlines()[0])
    typed.write("decided.jsonl", [{**failed, "labels": {"polite": "yes"}}])
    yield (*polite, "--decisions", "decided.jsonl")
    yield ("in.jsonl", *POLITE, *says("g.yaml", "yes"), *says("h.yaml", "neither"))
    typed.write("three.jsonl", [{"id": "r1", "a": "One.", "b": "Two.", "c": "Three."}])
    compared = ("--compare", "a,b,c", "--ask", "Which helps?", "--name", "helps")
    yield ("three.jsonl", *compared, *says("e.yaml", "1"))
    typed.write("lists.jsonl", [{"id": "r1", "text": "Text.", "claims": ["One.", "Two."]}])
    (typed.folder / "stated.yaml").write_text(
        "{name: plain, question: Is it stated?, fields: [text], each: claims}"
    )
    yield ("lists.jsonl", "--rubric", "stated.yaml", *says("f.yaml", "yes"))
    fixtures = (str(FIXTURES / name) for name in ("extractions.jsonl", "norms.jsonl"))
    for source, workflow in zip(fixtures, ("extraction", "normad-filter"), strict=True):
        model = f"scripted:{FIXTURES / 'judge.yaml'}"
        yield (source, "-m", model, "--workflow", workflow, "--limit", "3")
    typed.write("labels.jsonl", seeming(120))
    cheap, judge = script(typed, "cheap.yaml", SENSIBLE), script(typed, "judge.yaml", SENSIBLE)
    plain = ("--rubric", "plain.yaml", "--check", "plain")
    typed("calibrate", "labels.jsonl", *plain, *judge, "-o", "found")
    yield ("labels.jsonl", *plain, *judge, "--profile", "found/profile.json")
    yield ("labels.jsonl", *plain, *judge, "--cheap-model", cheap[1])


def test_summary_and_description(written: Typed) -> None:
    found, described = [], []
    for words in runs(written):
        done = written("validate", *words, *OUT)
        assert done.returncode in (0, 1, 3), done.stderr.decode()
        found.append(loaded(written, "s.json"))
        described += loaded(written, "o.jsonl.run.json").values()
    for copied in (EXAMPLES / "mails.csv", *(EXAMPLES / "generate").iterdir()):
        shutil.copy(copied, written.folder)
    written("generate", "reply.yaml", "mails.csv", "-m", "scripted:writer.yaml", *OUT)
    found.append(loaded(written, "s.json"))
    compared("`--summary FILE`", *found)
    sources = [str(FIXTURES / "cqbench" / name) for name in ("stories.jsonl", "values.jsonl")]
    other = ("-m", "scripted:other.yaml", "--limit", "1", "-o", "o.jsonl", "--overwrite")
    for benchmark in (["cqbench", *sources, "--judge-model", other[1]], ["hostile"]):
        written("evaluate", *benchmark, *other)
        described += loaded(written, "o.jsonl.run.json").values()
    stopped = ("in.jsonl", *POLITE, "-m", "scripted:d.yaml", "--no-cache", "--max-calls", "1")
    assert written("validate", *stopped, *OUT).returncode == 4
    described += loaded(written, "o.jsonl.run.json").values()
    # tests/cli/test_servers.py and tests/judging/test_served_model.py see these written.
    servers = {"openai:m": {"models": [], "system_fingerprints": []}}
    compared("`OUT.run.json`", *described, {"adaptations": {}, "answered_by": servers})


def test_the_report_of_calibrate(written: Typed) -> None:
    def labelled(*rows: dict[str, Any], rule: str = "Greet.", flip: bool = False) -> None:
        """Labels of three people, who differ about every fifth."""
        for row in rows:
            said = row["labels"]["plain"]
            said = {"yes": "no", "no": "yes"}[said] if flip else said
            people = dict.fromkeys(("ann", "bo", "cy"), said)
            row |= {"rule_of_thumb": rule, "labels": {"plain": people}}
            if int(row["id"][1:]) % 5 == 0:
                people["cy"] = "unsure"

    rows, turned, further = seeming(240), seeming(60), seeming(40, seed=1)
    labelled(*rows)
    labelled(*turned, rule="Do not greet.", flip=True)
    labelled(*further)
    written.write("labels.jsonl", rows, "no record\n")
    written.write("turned.jsonl", turned)
    written.write("further.jsonl", [{**row, "id": f"f{row['id']}"} for row in further])
    judges = (*script(written, "a.yaml", SENSIBLE), *script(written, "b.yaml", YES_SAYER))
    sets = ("--contrast-set", "turned.jsonl", "--test-set", "further.jsonl", "--by", "country")
    control = "control: {field: rule_of_thumb, swapped: no}\n"
    (written.folder / "plain.yaml").write_text(PLAIN_FILE + control)
    words = ("--check", "plain", "--rubric", "plain.yaml", *judges)
    done = written("calibrate", "labels.jsonl", *words, *sets, "--guarantee", "0.7", "-o", "report")
    assert done.returncode == 3, done.stderr
    found = [loaded(written, "report/report.json")]
    colours = {"yes": "red", "no": "blue"}
    leaks = [{**row, "colour": colours[row["labels"]["plain"]]} for row in seeming(60)]
    written.write("leaks.jsonl", leaks)
    asked = ("--ask", "Is it polite?", "--name", "plain", *judges[:2], "--json")
    found.append(json.loads(written("calibrate", "leaks.jsonl", *asked).stdout))
    checks = [check for report in found for check in report["checks"]]
    compared("`report.json`", *({**report, "checks": []} for report in found))
    compared("A check of `report.json`", *({**check, "judges": []} for check in checks))
    compared("A judge of a check", *(judge for check in checks for judge in check["judges"]))


def test_agreement(written: Typed) -> None:
    rows = [
        f"r{n},{name},{['yes', 'no'][n % 2]},{['North', 'South'][n % 2]}"
        for n in range(4)
        for name in ("ann", "bo", "cy")
    ]
    (written.folder / "sheet.csv").write_text("\n".join(("item,annotator,label,group", *rows * 2)))
    (written.folder / "people.csv").write_text("annotator,country\nann,India\nbo,Peru\n")
    written.write("gold.jsonl", [{"id": "r0", "labels": {"label": "yes"}}])
    scores = [f"r{n},{name},{n % 3 + 1}" for n in range(4) for name in ("ann", "bo")]
    (written.folder / "scores.csv").write_text("\n".join(("item,annotator,label", *scores)))
    written.write("golden.jsonl", [{"id": "r0", "labels": {"label": "1"}}])
    people = ("sheet.csv", "--controls", "gold.jsonl", "--people", "people.csv")
    of_two = ("scores.csv", "golden.jsonl")
    done = [written("agreement", *words, "--json") for words in (people, of_two)]
    compared("`judge agreement --json`", *(json.loads(each.stdout) for each in done))
