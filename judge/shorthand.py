"""The short form of a rubric: a name, a question, and which of its answers pass.

    question    without `answers` it is answered yes or no, and yes passes
    answers     labels, or rising numbers, which are scores
    pass        the labels that pass, or a bound on the score, such as `>= 4`
    compare     two fields: which of them is better? The answer is the name of one; both pass unless
                `pass` names one
    questions   several by name, asked in one reply; each is a check
    max_tokens  most tokens of a reply

`in_full` writes out the keys of `Rubric`, with a question for each method, and leaves the checking
to it; values of a wrong type are passed on.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from judge.questions import MOST_ANSWERS, scale_of
from judge.replies import OWN_ANSWER, YES_NO
from judge.templates import fault
from judge.yamlfile import Place, Problem, no_such_key

SHORT_KEYS = ("question", "questions", "compare", "pass", "max_tokens")
MOST_QUESTIONS = 12
"""Questions that one reply may answer."""

_MADE_KEYS = ("reply", "order", "together")
_FILE_KEYS = ("name", "source", "kinds", "fields", "questions", "max_tokens")
_QUESTION_KEYS = ("question", "answers", "pass", "needs")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Written:
    """A rubric's data in full; `keys` says under which key of the file each part was written."""

    data: Mapping[str, Any]
    keys: Mapping[str, Place] = field(default_factory=dict)

    def place(self, full: Place) -> Place:
        """The key of the file for a key of the whole rubric."""
        for depth in (3, 2, 1):
            if (short := self.keys.get(".".join(full[:depth]))) is not None:
                return short
        return full


def in_full(data: Mapping[str, Any]) -> tuple[list[Written], list[Problem]]:
    """The rubrics of a file's data, and the mistakes that `Rubric` cannot see."""
    if "questions" in data:
        return _several(data)
    if "methods" in data or "verdict" in data:
        return [Written(data)], []
    problems = _unasked(data, ())
    problems += [((key,), "the short form has no such key") for key in _MADE_KEYS if key in data]
    asked, compare, fields = dict(data), data.get("compare"), data.get("fields", ())
    if compare and asked.pop("answers", None):
        told = "a comparison is answered by the name of a field; leave them out"
        problems.append((("answers",), told))
    structured = f"{_text(asked)}\n\nQuote the words that decide it exactly, or null; "
    structured += f"give a short reason; {_told(asked)}."
    if _are_texts(fields) and _are_texts(compare):
        fields = tuple(dict.fromkeys((*fields, *compare)))
    rubric = {
        "title": _text(asked),
        **{key: one for key, one in data.items() if key not in (*SHORT_KEYS, *_MADE_KEYS)},
        "order": compare,
        "fields": fields,
        **_answered(asked, structured, data.get("max_tokens", "1024")),
    }
    keys: dict[str, Place] = {
        "methods.structured.max_tokens": ("max_tokens",),
        "methods": ("question",),
        "verdict": ("pass",),
        "order": ("compare",),
        "answers": ("compare",) if compare else ("answers",),
    }
    return [Written(rubric, keys)], problems


def _several(data: Mapping[str, Any]) -> tuple[list[Written], list[Problem]]:
    """A rubric for each of several questions; all have the same structured question."""
    problems: list[Problem] = []
    problems += [((key,), no_such_key(key, _FILE_KEYS)) for key in data if key not in _FILE_KEYS]
    several = data["questions"]
    if not isinstance(several, Mapping) or not 0 < len(several) <= MOST_QUESTIONS:
        return [], [*problems, (("questions",), f"write 1 to {MOST_QUESTIONS} questions by name")]
    asked: dict[str, Mapping[str, Any]] = {}
    for name, one in several.items():
        place: Place = ("questions", name)
        if not _NAME.fullmatch(name):
            problems.append((place, "a name has small letters, digits and _, as in clear_words"))
        elif isinstance(one, str | Mapping):
            asked[name] = {"question": one} if isinstance(one, str) else one
            problems += _unasked(asked[name], place)
            unknown = [key for key in asked[name] if key not in _QUESTION_KEYS]
            problems += [((*place, key), no_such_key(key, _QUESTION_KEYS)) for key in unknown]
            if not _are_texts(asked[name].get("needs", ())):
                problems.append(((*place, "needs"), "write a list of fields"))
        else:
            problems.append((place, "write the question's text, or a mapping of its keys"))
    listed = [f"{name}: {_text(one)} ({_told(one)})" for name, one in asked.items()]
    structured = "\n\n".join(("Answer each of these questions by itself.", *listed))
    structured += "\n\nFor each one quote the words that decide it exactly, or null; give a "
    structured += "short reason; then the answer."
    needs = [one.get("needs", ()) for one in asked.values()]
    shared = {key: one for key, one in data.items() if key in ("source", "kinds", "fields")}
    written: list[Written] = []
    for name, one in asked.items():
        rubric = {
            **shared,
            "name": f"{data.get('name')}.{name}",
            "title": _text(one),
            "needs": tuple(dict.fromkeys(n for some in needs if _are_texts(some) for n in some)),
            "together": {key: each.get("answers") or YES_NO for key, each in asked.items()},
            **_answered(one, structured, data.get("max_tokens", "2048")),
        }
        place = ("questions", name)
        keys: dict[str, Place] = {
            "methods.structured": ("questions",),
            "methods.structured.max_tokens": ("max_tokens",),
            "methods": (*place, "question"),
            "verdict": (*place, "pass"),
            "answers": (*place, "answers"),
        }
        written.append(Written(rubric, keys))
    return written, problems


def _answered(asked: Mapping[str, Any], structured: str, max_tokens: object) -> dict[str, Any]:
    """The reply, the answers, the verdict and the methods of one question."""
    compare, question = asked.get("compare"), _text(asked)
    own = compare or asked.get("answers") or ()
    methods: dict[str, Any] = {"structured": {"question": structured, "max_tokens": max_tokens}}
    if not own:
        step = {"question": f"{question} Answer Yes or No.", "yes": "yes", "no": "no"}
        methods["logprobs"] = {"steps": [step]}
    elif _are_answers(own) and 2 <= len(own) <= (2 if compare else MOST_ANSWERS):
        choice = {"question": _choice(question, own, compare), "words": _words(own, compare)}
        both = [choice, {**choice, "swapped": True}] if compare else [choice]
        methods["logprobs"] = {"choices": both}
    passing = compare or ("" if own else YES_NO[0])
    return {
        "reply": OWN_ANSWER if own else "YesNo",
        "answers": own,
        "verdict": {"pass": asked.get("pass") or passing},
        "methods": methods,
    }


def _text(asked: Mapping[str, Any]) -> str:
    question = asked.get("question")
    return question.strip() if isinstance(question, str) else ""


def _unasked(asked: Mapping[str, Any], place: Place) -> list[Problem]:
    return [] if _text(asked) else [((*place, "question"), "there is no question")]


def _are_texts(given: object) -> TypeGuard[Sequence[str]]:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def _are_answers(given: object) -> TypeGuard[Sequence[str]]:
    """Whether they are texts that can stand in a question."""
    return _are_texts(given) and fault(" ".join(given), ()) is None


def _told(asked: Mapping[str, Any]) -> str:
    """How the question is answered by a typed reply."""
    if asked.get("compare"):
        return "answer 1 or 2, for the better one"
    own = asked.get("answers")
    answers = own if own and _are_answers(own) else YES_NO
    if scale_of(answers):
        return f"answer with one of the scores {', '.join(answers)}"
    return f"answer {', '.join(answers[:-1])} or {answers[-1]}"


def _choice(question: str, own: Sequence[str], compare: object) -> str:
    """The question whose first token is the answer's word."""
    words = _words(own, compare)
    if compare:
        return f"{question} Answer 1 or 2, for the better one."
    if words == tuple(own):
        return f"{question} Answer with one of the numbers {', '.join(own)}."
    listed = "\n".join(f"{w.upper()}. {one}" for w, one in zip(words, own, strict=True))
    return f"{question}\n{listed}\nAnswer with the letter."


def _words(own: Sequence[str], compare: object) -> tuple[str, ...]:
    """The words that stand for the answers: a first token each, whatever the tokenizer."""
    if compare:
        return ("1", "2")
    if all(len(answer) == 1 and answer in string.digits for answer in own):
        return tuple(own)
    return tuple(string.ascii_lowercase[: len(own)])
