"""Any JSON value as text that a judge can read: texts, lists, objects, chats with their tools.

Nested values are indented. A text begins after its lead (`2.`, `key:`), and its further lines are
indented one step deeper than any lead at that level, so that no text can look like another entry,
turn or key; a one-line text that looks like a lead is indented so, too. A name with characters
other than letters, digits, spaces and `._-` is quoted. Images, audio and files are named but not
shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from judge.records.lists import list_in
from judge.records.media import data_url, legible, medium
from judge.records.names import plain_name
from judge.records.words import is_blank

MAX_DEPTH_SHOWN = 40
"""Most levels of lists and objects that are shown."""

_INDENTED = 8
"""Deeper levels are indented by one space only, so that the output stays in proportion."""

_WHO = ("role", "from", "speaker", "author", "sender")
_SAID = ("content", "value", "text", "parts", "message", "utterance")
_CALLS = ("tool_calls", "function_call", "refusal")
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
_ITEMS = {"function_call": "assistant", "function_call_output": "tool", "reasoning": "reasoning"}
"""Items of OpenAI's Responses API without a role, and their speaker."""

_LANGCHAIN = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "SystemMessage"), "system"),
    **dict.fromkeys(("tool", "ToolMessage"), "tool"),
    **dict.fromkeys(("function", "FunctionMessage"), "function"),
}
"""LangChain's message types, as serialised, and their role."""

_ABOUT_A_CALL = ("additional_kwargs", "response_metadata", "usage_metadata", "example")
"""LangChain's metadata of a message: a copy of the provider's reply, and its usage."""

_SEALED = {"signature", "thoughtSignature", "thought_signature"}
"""Keys of providers' signatures of thoughts, which are not text."""

_CHAT = re.compile(r"\s*\[\s*\{\s*['\"]")
_SPEECH = frozenset(("text", "input_text", "output_text"))
"""Types of content parts that hold speech; the name of any other type is shown."""
_CALL_TYPES = frozenset(("function", "function_call", "tool_use", "tool_call"))

_LIKE_OURS = re.compile(r"\s*(?:\d+\.(?:\s|$)|.*:(?:\s|$)|\[(?:empty|no arguments|.* not shown)\])")
"""Matches the beginning of lines that look like our leads and notes."""
_LEAD = re.compile(r"\d+\.(?: |$)|tool call\b|result of\b")

Part = tuple[str, Any]
"""A lead (`2.`, `question:`, `1. user:` or "") and the content after it."""

Name = Callable[[object], str]
"""Makes a name from the record safe for a lead."""


class Shown(NamedTuple):
    """A value as text ("" if there is nothing to read), the strings in it, and the kinds of content
    not shown (`image`, ...)."""

    text: str
    strings: str
    omitted: tuple[str, ...] = ()


def shown(content: object) -> Shown:
    """A JSON value as text, in linear time.

    A text is unchanged, unless it is a chat in JSON, as in a table's cell.
    """
    content = chat_in(content) or content
    if not isinstance(content, dict | list):
        text = _scalar(content)
        if omission := data_url(text):
            return Shown("", "", (omission,))
        return Shown("", "") if is_blank(text) else Shown(text, text)
    writer = _Writer()
    writer.write("", content, 0)
    omitted = tuple(writer.omitted)
    if not writer.readable:
        return Shown("", "", omitted)
    return Shown("\n".join(writer.lines), "\n".join(writer.strings), omitted)


def entries(content: object) -> tuple[str, ...]:
    """The non-empty texts of a list's entries; () for anything but a list or a text.

    A text that is a list in JSON or as Python, pandas and NumPy print it, as in a table's cell, is
    parsed; any other text is split into lines.
    """
    content = chat_in(content) or content
    if isinstance(content, str):
        text = content.strip()
        parsed = list_in(text, exact=True) if text.startswith("[") else None
        content = content.splitlines() if parsed is None else parsed
    if not isinstance(content, list):
        return ()
    if _turns(content) is not None:
        content = [_Message(turn) for turn in map(_plain, content) if isinstance(turn, dict)]
    return tuple(text for entry in content if (text := shown(entry).text))


def form(content: object) -> str:
    """`chat`, `list` or `object`; "" for any other value."""
    content = chat_in(content) or content
    if isinstance(content, list):
        return "list" if _turns(content) is None else "chat"
    return "object" if isinstance(content, dict) else ""


def chat_in(content: object) -> list[Any] | None:
    """The messages of a text that is a chat in JSON or as Python and pandas print it; else None."""
    if not isinstance(content, str) or not _CHAT.match(content):
        return None
    messages = list_in(content.strip(), exact=False)
    return messages if messages and _turns(messages) else None


class _Message(dict[str, Any]):
    """A single message of a chat."""


class _Group(list[Part]):
    """Parts below one lead."""


class _Note(str):
    """Our own words, shown for an empty turn or result."""

    __slots__ = ()


class _Bare(_Note):
    """The note of a tool call that has a name, and so is there to read, but no arguments."""

    __slots__ = ()


class _Writer:
    """The lines of a value. A lead is written together with its first line, if there is one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.strings: list[str] = []
        self.omitted: dict[str, None] = {}
        self.readable = False
        self._leads: list[tuple[int, str]] = []

    def write(self, lead: str, content: object, depth: int) -> None:
        if isinstance(content, dict | list):
            if isinstance(content, dict) and (omission := medium(content)):
                self._omit(lead, omission, depth)
                content = legible(content) or {}
                lead, depth = "", depth + bool(lead)
            if depth >= MAX_DEPTH_SHOWN:
                self._omit(lead, f"what is nested deeper than {MAX_DEPTH_SHOWN} levels", depth)
                return
            if lead:
                self._leads.append((depth, lead))
            leads = len(self._leads)
            for inner, part in _parts(content, self._name):
                self.write(inner, part, depth + bool(lead))
            if lead and len(self._leads) == leads:  # Nothing came.
                self._leads.pop()
            return
        text = _scalar(content)
        if omission := data_url(text):
            self._omit(lead, omission, depth)
        elif isinstance(content, _Note):
            self.readable |= isinstance(content, _Bare)
            self._line(depth, f"{lead} {content}".lstrip())
        elif not is_blank(text):
            self.readable = True
            self.strings.append(text)
            lines = text.splitlines()
            if lead and (_alone(lead, lines[0]) or (lead.endswith(":") and len(lines) > 1)):
                self._line(depth, lead)
            elif lead:
                self._line(depth, f"{lead} {lines.pop(0)}".rstrip())
            for line in lines:
                self._line(depth + (2 if lead else 1), line)

    def _omit(self, lead: str, omission: str, depth: int) -> None:
        self.omitted[omission] = None
        self._line(depth, f"{lead} [{omission} not shown]".lstrip())

    def _line(self, depth: int, text: str) -> None:
        """Write the pending leads, then the line. A numbered lead shares the line that follows."""
        before, start = "", depth
        for place, lead in self._leads:
            start = start if before else place
            before += f"{lead} "
            if lead.endswith(":"):
                self.lines.append(_indent(start) + before.rstrip())
                before, start = "", depth
        self._leads.clear()
        self.lines.append(_indent(start) + before + text if before or text else "")

    def _name(self, name: object) -> str:
        """A name from the record on one line, in quotes where it could be read as more than a name.

        A name that is not plain is added to the strings.
        """
        if plain_name(text := str(name)) != text:
            self.strings.append(text)
        text = " ".join(text.split())
        if plain_name(text) == text and not _LEAD.match(text):
            return text
        return json.dumps(text, ensure_ascii=False)


def _alone(lead: str, text: str) -> bool:
    """Whether a line goes below its lead, because after it, it would look like a lead or note."""
    return bool(_LIKE_OURS.match(text)) and (text.lstrip()[:1] == "[" or not lead.endswith(":"))


def _indent(depth: int) -> str:
    return "   " * min(depth, _INDENTED) + " " * (depth - _INDENTED)


def _scalar(content: object) -> str:
    if content is None or content != content:  # NaN
        return ""
    return ("yes" if content else "no") if isinstance(content, bool) else str(content)


def _parts(content: dict[str, Any] | list[Any], name: Name) -> Iterable[Part]:
    """The parts of a list or an object."""
    if isinstance(content, _Group):
        return content
    if isinstance(content, dict):
        role = content.get("role")
        alone = isinstance(content, _Message) or (isinstance(role, str) and role in _ROLES)
        if alone and (turn := _turn(content, name)):
            return [turn]
        return _pairs(content, name)
    turns = _turns(content, name)
    parts = [("", entry) for entry in content] if turns is None else turns
    # An empty entry keeps its number: an answer may cite the others by theirs.
    numbered = enumerate(parts, 1)
    return ((f"{n}. {lead}".rstrip(), entry) for n, (lead, entry) in numbered if _there(entry))


# ---------------------------------------------------------------- chats


def _turns(content: list[Any], name: Name = str) -> list[Part] | None:
    """The turns of a list of messages; None for any other list."""
    turns = [_turn(_plain(entry), name) for entry in content if entry is not None]
    return [turn for turn in turns if turn] if turns and all(turns) else None


def _plain(message: object) -> object:
    """A message of LangChain's or OpenAI's export format, unwrapped; anything else unchanged."""
    if not isinstance(message, dict):
        return message
    kind = message.get("type")
    if kind == "constructor" and isinstance(message.get("id"), list) and message["id"]:
        kind = message["id"][-1]
    body = _either(message, "kwargs", "data")
    inner = message[body] if body else message
    if isinstance(kind, str) and kind in _LANGCHAIN and "content" in inner:
        extra = inner.get("additional_kwargs")
        calls = {k: extra[k] for k in _CALLS if k in extra} if isinstance(extra, dict) else {}
        fields = {k: c for k, c in inner.items() if k not in ("type", *_ABOUT_A_CALL)}
        return {"role": _LANGCHAIN[kind]} | (fields if fields.get("tool_calls") else fields | calls)
    author, content = message.get("author"), message.get("content")
    if isinstance(author, dict) and isinstance(author.get("role"), str):
        about = {k: c for k, c in author.items() if k != "role" and _there(c)}
        message = message | {"author": about, "role": author["role"]}
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        message = message | {"content": content["parts"]}
    return message


def _turn(message: object, name: Name) -> Part | None:
    """Speaker and content of a message in a known format, or of a speaker's words; else None."""
    if not isinstance(message, dict):
        return None
    kind = message.get("type")
    keys = (key for key in _WHO if isinstance(message.get(key), str) and message[key].strip())
    key = next(keys, None)
    if key is not None and any(content in message for content in (*_SAID, *_CALLS)):
        speaker, usual = name(message[key]), kind == "message"
    elif isinstance(kind, str) and kind in _ITEMS:
        speaker, key, usual = _ITEMS[kind], None, True
    else:
        return None
    fields = {k: message[k] for k in message if k != key and not (usual and k == "type")}
    if kind == "function_call" and key is None:
        fields = {"tool_calls": fields}
    elif kind == "function_call_output" and key is None:
        for item_key, chat_key in (("call_id", "tool_call_id"), ("output", "content")):
            if item_key in fields and chat_key not in fields:
                fields[chat_key] = fields.pop(item_key)
    if isinstance(fields.get("name"), str):
        speaker += f" ({name(fields.pop('name'))})"
    if isinstance(fields.get("tool_call_id"), str):
        speaker += f", result of {name(fields.pop('tool_call_id'))}"
    speech = next((key for key in _SAID if key in fields), "")
    parts = [*_said(fields.pop(speech, None), name)]
    for key in ("tool_calls", "function_call"):
        calls = fields.pop(key, None) or []
        parts += [_call(call, name) for call in (calls if isinstance(calls, list) else [calls])]
    parts += _pairs(fields, name)
    return f"{speaker}:", _below(parts)


def _said(content: object, name: Name) -> Iterator[Part]:
    """The parts of a message's content: texts, media, thoughts, tool calls and results."""
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and not _SEALED.isdisjoint(part):
            part = {key: entry for key, entry in part.items() if key not in _SEALED}
        if not isinstance(part, dict):
            yield from [("", part)] if _there(part) else []
        elif kind == "redacted_thinking":
            yield "", _Note("[thoughts not shown]")
            yield from _beside(part, name, "type", "data")
        elif kind == "thinking":
            yield "thoughts:", part.get("thinking")
            yield from _beside(part, name, "type", "thinking")
        elif key := _either(part, "functionCall", "function_call"):
            yield _call(part[key], name)
            yield from _beside(part, name, key)
        elif key := _either(part, "functionResponse", "function_response"):
            yield _result(part[key], name, "name", "response")
            yield from _beside(part, name, key)
        elif kind == "tool_use":
            yield _call(part, name)
        elif kind == "tool_result":
            yield _result(part, name, "tool_use_id", "content")
        elif isinstance(part.get("text"), str):
            speech = kind is None or (isinstance(kind, str) and kind in _SPEECH)
            with_kind = not speech and isinstance(kind, str)
            yield f"{name(kind)}:" if with_kind else "", part["text"]
            yield from _beside(part, name, "text", "type" if speech or with_kind else "text")
        else:
            yield "", part


def _below(parts: list[Part]) -> object:
    """The content below a lead: the only part if it has no lead of its own, else all."""
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    return _Group(parts) if parts else _Note("[empty]")


def _either(part: Mapping[str, Any], *keys: str) -> str:
    """The first of these keys that holds an object."""
    return next((key for key in keys if isinstance(part.get(key), dict)), "")


def _beside(part: Mapping[str, Any], name: Name, *keys: str) -> list[Part]:
    return _pairs({key: entry for key, entry in part.items() if key not in keys}, name)


def _result(part: Mapping[str, Any], name: Name, call: str, content_key: str) -> Part:
    """A tool's result and the fields beside it.

    Args:
        call: the key of the call's id or name.
        content_key: the key of the result.
    """
    fields = {key: entry for key, entry in part.items() if key != "type"}
    lead = "result:"
    if isinstance(fields.get(call), str):
        lead = f"result of {name(fields.pop(call))}:"
    return lead, _below([*_said(fields.pop(content_key, None), name), *_pairs(fields, name)])


def _call(call: object, name: Name) -> Part:
    """A tool call: name, id and arguments."""
    if not isinstance(call, dict):
        return "tool call:", call
    fields = dict(call)
    function = fields.pop("function", None)
    if isinstance(function, str) and "name" not in fields:
        fields["name"] = function
    elif isinstance(function, dict):
        # A key that the call has with other content stays under `function`.
        twice = {k: c for k, c in function.items() if fields.get(k, c) != c}
        fields |= {k: c for k, c in function.items() if k not in twice} | {"function": twice}
    else:
        fields["function"] = function
    if isinstance(kind := fields.get("type"), str) and kind in _CALL_TYPES:
        fields.pop("type")
    has_name = isinstance(fields.get("name"), str) and fields["name"].strip()
    lead = f"tool call {name(fields.pop('name')) if has_name else 'without a name'}"
    ids = [fields.pop(k) for k in ("call_id", "id") if isinstance(fields.get(k), str | int)]
    lead += f" ({', '.join(map(name, dict.fromkeys(ids)))}):" if ids else ":"
    key = next((key for key in ("arguments", "args", "input") if key in fields), "")
    arguments = fields.pop(key, None)
    if not _there(arguments) or arguments == "{}":
        arguments = (_Bare if has_name else _Note)("[no arguments]")
    pairs = _pairs(fields, name)
    return lead, _Group([("arguments:", arguments), *pairs]) if pairs else arguments


def _pairs(content: Mapping[str, Any], name: Name) -> list[Part]:
    return [(f"{name(key)}:", entry) for key, entry in content.items() if _there(entry)]


def _there(content: object) -> bool:
    return content not in (None, "", [], {})
