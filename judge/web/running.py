"""Run a web server until a signal or an event ends it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from errno import EADDRNOTAVAIL
from socket import gaierror

from aiohttp import web
from aiohttp.http import HttpProcessingError

from judge.errors import UsageError
from judge.run.stream import interrupts

MAX_BODY = 8 * 1024 * 1024
"""Most bytes in the body of a request."""

_LOG = logging.getLogger(__name__)


def _of_the_server(record: logging.LogRecord) -> bool:
    """Whether a fault is ours; aiohttp's words about a malformed request quote it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


_LOG.addFilter(_of_the_server)


async def run_app(
    app: web.Application,
    ready: Callable[[int], None],
    end: asyncio.Event,
    host: str,
    port: int,
    wait: int = 1,
) -> None:
    """Serve the application until a signal comes or `end` is set, then answer the requests under
    way, for `wait` seconds at most, or until a second signal; requests are not logged.

    Args:
        ready: is called with the port.
        port: 0 takes a free one.

    Raises:
        UsageError: the port is taken, or the host is none of this machine's.
    """
    loop, serving = asyncio.get_running_loop(), asyncio.current_task()
    assert serving is not None

    def stop(again: bool) -> None:
        loop.call_soon_threadsafe(serving.cancel if again else end.set)

    runner = web.AppRunner(app, access_log=None, logger=_LOG, shutdown_timeout=wait)
    await runner.setup()
    with interrupts(stop), suppress(asyncio.CancelledError):
        try:
            await _start(web.TCPSite(runner, host, port), host, port)
            ready(runner.addresses[0][1])
            await end.wait()
        finally:
            await runner.cleanup()


async def _start(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        nameless = isinstance(error, gaierror)
        unknown = nameless or error.errno == EADDRNOTAVAIL
        place = f"--host {host}" if unknown else f"--port {port}"
        # asyncio's own words repeat the address.
        reason = error.strerror if nameless else os.strerror(error.errno or 0)
        raise UsageError(f"{place}: {reason}; name another") from error
