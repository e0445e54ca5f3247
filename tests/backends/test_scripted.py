"""Scripted judges: which entry answers, and the errors of invalid scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge import errors
from judge.backends.base import Call, Completion, Mode, Origin
from judge.backends.scripted import ScriptedBackend

Make = Callable[..., ScriptedBackend]


@pytest.fixture
def script(tmp_path: Path) -> Make:
    """A backend from script entries (or a whole script)."""

    def write(*entries: dict[str, Any], **whole: Any) -> ScriptedBackend:
        path = tmp_path / "judge.yaml"
        path.write_text(yaml.safe_dump({"replies": list(entries), **whole}), "utf-8")
        return ScriptedBackend(str(path))

    return write


def call(
    prompt: str = "Is it so?",
    *,
    rubric: str = "relevance",
    record: str = "r1",
    round: int = 1,
    vote: int = 0,
    role: str = "loop",
    logprobs: int | None = None,
    **fields: Any,
) -> Call:
    origin = Origin(rubric, record, round, vote, lambda: fields)
    messages = [{"role": "system", "content": "You judge."}, {"role": "user", "content": prompt}]
    return Call(messages, role=role, logprobs=logprobs, vote=vote, origin=origin)  # type: ignore[arg-type]


async def said(backend: ScriptedBackend, *args: Any, **kwargs: Any) -> Completion:
    return await backend.complete(call(*args, **kwargs), Mode.JSON_SCHEMA)


@pytest.mark.parametrize(
    ("when", "hit", "miss"),
    [
        ({"rubric": "relevance"}, {}, {"rubric": "leakage"}),
        ({"id": "r1", "round": 1, "role": "loop"}, {}, {"record": "r2"}),
        ({"contains": "is it"}, {"prompt": "now is it so"}, {"prompt": "Is it so?"}),
        ({"lacks": "secret"}, {}, {"prompt": "a secret"}),
        ({"rubric": "relevance", "vote": 2}, {"vote": 2}, {"vote": 0}),
    ],
)
async def test_the_first_entry_whose_conditions_all_hold_answers(
    script: Make, when: dict[str, Any], hit: dict[str, Any], miss: dict[str, Any]
) -> None:
    backend = script({"when": when, "text": "first"}, {"text": "second"})
    assert (await said(backend, **hit)).text == "first"
    assert (await said(backend, **miss)).text == "second"


async def test_replies_are_json_text_or_templates(script: Make) -> None:
    backend = script(
        {"when": {"vote": 0}, "reply": {"answer": "yes", "quote": "né"}},
        {"when": {"vote": 1}, "reply": '{"n": {{ values | length }}, "s": {{ story | tojson }}}'},
        {"when": {"vote": 2}, "reply": "{{ prompt | length }}"},
        {"when": {"vote": 3}},
    )
    assert (await said(backend)).text == '{"answer": "yes", "quote": "né"}'
    rendered = await said(backend, vote=1, story='"Hi"\n{{ 7*7 }}', values=["a", "b"])
    assert json.loads(rendered.text) == {"n": 2, "s": '"Hi"\n{{ 7*7 }}'}
    told = await said(backend, vote=2, prompt="Is it so?")
    assert told.text == str(len("You judge.\nIs it so?"))
    assert (await said(backend, vote=3)).text == "{}"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("rate-limited", errors.RateLimited), ("context-exceeded", errors.ContextExceeded)],
)
async def test_an_entry_may_fail(script: Make, name: str, kind: type[errors.BackendError]) -> None:
    backend = script({"error": name, "times": 1}, {"text": "well"})
    with pytest.raises(kind):
        await said(backend)
    assert (await said(backend)).text == "well"


@pytest.mark.parametrize(("p", "text"), [(0.9, "Yes"), (0.001, "No")])
async def test_p_yes_is_read_from_the_first_token(script: Make, p: float, text: str) -> None:
    backend = script({"p_yes": p}, method="logprobs")
    assert backend.method == "logprobs"
    got = await said(backend, logprobs=20)
    assert got.text == text and got.first_token is not None
    assert {t: math.exp(lp) for t, lp in got.first_token} == pytest.approx({"Yes": p, "No": 1 - p})


async def test_no_entry_fits(script: Make) -> None:
    backend = script({"when": {"id": "other"}, "text": "x"})
    with pytest.raises(errors.BadRequest, match=r"'relevance'.*'r1'") as caught:
        await said(backend)
    assert "judge.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"replies: [",
        b"replies: [{when: {colour: red}}]",
        b"replies: [{error: no-such-kind}]",
        b"\xff\xfe",
    ],
)
def test_a_bad_script_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(errors.UsageError, match=r"bad\.yaml"):
        ScriptedBackend(str(path))


def test_every_mistake_in_a_script_has_its_line_and_the_nearest_key(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(
        "replies:\n  - when: {contian: x}\n    reply: 5\n"
        "  - error: broken\n    p_yes: 2\n    dely: 1\nmethd: logprobs\n"
    )
    with pytest.raises(errors.UsageError) as refused:
        ScriptedBackend(str(path))
    assert str(refused.value).replace(f"scripted:{path}:", "").splitlines() == [
        "2: replies.0.when.contian: unknown key; did you mean 'contains'?",
        "3: replies.0.reply: write text, or a mapping of the reply's keys",
        "4: replies.1.error: 'broken' is not one of rate-limited, server-fault, unreachable, "
        "denied, bad-request or context-exceeded",
        "5: replies.1.p_yes: must be less than 1.0",
        "6: replies.1.dely: unknown key; did you mean 'delay'?",
        "7: methd: unknown key; did you mean 'method'?",
    ]
