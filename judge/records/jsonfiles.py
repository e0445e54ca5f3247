"""Reading JSON lines, JSON lists and files of JSON objects."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from judge.records.base import Item
from judge.records.jsontext import UnreadableError, parse_object
from judge.records.lines import RAW_LIMIT, Input, split_lines
from judge.records.streams import CHUNK, BrokenStreamError

_NOT_SPACE = re.compile(r"[^ \t\r\n]")
_LINE_BREAK = re.compile(r"[\r\n][ \t\r\n]*")
# Finds where a value ends. Whether it is a record is for the strict parser to say.
_ENDS = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_LONGEST_TOKEN = 12
_UNCLOSED = "the input ends inside this record: cut off, or a quote or bracket is not closed"


def read_jsonl(opened: Input) -> Iterator[Item]:
    """One record a line. A line of white space holds no record and gives no item."""
    number = 0
    try:
        for line in split_lines(opened):
            number = line.number
            if line.size > opened.max_line:
                yield opened.too_long(number, line.data, line.size, "the line")
            elif line.data and not line.data.isspace():
                yield _item(opened, number, line.data.rstrip(b"\r"), "column")
    except BrokenStreamError as error:
        yield opened.cut_off(number + 1, error)


def read_json(opened: Input) -> Iterator[Item]:
    """A list of records, or records one after the other, over any number of lines.

    Sound JSON that is no record gives an item with a problem, and reading goes on. Broken JSON
    gives one, and reading stops: it does not tell where the next record begins.
    """
    text = _Text(opened)
    try:
        yield from _items(opened, text)
    except BrokenStreamError as error:
        yield opened.cut_off(text.line, error)
    except UnreadableError as error:
        start = text.rest.encode("utf-8", "surrogateescape")
        yield opened.bad(text.line, f"{error.message}; what follows is not read", start)


def _items(opened: Input, text: _Text) -> Iterator[Item]:
    listed = text.peek() == "["
    if listed:
        text.skip()
    found = text.peek()
    while found and not (listed and found == "]"):
        line, value = text.line, text.take()
        yield _item(opened, line, value.encode("utf-8", "surrogateescape"), "character")
        found = text.peek()
        if listed and found == ",":
            text.skip()
            if (found := text.peek()) == "]":
                raise UnreadableError("not a JSON list: expected a record, found ']'")
        elif listed and found != "]" and found:
            raise UnreadableError(f"not a JSON list: expected ',' or ']', found {found!r}")
    if listed:
        if not found:
            raise UnreadableError("the input ends inside the list: it is cut off")
        text.skip()
        if text.peek():
            raise UnreadableError("there is text after the end of the list")


def _item(opened: Input, line: int, data: bytes, where: str) -> Item:
    try:
        fields, text = parse_object(data, where=where)
    except UnreadableError as error:
        return opened.bad(line, error.message, data, field=error.field)
    # A record over several lines goes on one: no text in JSON holds a line break as it is.
    return Item(opened.name, line, fields, _LINE_BREAK.sub("", text))


class _Text:
    """The text of a stream and the JSON values in it, of which one at a time is held."""

    def __init__(self, opened: Input) -> None:
        self._opened = opened
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.line = 1

    @property
    def rest(self) -> str:
        """The beginning of the text that was not read."""
        return self._buffer[self._at : self._at + RAW_LIMIT]

    def peek(self) -> str:
        """The next character that is no white space, which stays to be taken; empty at the end."""
        while True:
            found = _NOT_SPACE.search(self._buffer, self._at)
            self._advance(found.start() if found else len(self._buffer))
            if found:
                return found[0]
            if not self._more():
                return ""

    def skip(self) -> None:
        """Drop the character that `peek` gave."""
        self._advance(self._at + 1)

    def take(self) -> str:
        """The value that begins at the character that `peek` gave.

        Raises UnreadableError for broken JSON, and for a value over the size limit.
        """
        while True:
            try:
                end = _ENDS.raw_decode(self._buffer, self._at)[1]
            except RecursionError:
                raise UnreadableError("the record is nested too deep") from None
            except json.JSONDecodeError as error:
                held, unclosed = len(self._buffer), error.msg.startswith("Unterminated string")
                if self._ended and (unclosed or error.pos >= held):
                    raise UnreadableError(_UNCLOSED) from None
                if self._ended or not (unclosed or error.pos >= held - _LONGEST_TOKEN):
                    at = error.pos - self._at + 1
                    message = f"not JSON: {error.msg} at character {at}"
                    raise UnreadableError(message) from None
            else:
                # A number at the end of the buffer may have more digits.
                if end < len(self._buffer) or self._ended or self._buffer[end - 1] in '}]"':
                    break
            if len(self._buffer) - self._at > self._opened.max_line:
                limit = self._opened.max_line
                raise UnreadableError(f"the record has more than {limit} characters, the limit")
            self._more()
        value = self._buffer[self._at : end]
        self._advance(end)
        return value

    def _advance(self, to: int) -> None:
        self.line += self._buffer.count("\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        """Read on, twice as far each time, so that a long value is not scanned over and over."""
        held = len(self._buffer) - self._at
        read = self._opened.stream.read if held > CHUNK else self._opened.stream.read1
        data = read(max(CHUNK, held))
        self._ended = not data
        text = self._decoder.decode(data, final=self._ended)
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        # The end can bring text, too: bytes of a character that is cut off.
        return bool(text) or not self._ended
