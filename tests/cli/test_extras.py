from __future__ import annotations

import pytest

from judge.cli import extras
from judge.errors import UsageError


def test_what_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.need_calibrate("judge calibrate")
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "scipy" else object())
    with pytest.raises(UsageError, match=r"judge calibrate needs scipy: pip install") as told:
        extras.need_calibrate("judge calibrate")
    assert "judge[calibrate]" in str(told.value)
