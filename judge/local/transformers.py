"""Models in this process: Hugging Face weights, run by torch in batches on one device."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from judge import errors
from judge.backends.base import (
    LAST_LAYER,
    Call,
    Completion,
    Message,
    Method,
    Mode,
    refuse_half_pairs,
)
from judge.local import store
from judge.local.torch_model import Job, TorchModel

DEVICE = "JUDGE_TORCH_DEVICE"
_LIBRARIES = ("torch", "transformers", "llguidance")
_SLOTS = {"cpu": 32, "cuda": 256}
_BATCH_TOKENS = {"cpu": 16_384, "cuda": 65_536}
"""Prompts with their padding and room for replies; halved where memory runs out."""
_KEPT_TOKENS = {"cpu": 16_384, "cuda": 65_536}
"""Of prompts whose keys and values are kept for the next question about the same record."""
_GATHERING_SECONDS = 0.01


class TransformersBackend:
    """One Hugging Face model, loaded at the first call; batches run on one thread.

    `name` is a folder or a name in the local Hugging Face cache; nothing is downloaded.
    $JUDGE_TORCH_DEVICE is cpu or cuda:N; without it the first GPU, else the CPU.

    Raises:
        UsageError: a library, the model or the device is not here.
    """

    in_process = True
    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None
    seeded: bool = True
    method: Method = "logprobs"
    states_beside_replies = True

    def __init__(self, name: str) -> None:
        self._spec = f"transformers:{name}"
        if lacking := [library for library in _LIBRARIES if find_spec(library) is None]:
            raise errors.missing_extra(f"{self._spec} needs {', '.join(lacking)}", "gpu")
        self._folder, self._title = store.hugging_face(name)
        self._device = _device(os.environ.get(DEVICE, "").strip())
        self.slots = _SLOTS[self._device.type]
        self._waiting: list[Job] = []
        self._serving: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="torch")

    def identity(self) -> Mapping[str, str]:
        """Name, SHA-256 of weights, configuration and tokenizer, libraries, numbers, device."""
        import torch

        gpu = self._device.type == "cuda"
        return {
            "provider": "transformers",
            "model": self._title,
            "sha256": store.sha256_of_folder(self._folder),
            "engine": " ".join(f"{library}/{version(library)}" for library in _LIBRARIES),
            "numbers": "as in the checkpoint" if gpu else "float32",
            "device": torch.cuda.get_device_name(self._device) if gpu else "cpu",
        }

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply. Cancelling drops it before the next batch or the next token."""
        if call.schema is not None and mode is not Mode.JSON_SCHEMA:
            raise errors.BadRequest(f"transformers models take JSON schemas only, not {mode.value}")
        job = await self._done(Job(call))
        return Completion(
            text=self._model.tokenizer.decode(job.written, skip_special_tokens=True),
            finish_reason="stop" if job.whole else "length",
            input_tokens=len(job.tokens),
            output_tokens=len(job.written),
            cached_tokens=job.cached,
            first_token=job.first,
        )

    async def hidden(
        self, messages: Sequence[Message], layer: int = LAST_LAYER
    ) -> tuple[Sequence[float], int]:
        """As `HiddenStates` says, of any layer. Raises BadRequest for one that is not there."""
        job = await self._done(Job(Call(messages, max_tokens=1), layer))
        return job.hidden, len(job.tokens)

    async def _done(self, job: Job) -> Job:
        refuse_half_pairs(job.call)
        self._waiting.append(job)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        await asyncio.wrap_future(job.future)
        return job

    async def aclose(self) -> None:
        """Wait for the batch that runs, if any, and free the model."""
        if self._serving is not None:
            self._serving.cancel()
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self.__dict__.pop("_model", None)

    async def _serve(self) -> None:
        """Hand waiting jobs to the worker thread until none is left."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(_GATHERING_SECONDS)
            jobs, self._waiting = self._waiting, []
            await loop.run_in_executor(self._worker, self._answer, jobs)

    # ------------------------------------------------------------ on the worker thread

    def _answer(self, jobs: Sequence[Job]) -> None:
        ready = []
        for job in jobs:
            try:
                self._model.prepare(job)
                ready.append(job)
            except errors.BackendError as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001 - goes to the call; the thread goes on
                job.settle(errors.BadRequest(f"{self._spec} cannot be asked this: {error}"))
        # The first question about a record evaluates what the others share with it.
        new = [job for job in ready if job.call.origin.record not in self._model.kept]
        firsts = list({job.call.origin.record: job for job in new}.values())
        for together in (firsts, [job for job in ready if job not in firsts]):
            for batch in _batches(together, _BATCH_TOKENS[self._device.type]):
                self._evaluate(batch)

    def _evaluate(self, jobs: Sequence[Job]) -> None:
        """Answer a batch; where memory runs out it is halved, down to one call."""
        import torch

        failure: errors.BackendError | None = None
        try:
            self._model.answer(jobs)
        except Exception as error:  # noqa: BLE001 - goes to the calls; the thread goes on
            told = f"{self._spec} on {self._device}: {type(error).__name__}: {error}"
            self._model.kept.clear()
            # A CPU's is a RuntimeError like any other.
            short = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
            failure = errors.BadRequest(told) if short else errors.ServerFault(told)
        if isinstance(failure, errors.BadRequest) and len(jobs) > 1:
            self._evaluate(jobs[: len(jobs) // 2])
            self._evaluate(jobs[len(jobs) // 2 :])
        else:
            for job in jobs:
                job.settle(failure)

    @cached_property
    def _model(self) -> TorchModel:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        # No code that comes with the model is run; a .bin beside the safetensors is a pickle.
        dtype = "auto" if self._device.type == "cuda" else torch.float32
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False
            )
            model: Any = AutoModelForCausalLM.from_pretrained(
                self._folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
            )
            model = model.to(self._device).eval()
        except Exception as error:
            told = f"{self._spec} cannot be loaded on {self._device}: {error}"
            raise errors.Denied(told) from error
        if not tokenizer.is_fast or tokenizer.chat_template is None:
            lacking = "chat template" if tokenizer.is_fast else "tokenizer.json"
            raise errors.Denied(f"{self._spec} has no {lacking}")
        return TorchModel(model, tokenizer, _KEPT_TOKENS[self._device.type])


def _batches(jobs: Sequence[Job], most: int) -> Iterator[list[Job]]:
    """Batches of at most `most` tokens, first-token questions before replies."""
    batch, longest = list[Job](), 0
    for job in sorted(jobs, key=lambda job: job.call.max_tokens > 1):
        longest = max(longest, len(job.tokens) + job.room)
        if batch and (len(batch) + 1) * longest > most:
            yield batch
            batch, longest = [], len(job.tokens) + job.room
        batch.append(job)
    if batch:
        yield batch


def _device(wanted: str) -> Any:
    """A torch device: `wanted`, else the first GPU, else the CPU; raises UsageError."""
    import torch

    gpus = torch.cuda.device_count()
    if wanted not in ("", "cpu", *(f"cuda:{number}" for number in range(gpus))):
        raise errors.UsageError(f"{DEVICE} is {wanted!r}; write cpu, or cuda:N with N below {gpus}")
    return torch.device(wanted or ("cuda:0" if gpus else "cpu"))
