"""A real local OTLP receiver (http/protobuf): keeps what it is sent, decoded."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class Receiver:
    """`requests`: (path, headers, decoded message); `status`: what it answers."""

    def __init__(self):
        self.requests: list = []
        self.status = 200

    @property
    def spans(self) -> list:
        return [span for scope in self._scopes("/v1/traces", "resource_spans", "scope_spans") for span in scope.spans]

    @property
    def points(self) -> dict[str, list[tuple[dict, float]]]:
        """Metric name -> (attributes, value)."""
        found: dict[str, list[tuple[dict, float]]] = {}
        for scope in self._scopes("/v1/metrics", "resource_metrics", "scope_metrics"):
            for metric in scope.metrics:
                rows = [(attributes(p), p.as_double or p.as_int) for p in metric.gauge.data_points]
                found.setdefault(metric.name, []).extend(rows)
        return found

    def _scopes(self, path: str, resources: str, scopes: str) -> Iterator:
        for where, _, message in self.requests:
            if where == path:
                for resource in getattr(message, resources):
                    yield from getattr(resource, scopes)


@contextmanager
def receiver() -> Iterator[tuple[str, Receiver]]:
    """(base URL, what came in)."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            kept.requests.append((self.path, dict(self.headers), KINDS[self.path].FromString(body)))
            self.send_response(kept.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(of) -> dict:
    """Attributes of a span, point or resource as plain values."""
    return {pair.key: _value(pair.value) for pair in of.attributes}


def _value(value):
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)
