"""A server on 127.0.0.1 that stores what it receives, like a collector of traces."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector(ThreadingHTTPServer):
    """Stands where LangSmith's server, or one of OpenTelemetry, would."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keeping)
        self.seen: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Keeping(BaseHTTPRequestHandler):
    server: Collector

    def _keep(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PATCH = _keep  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Tests print nothing."""
