"""`--traces`: OpenTelemetry spans of records, checks and calls; and `logging` as libraries do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from collector import Collector
from loopback import Answer, Asked, Loopback, fails, says
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import judge as library

from .conftest import Shell

KEY = "sk-test-0123456789abcdef"
PLACE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}
WORDS = ("--ask", "Is it polite?", "--name", "polite", "-m", "openai:m", "--traces")


class Script:
    """Each record is polite but Bo's; Di's first try fails, and Ed's call is refused as such."""

    def __init__(self) -> None:
        self.failures = 1

    def __call__(self, asked: Asked) -> Answer:
        if "Di" in asked.prompt and self.failures:
            self.failures -= 1
            return fails(500)
        if "Ed" in asked.prompt:
            return fails(400, f"a bad request for Ed with {KEY}")
        answer = "no" if "Bo" in asked.prompt else "yes"
        return says({"quote": "Thanks", "reason": "It thanks.", "answer": answer})


def records(*names: str) -> list[dict[str, str]]:
    return [{"id": name, "text": f"Thanks, {name}, for {KEY}."} for name in names]


def received(collector: Collector) -> list[dict[str, Any]]:
    """The spans received by OTLP, with their attributes by name, and their senders."""
    spans = []
    for body in collector.seen:
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {a.key: a.value.string_value for a in sent.resource.attributes}
            for scope in sent.scope_spans:
                spans += [
                    {
                        "name": span.name,
                        "id": span.span_id,
                        "parent": span.parent_span_id,
                        "trace": span.trace_id,
                        "events": [event.name for event in span.events],
                        "service": service["service.name"],
                        "cached": any(
                            a.key == "judge.cached" and a.value.bool_value for a in span.attributes
                        ),
                    }
                    for span in scope.spans
                ]
    return spans


def tree(spans: list[dict[str, Any]], parent: bytes = b"") -> list[Any]:
    return [[s["name"], *tree(spans, s["id"])] for s in spans if s["parent"] == parent]


@pytest.mark.slow
def test_each_record_check_and_call_is_sent_by_otlp(judge: Shell, collector: Collector) -> None:
    judge.write("r.jsonl", records("Ann", "Bo", "Di"))
    with Loopback(Script()) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "k=v"}
        first = judge("validate", "r.jsonl", *WORDS, "--concurrency", "1", env=env)
        spans = received(collector)
        assert first.returncode == 0, first.stderr
        assert tree(spans) == [["record", ["check polite", ["chat m"]]]] * 3
        assert len({span["trace"] for span in spans}) == 3
        assert {span["service"] for span in spans} == {"judge"}
        assert sum(span["events"].count("judge.retry") for span in spans) == 1
        sent = b"".join(collector.seen)
        assert b"Thanks" not in sent and b"It thanks" not in sent and KEY.encode() not in sent

        collector.seen.clear()
        env["OTEL_SERVICE_NAME"] = "mine"
        again = judge("validate", "r.jsonl", *WORDS, "--trace-text", env=env)
    assert again.stdout == first.stdout
    spans = received(collector)
    assert [span["cached"] for span in spans if span["name"] == "chat m"] == [True] * 3
    assert {span["service"] for span in spans} == {"mine"}
    sent = b"".join(collector.seen)
    assert b"Thanks, Ann, for [secret]" in sent and b"It thanks" in sent
    assert KEY.encode() not in sent


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A tracer provider that the program has set."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str, **settings: Any
) -> list[library.Judgement]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = {"ask": "Is it polite?", "name": "polite", "model": "openai:m", **settings}
    with Loopback(Script()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return [*library.validate(records(*names), cache_dir=tmp_path, **settings)]


def found(memory: InMemorySpanExporter, name: str) -> list[tuple[ReadableSpan, Mapping[str, Any]]]:
    spans = [span for span in memory.get_finished_spans() if span.name == name]
    return [(span, span.attributes or {}) for span in spans]


def test_spans_say_what_the_conventions_want(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with trace.get_tracer_provider().get_tracer("mine").start_as_current_span("above") as above:
        judged(monkeypatch, tmp_path, "Ann", traces=True, trace_text=True, seed=7)
    ((call, said),) = found(memory, "chat m")
    assert call.kind is trace.SpanKind.CLIENT
    port = said["server.port"]
    assert isinstance(port, int)
    messages = json.loads(said["gen_ai.input.messages"])
    assert [message["role"] for message in messages][-1] == "user"
    assert "Thanks, Ann" in messages[-1]["parts"][0]["content"]
    (reply,) = json.loads(said["gen_ai.output.messages"])
    assert reply["finish_reason"] == "stop" and "It thanks" in reply["parts"][0]["content"]
    tokens = {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"}
    assert all(said[name] > 0 for name in tokens)
    texts = {"gen_ai.input.messages", "gen_ai.output.messages"}
    assert {name: said[name] for name in said if name not in tokens | texts} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.request.max_tokens": said["gen_ai.request.max_tokens"],
        "gen_ai.output.type": "json",
        "gen_ai.prompt.name": "polite",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "server.address": "127.0.0.1",
        "server.port": port,
        "judge.cached": False,
        "judge.vote": 0,
    }
    ((check, verdict),) = found(memory, "check polite")
    assert verdict["gen_ai.evaluation.score.label"] == "pass"
    assert verdict["gen_ai.evaluation.explanation"] == "It thanks."
    assert [event.name for event in check.events] == ["gen_ai.evaluation.result"]
    ((record, outcome),) = found(memory, "record")
    assert (outcome["judge.record"], outcome["judge.verdict"]) == ("Ann", "pass")
    assert record.parent and record.parent.span_id == above.get_span_context().span_id


def test_the_label_of_a_check_that_counts_answers_is_its_answer(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judged(monkeypatch, tmp_path, "Bo", traces=True, answers=("yes", "no", "both"))
    ((_, verdict),) = found(memory, "check polite")
    assert verdict["gen_ai.evaluation.score.label"] == "no"


def test_the_token_limit_of_a_span_is_the_one_sent(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judged(monkeypatch, tmp_path, "Ann", traces=True, model="openai:qwq")
    ((_, attributes),) = found(memory, "chat qwq")
    assert attributes["gen_ai.request.max_tokens"] == 1024 + 8000, "thoughts have room"


def test_a_failed_call_says_so_in_each_span_above_it(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (judgement,) = judged(monkeypatch, tmp_path, "Ed", traces=True)
    assert judgement.verdict == "error"
    kinds = [(span.attributes or {})["error.type"] for span in memory.get_finished_spans()]
    assert kinds[0] == "bad-request" and kinds[-2:] == ["error", "error"]
    statuses = [span.status for span in memory.get_finished_spans()]
    assert {status.status_code for status in statuses} == {trace.StatusCode.ERROR}
    assert {status.description for status in statuses} == {None}, "a server may repeat the text"


def test_without_traces_a_provider_gets_nothing(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judged(monkeypatch, tmp_path, "Ann")
    assert memory.get_finished_spans() == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, b"OTEL_EXPORTER_OTLP_ENDPOINT=http"),
        ({"OTEL_TRACES_EXPORTER": "console"}, b"OTEL_TRACES_EXPORTER=console: judge sends"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": f"{KEY}://[::1"}, b"name an address such as http://"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", **PLACE}, b"name http/protobuf or grpc"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1", **PLACE}, b"variable cannot be used: max_queue_size"),
    ],
)
def test_without_a_place_for_spans_nothing_is_asked(
    judge: Shell, env: dict[str, str], words: bytes
) -> None:
    judge.write("r.jsonl", records("Ann"))
    with Loopback(Script()) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, **env}
        done = judge("validate", "r.jsonl", *WORDS, env=env)
        assert (done.returncode, server.count) == (2, 0)
        off = judge("validate", "r.jsonl", *WORDS, env={**env, "OTEL_TRACES_EXPORTER": "none"})
        assert off.returncode == 0, off.stderr
    assert words in done.stderr and KEY.encode() not in done.stderr


@pytest.mark.slow
def test_an_interrupted_run_sends_its_spans(judge: Shell, collector: Collector) -> None:
    judge.write("r.jsonl", records(*"ABCDEFGH"))
    judge.env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{collector.url}/v1/traces"
    reply = {"quote": "Thanks", "reason": "It thanks.", "answer": "yes"}
    with Loopback(lambda asked: says(reply, delay=0.3)) as server:
        judge.env |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        process = judge.start("validate", "r.jsonl", *WORDS, "-o", "o.jsonl", "--concurrency", "1")
        while not (judge.folder / "o.jsonl").exists() or not judge.read("o.jsonl"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    names = [span["name"] for span in received(collector)]
    assert names.count("record") == len(judge.read("o.jsonl").splitlines()) < 8


LIBRARY = """
import logging, sys
import judge

def verdict():
    settings = {"ask": "Is it so?", "model": "openai:m", "cache": False}
    return [str(j.verdict) for j in judge.validate([{"text": "Thanks"}], **settings)]

assert verdict() == ["pass"]
handlers = logging.getLogger("judge").handlers + logging.getLogger().handlers
assert [type(handler) for handler in handlers] == [logging.NullHandler], handlers
logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s")
assert verdict() == ["pass"]
"""


@pytest.mark.slow
def test_a_library_call_is_silent_unless_its_program_listens(tmp_path: Path) -> None:
    with Loopback(Script(), modes=frozenset({"tools"})) as server:
        done = subprocess.run(
            [sys.executable, "-c", LIBRARY],
            cwd=tmp_path,
            env={**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "judge.judging.negotiation WARNING\n"


def test_a_model_without_a_server_is_traced_without_an_address(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "yes.yaml").write_text(
        "replies: [{reply: {reason: It is., answer: 'yes', quote: null}}]"
    )
    model = f"scripted:{tmp_path / 'yes.yaml'}"
    (one,) = judged(monkeypatch, tmp_path, "Ann", model=model, traces=True)
    assert one.verdict == "pass"
    ((_, attributes),) = [
        pair
        for name in {s.name for s in memory.get_finished_spans()}
        if name.startswith("chat ")
        for pair in found(memory, name)
    ]
    assert "server.address" not in attributes and attributes["gen_ai.operation.name"] == "chat"


def test_a_lone_surrogate_is_sent_as_its_escape(
    memory: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A text cut in the middle of an emoji has one; OTLP's text is UTF-8."""
    judged(monkeypatch, tmp_path, "Ann\ud83d", traces=True, trace_text=True)
    ((_, record),) = found(memory, "record")
    assert record["judge.record"] == "Ann\\ud83d"
    sent = [str(call["gen_ai.input.messages"]) for _, call in found(memory, "chat m")]
    assert "Thanks, Ann\\ud83d" in "".join(sent), sent
