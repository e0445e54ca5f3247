"""llama.cpp's own server over HTTP, through `openai:`: JSON and first tokens, from a model of 135
million parameters that is fetched once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.local.fetch import SourceUnreachable, pull
from judge.local.llama import LocalBackend
from tests.cli.typed import Typed

pytestmark = pytest.mark.slow

SMALL = "smollm2-135m"
MAILS = [{"id": "a", "email": "Do it over at once."}, {"id": "b", "email": "Wrong. Again."}]
ASK = ("--ask", "Is it polite?", "--on", "email", "-m", "openai:small", "--concurrency", "1")


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalBackend]:
    try:
        pull(SMALL, progress=lambda done, total, what: None)
    except SourceUnreachable as error:
        pytest.skip(str(error))
    backend = LocalBackend(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_WAIT_POLICY", "passive")
        yield backend
    asyncio.run(backend.aclose())


@pytest.fixture
def judge(
    engine: LocalBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> Typed:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{engine._engine.listening_address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", engine._key)
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("in.jsonl", MAILS)
    return made


@pytest.mark.parametrize(
    "flags",
    [
        # So small a model may write reasons without end; it comes to one about the first.
        ("--method", "structured", "--limit", "1", "--max-tokens", "200"),
        ("--method", "logprobs"),
    ],
    ids=["JSON", "first token"],
)
def test_it_ends_in_verdicts(judge: Typed, flags: tuple[str, ...]) -> None:
    words = ("validate", "in.jsonl", *ASK, *flags, "-o")
    code, _, told = judge.text(*words, "out.jsonl")
    assert code == 0, told
    lines = [json.loads(line)["judge"] for line in judge.read("out.jsonl").splitlines()]
    # So small a model leaves probability to other words, and may abstain for it.
    assert {line["verdict"] for line in lines} <= {"pass", "fail", "abstain"}
    described = json.loads(judge.read("out.jsonl.run.json")).values()
    assert not any("adaptations" in one for one in described), "it takes requests as they are"
    judge.text(*words, "again.jsonl")
    assert judge.read("again.jsonl") == judge.read("out.jsonl")


def test_a_limit_on_the_reply_is_obeyed(judge: Typed) -> None:
    code, out, told = judge.text("validate", "in.jsonl", *ASK, "--max-tokens", "5")
    assert code == 3 and "cut off at 5 tokens; --max-tokens N allows more" in out, told
