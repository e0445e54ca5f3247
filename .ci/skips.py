"""Fails on a test that was skipped for a reason that .ci/skips.txt does not list.

    .venv/bin/python .ci/skips.py build/tests.xml

Prints every skip with its reason. A skip that nobody expects is a promise that nobody looked at.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

LISTED = Path(__file__).with_name("skips.txt")


def skipped(report: Path) -> Counter[str]:
    """How many tests were skipped, by `module: reason`, from pytest's JUnit file."""
    cases = ElementTree.parse(report).iter("testcase")
    found = ((case, case.find("skipped")) for case in cases)
    return Counter(
        f"{case.get('classname')}: {skip.get('message')}"
        for case, skip in found
        if skip is not None
    )


def unlisted(found: Iterable[str], listed: str) -> list[str]:
    """The skips that no line of the list names: `module: reason`, or `*: reason` in any module."""
    known = [line.split(": ", 1) for line in listed.splitlines() if line and line[0] != "#"]
    return [
        skip
        for skip in found
        if not any(
            module in ("*", skip.split(": ", 1)[0]) and skip.split(": ", 1)[1].startswith(reason)
            for module, reason in known
        )
    ]


def main(report: Path) -> int:
    found = skipped(report)
    for skip, count in sorted(found.items()):
        print(f"skipped {count}: {skip}")
    unexpected = unlisted(found, LISTED.read_text("utf-8"))
    for skip in unexpected:
        print(f"not on .ci/skips.txt: {skip}", file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
