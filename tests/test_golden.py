"""What six commands write, to the byte: `pytest tests/test_golden.py --update-golden` writes the
files in tests/golden anew; look at the diff.

Fingerprints and digests are masked: they change whenever the wording of a rubric's file does.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from cli.typed import Typed

ROOT = Path(__file__).parents[1]
FIXTURES, GOLDEN = ROOT / "fixtures", Path(__file__).parent / "golden"
SCRIPT = ("-m", "scripted:fixtures/judge.yaml", "--no-cache")

_HASH = re.compile(r'("(?:fingerprint|rubric|digest|identity)": ?")[0-9a-f]{12,32}"')
_HASHES = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12,32}\b")


@pytest.fixture
def golden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Typed:
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples")
    return Typed(tmp_path, monkeypatch, capfd)


def same(request: pytest.FixtureRequest, name: str, output: str | bytes) -> None:
    text = output.decode() if isinstance(output, bytes) else output
    text = _HASHES.sub("HASH", _HASH.sub(r'\1HASH"', text))
    path = GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, f"{name} differs; --update-golden writes it anew"


def test_norms(golden: Typed, request: pytest.FixtureRequest) -> None:
    done = golden("validate", "fixtures/norms.jsonl", *SCRIPT, "--limit", "8", "-q")
    assert done.returncode == 0
    same(request, "norms.jsonl", done.stdout)


def test_stories_with_and_without_repair(golden: Typed, request: pytest.FixtureRequest) -> None:
    for flags, name in ((("--limit", "2"), "stories"), (("--repair",), "stories_repaired")):
        done = golden("validate", "fixtures/stories.jsonl", *SCRIPT, *flags, "-q")
        lines = list(done.stdout.decode().splitlines(keepends=True))
        edited = [line for line in lines if json.loads(line)["judge"]["edits"]]
        same(request, f"{name}.jsonl", "".join(edited[:2] if flags == ("--repair",) else lines))


def test_mails_are_asked_a_question(golden: Typed, request: pytest.FixtureRequest) -> None:
    ask = ("--ask", "Is this e-mail polite?", "--on", "email")
    words = ("validate", "examples/mails.csv", *ask, "-m", "scripted:examples/mails.judge.yaml")
    done = golden(*words)
    assert done.returncode == 0
    same(request, "mails.jsonl", done.stdout)


def test_calibration_reports(golden: Typed, request: pytest.FixtureRequest) -> None:
    fixtures = golden.folder / "fixtures"
    records = [json.loads(line) for line in (fixtures / "norms.jsonl").open()]
    labels = [json.loads(line) for line in (fixtures / "norms.labels.jsonl").open()]
    # The script answers as the labels say; every fifth one is turned round.
    answers = [
        "yes" if label["relevance"] == bool(n % 5) else "no" for n, label in enumerate(labels)
    ]
    rows = zip(records, answers, strict=True)
    golden.write("labels.jsonl", [row | {"labels": {"relevance": one}} for row, one in rows])
    words = ("calibrate", "labels.jsonl", "--check", "relevance", *SCRIPT, "-o", "calibrated")
    done = golden(*words, "--no-controls", "-q")
    assert done.returncode == 0, done.stderr
    for path in sorted((golden.folder / "calibrated").rglob("*")):
        if path.suffix in (".json", ".md", ".jsonl"):
            same(request, f"calibrated.{path.name}", path.read_bytes())


def test_a_benchmark_prints_its_tables(golden: Typed, request: pytest.FixtureRequest) -> None:
    yes = {"when": {"contains": "Yes or No"}, "reply": {"answer": "Yes"}}
    golden.script("model.yaml", [yes, {"reply": {"answer": "A"}}])
    words = ("evaluate", "cali", "fixtures/cali/data.tsv", "-m", "scripted:model.yaml")
    done = golden(*words, "--no-cache", "-o", "answers.jsonl", "--limit", "12", "-q")
    assert done.returncode == 0, done.stderr
    same(request, "cali.txt", done.stdout)
    lines = golden.read("answers.jsonl").splitlines(keepends=True)
    same(request, "cali.jsonl", b"".join(lines[::48]))
