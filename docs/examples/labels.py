"""`desk:FILE`: e-mails that a help desk rated, each with {"ratings": "Ann=kind; Bo=rude"}.

The package's pyproject.toml: [project.entry-points."judge.labels"] desk = "labels:Desk"
"""

from collections.abc import Iterator
from typing import Any

from judge.records import Record
from judge.records.base import LabelError
from judge.records.labels.items import Annotation, LabelledItem, LabelSet

ANSWERS = {"kind": "yes", "rude": "no"}


class Desk(LabelSet):
    name = "desk"

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        annotations = []
        for rating in fields["ratings"].split(";"):
            person, _, word = rating.strip().partition("=")
            if word not in ANSWERS:
                raise LabelError(f"field 'ratings': {word!r} is no rating", "ratings")
            annotations.append(Annotation(person, ANSWERS[word]))
        yield LabelledItem(
            record=self.record(item, {"email": fields["email"]}, fields.get("id")),
            check="polite",
            annotations=tuple(annotations),
        )
