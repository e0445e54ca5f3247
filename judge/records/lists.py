"""Lists in texts, such as the cells of a table."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import Any

MAX_LITERAL = 1_000_000
"""Longer texts (characters) are not parsed as a list: that takes a hundred times their memory."""

_STRING = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_STRINGS = re.compile(rf"\[{_STRING}(?:\s+{_STRING})+\]")


def list_in(text: str, *, exact: bool) -> list[Any] | None:
    """The list that the text is, in JSON or as Python writes it (`exact`: prints it); else None.

    A list of texts may be as NumPy prints it, without commas.
    """
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, list) else None
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        if len(text) > MAX_LITERAL:
            return None
        if _STRINGS.fullmatch(text):  # Python would join texts that stand side by side.
            return [ast.literal_eval(entry) for entry in re.findall(_STRING, text)]
        entries = ast.literal_eval(text)
        # NumPy prints other values without commas, too. Python refuses to print integers of more
        # than 4,300 digits (0xfff...), so this comes first.
        printed = repr(entries) == text
        return entries if isinstance(entries, list) and (printed or not exact) else None
    return None
