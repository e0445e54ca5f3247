"""Each test of a field's content, by hand, and the keys that a rubric with a test must not have."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from re import search
from typing import Any

import pytest

from judge.errors import UsageError
from judge.questions import field_tests
from judge.questions.field_tests import FieldTest
from judge.questions.from_flags import test_from_flag as from_flag
from judge.questions.python_checks import PythonFunction
from judge.questions.rubric import Rubric, load

MAIL = "We Guarantee a refund of 5 euros on Monday."
RECORD = {"words": ["refund", "Monday"], "word": "refund", "empty": "", "n": "3.2", "list": [1, 2],
          "one": 1, "deep": [{"a": ["Red", 1.0]}], "mark": "[1]",
          "pandas": "['a b', 'refund']", "json": '["a b", "refund"]', "none": "[]"}  # fmt: skip


def told(test: dict[str, Any], content: Any) -> tuple[str, str | None, str | None]:
    answer = FieldTest.model_validate(test).answer(content, RECORD.__getitem__)
    return str(answer.verdict), answer.quote, answer.reason


@pytest.mark.parametrize(
    ("test", "content", "verdict", "quote", "reason"),
    [
        ({"contains": "refund"}, MAIL, "pass", "refund", None),
        ({"contains": ["refund", "Friday"]}, MAIL, "fail", None, "'Friday' is not there"),
        ({"contains": "monday"}, MAIL, "fail", None, "'monday' is not there"),
        ({"contains": "monday", "ignore_case": "true"}, MAIL, "pass", "Monday", None),
        ({"contains": {"field": "words"}}, MAIL, "pass", "refund", None),
        ({"contains": "5"}, 15, "pass", "5", None),
        ({"not_contains": ["guarantee"]}, MAIL, "pass", None, None),
        (
            {"not_contains": ["x", "guarantee"], "ignore_case": "true"},
            MAIL,
            "fail",
            "Guarantee",
            "'guarantee' is there",
        ),
        ({"equals": "yes"}, " yes\n", "pass", None, None),
        ({"equals": "yes"}, "Yes", "fail", None, "'Yes' is not 'yes'"),
        ({"equals": ""}, None, "pass", None, None),
        ({"equals": "true"}, True, "pass", None, None),
        ({"equals": "yes"}, True, "pass", None, None),
        ({"equals": "1"}, True, "fail", None, "true is not '1'"),
        ({"equals": "3"}, 3.0, "pass", None, None),
        ({"equals": "1.50"}, 1.5, "pass", None, None),
        ({"one_of": ["false", "3.0"]}, 3, "pass", None, None),
        ({"one_of": ["false", "3.0"]}, True, "fail", None, "true is not one of 'false', '3.0'"),
        ({"equals": {"field": "list"}}, [1, 2], "pass", None, None),
        ({"equals": {"field": "words"}, "ignore_case": "true"}, ["Refund", "monday "], "pass", None,
         None),
        ({"equals": {"field": "words"}}, ["Refund", "Monday"], "fail", None,
         '["Refund", "Monday"] is not ["refund", "Monday"]'),
        ({"equals": {"field": "deep"}, "ignore_case": "true"}, [{"a": ["RED", 1]}], "pass", None,
         None),
        ({"equals": {"field": "deep"}}, [{"a": ["Red", True]}], "fail", None,
         '[{"a": ["Red", true]}] is not [{"a": ["Red", 1.0]}]'),
        ({"equals": {"field": "list"}}, [1, 2, 3], "fail", None, "[1, 2, 3] is not [1, 2]"),
        ({"equals": {"field": "one"}}, True, "fail", None, "true is not 1"),
        ({"equals": {"field": "one"}}, " 1", "pass", None, None),
        ({"one_of": {"field": "list"}}, True, "fail", None, "true is not one of '1', '2'"),
        ({"equals": {"field": "word"}}, "REFUND", "fail", None, "'REFUND' is not 'refund'"),
        ({"contains": "STRASSE", "ignore_case": "true"}, "Die Straße", "pass", "Straße", None),
        ({"one_of": ["a", "b"], "ignore_case": "true"}, "B", "pass", None, None),
        ({"equals": "istanbul", "ignore_case": "true"}, "\u0130STANBUL", "pass", None, None),
        ({"contains": "istanbul", "ignore_case": "true"}, "\u0130STANBUL'da", "pass",
         "\u0130STANBUL", None),
        ({"one_of": ["hay\u0131r"], "ignore_case": "true"}, "HAYIR", "pass", None, None),
        ({"one_of": {"field": "words"}}, "x", "fail", None, "'x' is not one of 'refund', 'Monday'"),
        ({"regex": r"\d+ euros"}, MAIL, "pass", "5 euros", None),
        ({"regex": r"^\d"}, MAIL, "fail", None, "the pattern is not found"),
        ({"not_regex": r"\d+"}, MAIL, "fail", "5", "the pattern is found"),
        ({"length": {"most": "8"}}, MAIL, "fail", None, "9 words, not at most 8"),
        ({"length": {"least": "9", "most": "9"}}, MAIL, "pass", None, "9 words"),
        ({"length": {"most": "3"}}, "请等一等。", "fail", None, "4 words, not at most 3"),
        ({"length": {"most": "4", "of": "characters"}}, "cafe\u0301", "pass", None, "4 characters"),
        # Found in either form, and quoted as the text spells it.
        ({"contains": "caf\u00e9"}, "Un cafe\u0301.", "pass", "cafe\u0301", None),
        ({"not_regex": "\u00e9s"}, "Cafe\u0301s", "fail", "e\u0301s", "the pattern is found"),
        ({"one_of": ["cafe\u0301"]}, "caf\u00e9", "pass", None, None),
        ({"regex": "fe\u0301$"}, "caf\u00e9", "pass", "f\u00e9", None),
        ({"length": {"least": "4", "of": "characters"}}, "abc", "fail", None,
         "3 characters, not at least 4"),
        ({"length": {"most": "2", "of": "entries"}}, [1, 2], "pass", None, "2 entries"),
        ({"length": {"most": "2", "of": "entries"}}, "['a', 'b', 'c']", "fail", None,
         "3 entries, not at most 2"),
        ({"not_contains": {"field": "pandas"}}, MAIL, "fail", "refund", "'refund' is there"),
        ({"not_contains": {"field": "json"}}, MAIL, "fail", "refund", "'refund' is there"),
        ({"contains": {"field": "mark"}}, "As in 1.", "fail", None, "'[1]' is not there"),
        ({"length": {"most": "2", "of": "entries"}}, "ab", "fail", None, "'ab' is not a list"),
        ({"near": {"value": "0.2", "within": "0.1"}}, 0.3, "pass", None, None),
        ({"near": {"field": "n", "within": "0.1"}}, "3.4", "fail", None,
         "3.4 is 0.2 from 3.2, more than 0.1"),
        ({"near": {"value": "3.5", "within": "0"}}, "\u0663\u066b\u0665", "pass", None, None),
        ({"near": {"value": "3.5", "within": "0"}}, "\uff13\uff0e\uff15", "pass", None, None),
        ({"near": {"value": "-3", "within": "0"}}, "\u22123", "pass", None, None),
        ({"near": {"value": "1", "within": "1"}}, "one", "fail", None, "'one' is not a number"),
        ({"near": {"value": "10", "within": "0"}}, "1_0", "fail", None, "'1_0' is not a number"),
        ({"near": {"value": "1", "within": "1"}}, True, "fail", None, "true is not a number"),
    ],
)  # fmt: skip
def test_a_test_says_what_it_found(
    test: dict[str, Any], content: Any, verdict: str, quote: str | None, reason: str | None
) -> None:
    assert told(test, content) == (verdict, quote, reason)


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ({"contains": {"field": "gone"}}, "no field gone to compare with"),
        ({"contains": {"field": "empty"}}, "empty has no text to compare with"),
        ({"not_contains": {"field": "none"}}, "none has no text to compare with"),
        ({"near": {"field": "word", "within": "1"}}, "word: 'refund' is not a number"),
    ],
)
def test_a_comparison_with_nothing_is_an_error_and_neither_passes_nor_fails(
    test: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        told(test, "1")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.questions.patterns.SECONDS", 0.05)


SLOW = r"^(a|a)*$"
"""It tries 2 ** 60 ways through sixty letters."""


def test_a_pattern_that_would_run_for_years_gives_up(impatient: None) -> None:
    text = "a" * 60 + "!"
    names = {"patternProperties": {SLOW: False}}
    refers = {"$ref": "#/$defs/names", "$defs": {"names": {"allOf": [names]}}}
    draft = "https://json-schema.org/draft/2019-09/schema"
    tests: list[tuple[dict[str, Any], Any]] = [
        ({"regex": SLOW}, text),
        ({"pattern": SLOW}, text),
        (names, {text: 1}),
        ({"additionalProperties": False, **names}, {text: 1}),
        ({"unevaluatedProperties": False, **refers}, {text: 1}),
        ({"unevaluatedProperties": False, "$schema": draft, **refers}, {text: 1}),
    ]
    for test, content in tests:
        asked = test if "regex" in test else {"json_schema": json.dumps(test)}
        with pytest.raises(ValueError, match="took more than"):
            told(asked, content if "regex" in test else json.dumps(content))


@pytest.mark.parametrize("join", ["allOf", "anyOf"])
def test_references_that_multiply_give_up(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty lines, each of which refers to the next twice: 2 ** 40 ways."""
    monkeypatch.setattr("judge.questions.patterns.SCHEMA_SECONDS", 0.2)
    lines = {f"d{n}": {join: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**lines, "d40": {"type": "string"}}}
    with pytest.raises(ValueError, match="the schema took more than 0"):
        told({"json_schema": json.dumps(schema)}, "1")
    monkeypatch.setattr("judge.questions.patterns.SCHEMA_SECONDS", 10.0)
    few = {**schema, "$ref": "#/$defs/d36"}
    assert told({"json_schema": json.dumps(few)}, '"text"')[0] == "pass"


SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {"n": {"enum": [1, 2]}, "city": {"pattern": "^[A-Z]"}},
}


def test_json_is_held_against_a_schema() -> None:
    test = {"json_schema": json.dumps(SCHEMA)}
    assert told(test, '{"city": "Oslo", "n": 2}')[0] == "pass"
    assert told(test, {"city": "Oslo"})[0] == "pass", "what is parsed already"
    assert told(test, '{"city": "Oslo", "n": 3}')[::2] == ("fail", "$.n: 3 is not one of [1, 2]")
    assert told(test, "Oslo")[2] == "not JSON: Expecting value: line 1 column 1 (char 0)"
    assert "not JSON" in str(told(test, '{"city": NaN}')[2])
    assert told(test, {"city": "oslo"})[2] == "$.city: 'oslo' does not match '^[A-Z]'"
    test = {"json_schema": '{"properties": {"city": {"pattern": "\u00e9$"}}}'}
    assert told(test, {"city": "Orle\u0301"})[0] == "pass", "the same letters, as in other tests"
    test = {
        "json_schema": '{"properties": {"cit\u00e9": {"enum": ["Caf\u00e9"]}}, "minProperties": 1}'
    }
    assert told(test, '{"cite\u0301": "Cafe\u0301"}')[0] == "pass"
    assert told(test, {"cite\u0301": "Oslo"})[0] == "fail", "the field is known"


@pytest.mark.parametrize("other", ["additionalProperties", "unevaluatedProperties"])
def test_properties_that_match_a_pattern_are_known(other: str) -> None:
    test = {"json_schema": json.dumps({"patternProperties": {"^x?": {"type": "string"}}})}
    assert told(test, {"y": 1})[2] == "$.y: 1 is not of type 'string'", "an empty match is one"
    test = {"json_schema": json.dumps({other: False, "patternProperties": {"^x": True}})}
    assert told(test, {"xy": 1})[0] == "pass"
    assert str(told(test, {"y": 1})[2]).startswith("$: ")


def test_a_schema_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("a request"))
    with pytest.raises(ValueError, match="refers to what is not in it"):
        told({"json_schema": '{"$ref": "http://127.0.0.1:9/x"}'}, "{}")


def test_json_nested_deeper_than_a_schema_can_follow_is_not_decided() -> None:
    tree = {"json_schema": '{"items": {"$ref": "#"}}'}
    assert told(tree, "[[[]]]")[0] == "pass"
    for schema, text in ((tree, "[" * 900 + "]" * 900), ({"json_schema": '{"$ref": "#"}'}, "{}")):
        with pytest.raises(ValueError, match="the schema leads too deep into this JSON"):
            told(schema, text)


def test_without_the_language_library_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    field_tests._languages.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(ValueError, match=r"needs a library: .*pip install"):
        FieldTest.model_validate({"language": ["en"]})


def test_the_language_of_a_text_is_told() -> None:
    pytest.importorskip("py3langid")
    test = {"language": ["en", "fr"]}
    assert told(test, "Thank you for waiting, the part comes on Monday.")[0] == "pass"
    german = told(test, "Vielen Dank, dass Sie so lange auf das Teil gewartet haben.")
    assert german[0] == "fail" and german[2] and german[2].startswith("de (probability")
    assert told(test, " ")[::2] == ("fail", "there is no text")


def test_files_lie_beside_the_rubric_and_are_part_of_its_digest(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    inline = {"name": "a", "fields": ["x"], "test": {"json_schema": SCHEMA}}
    (tmp_path / "a.yaml").write_text("name: a\nfields: [x]\ntest: {json_schema: s.json}")
    (of_file,) = load(tmp_path / "a.yaml")
    assert of_file.digest == Rubric.from_dict(inline).digest, "numbers are numbers"
    (tmp_path / "c.py").write_text("def f(record): return True")
    (tmp_path / "c.yaml").write_text("name: c\npython: c.py:f")
    before = load(tmp_path / "c.yaml")[0].digest
    (tmp_path / "c.py").write_text("def f(record): return False")
    assert load(tmp_path / "c.yaml")[0].digest != before


@pytest.mark.parametrize(
    "returned",
    [None, 1, "yes", {}, {"pass": "yes"}, {"pass": True, "reason": 3}, {"pass": True, "quot": "x"}],
)
def test_what_is_no_verdict_of_a_function_is_not_taken_for_one(returned: object) -> None:
    def short(record: dict[str, Any]) -> object:
        return returned

    with pytest.raises(ValueError, match="return True, False, or a dict of pass, reason and quote"):
        PythonFunction.of(short).answer({})


def test_a_function_in_memory_is_known_by_its_code_and_by_what_it_uses() -> None:
    def at_most(limit: int) -> Any:
        def short(record: dict[str, Any]) -> bool:
            return record["x"] not in {"a", "b", "c"} and len(record["x"]) <= limit

        return short

    again = at_most(5)
    held = [*again.__code__.co_consts]  # Marshal writes what is held elsewhere in other bytes.
    assert PythonFunction.of(at_most(5)).digest == PythonFunction.of(again).digest, held
    assert PythonFunction.of(at_most(6)).digest != PythonFunction.of(again).digest
    source = "LIMIT = {}\ndef helper(x): return len(x)\n{}def f(record): return helper(1) < LIMIT"
    digests = []
    for limit, gap in (1, ""), (1, "\n\n"), (2, ""):
        scope: dict[str, Any] = {}
        exec(compile(source.format(limit, gap), f"cell{limit}{len(gap)}", "exec"), scope)
        digests.append(PythonFunction.of(scope["f"]).digest)
    assert digests[0] == digests[1] != digests[2]


def test_a_function_that_uses_a_library_is_known_by_the_name_in_it() -> None:
    def greets(record: dict[str, Any]) -> bool:
        return search("^Dear", record["x"]) is not None

    before = PythonFunction.of(greets).digest
    greets({"x": "Dear Ann"})  # `re` keeps the pattern in a variable.
    re.compile("another pattern")
    assert PythonFunction.of(greets).digest == before


def test_a_function_whose_name_is_taken_is_refused() -> None:
    def record(fields: dict[str, Any]) -> bool:
        return True

    with pytest.raises(UsageError, match="the function record: it stands for whole records"):
        Rubric.of_function(record)


def test_a_test_on_the_command_line_is_called_after_its_field() -> None:
    made = from_flag("answer.0: {regex: 'a{2}', ignore_case: true, first: true}")
    assert (made.name, made.fields, made.first) == ("answer_0_regex", ("answer.0",), True)
    assert made.title == "answer.0 regex 'a{2}'"
    unclosed = "answer {length: {most: 20}}"
    for text in ("answer contains refund", "answer:contains:refund", "answer: refund", unclosed):
        with pytest.raises(UsageError, match="type 'FIELD: "):
            from_flag(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("test: {contains: x}", "name the one field"),
        ("fields: [b]\ntest: {contains: x, equals: y}", "name one of contains, "),
        ("fields: [b]\ntest: {cntains: x}", "cntains: unknown key; did you mean 'contains'?"),
        (
            "fields: [b]\ntest: {length: {max: 5}}",
            "test.length.max: unknown key; the keys are least, most, of",
        ),
        ("fields: [b]\ntest: {equals: {name: a}}", "write a text, or {field: NAME}"),
        ("fields: [b]\ntest: {regex: '('}", "test.regex: not a regular expression"),
        ("fields: [b]\ntest: {json_schema: {type: 3}}", "json_schema: not a JSON Schema"),
        ("fields: [b]\ntest: {json_schema: gone.json}", "json_schema: gone.json: cannot be read"),
        ("fields: [b]\ntest: {length: {}}", "length: say how many"),
        ("fields: [b]\ntest: {near: {value: '1'}}", "within: missing key"),
        ("fields: [b]\ntest: {contains: []}", "write at least one word"),
        ("fields: [b]\ntest: {contains: x}\nquestion: why?", "question: a test asks nothing"),
        ("python: gone.py:f", "python: gone.py: cannot be read"),
        ("python: gone.txt", "write a file and its function"),
        ("question: why?\nfirst: true", "first: only a test can be first"),
    ],
)
def test_a_mistake_in_a_test_is_named_by_its_key(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        Rubric.from_text(f"name: a\n{text}")
    assert problem in str(refused.value)
