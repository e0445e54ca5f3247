"""Record text on a page: invisible characters are shown, and rewrites are compared.

No text is trusted: all output is escaped, and characters that could reorder or hide the text around
them (control characters, directional marks, unpaired surrogates) are shown as code points.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from markupsafe import Markup, escape

MOST_WORDS = 1_500
"""Most words of two texts that are compared: the time grows with the product of both."""

LEAST_ALIKE = 0.35
"""Ratio (0 to 1, difflib's) below which a text counts as replaced, not as edited."""

UNSEEN = re.compile(
    # Controls but tab and newline; fillers, joiners, directional marks and other code points that
    # Unicode calls ignorable; tags; unpaired surrogates; code points that are no characters.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # A joiner (or its opposite) is seen by what it does between letters of most scripts and in
    # emoji; beside ASCII, or at an end, it does nothing.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_WORDS = re.compile(
    # Scripts without blanks are compared by character.
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
    r"|\w+\s*|\W\s*"
)


_VARIABLE = re.compile(r"\{\{\s*(\w[^\s{}|~]*)[^{}]*\}\}")


def in_words(question: str) -> str:
    """A question's template for people: `[value]` for a variable `{{ value }}`."""
    return _VARIABLE.sub(r"[\1]", question)


def visible(content: object) -> Markup:
    """The content escaped, with each invisible character as an element of its own.

    Markup is returned unchanged.
    """
    if isinstance(content, Markup):
        return content
    escaped = str(escape(str(content).replace("\r\n", "\n")))
    # The element has only the code point's number.
    return Markup(
        UNSEEN.sub(lambda match: f'<span class="unseen">U+{ord(match[0]):04X}</span>', escaped)
    )


def short(text: object, most: int = 200) -> str:
    """The text, cut off after `most` characters."""
    line = str(text)
    return line if len(line) <= most else f"{line[:most]}…"


def changes(before: str, after: str) -> list[tuple[str, str]]:
    """The changes between two texts by word, in reading order: (`same`, `del` or `ins`, text).

    Texts of more than `MOST_WORDS` words, or with little in common, count as replaced whole.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts = [("del", before), ("ins", after)]
    if max(len(old), len(new)) <= MOST_WORDS:
        matcher = SequenceMatcher(None, old, new)
        if matcher.ratio() >= LEAST_ALIKE:
            parts = []
            for kind, low, high, new_low, new_high in matcher.get_opcodes():
                if kind == "equal":
                    parts.append(("same", "".join(old[low:high])))
                else:
                    deletion, insertion = "".join(old[low:high]), "".join(new[new_low:new_high])
                    parts += [("del", deletion), ("ins", insertion)]
    return [(kind, text) for kind, text in parts if text]
