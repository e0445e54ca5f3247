"""Prompts that a server cut: it counts fewer tokens than the text can have.

Ollama and others read the end of a prompt that is longer than their context, and answer as if it
were whole. A tokenizer makes at least one token of a word: those of GPT, Llama and Qwen never join
words, and SentencePiece's do not either. Scripts without spaces take a token for a few characters.
Only what is far below that is called cut, so that no tokenizer's thrift is.
"""

from __future__ import annotations

import re

from judge.backends.base import Call, Completion
from judge.judging.calls import CHARACTERS_A_TOKEN

_LEAST_READ = 128
"""Tokens; a server that counts fewer does not count what it reads."""

_LEAST_LOST = 256
_MARGIN = 1.25
_WORDS = re.compile(r"\S{3,}")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


def fewest_tokens(text: str) -> int:
    """Tokens that a text has at the least: words of three letters and more, and a quarter of the
    characters of scripts without spaces. Never above a quarter of all characters."""
    spaced, unspaced = (text, 0) if text.isascii() else _UNSPACED.subn(" ", text)
    return len(_WORDS.findall(spaced)) + unspaced // CHARACTERS_A_TOKEN


def cut(call: Call, completion: Completion) -> str | None:
    """How much of a prompt was read, where a server cut it; None where it read all of it."""
    texts = [message["content"] for message in call.messages]
    read = completion.input_tokens
    # Some count what their cache holds apart.
    if (cached := completion.cached_tokens or 0) > read:
        read += cached
    if read < _LEAST_READ or read * CHARACTERS_A_TOKEN > sum(map(len, texts)):
        return None
    fewest = sum(map(fewest_tokens, texts))
    if fewest - read < _LEAST_LOST or fewest < read * _MARGIN:
        return None
    return f"the server read {read:,} tokens of at least {fewest:,}; give it a longer context"
