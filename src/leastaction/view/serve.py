"""A small server on this machine for our own pages: a page, and data that its choices ask for."""

from __future__ import annotations

import errno
import ipaddress
import json
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from leastaction.errors import LeastActionError, ModelError

LOCAL = "127.0.0.1"
"""The address that only programs on this machine reach."""

PORT, TRIES = 7007, 50
"""First port that is tried, and how many after it."""

Answer = Callable[[dict[str, str]], dict[str, Any]]


class Served:
    """A page that is being served, in a thread of its own, until ``close``.

    Attributes:
        url: its address.
        note: what is worth saying about the address, or None.
    """

    def __init__(self, server: ThreadingHTTPServer, host: str, note: str | None) -> None:
        self._server = server
        self.url = f"http://{host}:{server.server_address[1]}/"
        self.note = note
        self._thread = threading.Thread(target=server.serve_forever, name="leastaction page", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """A server whose visitors may leave in the middle of an answer."""

    daemon_threads = True
    # a port that another program listens at is taken, whatever the system would allow
    allow_reuse_address = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line for an error that is not a visitor who left."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            print(f"leastaction: the page could not be answered: {error!r}.", file=sys.stderr)


def serve(page: str, answer: Answer, *, host: str = LOCAL, port: int = PORT) -> Served:
    """Serve a page at ``/`` and, at ``/data``, what ``answer`` returns for the words of the query.

    Args:
        page: the text of the page.
        answer: from the query to plain JSON types; an error of the library becomes its message.
        host: address to listen at; by default only this machine reaches it.
        port: the first one to try; the next free one is taken.
    """

    def make(chosen: int) -> _Server:
        return _Server((host, chosen), _handler(page, answer, host))

    server, note = first_free(make, host, port)
    return Served(server, host, note)


def first_free(make: Callable[[int], Any], host: str, port: int) -> tuple[Any, str | None]:
    """What ``make`` returns for the first port that is not taken, and a line if it is not the one asked for."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ModelError(f"port: expected a whole number from 0 to 65535, got {port!r}.")
    last = min(port + TRIES, 65536)
    for chosen in range(port, last):
        try:
            made = make(chosen)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise ModelError(f"host '{host}': cannot listen there ({error.strerror or error}).") from error
        return made, None if chosen == port else f"port {port} is taken; port {chosen} is used instead."
    raise ModelError(f"ports {port} to {last - 1} are all taken; name another one.")


def asked_here(host: str, port: int, asked: str | None, origin: str | None) -> bool:
    """Whether a request means this server and comes from its own page, or from a program that is no browser.

    A page of another site may point a name of its own at this machine, or open a connection to it; a browser then says
    the name and the site.

    Args:
        host: address that the server listens at.
        port: its port.
        asked: the header ``Host`` of the request.
        origin: its header ``Origin``, which browsers send; None if there is none.
    """
    name, _, number = (asked or "").rpartition(":")
    if number != str(port) or not (name in (LOCAL, "localhost", host) or (host != LOCAL and _of_machine(name))):
        return False
    return origin is None or origin.lower() == f"http://{asked}".lower()


def _of_machine(name: str) -> bool:
    """Whether a name can only mean this machine: an address of numbers, or what the machine calls itself."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() in (socket.gethostname().lower(), socket.getfqdn().lower())
    return True


def _handler(page: str, answer: Answer, host: str) -> type[BaseHTTPRequestHandler]:
    """The class of requests to this page."""

    class Handler(BaseHTTPRequestHandler):
        """Answers to the two addresses of the page."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Page, data, or nothing there."""
            # a page of another site that points its own name at this machine gets nothing
            port = int(self.connection.getsockname()[1])
            if not asked_here(host, port, self.headers.get("Host"), self.headers.get("Origin")):
                self._send(403, "text/plain", "only for this machine")
                return
            parts = urlsplit(self.path)
            if parts.path == "/":
                self._send(200, "text/html", page)
            elif parts.path == "/data":
                words = {key: values[0] for key, values in parse_qs(parts.query).items()}
                try:
                    data = answer(words)
                except LeastActionError as error:
                    data = {"error": str(error)}
                self._send(200, "application/json", json.dumps(data, allow_nan=False))
            else:
                self._send(404, "text/plain", "there is nothing here")

        def _send(self, code: int, kind: str, text: str) -> None:
            body = text.encode("utf-8")
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            # a browser that has gone away misses nothing
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the terminal belongs to the program."""

    return Handler
