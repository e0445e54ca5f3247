"""Any JSON value as text: what people's records hold, and what hostile ones hold."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.text import DEEPEST, form, shown

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}
FOUND = {"response": {"ok": True}}
PNG = {"mimeType": "image/png", "data": "iVBORw0KGgo"}
THOUGHT = {"type": "thinking", "thinking": "Rome, then.", "signature": "EqQBCgIYAhIM"}
PHOTO = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a\n  b", "a\n  b"),
        (1.0, "1.0"),
        (False, "no"),
        (
            ["Doc one.", None, "Doc two\n3. not an entry", ""],
            "1. Doc one.\n2. Doc two\n   3. not an entry",
        ),
        ([["a"], ["b", 2]], "1. 1. a\n2. 1. b\n   2. 2"),
        (
            [{"text": "Doc one.", "score": 0.5, "meta": {"tags": ["x"]}}, {"text": "Two"}],
            "1. text: Doc one.\n   score: 0.5\n   meta:\n      tags:\n         1. x\n2. text: Two",
        ),
        ({"a": {"b": None}, "c": "x\n\ny: z", "d e\nf": 1}, "c:\n   x\n\n   y: z\nd e f: 1"),
        (
            [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}],
            "1. human: Hi\n2. gpt: Ho",
        ),
        ([{"speaker": "Ann", "text": "Hi", "tone": "dry"}], "1. Ann:\n   Hi\n   tone: dry"),
        (
            [{"sender": "bot", "message": "Hi"}, {"speaker": "B", "utterance": "Ho"}],
            "1. bot: Hi\n2. B: Ho",
        ),
        # A table has a chat as JSON, or as pandas prints it; other JSON is a text.
        ('[{"role": "user", "content": "Hi\\nHo"}]', "1. user:\n   Hi\n   Ho"),
        ("[{'role': 'user', 'content': \"it's\"}]", "1. user: it's"),
        ('[{"name": "Ann"}]', '[{"name": "Ann"}]'),
        ('[{"role": "user", "content": ', '[{"role": "user", "content": '),
        (  # Gemini
            [
                {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"n": 1}}}]},
                {"role": "user", "parts": [{"function_response": {"name": "find"} | FOUND}]},
                {"role": "user", "parts": [{"inlineData": PNG}, {"text": "See"}]},
                {"role": "model", "parts": [{"text": "I see.", "thoughtSignature": "Cq4B"}]},
            ],
            "1. model:\n   tool call find:\n      n: 1\n"
            "2. user:\n   result of find:\n      ok: yes\n"
            "3. user:\n   inlineData: [image not shown]\n   See\n4. model: I see.",
        ),
        (  # Anthropic's thoughts
            [
                {
                    "role": "assistant",
                    "content": [THOUGHT, {"type": "text", "text": "21 degrees."}],
                },
                {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "EmwK"}]},
            ],
            "1. assistant:\n   thoughts: Rome, then.\n   21 degrees.\n"
            "2. assistant: [thoughts not shown]",
        ),
        (  # LangChain's dumps
            [
                {"type": "human", "data": {"content": "Hi", "type": "human", "example": False}},
                {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [CALL]}}
                | {"response_metadata": {"token_usage": {"prompt_tokens": 3}}, "tool_calls": []},
                {"type": "constructor", "lc": 1, "id": ["langchain", "schema", "ToolMessage"]}
                | {"kwargs": {"content": "42", "tool_call_id": "c1", "type": "tool"}},
            ],
            '1. user: Hi\n2. assistant:\n   tool call find (c1): {"id": 7}\n'
            "3. tool, result of c1: 42",
        ),
        (  # OpenAI's export
            [{"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hi"]}}],
            "1. user: Hi",
        ),
        # A list in which one entry is no message is a list.
        ([{"role": "user", "content": "Hi"}, {"n": 1}], "1. user: Hi\n2. n: 1"),
        (
            [
                {"role": "system", "content": "Be kind."},
                {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
                {
                    "role": "tool",
                    "tool_call_id": "c1",
                    "name": "find",
                    "content": "late\n2. user: no",
                },
                {"role": "assistant", "content": "", "refusal": "I cannot."},
                {"role": "assistant", "content": ""},
                {"role": "assistant", "function_call": {"name": "stop", "arguments": "{}"}},
            ],
            '1. system: Be kind.\n2. assistant:\n   tool call find (c1): {"id": 7}\n'
            '   tool call find (c2): {"id": 7}\n3. tool find, result of c1:\n   late\n'
            "   2. user: no\n4. assistant:\n   refusal: I cannot.\n5. assistant: [empty]\n"
            "6. assistant:\n   tool call stop: no arguments",
        ),
        (
            [
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PHOTO]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "A cat"}]},
            ],
            "1. user:\n   What is it?\n   [image not shown]\n2. assistant: A cat",
        ),
        (  # Anthropic
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}],
                },
            ],
            "1. assistant:\n   tool call f (t):\n      x: 1\n2. user:\n   result of t:\n      ok",
        ),
        (  # OpenAI's Responses
            [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Hi"}],
                },
                {"type": "function_call", "call_id": "k", "name": "f", "arguments": '{"x": 1}'},
                {"type": "function_call_output", "call_id": "k", "output": "ok"},
            ],
            '1. user: Hi\n2. assistant:\n   tool call f (k): {"x": 1}\n3. tool, result of k: ok',
        ),
        # One message, as OpenAI's completions hold it.
        ([{"index": 0, "message": {"role": "assistant", "content": "Hi"}}], None),
    ],
)
def test_a_value_reads_as_people_would_write_it(content: Any, text: str | None) -> None:
    assert shown(content).text == (text or "1. index: 0\n   message:\n      assistant: Hi")


@pytest.mark.parametrize(
    ("content", "omitted"),
    [
        *[
            (empty, ())
            for empty in ("", " \n", [], {}, None, ["", " "], [{}, None], {"a": {"b": []}})
        ],
        ([{"role": "assistant", "content": ""}], ()),
        (float("nan"), ()),
        ([{"role": "user", "content": [PHOTO]}], ("image",)),
        ("data:audio/wav;base64,AAAA", ("audio",)),
        ({"bytes": "x", "path": "a.png"}, ("file",)),
        ({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}, ("audio",)),
        ({"array": [0.1], "sampling_rate": 16000}, ("audio",)),
        ({"source": {"type": "base64", "media_type": "image/png", "data": "x"}}, ("image",)),
    ],
)
def test_what_holds_no_text_is_empty_and_what_it_holds_is_named(
    content: Any, omitted: tuple[str, ...]
) -> None:
    assert shown(content) == ("", "", omitted)


def test_every_string_of_a_value_is_there_to_be_screened() -> None:
    hidden = "<|im_end|>"
    for content in (
        [["x", [hidden]]],
        {"a": [{"b": hidden}]},
        {"a": {hidden: 1}},
        [{"role": f"user{hidden}", "content": "x"}],
        [{"role": "user", "content": "x", "tool_calls": [{**CALL, "id": hidden}]}],
        [{"role": "user", "content": [{"type": "text", "text": "x", "note": hidden}]}],
    ):
        assert hidden in shown(content).strings and hidden in shown(content).text, content
    # What we write around them is not: a chat has a turn of the system, a call of a tool.
    chat = [{"role": "system", "content": "x", "tool_calls": [CALL]}]
    assert shown(chat).strings == 'x\n{"id": 7}'


def test_deep_values_are_cut_and_told() -> None:
    content: Any = "x"
    for _ in range(DEEPEST - 1):
        content = [content]
    assert shown(content).text.endswith("x") and not shown(content).omitted
    told = f"what is nested deeper than {DEEPEST} levels"
    for _ in range(800):
        content = {"a": content}
    assert shown(content) == ("", "", (told,))
    assert f"[{told} not shown]" in shown(["y", content]).text


def test_work_and_text_are_in_proportion_to_the_value() -> None:
    def seconds(count: int) -> float:
        content: Any = [{"text": "word " * 9, "tags": ["a\nb"] * 3}] * count
        for _ in range(DEEPEST - 6):
            content = [content]
        began = time.process_time()
        assert len(shown(content).text) < 400 * count
        return time.process_time() - began

    assert seconds(8_000) < 30 * max(seconds(800), 0.01)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["role", "content"]), inner)
    ),
)


@given(JSON)
def test_any_value_has_a_text_or_none(content: Any) -> None:
    found = shown(content)
    assert bool(found.text.strip()) == bool(found.text)
    assert form(content) in ("", "list", "chat", "object")
