"""The two sides of `--engine ray`, joined without Ray: how a run ends, and what it counts. On a
real Ray, with nodes that die: tests/cluster/test_command.py."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from judge.backends.proxies import environment
from judge.cluster import driver, worker
from judge.cluster.driver import ChunkStream, RayEngine, workers_for
from judge.cluster.worker import Done, Feed, Worker
from judge.configuration import resolve
from judge.errors import BackendError, UsageError
from judge.judging.limits import BudgetReached
from judge.judging.transport import Counters
from judge.records import Record
from judge.records.lines import Line
from judge.run.job import Job
from judge.run.panels import Resources
from judge.run.task import Watcher
from judge.run.validate import Validation, of_worker, validate
from tests.cli.conftest import Shell
from tests.cli.typed import Typed
from tests.loopback import Answer, Asked, Loopback, fails, says

NORM = {"rule_of_thumb": "Greet.", "story": "Ann greets Bo."}


class Remote:
    """An actor as Ray gives it, in this process."""

    def __init__(self, actor: object) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=getattr(self._actor, name))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "guard_process", lambda: None)
    Path("yes.yaml").write_text("method: logprobs\nreplies: [{p_yes: 0.9}]")
    Path("denied.yaml").write_text("method: logprobs\nreplies: [{error: denied}]")


def settings(**more: Any) -> Any:
    given = {"model": ("scripted:yes.yaml",), "check": ("relevance",), "cache": False}
    return resolve({**given, **more})


def on_ray(job: Job, **more: Any) -> tuple[Validation, RayEngine]:
    given = settings(**more)
    task = Validation(Resources.of(given, rubrics=job.rubrics), job)
    return task, RayEngine(task, given, of_worker)


async def worked(count: int, **more: Any) -> tuple[list[Line], Validation]:
    """What a run makes of one chunk of records by its one worker: their lines; and the task."""
    feed, stream = Feed(), object.__new__(ChunkStream)
    stream._feed, stream._running = Remote(feed), asyncio.Future()
    stream._chunk, stream._full = [], asyncio.Event()
    stream._full.set()
    norms = [{**NORM, "story": f"Ann greets Bo {n} times."} for n in range(count)]
    task, engine = on_ray(Job(records=norms), **more)
    engine.stream, stream._count = stream, engine._count
    asked = asyncio.gather(*map(engine.step, task.items()))
    batch = {"number": [0], "chunk": [await feed.get(0)]}
    hand = Worker(settings(**more), ".", Remote(feed), of_worker)
    async for told in hand(batch):
        assert told == {"number": [0]}
    if hand._task is not None:  # As Ray does, it ends the worker without closing its task.
        for client in hand._task.resources.models.clients.values():
            await client.backend.aclose()
    return await asked, task


class OneWorker:
    """The stream of a run, with one worker in this process."""

    workers = 1

    def __init__(self, given: Any, of_worker: Any, *_: object) -> None:
        self._worker = Worker(given, ".", None, pickle.loads(pickle.dumps(of_worker)))

    async def judged(self, record: Record) -> Done:
        return await self._worker._line(await self._worker._begun(), record)

    async def aclose(self) -> None:
        await (await self._worker._begun()).aclose()


def test_a_run_writes_the_lines_of_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ChunkStream", OneWorker)
    records = [{**NORM, "id": f"n{n}"} for n in range(3)]
    for engine in ("local", "ray"):
        job = Job(records=records, out=Path(engine))
        assert validate(job, settings(engine=engine), Watcher()).exit_code == 0
    assert Path("ray").read_bytes() == Path("local").read_bytes() != b""
    # Their lines are kept, not judged again, where the run goes on.
    job = Job(records=[*records, NORM], out=Path("ray"), resume=True)
    assert validate(job, settings(engine="ray"), Watcher()).summary.resumed == 3


def test_a_worker_that_judges_otherwise_than_this_machine_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Other(OneWorker):
        def __init__(self, given: Any, *more: Any) -> None:
            super().__init__(given.model_copy(update={"temperature": 1.0}), *more)

    monkeypatch.setattr(driver, "ChunkStream", Other)
    job = Job(records=[{**NORM, "id": "n0"}], out=Path("out"))
    with pytest.raises(UsageError, match="a worker judges by other files, models or software"):
        validate(job, settings(engine="ray"), Watcher())
    assert not Path("out").exists()


RECIPE = """
name: reply_writing
fields: [email]
question: Reply.{% if findings %} {{ findings }}{% endif %}
writes: [reply]
rubrics: [polite.yaml]
"""


def written(judge: Typed | Shell, engine: str, run: Callable[..., Any]) -> tuple[bytes, ...]:
    """An engine's output: drafts kept, one of them rewritten, one refused."""
    judge.write("mails.jsonl", [{"email": f"Mail {n}."} for n in range(4)])
    (judge.folder / "reply.yaml").write_text(RECIPE)
    (judge.folder / "polite.yaml").write_text("name: polite\nquestion: Is it?\nfields: [reply]")
    no = {"reason": "It scolds.", "answer": "no", "quote": None}
    refused = {"text": "I cannot.", "finish_reason": "refusal"}
    script = [
        {"when": {"rubric": "reply_writing", "contains": "scolds"}, "reply": {"reply": "Yes."}},
        {**refused, "when": {"rubric": "reply_writing", "contains": "Mail 2"}},
        {"when": {"rubric": "reply_writing", "contains": "Mail 3"}, "reply": {"reply": "Bah."}},
        {"when": {"rubric": "reply_writing"}, "reply": {"reply": "Thanks."}},
        {"when": {"rubric": "polite", "contains": "Bah"}, "reply": no},
        {"when": {"rubric": "polite"}, "reply": {**no, "answer": "yes"}},
    ]
    (judge.folder / "writer.yaml").write_text(json.dumps({"replies": script}))
    go = ("generate", "reply.yaml", "mails.jsonl", "-m", "scripted:writer.yaml")
    done = run(*go, "--engine", engine, "-o", engine, "--summary", f"{engine}.sums", "--no-cache")
    assert done.returncode == 0 and b"3 of 4 drafts kept" in done.stderr, done.stderr.decode()
    beside = [engine, f"{engine}.discarded.jsonl"]
    funnel = json.loads(judge.read(f"{engine}.sums"))["funnel"]
    return (*map(judge.read, beside), json.dumps(funnel).encode())


def test_workers_write_the_drafts_that_a_run_here_writes(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "ChunkStream", OneWorker)
    assert written(typed, "ray", typed) == written(typed, "local", typed)


async def test_a_chunk_is_judged_and_counted() -> None:
    lines, task = await worked(3)
    assert [line.verdict for line in lines] == ["pass"] * 3
    assert task.resources.models.client("scripted:yes.yaml").counters.calls == 3


@pytest.mark.parametrize(
    "more",
    [{"model": ("scripted:denied.yaml",)}, {"cheap_model": "scripted:denied.yaml"}],
    ids=["with a record", "before the first"],
)
async def test_what_ends_a_run_comes_back_as_the_error_that_it_is(more: dict[str, Any]) -> None:
    with pytest.raises(BackendError, match="scripted denied") as raised:
        await worked(2, **more)
    assert raised.value.ends_run


async def test_the_calls_of_workers_are_the_runs() -> None:
    task, engine = on_ray(Job(records=[NORM]), max_calls=11)
    engine.stream = SimpleNamespace(judged=lambda item: pytest.fail("asked"))  # type: ignore[assignment]
    engine._count({"scripted:yes.yaml": (Counters(calls=6), {})}, 0.0)
    engine._count({"scripted:yes.yaml": (Counters(calls=5), {})}, 0.0)
    assert task.resources.models.client("scripted:yes.yaml").counters.calls == 11
    with pytest.raises(BudgetReached, match="--max-calls 11 is reached"):
        await engine.step(next(task.items()))


async def test_what_a_server_does_not_take_is_known_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(asked: Asked) -> Answer:
        if asked.body.get("temperature", 1) != 1:
            return fails(
                400, "Unsupported value: 'temperature' does not support this value. Only 1."
            )
        reply = {"reason": "It does.", "answer": "yes", "quote": "Ann greets Bo"}
        return says('{"ready": "yes"}' if asked.probe else reply)

    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        lines, task = await worked(2, model=("openai:o3",))
    assert [line.verdict for line in lines] == ["pass"] * 2
    assert task.resources.models.client("openai:o3").negotiation.adaptations == {
        "temperature": "left out"
    }


async def test_a_run_says_what_its_workers_saw_of_a_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    task, engine = on_ray(Job(records=[NORM]), model=("openai:o3",))
    client = task.resources.models.client("openai:o3")
    client.served.answered_before(["o3-2025-04-16"], ["fp_1"])
    for _ in range(2):  # workers
        seen = Counters(answered_by=("o3-2026-01-01",), system_fingerprints=("fp_2",))
        engine._count({"openai:o3": (seen, {"seed": "left out"})}, 0.0)
    assert caplog.messages == [
        "judge: openai:o3: the model that answers has changed: o3-2025-04-16, then o3-2026-01-01",
        "judge: openai:o3: requests adapted to its server: seed left out",
    ]
    assert client.counters.answered_by == ("o3-2025-04-16", "o3-2026-01-01")
    assert client.counters.system_fingerprints == ("fp_1", "fp_2")


async def test_a_record_that_a_worker_could_not_read_is_asked_about_anew_by_a_later_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = {"reason": "It does.", "answer": "yes", "quote": "Ann greets Bo"}
    replies = [{"answer": "perhaps"}, reply]
    with Loopback(lambda asked: says(replies[0])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run = {"model": ("openai:m",), "cache": True, "cache_dir": Path("cache"), "reasks": 0}
        (first,), _ = await worked(1, **run)
        (again,), _ = await worked(1, **run)
        replies.pop(0)
        (last,), task = await worked(1, **run)
    assert [first.verdict, again.verdict, last.verdict] == ["unreadable", "unreadable", "pass"]
    assert task.resources.models.client("openai:m").counters.calls == 1


async def test_a_chunk_that_two_workers_judged_counts_once() -> None:
    """The first died behind its last word; Ray gives its chunk to another."""
    feed = Feed()
    asked = asyncio.create_task(feed.judged(b"chunk"))
    assert await feed.get(0) == b"chunk"
    await feed.done(0, b"first")
    await feed.done(0, b"second")
    assert await asked == b"first" and await feed.get(0) == b""
    await feed.done(0, b"third")


def test_a_run_on_ray_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "before")
    monkeypatch.delenv("UNSET", raising=False)
    with environment({"SET": "inside", "UNSET": "inside"}):
        assert os.environ["SET"] == os.environ["UNSET"] == "inside"
    assert os.environ["SET"] == "before" and "UNSET" not in os.environ


def test_a_run_without_ray_leaves_standard_output_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("--engine ray needs Ray Data")

    monkeypatch.setattr(driver, "_join", refuse)
    before = sys.stdout
    with pytest.raises(UsageError, match="needs Ray Data"):
        ChunkStream(settings(), of_worker, cast(Any, None), lambda traffic, cost: None)
    assert sys.stdout is before


def test_workers_for_which_there_is_no_room_are_refused() -> None:
    assert workers_for(None, 2, {"CPU": 16.0, "GPU": 5.0}) == 2
    assert workers_for(3, 0, {"CPU": 16.0}) == 3
    with pytest.raises(UsageError, match="16 CPU, 0 GPU and a worker takes 1 CPU, 1 GPU"):
        workers_for(None, 1, {"CPU": 16.0})
    with pytest.raises(UsageError, match="it holds 2 workers, not 3"):
        workers_for(3, 2, {"CPU": 16.0, "GPU": 5.0})


def test_a_ray_that_would_listen_beyond_this_machine_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = pytest.importorskip("ray")
    stopped: list[bool] = []
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(ray, "shutdown", lambda: stopped.append(True))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.7")
    with pytest.raises(UsageError, match="beyond this machine"), ExitStack() as stack:
        driver._join(settings(), stack)
    assert stopped == [True]


@pytest.mark.slow
def test_a_ray_that_the_host_program_runs_is_not_taken(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("a second Ray"))
    typed.write("n.jsonl", [NORM])
    typed.script("j.yaml", [{"p_yes": 0.9}])
    run = ("validate", "n.jsonl", "-m", "scripted:j.yaml", "--check", "relevance")
    code, _, told = typed.text(*run, "--engine", "ray")
    assert code == 2 and "Ray runs in this process already" in told
