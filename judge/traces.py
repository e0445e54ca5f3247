"""OpenTelemetry spans of a run: one for each record, each check and each call to a model.

Names and attributes are those of the GenAI conventions as of November 2026
(github.com/open-telemetry/semantic-conventions-genai, client inference and evaluation results);
names that they lack begin with `judge.`. Without the setting `traces` OpenTelemetry is not loaded.
LangSmith's traces are separate (judge/langsmith.py).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from judge.errors import BackendError, UsageError, missing_extra
from judge.redact import in_utf8, redacted
from judge.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OpenTelemetrySpan
    from opentelemetry.trace import Tracer, TracerProvider

    from judge.backends.base import Call, Completion
    from judge.records import Record
    from judge.records.lines import Line
    from judge.settings import Settings
    from judge.verdict import Check

T = TypeVar("T")
Attributes = Mapping[str, Any]

SECONDS_TO_SEND = 5.0
"""How long the end of a run waits for the last spans to be sent."""

_log = logging.getLogger(__name__)

_PROVIDERS = {
    "azure_ai": "azure.ai.inference",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that LangChain names differently."""

_EVALUATION = "gen_ai.evaluation.name"
_FINISH = {"refusal": "content_filter", "invalid": "error"}


@dataclass(frozen=True, slots=True)
class _Tracing:
    """How a run is traced: the tracer, and whether texts are recorded."""

    tracer: Tracer
    texts: bool


_OTLP, _RESOURCE = "OTEL_EXPORTER_OTLP", "OTEL_RESOURCE_ATTRIBUTES"
_run: ContextVar[_Tracing | None] = ContextVar("judge_traces", default=None)


@contextmanager
def traced(settings: Settings) -> Iterator[None]:
    """A context that traces a run. Spans go to the program's own tracer provider, else to the
    collector that the OTEL_* variables name, and are sent before the context ends.

    Raises:
        UsageError: OpenTelemetry is not installed, or no destination of spans is set.
    """
    with ExitStack() as ending:
        run = None
        if settings.traces:
            tracer = _provider(ending).get_tracer("judge", __version__)
            run = _Tracing(tracer, settings.trace_text)
        ending.callback(_run.reset, _run.set(run))
        yield


def _provider(ending: ExitStack) -> TracerProvider:
    """The program's tracer provider, else one of our own, whose last spans `ending` sends."""
    try:
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        if not isinstance(provider, trace.ProxyTracerProvider):
            return provider
        if (exporter := _variable("OTEL_TRACES_EXPORTER")) == "none":
            return trace.NoOpTracerProvider()
        address = _variable(f"{_OTLP}_TRACES_ENDPOINT", f"{_OTLP}_ENDPOINT")
        if address is None and exporter is None:
            raise UsageError(
                f"--traces: say where spans go, as in {_OTLP}_ENDPOINT=http://localhost:4318, or "
                "set a tracer provider in Python"
            )
        if exporter not in (None, "otlp"):
            raise UsageError(f"OTEL_TRACES_EXPORTER={exporter}: judge sends spans by otlp alone")
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        protocol = _variable(f"{_OTLP}_TRACES_PROTOCOL", f"{_OTLP}_PROTOCOL") or "http/protobuf"
        if protocol not in ("http/protobuf", "grpc"):
            raise UsageError(f"{_OTLP}_PROTOCOL={protocol}: name http/protobuf or grpc")
        way = protocol.partition("/")[0]
        if way == "http" and not _is_web(address or "http://localhost"):
            raise UsageError(f"{_OTLP}_ENDPOINT: name an address such as http://localhost:4318")
        sender = import_module(f"opentelemetry.exporter.otlp.proto.{way}.trace_exporter")
        named = _variable("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(_RESOURCE, "")
        resource = Resource.create({} if named else {"service.name": "judge"})
        # Its warnings at each try say less than ours at the end.
        logging.getLogger(sender.__name__).setLevel(logging.ERROR)
        ours, spans = TracerProvider(resource=resource), sender.OTLPSpanExporter()
        ours.add_span_processor(BatchSpanProcessor(spans))
    except ImportError as error:
        raise missing_extra(f"--traces needs OpenTelemetry ({error})", "otel") from error
    except (ValueError, StopIteration) as error:  # OpenTelemetry refuses one of its variables.
        why = redacted(str(error)) or "OTEL_PYTHON_TRACER_PROVIDER names none that is installed"
        raise UsageError(f"--traces: an OTEL_* variable cannot be used: {why}") from error
    ending.callback(_end, ours.shutdown, spans.shutdown)
    return ours


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _variable(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)


def _end(send: Callable[[], None], give_up: Callable[[], None]) -> None:
    """Send the last spans, for `SECONDS_TO_SEND` at most: a collector that does not answer would
    hold the run up for half a minute."""
    sending = Thread(target=send, daemon=True)
    sending.start()
    sending.join(SECONDS_TO_SEND)
    if sending.is_alive():
        _log.warning("judge: no collector took the last spans within %g s", SECONDS_TO_SEND)
        give_up()


# ---------------------------------------------------------------- spans


class TraceSpan:
    """A span under way; this base class, for runs without traces, records nothing."""

    def __enter__(self) -> TraceSpan:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ends(self, outcome: T) -> T:
        """Record the outcome in the span; returns it."""
        return outcome


_NONE = TraceSpan()


class _Recording(TraceSpan):
    def __init__(self, span: OpenTelemetrySpan, told: Callable[[Any], Attributes]) -> None:
        self._span, self._told = span, told

    def ends(self, outcome: T) -> T:
        told = _clean(self._told(outcome))
        self._span.set_attributes(told)
        if _EVALUATION in told:
            self._span.add_event("gen_ai.evaluation.result", told)
        if "error.type" in told:
            _failed(self._span, told["error.type"])
        return outcome


@contextmanager
def _open(
    run: _Tracing, name: str, attributes: Attributes, told: Callable[[Any], Attributes]
) -> Iterator[TraceSpan]:
    from opentelemetry.trace import SpanKind

    kind = SpanKind.CLIENT if "server.address" in attributes else SpanKind.INTERNAL
    with run.tracer.start_as_current_span(
        _text(name),
        kind=kind,
        attributes=_clean(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield _Recording(span, told)
        except BaseException as error:
            kind_of = error.kind if isinstance(error, BackendError) else type(error).__name__
            _failed(span, kind_of, str(error) if run.texts else "")
            raise


def _failed(span: OpenTelemetrySpan, kind: str, message: str = "") -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, _text(message) or None)


def _clean(attributes: Attributes) -> dict[str, Any]:
    """The attributes that are known, with secrets redacted."""
    return {
        name: _text(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }


def _text(text: str) -> str:
    """The text without secrets; OTLP takes no lone surrogate."""
    return in_utf8(redacted(text))


# ---------------------------------------------------------------- records, checks, calls


def of_record(record: Record) -> AbstractContextManager[TraceSpan]:
    """The span of a record; it ends with its output line."""
    if (run := _run.get()) is None:
        return _NONE

    def told(line: Line) -> Attributes:
        kind = (line.error or {}).get("type")
        return {
            "judge.workflow": line.made_by,
            "judge.verdict": line.verdict,
            "judge.reason": line.reason if run.texts and line.reason else None,
            "error.type": kind or _error(line.verdict),
        }

    return _open(run, "record", {"judge.record": record.called}, told)


def of_check(name: str, by: str, round: int) -> AbstractContextManager[TraceSpan]:
    """The span of a check; it ends with the `Check`."""
    if (run := _run.get()) is None:
        return _NONE

    def told(check: Check) -> Attributes:
        reasons = (check.reason, *(answer.reason for answer in check.supporting_evidence()))
        label = check.answer if check.verdict == "answered" else None
        return {
            _EVALUATION: name,
            "gen_ai.evaluation.score.label": label or str(check.verdict),
            "gen_ai.evaluation.score.value": check.probability
            if check.score is None
            else check.score,
            "gen_ai.evaluation.explanation": next(filter(None, reasons), None)
            if run.texts
            else None,
            "error.type": _error(check.verdict),
        }

    return _open(run, f"check {name}", {"judge.by": by, "judge.round": round}, told)


def _error(verdict: str) -> str | None:
    """The type of error for a verdict that decides nothing; None for the others."""
    return str(verdict) if verdict in ("error", "unreadable") else None


def of_call(
    identity: Mapping[str, Any], call: Call, sent: Callable[[Call], Call], *, cached: bool
) -> AbstractContextManager[TraceSpan]:
    """The span of a call; it ends with the completion.

    Args:
        identity: the backend's identity: provider, model and, if remote, server.
        sent: returns the call as the server is sent it.
        cached: whether the reply is in the cache: the span then has no usage, as none was paid.
    """
    if (run := _run.get()) is None:
        return _NONE
    provider, model = str(identity.get("provider", "unknown")), str(identity.get("model", ""))
    if provider == "langchain":
        provider, _, model = model.partition(":")
    operation = "chat" if call.layer is None else "embeddings"
    asked = sent(call)
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.request.temperature": asked.temperature,
        "gen_ai.request.seed": asked.seed,
        "gen_ai.request.max_tokens": asked.max_tokens,
        "gen_ai.output.type": None if call.layer is not None else "json" if call.schema else "text",
        "gen_ai.prompt.name": call.origin.rubric or None,
        "judge.cached": cached,
        "judge.vote": call.vote,
        **_server(identity.get("server")),
    }
    if run.texts:
        messages = [_message(m["role"], m["content"]) for m in call.messages]
        attributes["gen_ai.input.messages"] = json.dumps(messages, ensure_ascii=False)

    def told(completion: Completion) -> Attributes:
        finish = _FINISH.get(completion.finish_reason, completion.finish_reason)
        reply = {**_message("assistant", completion.text), "finish_reason": finish}
        shown = run.texts and call.layer is None
        usage = {
            "gen_ai.usage.input_tokens": completion.input_tokens or None,
            "gen_ai.usage.output_tokens": completion.output_tokens or None,
            "gen_ai.usage.cache_read.input_tokens": completion.cached_tokens,
        }
        return {
            "gen_ai.response.model": completion.model,
            "gen_ai.response.finish_reasons": (finish,),
            "gen_ai.output.messages": json.dumps([reply], ensure_ascii=False) if shown else None,
            **({} if cached else usage),
        }

    return _open(run, f"{operation} {model}", attributes, told)


def retries(error: BackendError, tries: int) -> None:
    """Note in the call's span that the call is retried, because its `tries`-th try failed."""
    if _run.get() is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().add_event("judge.retry", {"error.type": error.kind, "judge.try": tries})


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _server(address: str | None) -> dict[str, Any]:
    if not address:
        return {}
    parts = urlsplit(address)
    found: dict[str, Any] = {"server.address": parts.hostname}
    with suppress(ValueError):
        found["server.port"] = parts.port or (443 if parts.scheme == "https" else 80)
    return found
