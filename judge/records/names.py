"""Names that a record brings along, in a form that no prompt can take for anything else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_NAME = 60
"""Characters of a name that are shown."""

_SIGNS = frozenset(" ._-")
_KINDS = frozenset("LMN")
"""Letters, their marks and digits, of any script (the first letter of Unicode's categories)."""


@lru_cache(maxsize=1024)
def plain_name(name: str) -> str:
    """`name` on one line, of letters and digits of any script, blanks and `._-`, cut at
    `MAX_NAME` characters; `unnamed` where nothing is left.

    Signs that chat templates and fences are made of become blanks.
    """
    if name.isascii() and name.isidentifier() and len(name) <= MAX_NAME:
        return name
    signs = (
        char if char in _SIGNS or unicodedata.category(char)[0] in _KINDS else " "
        for char in name[: 10 * MAX_NAME]
    )
    return " ".join("".join(signs).split())[:MAX_NAME].rstrip() or "unnamed"


def apart(names: Iterable[str]) -> Iterator[str]:
    """The plain form of each name; later ones that look like an earlier one get a number."""
    used_names = {"end"}  # What closes a fence.
    for name in names:
        plain = title = plain_name(name)
        count = 1
        while (form := title.replace("_", " ").casefold()) in used_names:
            count += 1
            title = f"{plain} ({count})"
        used_names.add(form)
        yield title


def entry_name(field: str) -> str:
    """What one entry of a list field is called: `claim` of `claims`, `city` of `a.cities`, and
    `entry` of a field whose name has no plural s."""
    name = re.sub(r"\W+", "_", field.rpartition(".")[2]).strip("_")
    singular = re.sub(r"ies$", "y", name) if name.endswith("ies") else name.removesuffix("s")
    return singular if singular and singular != name else "entry"
