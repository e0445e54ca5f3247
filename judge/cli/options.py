"""Options that settings declare, and those that several commands share."""

from __future__ import annotations

import getpass
import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.printing import print_message
from judge.errors import Exit, missing_extra

if TYPE_CHECKING:
    from judge.settings import Settings

Function = Callable[..., None]

OF_WORKFLOWS = "of workflows"
"""For `with_settings`: the settings that workflows declare."""

HELP_ALL = "judge.help_all"
"""Key in a context's `meta`: help shows every option."""

INPUT, OUTPUT = "Input", "Output"
_STATISTICS = ("matplotlib", "numpy", "scipy", "sklearn")


def files(name: str, content: str) -> Any:
    """An argument for files or standard input: its name in the help, and what the files hold."""
    return typer.Argument(metavar=name, help=f"{content} - is stdin.", show_default=False)


def completed(kind: str) -> Callable[[str], list[str]]:
    """The callback by which a shell completes values of this kind (judge/cli/completion.py)."""

    def values(incomplete: str) -> list[str]:
        from judge.cli.completion import values

        return values(kind, incomplete)

    return values


Inputs = Annotated[
    list[str] | None,
    files("INPUT", "JSON, CSV, TSV, Excel, Parquet or Arrow (.gz, .zst); a folder;"),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="jsonl, json, csv, tsv, parquet, arrow or xlsx. [default: by ending or first bytes]",
        rich_help_panel=INPUT,
        autocompletion=completed("formats"),
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="A[,B...]", help="Column of the labels; several: one per person."),
]
Limit = Annotated[int | None, typer.Option(min=0, help="Only the first N records.")]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Only N records, drawn at random by --seed.", rich_help_panel=INPUT),
]
ByField = Annotated[
    list[str] | None,
    typer.Option(
        help="Also count by this field; --sample draws evenly from its values; repeatable.",
        metavar="FIELD",
        rich_help_panel=INPUT,
    ),
]
EvenBy = Annotated[
    list[str] | None,
    typer.Option(
        help="With --sample: draw evenly from the values of this field; repeatable.",
        metavar="FIELD",
        rich_help_panel=INPUT,
    ),
]
BySlice = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="FIELD", help="Tables by this field, too; repeatable."),
]


def _show_all(context: typer.Context, flag: bool) -> None:
    if flag and not context.resilient_parsing:
        context.meta[HELP_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


_help_all = partial(typer.Option, "--help-all", is_eager=True, callback=_show_all)
HelpAll = Annotated[bool, _help_all(help="Show all options, by topic.")]
HelpAllOfGroup = Annotated[bool, _help_all(hidden=True)]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", help="Write to this file instead of standard output.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume OUT: keep finished records, redo errors.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed for the intervals.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
All = Annotated[
    bool, typer.Option("--all", help="Print all tables and columns, not only the headline.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print calls, tokens and cost; ask nothing.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]


def names(text: str | None) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def with_settings(*names: str, **helps: str) -> Callable[[Function], Function]:
    """Give a command the flags of settings, and their values as its parameter `settings`.

    Args:
        names: settings, or their groups (`"Judging"`, ...), or `OF_WORKFLOWS`.
        helps: help of settings that mean something else in this command.
    """

    def decorate(function: Function) -> Function:
        function.settings = names, helps  # type: ignore[attr-defined]
        return function

    return decorate


def parsed(function: Function) -> Callable[..., None]:
    """The command in typer's form, with a parameter for each flag.

    Settings are loaded here, not in `with_settings`: `judge --help` does not need them.
    """
    keyword = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    help_all = keyword("help_all", default=False, annotation=HelpAll)
    if not hasattr(function, "settings"):

        def plain(help_all: bool, **values: Any) -> None:
            function(**values)

        own = inspect.signature(function, eval_str=True).parameters.values()
        return _signed(plain, function, [*own, help_all])
    from judge import settings as declared
    from judge.options import TRUST

    requested, helps = {*function.settings[0], TRUST}, function.settings[1]
    fields = declared.Settings.model_fields
    common = declared.CoreSettings.model_fields
    terms = {
        name: {name, declared.option(name).group, *(() if name in common else (OF_WORKFLOWS,))}
        for name in fields
    }
    names = [n for n in fields if declared.has_flag(n) and not requested.isdisjoint(terms[n])]
    groups = {declared.option(name).group for name in fields} | {OF_WORKFLOWS}
    assert requested <= {*fields, *groups}, requested - {*fields, *groups}
    scope = {"Settings": declared.Settings}
    declared_parameters = inspect.signature(function, eval_str=True, locals=scope).parameters
    names = [name for name in names if not _taken(name, declared_parameters)]

    def command(context: typer.Context, help_all: bool, **values: Any) -> None:
        settings = _resolved({name: values.pop(name) for name in names})
        from judge.configuration import refuse_stray

        # A command without --no-cache asks no model.
        suits = "engine" in names or "cache" not in names
        refuse_stray(settings, "validate" if suits else context.info_name or "this")
        if "context" in declared_parameters:
            values["context"] = context
        function(**values, settings=settings)

    parameters = [
        *(
            parameter
            for name, parameter in declared_parameters.items()
            if name not in ("context", "settings")
        ),
        keyword("context", annotation=typer.Context),
        help_all,
        *(keyword(n, default=None, annotation=_flag(n, helps.get(n))) for n in names),
    ]
    return _signed(command, function, parameters)


def _taken(name: str, parameters: Collection[str]) -> bool:
    """Whether the command has an option of a setting's name; a warning says so."""
    if name not in parameters:
        return False
    from judge.settings import Settings

    bases: Any = Settings.__bases__
    owner = next(base for base in bases if name in base.model_fields)
    print_message(f"the setting {name} of {owner.__module__} gets no flag: rename it")
    return True


def _signed(
    command: Function, function: Function, parameters: Sequence[inspect.Parameter]
) -> Function:
    """The command with these parameters, and the name and help of `function`, which it calls."""
    parameters = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def _resolved(flags: dict[str, Any]) -> Settings:
    """The settings. Prints unknown JUDGE_ variables, settings from files, and replaced rubrics."""
    from judge.configuration import resolve, strays

    for stray in strays():
        print_message(f"{stray} is not a variable of judge and is ignored")
    settings = resolve(flags)
    for path, names in settings.from_files.items():
        print_message(f"from {path}: {', '.join(names)}")
    if settings.rubric:
        from judge.api import replacements

        for replaced in replacements(settings.rubric):
            print_message(replaced)
    return settings


_COMPLETED = {
    **dict.fromkeys(
        ("model", "final_model", "rewrite_model", "cheap_model", "explain_with"), "models"
    ),
    "rubric": "rubrics",
    "check": "checks",
    "workflow": "judge.workflows",
}
"""Kind of values that a shell completes for a setting; for others, the words of a|b."""


def _flag(name: str, about: str | None) -> Any:
    """The flag of a setting. Values stay text: `resolve` checks them and names the place."""
    from judge import settings as declared

    setting, switch = declared.option(name), declared.is_switch(name)
    several = isinstance(declared.Settings.model_fields[name].default, tuple | dict)
    word: str = declared.flag(name)
    flag: Any = typer.Option(
        f"{word}/--no-{word[2:]}" if switch else word,
        *filter(None, [setting.short]),
        help=about or declared.described(name),
        rich_help_panel=setting.group,
        show_default=False,
        metavar=None if switch else declared.metavar(name),
        autocompletion=None if switch else completed(_COMPLETED.get(name, declared.metavar(name))),
    )
    return Annotated[bool | None if switch else list[str] | None if several else str | None, flag]


_SHARED = {
    *("admin", "administrator", "codespace", "debian", "docker", "ec2-user", "guest", "jovyan"),
    *("judge", "node", "nobody", "pi", "root", "runner", "test", "ubuntu", "user", "vagrant"),
    "vscode",
}


def login_name() -> str:
    """The login name; `annotator` if it is a shared one, such as root, which names no person."""
    try:
        name = getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "annotator"
    return "annotator" if name.lower() in _SHARED else name


def inputs_or_stdin(inputs: list[str] | None, context: typer.Context) -> list[str]:
    """The named inputs, or standard input if it is a pipe; else print help and exit with 2."""
    if inputs:
        return inputs
    if sys.stdin is not None and not sys.stdin.isatty():
        return ["-"]
    # Typer prints formatted help on standard output, where only data may go.
    with redirect_stdout(sys.stderr):
        typer.echo(context.get_help())
    raise typer.Exit(int(Exit.USAGE))


def record_files(
    inputs: list[str] | None, context: typer.Context, *outputs: Path | None
) -> list[str]:
    """Like `inputs_or_stdin`, with folders and patterns replaced by their files, except what a run
    with these outputs writes there."""
    from judge.api import outputs_of
    from judge.records.read import input_files

    return input_files(inputs_or_stdin(inputs, context), outputs_of(*outputs))


def need_calibrate(command: str) -> None:
    """Raise UsageError where a library of the extra `calibrate` is missing."""
    if libraries := [name for name in _STATISTICS if find_spec(name) is None]:
        raise missing_extra(f"{command} needs {', '.join(libraries)}", "calibrate")
