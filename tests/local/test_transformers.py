"""The transformers backend, with a model of random weights that is built on the spot."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import BaseModel, ConfigDict, Field

from judge.backends.base import Call, Completion, Message, Mode, Origin, unpacked
from judge.errors import BadRequest, ContextExceeded, Denied, UsageError
from judge.local import transformers as backends
from judge.local.chat_template import prompt_tokens
from judge.local.transformers import TransformersBackend

from . import tiny

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"
STORIES = [f"Story {n}. " + f"Ann told Bob that apple {n} was best. " * (4 + n) for n in range(6)]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: str = Field(pattern="^(yes|no)$")
    reason: str = Field(max_length=8)
    number: int = Field(ge=0, le=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(
        tmp_path_factory.mktemp("models") / "tiny", favour=[" Yes", " No", "Yes", "No"]
    )


@pytest.fixture
def backend(folder: Path) -> Iterator[TransformersBackend]:
    made = TransformersBackend(str(folder))
    yield made
    asyncio.run(made.aclose())


def call(text: str, record: str = "", **more: Any) -> Call:
    system = {"role": "system", "content": "Judge only what the material says."}
    messages = [system, {"role": "user", "content": text}]
    return Call(messages, origin=Origin(record=record), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro two(n) %}{% if n %}{{ two(n - 1) }}{{ two(n - 1) }}{% endif %}{% endmacro %}"
        "{{ two(60) }}",
        "{% for a in messages[1].content %}{% for b in messages[1].content %}{{ a }}"
        "{% endfor %}{% endfor %}",
    ],
    ids=["loops", "calls", "over the text"],
)
def test_a_template_without_end_ends_the_run(folder: Path, tmp_path: Path, template: str) -> None:
    endless = shutil.copytree(folder, tmp_path / "endless")
    for name in ("chat_template.jinja", "chat_template.json"):
        (endless / name).unlink(missing_ok=True)
    (endless / "chat_template.jinja").write_text(template)
    backend = TransformersBackend(str(endless))

    async def asked() -> None:
        try:
            await backend.complete(call("word " * 200, max_tokens=1), Mode.JSON_SCHEMA)
        finally:
            await backend.aclose()

    with pytest.raises(Denied, match="the chat template takes more than 100,000 steps"):
        asyncio.run(asked())


@pytest.mark.parametrize(
    "beginning",
    [
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{% for m in messages %}",
        "{% for m in messages if m.role != 'system' %}",
    ],
    ids=["refused", "dropped"],
)
def test_a_system_message_that_the_template_does_not_take_begins_the_users(
    folder: Path, beginning: str
) -> None:
    from transformers import AutoTokenizer

    words: Any = AutoTokenizer.from_pretrained(folder)
    words.chat_template = f"{beginning}[{{{{ m.role }}}}] {{{{ m.content }}}} {{% endfor %}}"
    asked: list[Message] = [
        {"role": "system", "content": "Be fair."},
        {"role": "user", "content": "Is it so?"},
        {"role": "assistant", "content": "Yes"},
    ]
    text = words.decode(prompt_tokens(words, asked))
    assert text.strip() == "[user] Be fair.\nIs it so? [assistant] Yes", "as in llama.cpp"


def questions(**more: Any) -> list[Call]:
    method = {"max_tokens": 1, "logprobs": 20, **more}
    return [
        call(f"{story}\n\nIs {n} so? Answer Yes or No.", f"s{place}", **method)
        for place, story in enumerate(STORIES)
        for n in range(5)
    ]


def ask(backend: TransformersBackend, *calls: Call) -> list[Completion]:
    async def asked() -> list[Completion]:
        return list(await asyncio.gather(*(backend.complete(c, Mode.JSON_SCHEMA) for c in calls)))

    return asyncio.run(asked())


class Library:
    """Model and tokenizer of a folder, as the library itself loads them."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.words: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder)

    def row(self, one: Call) -> torch.Tensor:
        """A prompt's tokens."""
        messages = list(one.messages)
        text = self.words.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return torch.tensor([self.words(text, add_special_tokens=False)["input_ids"]])


def test_questions_are_answered_as_by_the_library_alone(
    backend: TransformersBackend, folder: Path
) -> None:
    """Prompts of several lengths."""
    calls = [*questions(), call("Alone.", max_tokens=1, logprobs=20)]
    together = ask(backend, *calls)
    library = Library(folder)
    for number in (*range(0, 30, 7), 30):
        with torch.inference_mode():
            known = library.model(library.row(calls[number])).logits[0, -1].log_softmax(-1).topk(20)
        texts = [library.words.decode([token]) for token in known.indices.tolist()]
        expected = dict(zip(texts, known.values.tolist(), strict=True))
        assert dict(together[number].first_token or ()) == pytest.approx(expected, abs=1e-4)


def test_a_probability_does_not_depend_on_what_was_asked_before(
    backend: TransformersBackend,
) -> None:
    """docs/engines/transformers.md says so."""
    calls = questions()
    known = ask(backend, *calls)
    assert known and all(completion.first_token for completion in known)
    assert ask(backend, *reversed(calls)) == known[::-1]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_replies_follow_their_schema_every_time(
    backend: TransformersBackend, temperature: float
) -> None:
    schema = {"schema": Answer.model_json_schema(), "temperature": temperature}
    replies = ask(backend, *questions(**schema, max_tokens=120)[::3])
    assert len(replies) > 1
    for found in replies:
        assert found.finish_reason == "stop"
        Answer.model_validate_json(found.text)


def test_a_schema_that_cannot_be_followed_fails_alone(backend: TransformersBackend) -> None:
    async def asked() -> list[Any]:
        calls = (call("Hello", schema={"type": "nothing"}), call("Hello", max_tokens=1))
        replies = (backend.complete(one, Mode.JSON_SCHEMA) for one in calls)
        return list(await asyncio.gather(*replies, return_exceptions=True))

    wrong, right = asyncio.run(asked())
    assert isinstance(wrong, BadRequest) and isinstance(right, Completion)


def test_a_seed_draws_the_same_reply_in_any_order(backend: TransformersBackend) -> None:
    asked = [
        call(f"Write {n}.", f"r{n % 2}", temperature=1.0, seed=n, max_tokens=15) for n in range(6)
    ]
    together = [one.text for one in ask(backend, *asked)]
    alone = [ask(backend, one)[0].text for one in reversed(asked)]
    assert together == alone[::-1]
    other = call("Write 0.", "r0", temperature=1.0, seed=99, max_tokens=15)
    assert ask(backend, other)[0].text != together[0]


def test_greedy_replies_are_the_librarys_own(backend: TransformersBackend, folder: Path) -> None:
    asked = [call(f"{story} Write.", "r", max_tokens=12) for story in STORIES]
    found = ask(backend, *asked)
    library = Library(folder)
    assert len(found) == len(STORIES) > 1
    for one, completion in zip(asked, found, strict=True):
        row = library.row(one)
        known = library.model.generate(row, do_sample=False, max_new_tokens=12)[0, row.shape[1] :]
        assert completion.text == library.words.decode(known, skip_special_tokens=True)
        assert completion.output_tokens == sum(token != 1 for token in known.tolist())
        assert completion.finish_reason == ("stop" if 1 in known.tolist() else "length")


def test_hidden_states_are_those_of_the_last_token_alone(
    backend: TransformersBackend, folder: Path
) -> None:
    assert backend.gives_states
    calls = [one for one in questions() if one.origin.record in ("s0", "s5")]

    async def asked(layer: int) -> list[Completion]:
        states = [replace(one, schema=None, layer=layer, max_tokens=1) for one in calls[:2]]
        every = (backend.complete(one, Mode.JSON_SCHEMA) for one in (*states, *calls[2:]))
        return list(await asyncio.gather(*every))

    library = Library(folder)
    for layer in (-1, 1):
        for one, completion in zip(calls, asyncio.run(asked(layer))[:2], strict=False):
            with torch.inference_mode():
                assert completion.input_tokens == library.row(one).shape[1]
                known = library.model(library.row(one), output_hidden_states=True).hidden_states
            state = torch.tensor(unpacked(completion.text, "e"))
            assert torch.allclose(state, known[layer][0, -1], atol=1e-4, rtol=1e-3)


def test_identity_names_what_answers_depend_on(
    backend: TransformersBackend, folder: Path, tmp_path: Path
) -> None:
    known = dict(backend.identity())
    assert (known["provider"], known["model"]) == ("transformers", folder.name)
    on_gpu = torch.cuda.is_available()
    where = ("as in the checkpoint", torch.cuda.get_device_name()) if on_gpu else ("float32", "cpu")
    assert (known["numbers"], known["device"]) == where
    assert f"torch/{torch.__version__}" in known["engine"]
    assert (backend.seeded, backend.method, backend.slots) == (True, "logprobs", 1)
    other = TransformersBackend(str(tiny.save(tmp_path / folder.name, seed=1)))
    assert {k for k in known if known[k] != other.identity()[k]} == {"sha256"}


def test_a_call_that_is_too_large_for_the_memory_fails_alone(
    backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(backend, call("Hello", max_tokens=1))

    def short(**_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(backend._engine.model, "generate", short)
    with pytest.raises(BadRequest, match="out of memory"):
        ask(backend, call("Hello", max_tokens=1))
    monkeypatch.undo()
    assert ask(backend, call("Hello", max_tokens=1))


def test_a_cancelled_reply_is_dropped_and_the_next_is_answered(
    backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, begun, cancelled = itertools.count(1), threading.Event(), threading.Event()
    rule_out = backends._Grammar.__call__

    def held_up(self: Any, ids: Any, scores: Any) -> Any:
        if next(tokens) == 3:
            begun.set()
            assert cancelled.wait(60)
        return rule_out(self, ids, scores)

    monkeypatch.setattr(backends._Grammar, "__call__", held_up)

    async def run() -> Completion:
        endless = call("Write.", schema={"type": "string", "minLength": 1500}, max_tokens=1900)
        task = asyncio.create_task(backend.complete(endless, Mode.JSON_SCHEMA))
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        return await backend.complete(call("Hello", max_tokens=1), Mode.JSON_SCHEMA)

    assert asyncio.run(run()).output_tokens == 1
    assert next(tokens) < 1500


def test_what_cannot_be_asked_is_refused(backend: TransformersBackend) -> None:
    with pytest.raises(ContextExceeded, match="the model's context 2048"):
        ask(backend, call("word " * 3000))
    with pytest.raises(BadRequest, match="lone surrogate"):
        ask(backend, call("a \ud800 b"))


def test_what_is_no_model_is_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(UsageError, match=r"hf download made-up/model"):
        TransformersBackend("made-up/model")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"no \*\.safetensors"):
        TransformersBackend(str(tmp_path))


def test_weights_that_are_missing_are_not_drawn_at_random(folder: Path, tmp_path: Path) -> None:
    """As of an encoder or a reward model, whose files have no head for words."""
    from safetensors.torch import load_file, save_file

    bare = shutil.copytree(folder, tmp_path / "bare")
    weights = load_file(bare / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, bare / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(Denied, match=r"they lack 1 of its weights, such as lm_head\.weight"):
        ask(TransformersBackend(str(bare)), call("Hello", max_tokens=1))


def test_a_device_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for device in ("gpu", "cuda:7"):
        monkeypatch.setenv("JUDGE_TORCH_DEVICE", device)
        with pytest.raises(UsageError, match="JUDGE_TORCH_DEVICE"):
            TransformersBackend(str(folder))
