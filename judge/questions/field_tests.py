"""Checks without a model: the tests of a field, from `test` in a rubric's file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn
from unicodedata import normalize

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from judge.errors import UsageError, missing_extra, read_text
from judge.questions.parts import Section, Text, as_tuple
from judge.questions.patterns import EXTRA, compiled, schema_fault, search, shortened, validator
from judge.questions.replies import YES_NO
from judge.records.base import clip
from judge.records.lists import list_in
from judge.records.text import shown
from judge.records.words import caseless, spelt_in, word_count
from judge.verdict import Answer, Verdict
from judge.yamlfile import composed

FieldOf = Callable[[str], Any]
"""Gives the content of a field; raises KeyError if there is none."""


class OtherField(Section):
    """Another field of the record, to compare with."""

    field: Text


def _other(content: Any) -> Any:
    if isinstance(content, Mapping) and content.keys() == {"field"}:
        return OtherField.model_validate(content)
    if isinstance(content, str | OtherField):
        return content
    raise ValueError("write a text, or {field: NAME}")


def _several(content: Any) -> Any:
    if isinstance(content, list | tuple) and content and all(isinstance(w, str) for w in content):
        return tuple(content)
    if content in ("", []):
        raise ValueError("write at least one word")
    return as_tuple(_other(content))


WordList = Annotated[tuple[str, ...] | OtherField, BeforeValidator(_several)]


def _pattern(text: str) -> str:
    from regex import error

    try:
        compiled(text, ignore_case=False)
    except error as problem:
        raise ValueError(f"not a regular expression: {problem}") from problem
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


def _schema(text: str) -> str:
    """The schema, read from its file if `text` is a path."""
    if not text.lstrip().startswith("{"):
        try:
            text = read_text(Path(text))
        except UsageError as error:
            raise ValueError(str(error)) from error
    validator(text)
    return text


class Length(Section):
    """The least and most words, characters or entries of a field."""

    least: Annotated[int, Field(ge=0)] = 0
    most: Annotated[int | None, Field(ge=0)] = None
    of: Literal["words", "characters", "entries"] = "words"

    @model_validator(mode="after")
    def _bounds(self) -> Length:
        if not self.least and self.most is None:
            raise ValueError("say how many: least, most or both")
        if self.most is not None and self.least > self.most:
            raise ValueError("least is more than most")
        return self

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return f"{self.least} to {self.most}" if self.least else f"at most {self.most}"


class Near(Section):
    """A number, or the field that holds it, and the largest distance from it."""

    value: Annotated[float | None, Field(allow_inf_nan=False)] = None
    field: Text | None = None
    within: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _one(self) -> Near:
        if (self.value is None) == (self.field is None):
            raise ValueError("name a value or a field")
        return self


class FieldTest(Section):
    """A test of a field's content: exactly one of the keys below, besides `ignore_case`.

    contains, not_contains: all of these words are in it; none is. equals: it is this text. one_of:
        it is one of these texts. `{field: NAME}` in place of words compares with another field.
        `equals` and `one_of` ignore white space at both ends.
    regex, not_regex: the regular expression is found; is not found. The library `regex` stops after
        `patterns.SECONDS`, where `re` could run for hours.
    length: the number of words, characters or entries.
    json_schema: JSON that is valid by this schema: the schema as text, or the path of its file.
    language: one of these languages (ISO 639 codes), identified by py3langid.
    near: a number near another.
    ignore_case: ignore case in words and patterns.
    """

    contains: WordList | None = None
    not_contains: WordList | None = None
    equals: Annotated[str | OtherField, BeforeValidator(_other)] | None = None
    one_of: WordList | None = None
    regex: Pattern | None = None
    not_regex: Pattern | None = None
    length: Length | None = None
    json_schema: Annotated[str, AfterValidator(_schema)] | None = None
    language: Annotated[tuple[Text, ...], BeforeValidator(as_tuple)] | None = None
    near: Near | None = None
    ignore_case: bool = False

    @model_validator(mode="after")
    def _single(self) -> FieldTest:
        kinds = [name for name in type(self).model_fields if name != "ignore_case"]
        if sum(getattr(self, name) is not None for name in kinds) != 1:
            raise ValueError(f"name one of {', '.join(kinds)}")
        for code in self.language or ():
            if code not in (known := _languages().labels):
                raise ValueError(f"{code!r} is not one of {', '.join(sorted(known))}")
        return self

    @cached_property
    def kind(self) -> str:
        """The key of the test."""
        return next(name for name, content in self if content is not None)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The other field to compare with, if there is one."""
        name = getattr(getattr(self, self.kind), "field", None)
        return (name,) if name else ()

    def described(self, field: str) -> str:
        """The test in words: `answer contains "refund"`."""
        content = getattr(self, self.kind)
        words = clip(content, 60)
        if self.fields:
            words = self.fields[0]
        elif isinstance(content, tuple):
            words = ", ".join(f'"{word}"' for word in content)
        elif isinstance(content, Length):
            words = f"{content} {content.of}"
        elif isinstance(content, Near):
            words = f"{content.value:g}"
        words += f" within {content.within:g}" if isinstance(content, Near) else ""
        words = "" if self.kind == "json_schema" else words
        return f"{field} {self.kind.replace('_', ' ')} {words}".strip()

    def answer(self, content: Any, field_of: FieldOf) -> Answer:
        """Tests the content: yes or no, with a reason and, if words of the text decide, the quote.

        Raises:
            ValueError: the test cannot decide: a pattern runs too long, or the other field has
                nothing to compare with.
        """
        answer: Answer = getattr(self, f"_{self.kind}")(content, field_of)
        if answer.quote is None:
            return answer
        return answer.model_copy(update={"quote": spelt_in(_shown(content), answer.quote)})

    # ------------------------------------------------------------ words

    def _contains(self, content: Any, field_of: FieldOf) -> Answer:
        text, quote = as_text(content), None
        for word in self._words(self.contains, field_of):
            found = self._find(word, text)
            if found is None:
                return no(f"{clip(word)} is not there")
            quote = quote or found
        return yes(quote=quote)

    def _not_contains(self, content: Any, field_of: FieldOf) -> Answer:
        text = as_text(content)
        for word in self._words(self.not_contains, field_of):
            if found := self._find(word, text):
                return no(f"{clip(word)} is there", found)
        return yes()

    def _equals(self, content: Any, field_of: FieldOf) -> Answer:
        other = self.equals
        wanted = _there(field_of, other.field) if isinstance(other, OtherField) else other
        value, text = (wanted, content) if isinstance(content, str) else (content, wanted)
        same = self._is(value, text) if isinstance(text, str) else self._same(value, text)
        return yes() if same else no(f"{_brief(content)} is not {_brief(wanted)}")

    def _same(self, left: Any, right: Any) -> bool:
        """Whether two values are equal; true is not 1, as it is in Python."""
        if isinstance(left, str) and isinstance(right, str):
            return self._folded(left) == self._folded(right)
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(self._same, left, right))
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            alike = left.keys() == right.keys()
            return alike and all(self._same(left[key], right[key]) for key in left)
        return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)

    def _one_of(self, content: Any, field_of: FieldOf) -> Answer:
        words = self._words(self.one_of, field_of)
        if any(self._is(content, word) for word in words):
            return yes()
        return no(f"{_brief(content)} is not one of {', '.join(map(_brief, words))}")

    def _words(self, words: tuple[str, ...] | OtherField | None, field_of: FieldOf) -> list[str]:
        """The words themselves, or those in the other field, which is a text or a list of texts."""
        if not isinstance(words, OtherField):
            return [*map(as_text, words or ())]
        content = _there(field_of, words.field)
        cell = _list_of(content) if isinstance(content, str) else None
        # A cell such as [1] is a text: the mark of a citation.
        if cell is not None and all(isinstance(entry, str | None) for entry in cell):
            content = cell
        entries = content if isinstance(content, list) else [content]
        found = [text for text in (as_text(entry).strip() for entry in entries) if text]
        if not found:
            raise ValueError(f"{words.field} has no text to compare with")
        return found

    def _find(self, word: str, text: str) -> str | None:
        """The word as spelt in the text; None if it is not there."""
        if not self.ignore_case:
            return word if word in text else None
        import regex  # Its full case folding matches STRASSE and straße, as `equals` does.

        match = regex.search(regex.escape(word), text, regex.IGNORECASE | regex.FULLCASE)
        return match.group() if match else None

    def _is(self, content: Any, word: str) -> bool:
        """Whether the content is this text. A number is it however it is written (3.0 is 3), and
        true is `true`, as in JSON, besides `yes`, as judges see it."""
        if self._folded(content) == self._folded(word):
            return True
        if isinstance(content, bool):
            return word.strip().lower() == str(content).lower()
        return isinstance(content, int | float) and _number(word) == content

    def _folded(self, content: Any) -> str:
        text = as_text(content).strip()
        return caseless(text) if self.ignore_case else text

    # ------------------------------------------------------------ patterns, lengths, languages

    def _regex(self, content: Any, _: FieldOf) -> Answer:
        found = search(self.regex or "", as_text(content), ignore_case=self.ignore_case)
        return no("the pattern is not found") if found is None else yes(quote=found or None)

    def _not_regex(self, content: Any, _: FieldOf) -> Answer:
        found = search(self.not_regex or "", as_text(content), ignore_case=self.ignore_case)
        return yes() if found is None else no("the pattern is found", found or None)

    def _length(self, content: Any, _: FieldOf) -> Answer:
        bounds = self.length
        assert bounds is not None
        if bounds.of == "entries":
            if (entries := _list_of(content)) is None:
                return no(f"{_brief(content)} is not a list")
            count = len(entries)
        else:
            text = as_text(content)
            count = word_count(text) if bounds.of == "words" else len(text)
        reason = f"{count} {bounds.of}"
        if count < bounds.least or (bounds.most is not None and count > bounds.most):
            return no(f"{reason}, not {bounds}")
        return yes(reason)

    def _json_schema(self, content: Any, _: FieldOf) -> Answer:
        from referencing.exceptions import Unresolvable

        if isinstance(content, str):
            try:
                content = json.loads(content, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                return no(f"not JSON: {error}")
        try:
            fault = schema_fault(self.json_schema or "", composed(content))
        except Unresolvable as error:
            raise ValueError(f"the schema refers to what is not in it: {error}") from error
        except RecursionError:
            raise ValueError("the schema leads too deep into this JSON") from None
        if fault is None:
            return yes()
        return no(f"{fault.json_path}: {shortened(fault.message)}")

    def _language(self, content: Any, _: FieldOf) -> Answer:
        text, wanted = as_text(content).strip(), self.language or ()
        if not text:
            return no("there is no text")
        code, share = _languages().classify(text)
        reason = f"{code} (probability {share:.2f})"
        return yes(reason) if code in wanted else no(f"{reason}, not {' or '.join(wanted)}")

    def _near(self, content: Any, field_of: FieldOf) -> Answer:
        near = self.near
        assert near is not None
        wanted = near.value
        if near.field is not None:
            other = _there(field_of, near.field)
            if (wanted := _number(other)) is None:
                raise ValueError(f"{near.field}: {_brief(other)} is not a number")
        assert wanted is not None
        number = _number(content)
        if number is None:
            return no(f"{_brief(content)} is not a number")
        # Rounded, because 0.3 must be as near to 0.2 as to 0.4 in binary floats, too.
        away = round(abs(number - wanted), 12)
        if away <= near.within:
            return yes()
        return no(f"{number:g} is {away:g} from {wanted:g}, more than {near.within:g}")


def yes(reason: str | None = None, quote: str | None = None) -> Answer:
    """The answer of a test that passes."""
    return Answer(verdict=Verdict.PASS, answer=YES_NO[0], quote=quote, reason=reason)


def no(reason: str | None, quote: str | None = None) -> Answer:
    """The answer of a test that fails."""
    return Answer(verdict=Verdict.FAIL, answer=YES_NO[1], quote=quote, reason=reason)


def as_text(content: Any) -> str:
    """A field's content as judges see it, but a text as it is; composed (NFC), so that the same
    letters are the same characters."""
    return normalize("NFC", _shown(content))


def _shown(content: Any) -> str:
    return content if isinstance(content, str) else "" if content is None else shown(content).text


def _brief(content: Any) -> str:
    return clip(content) if isinstance(content, str) else shortened(json.dumps(content), 80)


def _list_of(content: Any) -> list[Any] | None:
    """A list, also in JSON or as pandas prints it in a table's cell; None for anything else."""
    if isinstance(content, str):
        return list_in(content.strip(), exact=True)
    return content if isinstance(content, list) else None


def _there(field_of: FieldOf, name: str) -> Any:
    try:
        return field_of(name)
    except KeyError:
        raise ValueError(f"there is no field {name} to compare with") from None


_PLAIN = str.maketrans({"\u066b": ".", "\uff0e": ".", "\u2212": "-"})
"""The Arabic and the full-width decimal point, and the minus sign, which `float` does not read."""


def _number(content: Any) -> float | None:
    """A finite number, or a text that is one, in the digits of any script; None for anything
    else."""
    if isinstance(content, bool) or not isinstance(content, str | int | float):
        return None
    if isinstance(content, str) and "_" in content:  # Python reads 1_0 as 10.
        return None
    try:
        number = float(content.translate(_PLAIN) if isinstance(content, str) else content)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


@lru_cache(maxsize=1)
def _languages() -> Any:
    """The language identifier; ValueError if its library is missing."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise ValueError(str(missing_extra("needs a library", EXTRA))) from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
