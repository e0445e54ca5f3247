"""Typed questions about a text, answered by the judges of a profile (System One's protocol).

A question that the profile knows, by its name or its words, goes to the calibrated judge as in
`judge validate`. Any other goes to the same model without calibration, and its answer says so.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judge.digest import digest
from judge.errors import BackendError, UsageError
from judge.judging.answer_reader import FAR, Decision
from judge.judging.judge import NOTHING_READ, Judge
from judge.judging.prompts import lack
from judge.profile import JudgeProfile
from judge.questions.parts import MAX_ANSWERS
from judge.questions.replies import YES_NO
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.run.panels import Resources
from judge.verdict import Usage

STATE = "state"
MAX_OPTIONS = 255
SERVED = "judge serve answers about a whole record by one judge and the method logprobs or probe"
MAX_LEVELS = 10

JsonText = str | dict[str, Any] | list[Any] | None


class _Asked(BaseModel):
    """A part of a client's request; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class NoulQuestion(_Asked):
    """A question answered yes or no."""

    type: Literal["noul"]
    instructions: JsonText = None
    criteria: Mapping[Literal["true", "false"], JsonText] | None = None

    @property
    def options(self) -> dict[str, JsonText]:
        """The answers, each with what it means."""
        criteria = self.criteria or {}
        return {"yes": criteria.get("true"), "no": criteria.get("false")}


class ChoiceQuestion(_Asked):
    """A question answered with one of several options."""

    type: Literal["choice"]
    instructions: JsonText = None
    criteria: Annotated[Mapping[str, JsonText], Field(min_length=2, max_length=MAX_OPTIONS)]

    @property
    def options(self) -> dict[str, JsonText]:
        """The options, each with what it means."""
        return dict(self.criteria)


class ScoreQuestion(_Asked):
    """A question answered with one of several levels, the lowest first."""

    type: Literal["score"]
    instructions: JsonText = None
    criteria: Annotated[
        list[str | dict[str, Any] | list[Any]], Field(min_length=2, max_length=MAX_LEVELS)
    ]

    @property
    def options(self) -> dict[str, JsonText]:
        """The numbers of the levels, from 0, each with what it means."""
        return {str(level): text for level, text in enumerate(self.criteria)}


ClientQuestion = NoulQuestion | ChoiceQuestion | ScoreQuestion


class DecisionRequest(_Asked):
    """The body of a request."""

    model: Annotated[str, Field(min_length=1)]
    state: str | dict[str, Any] | list[Any]
    questions: Annotated[
        dict[
            Annotated[str, Field(min_length=1)],
            Annotated[ClientQuestion, Field(discriminator="type")],
        ],
        Field(min_length=1, max_length=1000),
    ]


class Unanswerable(Exception):
    """A question that cannot be answered: the place of the fault in the body, and a message."""

    def __init__(self, place: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.place, self.message = tuple(place), message


@dataclass
class Decider:
    """The judges of a profile, each for its check, and their model for other questions.

    Raises:
        UsageError: a check has several judges, or asks about each entry.
    """

    resources: Resources
    judges: dict[str, tuple[Judge, JudgeProfile]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        profiles = self.resources.profiles
        for check, (profile, *others) in profiles.judges.items():
            judge = self.resources.panel(check).judges[0]
            if others or judge.rubric.each:
                each = judge.rubric.each
                why = f"a question for each of {each}" if each else "several judges"
                raise UsageError(f"{profiles.told}: {check} has {why}; {SERVED}")
            self.judges[check] = judge, profile

    @property
    def fingerprint(self) -> str:
        """16 hex digits over everything that changes an answer to a question of the profile."""
        return digest({name: p.fingerprint for name, (_, p) in sorted(self.judges.items())})[:16]

    async def answers(self, request: DecisionRequest) -> tuple[dict[str, Any], Usage]:
        """Each question's answer in the protocol's form, and the usage.

        Raises:
            Unanswerable: one of the questions cannot be answered; no answer is returned.
            BackendError: the model cannot be reached.
        """
        asked = {name: self._known(name, ask) for name, ask in request.questions.items()}
        records = {
            name: self._record(name, known[0], request.state)
            for name, known in asked.items()
            if known is not None
        }
        answers: dict[str, Any] = {}
        usage, shares = Usage(), dict[str, float]()
        for name, ask in request.questions.items():
            known = asked[name]
            if known is None:
                shares, spent, marks = await self._as_it_stands(name, ask, request.state)
            else:
                decided, spent, marks = await self._calibrated(name, *known, records[name])
                shares = _by_option(known[0].rubric, ask, decided)
                marks = {**_other_words(known[0], ask), **marks}
            answers[name] = {**answer(ask, shares), "x_judge": marks}
            usage += spent
        return answers, usage

    # ------------------------------------------------------------ questions of the profile

    def _known(self, name: str, ask: ClientQuestion) -> tuple[Judge, JudgeProfile] | None:
        """The judge of a question that the profile knows; None for any other question.

        Raises Unanswerable if the judge is not shown to do better than guess.
        """
        check = name if name in self.judges else None
        if check is None and isinstance(ask.instructions, str):
            words = ask.instructions.strip()
            check = next((n for n, (j, _) in self.judges.items() if _asks(j, ask, words)), None)
        if check is None:
            return None
        judge, profile = self.judges[check]
        if not _same_answers(judge.rubric, ask):
            return None
        if (why := profile.why_guess(unmeasured=False)) is not None:
            raise Unanswerable(("questions", name), f"{check} is not answered: {why}")
        return judge, profile

    def _record(self, name: str, judge: Judge, state: Any) -> Record:
        """The state as the record that the check is asked about; raises Unanswerable if the record
        lacks a field that the question needs."""
        rubric = judge.rubric
        fields = state if isinstance(state, dict) else {_only_field(rubric): state}
        record = _record_of(fields, judged=bool(rubric.kinds))
        problem = record.fault or lack(rubric, record)
        if problem is not None:
            raise Unanswerable((STATE,), f"{name}: {problem}")
        return record

    async def _calibrated(
        self, name: str, judge: Judge, profile: JudgeProfile, record: Record
    ) -> tuple[Mapping[str, float], Usage, dict[str, Any]]:
        panel = self.resources.panel(judge.rubric.name)
        decision, usage = await _decided(name, judge, record)
        hostile = panel.why_not_asked(record)
        guarantee = profile.guarantee and profile.guarantee.model_dump(mode="json")
        marks = {
            "calibrated": True,
            "sure": decision.sure and hostile is None,
            "threshold": judge.reader.sure_at or None,
            "guarantee": guarantee,
            "far": decision.far,
            "labels": profile.data.items,
            "fingerprint": profile.fingerprint,
        }
        reason = FAR if decision.far else None
        if hostile is not None:
            # The client gets the probability all the same.
            reason = str(hostile["reason"]).removeprefix("not asked: ")
        return decision.probabilities, usage, {**marks, **({"reason": reason} if reason else {})}

    # ------------------------------------------------------------ other questions

    async def _as_it_stands(
        self, name: str, ask: ClientQuestion, state: Any
    ) -> tuple[dict[str, float], Usage, dict[str, Any]]:
        """The probabilities of the model's first token; many options are asked in groups."""
        model = next(iter(self.judges.values()))[0].client
        record = _record_of({STATE: state})
        if problem := lack(_rubric("?", YES_NO), record):
            raise Unanswerable((STATE,), problem)
        options, usage = list(ask.options.items()), Usage()

        async def read(choices: Sequence[tuple[str, JsonText]]) -> list[float]:
            nonlocal usage
            try:
                rubric = _raw_rubric(ask, choices)
            except UsageError as error:
                raise Unanswerable(("questions", name), str(error)) from error
            decision, spent = await _decided(name, Judge(rubric, model, "logprobs"), record)
            usage += spent
            return _in_order(rubric, decision.probabilities)

        groups = [options[n : n + MAX_ANSWERS] for n in range(0, len(options), MAX_ANSWERS)]
        if len(groups) == 1:
            shares = await read(options)
        else:
            # P(option) = P(its group) P(option | its group); every group is asked about.
            listed = [("; ".join(_spelt(*option) for option in group), None) for group in groups]
            reach = await read(listed)
            within = [await read(group) if len(group) > 1 else [1.0] for group in groups]
            shares = [
                r * share for r, of_group in zip(reach, within, strict=True) for share in of_group
            ]
        marks: dict[str, Any] = {"calibrated": False, "sure": False}
        if name in self.judges:
            answers = ", ".join(self.judges[name][0].rubric.answers)
            marks["reason"] = f"the profile knows {name} with the answers {answers}"
        return dict(zip(ask.options, shares, strict=True)), usage, marks


def answer(ask: ClientQuestion, shares: Mapping[str, float]) -> dict[str, Any]:
    """The answer in the protocol's form; `shares` are the probabilities of the options, in order.

    `confidence` of a choice is (p - 1/n) / (1 - 1/n), p that of the likeliest of n options; of a
    score 1 - d/e, d the mean distance to the likeliest level, e that of an even spread to its
    middle.
    """
    total = sum(shares.values()) or 1.0
    shares = {name: share / total for name, share in shares.items()}
    if isinstance(ask, NoulQuestion):
        return {"type": "noul", "noul": shares["yes"]}
    best, count = max(shares, key=lambda name: shares[name]), len(shares)
    if isinstance(ask, ChoiceQuestion):
        confidence = max(0.0, (shares[best] - 1 / count) / (1 - 1 / count))
        return {
            "type": "choice",
            "choice": best,
            "probabilities": dict(shares),
            "confidence": min(1.0, confidence),
        }
    distance = sum(share * abs(int(level) - int(best)) for level, share in shares.items())
    even = sum(abs(level - (count - 1) / 2) for level in range(count)) / count
    return {
        "type": "score",
        "score": sum(int(level) * share for level, share in shares.items()),
        "legend": ask.options,
        "probabilities": dict(shares),
        "confidence": min(1.0, max(0.0, 1 - distance / even)),
    }


async def _decided(name: str, judge: Judge, record: Record) -> tuple[Decision, Usage]:
    try:
        decision, observation = await judge.decide(record)
    except BackendError as error:
        if error.ends_run or error.retryable:
            raise
        raise Unanswerable(("questions", name), f"{error.kind}: {error}") from error
    if decision is None:
        raise Unanswerable(("questions", name), NOTHING_READ)
    return decision, observation.usage


def _by_option(
    rubric: Rubric, ask: ClientQuestion, shares: Mapping[str, float]
) -> dict[str, float]:
    """The probabilities of a rubric's answers as those of the question's options."""
    if isinstance(ask, ScoreQuestion):
        return dict(zip(ask.options, _in_order(rubric, shares), strict=True))
    return {option: shares.get(option, 0.0) for option in ask.options}


def _in_order(rubric: Rubric, shares: Mapping[str, float]) -> list[float]:
    return [shares.get(name, 0.0) for name in rubric.answers]


def _record_of(fields: dict[str, Any], *, judged: bool = False) -> Record:
    record = Record("<request>", 1, fields)
    return record.of_kind() if judged else record.of_kind("record")


def _only_field(rubric: Rubric) -> str:
    return rubric.fields[0] if len(rubric.fields) == 1 else "text"


def _asks(judge: Judge, ask: ClientQuestion, words: str) -> bool:
    rubric = judge.rubric
    texts = {rubric.question.strip(), *(q.question.strip() for q in rubric.first_token or ())}
    return words in texts and _same_answers(rubric, ask)


def _other_words(judge: Judge, ask: ClientQuestion) -> dict[str, str]:
    """The mark that a question known by its name is the profile's, if the client asks in others."""
    words = ask.instructions
    if not words or (isinstance(words, str) and _asks(judge, ask, words.strip())):
        return {}
    return {"reason": f"answered is the profile's question: {judge.rubric.question.strip()}"}


def _same_answers(rubric: Rubric, ask: ClientQuestion) -> bool:
    """Whether the question has the rubric's answers; a choice may have them in any order."""
    if isinstance(ask, NoulQuestion):
        return tuple(rubric.answers) == YES_NO
    if isinstance(ask, ScoreQuestion):
        return rubric.scale is not None and len(rubric.answers) == len(ask.criteria)
    return rubric.scale is None and ask.criteria.keys() == {*rubric.answers}


def _spelt(name: str, meaning: JsonText) -> str:
    return name if meaning in (None, "") else f"{name}: {_plain(meaning)}"


def _plain(text: JsonText) -> str:
    words = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    # A blank breaks up template signs: text of a request is never rendered as a template.
    return re.sub(r"\{(?=[{%#])", "{ ", words)


def _lines(ask: ClientQuestion) -> Iterator[str]:
    if ask.instructions not in (None, "", {}, []):
        yield _plain(ask.instructions)
    else:
        yield (
            "Which of these holds?"
            if isinstance(ask, NoulQuestion)
            else "Which of these fits best?"
        )
    if isinstance(ask, NoulQuestion):
        yield from (_spelt(name.title(), text) for name, text in ask.options.items() if text)


def _raw_rubric(ask: ClientQuestion, choices: Sequence[tuple[str, JsonText]]) -> Rubric:
    """The rubric of a question that the profile does not know, with these of its options."""
    lines = list(_lines(ask))
    if isinstance(ask, NoulQuestion):
        return _rubric("\n".join((*lines, "Answer Yes or No.")), YES_NO)
    words = string.ascii_lowercase[: len(choices)]
    if isinstance(ask, ScoreQuestion):
        words = string.digits[: len(choices)]
    lines += (f"{w.upper()}. {_spelt(*choice)}" for w, choice in zip(words, choices, strict=True))
    lines.append(f"Answer with the {'number' if isinstance(ask, ScoreQuestion) else 'letter'}.")
    return _rubric(_plain("\n".join(lines)), tuple(words))


def _rubric(question: str, words: Sequence[str]) -> Rubric:
    first = {"question": question, "words": [*words], "means": {w: w for w in words}}
    keys = {"name": "question", "question": question, "fields": [STATE], "answers": [*words]}
    return Rubric.from_dict({**keys, "first_token": [first]})
