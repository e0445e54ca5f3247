"""Declares every setting once: type, default, bounds, help and names.

The flags of all commands, the JUDGE_* variables, judge.toml, docs/reference/ and the parameters
in the fingerprint are made from `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

from pydantic import ConfigDict, PrivateAttr, create_model, field_validator

from judge import plugins
from judge.model_tables import Price, Server
from judge.options import (
    CACHE,
    ENGINE,
    JUDGING,
    LIMITS,
    MODELS,
    TRACES,
    TRUST,
    AnswerNames,
    Columns,
    ModelNames,
    NamedPath,
    NameList,
    Names,
    Option,
    Options,
    PassShare,
    StepModels,
    WholeTexts,
    Words,
    judging,
    option_of,
    owners,
    setting,
)

if TYPE_CHECKING:
    from judge.questions.rubric import Rubric

TOML = "judge.toml"
PREFIX = "JUDGE_"

_models = partial(setting, group=MODELS, metavar="PROVIDER:MODEL")
_choosing = partial(setting, group=JUDGING)
_several = partial(_choosing, default=(), common=True)
_engine = partial(setting, group=ENGINE)
_limit = partial(setting, group=LIMITS)

BETTER = "Which one is better?"
"""The question of `--compare` without `--ask`."""

IN_PROCESS = ("local", "batch")
"""Engines that need no entry point in `judge.engines`."""


class CoreSettings(Options):
    """The settings of every run."""

    model_config = ConfigDict(extra="forbid")

    model: ModelNames = _models(
        "Model that judges; several make a panel.",
        default=(),
        unset="the embedded local model",
        short="-m",
        common=True,
    )
    final_model: ModelNames = _models(
        "Model that decides at the end of a workflow.", default=(), unset="the judge"
    )
    rewrite_model: str | None = _models(
        "Model that rewrites, with --repair.", unset="the judge", needs="repair"
    )
    model_for: StepModels = _models(
        "Model for one check or rewriter, such as insertion; repeatable. In judge.toml a table, "
        "which may also set a step's temperature.",
        default={},
        metavar="STEP=PROVIDER:MODEL",
    )
    servers: Mapping[str, Server] = _models(
        "Servers by provider name: url; protocol (openai, systemone, decisions); key_env, the "
        "variable that holds the key; key_header; headers; query; omit; mode.",
        default={},
    )
    cheap_model: str | None = _models(
        "Ask this model first (P(yes)), and the judge only if it is not sure."
    )
    cheap_margin: float = _models(
        "Distance from its threshold at which --cheap-model is sure.",
        default=0.3,
        metavar="X",
        needs="cheap_model",
        ge=0,
        le=0.5,
    )
    explain_with: str | None = _models(
        "Ask this model why a check fails, if its judges give no reason; it decides nothing."
    )
    workflow: str | None = _choosing(
        "A workflow of `judge workflows list`, or your own: file.py:variable, a Workflow or a "
        "LangGraph graph.",
        unset="by the record's fields",
        common=True,
    )
    check: Names = _several(
        "Make only this check: one of the workflow's, or any judging rubric; repeatable.",
    )
    rubric: Names = _several(
        "Your own rubric, by its path: replaces the built-in one of its name, or is asked as well; "
        "or a built-in rubric, by its name.",
        metavar="FILE|FOLDER|NAME",
    )
    ask: WholeTexts = _several("Ask this question alone; repeatable.", metavar="QUESTION")
    name: NameList = _several("Name of an --ask, in their order.", metavar="NAME")
    compare: NameList = _several(
        "Ask which field is best, in both orders.",
        metavar="A,B",
    )
    tie: bool = _choosing("With --compare: allow a tie.", default=False)
    test: WholeTexts = _choosing(
        "Test without a model, as 'answer: {contains: refund}' or file.py:function; repeatable.",
        default=(),
        metavar="TEST",
    )
    on: Names = _several(
        "Field to show with --ask; repeatable.",
        unset="all but id, labels; with --compare only its",
        metavar="FIELD",
    )
    answers: AnswerNames = _several(
        "Answers to --ask: labels, or scores such as 1-5.",
        unset="yes,no",
        metavar="A,B,...",
    )
    pass_: str | None = _choosing(
        "Answers that pass: labels, or a bound ('>= 4').",
        unset="yes; with --answers none",
        metavar="A,B|BOUND",
        alias="pass",
        common=True,
    )
    gate: Names = _several(
        "Exit 1 unless it holds, as 'polite >= 0.9' or 'mean tone >= 4'; repeatable.",
        metavar="'CHECK >= X'",
    )
    fail_under: PassShare = _choosing(
        "Exit 1 if a smaller share of records pass (before repair).", common=True
    )
    fail_under_repaired: PassShare = _choosing(
        "Exit 1 if fewer than this share pass after --repair.", needs="repair"
    )
    map: Columns = judging(
        "Read this column as the field NAME; a.b is b within a; repeatable.",
        default=(),
        metavar="NAME=COLUMN",
        common=True,
    )
    id: str | None = judging("Column that names the records.", metavar="COLUMN", common=True)
    method: Literal["structured", "logprobs", "probe"] | None = judging(
        "How to read answers: structured (typed reply with evidence), logprobs (first token) or "
        "probe (hidden state; needs a profile).",
        unset="by model",
    )
    votes: int | None = judging("Votes of each judge.", unset="the workflow's, else 1", ge=1, le=99)
    all_votes: bool = judging("Ask every vote, even when the verdict is clear.", default=False)
    per_entry: bool = judging("Structured method: one call for each entry.", default=False)
    repair: bool = judging(
        "Rewrite what does not pass, and judge it again; print both pass rates.",
        default=False,
        common=True,
    )
    rounds: int = judging(
        "With --repair: rewrites in each loop, at most.", default=3, needs="repair", ge=1, le=20
    )
    temperature: float = judging("Temperature of a single vote.", default=0.0, ge=0, le=2)
    vote_temperature: float = judging("Temperature of several votes.", default=0.7, ge=0, le=2)
    rewrite_temperature: float = judging(
        "Temperature of rewrites.", default=0.7, needs="repair", ge=0, le=2
    )
    max_tokens: int | None = judging(
        "Most tokens of a reply, reasoning included.",
        unset="the rubric's, plus room for a model's reasoning",
        ge=1,
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = judging(
        "Reasoning effort, for models that reason.", unset="the server's"
    )
    seed: int = judging("Seed of votes and samples.", default=0, ge=0)
    abstain_margin: float = judging(
        "Abstain this close to a probability threshold.", default=0.0, ge=0, lt=0.5
    )
    profile: str | None = _choosing(
        "Profile from `judge calibrate`.",
        unset="the local model's",
        metavar="FILE|none",
        common=True,
    )
    on_injection: Literal["abstain", "ask"] = judging(
        "Text that looks like a message to the judge (control tokens, ready-made replies, ...): "
        "abstain, or ask the model all the same.",
        default="abstain",
    )
    reasks: int = judging("How often to ask again after an invalid reply.", default=2, ge=0, le=10)
    engine: str = _engine(
        "Where to judge: this process, providers' batch APIs, or a Ray cluster.",
        default="local",
        metavar="local|batch|ray",
    )
    address: str | None = _engine(
        "Address of the Ray cluster: auto or HOST:PORT.", unset="a Ray on this machine"
    )
    workers: int | None = _engine("Ray workers.", unset="one per free core", ge=1)
    worker_gpus: int = _engine("GPUs of each Ray worker.", default=1, ge=0)
    concurrency: int = _limit(
        "Calls and records in flight, at most.",
        default=16,
        unset="16; 5000 with --engine batch",
        harmless=True,
        ge=1,
        le=100000,
    )
    timeout: float = _limit("Seconds before a call times out.", default=120.0, harmless=True, gt=0)
    max_calls: int | None = _limit("Stop gracefully after N paid calls.", ge=0)
    max_cost: float | None = _limit(
        "Stop gracefully at this cost in USD; needs prices.", ge=0, common=True
    )
    prices: Mapping[str, Price] = _limit(
        "Prices by model: USD for a million input and output tokens.", default={}
    )
    traces: bool = setting(
        "Send OpenTelemetry spans of records, checks and calls to where OTEL_* variables say.",
        default=False,
        group=TRACES,
    )
    trace_text: bool = setting(
        "With --traces: prompts, replies and reasons, too.",
        default=False,
        needs="traces",
        group=TRACES,
    )
    cache: bool = setting("Reuse cached replies, and keep new ones.", default=True, group=CACHE)
    cache_dir: NamedPath = setting(
        "Folder of cached replies.", unset="the user's cache folder", group=CACHE
    )
    config: NamedPath = setting(
        f"Read this file, trusted, instead of a {TOML} that is found.", group=TRUST
    )
    trust_config: bool = setting(
        f"Trust all settings of the {TOML} that is found.", default=False, group=TRUST
    )

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)
    _files: tuple[str, ...] = PrivateAttr(default=())

    @property
    def sources(self) -> Mapping[str, str]:
        """The flag, variable or file of each setting that is not at its default, by name."""
        return self._sources

    @property
    def from_files(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the settings that each file decided."""
        by_file = {
            file: tuple(sorted(name for name, source in self._sources.items() if source == file))
            for file in self._files
        }
        return {file: names for file, names in by_file.items() if names}

    @property
    def files(self) -> list[Path]:
        """The files that the settings are in or name: profile, rubrics, code, scripts of models."""
        models = [self.rewrite_model, self.cheap_model, self.explain_with]
        models += [*self.model, *self.final_model, *(s.model for s in self.model_for.values())]
        scripts = (model.partition(":")[2] for model in models if model)
        code = (text.rpartition(":")[0] for text in (self.workflow or "", *self.test))
        names = [self.profile, *self._files, *self.rubric, *scripts, *code]
        files: list[Path] = []
        for path in (Path(name) for name in names if name):
            with suppress(OSError, ValueError):  # A name that no file can have.
                files += [path] if path.is_file() else path.glob("*.y*ml")
                files += path.glob("profile.json")
        return files

    def typed(self, name: str) -> bool:
        """Whether a flag or argument set it, not a variable or file, which serve many runs."""
        others = (*self._files, variable(name))
        return name in self.model_fields_set and self._sources.get(key(name)) not in others

    @property
    def package_rubrics(self) -> tuple[Rubric, ...]:
        """The rubrics that the packages' settings bring (`own_rubrics`)."""
        bases: Any = type(self).__bases__
        of_each = (owner.own_rubrics(self) for owner in bases)
        return tuple(rubric for rubrics in of_each for rubric in rubrics)

    @property
    def questions(self) -> Words:
        """The questions of the command line; if there are any, nothing else is asked."""
        return self.ask or ((BETTER,) if self.compare else ())

    @property
    def columns(self) -> dict[str, str]:
        """The columns that hold fields (`map`), by the names that judges have for the fields."""
        columns = dict(pair.split("=", 1) for pair in self.map)
        return columns | ({"id": self.id} if self.id else {})

    def without_steps(self) -> Settings:
        """The same settings without models for single steps, for commands that measure a model."""
        return self.model_copy(update={"model_for": {}})

    def without_questions(self) -> Settings:
        """The same settings without what `judge validate` asks, for commands that ask otherwise: a
        variable or a file may set it for other runs."""
        update = {"workflow": None, **dict.fromkeys(("check", "ask", "compare", "test"), ())}
        return self.model_copy(update=update)

    def deciding(self) -> dict[str, Any]:
        """The settings that can change a verdict, as JSON; part of the fingerprint."""
        names = {name for name in Settings.model_fields if option(name).decides}
        return self.model_dump(mode="json", include=names)

    @field_validator("engine")
    @classmethod
    def _installed(cls, name: str) -> str:
        if name not in (engines := (*IN_PROCESS, *plugins.names("judge.engines"))):
            raise ValueError(f"{name!r} is not one of {', '.join(engines)}")
        return name


if TYPE_CHECKING:
    Settings = CoreSettings
else:
    Settings = create_model(
        "Settings", __base__=(*owners(CoreSettings), CoreSettings), __module__=__name__
    )
    Settings.__doc__ = "The settings of a run: those of every run, and those of workflows."


# ---------------------------------------------------------------- declarations


def option(name: str) -> Option:
    """The declaration of a setting."""
    return cast(Option, option_of(Settings.model_fields[name]))


def key(name: str) -> str:
    """A setting's name in judge.toml: `pass` for pass_, since `pass` is a keyword in Python."""
    return Settings.model_fields[name].alias or name


def flag(name: str) -> str:
    """`--min-words` for min_words."""
    return f"--{key(name).replace('_', '-')}"


def variable(name: str) -> str:
    """`JUDGE_MIN_WORDS` for min_words."""
    return f"{PREFIX}{key(name)}".upper()


def has_flag(name: str) -> bool:
    """Whether a setting has a flag; tables of servers and prices do not."""
    return name not in ("servers", "prices")


def is_switch(name: str) -> bool:
    """Whether a setting is on or off: `--cache`, `--no-cache`."""
    return Settings.model_fields[name].annotation is bool


_METAVARS = {int: "N", float: "X", Path: "PATH"}


def metavar(name: str) -> str:
    """The placeholder of a setting's value in the help: `N`, `a|b`, ..."""
    kind = Settings.model_fields[name].annotation
    kinds = (kind, *get_args(kind))
    choices = [get_args(part) for part in kinds if get_origin(part) is Literal]
    usual = (word for part, word in _METAVARS.items() if part in kinds)
    return option(name).metavar or next(("|".join(words) for words in choices), next(usual, "TEXT"))


def described(name: str) -> str:
    """The help of a setting with its default: `... [default: 3]`."""
    declared, default = option(name), Settings.model_fields[name].default
    text = declared.unset
    if not text and isinstance(default, int | float | str) and not is_switch(name):
        text = str(default).removesuffix(".0")
    return f"{declared.help} [default: {text}]" if text else declared.help
