"""The transformers backend, with models of random weights that are built on the spot."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from judge.backends.base import Call, Completion, Mode, Origin
from judge.backends.transformers import TransformersBackend
from judge.errors import BackendError, BadRequest, ContextExceeded, Denied, UsageError
from judge.inference import attention, checkpoint, memory, proving
from judge.inference import engine as engines
from judge.inference.engine import Engine
from judge.inference.jobs import Job
from judge.inference.model import LoadedModel
from judge.inference.turns import Turns
from tests.inference import tiny

FIXTURES = Path(__file__).parents[2] / "fixtures"
STORIES = [f"Story {n}. " + f"Ann told Bob that apple {n} was best. " * 12 for n in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(
        tmp_path_factory.mktemp("models") / "tiny", favour=[" Yes", " No", "Yes", "No"]
    )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine of the test's own, whose models change places at once."""
    # A batch begins without what was announced after 50 times this: a machine that stands still
    # for a moment must not cut one short.
    monkeypatch.setattr(engines, "GATHERING_SECONDS", 0.1)
    made = Engine(Turns(patience=0.01))
    monkeypatch.setattr(engines, "engine_of", lambda device: made)
    return made


@pytest.fixture
def backend(folder: Path, engine: Engine) -> Iterator[TransformersBackend]:
    made = TransformersBackend(str(folder))
    yield made
    asyncio.run(made.aclose())
    assert engine._loaded is None


def call(text: str, record: str = "", **more: Any) -> Call:
    system = {"role": "system", "content": "Judge only what the material says."}
    messages = [system, {"role": "user", "content": text}]
    return Call(messages, origin=Origin(record=record), **more)  # type: ignore[arg-type]


def questions(**more: Any) -> list[Call]:
    reading = {"max_tokens": 1, "logprobs": 20, **more}
    return [
        call(f"{story}\n\nIs {n} so? Answer Yes or No.", f"s{place}", **reading)
        for place, story in enumerate(STORIES)
        for n in range(5)
    ]


def ask(backend: TransformersBackend, *calls: Call) -> list[Completion]:
    async def asked() -> list[Completion]:
        return list(await asyncio.gather(*(backend.complete(c, Mode.JSON_SCHEMA) for c in calls)))

    return asyncio.run(asked())


def work(engine: Engine) -> Any:
    assert engine._loaded is not None
    return engine._loaded[1].model.work


def test_questions_of_many_records_are_one_batch_and_read_as_alone(
    backend: TransformersBackend, engine: Engine, folder: Path
) -> None:
    calls = questions()
    together = ask(backend, *calls)
    done = work(engine)
    assert done.passes <= 2
    assert done.tokens == sum(c.input_tokens - (c.cached_tokens or 0) for c in together)
    assert done.tokens < sum(c.input_tokens for c in together) / 3
    chosen = range(0, len(calls), 7)
    for number in chosen:
        # Without a record nothing is held: the prompt goes through the model whole.
        (alone,) = ask(
            backend, call(calls[number].messages[1]["content"], max_tokens=1, logprobs=20)
        )
        assert alone.cached_tokens == 0
        known, found = (dict(one.first_token or ()) for one in (alone, together[number]))
        assert known == pytest.approx(found, abs=1e-4)
        assert len(alone.first_token or ()) == 20


def test_identity_names_what_answers_depend_on(
    backend: TransformersBackend, folder: Path, tmp_path: Path
) -> None:
    known = dict(backend.identity())
    assert known["provider"] == "transformers"
    assert known["model"] == folder.name
    assert known["numbers"] == "float32"
    assert known["device"] == "cpu"
    assert f"torch/{torch.__version__}" in known["engine"]
    assert (backend.seeded, backend.reading, backend.slots) == (True, "probability", 32)
    other = TransformersBackend(str(tiny.save(tmp_path / folder.name, seed=1)))
    assert {k for k in known if known[k] != other.identity()[k]} == {"sha256"}


def test_a_model_of_the_hub_goes_by_its_name_there(
    folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A snapshot's folder is called by the hash of its commit.
    monkeypatch.setattr(checkpoint, "_cached", lambda name: folder)
    found = TransformersBackend("made-up/model").identity()
    assert (found["model"], folder.name) == ("made-up/model", "tiny")


def test_two_models_take_turns_and_all_is_done(
    folder: Path, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[int] = []
    load = TransformersBackend._load

    def counted(self: TransformersBackend) -> Any:
        assert engine._loaded is None
        made = load(self)
        alive.append(sum(torch.is_tensor(one) and one.shape == (448, 64) for one in _tensors()))
        return made

    monkeypatch.setattr(TransformersBackend, "_load", counted)
    steering = TransformersBackend(str(folder))
    accepting = TransformersBackend(str(tiny.save(tmp_path / "other", seed=1)))

    async def judged(one: Call) -> tuple[Completion, Completion]:
        first = await steering.complete(one, Mode.JSON_SCHEMA)
        return first, await accepting.complete(one, Mode.JSON_SCHEMA)

    async def run() -> list[tuple[Completion, Completion]]:
        try:
            return list(await asyncio.gather(*map(judged, questions())))
        finally:
            await steering.aclose()
            await accepting.aclose()

    done = asyncio.run(run())
    assert len(done) == 30
    assert all(one.first_token != other.first_token for one, other in done)
    assert len(engine.loads) == 2, "every call of the first was served before the second came"
    assert alive == [alive[0]] * 2, "the first model's weights were gone when the second came"


def _tensors() -> Iterator[Any]:
    import gc

    gc.collect()
    return (one for one in gc.get_objects() if isinstance(one, torch.nn.Parameter))


def test_a_model_that_does_not_fit_is_refused_with_the_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = memory.Space("cuda:0 (NVIDIA H200)", free=3 << 20, total=139 << 30)
    monkeypatch.setattr(memory, "space_of", lambda device: short)
    with pytest.raises(UsageError) as refused:
        TransformersBackend(str(folder))
    told = str(refused.value)
    for part in (
        "does not fit on cuda:0 (NVIDIA H200)",
        "139.00 GiB",
        "0.00 GiB are free",
        "6.95 GiB",
    ):
        assert part in told


def test_needs_are_those_of_the_files_and_the_configuration(backend: TransformersBackend) -> None:
    wanted = memory.needs(backend._checkpoint.shape, backend._checkpoint.weight_bytes(2), 2)
    assert wanted.weights == 2 * sum(p.numel() for p in tiny.model().parameters())
    assert wanted.kept == 2 * 2 * 2 * 16 * 2
    halved = memory.fit("m", wanted, memory.Space("cuda:0", 1 << 26, 1 << 26))
    whole = memory.fit("m", wanted, memory.Space("cuda:0", 1 << 40, 1 << 40))
    assert memory.LEAST_TOKENS <= halved.batch_tokens < whole.batch_tokens == memory.MOST_TOKENS
    assert halved.kept_tokens < whole.kept_tokens


def test_whoever_leaves_while_its_model_is_loaded_waits_until_it_is_gone(engine: Engine) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load() -> Any:
        begun.set()
        assert go_on.wait(60)
        raise MemoryError("no room")

    told: list[Any] = []
    engine.seat("other", load)
    engine.seat("leaving", load)
    engine.announce("leaving")
    engine.submit("leaving", Job([1], told.append))
    assert begun.wait(60)
    leaving = threading.Thread(target=engine.leave, args=("leaving",))
    leaving.start()
    leaving.join(0.2)
    assert leaving.is_alive(), "its memory is not free yet"
    go_on.set()
    leaving.join(60)
    assert not leaving.is_alive() and isinstance(told[0], engines.LoadFailed)
    engine.leave("other")


def test_half_a_surrogate_pair_is_a_bad_request(backend: TransformersBackend) -> None:
    with pytest.raises(BadRequest, match="half of a surrogate pair"):
        ask(backend, call("a \ud800 b"))


def test_space_taken_since_the_beginning_ends_the_run(
    backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "space_of", lambda device: memory.Space("cpu", 5, 10))
    with pytest.raises(Denied, match="does not fit on cpu"):
        ask(backend, call("Hello"))
    monkeypatch.undo()


def test_out_of_memory_halves_the_batch_down_to_the_call_that_is_too_large(
    backend: TransformersBackend, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    forward = LoadedModel._prompted

    def short(self: LoadedModel, layout: Any, attending: Any) -> torch.Tensor:
        seen.append(len(layout.tokens))
        if len(layout.tokens) > 700:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, layout, attending)

    calls = questions()
    known = ask(backend, *calls)
    monkeypatch.setattr(LoadedModel, "_prompted", short)
    backend_again = [
        call(c.messages[1]["content"], f"x{n // 5}", max_tokens=1, logprobs=20)
        for n, c in enumerate(calls)
    ]
    found = ask(backend, *backend_again)
    assert max(seen) > 700 and seen[-1] <= 700
    for one, other in zip(known, found, strict=True):
        assert dict(one.first_token or ()) == pytest.approx(dict(other.first_token or ()), abs=1e-4)
    with pytest.raises(BadRequest, match="memory ran out"):
        ask(backend, call("word " * 400))


def test_a_kernel_that_aligns_otherwise_is_found_out_at_loading(
    backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's own attention does where it calls the first query the first key's."""
    alone = attention.PackedPrompts._one_by_one

    def misaligned(self: Any, asked: attention.Asked) -> Any:
        moved = replace(asked, key=asked.key.roll(1, 2), value=asked.value.roll(1, 2))
        return alone(self, moved)

    monkeypatch.setattr(attention.PackedPrompts, "_one_by_one", misaligned)
    with pytest.raises(Denied, match="from the library's own"):
        ask(backend, call("Hello"))


def test_layers_that_carry_a_state_are_refused(
    backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proving, "_KNOWN_LAYERS", {"sliding_attention"})
    config = type(tiny.model("qwen").config)
    assert "layer_types" in config(num_hidden_layers=1).to_dict()
    model = tiny.model("qwen")
    with pytest.raises(proving.CannotPack, match="full_attention"):
        proving.prove(None, model)  # type: ignore[arg-type]


def test_prompts_beyond_the_context_are_refused(backend: TransformersBackend) -> None:
    with pytest.raises(ContextExceeded, match="the model's context 2048"):
        ask(backend, call("word " * 3000))


def test_a_cancelled_reply_is_dropped_and_the_next_is_answered(
    backend: TransformersBackend, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(backend, call("Hello", max_tokens=1))
    forward, passes = LoadedModel._forward, itertools.count(1)
    begun, cancelled = threading.Event(), threading.Event()

    def held_up(self: LoadedModel, *given: Any) -> torch.Tensor:
        if next(passes) == 3:
            begun.set()
            assert cancelled.wait(60)
        return forward(self, *given)

    monkeypatch.setattr(LoadedModel, "_forward", held_up)

    async def run() -> Completion:
        endless = call("Write.", schema={"type": "string", "minLength": 1500}, max_tokens=1900)
        task = asyncio.create_task(backend.complete(endless, Mode.JSON_SCHEMA))
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        found = await backend.complete(call("Hello", max_tokens=1), Mode.JSON_SCHEMA)
        assert work(engine).written < 1500
        return found

    assert asyncio.run(run()).output_tokens == 1


def test_only_schemas_are_taken(backend: TransformersBackend) -> None:
    with pytest.raises(BackendError, match="JSON schemas only"):
        asyncio.run(backend.complete(call("Hello", schema={"type": "object"}), Mode.TOOLS))


def test_what_is_no_model_is_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(UsageError, match=r"hf download made-up/model.*JUDGE_HF_DOWNLOAD=1"):
        TransformersBackend("made-up/model")
    with pytest.raises(UsageError, match=r"no config\.json"):
        TransformersBackend(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"no \*\.safetensors"):
        TransformersBackend(str(tmp_path))


@pytest.mark.parametrize("device", ["gpu", "cuda:7", "cuda:x"])
def test_a_device_that_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setenv("JUDGE_TORCH_DEVICE", device)
    with pytest.raises(UsageError, match="JUDGE_TORCH_DEVICE"):
        TransformersBackend(str(folder))


@pytest.mark.slow
def test_the_command_judges_with_it(folder: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUDGE_")}
    env = {**kept, "JUDGE_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    words = ["validate", str(FIXTURES / "norms.jsonl"), "-m", f"transformers:{folder}"]
    words += ["--limit", "3", "--check", "relevance", "--rounds", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "judge", *words],
        capture_output=True,
        cwd=tmp_path,
        env=env,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"leaked" not in done.stderr and b"Loading" not in done.stderr
    lines = [json.loads(line)["judge"] for line in done.stdout.splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert line["verdict"] in ("pass", "fail")
        (check,) = line["checks"]
        assert 0 < check["probability"] < 1
