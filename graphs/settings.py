"""The settings of the papers' workflows, found by entry points `judge.settings`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Literal

from judge.options import Options, judging

if TYPE_CHECKING:
    from judge.questions.rubric import Rubric


class StorySettings(Options):
    """What a story is held to."""

    keep_dropped: bool = judging(
        "With --repair: a story passes if its remaining values do, as in CQ-Bench.",
        default=False,
        needs="repair",
    )
    min_words: int = judging("Reject shorter stories.", default=400, ge=0)


class NormSettings(Options):
    """Which release of NormAd the records are from."""

    normad_release: Literal["paper", "corrected"] | None = judging(
        "Neutral norms: the rule must not follow from the background (paper), or must, and the "
        "background alone must not settle the story (corrected release).",
        unset="paper; records with an Other Background skip derivation",
    )

    def own_rubrics(self) -> Sequence[Rubric]:
        corrected = corrected_normad() if self.normad_release == "corrected" else ()
        return (*super().own_rubrics(), *corrected)


def corrected_normad() -> tuple[Rubric, ...]:
    """The rubrics as NormAd's corrected release has it: neutral rules and values, too, are from the
    background, and the background alone does not settle a neutral story."""
    from judge.questions.ready_made import builtin
    from judge.questions.rubric import Rubric

    derivation, value = builtin()["derivation"], builtin()["value_derivation"]
    text = (resources.files("judge.rubrics") / "corrected/background_alone.yaml").read_text("utf-8")
    return (
        derivation.model_copy(update={"pass_by_label": value.pass_by_label}),
        value.model_copy(update={"not_for_labels": ()}),
        Rubric.from_text(text, "rubrics/corrected/background_alone.yaml"),
    )
