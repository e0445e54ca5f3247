"""Replies token by token: what a schema allows, which token is drawn, and when it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judge.inference.jobs import Job

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions
    from torch import Tensor

_SPACING: JsonCompileOptions = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
"""As the rubrics' examples are written; a model that may choose can fill its reply with blanks."""


class BadSchema(ValueError):
    """A JSON schema that cannot be turned into a grammar."""


class Grammars:
    """JSON schemas as grammars over a model's tokens (library llguidance).

    Args:
        tokenizer: a fast Hugging Face tokenizer.
        width: how many tokens the model tells apart; may be more than the tokenizer knows.
        ends: the tokens that end a reply.
    """

    def __init__(self, tokenizer: Any, width: int, ends: Sequence[int]) -> None:
        from llguidance import hf

        self._tokens = hf.from_tokenizer(tokenizer, n_vocab=width, eos_token=list(ends))
        self._known: dict[str, str] = {}

    def matcher(self, schema: str) -> Any:
        """A matcher at the beginning of a reply that follows the schema.

        Raises:
            BadSchema: it holds what the library does not know.
        """
        from llguidance import LLMatcher

        if schema not in self._known:
            self._known[schema] = LLMatcher.grammar_from_json_schema(schema, defaults=_SPACING)
        matcher = LLMatcher(self._tokens, self._known[schema])
        if matcher.is_error():
            raise BadSchema(matcher.get_error())
        return matcher


class Writing:
    """One reply as it is written.

    Args:
        room: tokens that fit between the prompt and the model's context.
        matcher: what the reply must follow; None for free text.
    """

    def __init__(self, job: Job, matcher: Any, ends: frozenset[int], room: int) -> None:
        self.job, self.matcher = job, matcher
        self.tokens: list[int] = []
        self.ended = self.whole = False
        self._ends = ends
        self.room = min(job.max_tokens, room)
        """The most tokens that it may come to have."""
        self._random = random.Random(job.seed)

    def draw(self) -> float:
        """A number in [0, 1), by the job's seed."""
        return self._random.random()

    def take(self, token: int) -> None:
        """Go on by one token; `ended` says whether there is more to write."""
        if self.matcher is not None and not self.matcher.consume_token(token):
            raise RuntimeError(f"llguidance refused a token of its own: {self.matcher.get_error()}")
        if token in self._ends:
            self.ended = self.whole = True
            return
        self.tokens.append(token)
        if self.matcher is not None and self.matcher.is_stopped():
            self.ended = self.whole = True
        elif len(self.tokens) >= self.room:
            self.ended = True


def pick(logits: Tensor, writings: Sequence[Writing]) -> list[int]:
    """The next token of each reply; `logits` has a row for each.

    With a temperature it is drawn by inverting the distribution at the reply's next random number,
    so that a seed and the logits determine it.
    """
    import torch

    logits = logits.float()
    for row, writing in enumerate(writings):
        if writing.matcher is not None:
            logits[row].masked_fill_(~_allowed(writing.matcher, logits), float("-inf"))
    chosen = logits.argmax(-1).tolist()
    warm = [row for row, writing in enumerate(writings) if writing.job.temperature > 0]
    if warm:
        heat = [[writings[row].job.temperature] for row in warm]
        chances = torch.softmax(logits[warm] / torch.tensor(heat, device=logits.device), -1)
        sums = chances.cumsum(-1, dtype=torch.float64)
        drawn = [[writings[row].draw()] for row in warm]
        wanted = torch.tensor(drawn, dtype=torch.float64, device=logits.device) * sums[:, -1:]
        found = torch.searchsorted(sums, wanted, right=True).squeeze(-1)
        for row, token in zip(warm, found.tolist(), strict=True):
            chosen[row] = min(token, logits.shape[-1] - 1)
    return [int(token) for token in chosen]


def _allowed(matcher: Any, logits: Tensor) -> Tensor:
    """Which tokens the grammar allows next, as a row of booleans."""
    import torch

    packed = torch.frombuffer(bytearray(matcher.compute_bitmask()), dtype=torch.uint8)
    packed = packed.to(logits.device)
    bits = (packed[:, None] >> torch.arange(8, device=logits.device, dtype=torch.uint8)) & 1
    allowed = bits.reshape(-1).bool()
    width = logits.shape[-1]
    if len(allowed) < width:
        allowed = torch.nn.functional.pad(allowed, (0, width - len(allowed)))
    return allowed[:width]
