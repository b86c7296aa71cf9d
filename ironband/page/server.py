"""A web server for one page: files of the package, and answers as JSON; for this machine alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from toolchain.errors import UserError

__all__ = ["Answers", "BadQuestion", "PageError", "Query", "page_server"]

LOOPBACK: Final = "127.0.0.1"

_ASSETS: Final = Path(__file__).with_name("assets")
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_FILES: Final = {
    "/": "index.html",
    "/view.js": "view.js",
    "/view.css": "view.css",
    "/uPlot.iife.min.js": "uPlot.iife.min.js",
    "/uPlot.min.css": "uPlot.min.css",
}
_WORTH_PACKING: Final = 4096
_TIMEOUT_SECONDS: Final = 60
"""After which a connection ends that asks nothing."""


class PageError(UserError):
    """A page that cannot be served; the text is one line."""


class BadQuestion(ValueError):
    """A request for what there is not; the text says what was expected."""


class Query:
    """What stands behind the ? of a request."""

    def __init__(self, text: str) -> None:
        self._given = parse_qs(text)

    def number(self, name: str, least: int, most: int) -> int:
        """A number that must be there.

        Raises:
            BadQuestion: it is not, or is not from `least` to `most`.
        """
        given = self._given.get(name, ["nothing"])[-1]
        if not (given.isascii() and given.isdecimal() and least <= int(given[:20]) <= most):
            raise BadQuestion(f"{name}={given[:20]}: expected {least}..{most}")
        return int(given)

    def numbers(self, name: str, most: int) -> list[int]:
        """Numbers with commas between them; none if the name is not there.

        Raises:
            BadQuestion: one is not from 0 to `most`.
        """
        texts = self._given.get(name, [""])[-1].split(",")
        return [Query(f"{name}={text}").number(name, 0, most) for text in texts if text]


Answers = Mapping[str, Callable[[Query], Any]]
"""By path, what answers it with a value that JSON has."""


@contextmanager
def page_server(answers: Answers, port: int) -> Iterator[str]:
    """Serve while the block runs; gives the address of the page. Port 0 is any that is free.

    Raises:
        PageError: the port is not to be had.
    """

    class Handler(_Handler):
        questions = answers

    try:
        server = _Server((LOOPBACK, port), Handler)
    except OSError as error:
        raise PageError(f"port {port}: {error.strerror}: expected one that is free, or 0 for any") from None
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error."""


class _Handler(BaseHTTPRequestHandler):
    questions: Answers
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Answer a request."""
        if not self._is_for_us():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This page is for its own machine alone.\n")
            return
        asked = urlsplit(self.path)
        if asked.path in _FILES:
            file = _ASSETS / _FILES[asked.path]
            self._send(HTTPStatus.OK, _TYPES[file.suffix], file.read_bytes())
        elif asked.path in self.questions:
            try:
                answer = self.questions[asked.path](Query(asked.query))
            except BadQuestion as wrong:
                self._send(HTTPStatus.BAD_REQUEST, "text/plain", f"{wrong}\n".encode())
            else:
                self._send(HTTPStatus.OK, "application/json", json.dumps(answer, separators=(",", ":")).encode())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's news."""

    def _is_for_us(self) -> bool:
        """Whether the browser means this machine: a page from elsewhere may have a name that leads here."""
        _, port = self.connection.getsockname()
        return self.headers.get("Host") in (f"{LOOPBACK}:{port}", f"localhost:{port}")

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        if len(body) > _WORTH_PACKING and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header(
            "Content-Security-Policy", "default-src 'self'; img-src data:; style-src 'self' 'unsafe-inline'"
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)
