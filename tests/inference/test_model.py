"""Batches through a small model: the same as prompts one by one, with less work."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
import torch
from pydantic import BaseModel, ConfigDict, Field

from judge.inference import attention
from judge.inference.attention import PackedPrompts
from judge.inference.decoding import BadSchema, Grammars
from judge.inference.held import HeldPrefixes
from judge.inference.jobs import Answer, Job
from judge.inference.model import LoadedModel
from judge.replies import JUDGING_REPLIES

from . import tiny


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: str = Field(pattern="^(yes|no)$")
    reason: str = Field(max_length=8)
    number: int = Field(ge=0, le=12)


def loaded(model: Any, *, hold: int = 0, share: bool = True) -> LoadedModel:
    attention.register()
    model.set_attn_implementation(attention.NAME)
    grammars = Grammars(tiny.tokenizer(), 448, [1])
    return LoadedModel(
        model.eval(),
        context=2048,
        ends=[1],
        grammars=grammars,
        held=HeldPrefixes(hold),
        share=share,
    )


def prompts(stories: int = 3, questions: int = 4, seed: int = 0) -> list[tuple[str, list[int]]]:
    """(record, tokens), with a system message that all share and stories of differing lengths."""
    draw = random.Random(seed)
    system = [draw.randrange(2, 400) for _ in range(20)]
    found = []
    for story in range(stories):
        text = [draw.randrange(2, 400) for _ in range(draw.randrange(40, 90))]
        for _ in range(questions):
            asked = [draw.randrange(2, 400) for _ in range(draw.randrange(3, 12))]
            found.append((f"r{story}", [*system, *text, *asked]))
    return found


def answer(model: LoadedModel, jobs: list[Job]) -> list[Answer]:
    answers = model.answers(jobs)
    assert all(isinstance(one, Answer) for one in answers), answers
    return [one for one in answers if isinstance(one, Answer)]


def job(record: str, tokens: list[int], **more: Any) -> Job:
    return Job(tokens, lambda outcome: None, record=record, **{"alternatives": 20, **more})


def plain(kind: str, tokens: list[int], window: int | None) -> torch.Tensor:
    """The library's own forward pass over one prompt alone."""
    model = tiny.model(kind, window=window).eval()
    with torch.inference_mode():
        return torch.log_softmax(model(torch.tensor([tokens])).logits[0, -1], -1)


@pytest.mark.parametrize(("kind", "window"), [("llama", None), ("qwen", None), ("qwen", 32)])
def test_probabilities_are_those_of_prompts_one_by_one(kind: str, window: int | None) -> None:
    model = loaded(tiny.model(kind, window=window))
    asked = prompts()
    answers = answer(model, [job(*one) for one in asked])
    assert model.work.passes == 1
    for (_, tokens), found in zip(asked, answers, strict=True):
        alone = plain(kind, tokens, window)
        listed = torch.tensor([chance for _, chance in found.listed])
        assert torch.allclose(listed, alone[[token for token, _ in found.listed]], atol=1e-4)
        assert torch.allclose(listed, alone.topk(20).values, atol=1e-4)


def test_a_probability_hardly_depends_on_what_is_in_the_batch() -> None:
    """docs/engines/transformers.md quotes the bound."""
    asked, net = prompts(stories=16, questions=5), tiny.model()
    known = answer(loaded(net), [job(*one) for one in asked])
    draw = random.Random(1)
    for size, hold, share in ((7, 0, True), (30, 5000, True), (1, 5000, True), (80, 0, False)):
        model, order = loaded(net, hold=hold, share=share), list(range(len(asked)))
        draw.shuffle(order)
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            for number, found in zip(
                part, answer(model, [job(*asked[n]) for n in part]), strict=True
            ):
                alone = {token: math.exp(chance) for token, chance in known[number].listed}
                for token, chance in found.listed:
                    assert math.exp(chance) == pytest.approx(alone[token], abs=1e-5)


def test_a_shared_prefix_goes_through_the_model_once() -> None:
    model = loaded(tiny.model())
    asked = prompts(stories=3, questions=5)
    answers = answer(model, [job(*one) for one in asked])
    stories = {record: min(len(t) for r, t in asked if r == record) for record, _ in asked}
    assert model.work.tokens < 20 + sum(stories.values()) + len(asked) * 12
    whole = sum(len(tokens) for _, tokens in asked)
    assert model.work.tokens == whole - sum(found.reused for found in answers)
    apart = loaded(tiny.model(), share=False)
    answer(apart, [job(*one) for one in asked])
    assert apart.work.tokens == whole


def test_later_questions_find_their_record_held() -> None:
    model, fresh = loaded(tiny.model(), hold=1000), loaded(tiny.model())
    for number, (record, tokens) in enumerate(prompts(stories=2, questions=4)):
        before = model.work.tokens
        (found,) = answer(model, [job(record, tokens)])
        (alone,) = answer(fresh, [job("", tokens)])
        assert [token for token, _ in found.listed] == [token for token, _ in alone.listed]
        assert [c for _, c in found.listed] == pytest.approx([c for _, c in alone.listed], abs=1e-4)
        evaluated = model.work.tokens - before
        assert evaluated <= 12 if number % 4 else evaluated == len(tokens)
        assert found.reused == len(tokens) - evaluated


def test_what_is_held_is_bounded_and_the_oldest_goes() -> None:
    model = loaded(tiny.model(), hold=150)
    asked = prompts(stories=4, questions=1)
    for record, tokens in asked:
        answer(model, [job(record, tokens)])
        assert 0 < model.held.tokens <= 150
    assert model.covered(job(*asked[0])) == 0
    assert model.covered(job(*asked[-1])) == len(asked[-1][1]) - 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_replies_follow_their_schema_every_time(temperature: float) -> None:
    model = loaded(tiny.model())
    schema = json.dumps(Reply.model_json_schema())
    jobs = [
        job(*one, schema=schema, max_tokens=120, temperature=temperature, seed=number)
        for number, one in enumerate(prompts(stories=3, questions=4))
    ]
    for found in answer(model, jobs):
        assert found.whole
        Reply.model_validate_json(tiny.tokenizer().decode(found.written))


@pytest.mark.parametrize("name", sorted(JUDGING_REPLIES))
def test_the_schemas_of_replies_are_known_to_the_grammar(name: str) -> None:
    schema = json.dumps(JUDGING_REPLIES[name].sized(2).model_json_schema())
    Grammars(tiny.tokenizer(), 448, [1]).matcher(schema)


def test_a_schema_that_cannot_be_followed_spares_the_others() -> None:
    tokens = prompts()[0][1]
    wrong = job("", tokens, schema='{"type": "nothing"}', max_tokens=5)
    outcomes = loaded(tiny.model()).answers([wrong, job("", tokens, max_tokens=5)])
    assert isinstance(outcomes[0], BadSchema)
    assert isinstance(outcomes[1], Answer)


def test_a_seed_draws_the_same_reply_in_any_batch() -> None:
    asked = prompts(stories=2, questions=3)
    warm = {"max_tokens": 15, "temperature": 1.0}
    together = [job(*one, seed=number, **warm) for number, one in enumerate(asked)]
    first = [found.written for found in answer(loaded(tiny.model()), together)]
    alone = loaded(tiny.model(), share=False)
    again = [answer(alone, [one])[0].written for one in reversed(together)]
    assert first == again[::-1]
    assert len({tuple(written) for written in first}) > 1
    (other,) = answer(alone, [job(*asked[0], seed=99, **warm)])
    assert other.written != first[0]


def test_greedy_replies_are_the_librarys_own() -> None:
    (_, tokens), *_ = asked = prompts(stories=2, questions=2)
    model = tiny.model().eval()
    known = model.generate(torch.tensor([tokens]), do_sample=False, max_new_tokens=12)[0]
    written = answer(loaded(tiny.model()), [job(*one, max_tokens=12) for one in asked])
    expected = known[len(tokens) :].tolist()
    assert written[0].written == [token for token in expected if token != 1]


def test_a_reply_that_is_cut_off_says_so() -> None:
    (found,) = answer(loaded(tiny.model()), [job("", prompts()[0][1], max_tokens=3)])
    assert (len(found.written), found.whole) == (3, False)


def test_the_kernel_for_differing_lengths_is_given_what_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The card's kernel, stood in for by the definition that torch's documentation gives of it."""
    from torch.nn.attention import varlen

    def by_definition(
        query: Any,
        key: Any,
        value: Any,
        ends_q: Any,
        ends_k: Any,
        most_q: int,
        most_k: int,
        **kw: Any,
    ) -> torch.Tensor:
        assert kw["enable_gqa"]
        assert ends_q.dtype == ends_k.dtype == torch.int32
        left, right = kw["window_size"]
        assert right == 0
        repeated = query.shape[1] // key.shape[1]
        out = torch.empty_like(query)
        for n in range(len(ends_q) - 1):
            q = query[ends_q[n] : ends_q[n + 1]].transpose(0, 1)
            k, v = (
                one[ends_k[n] : ends_k[n + 1]].transpose(0, 1).repeat_interleave(repeated, 0)
                for one in (key, value)
            )
            assert q.shape[1] <= most_q and k.shape[1] <= most_k
            ahead = k.shape[1] - q.shape[1]
            seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(ahead)
            seen = seen if left < 0 else seen.triu(ahead - left)
            scores = (q @ k.transpose(1, 2) * kw["scale"]).masked_fill(~seen, float("-inf"))
            out[ends_q[n] : ends_q[n + 1]] = (scores.softmax(-1) @ v).transpose(0, 1)
        return out

    asked = prompts()
    known = answer(loaded(tiny.model("qwen", window=32)), [job(*one) for one in asked])
    monkeypatch.setattr(attention, "flash_takes", lambda query: True)
    monkeypatch.setattr(varlen, "varlen_attn", by_definition)
    found = answer(loaded(tiny.model("qwen", window=32)), [job(*one) for one in asked])
    for one, other in zip(known, found, strict=True):
        assert [t for t, _ in one.listed] == [t for t, _ in other.listed]
        assert [c for _, c in one.listed] == pytest.approx([c for _, c in other.listed], abs=1e-4)


def test_nothing_is_gathered_where_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[bool] = []
    attend = PackedPrompts.attend

    def watched(self: PackedPrompts, *given: Any) -> torch.Tensor:
        gathered.append(self._rows is not None)
        return attend(self, *given)

    monkeypatch.setattr(PackedPrompts, "attend", watched)
    answer(loaded(tiny.model(), share=False), [job(*one) for one in prompts()])
    assert gathered == [False, False]
