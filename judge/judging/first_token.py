"""First-token questions: asking them, and the probabilities of their words.

An `Observer` asks; `judge.judging.answer_reader` turns what it observes into an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judge.backends.base import LAST_LAYER, Call, Prompt
from judge.errors import after
from judge.judging.classifiers import Observation
from judge.judging.prompts import DEFENDED, Framing, messages, shown_texts, typed_question
from judge.questions.parts import FirstToken
from judge.questions.replies import YES_NO
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.verdict import Usage

if TYPE_CHECKING:
    from judge.judging.client import Client

TOP_TOKENS = 20
"""Alternatives requested for the first token; OpenAI's protocol allows at most 20."""

MIN_MASS = 0.05
"""Least total probability of a question's words; below it the question counts as not read."""

SPELLINGS = 6
"""Tokens of a word in a vocabulary: lower case, capitalised, upper case; each with and without a
leading space."""

NEGLIGIBLE = 0.02
"""An open share up to this counts as 0."""

MAX_MASS = 1.02
"""Most that the probabilities of listed tokens may add up to: 1 and rounding."""

_ABOVE_ZERO = 1e-3
_AROUND = re.compile(r"^[\W_\u0120\u010a]+|[\W_]+$")
"""Punctuation and space around a word, also the letters for a space and a line break in the
vocabularies of byte-level tokenizers."""


def added_up(logprobs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The log-probability of each token text; a text listed several times gets the sum.

    Raises:
        ValueError: a log-probability is above 0 or NaN, or the probabilities add up to over 1.
    """
    masses: dict[str, list[float]] = {}
    for token, logprob in logprobs:
        if not logprob <= _ABOVE_ZERO:  # NaN, too.
            raise ValueError(f"a log-probability is {logprob:g}")
        masses.setdefault(token, []).append(logprob)
    sums = {token: _log_of_sum(logprobs) for token, logprobs in masses.items()}
    if (total := sum(map(math.exp, sums.values()))) > MAX_MASS:
        raise ValueError(f"the listed tokens' probabilities add up to {total:.2f}")
    return sums


def _log_of_sum(logprobs: Sequence[float]) -> float:
    if len(logprobs) == 1:
        return logprobs[0]
    total = sum(map(math.exp, logprobs))
    return math.log(total) if total else -math.inf


def word_chances(
    tokens: Mapping[str, float], words: Sequence[str] = YES_NO
) -> tuple[float, ...] | None:
    """The share of each word, from the first token's natural log-probabilities; they add up to 1.

    " Yes" and "YES" count as yes; a word without a token gets 0. None if the words have less than
    `MIN_MASS` together.
    """
    mass = dict.fromkeys(words, 0.0)
    for token, logprob in tokens.items():
        if (word := word_of(token)) in mass:
            mass[word] += math.exp(logprob)
    total = sum(mass.values())
    if total < MIN_MASS:
        return None
    return tuple(share / total for share in mass.values())


def open_share(tokens: Mapping[str, float], words: Sequence[str] = YES_NO) -> float:
    """The share (0 to 1) of probability that may be any word's, beside what `word_chances` counts.

    A word's probability is between (1 - open) times its share and that plus open. 0 if
    `NEGLIGIBLE`. Only the likeliest tokens are listed, so an unlisted one is at most as likely as
    the least likely listed one, and a word has at most `SPELLINGS` tokens. A token that a word
    begins with (Ye) may be that word: it counts if it is likelier than the word itself. So may a
    number (1) that an unlisted one begins with (10): many tokenizers split numbers.
    """
    chances = {token: math.exp(logprob) for token, logprob in tokens.items()}
    remainder, least = max(0.0, 1 - sum(chances.values())), min(chances.values(), default=1.0)
    token_chances = [(word_of(token), chance) for token, chance in chances.items()]
    total = 0.0
    extremes: list[tuple[float, float]] = []
    for word in words:
        spelt = [chance for token_word, chance in token_chances if token_word == word]
        begins = [(t, p) for t, p in token_chances if t and t != word and word.startswith(t)]
        begun = sum(p for token_word, p in begins if token_word not in words)
        split = word.isdecimal() and not spelt
        shared = sum(p for token_word, p in begins if token_word in words) if split else 0.0
        total += sum(spelt)
        lacking = min(remainder, least * max(0, SPELLINGS - len(spelt)))
        begun = begun if begun > sum(spelt) else 0.0
        extremes.append((lacking + begun + shared, shared))
    share = max(most / (total + most - shared) if most else 0.0 for most, shared in extremes)
    return share if share > NEGLIGIBLE else 0.0


def word_of(token: str) -> str:
    """The token in lower case without surrounding punctuation and space; "" if nothing is left.

    Only whole tokens count: "I'm" is not option I, "1.5" is not 1, "As" is not a.
    """
    return _AROUND.sub("", token).lower()


# ---------------------------------------------------------------- the questions


@dataclass(frozen=True, slots=True)
class Observer:
    """Asks a client the first-token questions of a rubric.

    In its methods `number` is the value asked about (from 1), or 0 for the record; `call` has no
    messages yet. Asking raises BackendError if the model gives no reply.
    """

    rubric: Rubric
    client: Client
    framing: Framing = DEFENDED

    @property
    def questions(self) -> tuple[FirstToken, ...]:
        return self.rubric.first_token or ()

    def calls(
        self, record: Record, number: int, call: Call, questions: Sequence[int]
    ) -> Iterator[Call]:
        """The calls that `observe` makes if every question can be read."""
        for place in questions:
            if self.questions[place].passages:
                for part, _ in self._passages(record):
                    yield self._first_token_call(part, number, call, place)
            elif not self.questions[place].overlap:
                yield self._first_token_call(record, number, call, place)

    def state_call(self, record: Record, number: int, call: Call, layer: int) -> Call:
        """The call for the hidden state of the first question's prompt."""
        return replace(call, messages=self.prompt(record, number), max_tokens=1, layer=layer)

    def _first_token_call(self, record: Record, number: int, call: Call, place: int) -> Call:
        prompt = self.prompt(record, number, place)
        return replace(call, messages=prompt, max_tokens=1, logprobs=TOP_TOKENS)

    def _passages(self, record: Record) -> list[tuple[Record, str]]:
        """For each passage of the text that the rubric shows: the record with only that passage as
        its text, and the passage."""
        from judge.judging.passages import passages

        ((name, text),) = shown_texts(self.rubric, record).items()
        return [(record.with_text(name, passage), passage) for passage in passages(text)]

    def prompt(self, record: Record, number: int, place: int = 0) -> Prompt:
        """The prompt of a first-token question, by its number in the rubric."""
        numbers = (number,) if number else ()
        prompt = messages(self.rubric, record, step=place, numbers=numbers, framing=self.framing)
        if self.client.decides and prompt.typed is None:
            prompt.typed = typed_question(self.rubric, record, place, numbers)
        return prompt

    async def state(
        self,
        record: Record,
        number: int,
        call: Call,
        layer: int = LAST_LAYER,
        width: int | None = None,
    ) -> Observation:
        """The hidden state of the first question's prompt; `layer`, `width` and errors as in
        `Client.state`."""
        ask = self.state_call(record, number, call, layer)
        state, usage = await self.client.state(ask, width)
        return Observation(state=state, usage=usage)

    async def observe(
        self, record: Record, number: int, call: Call, questions: Sequence[int]
    ) -> Observation:
        """The probabilities of these questions' words, and their quotes. Stops at the first
        question of which no word could be read."""
        observation = Observation()
        for place in questions:
            with after(observation.usage):
                if self.questions[place].passages:
                    observation |= await self._most_likely_passage(record, number, call, place)
                elif self.questions[place].overlap:
                    observation |= self._overlap(record, number, place)
                else:
                    observation |= await self._first_token(record, number, call, place)
            if place not in observation.chances:
                break
        return observation

    def _overlap(self, record: Record, number: int, place: int) -> Observation:
        """The share of the entry's words in one sentence of the texts, and that sentence."""
        from judge.judging.overlap import overlap

        assert self.rubric.each is not None, "overlap is with an entry"
        text = "\n".join(shown_texts(self.rubric, record).values())
        subject = record.typed_entry(self.rubric.each, number).subject
        share, quote = overlap(subject, text)
        return Observation.of_question(place, (share, 1 - share), Usage(), quote=quote)

    async def _most_likely_passage(
        self, record: Record, number: int, call: Call, place: int
    ) -> Observation:
        """Ask the question about each passage: the highest probability of the words that count as
        yes, and the passage that has it."""
        question = self.questions[place]
        low, high, likeliest, quote, usage = 0.0, 0.0, 0.0, "", Usage()
        for part, passage in self._passages(record):
            with after(usage):
                observation = await self._first_token(part, number, call, place)
            usage += observation.usage
            if place not in observation.chances:
                return Observation(usage=usage)
            chances = dict(zip(question.words, observation.chances[place], strict=True))
            sought = min(1.0, sum(chances[word] for word in question.passages))
            lacking = observation.open.get(place, 0.0)
            least = sought * (1 - lacking)
            low, high = max(low, least), max(high, least + lacking)
            if sought > likeliest:
                likeliest, quote = sought, passage
        share = high - low
        chance = low / (1 - share) if share else low
        return Observation.of_question(place, (chance, 1 - chance), usage, open=share, quote=quote)

    async def _first_token(
        self, record: Record, number: int, call: Call, place: int
    ) -> Observation:
        words = self.questions[place].words
        tokens, usage = await self.client.first_token(
            self._first_token_call(record, number, call, place),
            lambda logprobs: word_chances(logprobs, words) is not None,
        )
        if (chances := word_chances(tokens, words)) is None:
            return Observation(usage=usage)
        return Observation.of_question(place, chances, usage, open=open_share(tokens, words))
