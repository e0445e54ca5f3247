"""Reading JSON lines, JSON lists and files of JSON objects."""

from __future__ import annotations

from collections.abc import Iterator

from judge.records.base import Item
from judge.records.jsonsplit import Element, Splitter
from judge.records.jsontext import UnreadableError, parse_object
from judge.records.lines import SAMPLE, Input, split_lines


def read_jsonl(opened: Input) -> Iterator[Item]:
    """One record a line. A line of white space holds no record and gives no item."""
    number, ended = 0, True
    for line in split_lines(opened):
        number, ended = line.number, line.ended
        if not ended and (last := opened.cut_off(number, line.data, line.size)):
            yield last
        elif line.size > opened.max_line:
            yield opened.too_long(number, line.data, line.size, "the line")
        elif line.data and not line.data.isspace():
            yield _parsed(opened, number, line.data.rstrip(b"\r"), "column")[0]
    if ended and (last := opened.cut_off(number + 1)):
        yield last


def read_json(opened: Input) -> Iterator[Item]:
    """A list of records, or records one after the other, over any number of lines.

    Sound JSON that is no record gives an item with a problem, and reading goes on. Broken JSON
    gives one, and reading stops: there is no telling where the next record begins.
    """
    text = Splitter(opened.stream, opened.max_line, opened.endless)
    if text.peek() == b"[":
        text.skip()
        yield from _list(opened, text)
    else:
        yield from _sequence(opened, text)


def _sequence(opened: Input, text: Splitter) -> Iterator[Item]:
    while text.peek():
        item, sound = _element(opened, text.take())
        yield item
        if not sound:
            return
    if last := opened.cut_off(text.line):
        yield last


def _list(opened: Input, text: Splitter) -> Iterator[Item]:
    while text.peek() not in (b"", b"]", b",", b"}", b":"):
        item, sound = _element(opened, text.take())
        yield item
        if not sound:
            return
        if text.peek() == b"]":
            break
        if text.peek() != b",":
            yield _list_fault(opened, text, "',' or ']'")
            return
        text.skip()
        if text.peek() == b"]":
            yield _list_fault(opened, text, "a record")
            return
    if text.peek() != b"]":
        yield _list_fault(opened, text, "a record")
        return
    text.skip()
    if text.peek():
        yield opened.bad(text.line, "there is text after the end of the list, which is not read")
    elif last := opened.cut_off(text.line):
        yield last


def _list_fault(opened: Input, text: Splitter, wanted: str) -> Item:
    found = text.peek().decode("ascii", "backslashreplace")
    if found:
        message = f"not a JSON list: expected {wanted}, found {found!r}; what follows is not read"
        return opened.bad(text.line, message)
    last = opened.cut_off(text.line)
    return last or opened.bad(text.line, "the input ends inside the list: it is cut off")


def _element(opened: Input, element: Element) -> tuple[Item, bool]:
    line, data, size = element.line, element.data, element.size
    if not element.complete:
        last = opened.cut_off(line, data[:SAMPLE], size)
        message = "the input ends inside this record: cut off, or a quote or bracket is not closed"
        return last or opened.bad(line, message, data[:SAMPLE], size=size), False
    if size > opened.max_line:
        return opened.too_long(line, data, size, "the record"), True
    return _parsed(opened, line, data, "character")


def _parsed(opened: Input, line: int, data: bytes, where: str) -> tuple[Item, bool]:
    """The item that `data` gives, and whether its JSON is sound."""
    try:
        return Item(opened.name, line, parse_object(data, where=where)), True
    except UnreadableError as error:
        return opened.bad(line, error.message, data, field=error.field), not error.syntax
