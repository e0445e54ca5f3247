"""Every setting, declared once: type, default, bounds, help, and how it is called.

The flags of all commands, the JUDGE_* variables, judge.toml, docs/reference.md and the parameters
in the fingerprint are made from `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from judge.modeltables import Price, Server, StepModel

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


def _setting(
    help: str,
    *,
    default: Any = None,
    unset: str = "",
    group: str = "",
    short: str | None = None,
    metavar: str | None = None,
    harmless: bool = False,
    decides: bool = False,
    **bounds: Any,
) -> Any:
    option = Option(help, unset, group, short, metavar, harmless, decides)
    return Field(default, json_schema_extra={"option": option}, **bounds)  # type: ignore[dict-item]


_models = partial(_setting, group=MODELS, metavar="PROVIDER:MODEL")
_choosing = partial(_setting, group=JUDGING)
_judging = partial(_choosing, decides=True)
_engine = partial(_setting, group=ENGINE)
_limit = partial(_setting, group=LIMITS)

Words = tuple[str, ...]


class Settings(BaseModel):
    """What a run is made with."""

    model_config = ConfigDict(extra="forbid")

    model: Words = _models(
        "The judge; several make a panel.", default=(), unset="the embedded local model", short="-m"
    )
    final_model: Words = _models(
        "The final judge.", default=(), unset="the judge, in fresh context"
    )
    rewrite_model: str | None = _models("The model that rewrites.", unset="the judge")
    model_for: Words = _models(
        "The model of one check or rewriter, such as insertion; may be repeated.",
        default=(),
        metavar="STEP=PROVIDER:MODEL",
    )
    models: Mapping[str, StepModel] = _models(
        "By check or rewriter its model, or a table of model and temperature.", default={}
    )
    servers: Mapping[str, Server] = _models(
        "By provider name: url, and key_env, the variable that holds the key.", default={}
    )
    cheap_model: str | None = _models(
        "Read P(yes) from this model first; ask the judge only where that is not sure."
    )
    cheap_margin: float = _models(
        "How far from the threshold --cheap-model must be to be sure.",
        default=0.3,
        metavar="X",
        ge=0,
        le=0.5,
    )
    workflow: str | None = _choosing(
        "extraction, norm, record, story, or file.py:variable for one of your own, which is a "
        "Workflow or a LangGraph graph.",
        unset="by the record's fields",
    )
    check: Words = _choosing(
        "Make only this check: one of the workflow's, or any judging rubric; may be repeated.",
        default=(),
    )
    rubric: Words = _choosing(
        "A rubric of your own: replaces the built-in one of its name, else is asked as well.",
        default=(),
        metavar="FILE|FOLDER|NAME",
    )
    ask: str | None = _choosing("Ask this of each record, and nothing else.", metavar="QUESTION")
    on: Words = _choosing(
        "Field that --ask shows; may be repeated.",
        default=(),
        unset="every text",
        metavar="FIELD",
    )
    answers: Words = _choosing(
        "What --ask may be answered: labels, or scores such as 1,2,3,4,5.",
        default=(),
        unset="yes,no",
        metavar="A,B,...",
    )
    pass_: str | None = _choosing(
        "Which answers to --ask pass: labels, or a bound such as '>= 4'.",
        unset="yes",
        metavar="A,B|BOUND",
        alias="pass",
    )
    map: Words = _judging(
        "Judge the column as the field NAME; a.b is b within a; may be repeated.",
        default=(),
        metavar="NAME=COLUMN",
    )
    method: Literal["structured", "logprobs", "probe"] | None = _judging(
        "structured (typed reply with evidence), logprobs (first token) or probe (hidden state, as "
        "a profile learnt it).",
        unset="what suits the model",
    )
    votes: int | None = _judging(
        "Votes of each judge.", unset="3 to accept a story, else 1", ge=1, le=99
    )
    all_votes: bool = _judging("Ask every vote, also when the verdict is clear.", default=False)
    per_value: bool = _judging(
        "Structured method: one call a value, not one for all.", default=False
    )
    neutral: Literal["paper", "corrected"] | None = _judging(
        "Neutral norms: their rule must not follow from the background (NormAd's paper), or must "
        "(the corrected release, whose stories the background alone must not settle).",
        unset="paper; no derivation where a record has an Other Background",
    )
    repair: bool = _judging(
        "Rewrite what does not pass, and judge it again; rates are told for both.", default=False
    )
    rounds: int = _judging("With --repair: most rewrites in each loop.", default=3, ge=1, le=20)
    keep_dropped: bool = _judging(
        "With --repair: a story passes without the values that were dropped, as in CQ-Bench, if "
        "what is left passes.",
        default=False,
    )
    temperature: float = _judging("Temperature of a single vote.", default=0.0, ge=0, le=2)
    vote_temperature: float = _judging("Temperature of several votes.", default=0.7, ge=0, le=2)
    rewrite_temperature: float = _judging("Temperature of rewrites.", default=0.7, ge=0, le=2)
    seed: int = _judging("Seed of the first vote, and of --sample.", default=0, ge=0)
    margin: float = _judging(
        "Abstain this close to a probability threshold.", default=0.0, ge=0, lt=0.5
    )
    profile: str | None = _choosing(
        "What `judge calibrate` learnt: judges, thresholds, error rates.",
        unset="the local model's own",
        metavar="FILE|none",
    )
    min_words: int = _judging("Shorter stories are rejected.", default=400, ge=0)
    injected: Literal["abstain", "ask"] = _judging(
        "What a check does with text that has the form of a message to the judge (control tokens, "
        "ready-made replies, ...).",
        default="abstain",
    )
    reasks: int = _judging("Times that an invalid reply is asked again.", default=2, ge=0, le=10)
    engine: Literal["local", "batch", "ray"] = _engine(
        "Where the work is done: this process, providers' batch APIs, or a Ray cluster.",
        default="local",
    )
    address: str | None = _engine(
        "Address of the Ray cluster: auto or HOST:PORT.", unset="a Ray on this machine"
    )
    workers: int | None = _engine(
        "Ray workers.", unset="one for each free core", harmless=True, ge=1
    )
    worker_gpus: int = _engine("GPUs of each Ray worker.", default=1, harmless=True, ge=0)
    concurrency: int = _limit(
        "Most calls and records under way at once.",
        default=16,
        unset="16; 5000 with --engine batch",
        harmless=True,
        ge=1,
        le=100_000,
    )
    timeout: float = _limit("Seconds until a call is given up.", default=120.0, harmless=True, gt=0)
    max_calls: int | None = _limit("Stop gracefully after N paid calls.", ge=0)
    max_cost: float | None = _limit("Stop gracefully at this cost in USD; needs prices.", ge=0)
    prices: Mapping[str, Price] = _limit(
        "USD for a million tokens by model: input and output.", default={}
    )
    cache: bool = _setting("Read and keep replies.", default=True, group=CACHE)
    cache_dir: Path | None = _setting(
        "Folder of the replies.", unset="the user's cache folder", group=CACHE
    )
    trust_config: bool = _setting(
        f"Use all settings of {TOML} in the working directory.", default=False, group=TRUST
    )

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
    extra: Any = Settings.model_fields[name].json_schema_extra
    return cast(Option, extra["option"])


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


_METAVARS = {int: "N", float: "X", Path: "PATH"}


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
