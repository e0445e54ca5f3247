"""Engines on a GPU: whether their answers are the CPU's, and their records per second.

    python bench/gpu.py MODEL [--records 400] [--concurrency 8,64,256]
                              [--parts agree,hidden,killed,pace]
    python bench/gpu.py MODEL --parts pace --random      # the shape of Qwen2.5-7B, random weights

MODEL is a folder that `transformers:` reads; vLLM must be on the PATH. All figures are of `judge
validate` as typed, without its cache, over stories of about 900 tokens (bench/material.py).

- agree: one question by first token, through `transformers:` on the CPU and on the GPU and through
  the server that `vllm:` starts: how far P is from the CPU's, and how many answers differ.
- hidden: the hidden states of the last layer, through `transformers:` on the GPU and through a
  pooling server of vLLM: how far the vectors are apart.
- killed: the server that `vllm:` started gets SIGKILL while it writes typed replies: whether each
  record has its line, how many calls were repeated, and which processes are left.
- pace: a vLLM server that is already up; every run takes stories that no run before took, so that
  the server's cache holds only what the questions about one story share. Typed replies end after
  --max-tokens. `cores` is CPU time for each second, of judge and of each process of the server.
  With --random the weights are random: its texts mean nothing, but its speed is that of a model of
  this shape.

$JUDGE_SERVER_OPTIONS goes to vLLM, e.g. --enforce-eager: without it the server compiles first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from material import VALUES, story, write_stories

from judge.backends import factory
from judge.backends.base import LAST_LAYER, Call, Mode, parse_model, unpacked
from judge.backends.vllm import KEY_VARIABLE, ModelServer

QUESTION = "Does somebody in this story help a neighbour?"
FIVE = tuple(f"Does the story show this: {value.partition('--')[0]}?" for value in VALUES)
GPU = "cuda:0"
ALLOWED = (0, 1, 3)
"""Exit codes of a run that judged its records: all pass, some fail, some stay open."""

BEFORE_KILL = 40
"""Records that are judged before the server is killed."""

AT_ONCE = 16
"""Prompts that the pooling server gets at the same time."""

POOLING = """--runner pooling --convert embed --pooler-config
'{"pooling_type": "LAST", "use_activation": false}'"""
"""Options of a server that gives the last token's hidden state, not scaled to length one."""

TICKS = os.sysconf("SC_CLK_TCK")

SHAPE = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "max_position_embeddings": 32768,
}
"""The shape of Qwen2.5-7B (its config.json), except the vocabulary, which is MODEL's."""


@dataclass(frozen=True, slots=True)
class Run:
    """One `judge validate`: its lines by id, its summary, wall and CPU seconds."""

    lines: Mapping[str, Any]
    summary: Mapping[str, Any]
    wall: float
    cpu: float

    def answers(self) -> dict[str, tuple[str, float] | None]:
        """The first check's answer and P, the middle of its range if only that is known."""
        found: dict[str, tuple[str, float] | None] = {}
        for name, line in self.lines.items():
            evidence = line["judge"]["checks"][0]["votes"][0]["evidence"]
            first = evidence[0] if evidence else {}
            between = first.get("probability_range") or (first.get("probability"),) * 2
            known = first.get("answer") and between[0] is not None
            found[name] = (first["answer"], sum(between) / 2) if known else None
        return found


def command(records: Path, out: Path, model: str, words: Sequence[str]) -> list[str]:
    """`judge validate` as typed."""
    run = [sys.executable, "-m", "judge", "validate", str(records), "-m", model, "--no-cache"]
    kept = ["-o", str(out), "--overwrite", "--summary", str(out.with_suffix(".sums")), "--quiet"]
    return [*run, *kept, *words]


def validated(
    records: Path, out: Path, model: str, words: Sequence[str], env: Mapping[str, str]
) -> Run:
    """Run to the end; raises RuntimeError with the error output if it could not judge."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    words = command(records, out, model, words)
    done = subprocess.run(words, env={**os.environ, **env}, capture_output=True, check=False)
    return _run(out, done.returncode, done.stderr, time.monotonic() - began, before)


def _run(out: Path, code: int, said: bytes, wall: float, before: resource.struct_rusage) -> Run:
    if code not in ALLOWED:
        raise RuntimeError(f"exit {code}: {said[-3000:].decode(errors='replace')}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    summary = json.loads(out.with_suffix(".sums").read_text("utf-8"))
    return Run({line["id"]: line for line in lines}, summary, wall, cpu)


def compared(run: Run, other: Run) -> str:
    """The mean and largest difference in P of two runs, and how many answers differ."""
    ours, theirs = run.answers(), other.answers()
    pairs = [(a, b) for name, a in ours.items() if a and (b := theirs.get(name))]
    if not pairs:
        return f"no answer of {len(ours)} in both"
    apart = [abs(a[1] - b[1]) for a, b in pairs]
    differ = sum(a[0] != b[0] for a, b in pairs)
    far = f"P apart {mean(apart):.4f} on average, {max(apart):.4f} at most"
    return f"{far}; {differ} of {len(pairs)} answers differ ({len(ours)} records)"


def agree(model: Path, records: Path, folder: Path) -> None:
    """Ask the same question through each engine."""
    asked = ["--ask", QUESTION, "--method", "logprobs"]
    engines = {
        "transformers, CPU": (f"transformers:{model}", {"JUDGE_TORCH_DEVICE": "cpu"}),
        "transformers, GPU": (f"transformers:{model}", {"JUDGE_TORCH_DEVICE": GPU}),
        "vllm, own server": (f"vllm:{model}", {}),
    }
    first: Run | None = None
    for name, (spec, env) in engines.items():
        run = validated(records, folder / "agree.jsonl", spec, asked, env)
        first = first or run
        same = "" if run is first else f"; beside the CPU: {compared(run, first)}"
        print(f"{name:20} {run.wall:7.1f} s with start{same}", flush=True)


async def hidden(model: Path, count: int) -> None:
    """The last layer's hidden states of the same prompts, through each engine."""
    os.environ["JUDGE_TORCH_DEVICE"] = GPU
    prompts = [f"{story(number)['story']}\n\n{QUESTION}" for number in range(count)]
    began = time.monotonic()
    ours = await _states(f"transformers:{model}", prompts, 1)
    print(f"transformers, GPU: {count} states in {time.monotonic() - began:.1f} s with start")
    with _options(POOLING):
        server = ModelServer(str(model))
    began = time.monotonic()
    try:
        await server.ready()
        os.environ |= _address(server)
        print(f"{' '.join(server.argv()[1:])}\nup after {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        theirs = await _states(f"vllm:{model}", prompts, AT_ONCE)
        print(f"vllm, pooling server: {count} states in {time.monotonic() - began:.1f} s")
    finally:
        for name in _address(server):
            os.environ.pop(name, None)
        await server.aclose()
    print(apart(ours, theirs), flush=True)


async def _states(spec: str, prompts: Sequence[str], at_once: int) -> list[Sequence[float]]:
    backend, free = factory(spec)(parse_model(spec)[1]), asyncio.Semaphore(at_once)
    if not backend.gives_states:
        raise TypeError(f"{spec} gives no hidden states")

    async def state(prompt: str) -> Sequence[float]:
        async with free:
            call = Call([{"role": "user", "content": prompt}], max_tokens=1, layer=LAST_LAYER)
            return unpacked((await backend.complete(call, Mode.JSON_SCHEMA)).text, "e")

    try:
        return list(await asyncio.gather(*map(state, prompts)))
    finally:
        await backend.aclose()


def apart(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> str:
    """The cosines of pairs of vectors, their lengths, and the largest difference of a number."""
    a, b = np.array(ours), np.array(theirs)
    lengths, others = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    cosines, ratios = (a * b).sum(axis=1) / lengths / others, others / lengths
    return (
        f"cosine {cosines.mean():.5f} on average, {cosines.min():.5f} at least; length "
        f"{ratios.min():.4f} to {ratios.max():.4f} times; numbers {np.abs(a - b).max():.4f} apart "
        f"at most, the largest is {np.abs(a).max():.2f} ({len(a)} vectors of {len(a[0])})"
    )


@contextmanager
def _options(more: str) -> Iterator[None]:
    """$JUDGE_SERVER_OPTIONS with further options."""
    before = os.environ.get("JUDGE_SERVER_OPTIONS", "")
    os.environ["JUDGE_SERVER_OPTIONS"] = shlex.join(shlex.split(f"{before} {more}"))
    try:
        yield
    finally:
        os.environ["JUDGE_SERVER_OPTIONS"] = before


def _address(server: ModelServer) -> dict[str, str]:
    return {"VLLM_BASE_URL": f"{server.address}/v1", KEY_VARIABLE: server.key}


def killed(model: Path, records: Path, folder: Path) -> None:
    """Kill the server while it writes typed replies."""
    asked = ["--ask", QUESTION, "--method", "structured", "--concurrency", "8"]
    out = folder / "killed.jsonl"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    words = command(records, out, f"vllm:{model}", asked)
    with tempfile.TemporaryFile() as said, subprocess.Popen(words, stderr=said) as process:
        while process.poll() is None and not _lines(out) >= BEFORE_KILL:
            time.sleep(0.02)
        (server,) = _children(process.pid)
        os.kill(server, signal.SIGKILL)
        at = _lines(out)
        process.wait()
        said.seek(0)
        errors = said.read()
    run = _run(out, process.returncode, errors, time.monotonic() - began, before)
    (calls,) = run.summary["models"].values()
    verdicts = Counter(line["judge"]["verdict"] for line in run.lines.values())
    print(f"killed after {at} records: {_lines(out)} lines about {len(run.lines)} records")
    print(f"{calls['calls']} calls, {calls['retries']} of them again; {dict(verdicts)}")
    print("\n".join(line for line in errors.decode().splitlines() if "started" in line))
    left = subprocess.run(["pgrep", "-fc", "vllm serve"], capture_output=True, check=False)
    print(f"vllm processes left: {left.stdout.decode().strip()}", flush=True)


def _lines(out: Path) -> int:
    """Lines written so far, also while the file has a temporary name."""
    written = [path for path in out.parent.glob(f"{out.name}*") if path.suffix != ".json"]
    return max((path.read_bytes().count(b"\n") for path in written), default=0)


def _children(pid: int) -> list[int]:
    found = []
    for task in Path("/proc", str(pid), "task").iterdir():
        with suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def random_model(model: Path, folder: Path) -> Path:
    """A folder with MODEL's tokenizer and the configuration of a model of SHAPE."""
    made = folder / "random-7b"
    made.mkdir()
    for path in model.iterdir():
        if path.suffix != ".safetensors" and "index" not in path.name:
            shutil.copy(path, made)
    given = json.loads((model / "config.json").read_text("utf-8"))
    kept = ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")
    config = {
        **{name: given[name] for name in kept if name in given},
        **SHAPE,
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
    (made / "config.json").write_text(json.dumps(config), "utf-8")
    return made


async def pace(model: Path, folder: Path, given: argparse.Namespace) -> None:
    """Measure records per second through a server that is already up."""
    server, first = ModelServer(str(model)), 0
    began = time.monotonic()
    try:
        await server.ready()
        (pid,) = _children(os.getpid())
        print(f"{' '.join(server.argv()[1:])}\nup after {time.monotonic() - began:.0f} s")
        print(
            f"{'asked':16} {'at once':>7} {'records/s':>9} {'calls/s':>8} {'read/s':>8} "
            f"{'of a prefix':>11} {'written/s':>9} {'CPU ms':>7} {'no answer':>9}  cores"
        )
        for name, words in workloads(given.max_tokens).items():
            for at_once in map(int, given.concurrency.split(",")):
                records, count = folder / "pace.jsonl", given.each * at_once
                write_stories(records, count, first)
                asked = [*words, "--concurrency", str(at_once)]
                out, first, before = folder / "paced.jsonl", first + count, server_cpu(pid)
                run = await asyncio.to_thread(
                    validated, records, out, f"vllm:{model}", asked, _address(server)
                )
                cores = _cores(run, before, server_cpu(pid))
                print(f"{name:16} {at_once:7} {_row(run)}  {cores}", flush=True)
    finally:
        await server.aclose()


def workloads(max_tokens: int) -> dict[str, list[str]]:
    """Names and options of what is asked."""
    five = [word for question in FIVE for word in ("--ask", question)]
    typed = ["--method", "structured", "--reasks", "0", "--max-tokens", str(max_tokens)]
    return {
        "one question": ["--ask", QUESTION, "--method", "logprobs"],
        "five questions": [*five, "--method", "logprobs"],
        "one typed reply": ["--ask", QUESTION, *typed],
    }


def server_cpu(pid: int) -> dict[str, float]:
    """CPU seconds so far of a process and of what it started, by name; ended ones are left out."""
    taken: dict[str, float] = {}
    with suppress(OSError):
        home = Path("/proc", str(pid))
        stat = (home / "stat").read_text().rpartition(")")[2].split()
        taken[(home / "comm").read_text().strip()] = (int(stat[11]) + int(stat[12])) / TICKS
        for child in _children(pid):
            for name, seconds in server_cpu(child).items():
                taken[name] = taken.get(name, 0.0) + seconds
    return taken


def _cores(run: Run, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    seconds = run.summary["seconds"]
    used = {name: (cpu - before.get(name, 0.0)) / seconds for name, cpu in after.items()}
    named = [f"{name} {cores:.2f}" for name, cores in used.items() if cores >= 0.01]
    return ", ".join([f"judge {run.cpu / seconds:.2f}", *named])


def _row(run: Run) -> str:
    (model,) = run.summary["models"].values()
    records, seconds = len(run.lines), run.summary["seconds"]
    unknown = sum(answer is None for answer in run.answers().values())
    cached = model["cached_tokens"] / max(1, model["input_tokens"])
    return (
        f"{records / seconds:9.1f} {model['calls'] / seconds:8.1f} "
        f"{model['input_tokens'] / seconds:8.0f} {cached:11.0%} "
        f"{model['output_tokens'] / seconds:9.0f} {1000 * run.cpu / records:7.2f} {unknown:9}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--records", type=int, default=400, help="of agree, hidden and killed")
    parser.add_argument("--each", type=int, default=4, help="stories of pace for each at once")
    parser.add_argument("--max-tokens", type=int, default=128, help="of a typed reply of pace")
    parser.add_argument("--concurrency", default="8,64,256")
    parser.add_argument("--parts", default="agree,hidden,killed,pace")
    parser.add_argument("--random", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records, model = folder / "stories.jsonl", given.model.resolve()
        write_stories(records, given.records)
        if given.random:
            model = random_model(model, folder)
        with _options("--load-format dummy" if given.random else ""):
            parts = given.parts.split(",")
            if "agree" in parts:
                agree(model, records, folder)
            if "hidden" in parts:
                asyncio.run(hidden(model, given.records))
            if "killed" in parts:
                killed(model, records, folder)
            if "pace" in parts:
                asyncio.run(pace(model, folder, given))


if __name__ == "__main__":
    main()
