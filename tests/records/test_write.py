"""Output lines: the record's own text stays byte by byte, with the judgement behind it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records import Record, dump, dump_judged, read
from judge.records.read import mapped

JUDGEMENT = {"verdict": "pass", "reason": "größer"}
TAIL = b'"judge":{"verdict":"pass","reason":"gr\xc3\xb6\xc3\x9fer"}}\n'

_keys = st.text(max_size=4).filter(lambda key: key != "judge")
_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a pair too, which UTF-8 cannot hold.
    | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
# Through JSON once, since a reader never gives a surrogate pair as two characters.
FIELDS = st.dictionaries(_keys, _values, max_size=5).map(
    lambda fields: json.loads(json.dumps(fields))
)


def one(line: bytes, format: str = "jsonl") -> Record:
    (item,) = read("-", stdin=io.BytesIO(line), format=format)
    assert item.problem is None, item.problem
    return item


@given(
    FIELDS,
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
    st.sampled_from([b"\n", b" \r\n", b""]),
)
def test_own_fields_keep_their_text(
    fields: dict[str, Any], ascii_only: bool, separators: tuple[str, str], end: bytes
) -> None:
    text = json.dumps(fields, ensure_ascii=ascii_only, separators=separators)
    try:
        source = text.encode()
    except UnicodeEncodeError:
        source = json.dumps(fields, separators=separators).encode()
    item = one(source + end)
    line = dump_judged(item.fields, JUDGEMENT, item)
    assert line == source[:-1] + (b"," if fields else b"") + TAIL
    assert json.loads(line) == {**fields, "judge": JUDGEMENT}


@pytest.mark.parametrize(
    "number",
    ["0.12345678901234567890123", "-0", "-0.0", "1.50", "1E+2", "1e-400", "123456789012345678901"],
)
def test_numbers_come_back_as_they_were_written(number: str) -> None:
    source = f'{{"n": {number}, "list": [{number}]}}'
    item = one(source.encode())
    assert dump_judged(item.fields, JUDGEMENT, item).startswith(source[:-1].encode() + b",")
    listed = one(f'[\n  {{"n": {number},\n   "list": [{number}]}}\n]'.encode(), "json")
    line = dump_judged(listed.fields, JUDGEMENT, listed)
    assert line == f'{{"n": {number},"list": [{number}],'.encode() + TAIL


_EARLIER = '"judge": {"verdict": "fail"}'


@pytest.mark.parametrize(
    ("source", "changes", "expected"),
    [
        (f'{{"id": -0,  "n": 1.50, {_EARLIER}}}', {}, '{"id": -0,  "n": 1.50,'),
        (f'{{{_EARLIER}, "n": 1.50 ,"t": "a" }}', {}, '{"n": 1.50 ,"t": "a",'),
        (
            f'{{"n": 1.50, {_EARLIER}, "t": "a", "v": ["\\u00e9", 1e2]}}',
            {"t": "é", "new": 2},
            '{"n": 1.50, "t": "é", "v": ["\\u00e9", 1e2],"new":2,',
        ),
        (
            '{"judge": {"n": 1.50}, "n": 1.50, "t": "a"}',
            {"t": "b"},
            '{"input_judge":{"n": 1.50}, "n": 1.50, "t": "b",',
        ),
    ],
)
def test_fields_beside_an_earlier_judgement_or_a_rewrite_keep_their_text(
    source: str, changes: dict[str, Any], expected: str
) -> None:
    (record,) = mapped([one(source.encode())], {})
    line = dump_judged(record.with_changes(changes), JUDGEMENT, record)
    assert line == expected.encode() + TAIL


def test_a_judgement_that_orjson_refuses() -> None:
    assert dump_judged({}, {"a": 1}) == b'{"judge":{"a":1}}\n'
    assert dump_judged({"a": "é"}, {"n": 1 << 70, "s": "\ud800"}) == (
        '{"a":"é","judge":{"n":1180591620717411303424,"s":"\\ud800"}}\n'.encode()
    )


@pytest.mark.slow
@given(FIELDS)
def test_a_written_line_is_read_back_as_it_was(fields: dict[str, Any]) -> None:
    line = dump(fields)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    item = one(line)
    assert item.fields == fields
    assert list(item.fields) == list(fields)
    assert dump(item.fields) == line


def test_lines_are_utf8_where_they_can_be() -> None:
    assert dump({"a": "é\u2028\n"}) == '{"a":"é\u2028\\n"}\n'.encode()
    assert dump({"a": "é\ud800"}) == b'{"a":"\\u00e9\\ud800"}\n'
    assert dump({"a": float("nan")}) == b'{"a":null}\n'
