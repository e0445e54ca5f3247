"""A server that cuts a prompt, which only its reported usage shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from clients import outcome_of

from judge.backends.base import Call, Completion
from judge.backends.reading import cut, fewest_tokens
from judge.errors import Unread
from judge.questions.evidence import ReplyContext
from judge.questions.replies import YesNo

from .test_client import client, one_by_one

GOOD = json.dumps({"quote": None, "reason": "kind", "answer": "no"})
WORDS = "The parcel arrived late and nobody at the counter could say where it had been. "
LONG = WORDS * 400
CHINESE = "包裹来得很晚,柜台上没有人能说出它去了哪里。" * 400
CALL = Call([{"role": "user", "content": LONG}], temperature=0.0)


def read(tokens: int, cached: int | None = None) -> Completion:
    return Completion(GOOD, "stop", tokens, 9, cached)


@pytest.mark.parametrize(
    ("text", "tokens", "is_cut"),
    [
        (LONG, 2048, True),
        (LONG, 3500, True),
        (LONG, 6400, False),
        (LONG, 4900, False),
        (CHINESE, 1024, True),
        (CHINESE, 5200, False),
        (LONG, 7, False),
        (WORDS * 4, 20, False),
        ("- " * 20_000, 2048, False),
        (" " * 100_000 + WORDS, 2048, False),
        ("a b c d " * 4_000, 4_000, False),
    ],
)
def test_a_prompt_is_cut_where_it_has_more_words_than_were_read(
    text: str, tokens: int, is_cut: bool
) -> None:
    found = cut([text], read(tokens))
    assert (found is not None) == is_cut
    if found:
        assert f"read {tokens:,} tokens of at least {fewest_tokens(text):,}" in found


def test_an_estimate_is_never_taken_for_a_cut() -> None:
    for text in (LONG, CHINESE, "abc " * 9000, "包裹来 " * 9000):
        assert fewest_tokens(text) <= len(text) // 4 + 1


def test_tokens_that_a_servers_cache_holds_are_read() -> None:
    assert cut([LONG], read(300, cached=6000)) is None
    assert cut([LONG], read(2048, cached=2000)) is not None


async def test_the_vote_is_unreadable_and_nothing_is_kept() -> None:
    asker, backend = client(one_by_one(read(2048), read(6400)))
    asked = await outcome_of(asker.ask(CALL, YesNo, ReplyContext({})))
    assert (asked.reply, asked.trouble) == (
        None,
        "the prompt was cut",
    ) and asked.usage.input_tokens == 2048
    assert asked.detail and asked.detail.startswith("the server read 2,048 tokens")
    await asker.aclose()
    await asker.ask(CALL, YesNo, ReplyContext({}))
    assert len(backend.calls) == 2


async def test_nor_is_a_first_token_or_a_free_text_of_half_a_prompt() -> None:
    half = Completion("Yes", input_tokens=2048, first_token=(("Yes", -0.1),))
    asker, _ = client(one_by_one(half))
    for asking in (asker.first_token(replace(CALL, logprobs=5)), asker.write(CALL)):
        with pytest.raises(Unread, match="the prompt was cut"):
            await asking
