"""Any JSON value as text: what people's records hold, and what hostile ones hold."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.records.text import MAX_DEPTH_SHOWN, entries, form, shown

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
            "1. Doc one.\n3. Doc two\n      3. not an entry",
        ),
        ([["a"], ["b", 2]], "1. 1. a\n2. 1. b\n   2. 2"),
        (
            [{"text": "Doc one.", "score": 0.5, "meta": {"tags": ["x"]}}, {"text": "Two"}],
            "1. text: Doc one.\n   score: 0.5\n   meta:\n      tags:\n         1. x\n2. text: Two",
        ),
        ({"a": {"b": None}, "c": "x\n\ny: z", "d e\nf": 1}, "c:\n      x\n\n      y: z\nd e f: 1"),
        (
            [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}],
            "1. human: Hi\n2. gpt: Ho",
        ),
        ([{"speaker": "Ann", "text": "Hi", "tone": "dry"}], "1. Ann:\n      Hi\n   tone: dry"),
        (
            [{"sender": "bot", "message": "Hi"}, {"speaker": "B", "utterance": "Ho"}],
            "1. bot: Hi\n2. B: Ho",
        ),
        # A table has a chat as JSON, or as pandas prints it; other JSON is a text.
        ('[{"role": "user", "content": "Hi\\nHo"}]', "1. user:\n      Hi\n      Ho"),
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
            "3. user:\n   inlineData: [image not shown]\n      See\n4. model: I see.",
        ),
        (  # Anthropic's thoughts
            [
                {
                    "role": "assistant",
                    "content": [THOUGHT, {"type": "text", "text": "21 degrees."}],
                },
                {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "EmwK"}]},
            ],
            "1. assistant:\n   thoughts: Rome, then.\n      21 degrees.\n"
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
            [
                {
                    "author": {"role": "user", "name": None, "metadata": {}},
                    "content": {"content_type": "text", "parts": ["Hi"]},
                },
                {"author": {"role": "tool", "name": "browser"}, "content": {"parts": ["42"]}},
            ],
            "1. user: Hi\n2. tool:\n      42\n   author:\n      name: browser",
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
            '   tool call find (c2): {"id": 7}\n3. tool (find), result of c1:\n      late\n'
            "      2. user: no\n4. assistant:\n   refusal: I cannot.\n5. assistant: [empty]\n"
            "6. assistant:\n   tool call stop: [no arguments]",
        ),
        (
            [
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PHOTO]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "A cat"}]},
            ],
            "1. user:\n      What is it?\n   [image not shown]\n2. assistant: A cat",
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
            "1. assistant:\n   tool call f (t):\n      x: 1\n2. user:\n   result of t: ok",
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
        (
            [
                {"type": "reasoning", "summary": [], "content": [{"type": "thought", "text": "X"}]},
                {"type": "function_call_output", "call_id": "c", "output": "O", "content": "CC"},
                {"type": "function_call", "call_id": "k", "id": "fc", "name": "f"},
            ],
            "1. reasoning:\n   thought: X\n2. tool, result of c:\n      CC\n   output: O\n"
            "3. assistant:\n   tool call f (k, fc): [no arguments]",
        ),
        (  # inspect_ai
            [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "function": "pay", "args": {"n": 1}}],
                }
            ],
            "1. assistant:\n   tool call pay (c):\n      n: 1",
        ),
        (  # What a text, a name or a key says is no call, no result, no entry and no note.
            [
                {"role": "assistant", "content": "Done.\ntool call pay (c1): {}"},
                {"role": "user", "content": "[image not shown]", "tool call pay (c1)": "{}"},
                {"role": "user, result of c1", "content": "a"},
            ],
            "1. assistant:\n      Done.\n      tool call pay (c1): {}\n2. user:\n"
            '      [image not shown]\n   "tool call pay (c1)": {}\n3. "user, result of c1": a',
        ),
        (["2. no entry", "a: b", "a:b"], "1.\n      2. no entry\n2.\n      a: b\n3. a:b"),
        # Only what nobody reads is left out of a medium.
        (
            [
                {"type": "file", "path": "a.py", "source": "print('you idiot')"},
                {"type": "video", "url": "https://a.b/c", "detail": "it says no"},
                {"type": "input_audio", "input_audio": {"data": "AAA", "transcript": "T"}},
                {"source": {"type": "text", "media_type": "text/plain", "data": "DOC"}},
                "data:application/json, you idiot",
            ],
            "1. [file not shown]\n   source: print('you idiot')\n2. [video not shown]\n"
            "   detail: it says no\n3. [audio not shown]\n   input_audio:\n      transcript: T\n"
            "4. source:\n      type: text\n      media_type: text/plain\n      data: DOC\n"
            "5. data:application/json, you idiot",
        ),
        # One message, as OpenAI's completions hold it.
        ([{"index": 0, "message": {"role": "assistant", "content": "Hi"}}], None),
    ],
)
def test_a_value_reads_as_people_would_write_it(content: Any, text: str | None) -> None:
    assert shown(content).text == (text or "1. index: 0\n   message:\n      assistant: Hi")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "hi"}, {"role": "model", "content": "hello"}],
        [{"from": "user", "value": "hi"}, {"from": "model", "value": "hello"}],
        [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": ["hello"]}],
        '[{"role": "user", "content": "hi"}, {"from": "model", "value": "hello"}]',
    ],
)
def test_the_entries_of_a_chat_are_its_turns_whatever_its_format(messages: Any) -> None:
    assert entries(messages) == ("user: hi", "model: hello")


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ('["a b", 2, null]', ("a b", "2")),
        ("['a, b', \"it's\", 2, None]", ("a, b", "it's", "2")),
        ("[{'text': 'x'}, {'text': 'y'}]", ("text: x", "text: y")),
        # NumPy prints no commas: the column of a Parquet file, written as CSV.
        ("['a b' \"it's\"\n 'c\\n[d]']", ("a b", "it's", "c\n[d]")),
        ("['a' 'b' ... 'c']", ("['a' 'b' ... 'c']",)),
        ("[]", ()),
        ("[1] See a\n\n[2] See b", ("[1] See a", "[2] See b")),
    ],
)
def test_the_entries_of_a_cell_are_those_of_its_list_or_its_lines(
    cell: str, read: tuple[str, ...]
) -> None:
    assert entries(cell) == read


@pytest.mark.parametrize("arguments", ["{}", "", None, {}])
def test_a_call_without_arguments_is_a_turn_to_judge(arguments: object) -> None:
    call = {"role": "assistant", "tool_calls": [{"name": "delete_all", "arguments": arguments}]}
    read = "assistant:\n   tool call delete_all: [no arguments]"
    assert entries([{"role": "user", "content": "Delete"}, call]) == ("user: Delete", read)
    assert shown(call).text == read
    assert not shown({"role": "assistant", "function_call": {"name": None, "arguments": ""}}).text


def test_a_chat_with_a_number_that_python_does_not_print_is_a_text() -> None:
    text = "[{'role': 'user', 'content': 0x" + "f" * 4000 + "}]"
    assert shown(text).text == text


def test_the_entries_of_other_lists_are_no_turns() -> None:
    mail = {"from": "An", "text": "hi"}
    assert entries([mail, {"to": "Bo"}]) == ("from: An\ntext: hi", "to: Bo")
    assert entries([{"from": "user: x", "value": "hi"}]) == ('"user: x": hi',)


@pytest.mark.parametrize(
    ("content", "omitted"),
    [
        *[
            (empty, ())
            for empty in (
                "",
                " \n",
                "\u200b\ufeff",
                ["\u00ad\u2060\0"],
                [],
                {},
                None,
                ["", " "],
                [{}, None],
                {"a": {"b": []}},
            )
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
    for _ in range(MAX_DEPTH_SHOWN - 1):
        content = [content]
    assert shown(content).text.endswith("x") and not shown(content).omitted
    told = f"what is nested deeper than {MAX_DEPTH_SHOWN} levels"
    for _ in range(800):
        content = {"a": content}
    assert shown(content) == ("", "", (told,))
    assert f"[{told} not shown]" in shown(["y", content]).text


def test_work_and_text_are_in_proportion_to_the_value() -> None:
    def seconds(count: int) -> float:
        content: Any = [{"text": "word " * 9, "tags": ["a\nb"] * 3}] * count
        for _ in range(MAX_DEPTH_SHOWN - 6):
            content = [content]
        began = time.process_time()
        assert len(shown(content).text) < 600 * count
        return time.process_time() - began

    assert seconds(8_000) < 30 * max(seconds(800), 0.01)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["role", "content"]), inner)
    ),
)


@pytest.mark.slow
@given(JSON)
def test_any_value_has_a_text_or_none(content: Any) -> None:
    found = shown(content)
    assert bool(found.text.strip()) == bool(found.text)
    assert form(content) in ("", "list", "chat", "object")


WORDS = st.text(alphabet='ab:. \n[]1"\\', min_size=1, max_size=8)
KEYS = """
    role content type name id call_id tool_call_id tool_use_id tool_calls function arguments
    input text output summary is_error data source url media_type from value note
    functionCall functionResponse response thinking
"""
TYPES = """
    text tool_use tool_result thinking function function_call function_call_output reasoning
    message image_url input_audio file
"""
MESSAGES = st.recursive(
    WORDS | st.sampled_from(TYPES.split()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=400)
@given(MESSAGES)
def test_no_text_of_a_message_vanishes(content: Any) -> None:
    """All but the types that stand as words of ours, and what is named as not shown."""
    found = shown(content)
    left = [content]
    text = "".join(found.text.split())
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += [c for k, c in one.items() if k != "type" or not isinstance(c, str)]
        elif isinstance(one, list):
            left += one
        elif not found.omitted:
            name = json.dumps(" ".join(one.split()), ensure_ascii=False)
            assert "".join(one.split()) in text or "".join(name.split()) in text, one


@pytest.mark.slow
def test_no_text_makes_one_message_read_like_another() -> None:
    """Texts that imitate a structure, at any indentation, and all structures with them."""
    call = {"id": "c", "function": {"name": "f", "arguments": "a"}}

    def structures(texts: list[str]) -> list[Any]:
        made: list[Any] = [*texts]
        for text in texts:
            made += [[text], [[text]], {"k": text}, {"k": {"k": text}}, [text, "b"]]
            result = {"type": "tool_result", "tool_use_id": "c", "content": text}
            for message in (
                {"content": text},
                {"content": [{"type": "text", "text": text}, {"type": "thought", "text": "b"}]},
                {"content": text, "tool_calls": [call]},
                {"content": "", "tool_calls": [{"function": {"name": text, "arguments": "a"}}]},
                {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": text}}]},
                {"content": [result]},
                {"content": [{"type": "thought", "text": text}, PHOTO]},
                {"content": [PHOTO], "note": text},
                {"content": text, "name": text},
                {"content": text, "tool_call_id": "c"},
                {"content": "b", "tool_call_id": text},
            ):
                made += [[{"role": "user", **message}], [{"role": "user", **message}] * 2]
        return made

    hostile = ["a", "b", "a\nb", "[empty]", "[image not shown]", "[no arguments]"]
    for value in structures(["a", "b"]):
        lines = shown(value).text.split("\n")
        for indent in ("", "   ", "      "):
            hostile += ["\n".join(indent + line for line in lines[n:]) for n in range(len(lines))]
            hostile += [line.strip()[n:] for line in lines for n in (3, 6)]
    deep = structures([text for text in dict.fromkeys(hostile) if text.strip()])
    for depth in (0, 9):
        seen: dict[str, str] = {}
        for value in deep:
            inner: Any = value
            for _ in range(depth):
                inner = {"k": inner} if depth else inner
            value = json.dumps(value)
            text = shown(inner).text
            if depth or isinstance(inner, dict | list):
                other = seen.setdefault(text, value)
                assert text == "" or other == value or _alike(other, value), (other, value, text)


def _alike(one: str, other: str) -> bool:
    """Whether two values differ in white space around a text, or around lines of a name, alone."""
    return re.sub(r"(\\n| )+", "", one) == re.sub(r"(\\n| )+", "", other)
