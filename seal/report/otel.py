"""Sends stored rollouts as OpenTelemetry traces and label rates as metrics, over OTLP (http/protobuf).

Spans are built as values and handed to the SDK: no global provider, no threads, no clock of our own, so what
is sent is a function of the tables, the start time and the settings. The exporters read the OTEL_EXPORTER_OTLP_*
variables (headers, compression, certificates), the resource reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seal.core.errors import DependencyError, ParamError
from seal.report.spans import Span, spans_of, trace_id
from seal.report.stored_rollouts import Points, label_rates, stored_rollouts

if TYPE_CHECKING:
    import duckdb

BATCH = 500  # spans a request, in whole rollouts


@dataclass(frozen=True, slots=True)
class Sent:
    rollouts: int = 0
    spans: int = 0
    rates: int = 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url`: the receiver's base, "" for what the OTEL_EXPORTER_OTLP_* variables say (else localhost:4318).

    `timeout`: seconds for one request with its retries; None for what the variables say (else 10).
    """

    url: str = ""
    timeout: float | None = None

    def __post_init__(self):
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ParamError("OTLP endpoint", self.url, "a URL such as http://localhost:4318")

    def __str__(self) -> str:
        return self.url or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"

    def of(self, signal: str) -> str | None:
        """The full address of `traces` or `metrics`; None where the variables say it."""
        return f"{self.url.rstrip('/')}/v1/{signal}" if self.url else None


def send(
    con: "duckdb.DuckDBPyConnection",
    chosen: Iterable[tuple[str, str]],
    endpoint: Endpoint,
    start: int,
    content: bool = False,
    rollout: str = "",
) -> Sent:
    """Send the rollouts and label rates of the chosen (round, phase) pairs.

    Args: `start`: nanoseconds since 1970 at which every rollout begins; `content`: texts, arguments, results and
    evidence too; `rollout`: this one alone, without rates.
    Raises DependencyError where the packages are not there or the receiver does not take it.
    """
    metrics, resource, traces = _exporters(endpoint)
    n_rollouts = n_spans = 0
    points: dict[str, Points] = {}
    for round_id, phase in chosen:
        batch: list[Any] = []
        for one in stored_rollouts(con, round_id, phase, rollout):
            spans = spans_of(one, start, content)
            batch += _sdk_spans(one.row["rollout_id"], spans, resource)
            n_rollouts, n_spans = n_rollouts + 1, n_spans + len(spans)
            if len(batch) >= BATCH:
                _export(traces, batch, endpoint)
                batch = []
        if batch:
            _export(traces, batch, endpoint)
        if not rollout:
            for name, found in label_rates(con, round_id, phase).items():
                points.setdefault(name, []).extend(found)
    if any(points.values()):
        _export(metrics, _sdk_metrics(points, resource, start), endpoint)
    traces.shutdown()
    metrics.shutdown()
    return Sent(n_rollouts, n_spans, len(points.get("seal.label.rate", ())))


METRICS = {  # name -> (unit, description)
    "seal.label.rate": ("1", "Share of user turns with this primary label, by the tool it names"),
    "seal.label.turns": ("{turn}", "User turns with this primary label, by the tool it names"),
    "seal.success.rate": ("1", "Share of rollouts that solved their task"),
}


def _exporters(endpoint: Endpoint) -> tuple[Any, Any, Any]:
    """(exporter of metrics, resource, exporter of traces)."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        raise DependencyError("OpenTelemetry", error, "pip install 'seal-coevolve[otel]'") from None
    traces = OTLPSpanExporter(endpoint.of("traces"), timeout=endpoint.timeout)
    metrics = OTLPMetricExporter(endpoint.of("metrics"), timeout=endpoint.timeout)
    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):  # no variable names it
        resource = resource.merge(Resource({"service.name": "seal"}))
    return metrics, resource, traces


def _sdk_spans(rollout_id: str, spans: Sequence[Span], resource: Any) -> list[Any]:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    trace, flags, scope = trace_id(rollout_id), TraceFlags(TraceFlags.SAMPLED), _scope()
    return [
        ReadableSpan(
            span.name,
            SpanContext(trace, span.id, is_remote=False, trace_flags=flags),
            SpanContext(trace, span.parent, is_remote=False, trace_flags=flags) if span.parent else None,
            resource,
            {**span.attributes, **({"error.type": span.error} if span.error else {})},
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=scope,
        )
        for span in spans
    ]


def _sdk_metrics(points: Mapping[str, Points], resource: Any, at: int) -> Any:
    from opentelemetry.sdk.metrics import export

    found = []
    for name, values in points.items():
        unit, description = METRICS[name]
        gauge = export.Gauge([export.NumberDataPoint(attributes, at, at, value) for attributes, value in values])
        found.append(export.Metric(name, description, unit, gauge))
    return export.MetricsData([export.ResourceMetrics(resource, [export.ScopeMetrics(_scope(), found, "")], "")])


def _scope() -> Any:
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    return InstrumentationScope("seal")


def _export(exporter: Any, what: Any, endpoint: Endpoint) -> None:
    """Hand over one request. Raises DependencyError with the exporter's own words, which then go nowhere else."""
    with _complaints() as said:
        done = exporter.export(what)
    if done.name != "SUCCESS":
        remedy = "start an OTLP receiver (http/protobuf) there, or name another endpoint"
        raise DependencyError("OTLP endpoint", f"{endpoint}: {said[0] if said else 'no answer'}", remedy)


class _Messages(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(re.sub(r"^Transient error (.+) encountered while .*$", r"\1", record.getMessage()))


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the exporters log meanwhile."""
    logger, handler = logging.getLogger("opentelemetry"), _Messages()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.texts
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
