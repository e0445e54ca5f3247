"""A simulated model: it answers from a planted truth with seeded noise, and counts like an engine.

It does not show how well any model judges. Only the answers are simulated, so that protocols can be
compared by what they ask: the same question (record text, rubric, value, role, vote) always gets
the same answer, whichever protocol asks it, alone or together with others.

The engine's cache works like vLLM's automatic prefix caching: prompts are cut into blocks of 16
tokens, a block is found again only after the same preceding blocks, the last token of a prompt is
always evaluated, and with a bound the least recently used block is dropped first.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from statistics import NormalDist
from typing import Any

from planted import RIGHT, WRONG, StoryTruth, Truth, carrying

from judge.backends.base import Backend, Call, Completion, Mode
from judge.questions.ready_made import builtin
from judge.records.kinds import shown_first

BLOCK = 16
_TOKEN = re.compile(r"\w+|[^\w\s]")
_FENCE = re.compile(r"\[([a-z ]+) ([0-9a-f]{8})\]\n(.*?)\n\[end \2\]", re.DOTALL)
_NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)
_PASSAGE = re.compile(r"^(\d+)\. .*? \((?:against|states) value [\d, ]+\): ", re.MULTILINE)
_SENTENCE = re.compile(r"(?<![\w\"“])[A-Z][^.!?\"“”\n]{20,110}[.!?]")
_RECORD = frozenset(name.replace("_", " ") for name in shown_first())

Order = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Noise:
    """How far answers deviate from the truth.

    `flip` is the chance that a structured answer about one value is the wrong one. `auc` (above
    0.5, below 1) is how well the cheap method tells yes from no: its log-odds are normal around
    plus or minus d*d/2 with deviation d, where AUC = Phi(d / sqrt 2), so that at even odds P(yes)
    means what it says (signal detection with equal variances). `repairs` is the chance that a
    rewriter cures what it is asked to cure, each time it is asked.
    """

    flip: float = 0.05
    auc: float = 0.93
    repairs: Mapping[str, float] = field(
        default_factory=lambda: {
            "insertion": 0.8,
            "contradiction_rewriting": 0.5,
            "explicit_rewriting": 0.7,
            "story_regeneration": 0.8,
        }
    )

    def log_odds(self, truth: bool, chance: float) -> float:
        """The cheap method's log-odds of a yes, at this quantile (0 to 1) of its noise."""
        d = math.sqrt(2) * NormalDist().inv_cdf(self.auc)
        return (d * d / 2 if truth else -d * d / 2) + d * NormalDist().inv_cdf(chance)


class Engine:
    """Counts what one model reads and writes; `blocks` bounds its prefix cache (None: no bound)."""

    def __init__(self, blocks: int | None = None) -> None:
        self.calls = self.prompt = self.evaluated = self.output = 0
        self._blocks = blocks
        self._kept: OrderedDict[int, None] = OrderedDict()

    def take(self, prompt: str, reply: str) -> tuple[int, int]:
        """Count one call; (prompt tokens, those of them found in the cache)."""
        words, chain = _blocks(prompt)
        found = 0
        while found < len(chain) and chain[found] in self._kept:
            found += 1
        cached = min(found, (words - 1) // BLOCK) * BLOCK
        for key in chain:
            self._kept[key] = None
            self._kept.move_to_end(key)
        while self._blocks is not None and len(self._kept) > self._blocks:
            self._kept.popitem(last=False)
        self.calls += 1
        self.prompt += words
        self.evaluated += words - cached
        self.output += len(_TOKEN.findall(reply))
        return words, cached


@lru_cache(maxsize=64)
def _blocks(prompt: str) -> tuple[int, tuple[int, ...]]:
    """(tokens, one key for each full block together with all before it)."""
    words = _TOKEN.findall(prompt)
    chain, key = [], 0
    for start in range(0, len(words) - BLOCK + 1, BLOCK):
        key = hash((key, *words[start : start + BLOCK]))
        chain.append(key)
    return len(words), tuple(chain)


class Simulated(Backend):
    """A backend that knows the truth about every record, by id."""

    def __init__(
        self,
        name: str,
        truths: Mapping[str, Truth] | None = None,
        noise: Noise | None = None,
        seed: int = 0,
        order: Order | None = None,
        blocks: int | None = None,
    ) -> None:
        self.engine = Engine(blocks)
        self._name, self._truths, self._seed = name, truths or {}, seed
        self._noise = noise or Noise()
        self._order = order or as_shipped

    def identity(self) -> Mapping[str, str]:
        return {"provider": "sim", "model": self._name}

    async def complete(self, call: Call, mode: Mode) -> Completion:
        system, user = (message["content"] for message in call.messages)
        ask = _Ask(call, user, call.origin.fields(), self._truths[call.origin.record])
        first, reply = None, ""
        if call.logprobs is not None:
            questions, p = builtin()[ask.rubric].first_token, self._p_yes(ask)
            # A passage is read as its story is, so that the AUC is that of stories.
            yes, no = (*questions[0].passages, "yes")[0], questions[0].words[-1]
            first, reply = ((yes, math.log(p)), (no, math.log1p(-p))), yes
        else:
            reply = json.dumps(self._reply(ask), ensure_ascii=False)
        read, cached = self.engine.take(f"{system}\n{self._order(user)}", reply)
        return Completion(
            text=reply,
            finish_reason="stop",
            input_tokens=read,
            output_tokens=len(_TOKEN.findall(reply)),
            cached_tokens=cached,
            first_token=first,
        )

    # ------------------------------------------------------------ what it says

    def _chance(self, *key: object) -> float:
        """A number from 0 to 1 that depends only on the key and the seed."""
        digest = blake2b(repr((self._seed, *key)).encode(), digest_size=8).digest()
        return (int.from_bytes(digest) + 0.5) / 2**64

    def _p_yes(self, ask: _Ask) -> float:
        # A reading depends on the prompt alone, so that neither role nor vote changes it.
        number = ask.numbers[0] if ask.numbers else 0
        chance = self._chance("cheap", ask.text, ask.rubric, number)
        odds = self._noise.log_odds(ask.true(number), chance)
        return min(max(1 / (1 + math.exp(-odds)), 1e-9), 1 - 1e-9)

    def _yes(self, ask: _Ask, number: int) -> bool:
        call = ask.call
        drawn = self._chance(ask.text, ask.rubric, number, call.role, call.origin.vote)
        return ask.true(number) ^ (drawn < self._noise.flip)

    def _cures(self, ask: _Ask, number: int) -> bool:
        return (
            self._chance("repair", ask.text, ask.rubric, number) < self._noise.repairs[ask.rubric]
        )

    def _reply(self, ask: _Ask) -> dict[str, Any]:
        replies: Mapping[str, Callable[[_Ask], dict[str, Any]]] = {
            "ValuesReflected": self._reflected,
            "SpeechesFound": self._speeches,
            "YesNo": self._yes_no,
            "Insertions": self._insertions,
            "Rewrites": self._rewrites,
            "Regeneration": self._regeneration,
        }
        return replies[builtin()[ask.rubric].reply_type.__name__](ask)

    def _reflected(self, ask: _Ask) -> dict[str, Any]:
        assert isinstance(ask.truth, StoryTruth)
        parts = []
        for n in ask.numbers:
            yes = self._yes(ask, n)
            who, words = ask.truth.shown.get(n, (None, ""))
            if not words or words not in ask.story:
                who, words = None, self._sentence(ask, n)
            told = {"quote": words if yes else None, "character": who if yes else None}
            reason = "It shows in what is told here." if yes else "It never comes up."
            parts.append({"value": n, **told, "reason": reason, "reflected": _word(yes)})
        return {"values": parts}

    def _speeches(self, ask: _Ask) -> dict[str, Any]:
        assert isinstance(ask.truth, StoryTruth)
        parts = []
        for n in ask.numbers:
            found = []
            if self._yes(ask, n):
                idle = (ask.character, self._sentence(ask, n))
                who, words = ask.truth.speech(ask.rubric, n, ask.story) or idle
                found = [{"character": who, "quote": words}]
            reason = "This is what was looked for." if found else "Nobody does."
            parts.append({"value": n, "reason": reason, "speeches": found})
        return {"values": parts}

    def _yes_no(self, ask: _Ask) -> dict[str, Any]:
        yes, wanted = self._yes(ask, 0), builtin()[ask.rubric].quote
        shown = ask.record[wanted.field].strip().split("\n")[-1] if wanted else ""
        words = shown if yes and shown else None
        return {"quote": words, "reason": "So it stands.", "answer": _word(yes)}

    def _insertions(self, ask: _Ask) -> dict[str, Any]:
        def piece(n: int) -> dict[str, Any]:
            words = carrying(n) if self._cures(ask, n) else "We ought to be on our way soon"
            said = f'"{words}," said {ask.character}.'
            place = {"value": n, "after": self._sentence(ask, n), "character": ask.character}
            return {**place, "dialogue": said}

        return {"insertions": [piece(n) for n in ask.numbers]}

    def _rewrites(self, ask: _Ask) -> dict[str, Any]:
        (listed,) = [text for name, text in ask.fences if name == "passages"]
        pieces = _PASSAGE.split(listed)[1:]
        told = zip(pieces[::2], pieces[1::2], strict=True)
        new = "I heard of such a thing once, and it has stayed with me ever since"
        parts = [
            {"passage": int(n), "text": new if self._cures(ask, int(n)) else old.strip()}
            for n, old in told
        ]
        return {"rewrites": parts}

    def _regeneration(self, ask: _Ask) -> dict[str, Any]:
        number = int(self._chance("new", ask.story) * 1000)
        end = RIGHT if self._cures(ask, 0) else WRONG
        return {"story": f"At visit {number} Noa went in, and did the thing {end}"}

    def _sentence(self, ask: _Ask, number: int) -> str:
        """A sentence of the story without a planted fault."""
        assert isinstance(ask.truth, StoryTruth)
        told = (*ask.truth.contradictions.values(), *ask.truth.explicit.values())
        planted = " ".join(words for _, words in told)
        idle = [s for s in _SENTENCE.findall(ask.story) if s not in planted]
        return idle[int(self._chance("idle", ask.text, ask.rubric, number) * len(idle))]


@dataclass(slots=True)
class _Ask:
    """The parts of a call."""

    call: Call
    content: str
    record: Mapping[str, Any]
    truth: Truth

    @property
    def rubric(self) -> str:
        return self.call.origin.rubric

    @property
    def story(self) -> str:
        return str(self.record["story"])

    @property
    def character(self) -> str:
        return str(self.record["characters"][0])

    @property
    def text(self) -> str:
        """What the rubric shows of the record."""
        return "\n".join(str(self.record[name]) for name in builtin()[self.rubric].fields)

    @property
    def fences(self) -> list[tuple[str, str]]:
        return [(name, text) for name, _, text in _FENCE.findall(self.content)]

    @property
    def numbers(self) -> list[int]:
        """The values asked about (from 1); [] for a rubric about the record."""
        for name, text in self.fences:
            if name == "values":
                return [int(n) for n in _NUMBERED.findall(text)]
            if name == "value" and (values := self.record.get("values")):
                return [values.index(text) + 1]
        return []

    def true(self, number: int) -> bool:
        return self.truth.says_yes(self.rubric, number, self.record)


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


# ---------------------------------------------------------------- prompt orders


def as_shipped(content: str) -> str:
    """Record and question, with the values where the question lists them."""
    return content


def _pieces(content: str) -> tuple[str, str, str]:
    """(record, question, values) of a prompt."""
    found = [(match.group(1), match.group()) for match in _FENCE.finditer(content)]
    shown = [text for name, text in found if name in _RECORD]
    asked = [text for name, text in found if name not in _RECORD]
    question = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", content)).strip()
    return "\n\n".join(shown), question, "\n\n".join(asked)


def _ordered(*places: int) -> Order:
    def order(content: str) -> str:
        pieces = _pieces(content)
        return "\n\n".join(pieces[place] for place in places if pieces[place])

    return order


papers_order = _ordered(1, 0, 2)
"""Instruction, record, values: the order of CQ-Bench's prompts (appendix A.3)."""

values_behind_record = _ordered(0, 2, 1)
values_last = _ordered(0, 1, 2)


def questions_first(*names: str, values_shared: bool = False) -> Order:
    """All questions of these rubrics, the record, then which of them is asked, and the values.

    With `values_shared` the values come before the words that say which question is asked.
    """
    rubrics = [builtin()[name] for name in names]
    asked = [r.prompt.replace("{{ values }}", "") for r in rubrics]
    examples = [f"{e.text}\n{e.reply}" for r in rubrics for e in r.examples]
    before = "\n\n".join([*asked, *examples])

    def order(content: str) -> str:
        record, question, values = _pieces(content)
        # The prompt must say which question is meant; for counting, its last words are enough.
        which = " ".join(question.split()[-12:])
        last = (values, which) if values_shared else (which, values)
        return "\n\n".join((before, record, *last))

    return order
