"""Models in this process: Hugging Face weights, run by transformers' own generation."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from judge import errors
from judge.backends.base import Call, Completion, Mode
from judge.local import store
from judge.local.chat_template import prompt_tokens
from judge.local.in_process import InProcess

if TYPE_CHECKING:
    from torch import Tensor

DEVICE = "JUDGE_TORCH_DEVICE"
_LIBRARIES = ("torch", "transformers", "llguidance")

_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""As in the rubrics' examples: a model that may choose can fill its reply with white space."""


class TransformersBackend(InProcess):
    """One Hugging Face model.

    `name` is a folder or a name in the local Hugging Face cache; nothing is downloaded.
    $JUDGE_TORCH_DEVICE is cpu or cuda:N; without it the first GPU, else the CPU.

    Raises:
        UsageError: a library, the model or the device is not here.
    """

    def __init__(self, name: str) -> None:
        self._spec = f"transformers:{name}"
        if lacking := [library for library in _LIBRARIES if find_spec(library) is None]:
            raise errors.missing_extra(f"{self._spec} needs {', '.join(lacking)}", "gpu")
        self._folder, self._title = store.hugging_face(name)
        self._device = _device(os.environ.get(DEVICE, "").strip())
        super().__init__("torch")

    def identity(self) -> Mapping[str, str]:
        """Name, SHA-256 of weights, configuration and tokenizer; libraries, precision, device."""
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
        """One reply, or the hidden state after any layer; cancelling drops it before the next
        token."""
        return await self._on_thread(self._answer, call)

    # ------------------------------------------------------------ on the worker thread

    def _answer(self, call: Call, stop: threading.Event) -> Completion:
        try:
            tokens, grammar = self._prompt(call), self._grammar(call)
        except errors.BackendError:
            raise
        except Exception as error:
            raise errors.BadRequest(f"{self._spec} cannot be asked this: {error}") from error
        try:
            return self._generate(call, tokens, grammar, stop)
        except errors.BackendError:
            raise
        except Exception as error:
            message = f"{self._spec} on {self._device}: {type(error).__name__}: {error}"
            # Known by its words: on a CPU a lack of memory is a plain RuntimeError.
            short = "out of memory" in str(error) or "allocate memory" in str(error)
            lacking = isinstance(error, IndexError) and call.layer is not None
            kind = errors.BadRequest if short or lacking else errors.ServerFault
            raise kind(message) from error

    def _prompt(self, call: Call) -> list[int]:
        """The prompt's tokens; raises ContextExceeded if they leave no room for a reply."""
        tokens = prompt_tokens(self._engine.tokenizer, call.messages)
        if len(tokens) >= self._engine.context:
            problem = (
                f"the prompt has {len(tokens)} tokens, the model's context {self._engine.context}"
            )
            raise errors.ContextExceeded(problem)
        return tokens

    def _grammar(self, call: Call) -> _Grammar | None:
        """The grammar of the call's schema (None: no schema); raises ValueError if it has none."""
        from llguidance import LLMatcher

        if call.schema is None:
            return None
        text = LLMatcher.grammar_from_json_schema(json.dumps(call.schema), defaults=_SPACING)
        matcher = LLMatcher(self._engine.guide, text)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return _Grammar(matcher, self._engine.ends)

    def _generate(
        self,
        call: Call,
        tokens: list[int],
        grammar: _Grammar | None,
        stop: threading.Event,
    ) -> Completion:
        import torch

        loaded, device = self._engine, self._device
        prompt = torch.tensor([tokens], device=device)
        heat = 1.0 if call.temperature is None else call.temperature
        sampling = {"temperature": heat, "top_k": 0, "top_p": 1.0} if heat > 0 else {}

        def stopped(ids: Tensor, _: object) -> Tensor:
            return torch.full(ids.shape[:1], stop.is_set(), device=device)

        with (
            torch.inference_mode(),
            torch.random.fork_rng([device] if device.type == "cuda" else []),
        ):
            # Without a fixed seed, no two runs would agree.
            torch.manual_seed(call.vote if call.seed is None else call.seed)
            out = loaded.model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=min(call.max_tokens, loaded.context - len(tokens)),
                do_sample=heat > 0,
                **sampling,
                logits_processor=[] if grammar is None else [grammar],
                stopping_criteria=[stopped],
                return_dict_in_generate=True,
                output_logits=bool(call.logprobs),
                output_hidden_states=call.layer is not None,
            )
        if call.layer is not None:
            state = out.hidden_states[0][call.layer][0, -1].float().tolist()
            return Completion.of_state(state, call.layer, len(tokens))
        reply = out.sequences[0, len(tokens) :].tolist()
        text = [token for token in reply if token not in loaded.ends]
        first = None
        if call.logprobs:
            top = out.logits[0][0].float().log_softmax(-1).topk(call.logprobs)
            words = [loaded.tokenizer.decode([token]) for token in top.indices.tolist()]
            first = tuple(zip(words, top.values.tolist(), strict=True))
        return Completion(
            text=loaded.tokenizer.decode(text, skip_special_tokens=True),
            finish_reason="stop" if len(text) < len(reply) else "length",
            input_tokens=len(tokens),
            output_tokens=len(text),
            cached_tokens=0,
            first_token=first,
        )

    @cached_property
    def _engine(self) -> _Loaded:
        import torch
        from llguidance import hf
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
        from transformers.utils import logging

        logging.disable_progress_bar()
        # No code that comes with the model is run; a .bin beside the safetensors is a pickle.
        dtype = "auto" if self._device.type == "cuda" else torch.float32
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False
            )
            model: Any
            model, loading = AutoModelForCausalLM.from_pretrained(
                self._folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
                output_loading_info=True,
            )
            model = model.to(self._device).eval()
        except Exception as error:
            message = f"{self._spec} cannot be loaded on {self._device}: {error}"
            raise errors.Denied(message) from error
        if missing := sorted({*loading["missing_keys"], *map(str, loading["mismatched_keys"])}):
            # The library fills them with random numbers, as those of an encoder's missing head.
            raise errors.Denied(
                f"{self._spec} is no model that writes, or its files are not complete: they lack "
                f"{len(missing)} of its weights, such as {missing[0]}"
            )
        if not tokenizer.is_fast or tokenizer.chat_template is None:
            lacking = "chat template" if tokenizer.is_fast else "tokenizer.json"
            raise errors.Denied(f"{self._spec} has no {lacking}")
        shape, ids = model.config.get_text_config(), model.generation_config.eos_token_id
        ids = ids if isinstance(ids, list) else [ids]
        ends: list[int] = sorted({*ids, tokenizer.eos_token_id} - {None})
        # Without the checkpoint's own penalties and temperatures, which the call does not ask for.
        model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=ends[0])
        guide = hf.from_tokenizer(tokenizer, n_vocab=shape.vocab_size, eos_token=ends)
        return _Loaded(model, tokenizer, ends, int(shape.max_position_embeddings), guide)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model with its tokenizer; `ends` are the tokens that end a reply."""

    model: Any
    tokenizer: Any
    ends: list[int]
    context: int
    guide: Any


@dataclass(slots=True)
class _Grammar:
    """A logits processor that excludes the tokens that the grammar does not allow next."""

    matcher: Any
    ends: list[int]
    begun: bool = False

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        import numpy as np
        import torch

        if self.begun:
            self.matcher.consume_token(int(ids[0, -1]))
        self.begun = True
        allowed = torch.zeros_like(scores, dtype=torch.bool)
        if self.matcher.is_stopped():
            allowed[0, self.ends] = True
        else:
            packed = np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8)
            bits = np.unpackbits(packed, bitorder="little")[: scores.shape[-1]]
            allowed[0, : len(bits)] = torch.from_numpy(bits).bool()
        return scores.masked_fill(~allowed, float("-inf"))


def _device(name: str) -> Any:
    """The torch device of this name; without a name the first GPU, else the CPU. Raises UsageError
    for another name."""
    import torch

    gpus = torch.cuda.device_count()
    if name not in ("", "cpu", *(f"cuda:{number}" for number in range(gpus))):
        raise errors.UsageError(f"{DEVICE} is {name!r}; write cpu, or cuda:N with N below {gpus}")
    return torch.device(name or ("cuda:0" if gpus else "cpu"))
