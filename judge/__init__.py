"""Checks text that language models wrote, by language-model judges.

    import judge

    for judgement in judge.validate(records, ask="Is this e-mail polite?", model="openai:gpt-4o"):
        print(judgement.verdict, judgement.reason)

The names below are loaded on first use (docs/howto/python.md).
"""

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.version import __version__ as __version__

if TYPE_CHECKING:
    from judge.api import (
        Judgement,
        Judgements,
        Results,
        Watcher,
        acalibrate,
        agreement,
        avalidate,
        calibrate,
        compare,
        load_profile,
        load_results,
        plan,
        validate,
        validate_to,
    )
    from judge.questions.rubric import Rubric

# A library is silent unless its program sets logging up; the command line does (judge.redact).
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HERE = Path(__file__).parent
if not (_HERE / "rubrics").is_dir():
    # A checkout, where graphs/ and rubrics/ are top-level folders (docs/decisions/0001).
    __path__.append(str(_HERE.parent))

__all__ = [
    "Judgement",
    "Judgements",
    "Results",
    "Rubric",
    "Watcher",
    "acalibrate",
    "agreement",
    "avalidate",
    "calibrate",
    "compare",
    "load_profile",
    "load_results",
    "plan",
    "validate",
    "validate_to",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module("judge.api"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
