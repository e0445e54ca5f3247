"""Finds backends, workflows and benchmarks, ours and other packages', by entry points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from traceback import walk_tb
from typing import Any

from judge.errors import DISTRIBUTION, UsageError


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
        plugin = point.load()
    except Exception as error:
        if _package(point) == DISTRIBUTION:
            raise
        raise _unusable(group, point, f"{type(error).__name__}: {error}") from error
    if not isinstance(plugin, form) and not (isinstance(plugin, type) and issubclass(plugin, form)):
        raise _unusable(group, point, f"{point.value} is no {form.__module__}.{form.__name__}")
    return plugin


def _unusable(group: str, point: EntryPoint, why: str) -> UsageError:
    package = _package(point)
    return UsageError(
        f"{point.name} in {group}, of the package {package}, cannot be used: {why}; mend "
        f"{package}, or uninstall it"
    )


def owner(error: BaseException) -> str:
    """The package in whose code an unexpected error arose: judge, or that of a plug-in."""
    owners = {
        point.module.partition(".")[0]: _package(point)
        for points in _installed().values()
        for point in points
    }
    modules = (
        str(frame.f_globals.get("__name__")).partition(".")[0]
        for frame, _ in walk_tb(error.__traceback__)
    )
    packages = [owners[module] for module in modules if module in owners]
    return packages[-1] if packages else DISTRIBUTION


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
        owners = ", ".join(sorted(package for package, _ in points))
        raise UsageError(
            f"{name}: several packages provide a {group.removeprefix('judge.').rstrip('s')} of "
            f"this name ({owners}): uninstall all but one"
        )
    return next(iter(points.values()), None)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"
