"""Which settings go with which engine."""

from __future__ import annotations

import pytest

from judge.errors import UsageError
from judge.run.clients import refuse_stray, refuse_validation_only
from judge.settings import Settings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(workers=2), "--workers 2 speaks of Ray workers, and the engine is local"),
        (Settings(engine="batch", address="auto"), "--address auto speaks of Ray workers"),
    ],
)
def test_what_only_ray_heeds(settings: Settings, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refuse_stray(settings)


def test_with_ray_they_stand() -> None:
    refuse_stray(Settings(engine="ray", workers=2, address="auto"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(engine="ray"), "engine = ray is for judge validate, and evaluate .*JUDGE_ENGINE"),
        (Settings(workers=3), "--workers 3"),
    ],
)
def test_other_commands_do_not_leave_a_setting_unheeded(settings: Settings, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refuse_validation_only(settings, "evaluate")


def test_batches_serve_every_command() -> None:
    refuse_validation_only(Settings(engine="batch"), "evaluate")
