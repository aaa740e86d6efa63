"""The application of the console.

    GET /  /app.js  …   the page
    GET /sign-in        asks for a role and its password, and returns to the page
    POST /statement     {"sql": "…"}: executes a statement as the user; the response is a stream of events

A browser sends a password that it knows with every request, also with requests that a page of another site causes. Therefore a statement
needs a header field that such a page cannot send (`Tailgate-Console`), and the origin of this page.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tailgate.gateway.asgi import refusals
from tailgate.gateway.asgi.access import Access
from tailgate.gateway.asgi.bodies import body, json_of
from tailgate.gateway.asgi.refusals import CHALLENGE, Refused
from tailgate.gateway.asgi.responses import Failure, Streamed, begun
from tailgate.gateway.asgi.sessions import Session, Sessions
from tailgate.gateway.console import files, limits
from tailgate.gateway.console.statements import events

EVENTS = "text/event-stream"
MARK = "tailgate-console"  # a header field that only this page sends
log = logging.getLogger("tailgate.console")
Endpoint = Callable[[Request], Awaitable[Response]]


class Console:
    """The application. `access` determines the user of a request."""

    def __init__(self, sessions: Sessions, access: Access) -> None:
        self._sessions, self._access = sessions, access
        self._running: set[Session] = set()

    def app(self) -> ASGIApp:
        """Returns the application."""
        routes = [
            Route("/statement", _guarded(self._statement), methods=["POST"]),
            Route("/sign-in", _guarded(self._sign_in), methods=["GET"]),
            Route("/{name:path}", _guarded(self._file), methods=["GET"]),
        ]
        return Starlette(routes=routes)

    async def close(self) -> None:
        """Ends all statements."""
        for session in list(self._running):
            session.interrupt()

    async def _file(self, request: Request) -> Response:
        self._access.caller(request)
        response = files.response(request, request.path_params["name"] or files.INDEX)
        if response is None:
            raise Refused(404, "Not found")
        return response

    async def _sign_in(self, request: Request) -> Response:
        if "authorization" not in request.headers:
            raise Refused(refusals.UNAUTHORIZED, "Sign in with a role and its password")
        self._access.caller(request)
        return RedirectResponse("/", 303, headers=files.FIELDS)

    async def _statement(self, request: Request) -> Response:
        caller = self._access.caller(request)
        self._access.check_origin(request)
        if MARK not in request.headers:
            raise Refused(refusals.FORBIDDEN, f"A statement needs the header field {MARK}")
        text = _text(await body(request, limits.REQUEST_BYTES_MAX))
        if len(self._running) >= limits.STATEMENTS_MAX:
            raise Refused(429, f"The console runs at most {limits.STATEMENTS_MAX} statements")
        parts = await begun(events(self._sessions, caller, text, self._running))
        return Streamed(parts, EVENTS, {**files.FIELDS, "Cache-Control": "no-store"})


def _text(data: bytes) -> str:
    """Returns the statement of a request. Raises 400."""
    try:
        document = json_of(data)
    except ValueError:
        document = None
    text = document.get("sql") if isinstance(document, dict) else None
    if not isinstance(text, str) or "\0" in text:
        raise Refused(400, 'The body must be a JSON object with the text "sql"')
    return text


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Returns an endpoint whose errors are responses."""

    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as error:
            return _failed(error.status, error.message)
        except psycopg.Error as error:
            return _failed(refusals.UNAVAILABLE, f"The gateway is not reachable: {error}")
        except ClientDisconnect:
            return Response(status_code=400)
        except HTTPException:
            raise
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            return _failed(500, "Internal server error")

    return guarded


def _failed(status: int, message: str) -> Response:
    fields = {**files.FIELDS, **(CHALLENGE if status == refusals.UNAUTHORIZED else {})}
    return Failure(json.dumps({"error": {"message": message}}), status, fields, "application/json")
