"""A search service and some pages on localhost, for the tests of web search. Answers have the shape of SerpApi's."""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HTML = (
    "<html><head><style>p{}</style><script>x()</script></head><body><h1>Tea</h1><p>Da Hong&nbsp;Pao</p></body></html>"
)
RESULTS = [
    {"position": 1, "title": "Most expensive tea", "link": "https://tea.example/best", "snippet": "Da Hong Pao is ..."},
    {"position": 2, "title": "Wuyi", "link": "https://tea.example/wuyi", "snippet": "A mountain in Fujian."},
    {"position": 3, "title": "No snippet here", "link": "https://tea.example/none"},
]
FOUND = {"search_metadata": {"status": "Success"}, "organic_results": RESULTS}
REDIRECTS = {
    "/to-page": "/page",
    "/to-private": "http://10.0.0.7/",
    "/to-metadata": "http://169.254.169.254/latest/meta-data/",
    "/to-file": "file:///etc/passwd",
    "/loop": "/loop",
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = urlsplit(self.path)
        self.server.asked.append(self.path)
        if parts.path == "/search":
            return self.search(parse_qs(parts.query))
        if parts.path in REDIRECTS:
            return self.told(302, b"", location=REDIRECTS[parts.path])
        if parts.path == "/page":
            return self.told(200, HTML.encode(), "text/html; charset=utf-8")
        if parts.path == "/latin":
            return self.told(200, "thé".encode("latin-1"), "text/html; charset=iso-8859-1")
        if parts.path == "/odd":
            return self.told(200, b"tea", "text/html; charset=no-such-charset")
        if parts.path == "/big":
            return self.told(200, b"x" * 100_000)
        if parts.path == "/drip":
            return self.drip()
        if parts.path == "/drip-headers":
            return self.drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200)
        if parts.path == "/garbage":
            return self.wfile.write(b"\x00\x01 no HTTP\r\n\r\n")
        return self.told(404, b"nothing")

    def search(self, query):
        keywords, region = query["q"][0], query["kl"][0]
        assert query["engine"] == ["duckduckgo"] and region
        if query["api_key"] != ["secret-key"]:
            return self.told(401, b'{"error": "Invalid API key."}')
        self.server.searches += 1
        if keywords == "busy" or (keywords == "busy once" and self.server.searches == 1):
            return self.told(429, b'{"error": "Your account has run out of searches."}')
        if keywords == "busy payload":
            return self.told(200, b'{"error": "429 Too many requests"}')
        if keywords == "nothing":
            return self.told(200, b'{"error": "DuckDuckGo hasn\'t returned any results for this query."}')
        if keywords == "broken":
            return self.told(200, b"<html>")
        return self.told(200, json.dumps(FOUND).encode(), "application/json")

    def told(self, status, body, kind="text/html", location=""):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def drip(self, text=b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000):
        """A byte now and then, for longer than anyone should wait."""
        try:
            for byte in text:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            return

    def log_message(self, *args):
        return


@contextmanager
def site(context: ssl.SSLContext | None = None) -> Iterator[ThreadingHTTPServer]:
    """A running server; `asked` are the paths it was asked for, `name` is "address:port"."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked, server.searches = [], 0
    server.name = f"127.0.0.1:{server.server_address[1]}"
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
