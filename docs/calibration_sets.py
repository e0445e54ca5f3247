"""What docs/make_calibration.py measures on: the labelled fixtures, and public data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.backends.base import Method
from judge.calibration.labels import CalibrationJob
from judge.local.default import DEFAULT
from judge.run.panels import Resources

FIXTURES = "fixtures/labelled"


@dataclass(frozen=True)
class DataSet:
    """A set to measure on; `{data}` in its sources stands for the folder of public data.

    `method`: what is read (None: first tokens and hidden states); states alone take a tenth of the
    calls. `adapter` is the one that the model has in force. `group`, `folds` and `contrast_set` are
    as `judge calibrate` takes them. What is not `shipped` is only reported.
    """

    name: str
    sources: tuple[str, ...]
    checks: tuple[str, ...]
    records: int | None = None
    labels: str = "the project's authors"
    method: Method | None = None
    group: str | None = None
    folds: int | None = None
    contrast_set: str | None = None
    adapter: str | None = None
    shipped: bool = True

    @property
    def public(self) -> bool:
        return any("{data}" in source for source in self.sources)


NORMAD = "normad:{data}/normad/normad_odd_rows.csv"
MORAL = "moral-stories:{data}/moral_stories/norm_distance_dev.jsonl"
TURNED = "moral-stories:{data}/moral_stories/norm_distance_dev_flipped.jsonl"
AMBIENT, MULTIPICO, LLMBAR = (
    "ambient:{data}/ambient",
    "multipico:{data}/multipico",
    "llmbar:{data}/llmbar",
)

SETS = (
    DataSet(
        "NormAd",
        (NORMAD,),
        ("relevance",),
        80,
        "the set's gold labels, checked by people in part",
        method="logprobs",
        folds=5,
    ),
    DataSet(
        "NormAd",
        (NORMAD,),
        ("label_correctness",),
        420,
        "the set's gold labels, checked by people in part",
        method="logprobs",
        shipped=False,
    ),
    DataSet(
        "NormAd by country",
        (NORMAD,),
        ("label_correctness",),
        160,
        "the set's gold labels, checked by people in part",
        method="probe",
        group="country",
        shipped=False,
    ),
    DataSet(
        "NormAd and labelled/norms",
        (NORMAD, f"{FIXTURES}/norms.jsonl"),
        ("label_correctness",),
        100,
        "the set's gold labels; the project's authors",
        method="probe",
        group="country",
    ),
    DataSet(
        "Moral Stories",
        (MORAL,),
        ("relevance",),
        40,
        "crowd writers, by construction",
        method="logprobs",
        folds=5,
    ),
    DataSet(
        "Moral Stories, first tokens",
        (MORAL,),
        ("adherence",),
        60,
        "crowd writers, by construction",
        method="logprobs",
        contrast_set=TURNED,
        shipped=False,
    ),
    DataSet(
        "Moral Stories, adapter",
        (MORAL, TURNED),
        ("adherence",),
        300,
        "crowd writers; turned round by a model",
        method="logprobs",
        group="story_pair",
        adapter="adherence",
    ),
    DataSet(
        "Moral Stories, hidden states",
        (MORAL,),
        ("adherence",),
        100,
        "crowd writers, by construction",
        method="probe",
        contrast_set=TURNED,
        shipped=False,
    ),
    DataSet(
        "Moral Stories, both ways",
        (MORAL, TURNED),
        ("adherence",),
        100,
        "crowd writers; turned round by a model",
        method="probe",
        group="story_pair",
        shipped=False,
    ),
    DataSet("AmbiEnt", (AMBIENT,), ("entailment",), 200, "linguists and crowd workers"),
    DataSet("MultiPICo", (MULTIPICO,), ("irony",), 200, "crowd workers of five nationalities"),
    DataSet("LLMBar", (LLMBAR,), ("preference",), 200, "the set's authors"),
    DataSet(
        "labelled/norms",
        (f"{FIXTURES}/norms.jsonl",),
        (
            "relevance",
            "label_correctness",
            "adherence",
        ),
        66,
    ),
    DataSet(
        "labelled/norms",
        (f"{FIXTURES}/norms.jsonl",),
        ("abstraction", "value_derivation", "derivation"),
        66,
        method="logprobs",
    ),
    DataSet(
        "labelled/norms, adapter",
        (f"{FIXTURES}/norms.jsonl",),
        ("adherence",),
        66,
        method="logprobs",
        adapter="adherence",
        shipped=False,
    ),
    DataSet(
        "labelled/stories",
        (f"{FIXTURES}/stories.jsonl",),
        ("incorporation", "consistency", "implicitness"),
        method="logprobs",
        folds=5,
        adapter="passages",
    ),
    DataSet("labelled/situations", (f"{FIXTURES}/situations.jsonl",), ("leakage",)),
    DataSet("labelled/pairs", (f"{FIXTURES}/pairs.jsonl",), ("entailment",)),
    DataSet("labelled/replies", (f"{FIXTURES}/replies.jsonl",), ("irony",)),
    DataSet("labelled/outputs", (f"{FIXTURES}/outputs.jsonl",), ("preference",)),
    DataSet(
        "labelled/extractions",
        (f"{FIXTURES}/extractions.jsonl",),
        ("value_extraction",),
        method="logprobs",
    ),
)

ELSEWHERE = (
    DataSet(
        "stories of another hand",
        ("{data}/stories_other_hand/stories.jsonl",),
        ("incorporation", "consistency", "implicitness"),
    ),
)
"""Sets whose author wrote nothing that the shipped judge of the check was taught or fitted to; its
profile is held fixed on them. For derivation, abstraction and value_extraction there is none: of
NormAd's rows with background and value four are at hand."""


UNITS = tuple(replace(one, checks=(check,)) for one in SETS for check in one.checks)
"""Every set with every check of its own, which are measured one by one."""


def key(unit: DataSet) -> str:
    return f"{unit.name}, {unit.checks[0]}"


def job(units: Sequence[DataSet], data: Path) -> CalibrationJob:
    """The units of one check together."""
    named = {s.format(data=data): unit.records for unit in units for s in unit.sources}
    one = units[0]
    return CalibrationJob(
        tuple(named),
        one.checks,
        records=named,
        group=one.group,
        folds=one.folds,
        contrast_set=one.contrast_set.format(data=data) if one.contrast_set else None,
    )


def resources_for(unit: DataSet, resources: Resources) -> Resources:
    """The resources with the method and the adapter of the unit; clients are shared."""
    models = (f"{DEFAULT.spec}+{unit.adapter}",) if unit.adapter else resources.settings.model
    settings = resources.settings.model_copy(update={"method": unit.method, "model": models})
    return replace(
        resources,
        rubrics=replace(resources.rubrics, settings=settings),
        models=replace(resources.models, settings=settings),
    )
