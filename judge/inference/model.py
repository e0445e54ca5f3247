"""A loaded model: batches of prompts through it, their first tokens, and replies written on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judge.inference.attention import Attending, GrowingReplies, PackedPrompts
from judge.inference.decoding import BadSchema, Grammars, Writing, pick
from judge.inference.held import Held, HeldPrefixes
from judge.inference.jobs import Answer, Job
from judge.inference.prefix import Layout, Prompt, arrange, common

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class Work:
    """What a model has done: forward passes, prompts, and tokens written; of prompts the tokens
    evaluated, and the pairs of tokens that looked at one another."""

    passes: int = 0
    tokens: int = 0
    pairs: int = 0
    prompts: int = 0
    written: int = 0


class LoadedModel:
    """A model on its device. Used by one thread at a time.

    Args:
        model: a causal language model, loaded with the attention `attention.NAME`.
        context: the most tokens of prompt and reply together.
        ends: the tokens that end a reply.
        grammars: None where no reply has to follow a schema.
        held: the beginnings held between batches.
        share: off evaluates every prompt whole, which is for comparison only.
    """

    def __init__(
        self,
        model: Any,
        *,
        context: int,
        ends: Sequence[int],
        grammars: Grammars | None,
        held: HeldPrefixes,
        share: bool = True,
    ) -> None:
        self._model = model
        self._context, self._ends, self._grammars = context, frozenset(ends), grammars
        self.held = held
        self._share = share
        self._layers = model.config.get_text_config().num_hidden_layers
        self.work = Work()

    def answers(self, jobs: Sequence[Job]) -> list[Answer | Exception]:
        """The answers to a batch; a job whose schema cannot be used has a `BadSchema` instead."""
        import torch

        outcomes: dict[int, Answer | Exception] = {}
        writings: list[Writing] = []
        for job in jobs:
            try:
                writings.append(self._begun(job))
            except BadSchema as error:
                outcomes[id(job)] = error
        if writings:
            with torch.inference_mode():
                answers = self._answered(writings)
            for writing, answer in zip(writings, answers, strict=True):
                outcomes[id(writing.job)] = answer
        return [outcomes[id(job)] for job in jobs]

    def covered(self, job: Job) -> int:
        """How many of the job's prompt's tokens need not be evaluated, because they are held."""
        found = self.held.match(job.record, job.tokens) if job.record else None
        return found[1] if found else 0

    def _begun(self, job: Job) -> Writing:
        matcher = None
        if job.schema is not None:
            if self._grammars is None:
                raise BadSchema("this model was loaded without grammars")
            matcher = self._grammars.matcher(job.schema)
        return Writing(job, matcher, self._ends, self._context - len(job.tokens))

    def _answered(self, writings: Sequence[Writing]) -> list[Answer]:
        jobs = [writing.job for writing in writings]
        prompts, entries = self._prompts(jobs)
        layout = arrange(prompts, share=self._share)
        beginnings = self._beginnings(jobs, prompts) if self._share else {}
        keep = bool(beginnings) or any(job.writes for job in jobs)
        held = [entries[entry].layers for entry, _ in layout.held]
        attending = PackedPrompts(layout, self._model.device, held=held, keep=keep)
        logits = self._prompted(layout, attending)
        self.work.prompts += len(jobs)
        for record, (number, tokens) in beginnings.items():
            path, layers = layout.paths[number], range(self._layers)
            rows = [attending.rows(layer, path, len(tokens)) for layer in layers]
            self.held.put(record, Held(tokens, rows))
        listed = _listed(logits, [job.alternatives for job in jobs])
        self._write(logits, writings, attending, layout)
        return [
            Answer(writing.tokens, writing.whole, found, reused)
            for writing, found, reused in zip(writings, listed, _reused(layout), strict=True)
        ]

    # ------------------------------------------------------------ prompts

    def _prompts(self, jobs: Sequence[Job]) -> tuple[list[Prompt], list[Held]]:
        """The jobs' prompts, with what is held of them, and the entries that they name."""
        prompts: list[Prompt] = []
        entries: dict[int, tuple[int, Held]] = {}
        for job in jobs:
            found = self.held.match(job.record, job.tokens) if job.record else None
            if found is None:
                prompts.append(Prompt(job.tokens))
                continue
            held, covered = found
            number, _ = entries.setdefault(id(held), (len(entries), held))
            prompts.append(Prompt(job.tokens, covered, number))
        return prompts, [held for _, held in entries.values()]

    def _prompted(self, layout: Layout, attending: PackedPrompts) -> Tensor:
        """Evaluate a layout; a row of logits for each prompt."""
        import torch

        self.work.tokens += len(layout.tokens)
        self.work.pairs += layout.pairs
        tokens, positions = torch.tensor([layout.tokens]), torch.tensor([layout.positions])
        return self._forward(tokens, positions, attending, torch.tensor(layout.ends))[0]

    def _forward(
        self, tokens: Tensor, positions: Tensor, attending: Attending, ends: Tensor | int
    ) -> Tensor:
        """Logits at `ends`: places in the row, or how many at its end."""
        device = self._model.device
        self.work.passes += 1
        out = self._model(
            input_ids=tokens.to(device),
            position_ids=positions.to(device),
            use_cache=False,
            logits_to_keep=ends if isinstance(ends, int) else ends.to(device),
            attending=attending,
        )
        logits: Tensor = out.logits
        return logits

    def _beginnings(
        self, jobs: Sequence[Job], prompts: Sequence[Prompt]
    ) -> dict[str, tuple[int, Sequence[int]]]:
        """What each record's prompts have in common, where that is to be held from now on.

        As (one of the record's prompts, its first tokens).
        """
        records: dict[str, list[int]] = {}
        for number, job in enumerate(jobs):
            records.setdefault(job.record, []).append(number)
        found: dict[str, tuple[int, Sequence[int]]] = {}
        for record, numbers in records.items():
            tokens = jobs[numbers[0]].tokens
            for number in numbers[1:]:
                tokens = tokens[: common(tokens, jobs[number].tokens)]
            covered = min(prompts[number].held for number in numbers)
            if self.held.wants(record, tokens, covered):
                found[record] = (numbers[0], tokens)
        return found

    # ------------------------------------------------------------ replies

    def _write(
        self,
        logits: Tensor,
        writings: Sequence[Writing],
        attending: PackedPrompts,
        layout: Layout,
    ) -> None:
        """Write all replies to their ends; those that have ended leave the batch."""
        import torch

        device = self._model.device
        tokens = self._picked(logits, writings)
        going = [number for number, writing in enumerate(writings) if not writing.ended]
        if not going:
            return
        room = max(writings[number].room for number in going)
        paths = [layout.paths[number] for number in going]
        growing = GrowingReplies(attending, paths, room, self._layers, device)
        attending.made.clear()
        active = [writings[number] for number in going]
        tokens = [tokens[number] for number in going]
        while active:
            row = torch.tensor([[token] for token in tokens])
            logits = self._forward(row, growing.lengths[:, None], growing, 1)[:, -1]
            growing.grown()
            tokens = self._picked(logits, active)
            stay = [p for p, w in enumerate(active) if not w.ended and not w.job.cancelled]
            if len(stay) < len(active):
                active, tokens = [active[p] for p in stay], [tokens[p] for p in stay]
                growing.only(torch.tensor(stay, dtype=torch.long, device=device))

    def _picked(self, logits: Tensor, writings: Sequence[Writing]) -> list[int]:
        """Draw and take the next token of each reply."""
        tokens = pick(logits, writings)
        for writing, token in zip(writings, tokens, strict=True):
            writing.take(token)
        self.work.written += len(tokens)
        return tokens


def _reused(layout: Layout) -> list[int]:
    """Of each prompt, the tokens that were held, or evaluated for a prompt before it."""
    counted: set[int] = set()
    reused = []
    for path in layout.paths:
        again = 0
        for begin, end in path:
            if begin < layout.held_rows or begin in counted:
                again += end - begin
            else:
                counted.add(begin)
        reused.append(again)
    return reused


def _listed(logits: Tensor, wanted: Sequence[int]) -> list[list[tuple[int, float]]]:
    """Of each row the likeliest tokens with natural log-probabilities, as many as are wanted."""
    import torch

    most = min(max(wanted), logits.shape[-1])
    if most == 0:
        return [[] for _ in wanted]
    chances = torch.log_softmax(logits.float(), -1)
    values, tokens = (found.tolist() for found in chances.topk(most, -1))
    return [
        list(zip(tokens[row][:count], values[row][:count], strict=True))
        for row, count in enumerate(wanted)
    ]
