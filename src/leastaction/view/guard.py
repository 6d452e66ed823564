"""What keeps the live viewer to itself: words that are no markup, and requests that come from its own page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leastaction.errors import ModelError
from leastaction.view.serve import asked_here

LONGEST = 2000
"""Most characters of a text that the viewer shows."""

_ONE_AT_A_TIME = threading.Lock()


def plain(text: str) -> str:
    """Markdown that shows a text as it is: no emphasis, links, pictures or HTML, on one line.

    Every character that is no letter, digit or space is written as its number.
    """
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    words = " ".join("".join(c if c.isprintable() else " " for c in short).split())
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in words)


@contextmanager
def guarded(host: str) -> Iterator[None]:
    """Let the viewer that starts inside answer only its own address and its own page.

    viser hands a function to the server of ``websockets`` that sees every request first, pages and connections alike;
    ours is put before it. A viewer that starts without it is an error.
    """
    from websockets.asyncio import server

    serve, seen = server.serve, []

    def with_guard(*args: Any, process_request: Any = None, **options: Any) -> Any:
        seen.append(process_request)
        return serve(*args, process_request=_gate(host, process_request), **options)

    with _ONE_AT_A_TIME:
        server.serve = with_guard  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            server.serve = serve  # type: ignore[misc]
    if not seen:
        raise ModelError("the viewer cannot be kept to its own address with this version of viser; install viser 1.1.")


def _gate(host: str, after: Any) -> Any:
    """A function for requests that refuses those from elsewhere, and leaves others to ``after``."""

    def gate(connection: Any, request: Any) -> Any:
        port = connection.local_address[1]
        named, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        origin = None if not origins else origins[0] if len(origins) == 1 else ""
        if len(named) != 1 or not asked_here(host, port, named[0], origin):
            return connection.respond(403, "only for this machine\n")
        return after(connection, request) if after is not None else None

    return gate
