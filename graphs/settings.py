"""The settings of the papers' workflows, found by entry points `judge.settings`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Literal

from judge.options import Options, judging

if TYPE_CHECKING:
    from judge.questions.rubric import Rubric


class StorySettings(Options):
    """Requirements on stories."""

    keep_dropped: bool = judging(
        "A repaired story passes if its remaining values do, as in CQ-Bench.",
        default=False,
        needs="repair",
    )
    one_pass: bool = judging(
        "Go on after a rewrite, and do not make its check again, as in CQ-Bench.",
        default=False,
        needs="repair",
    )
    min_words: int = judging("Reject shorter stories.", default=400, ge=0)


class NormSettings(Options):
    """Which release of NormAd the records are from, and whose values are checked."""

    normad_release: Literal["paper", "corrected"] | None = judging(
        "Neutral norms: the rule must not follow from the background (paper), or must, and the "
        "background alone must not settle the story (corrected release).",
        unset="paper; records with an Other Background skip derivation",
    )

    value_of_neutral: bool = judging(
        "Ask value_derivation about neutral norms, too, as NormAd's sub-task 3 does.",
        default=False,
    )

    def own_rubrics(self) -> Sequence[Rubric]:
        corrected = corrected_normad() if self.normad_release == "corrected" else ()
        of_all = (value_of_all(),) if self.value_of_neutral and not corrected else ()
        return (*corrected, *of_all)


def value_of_all() -> Rubric:
    """The rubric of sub-task 3 for records of every label."""
    from judge.questions.ready_made import builtin

    return builtin()["value_derivation"].model_copy(update={"not_for_labels": ()})


def corrected_normad() -> tuple[Rubric, ...]:
    """The rubrics for NormAd's corrected release: neutral rules and values, too, are from the
    background, and the background alone does not settle a neutral story."""
    from judge.questions.ready_made import builtin
    from judge.questions.rubric import Rubric

    derivation, value = builtin()["derivation"], value_of_all()
    text = (resources.files("judge.rubrics") / "corrected/background_alone.yaml").read_text("utf-8")
    return (
        derivation.model_copy(update={"pass_by_label": value.pass_by_label}),
        value,
        Rubric.from_text(text, "rubrics/corrected/background_alone.yaml"),
    )
