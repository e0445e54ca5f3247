"""`judge models serve`: a model server that judge starts, watches and stops."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.errors import UsageError
from judge.serving.command import KEY_VARIABLE, Kind, Served

if TYPE_CHECKING:
    from judge.serving.supervisor import Supervisor

EPILOG = """**Examples**

`judge models serve Qwen/Qwen3-8B --tensor-parallel 2` — vLLM on two cards

`judge models serve smollm2-135m --server llama.cpp -- --parallel 4` — further options of the server

Put the address that is printed into VLLM_BASE_URL and judge with `vllm:MODEL`, the name that is
served: llama.cpp's server answers to any. With VLLM_API_KEY set, the server asks for that key.
"""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def command(
    model: Annotated[
        str,
        typer.Argument(
            help="For vLLM a name of the Hugging Face hub or a folder, for llama.cpp a name that "
            "`judge models list` shows or a .gguf file."
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="After `--`: options handed to the server as they are."),
    ] = None,
    server: Annotated[Kind, typer.Option(help="What serves the model.")] = Kind.VLLM,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen at; 0: one that is free.")
    ] = 0,
    tensor_parallel: Annotated[
        int | None, typer.Option(min=1, help="Cards that share the model (vLLM).")
    ] = None,
    context: Annotated[
        int | None, typer.Option(min=1, help="Tokens that a call may have, reply included.")
    ] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="Share of each card's memory to take (vLLM)."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="The file that the server's output goes to, at its end.")
    ] = None,
) -> None:
    """Start a model server and print its address once it answers.

    Watches it, starts it again when it dies, and stops it at Ctrl-C or SIGTERM. What happens is
    told on standard error; standard output has one line, the address.
    """
    from judge.serving.supervisor import Supervisor

    served = Served(server, model, tensor_parallel, context, gpu_memory, tuple(options or ()))
    served.refuse_missing()
    key = os.environ.get(KEY_VARIABLE, "").strip() or None
    if host not in _LOOPBACK and key is None:
        raise UsageError(
            f"--host {host} opens the model to the network: set {KEY_VARIABLE} to a key that "
            "callers must know"
        )
    supervisor = Supervisor(served, key=key, host=host, port=port or None, log=log, told=_tell)
    asyncio.run(_served(supervisor))


async def _served(supervisor: Supervisor) -> None:
    watching = asyncio.ensure_future(_watched(supervisor))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, watching.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await watching
            return
        _tell(f"{supervisor.name} is stopped")
    finally:
        await supervisor.aclose()


async def _watched(supervisor: Supervisor) -> None:
    await supervisor.ready()
    typer.echo(supervisor.url)
    await supervisor.ended()


def _tell(text: str) -> None:
    typer.echo(f"judge: {text}", err=True)
