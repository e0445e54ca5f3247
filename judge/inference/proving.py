"""Whether a model that was just loaded reads packed prompts as the library reads them alone.

Layers that carry a state from token to token, or look at tokens in a way of their own, would mix
what lies packed in one row, and nobody would be told. So would a kernel that aligns differently.
"""

from __future__ import annotations

from typing import Any

from judge.inference import attention
from judge.inference.jobs import Answer, Job
from judge.inference.model import LoadedModel, Work

_KNOWN_LAYERS = {"full_attention", "sliding_attention"}
_SHARED, _OWN = 48, 8
_CLOSE_IN_32_BITS = 1e-3
_CLOSE_IN_16_BITS = 0.1
"""The largest difference of a probability. Measured: 2e-6 in 32 bits; in 16 bits such prompts,
which are no language, may move by some hundredths."""


class CannotPack(Exception):
    """The model does not read packed prompts as it reads them alone."""


def prove(loaded: LoadedModel, model: Any) -> None:
    """Compare two prompts that begin alike, packed, with each alone under the library's attention.

    Raises:
        CannotPack: they differ, or the model has layers that are not known to be packable.
    """
    import torch

    layers = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if unknown := sorted(layers - _KNOWN_LAYERS):
        raise CannotPack(f"its layers of the kind {unknown[0]} cannot take packed prompts")
    width = model.config.get_text_config().vocab_size
    beginning = [(7 * place + 3) % width for place in range(_SHARED)]
    prompts = [[*beginning, *((11 * n + start) % width for n in range(_OWN))] for start in (5, 9)]
    packed = loaded.answers([Job(p, lambda outcome: None, alternatives=10) for p in prompts])
    loaded.work = Work()
    close = _CLOSE_IN_32_BITS if model.dtype == torch.float32 else _CLOSE_IN_16_BITS
    for tokens, found in zip(prompts, packed, strict=True):
        if not isinstance(found, Answer):
            raise CannotPack(str(found))
        most = _apart(found, _alone(model, tokens))
        # Written so that a difference that is no number counts as too large.
        if not most <= close:
            raise CannotPack(
                f"a probability read from packed prompts is {most:.4f} from the library's own; at "
                f"most {close} is allowed"
            )


def _apart(found: Answer, known: Any) -> float:
    import torch

    tokens = [token for token, _ in found.listed]
    chances = torch.tensor([chance for _, chance in found.listed]).exp()
    return float((chances - known[tokens]).abs().max())


def _alone(model: Any, tokens: list[int]) -> Any:
    """The library's probabilities after one prompt."""
    import torch

    model.set_attn_implementation("sdpa")
    try:
        with torch.inference_mode():
            row = torch.tensor([tokens], device=model.device)
            logits = model(input_ids=row, use_cache=False, logits_to_keep=1).logits[0, -1]
    finally:
        model.set_attn_implementation(attention.NAME)
    return torch.softmax(logits.float(), -1).cpu()
