"""Who may talk to the page: only the page itself, by a token that no other site knows.

There are no cookies, so a browser adds nothing to a request that another site makes (CSRF). A
site whose name is made to point at this machine (DNS rebinding) sends its own name as `Host`.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-physdiffuser-token"
_READING = frozenset({"GET", "HEAD"})

# Styles stand in attributes of pictures and in the report; scripts come from this server alone.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests that are not the page's own, and sets the headers of all answers.

    Parameters
    ----------
    token
        The secret in the address of the page.
    hosts
        Names and port of the server, as a browser sends them: `127.0.0.1:8000`.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope) if scope["type"] == "http" else "only HTTP is spoken here"
        if refusal is not None:
            if scope["type"] == "http":
                await JSONResponse({"error": refusal}, 403)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused; None where it is the page's own."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return "the address is not the one that the program has printed"
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and not _own_frame(origin, scope):
            return "another site has asked for this"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another site has asked for this"
        given = headers.get(TOKEN_HEADER, "")
        if not given and scope["method"] in _READING:
            # Addresses of pictures, downloads and streams cannot carry a header.
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.encode("latin-1", "replace"), self._token):
            return "the token is missing or wrong: open the address that the program has printed"
        return None


def _own_frame(origin: str, scope: Scope) -> bool:
    """Whether a sandboxed frame, whose origin is `null`, only reads."""
    return origin == "null" and scope["method"] in _READING and b"token=" in scope["query_string"]
