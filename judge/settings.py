"""Every setting, declared once: type, default, bounds, help, and how it is called.

The flags of all commands, the JUDGE_* variables, judge.toml, docs/reference.md and the parameters
in the fingerprint are made from `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from judge.modeltables import Price, Server, StepModel, Warmth

TOML = "judge.toml"
PREFIX = "JUDGE_"
MODELS, JUDGING, ENGINE = "Models", "Judging", "Engine"
LIMITS, CACHE, TRUST = "Speed and money", "Cache", "Trust"
"""Groups of settings: a command asks for some of them, and its help shows each under its name."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is declared of a setting beside its type and default.

    `unset` says what happens without it, where the default does not. An untrusted judge.toml may
    set what is `harmless`: it loosens no check, runs no code, chooses no model or host, and makes
    no run dearer. What `decides` can change a verdict, and is part of the fingerprint as it is.
    """

    help: str
    unset: str = ""
    group: str = ""
    short: str | None = None
    metavar: str | None = None
    harmless: bool = False
    decides: bool = False


Models = partial(Option, group=MODELS, metavar="PROVIDER:MODEL")
Choosing = partial(Option, group=JUDGING)
Judging = partial(Choosing, decides=True)
Engine = partial(Option, group=ENGINE)
Limits = partial(Option, group=LIMITS)


Words = tuple[str, ...]
_METAVARS = {int: "N", float: "X", Path: "PATH"}


class Settings(BaseModel):
    """What a run is made with."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[
        Words,
        Models("Model that judges; several make a panel.", "the embedded local model", short="-m"),
    ] = ()
    final_model: Annotated[
        Words, Models("Model that decides at the end of a story.", "the judge")
    ] = ()
    rewrite_model: Annotated[
        str | None, Models("Model that rewrites, with --repair.", "the judge")
    ] = None
    model_for: Annotated[
        Words,
        Models(
            "Model for one check or rewriter, such as insertion; repeatable.",
            metavar="STEP=PROVIDER:MODEL",
        ),
    ] = ()
    models: Annotated[
        Mapping[str, StepModel],
        Models("Model of each check or rewriter, or a table of model and temperature."),
    ] = Field(default_factory=dict)
    servers: Annotated[
        Mapping[str, Server],
        Models("Servers by provider name: url, and key_env, the variable that holds the key."),
    ] = Field(default_factory=dict)
    cheap_model: Annotated[
        str | None,
        Models("Ask this model first (P(yes)), and the judge only where it is not sure."),
    ] = None
    cheap_margin: Annotated[
        float,
        Field(ge=0, le=0.5),
        Models("--cheap-model is sure this far from its threshold.", metavar="X"),
    ] = 0.3
    workflow: Annotated[
        str | None,
        Choosing(
            "extraction, norm, record, story, or your own: file.py:variable, a Workflow or a "
            "LangGraph graph.",
            "by the record's fields",
        ),
    ] = None
    check: Annotated[
        Words,
        Choosing("Make only this check: one of the workflow's, or any judging rubric; repeatable."),
    ] = ()
    rubric: Annotated[
        Words,
        Choosing(
            "Your own rubric: replaces the built-in one of the same name, or is asked as well.",
            metavar="FILE|FOLDER|NAME",
        ),
    ] = ()
    ask: Annotated[
        str | None,
        Choosing("Ask each record this question, and nothing else.", metavar="QUESTION"),
    ] = None
    on: Annotated[
        Words,
        Choosing("Field to show with --ask; repeatable.", "every text", metavar="FIELD"),
    ] = ()
    answers: Annotated[
        Words,
        Choosing(
            "Possible answers to --ask: labels, or scores such as 1,2,3,4,5.",
            "yes,no",
            metavar="A,B,...",
        ),
    ] = ()
    pass_: Annotated[
        str | None,
        Field(alias="pass"),
        Choosing(
            "Answers to --ask that pass: labels, or a bound such as '>= 4'.",
            "yes",
            metavar="A,B|BOUND",
        ),
    ] = None
    map: Annotated[
        Words,
        Judging(
            "Read this column as the field NAME; a.b is b within a; repeatable.",
            metavar="NAME=COLUMN",
        ),
    ] = ()
    method: Annotated[
        Literal["structured", "logprobs", "probe"] | None,
        Judging(
            "How to read answers: structured (typed reply with evidence), logprobs (first token) "
            "or probe (hidden state; needs a profile).",
            "by model",
        ),
    ] = None
    votes: Annotated[
        int | None,
        Field(ge=1, le=99),
        Judging("Votes of each judge.", "3 at the end of a story, else 1"),
    ] = None
    all_votes: Annotated[bool, Judging("Ask every vote, even when the verdict is clear.")] = False
    per_value: Annotated[bool, Judging("Structured method: one call for each value.")] = False
    neutral: Annotated[
        Literal["paper", "corrected"] | None,
        Judging(
            "Neutral norms: the rule must not follow from the background (paper), or must, and the "
            "background alone must not settle the story (corrected release).",
            "paper; records with an Other Background skip derivation",
        ),
    ] = None
    repair: Annotated[
        bool, Judging("Rewrite what does not pass, and judge it again; print both pass rates.")
    ] = False
    rounds: Annotated[
        int, Field(ge=1, le=20), Judging("With --repair: rewrites in each loop, at most.")
    ] = 3
    keep_dropped: Annotated[
        bool,
        Judging("With --repair: a story passes if its remaining values do, as in CQ-Bench."),
    ] = False
    temperature: Annotated[float, Warmth, Judging("Temperature of a single vote.")] = 0.0
    vote_temperature: Annotated[float, Warmth, Judging("Temperature of several votes.")] = 0.7
    rewrite_temperature: Annotated[float, Warmth, Judging("Temperature of rewrites.")] = 0.7
    seed: Annotated[int, Field(ge=0), Judging("Seed of votes and of --sample.")] = 0
    margin: Annotated[
        float, Field(ge=0, lt=0.5), Judging("Abstain this close to a probability threshold.")
    ] = 0.0
    profile: Annotated[
        str | None,
        Choosing(
            "Profile from `judge calibrate`: judges, thresholds, error rates.",
            "the local model's",
            metavar="FILE|none",
        ),
    ] = None
    min_words: Annotated[int, Field(ge=0), Judging("Reject shorter stories.")] = 400
    injected: Annotated[
        Literal["abstain", "ask"],
        Judging(
            "Text that looks like a message to the judge (control tokens, ready-made replies, "
            "...): abstain, or ask the model all the same."
        ),
    ] = "abstain"
    reasks: Annotated[
        int, Field(ge=0, le=10), Judging("Ask again after an invalid reply, so many times.")
    ] = 2
    engine: Annotated[
        Literal["local", "batch", "ray"],
        Engine("Where to judge: this process, providers' batch APIs, or a Ray cluster."),
    ] = "local"
    address: Annotated[
        str | None,
        Engine("Address of the Ray cluster: auto or HOST:PORT.", "a Ray on this machine"),
    ] = None
    workers: Annotated[
        int | None,
        Field(ge=1),
        Engine("Ray workers.", "one a free core", harmless=True),
    ] = None
    worker_gpus: Annotated[int, Field(ge=0), Engine("GPUs of each Ray worker.", harmless=True)] = 1
    concurrency: Annotated[
        int,
        Field(ge=1, le=100_000),
        Limits(
            "Calls and records in flight, at most.",
            "16; 5000 with --engine batch",
            harmless=True,
        ),
    ] = 16
    timeout: Annotated[
        float, Field(gt=0), Limits("Seconds before a call times out.", harmless=True)
    ] = 120.0
    max_calls: Annotated[int | None, Field(ge=0), Limits("Stop gracefully after N paid calls.")] = (
        None
    )
    max_cost: Annotated[
        float | None, Field(ge=0), Limits("Stop gracefully at this cost in USD; needs prices.")
    ] = None
    prices: Annotated[
        Mapping[str, Price], Limits("Prices by model: USD for a million input and output tokens.")
    ] = Field(default_factory=dict)
    cache: Annotated[bool, Option("Reuse cached replies, and keep new ones.", group=CACHE)] = True
    cache_dir: Annotated[
        Path | None, Option("Folder of cached replies.", "the user's cache folder", group=CACHE)
    ] = None
    trust_config: Annotated[
        bool, Option(f"Trust all settings of {TOML} in this folder.", group=TRUST)
    ] = False

    _from_files: dict[str, tuple[str, ...]] = PrivateAttr(default_factory=dict)

    @property
    def from_files(self) -> Mapping[str, tuple[str, ...]]:
        """The settings that files decided: their names by file."""
        return self._from_files

    @property
    def columns(self) -> dict[str, str]:
        """By names that fields have for judges, the columns that hold them (`map`)."""
        return dict(pair.split("=", 1) for pair in self.map)

    @property
    def steps(self) -> dict[str, StepModel]:
        """What single checks and rewriters are put to; --model-for goes before [models]."""
        known = dict(self.models)
        for pair in self.model_for:
            step, model = pair.split("=", 1)
            known[step] = known.get(step, StepModel()).model_copy(update={"model": model})
        return known

    def without_steps(self) -> Settings:
        """The same for commands that look at a model alone, and put every step to it."""
        return self.model_copy(update={"models": {}, "model_for": ()})

    def deciding(self) -> dict[str, Any]:
        """The settings that can change a verdict, as JSON has them: part of the fingerprint."""
        names = {name for name in Settings.model_fields if option(name).decides}
        return self.model_dump(mode="json", include=names)

    @field_validator("map", mode="before")
    @classmethod
    def _columns(cls, value: object) -> object:
        """Of one text, several, or the table [map]: NAME=COLUMN, each name once."""
        if isinstance(value, Mapping):
            value = [f"{name}={column}" for name, column in value.items()]
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple):
            return value
        pairs = [part for text in given for part in str(text).split(",") if part.strip()]
        columns: dict[str, str] = {}
        for pair in pairs:
            name, _, column = (part.strip() for part in pair.partition("="))
            if not name or not column:
                raise ValueError(f"{pair!r} is not NAME=COLUMN")
            if name == "judge":
                raise ValueError(f"{pair}: the name judge is reserved for the verdict")
            if columns.setdefault(name, column) != column:
                raise ValueError(f"{name} is named twice: {columns[name]} and {column}")
        return tuple(f"{name}={column}" for name, column in columns.items())

    @field_validator("model_for")
    @classmethod
    def _pairs(cls, pairs: Words) -> Words:
        """STEP=PROVIDER:MODEL, each step once."""
        steps = [pair.partition("=")[0] for pair in pairs]
        for step, pair in zip(steps, pairs, strict=True):
            if not all(pair.partition("=")):
                raise ValueError(f"{pair!r} is not STEP=PROVIDER:MODEL")
            if steps.count(step) > 1:
                raise ValueError(f"{step} is named twice; a step has one model")
        return pairs

    @field_validator("model", "final_model", "model_for", "check", "rubric", "on", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("answers", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """One text holds all answers, with commas between them."""
        one = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        return cls._split(one)


# ---------------------------------------------------------------- what is declared


def option(name: str) -> Option:
    """The declaration of a setting."""
    return next(one for one in Settings.model_fields[name].metadata if isinstance(one, Option))


def key(name: str) -> str:
    """A setting's name in judge.toml: `pass` for pass_, which Python does not let us name so."""
    return Settings.model_fields[name].alias or name


def flag(name: str) -> str:
    """`--min-words` for min_words."""
    return f"--{key(name).replace('_', '-')}"


def variable(name: str) -> str:
    """`JUDGE_MIN_WORDS` for min_words."""
    return f"{PREFIX}{key(name)}".upper()


def has_flag(name: str) -> bool:
    """Whether a setting has a flag; tables do not."""
    return get_origin(Settings.model_fields[name].annotation) is not Mapping


def is_switch(name: str) -> bool:
    """Whether a setting is on or off: `--cache`, `--no-cache`."""
    return Settings.model_fields[name].annotation is bool


def metavar(name: str) -> str:
    """What stands for a setting's value in the help: `N`, `a|b`, ..."""
    kind = Settings.model_fields[name].annotation
    kinds = (kind, *get_args(kind))
    choices = [get_args(one) for one in kinds if get_origin(one) is Literal]
    usual = (word for one, word in _METAVARS.items() if one in kinds)
    return option(name).metavar or next(("|".join(words) for words in choices), next(usual, "TEXT"))


def described(name: str) -> str:
    """The help of a setting with its default: `... [default: 3]`."""
    declared, default = option(name), Settings.model_fields[name].default
    told = declared.unset
    if not told and isinstance(default, int | float | str) and not is_switch(name):
        told = str(default).removesuffix(".0")
    return f"{declared.help} [default: {told}]" if told else declared.help
