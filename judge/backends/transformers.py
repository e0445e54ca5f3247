"""Models in this process: Hugging Face weights run by torch, in batches."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any

from judge.backends.base import Call, Completion, Message, Mode, Reading
from judge.backends.shape import refuse_half_pairs
from judge.errors import BackendError, BadRequest, ContextExceeded, Denied, ServerFault, UsageError

if TYPE_CHECKING:
    from judge.inference.engine import Engine, Loaded
    from judge.inference.jobs import Answer, Job
    from judge.inference.memory import Needs

DEVICE = "JUDGE_TORCH_DEVICE"
"""The device: cpu, cuda or cuda:1; without it the first card, and the processor where none is."""

_RECORDS_ON_CARD = 1024
_RECORDS_ON_PROCESSOR = 32
"""In flight at once. More make fuller batches and longer turns of a model; a processor, which is
busy with one batch for long, would finish its first record late."""

_LIBRARIES = ("torch", "transformers", "llguidance")
_numbers = count(1)


class TransformersBackend:
    """One Hugging Face model, loaded when its turn first comes, called in batches.

    `name` is a folder with config.json, safetensors and a tokenizer with a chat template, or a
    hub's name that the local Hugging Face cache holds. Nothing is downloaded unless
    $JUDGE_HF_DOWNLOAD is 1, and then when the backend is built. All models on one device take turns
    (`judge.inference.turns`). $JUDGE_TORCH_DEVICE names the device. Numbers are as wide as in the
    checkpoint on a card (32-bit ones become bfloat16), and 32 bits wide on a processor.

    Raises:
        UsageError: the libraries or the model are not here, the model does not fit on the device
            (with the numbers), or $JUDGE_TORCH_DEVICE names none.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)
    slots: int | None
    seeded: bool = True
    reading: Reading = "probability"

    def __init__(self, name: str) -> None:
        missing = [library for library in _LIBRARIES if find_spec(library) is None]
        if missing:
            raise UsageError(
                f"transformers:{name} needs {', '.join(missing)}: pip install 'judge[gpu]'"
            )
        from judge.inference import checkpoint
        from judge.inference.engine import engine_of

        self._checkpoint = checkpoint.find(name)
        self._device = device_named(os.environ.get(DEVICE, "").strip())
        on_card = self._device != "cpu"
        self.slots = _RECORDS_ON_CARD if on_card else _RECORDS_ON_PROCESSOR
        self._dtype = _dtype(self._checkpoint.shape, on_card)
        self._refuse_what_cannot_run()
        self._engine: Engine = engine_of(self._device)
        self._seat = f"{name}#{next(_numbers)}"
        self._seated = False
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
        self._loading = threading.Lock()

    def identity(self) -> Mapping[str, str]:
        """Name, SHA-256 of weights, configuration and tokenizer, libraries, numbers, device."""
        return self._identity

    @cached_property
    def _identity(self) -> Mapping[str, str]:
        import torch

        from judge.inference import checkpoint

        on_card = self._device != "cpu"
        kind = torch.cuda.get_device_name(self._device) if on_card else "cpu"
        return {
            "provider": "transformers",
            "model": self._checkpoint.title,
            "sha256": self._checkpoint.sha256,
            "engine": checkpoint.engine_version(),
            "numbers": str(self._dtype).removeprefix("torch."),
            "device": kind,
        }

    # ------------------------------------------------------------ calls

    async def complete(self, call: Call, mode: Mode) -> Completion:
        """One reply. Cancelled, it is dropped before the next batch or the next token.

        Raises:
            ContextExceeded, BadRequest, ServerFault, Denied: see `judge.errors`.
        """
        if call.schema is not None and mode is not Mode.JSON_SCHEMA:
            raise BadRequest(f"transformers models take JSON schemas only, not {mode.value}")
        refuse_half_pairs(call)
        if not self._seated:
            self._engine.seat(self._seat, self._load)
            self._seated = True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._engine.announce(self._seat)
        try:
            tokens = await loop.run_in_executor(self._tokenizing, self._tokens, call.messages)
            job = self._job(call, tokens, _teller(loop, future))
        except BaseException:
            self._engine.retract(self._seat)
            raise
        self._engine.submit(self._seat, job)
        try:
            answer = await future
        except asyncio.CancelledError:
            job.cancelled = True
            raise
        except BackendError:
            raise
        except Exception as error:
            raise self._told(error) from error
        return self._completion(tokens, answer)

    async def aclose(self) -> None:
        """Wait for the batch that runs, if any, and free the model."""
        await asyncio.to_thread(self._tokenizing.shutdown, cancel_futures=True)
        if self._seated:
            await asyncio.to_thread(self._engine.leave, self._seat)
            self._seated = False

    def _job(self, call: Call, tokens: Sequence[int], done: Any) -> Job:
        from judge.inference.jobs import Job

        context = self._checkpoint.context
        if len(tokens) >= context:
            raise ContextExceeded(
                f"the prompt has {len(tokens)} tokens, the model's context {context}"
            )
        return Job(
            tokens,
            done,
            record=call.origin.record,
            alternatives=call.logprobs or 0,
            max_tokens=call.max_tokens,
            schema=None if call.schema is None else json.dumps(call.schema),
            temperature=1.0 if call.temperature is None else call.temperature,
            # Without one of its own, no two runs would agree.
            seed=call.vote if call.seed is None else call.seed,
        )

    def _completion(self, tokens: Sequence[int], answer: Answer) -> Completion:
        decode = self._tokenizer.decode
        listed = tuple((decode([token]), chance) for token, chance in answer.listed)
        return Completion(
            text=decode(answer.written, skip_special_tokens=True),
            finish_reason="stop" if answer.whole else "length",
            input_tokens=len(tokens),
            output_tokens=len(answer.written),
            cached_tokens=answer.reused,
            first_token=listed or None,
        )

    def _told(self, error: Exception) -> BackendError:
        from judge.inference.decoding import BadSchema
        from judge.inference.engine import LoadFailed, TooLarge

        what = f"transformers:{self._checkpoint.name} on {self._device}"
        if isinstance(error, LoadFailed):
            return Denied(f"{what}: {error}")
        if isinstance(error, TooLarge):
            return BadRequest(f"{what}: {error} alone; take a smaller model or more memory")
        if isinstance(error, BadSchema):
            return BadRequest(f"{what}: the schema cannot be followed: {error}")
        return ServerFault(f"{what}: {type(error).__name__}: {error}")

    # ------------------------------------------------------------ text and tokens

    def _tokens(self, messages: Sequence[Message]) -> list[int]:
        """The prompt's tokens, in the model's own chat form, up to where its reply begins."""
        from jinja2 import TemplateError

        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                add_generation_prompt=True,
                tokenize=False,
                # The first token of a thinking model's thoughts says neither yes nor no.
                enable_thinking=False,
            )
        except TemplateError as error:
            raise BadRequest(f"the model's chat template refuses the messages: {error}") from error
        found: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    @property
    def _tokenizer(self) -> Any:
        with self._loading:
            return self._loaded_tokenizer

    @cached_property
    def _loaded_tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self._checkpoint.folder, local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError, KeyError) as error:
            raise Denied(f"transformers:{self._checkpoint.name}: no tokenizer: {error}") from error
        if not tokenizer.is_fast or tokenizer.chat_template is None:
            lacking = "chat template" if tokenizer.is_fast else "tokenizer.json"
            raise Denied(f"transformers:{self._checkpoint.name} has no {lacking}")
        return tokenizer

    # ------------------------------------------------------------ the model

    def _refuse_what_cannot_run(self) -> None:
        """See that the model fits before anything is judged; a card may hold another's by then.

        Raises:
            UsageError: it does not.
        """
        from judge.inference import memory

        wanted = self._needs()
        try:
            memory.fit(self._checkpoint.name, wanted, memory.space_of(self._device))
        except memory.DoesNotFit as error:
            raise UsageError(f"transformers:{error}") from error

    def _needs(self) -> Needs:
        from judge.inference import memory

        each = int(self._dtype.itemsize)
        return memory.needs(self._checkpoint.shape, self._checkpoint.weight_bytes(each), each)

    def _load(self) -> Loaded:
        """Bring the model onto the device; on the engine's thread.

        Raises:
            DoesNotFit: since the run was set up, others have taken the space.
            CannotPack: it is of a kind that cannot be run here.
        """
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        from judge.inference import attention, memory
        from judge.inference.decoding import Grammars
        from judge.inference.engine import Loaded
        from judge.inference.held import HeldPrefixes
        from judge.inference.model import LoadedModel
        from judge.inference.proving import prove

        wanted = self._needs()
        fit = memory.fit(self._checkpoint.name, wanted, memory.space_of(self._device))
        attention.register()
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        model: Any = AutoModelForCausalLM.from_pretrained(
            self._checkpoint.folder,
            local_files_only=True,
            # Code of the model's own is never run, and nobody is asked whether it may be; a .bin
            # beside the safetensors is a pickle.
            trust_remote_code=False,
            use_safetensors=True,
            dtype=self._dtype,
            attn_implementation=attention.NAME,
        )
        model = model.to(torch.device(self._device)).eval()
        tokenizer = self._tokenizer
        ends = _ends(model, tokenizer)
        loaded = LoadedModel(
            model,
            context=self._checkpoint.context,
            ends=ends,
            grammars=Grammars(tokenizer, self._checkpoint.shape.vocab_size, ends),
            held=HeldPrefixes(memory.held_tokens(fit)),
        )
        prove(loaded, model)
        return Loaded(loaded, memory.room(fit))


def device_named(wanted: str) -> str:
    """A torch device: `wanted`, else the first card, else "cpu".

    Raises:
        UsageError: there is no such device.
    """
    import torch

    if not wanted:
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if wanted == "cpu":
        return wanted
    kind, _, number = wanted.partition(":")
    place = number or "0"
    cards = torch.cuda.device_count()
    if kind != "cuda" or not place.isdecimal() or int(place) >= cards:
        raise UsageError(
            f"{DEVICE} is {wanted!r}; it must be cpu, or cuda:N with N below the number of cards "
            f"that torch sees here, {cards}"
        )
    return f"cuda:{int(place)}"


def _dtype(shape: Any, on_card: bool) -> Any:
    import torch

    if not on_card:
        return torch.float32
    own = getattr(shape, "dtype", None)
    return own if own in (torch.bfloat16, torch.float16) else torch.bfloat16


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a reply: those that the model names, and the tokenizer's."""
    named = model.generation_config.eos_token_id
    listed = named if isinstance(named, list) else [named]
    found = dict.fromkeys(token for token in (*listed, tokenizer.eos_token_id) if token is not None)
    return list(found)


def _teller(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Answer]) -> Any:
    """What the engine's thread calls with a job's outcome."""

    def tell(outcome: Answer | Exception) -> None:
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def told(outcome: Answer | Exception) -> None:
        # A loop that was closed in the meantime has nobody waiting; other models' calls go on.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, outcome)

    return told
