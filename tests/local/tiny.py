"""A model of random weights with a tokenizer and a chat template, built on the spot in a second."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# Threads of several test processes would wait for one another.
torch.set_num_threads(1)

LINES = (
    "It is polite to greet a guest. Ann told Bob that the best apple of all was hers.",
    "Does the story revolve around the rule of thumb? Answer Yes or No.",
    '{"quote": null, "reason": "Nobody greets.", "answer": "no"} yes Yes No 0 1 2 3 4 5 6 7 8 9',
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level pairs, trained on a few lines: every text can be written."""
    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(LINES * 8, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=bare, eos_token="<|im_end|>")
    made.chat_template = TEMPLATE
    return made


def model(seed: int = 0) -> Any:
    """Two layers, groups of two query heads, weights drawn wide, so that tokens differ."""
    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=448,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.2,
        eos_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(shape)


def save(folder: Path, *, seed: int = 0, favour: Iterable[str] = ()) -> Path:
    """A folder as the hub has them; `favour` makes words likely, wherever they could stand."""
    words, made = tokenizer(), model(seed)
    for word in favour:
        # Rows of the output are tied to nothing: a word is likely where its row is long.
        (token,) = words(word, add_special_tokens=False)["input_ids"]
        made.lm_head.weight.data[token] *= 4
    made.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
