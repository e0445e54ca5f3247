"""`judge models serve`: a vLLM server that judge starts, restarts once, and stops."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.serving import ModelServer

EPILOG = """**Examples**

`judge models serve Qwen/Qwen3-8B` — one GPU, a free port

`judge models serve Qwen/Qwen3-8B -- --tensor-parallel-size 2` — two GPUs

Put the address that is printed into VLLM_BASE_URL and judge with `vllm:MODEL`, the name that is
served. With VLLM_API_KEY set, the server asks for that key.
"""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def command(
    model: Annotated[str, typer.Argument(help="A name of the Hugging Face hub, or a folder.")],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="After `--`: options handed to `vllm serve` as they are."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen at; 0: one that is free.")
    ] = 0,
    log: Annotated[
        Path | None, typer.Option(help="The file that the server's output goes to, at its end.")
    ] = None,
) -> None:
    """Start a vLLM server and print its address once it answers.

    A server that dies is started again once; Ctrl-C or SIGTERM stops it. What happens is told on
    standard error; standard output has one line, the address.
    """
    from judge.serving import KEY_VARIABLE, ModelServer, Served

    key = os.environ.get(KEY_VARIABLE, "").strip() or None
    if host not in _LOOPBACK and key is None:
        raise UsageError(
            f"--host {host} opens the model to the network: set {KEY_VARIABLE} to a key that "
            "callers must know"
        )
    served = Served(model, tuple(options or ()))
    server = ModelServer(served, key=key, host=host, port=port or None, log=log, told=_tell)
    asyncio.run(_serve(server))


async def _serve(server: ModelServer) -> None:
    running = asyncio.ensure_future(_run(server))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await running
        _tell(f"{server.name} is stopped")
    finally:
        await server.aclose()


async def _run(server: ModelServer) -> None:
    await server.ready()
    typer.echo(server.url)
    await server.ended()


def _tell(text: str) -> None:
    typer.echo(f"judge: {text}", err=True)
