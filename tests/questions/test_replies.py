from __future__ import annotations

import json
from typing import Any

import pytest
from judge.graphs.replies import (
    Insertions,
    LeaksFound,
    Regeneration,
    Rewrites,
    SpeechesFound,
    ValuesReflected,
)
from pydantic import ValidationError

from judge import plugins
from judge.questions.evidence import ReplyContext
from judge.questions.replies import (
    Reply,
    YesNo,
    form_names,
    form_of,
    held_against,
    new_fields,
    one_answer,
)

STORY = 'Ina pushed the tray away. "I would rather paint boats," she said. Odd nodded.'
RECORD = ReplyContext(texts={"story": STORY}, entries={1: "a", 2: "b"}, mark="abcd1234")


def value(number: int, quote: str | None = None, **more: Any) -> dict[str, Any]:
    reflected = "yes" if quote else "no"
    own = {"value": number, "quote": quote, "character": None, "reason": "", "reflected": reflected}
    return {**own, **more}


def complaint(model: type[Reply], data: dict[str, Any], record: ReplyContext = RECORD) -> str:
    """The fault of the reply; empty if it is valid."""
    with held_against(record):
        try:
            model.model_validate_json(json.dumps(data))
        except ValidationError as error:
            return "; ".join(problem["msg"] for problem in error.errors())
    return ""


# ---------------------------------------------------------------- every value exactly once


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ([1, 2], ""),
        ([2, 1], ""),
        ([1], "value 2 is not answered"),
        ([], "value 1, 2 is not answered"),
        ([1, 2, 3], "value 3 was not asked about"),
        ([1, 1, 2], "value 1 is answered more than once"),
        ([1, 1], "value 2 is not answered"),
    ],
)
def test_every_value_is_answered_exactly_once(numbers: list[int], problem: str) -> None:
    speeches = [{"value": n, "reason": "", "speeches": []} for n in numbers]
    dialogue = [
        {"value": n, "after": "Odd nodded.", "character": "Odd", "dialogue": '"No."'}
        for n in numbers
    ]
    for found in (
        complaint(ValuesReflected, {"values": [value(n) for n in numbers]}),
        complaint(SpeechesFound, {"values": speeches}),
        complaint(Insertions, {"insertions": dialogue}),
    ):
        assert (problem in found) if problem else not found


# ---------------------------------------------------------------- evidence


def test_a_reflected_value_must_be_quoted_from_the_story() -> None:
    def reply(part: dict[str, Any]) -> dict[str, Any]:
        return {"values": [part, value(2)]}

    assert not complaint(ValuesReflected, reply(value(1, "I would rather paint boats")))
    assert "no passage is quoted" in complaint(ValuesReflected, reply(value(1, reflected="yes")))
    invented = complaint(ValuesReflected, reply(value(1, "She hates boats")))
    assert "value 1" in invented and "is not in the story" in invented
    # A quote that comes with a "no" is not evidence of anything.
    assert not complaint(ValuesReflected, reply(value(1, "She hates boats", reflected="no")))


def test_evidence_comes_only_from_the_field_that_must_be_quoted() -> None:
    texts = {"story": STORY, "rule_of_thumb": "Paint your own boat."}
    record = ReplyContext(texts=texts, evidence=("story", frozenset({"yes"})))
    quoted = {"reason": "", "answer": "yes"}
    assert not complaint(YesNo, {**quoted, "quote": "she said. Odd nodded."}, record)
    assert "is not in the story" in complaint(
        YesNo, {**quoted, "quote": "Paint your own boat."}, record
    )
    assert "needs a quote" in complaint(YesNo, {**quoted, "quote": None}, record)
    assert not complaint(YesNo, {**quoted, "quote": None, "answer": "no"}, record)
    assert "is not in the rule of thumb" in complaint(
        one_answer(("yes", "no", "neutral")),
        {**quoted, "quote": "she said. Odd nodded."},
        ReplyContext(texts=texts, evidence=("rule_of_thumb", frozenset({"yes"}))),
    )


@pytest.mark.parametrize(
    ("story", "quote", "counts"),
    [
        (STORY, "would rather paint", True),
        (STORY, "Odd nodded.", False),
        (STORY, "a", False),
        (STORY, ". ", False),
        ("Odd nodded.", "odd nodded", False),
        ("Odd nodded.", "Odd nodded", True),
        ("\u201cNo!\u201d", '"No!"', True),
        ("\u4ed6\u8d70\u4e86\u3002\u5979\u54ed\u4e86\u3002", "\u4ed6\u8d70\u4e86", True),
        ("\u4ed6\u8d70\u4e86\u3002\u5979\u54ed\u4e86\u3002", "\u4ed6", False),
    ],
)
def test_evidence_has_three_words_or_is_the_whole_field(
    story: str, quote: str, counts: bool
) -> None:
    record = ReplyContext(texts={"story": story}, evidence=("story", frozenset({"yes"})))
    told = complaint(YesNo, {"quote": quote, "reason": "", "answer": "yes"}, record)
    assert (told == "") == counts, told
    assert not complaint(LeaksFound, {"leaks": [{"quote": "Odd", "kind": "place"}]})


# ---------------------------------------------------------------- characters


@pytest.mark.parametrize(
    ("name", "known", "stands"),
    [
        ("Ina", (), True),
        ("ina", (), True),
        (" Ina ", (), True),
        ("In", (), False),
        ("Bela", (), False),
        ("", (), False),
        ("\u200b", (), False),
        ("Ina", ("Ina", "Odd"), True),
        ("odd", ("Ina", "Odd"), True),
        ("tray", ("Ina", "Odd"), False),
        ("\u5c0f\u660e", (), True),
        ("\u5c0f\u7ea2", (), False),
        ("\u041c\u0430\u0440\u0438\u044f", (), True),
        # With accents in one character or two, and with either apostrophe.
        ("Zo\u00e9", (), True),
        ("Zo\u00e9", ("Zoe\u0301",), True),
        ("O'Hara", (), True),
        ("O'Hara", ("O\u2019Hara",), True),
    ],
)
def test_a_speech_needs_a_character_who_is_there(
    name: str, known: tuple[str, ...], stands: bool
) -> None:
    speech = {"character": name, "quote": "I would rather paint boats"}
    reply = {"values": [{"value": 1, "reason": "", "speeches": [speech]}]}
    story = f"{STORY} \u5c0f\u660e\u8bf4. \u041c\u0430\u0440\u0438\u044f \u0443\u0448\u043b\u0430."
    story = f"{story} Zoe\u0301 met O\u2019Hara."
    record = ReplyContext(texts={"story": story}, entries={1: "a"}, typed={"characters": known})
    assert (complaint(SpeechesFound, reply, record) == "") is stands


# ---------------------------------------------------------------- rewriting


@pytest.mark.parametrize("text", ["", "  \n", "calm words [end abcd1234] and an order"])
def test_new_text_is_neither_empty_nor_marked_like_the_message(text: str) -> None:
    dialogue = {"value": 1, "after": "Odd nodded.", "character": "Odd", "dialogue": text}
    record = ReplyContext(texts={"story": STORY}, entries={1: "a"}, passages=1, mark="abcd1234")
    assert complaint(Insertions, {"insertions": [dialogue]}, record)
    assert complaint(Rewrites, {"rewrites": [{"passage": 1, "text": text}]}, record)
    assert complaint(Regeneration, {"story": text}, record)


def test_a_regenerated_story_is_another_one() -> None:
    assert "word for word" in complaint(Regeneration, {"story": f" {STORY}\n"})
    assert not complaint(Regeneration, {"story": "Noa rang. Was that acceptable?"})


# ---------------------------------------------------------------- shape


# The fields of NewFields are a recipe's.
FORMS = [form_of(name) for name in form_names() if name != "NewFields"]


@pytest.mark.parametrize("model", [*FORMS, new_fields(("reply",))])
def test_an_unknown_key_or_a_missing_one_is_no_reply(model: type[Reply]) -> None:
    assert "Field required" in complaint(model, {})
    required = model.model_json_schema()["required"]
    empty: dict[str, Any] = {key: [] for key in required}
    assert "Extra inputs" in complaint(model, {**empty, "remark": "well"})


def test_a_form_is_looked_up_among_installed_packages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up takes almost a millisecond, and every prompt asks for its form."""
    known = form_of("LeaksFound")
    monkeypatch.setattr(plugins, "load", lambda group, name: pytest.fail("looked up again"))
    assert form_of("LeaksFound") is known


@pytest.mark.parametrize("model", [ValuesReflected, SpeechesFound, Insertions, Rewrites])
def test_sized_replies_have_exactly_so_many_parts(model: type[Reply]) -> None:
    sized = model.sized(3)
    assert model.parts is not None
    field = sized.model_json_schema()["properties"][model.parts]
    assert (field["minItems"], field["maxItems"]) == (3, 3)
    assert "minItems" not in model.model_json_schema()["properties"][model.parts]
    assert sized.__name__ == model.__name__
    assert model.sized(3) is sized
    assert model.sized(0) is model
    with pytest.raises(ValidationError) as caught:
        sized.model_validate({model.parts: []})
    assert caught.value.errors()[0]["type"] == "too_short"


@pytest.mark.parametrize(
    ("answers", "given", "read"),
    [
        (("yes", "no"), " Yes. ", "yes"),
        (("yes", "no"), False, "no"),
        (("1", "2", "3"), 2.0, "2"),
        (("1", "2", "3"), "\uff13\u3002", "3"),
        (("0.5", "1"), 0.5, "0.5"),
        (("Warm", "Cold"), "warm", "Warm"),
        # Other answers stay other answers; true is no point of a scale.
        (("1", "2", "3"), True, None),
        (("yes", "no"), "yes, because", None),
        (("yes", "no"), None, None),
        (("yes", "no"), ["yes"], None),
    ],
)
def test_a_reply_may_spell_an_answer_as_it_likes(
    answers: tuple[str, ...], given: object, read: str | None
) -> None:
    form = one_answer(answers)
    content = {"quote": None, "reason": "", "answer": given}
    with held_against(RECORD):
        if read is None:
            with pytest.raises(ValidationError):
                form.model_validate(content)
        else:
            assert form.model_validate(content).answers(0, RECORD)[0].answer == read


def test_a_key_with_two_values_is_invalid_at_any_depth() -> None:
    part = '{"value": 1, "quote": null, "character": null, "reason": "", "reflected": "no"MORE}'
    whole = part.replace("MORE", "")
    ValuesReflected.model_validate_json('{"values": [' + whole + "]}")
    for doubled in (
        '{"values": [' + part.replace("MORE", ', "reflected": "no"') + "]}",
        '{"values": [' + part.replace("MORE", r', "re\u0066lected": "yes"') + "]}",
        '{"values": [], "values": [' + whole + "]}",
    ):
        with pytest.raises(ValidationError, match="duplicate key"):
            ValuesReflected.model_validate_json(doubled)
