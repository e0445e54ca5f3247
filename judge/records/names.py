"""Names from a record, reduced to a form that cannot be mistaken for prompt syntax."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_NAME = 60
"""Characters of a name that are shown."""

_SIGNS = frozenset(" ._-")
_KINDS = frozenset("LMN")
"""Unicode's category initials of letters, their marks and digits, of any script."""


@lru_cache(maxsize=1024)
def plain_name(name: str) -> str:
    """`name` on one line, in letters and digits of any script, spaces and `._-`.

    Other characters, such as those of chat templates and fences, become spaces. The name is cut to
    `MAX_NAME` characters; an empty one becomes `unnamed`.
    """
    if name.isascii() and name.isidentifier() and len(name) <= MAX_NAME:
        return name
    signs = (
        char if char in _SIGNS or unicodedata.category(char)[0] in _KINDS else " "
        for char in name[: 10 * MAX_NAME]
    )
    return " ".join("".join(signs).split())[:MAX_NAME].rstrip() or "unnamed"


def apart(names: Iterable[str]) -> Iterator[str]:
    """The plain form of each name; a name that looks like an earlier one gets a number."""
    used_names = {"end"}  # This word closes a fence.
    for name in names:
        plain = title = plain_name(name)
        count = 1
        while (form := title.replace("_", " ").casefold()) in used_names:
            count += 1
            title = f"{plain} ({count})"
        used_names.add(form)
        yield title


def entry_name(field: str) -> str:
    """The name of one entry of a list field: `claim` for `claims`, `city` for `a.cities`.

    A field whose name has no plural s has the entry name `entry`.
    """
    name = re.sub(r"\W+", "_", field.rpartition(".")[2]).strip("_")
    singular = re.sub(r"ies$", "y", name) if name.endswith("ies") else name.removesuffix("s")
    return singular if singular and singular != name else "entry"
