"""Which settings go with which engine."""

from __future__ import annotations

import pytest

from judge.errors import UsageError
from judge.run.clients import refuse_stray
from judge.settings import Settings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(workers=2), "--workers 2 speaks of Ray workers, and the engine is local"),
        (Settings(engine="batch", address="auto"), "--address auto speaks of Ray workers"),
        (Settings(engine="ray"), "engine = ray is for judge validate, and evaluate .*JUDGE_ENGINE"),
    ],
)
def test_other_commands_do_not_leave_a_setting_unheeded(settings: Settings, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refuse_stray(settings, "evaluate")
