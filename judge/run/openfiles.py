"""Open files: each call to a server holds one, and systems allow a process few."""

from __future__ import annotations

from judge.errors import UsageError

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

RESERVE = 128
"""Open files beside the connections: inputs, OUT, cache, shelf, modules being loaded, pipes."""


def allow_open_files(connections: int) -> None:
    """Have the system allow so many connections at once, beside all else that is opened.

    The soft limit is raised, as far as the hard one lets it.

    Raises:
        UsageError: the hard limit is too low; with the numbers.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + RESERVE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError) as error:
        # macOS says that there is no hard limit, and has one all the same.
        most = soft if hard == resource.RLIM_INFINITY else hard
        fewer = max(0, most - RESERVE)
        raise UsageError(
            f"{connections} calls at once need {needed} open files, and this system allows {most}: "
            + (f"ask for at most {fewer} with --concurrency, or raise" if fewer else "raise")
            + " the limit (ulimit -n)"
        ) from error
