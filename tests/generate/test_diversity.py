"""How like an earlier record a record is."""

from __future__ import annotations

import pytest

from judge.generate.diversity import COMMON, Diversity
from judge.records.lines import Line, written


def test_a_copy_is_found_among_many_records_that_have_a_passage_in_common() -> None:
    def line(name: str, own: int, end: str = "end") -> Line:
        words = [f"common{n}" for n in range(60)] + [f"own{own}x{n}" for n in range(30)]
        return written({"id": name, "text": " ".join([*words, end])}, {"verdict": "pass"})

    found, last = Diversity("text", ()), COMMON + 20
    for number in range(last + 1):
        found.add(line(f"d{number}", number))
    assert found.add(line("copy", last), 0.9) == (f"d{last}", 1.0)
    # Of 89 runs of three words all but the last are shared, and one is new: 88 of 90.
    assert found.add(line("near", last, "close"), 0.9) == (f"d{last}", pytest.approx(88 / 90))
    # Of another text the passage alone is shared, 58 runs of 58 + 2 x 31: 58 of 120.
    other = found.add(line("other", last + 1), 0.4)
    assert other is not None and other[1] == pytest.approx(58 / 120, abs=0.05)


def test_a_name_is_one_however_its_accent_is_written() -> None:
    found = Diversity("text", ())
    for number, name in enumerate(("Zo\u00e9", "Zoe\u0301", "\u00c9lodie", "E\u0301lodie")):
        text = f"there came {name} with a cup of tea and a book to read"
        found.add(written({"id": str(number), "text": text}, {"verdict": "pass"}))
    assert found.capitalised == {"Zo\u00e9": 2, "\u00c9lodie": 2}


def test_invisible_characters_make_no_other_text() -> None:
    """Soft hyphens, and the joiners of Persian, which people leave out."""
    words = "The administrator left early \u0645\u06cc\u200c\u0631\u0648\u0645"
    plain = words.replace("\u200c", "")
    found = Diversity("text", ())
    found.add(written({"id": "a", "text": words}, {"verdict": "pass"}))
    other = written({"id": "b", "text": plain.replace("min", "\u00admin")}, {"verdict": "pass"})
    assert found.add(other, 0.9) == ("a", 1.0)
