"""llama.cpp's own HTTP server as a process.

    python -m judge.serving.llama_cpp --model FILE.gguf --port 0 [--context N] [--parallel N] ...

It speaks OpenAI's protocol at /v1 and answers /health, which is 200 once the model is loaded. Where
$VLLM_API_KEY is set, that key is asked for. Ends at SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from judge.serving.command import KEY_VARIABLE

CONTEXT_TOKENS = 8192
BATCH_TOKENS = 256
_WARNINGS = 2
_PROMPT_CACHE_MIB = 512


def engine_parameters(path: Path, context: int) -> Any:
    """What xllamacpp's `Server` is started with, in this process or in one of its own.

    `context` is in tokens, shared by all calls that are answered at once.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.warmup = False
    params.fit_params = False
    params.n_ctx = context
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = physical_cores()
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    # Flash attention and repacked weights round differently for a prompt that is half cached.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_extra_bufts = True
    params.ui = False
    return params


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line of this module, documented in docs/engines/vllm.md."""
    parser = argparse.ArgumentParser(prog="python -m judge.serving.llama_cpp")
    parser.add_argument("--model", type=Path, required=True, help="a .gguf file")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS, help="tokens of a call")
    parser.add_argument("--parallel", type=int, default=1, help="calls answered at once")
    parser.add_argument("--threads", type=int, help="default: one for each core")
    parser.add_argument("--gpu-layers", type=int, help="layers on the GPU; default: llama.cpp's")
    parser.add_argument(
        "--no-cache-prompt",
        action="store_true",
        help="evaluate every prompt whole: slower, and no answer depends on what came before",
    )
    return parser.parse_args(arguments)


def parameters(told: argparse.Namespace) -> Any:
    """What xllamacpp's `Server` is started with."""
    params = engine_parameters(told.model, told.context * told.parallel)
    params.verbosity = _WARNINGS
    params.n_parallel = told.parallel
    params.cache_prompt = not told.no_cache_prompt
    params.hostnames = [told.host]
    params.port = told.port
    if told.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = told.threads
    if told.gpu_layers is not None:
        params.n_gpu_layers = told.gpu_layers
    key = os.environ.get(KEY_VARIABLE, "").strip()
    params.api_keys = [key] if key else []
    return params


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    import xllamacpp

    told = parse(sys.argv[1:])
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(parameters(told))
    sys.stdout.write(f"llama.cpp listens at {server.listening_address}\n")
    sys.stdout.flush()
    ended.wait()
    # The engine's threads do not end while a call is under way.
    os._exit(0)


def physical_cores() -> int:
    """Cores that this process may run on; two hardware threads of one core count once."""
    if hasattr(os, "sched_getaffinity"):
        return len({_siblings(cpu) for cpu in os.sched_getaffinity(0)})
    return os.cpu_count() or 1


def _siblings(cpu: int) -> str:
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return topology.read_text(encoding="ascii").strip()
    except OSError:
        return str(cpu)


if __name__ == "__main__":
    main()
