"""Reads the arguments of the Python API as the command line reads its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from judge.configuration import no_such_setting, refuse_stray, resolve
from judge.errors import UsageError
from judge.judgement import Judgement
from judge.questions.rubric import Rubric
from judge.records.read import InMemory, input_files
from judge.records.tables import refuse_header
from judge.run.job import Job
from judge.run.output import input_path, real, refuse_nameless, refuse_same
from judge.run.profiles import profiled_models, profiles_of
from judge.settings import IN_PROCESS, Settings

Pathlike = str | PathLike[str]

Records = Any
"""Records, or the files that they are read from: a path, or several path objects. A string among
records is a text, a judgement its record. A table (pandas, polars, Arrow, `datasets.Dataset`) is
read by rows."""

AnyRubric = Rubric | Mapping[str, Any] | Pathlike | Callable[..., Any]

_OF_A_FILE = frozenset(
    (
        *("out", "resume", "overwrite", "rejudge", "review", "review_verdicts", "decisions"),
        *("summary", "gate", "fail_under", "fail_under_repaired"),
    )
)
"""Arguments of runs that write a file and return a report."""


def in_memory(
    records: Any, rubric: Any, options: Mapping[str, Any], **part: Any
) -> tuple[Job, Settings]:
    """The job and settings of a run whose lines are taken in memory; `part` has the job's fields
    that select records."""
    refuse_of_a_file(options)
    settings, rubrics = settings_and_rubrics(rubric, options)
    if (name := settings.engine) not in IN_PROCESS:
        raise UsageError(f"engine: {name} needs OUT: judge.validate_to, or `judge validate -o`")
    part = {**part, "by": texts(part.get("by") or ()), "sample_seed": settings.seed}
    job = Job(**inputs(records), silent=True, rubrics=rubrics, **part)
    job.check()
    return job, settings


def refuse_of_a_file(options: Iterable[str]) -> None:
    """Raise UsageError for an argument that only a run into a file obeys."""
    for name in options:
        if name in _OF_A_FILE:
            raise UsageError(f"{name}: judge.validate_to takes it, which writes OUT")


def inputs(records: Any, outputs: Iterable[Path] = ()) -> dict[str, Any]:
    """A job's fields for records, or for the files that they are read from, except `outputs`."""
    # Pydantic's models can be iterated over, too.
    if isinstance(records, Mapping) or hasattr(records, "model_dump"):
        tables = isinstance(records, Mapping) and all(map(_is_table, records.values()))
        splits = list(records) if tables else []
        one = f"one of the splits {', '.join(map(str, splits))}: choose it" if splits else ""
        raise UsageError(f"records: this is {one or 'one record; put it into a list'}")
    records = rows(records)
    if not (_is_path(records) or isinstance(records, Iterable)):
        raise UsageError(f"records: a list, table or path, not {type(records).__name__}")
    first = records[0] if isinstance(records, list | tuple) and records else None
    if isinstance(first, str) and "\n" not in first and Path(first).is_file():
        raise UsageError(
            f"records: {first!r} is a file, and strings in a list are texts: name several files "
            "as path objects"
        )
    if _is_path(records) or isinstance(first, PathLike):
        return {"inputs": input_files(texts(records), outputs)}
    return {"records": map(_line, records)}


def index_of(table: Any) -> Any:
    """The index of a DataFrame or Series of pandas; None for anything else."""
    return table.index if hasattr(table, "reset_index") else None


def rows(table: Any) -> Any:
    """The rows of a table of pandas, polars, Arrow or Hugging Face, recognised by its methods;
    anything else unchanged. Large tables are read in batches.

    Raises UsageError if two columns have the same name: a row would have only one of them.
    """
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # polars, lazy
        table = table.collect()
    columns = getattr(getattr(table, "schema", None), "names", None)  # Arrow's
    if columns is None and hasattr(table, "iterrows"):  # pandas'
        columns = list(table.columns)
    if isinstance(columns, list):
        refuse_header("records", list(map(str, columns)))
    if hasattr(table, "iter_rows"):
        return table.iter_rows(named=True)
    if hasattr(table, "to_batches"):
        return chain.from_iterable(batch.to_pylist() for batch in table.to_batches())
    if hasattr(table, "read_next_batch"):
        return chain.from_iterable(batch.to_pylist() for batch in table)
    if hasattr(table, "to_pylist"):
        return table.to_pylist()
    if hasattr(table, "features") and hasattr(table, "with_format"):  # Hugging Face's
        return table.with_format(None)  # Formatted for pandas, polars or Arrow, a row is a table.
    # A column yields its entries when iterated.
    if hasattr(table, "to_dict") and not hasattr(table, "to_frame"):
        return table.to_dict("records")
    return table


def _is_table(value: object) -> bool:
    return any(hasattr(value, name) for name in ("features", "to_batches", "iter_rows", "iterrows"))


def sources_of(value: Any, name: str = "records") -> list[str]:
    """Files, as texts; records, rows and judgements in memory as one source of this name.

    Raises UsageError for a single judgement.
    """
    if isinstance(value, Judgement):
        raise UsageError(f"{name}: this is one judgement; put it into a list")
    value = rows(value)
    entries = [value] if _is_path(value) or isinstance(value, Mapping) else list(value)
    if all(map(_is_path, entries)):
        return texts(entries)
    source = InMemory.of(name, map(_line, entries))
    # The judgements of a run share one mapping.
    shared = {id(runs): runs for entry in entries if (runs := getattr(entry, "runs", None))}
    source.runs = {mark: run for runs in shared.values() for mark, run in runs.items()}
    return [source]


def _line(entry: object) -> object:
    """A judgement's line, which is its record with the verdict; any other record unchanged."""
    return entry.line if isinstance(entry, Judgement) else entry


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


def texts(value: Any) -> list[str]:
    """A list of texts or paths as texts; a single one becomes a list of one."""
    several = [value] if _is_path(value) else _in_order(value)
    return [text if isinstance(text, str) else str(text) for text in several]


def _in_order(value: Any) -> Any:
    """A set as a list, because its order differs from process to process; else the value."""
    return sorted(value, key=str) if isinstance(value, set | frozenset) else value


def settings_and_rubrics(
    rubric: Any, options: Mapping[str, Any], command: str = "validate"
) -> tuple[Settings, Sequence[Rubric]]:
    """The settings, which name the rubrics in files, and the rubrics in memory."""
    several = isinstance(rubric, list | tuple)
    sources = [_rubric(source) for source in (rubric if several else [rubric])]
    names = [source for source in sources if isinstance(source, str)]
    settings = resolved({**options, "rubric": names})
    refuse_stray(settings, command)
    rubrics = [source for source in sources if isinstance(source, Rubric)]
    if rubrics and not names:
        # An argument decides before a variable or a file, as one that names a rubric does.
        settings = settings.model_copy(update={"rubric": ()})
    return settings, rubrics


def _rubric(source: Any) -> Rubric | str:
    """A rubric; for a file, folder or built-in rubric its name, which the run reads."""
    if isinstance(source, Rubric):
        return source
    if isinstance(source, Mapping):
        return Rubric.from_dict(source)
    if callable(source):
        return Rubric.of_function(source)
    if isinstance(source, str) and "\n" in source:
        return Rubric.from_text(source)
    if _is_path(source):
        return source_of(source)
    kind = type(source).__name__
    raise UsageError(f"rubric: give a Rubric, text, dict, path or function, not {kind}")


def source_of(path: Pathlike) -> str:
    """A rubric's source as the command line takes it: a path object is a path, whatever its
    form."""
    return path if isinstance(path, str) else str(Path(path).absolute())


def resolved(options: Mapping[str, Any], names: Iterable[str] = Settings.model_fields) -> Settings:
    """Settings resolved as on the command line: from options, else from variables and files. Raises
    UsageError for an option other than `names`."""
    for name in options:
        if name not in names:
            raise UsageError(f"{name}: {no_such_setting(name, names)}")
    plain = {
        name: str(value) if isinstance(value, PathLike) else _in_order(value)
        for name, value in options.items()
    }
    return resolve(plain, flag_name=str)


def with_profile(settings: Settings) -> tuple[Settings, list[str]]:
    """The settings with the judges of their profile, and messages on what the user's profile has.

    Raises:
        UsageError: the profile cannot be used.
    """
    profiles = profiles_of(settings)
    return profiled_models(settings, profiles), list(profiles.contents())


def refuse_existing(
    flag: str,
    path: Path | None,
    overwrite: bool,
    *,
    sources: Iterable[str] = (),
    is_folder: bool = False,
) -> None:
    """Raise UsageError if output cannot be written, or would replace one of the sources or, without
    `overwrite`, a file, or a folder with files."""
    if path is None:
        return
    if is_folder and os.path.lexists(path) and not path.is_dir():
        raise UsageError(f"{flag} {path} is a file: name a folder")
    if not is_folder:
        refuse_nameless(flag, path)
        for source in sources:
            refuse_same(flag, path, input_path(source), "the input")
        if path.exists() and not path.is_file():
            return  # A device, such as /dev/null.
    if path.exists() and not overwrite and (path.is_file() or any(path.iterdir())):
        raise UsageError(f"{flag} {path} exists: name another, or --overwrite")
    place = real(path) if is_folder else real(path).parent
    while is_folder and not place.exists():
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise UsageError(
            f"{flag} {path}: cannot be written; name one in a folder that is there and can be "
            "written"
        )
