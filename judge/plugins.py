"""Finds backends, workflows and benchmarks, ours and other packages', by entry points."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from traceback import walk_tb
from typing import Any

from judge.errors import DISTRIBUTION, UsageError

_log = logging.getLogger(__name__)


@cache
def _installed() -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of the groups `judge....`, by group."""
    # Reads the metadata of every installed package, which takes tens of milliseconds. The class of
    # the result differs between Python 3.11 and 3.12.
    points: Any = entry_points()
    groups = (group for group in points.groups if group.startswith("judge."))
    return {group: tuple(points.select(group=group)) for group in groups}


def names(group: str) -> tuple[str, ...]:
    """The names in an entry-point group, sorted."""
    return tuple(sorted({point.name for point in _installed().get(group, ())}))


def load(group: str, name: str, form: type = object) -> Any:
    """The object that an entry point names, an instance or a subclass of `form`; None if there is
    no such name.

    Raises:
        ImportError: a library that judge's own one needs is missing.
        UsageError: several packages claim the name, so it is unclear whose code would run; or
            another package's cannot be loaded, or is something else.
    """
    point = _point(group, name)
    if point is None:
        return None
    try:
        with prints_aside():
            plugin = point.load()
    except (Exception, SystemExit) as error:
        if _package(point) == DISTRIBUTION:
            raise
        raise unusable(group, name, f"{type(error).__name__}: {error}") from error
    if not isinstance(plugin, form) and not (isinstance(plugin, type) and issubclass(plugin, form)):
        kind = f"{form.__module__}.{form.__name__}".removeprefix("builtins.")
        raise unusable(group, name, f"{point.value} is no {kind}")
    return plugin


def usable(group: str, form: type) -> dict[str, Any]:
    """All objects of a group, by name, as `load` returns them.

    One that cannot be used is left out, with a warning, so that what does not need it works. Of
    several packages that claim a name of judge's own, judge's is taken.
    """
    objects = {}
    for name in names(group):
        try:
            objects[name] = load(group, name, form)
        except UsageError as error:
            leave_out(error)
            for point in _installed()[group]:
                if point.name == name and _package(point) == DISTRIBUTION:
                    objects[name] = point.load()
    return objects


def leave_out(error: UsageError) -> None:
    """Warn of an object that cannot be used."""
    _log.warning("judge: %s", error)


def unusable(group: str, name: str, why: str) -> UsageError:
    """The error that another package's object cannot be used."""
    point = _point(group, name)
    package = _package(point) if point else "unknown"
    return UsageError(
        f"{name} in {group}, of the package {package}, cannot be used: {' '.join(why.split())}; "
        f"mend {package}, or uninstall it"
    )


def owner(error: BaseException) -> str:
    """The package in whose code an unexpected error arose: judge, or that of a plug-in."""
    owners = _owners()
    modules = (
        str(frame.f_globals.get("__name__")).partition(".")[0]
        for frame, _ in walk_tb(error.__traceback__)
    )
    packages = [owners[module] for module in modules if module in owners]
    return packages[-1] if packages else DISTRIBUTION


def prints_aside() -> AbstractContextManager[Any]:
    """Prints go to stderr in the main thread, where the command line runs. In the thread of
    `judge.validate` they stay: what the program prints meanwhile would go to stderr, too."""
    in_main = threading.current_thread() is threading.main_thread()
    return redirect_stdout(sys.stderr) if in_main else nullcontext()


@cache
def _owners() -> Mapping[str, str]:
    """The package behind each top-level module that an entry point names."""
    points = (point for points in _installed().values() for point in points)
    return {point.module.partition(".")[0]: _package(point) for point in points}


def packages(group: str, values: Iterable[str]) -> dict[str, str]:
    """`name version` of the package behind each name, except judge itself.

    Part of the fingerprint: another version of a plug-in may judge differently.
    """
    owners = {}
    for name in sorted(set(values)):
        point = _point(group, name)
        if point is not None and (package := _package(point)) != DISTRIBUTION:
            version = point.dist.version if point.dist else "unknown"
            owners[name] = f"{package} {version}"
    return owners


def _point(group: str, name: str) -> EntryPoint | None:
    several = [point for point in _installed().get(group, ()) if point.name == name]
    if len(several) < 2:
        # Do not look up the package's name: reading its metadata takes some milliseconds.
        return next(iter(several), None)
    points = {(_package(point), point.value): point for point in several}
    if len(points) > 1:
        owners = sorted(package for package, _ in points)
        foreign = [owner for owner in owners if owner != DISTRIBUTION]
        which = "all but one" if foreign == owners else " and ".join(foreign)
        raise UsageError(
            f"{name} in {group}: several packages provide it ({', '.join(owners)}): "
            f"uninstall {which}"
        )
    return next(iter(points.values()), None)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"
