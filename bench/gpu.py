"""Judgements a second, and how much of a card they use, with prefix reuse and without.

    python bench/gpu.py [--shape llama-3-8b] [--records 256] [--story 900] [--questions 5]
                        [--question 64] [--system 90] [--alone-records 64] [--small]

Builds a model of random weights in that shape on the card, in bfloat16; nothing is downloaded. The
prompts are tokens drawn at random: a system message that all share, a story, and a question. They
go through the engine of `transformers:` (judge/inference/), whose answers are first tokens with
their probabilities: reading only, nothing is written. The same loop runs again with every prompt
evaluated whole.

Utilisation is the arithmetic of the tokens evaluated, over what the card could do in that time:
2 x weights x tokens, the output layer for each prompt only, and attention at 4 x layers x heads x
width for each pair of tokens; the card's own figure for dense bfloat16 (PEAKS), or where it is not
in the table a matrix product measured here. Tokenization and the workflows are not in it.

--small runs a small shape on the processor, to show that all of this works. Its figures say nothing
about a card.
"""

from __future__ import annotations

import argparse
import math
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from judge.inference import attention, memory
from judge.inference.engine import Engine, Loaded
from judge.inference.held import HeldPrefixes
from judge.inference.jobs import Answer, Job
from judge.inference.model import LoadedModel, Work

UTILISATION_BAR, REUSE_BAR = 0.50, 4.0
PEAKS = {
    "H200": 989e12,
    "H100 80GB HBM3": 989e12,
    "H100 PCIe": 756e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 4090": 165e12,
}
"""Dense bfloat16 multiplications and additions a second, from the makers' data sheets."""

COLUMNS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
SHAPES = {
    "llama-3-8b": (LlamaConfig, 128_256, 4096, 14_336, 32, 32, 8, 8192),
    "qwen2.5-7b": (Qwen2Config, 152_064, 3584, 18_944, 28, 28, 4, 32_768),
    "small": (LlamaConfig, 8192, 512, 1536, 4, 8, 2, 4096),
}


@dataclass(frozen=True, slots=True)
class Material:
    """The prompts of a run: tokens of each part, and how many."""

    records: int
    questions: int
    system: int
    story: int
    question: int
    words: int

    def prompts(self, records: int, seed: int) -> list[tuple[str, list[int]]]:
        """(record, tokens) of each question."""
        fixed, draw = random.Random(0), random.Random(seed)
        system = [fixed.randrange(self.words) for _ in range(self.system)]
        found = []
        for record in range(records):
            story = [draw.randrange(self.words) for _ in range(self.story)]
            for _ in range(self.questions):
                asked = [draw.randrange(self.words) for _ in range(self.question)]
                found.append((f"{seed}.{record}", [*system, *story, *asked]))
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """A loop's seconds, what the model did in it, and the answers."""

    seconds: float
    work: Work
    answers: Sequence[Answer]


def build(shape: str, device: str, dtype: torch.dtype) -> Any:
    """A model of random weights, made on the device."""
    attention.register()
    torch.manual_seed(0)
    kind, *sizes = SHAPES[shape]
    config = kind(**dict(zip(COLUMNS, sizes, strict=True)))
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=attention.NAME
        )
    return model.eval()


def measured(
    model: Any, fit: memory.Fit, material: Material, records: int, share: bool
) -> Measured:
    """All questions of so many records, put in line at once, until the last is answered."""
    held = HeldPrefixes(memory.held_tokens(fit) if share else 0)
    loaded = LoadedModel(model, context=4096, ends=[], grammars=None, held=held, share=share)
    engine = Engine()
    engine.seat("bench", lambda: Loaded(loaded, memory.room(fit)))
    try:
        _answered(engine, material.prompts(min(8, records), seed=1))
        loaded.work = Work()
        prompts = material.prompts(records, seed=2)
        began = time.perf_counter()
        answers = _answered(engine, prompts)
        return Measured(time.perf_counter() - began, loaded.work, answers)
    finally:
        engine.leave("bench")


def _answered(engine: Engine, prompts: Sequence[tuple[str, list[int]]]) -> list[Answer]:
    found: dict[int, Answer | Exception] = {}
    all_there = threading.Event()

    def teller(number: int) -> Any:
        def tell(outcome: Answer | Exception) -> None:
            found[number] = outcome
            if len(found) == len(prompts):
                all_there.set()

        return tell

    for _ in prompts:
        engine.announce("bench")
    for number, (record, tokens) in enumerate(prompts):
        engine.submit("bench", Job(tokens, teller(number), record=record, alternatives=20))
    all_there.wait()
    answers = [found[number] for number in range(len(prompts))]
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Answer)]


def arithmetic(model: Any, work: Work) -> float:
    """Multiplications and additions that the evaluated tokens take."""
    shape = model.config
    inner = sum(p.numel() for p in model.model.layers.parameters())
    width = shape.hidden_size // shape.num_attention_heads
    looks = 4 * shape.num_hidden_layers * shape.num_attention_heads * width * work.pairs
    output = 2 * shape.hidden_size * shape.vocab_size * work.prompts
    return float(2 * inner * work.tokens + output + looks)


def product_rate(device: str, dtype: torch.dtype, size: int) -> float:
    """Multiplications and additions a second of one large matrix product, random numbers."""
    one = torch.randn(size, size, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(6):
        _settle(device)
        began = time.perf_counter()
        one @ one
        _settle(device)
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def peak_of(device: str, measured_rate: float) -> tuple[float, str]:
    """(rate, where it is from)."""
    if device != "cpu":
        name = torch.cuda.get_device_name(device)
        for known, rate in PEAKS.items():
            if known in name:
                return rate, f"{known}'s data sheet"
    return measured_rate, "the matrix product measured here"


def table(model: Any, rows: Sequence[tuple[str, Measured]], peak: float) -> list[float]:
    """Print the loops; gives their judgements a second."""
    print(f"{'loop':<22}{'judgements/s':>13}{'tokens each':>13}{'TFLOP/s':>9}{'of peak':>9}")
    rates = []
    for name, row in rows:
        rate = arithmetic(model, row.work) / row.seconds
        rates.append(row.work.prompts / row.seconds)
        each = row.work.tokens / row.work.prompts
        print(f"{name:<22}{rates[-1]:>13.1f}{each:>13.0f}{rate / 1e12:>9.2f}{rate / peak:>9.1%}")
    return rates


def _apart(one: Sequence[Answer], other: Sequence[Answer]) -> float:
    """The largest difference of a probability between two loops' answers."""
    most = 0.0
    for first, second in zip(one, other, strict=False):
        known = dict(second.listed)
        for token, chance in first.listed:
            if token in known:
                most = max(most, abs(math.exp(chance) - math.exp(known[token])))
    return most


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--shape", choices=[s for s in SHAPES if s != "small"], default="llama-3-8b"
    )
    parser.add_argument("--records", type=int, default=256)
    parser.add_argument("--alone-records", type=int, default=64, help="in the loop without reuse")
    parser.add_argument("--story", type=int, default=900, help="tokens")
    parser.add_argument("--questions", type=int, default=5, help="for each story")
    parser.add_argument("--question", type=int, default=64, help="tokens")
    parser.add_argument("--system", type=int, default=90, help="tokens")
    parser.add_argument("--small", action="store_true", help="a small shape on the processor")
    return parser.parse_args()


def main() -> None:
    chosen = _arguments()
    if not chosen.small and not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here; --small runs a small shape on the processor")
    shape = "small" if chosen.small else chosen.shape
    device, dtype = ("cpu", torch.float32) if chosen.small else ("cuda:0", torch.bfloat16)
    rate = product_rate(device, dtype, 1024 if chosen.small else 8192)
    peak, source = peak_of(device, rate)
    space = memory.space_of(device)
    model = build(shape, device, dtype)
    weights = sum(p.numel() for p in model.parameters())
    free = memory.needs(model.config, 0, dtype.itemsize)
    fit = memory.fit(shape, free, memory.space_of(device))
    records = min(chosen.records, 16) if chosen.small else chosen.records
    alone = min(chosen.alone_records, 4) if chosen.small else chosen.alone_records
    material = Material(
        records,
        chosen.questions,
        chosen.system,
        chosen.story,
        chosen.question,
        model.config.vocab_size,
    )
    kernel = "flash, differing lengths" if device != "cpu" else "one segment at a time"
    print(f"{space.device}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{shape}: {weights / 1e9:.2f} billion random weights, {dtype}; attention: {kernel}")
    print(
        f"{records} records ({alone} without reuse) of {chosen.system} + {chosen.story} tokens, "
        f"{chosen.questions} questions of {chosen.question}; up to {fit.batch_tokens} tokens a pass"
    )
    print(f"peak {peak / 1e12:.1f} TFLOP/s ({source}); matrix product {rate / 1e12:.1f} TFLOP/s\n")
    with_reuse = measured(model, fit, material, records, share=True)
    without = measured(model, fit, material, alone, share=False)
    rates = table(model, [("prefix reuse", with_reuse), ("every prompt whole", without)], peak)
    used = arithmetic(model, with_reuse.work) / with_reuse.seconds / peak
    print(
        f"\nlargest difference of a probability: {_apart(without.answers, with_reuse.answers):.1e}"
    )
    print(f"utilisation {used:.1%}, bar {UTILISATION_BAR:.0%}: {_bar(used, UTILISATION_BAR)}")
    times = rates[0] / rates[1]
    print(f"reuse {times:.2f} times, bar {REUSE_BAR:g}: {_bar(times, REUSE_BAR)}")
    if chosen.small:
        print("The bars are for one H200 in bfloat16: NOT MEASURED ON A GPU.")


def _bar(value: float, least: float) -> str:
    return "met" if value >= least else "missed"


if __name__ == "__main__":
    main()
