"""docs/explain/shown.md: the messages on the page are those that the judge is sent.

python -m tests.test_shown_page      writes the messages of the page anew; look at the diff
"""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

from judge.judging.prompts import messages
from judge.questions.from_flags import rubrics_from_flags
from judge.records import Record

PAGE = Path(__file__).parents[1] / "docs" / "explain" / "shown.md"
EXAMPLE = re.compile(r"```bash\n(.*?)```\n\n```json\n(.*?)```\n\n```text\n(.*?)```", re.S)


def sent(command: str, record: str) -> str:
    """The user's message for the one record of this file."""
    words = shlex.split(command)
    on = [field for flag, field in pairwise(words) if flag == "--on"]
    rubric = rubrics_from_flags(words[words.index("--ask") + 1], on)[0]
    read = Record("in.jsonl", 1, json.loads(record)).of_kind("record")
    return str(messages(rubric, read)[-1]["content"]) + "\n"


def test_the_page_shows_what_is_sent() -> None:
    examples = EXAMPLE.findall(PAGE.read_text("utf-8"))
    assert len(examples) == 3
    for command, record, text in examples:
        assert text == sent(command, record)


def _anew(found: re.Match[str]) -> str:
    command, record, text = found.groups()
    return found.group().removesuffix(f"{text}```") + f"{sent(command, record)}```"


if __name__ == "__main__":
    PAGE.write_text(EXAMPLE.sub(_anew, PAGE.read_text("utf-8")), "utf-8")
