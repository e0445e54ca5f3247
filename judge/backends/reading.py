"""Reads a completion: its text without thoughts and code fence, how it ended, its tokens, and
whether the server read the whole prompt.

If a prompt is longer than their context, Ollama and others read only its end, and answer as if it
were whole. A tokenizer makes at least one token per word: those of GPT, Llama and Qwen never join
words, nor do SentencePiece's. Scripts without spaces take a token for a few characters. Only a
count far below that is called cut, so that an economical tokenizer is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from judge.backends.base import Call, Completion
from judge.records.words import UNSPACED

Ending = Literal["stop", "length", "refusal", "fault"]

CHARACTERS_PER_TOKEN = 4
"""For an estimate of tokens if a server reports none."""

_MIN_READ = 128
"""Tokens; a server that reports fewer is not counting what it reads."""

_MIN_LOST = 256
_MARGIN = 1.25
_WORDS = re.compile(r"\S{3,}")
_ENDINGS: dict[str, Ending] = {
    **dict.fromkeys(
        (
            "length",
            "max_tokens",
            "max_output_tokens",
            "max_completion_tokens",
            "max_length",
            "model_length",
            "model_context_window_exceeded",
            "token_limit",
            "truncated",
            "incomplete",
            "error_limit",
        ),
        "length",
    ),
    **dict.fromkeys(
        (
            "refusal",
            "content_filter",
            "content_filtered",
            "safety",
            "image_safety",
            "recitation",
            "language",
            "blocklist",
            "blocked",
            "prohibited_content",
            "spii",
            "sensitive",
            "guardrail_intervened",
            "error_toxic",
        ),
        "refusal",
    ),
    **dict.fromkeys(
        (
            "error",
            "failed",
            "abort",
            "cancelled",
            "user_cancel",
            "timeout",
            "time_limit",
            "network_error",
            "insufficient_system_resource",
            "malformed_function_call",
            "malformed_model_output",
            "malformed_tool_use",
            "other",
        ),
        "fault",
    ),
}
"""Finish reasons of OpenAI, Anthropic, Gemini, Bedrock, Mistral, Cohere, DeepSeek, Zhipu, watsonx
and the common servers, in lower case."""

_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""Marks before and after thoughts in a model's text. A chat template may write the first."""

_CLOSED = re.compile("|".join(re.escape(end) for _, end in _THOUGHTS), re.IGNORECASE)
_OPENED = re.compile("|".join(re.escape(start) for start, _ in _THOUGHTS), re.IGNORECASE)


def ending(reason: object) -> Ending:
    """How a reply ended, by its finish reason; an unknown one, or none, counts as `stop`."""
    # Gemini's OpenAI-compatible form: "function_call_filter: MALFORMED_FUNCTION_CALL".
    name, _, detail = str(reason).lower().partition(": ")
    return _ENDINGS.get(detail) or _ENDINGS.get(name, "stop")


def text_of(content: object) -> str:
    """The text of a message's content: a string, or a list of parts, thoughts left out.

    Raises:
        TypeError: it is of another type.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, dict)):
        return "".join(map(_text_of_part, content if isinstance(content, list) else [content]))
    raise TypeError("the content is no text")


def _text_of_part(part: object) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    if part.get("type", "text") not in ("text", "output_text"):
        return ""
    text: Any = part.get("text")
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else ""


def arguments_of(calls: Iterable[object]) -> str:
    """The arguments of tool calls as JSON text, one call a line; some servers send objects.

    Equal ones count once. Different ones are several answers, which no reader accepts.
    """
    texts = (a if isinstance(a, str) else json.dumps(a, ensure_ascii=False) for a in calls)
    return "\n".join(dict.fromkeys(texts))


def is_object(text: str) -> bool:
    """Whether the text is one JSON object and nothing else."""
    try:
        return text.lstrip().startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def without_thoughts(text: str) -> str | None:
    """The text after the last mark that ends thoughts; None if the thoughts never end.

    A JSON object stays whole: it may quote such a mark.
    """
    if thoughts := list(_CLOSED.finditer(text)):
        return text if is_object(text) else text[thoughts[-1].end() :].strip()
    return None if _OPENED.match(text.lstrip()) else text


def strip_fence(text: str) -> str:
    """The text without a Markdown code fence around it; also without words before and after the
    only fence, if that holds a JSON object."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        return bare[bare.index("\n") + 1 : -3].strip()
    before, *fenced = bare.split("```")
    if len(fenced) == 2 and "{" not in before + fenced[1]:
        inner = fenced[0].partition("\n")[2].strip()
        return inner if is_object(inner) else bare
    return bare


def answer_of(call: Call, completion: Completion) -> Completion:
    """The completion of any backend, reduced to its answer.

    If its thoughts never end it has no text: the reply was cut off.
    """
    if call.logprobs is not None or call.layer is not None:
        return completion
    if completion.finish_reason == "refusal":
        return completion
    text = without_thoughts(completion.text)
    if text is None:
        return replace(completion, text="", finish_reason="length")
    text = text if call.schema is None else strip_fence(text)
    return completion if text == completion.text else replace(completion, text=text)


# ---------------------------------------------------------------- tokens


def counted(call: Call, completion: Completion, sent: Sequence[str]) -> Completion:
    """The completion, with an estimate of the tokens that the server did not report; `sent` are the
    texts that it read."""
    text = completion.text if call.layer is None else ""
    if completion.input_tokens and (completion.output_tokens or not text):
        return completion
    length = sum(map(byte_count, sent))
    return replace(
        completion,
        input_tokens=completion.input_tokens or length // CHARACTERS_PER_TOKEN + 1,
        output_tokens=completion.output_tokens or -(-byte_count(text) // CHARACTERS_PER_TOKEN),
    )


def byte_count(text: str) -> int:
    """The bytes of a text in UTF-8. In tokens they count as much as so many characters of English:
    a letter of Russian or Arabic has two, of Hindi, Thai, Chinese or Japanese three."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def fewest_tokens(text: str) -> int:
    """Least number of tokens of a text: its words of three or more characters, and a quarter of the
    characters of scripts without spaces. Never above a quarter of all characters."""
    spaced, unspaced = (text, 0) if text.isascii() else re.subn(f"[{UNSPACED}]", " ", text)
    return len(_WORDS.findall(spaced)) + unspaced // CHARACTERS_PER_TOKEN


def cut(sent: Iterable[str], completion: Completion) -> str | None:
    """How much of the texts sent was read if the server cut them; None if it read all of them."""
    tokens = completion.input_tokens
    # Some servers count cached tokens separately.
    if (cached := completion.cached_tokens or 0) > tokens:
        tokens += cached
    text = "\n".join(sent)
    if tokens < _MIN_READ or len(text) < (tokens + _MIN_LOST) * CHARACTERS_PER_TOKEN:
        return None
    fewest = fewest_tokens(text)
    if fewest - tokens < _MIN_LOST or fewest < tokens * _MARGIN:
        return None
    return f"the server read {tokens:,} tokens of at least {fewest:,}; give it a longer context"
