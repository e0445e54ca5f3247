"""Records per minute of the embedded judge, by method, for short and for long records.

    python bench/local_judge.py [--model local:qwen2.5-coder-1.5b] [--records 5]

Each method judges the same records without a cache: one first-token question, five of them (the
later ones reuse the record's evaluation), the hidden state that a probe reads (the prompt is
evaluated anew), both, and a typed reply. Tokens are those that the engine evaluated.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

from judge.backends import factory
from judge.backends.base import parse_model
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.questions.from_flags import rubrics_from_flags
from judge.records import Record

SENTENCE = (
    "Number {n}: Ann wrote to the landlord about the roof and asked for an answer by Monday. "
)
LENGTHS = {"short (40 words)": 2, "long (700 words)": 40}
QUESTIONS = ("polite", "clear", "urgent", "friendly", "formal")


def record(number: int, sentences: int) -> Record:
    text = "".join(SENTENCE.format(n=f"{number}.{k}") for k in range(sentences))
    return Record("bench", number, {"text": text})


def judges(client: Client) -> list[Judge]:
    asked = (rubrics_from_flags(f"Is this text {word}?", ["text"])[0] for word in QUESTIONS)
    return [Judge(rubric, client, "logprobs") for rubric in asked]


async def timed(
    client: Client, work: Callable[[Record], Awaitable[object]], records: int, sentences: int
) -> tuple[float, int, float]:
    """Records per minute, tokens evaluated, seconds per record; the first one is not counted."""
    await work(record(-1, sentences))
    before, started = client.counters.input_tokens - client.counters.cached_tokens, time.monotonic()
    for number in range(records):
        await work(record(number, sentences))
    seconds = time.monotonic() - started
    read = client.counters.input_tokens - client.counters.cached_tokens - before
    return 60 * records / seconds, read, seconds / records


async def run(model: str, records: int) -> None:
    print(f"{model}, {records} records each")
    print(f"{'record':18} {'method':26} {'a minute':>9} {'s each':>7} {'tokens each':>12}")
    for length, sentences in LENGTHS.items():
        for name in ("first token", "5 first tokens", "probe", "probe and 5 first tokens", "typed"):
            backend = factory(model)(parse_model(model)[1])
            client = Client(model, backend, cache=None, budget=Budget(), limit=1)
            one, *others = judges(client)
            typed = Judge(one.rubric, client, "structured")

            async def work(
                about: Record,
                name: str = name,
                one: Judge = one,
                typed: Judge = typed,
                others: list[Judge] = others,
            ) -> None:
                if name == "typed":
                    await typed.vote(about)
                    return
                if name.startswith("probe"):
                    await one.observer.state(about, 0, one.call(about))
                if name != "probe":
                    asked = [one, *others] if "5" in name else [one]
                    for judge in asked:
                        await judge.observer.observe(about, 0, judge.call(about), (0,))

            try:
                pace, read, seconds = await timed(client, work, records, sentences)
            finally:
                await client.aclose()
            print(f"{length:18} {name:26} {pace:9.1f} {seconds:7.2f} {read / records:12.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--records", type=int, default=5)
    options = parser.parse_args()
    asyncio.run(run(options.model, options.records))


if __name__ == "__main__":
    main()
