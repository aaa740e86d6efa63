"""The endpoints of the HTTP API, as a Starlette application.

POST /ksql  /ksql/terminate  /query  /query-stream  /close-query  /inserts-stream
GET  /ws/query, a WebSocket
GET  /info  /healthcheck  /status[/…]  /clusterStatus  /is_valid_property/…  /v1/metadata[/id]       / redirects to /info
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketState

from tailgate.gateway.asgi import websockets
from tailgate.gateway.asgi.access import Access
from tailgate.gateway.asgi.bodies import body, parts, was_read
from tailgate.gateway.asgi.refusals import CHALLENGE, UNAUTHORIZED, Refused
from tailgate.gateway.asgi.responses import Failure, Streamed
from tailgate.gateway.asgi.sessions import Caller, Sessions
from tailgate.gateway.ksqldb.server import inserts
from tailgate.gateway.ksqldb.server.http import errors, limits, media
from tailgate.gateway.ksqldb.server.http.errors import ApiError, Document
from tailgate.gateway.ksqldb.server.http.forms import Delimited, Form, JsonArray, Messages, StreamedRows
from tailgate.gateway.ksqldb.server.http.protobuf_rows import ProtobufRows
from tailgate.gateway.ksqldb.server.http.requests import parsed, statement_request
from tailgate.gateway.ksqldb.server.queries import Queries
from tailgate.gateway.ksqldb.server.statements import Statements
from tailgate.gateway.ksqldb.server.terminating import terminate
from tailgate.gateway.server.rates import Rate
from tailgate.sql.ksqldb.declared.refusals import is_property

VERSION = "0.29.0"  # of ksqlDB's API; clients compare it with their own
CLUSTER, SERVICE = "tailgate", "default_"
WEB_SOCKET = "/ws/query"  # the path at which a client may open one
SCOPE: Document = {"path": [], "clusters": {"kafka-cluster": CLUSTER, "ksql-cluster": SERVICE}}

log = logging.getLogger("tailgate.ksqldb")
Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The endpoints. `access` determines the user of a request."""

    def __init__(self, sessions: Sessions, access: Access) -> None:
        self._sessions, self._access = sessions, access
        self.queries = Queries(sessions)
        self._statements = Statements(sessions)
        self._running = self._inserting = 0
        self._rate = Rate()

    def app(self) -> ASGIApp:
        """Returns the application. Queries do not pass through the routing of Starlette, which takes a fifth of a pull query's CPU."""
        get, post = ["GET"], ["POST"]
        queries = {"/query": self._guarded(self._query), "/query-stream": self._guarded(self._query_stream)}
        routes = [
            *(Route(path, endpoint, methods=post) for path, endpoint in queries.items()),
            Route("/ksql", self._guarded(self._run), methods=post),
            Route("/ksql/terminate", self._guarded(self._terminate), methods=post),
            Route("/close-query", self._guarded(self._close_query), methods=post),
            Route("/inserts-stream", self._guarded(self._inserts), methods=post),
            Route("/", self._guarded(_redirected), methods=get),
            *(Route(path, self._guarded(endpoint), methods=get) for path, endpoint in self._documents().items()),
            WebSocketRoute(WEB_SOCKET, self._web_socket),
        ]
        routed = Starlette(routes=routes, exception_handlers={HTTPException: _http_failed})

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            endpoint = queries.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
            if endpoint is None:
                await routed(scope, receive, send)
            else:
                response = await endpoint(Request(scope, receive, send))
                await response(scope, receive, send)

        return app

    def _documents(self) -> dict[str, Endpoint]:
        return {
            "/info": self._info,
            "/healthcheck": self._healthcheck,
            "/status": self._status,
            "/status/{type}/{name}/{action}": self._status,
            "/clusterStatus": self._cluster,
            "/is_valid_property/{name}": self._is_valid,
            "/v1/metadata": self._metadata,
            "/v1/metadata/id": self._metadata,
        }

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Returns an endpoint with limits of running requests and of their rate, whose errors are documents."""

        async def guarded(request: Request) -> Response:
            try:
                with self._counted():
                    return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:  # noqa: BLE001  # becomes a response
                return _failed(request, _api_error(error, request.url.path))

        return guarded

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts a request that runs. Raises 429 if REQUESTS_MAX run, or if they arrive faster than RATE_MAX."""
        if self._running >= limits.REQUESTS_MAX:
            raise ApiError(errors.TOO_MANY, f"The server runs at most {limits.REQUESTS_MAX} requests")
        if not self._rate.admits(time.monotonic(), limits.RATE_MAX):
            raise ApiError(errors.TOO_MANY, f"The server accepts at most {limits.RATE_MAX} requests per second")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    # --- statements and queries

    async def _run(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        statements = statement_request(await body(request), "ksql")
        return _document(await self._statements.run(caller, statements), type)

    async def _terminate(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        return _document(await terminate(self._statements, caller, parsed(await body(request) or b"{}")), type)

    async def _query(self, request: Request) -> Response:
        return await self._queried(request, media.QUERY, "ksql", "sql", stream=False)

    async def _query_stream(self, request: Request) -> Response:
        return await self._queried(request, media.STREAM, "sql", "ksql", stream=True)

    async def _queried(self, request: Request, offered: tuple[str, ...], *names: str, stream: bool) -> Response:
        type, caller = self._entered(request, offered)
        query = statement_request(await body(request), *names)
        prints = not stream or type == media.DELIMITED
        result = await self.queries.run(caller, query, _form(type, stream=stream), prints=prints)
        return Response(result, media_type=type) if isinstance(result, bytes) else Streamed(result, type)

    async def _web_socket(self, socket: WebSocket) -> None:
        """Answers the query, or PRINT, in the parameter `request` of a WebSocket's URL: a JSON object as the body of /query.

        A page of another site could read the answer, and a browser sends the password that it knows. Therefore a password is not enough.
        """
        code, reason = websockets.NORMAL, "done"
        try:
            caller = self._access.caller(socket)
            self._access.check_origin(socket)
            await socket.accept()
            with self._counted():
                query = statement_request(socket.query_params.get("request", "").encode(), "ksql", "sql")
                result = await self.queries.run(caller, query, Messages())
            if not await websockets.send_messages(socket, _messages(result)):
                return
        except Exception as error:  # noqa: BLE001  # becomes the reason of the end
            failure = _api_error(error, WEB_SOCKET)
            if socket.application_state == WebSocketState.CONNECTING:
                await socket.send_denial_response(_refused(failure, Response))
                return
            code, reason = websockets.FAILED, failure.message
        await websockets.close(socket, code, reason)

    async def _close_query(self, request: Request) -> Response:
        type, caller = self._entered(request, (*media.ENTITIES, media.DELIMITED))
        id = parsed(await body(request)).get("queryId")
        if not isinstance(id, str):
            raise ApiError(errors.BAD_REQUEST, 'Missing member "queryId" in the request body')
        await self.queries.close(caller, id)
        return Response(status_code=200, media_type=type)

    async def _inserts(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ACKS)
        if self._inserting >= limits.STREAMS_MAX:
            raise ApiError(errors.TOO_MANY, f"The server runs at most {limits.STREAMS_MAX} streams of inserts")
        self._inserting += 1
        acks = inserts.acks(self._sessions, caller, parts(request, limits.INSERTS_S))
        try:
            await anext(acks)
        except BaseException:
            self._inserting -= 1
            raise
        return Streamed(self._acked(acks, type), type, duplex=True)

    async def _acked(self, acks: AsyncIterator[Document], type: str) -> AsyncGenerator[bytes, None]:
        """Returns the acks as lines, or as one array."""
        before, after, end = (b"", b"\n", b"") if type == media.DELIMITED else (b"[", b"", b"]\n")
        try:
            async for ack in acks:
                yield before + _encoded(ack) + after
                before = b"" if type == media.DELIMITED else b",\n"
        except (ApiError, Refused) as error:
            failure = error if isinstance(error, ApiError) else errors.of_refusal(error)
            yield before + _encoded(failure.document) + after
            before = b""
        except ClientDisconnect:
            return
        finally:
            self._inserting -= 1
        yield (before if before == b"[" else b"") + end

    def _entered(self, request: Request, offered: tuple[str, ...]) -> tuple[str, Caller]:
        """Returns the type of the response and the user of a request. Raises 401, 403, 406 or 415."""
        caller = self._access.caller(request)
        if request.method == "POST":
            media.check_request(request.headers.get("content-type"))
        return media.accepted(request.headers.get("accept"), offered), caller

    # --- documents about the server

    async def _info(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        info = {"version": VERSION, "kafkaClusterId": CLUSTER, "ksqlServiceId": SERVICE, "serverStatus": "RUNNING"}
        return _document({"KsqlServerInfo": info}, type)

    async def _metadata(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        cluster = {"id": "", "scope": SCOPE}
        return _document(cluster if request.url.path.endswith("/id") else {"version": VERSION, "clusterId": cluster}, type)

    async def _healthcheck(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        details: Document = {"metastore": {"isHealthy": False}}
        try:
            async with self._sessions.session(caller) as session:
                await session.execute("SHOW STREAMS;")
                details["metastore"] = {"isHealthy": True}
                await session.execute("SHOW TOPICS;")
                details["kafka"] = {"isHealthy": True}
        except psycopg.errors.InsufficientPrivilege:  # only superusers may look into topics
            pass
        except (psycopg.Error, Refused) as error:
            if isinstance(error, Refused) and error.status == UNAUTHORIZED:
                raise
            if details["metastore"]["isHealthy"]:
                details["kafka"] = {"isHealthy": False}
        healthy = all(detail["isHealthy"] for detail in details.values())
        return _document({"isHealthy": healthy, "details": details}, type)

    async def _status(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        if "type" not in request.path_params:
            return _document({"commandStatuses": self._statements.commands.all(caller.user)}, type)
        id = "{type}/{name}/{action}".format(**request.path_params)
        status = self._statements.commands.find(caller.user, id)
        if status is None:
            raise ApiError(errors.NOT_FOUND, "Command not found")
        return _document(status, type)

    async def _cluster(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        now = round(time.time() * 1000)
        lags = {"stateStoreLags": {}, "updateTimeMs": 0}
        host = {"hostAlive": True, "lastStatusUpdateMs": now, "activeStandbyPerQuery": {}, "hostStoreLags": lags}
        return _document({"clusterStatus": {request.url.netloc: host}}, type)

    async def _is_valid(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        name = request.path_params["name"]
        if not is_property(name):
            raise ApiError(
                errors.BAD_REQUEST,
                "One or more properties overrides set locally are prohibited by the KSQL server "
                f"(use UNSET to reset their default value): [{name}]",
            )
        return _document(True, type)


async def _redirected(request: Request) -> Response:
    return RedirectResponse("/info", 307)


def _form(type: str, *, stream: bool) -> Form:
    """Returns the form of the rows in a media type. `stream`: of /query-stream."""
    if type == media.DELIMITED:
        return Delimited()
    if type == media.PROTOBUF:
        return ProtobufRows()
    return JsonArray() if type == media.JSON and stream else StreamedRows()


async def _messages(result: bytes | AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """Returns the lines of a result, each a message."""
    if isinstance(result, bytes):
        result = _one(result)
    async with contextlib.aclosing(result):
        async for part in result:
            for line in part.split(b"\n"):
                if line:
                    yield line.decode()


async def _one(part: bytes) -> AsyncGenerator[bytes, None]:
    yield part


def _api_error(error: Exception, path: str) -> ApiError:
    """Returns the error of a request. An unexpected one is logged."""
    match error:
        case ApiError():
            return error
        case Refused():
            return errors.of_refusal(error)
        case psycopg.Error():
            return errors.of_sql(error)
    log.error("%s", path, exc_info=error)
    return ApiError(errors.SERVER_ERROR, "Internal server error")


async def _http_failed(request: Request, error: Exception) -> Response:
    """Returns the response for a path or method that does not exist."""
    assert isinstance(error, HTTPException)
    code = {404: errors.NOT_FOUND, 405: errors.METHOD_NOT_ALLOWED}.get(error.status_code, errors.BAD_REQUEST)
    failure = ApiError(code, f"HTTP {error.status_code} {error.detail}: {request.method} {request.url.path}")
    response = _failed(request, failure)
    response.headers.update(error.headers or {})
    return response


def _failed(request: Request, error: ApiError) -> Response:
    """Returns the response of an error."""
    return _refused(error, Response if was_read(request) else Failure)


def _refused(error: ApiError, kind: type[Response]) -> Response:
    response = kind(_encoded(error.document), error.status, media_type=media.JSON)
    if error.code == errors.UNAUTHORIZED:
        response.headers.update(CHALLENGE)
    return response


def _document(document: Any, type: str, status: int = 200) -> Response:
    return Response(_encoded(document), status, media_type=type)


def _encoded(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
