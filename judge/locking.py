"""A file that one process at a time may use."""

from __future__ import annotations


def lock(descriptor: int) -> bool:
    """Whether the lock on an open file could be had; it goes with the descriptor.

    File systems and systems without locks count as yes.
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
