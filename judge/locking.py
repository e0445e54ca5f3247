"""A lock on a file, so that one process at a time uses it."""

from __future__ import annotations


def lock(descriptor: int) -> bool:
    """Try to lock an open file; returns whether it worked. Closing the descriptor unlocks it.

    On file systems and systems without locks, returns True.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
