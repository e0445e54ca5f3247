"""Small models for llama.cpp: random numbers that decide, the lowest layers of another model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, LAYERS, HEADS = 32, 64, 2, 4
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = [*map(chr, _PRINTED), *(chr(256 + n) for n in range(256 - len(_PRINTED)))]
_TOKENS = [*_BYTES, "Ye", "Yes", "No", "ye", "yes", "no"]
_MERGES = ["Y e", "Ye s", "N o", "y e", "ye s", "n o"]


def decision_model(file: Path, seed: int = 0) -> Path:
    """A GGUF of some 100 kB that answers yes-no questions, choices and scores by chance."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(file, "qwen2")
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*_TOKENS, "<|start|>", "<|end|>"])
    writer.add_token_types([1] * len(_TOKENS) + [3, 3])
    writer.add_token_merges(_MERGES)
    writer.add_eos_token_id(len(_TOKENS) + 1)
    writer.add_string("qwen2.decision.type", "lfm2-d1")
    writer.add_string(
        "tokenizer.chat_template.systemone", "{{ state | tojson }} {{ instructions }} "
    )

    def drawn(name: str, *shape: int) -> None:
        writer.add_tensor(name, rng.normal(0, 0.3, shape).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    vocabulary = len(_TOKENS) + 2
    drawn("token_embd.weight", vocabulary, WIDTH)
    drawn("output.weight", vocabulary, WIDTH)
    ones("output_norm.weight")
    for layer in (f"blk.{n}" for n in range(LAYERS)):
        ones(f"{layer}.attn_norm.weight")
        ones(f"{layer}.ffn_norm.weight")
        for part in "qkv":
            drawn(f"{layer}.attn_{part}.weight", WIDTH, WIDTH)
            drawn(f"{layer}.attn_{part}.bias", WIDTH)
        drawn(f"{layer}.attn_output.weight", WIDTH, WIDTH)
        drawn(f"{layer}.ffn_gate.weight", INNER, WIDTH)
        drawn(f"{layer}.ffn_up.weight", INNER, WIDTH)
        drawn(f"{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def shallow(weights: Path, file: Path, layers: int = 2) -> Path:
    """The lowest layers of a model: it writes nothing sensible, and still reads words."""
    reader = gguf.GGUFReader(weights)
    architecture = str(reader.fields["general.architecture"].contents())
    writer = gguf.GGUFWriter(file, architecture)
    written = {f"{architecture}.block_count": layers}
    for name, field in reader.fields.items():
        if not name.startswith(("GGUF.", "general.architecture")):
            kind, *_, part = (*field.types, field.types[-1])
            value = written.get(name, field.contents())
            writer.add_key_value(name, value, kind, part if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        part, number, *_ = tensor.name.split(".")
        if part != "blk" or int(number) < layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
